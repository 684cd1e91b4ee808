#include "workflows/dead_letters.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <deque>
#include <future>
#include <utility>
#include <variant>

#include "base/format.h"
#include "delivery/workflow_streams.h"
#include "workflows/own_streams.h"
#include "workflows/plan.h"
#include "workflows/staging.h"

namespace hapax::workflows {

namespace {

using delivery::Workflow;

constexpr std::uint32_t kDeadReadAtOnce = 256;
constexpr std::size_t kDeadLooksMax = 5'000;  // of one page
constexpr std::uint64_t kDeadBytesMax = std::uint64_t{16} << 20;
constexpr std::size_t kJudgedAtOnce = 32;
constexpr std::uint64_t kUnjudgedMax = 20;  // of one page: each may have cost its whole time

bool is_wanted(const std::string& wanted, std::string_view value) {
  return wanted.empty() || wanted == value;
}

bool fits_status(const DeadFilter& filter, std::string_view reason) {
  if (!filter.status) return true;
  const int status = status_in(reason);
  return status >= filter.status->first && status <= filter.status->last;
}

std::string endpoint_of(const Workflow* declared, const Record& record) {
  if (const auto origin = staged_origin_of(record)) return origin->endpoint;
  const bool one = declared != nullptr && declared->endpoints.size() == 1;
  return one ? declared->endpoints.front().name : std::string();
}

// All that is known without a condition.
bool takes(const DeadFilter& filter, const DeadLetter& letter) {
  const Record& record = letter.record;
  if (!record.lineage) return false;
  const bool named = filter.sequences.empty() || filter.sequences.contains(record.sequence.value);
  return named && record.time >= filter.since && record.time <= filter.until &&
         is_wanted(filter.type, type_of(record)) && is_wanted(filter.group, record.group) &&
         is_wanted(filter.id, record.id) && is_wanted(filter.endpoint, letter.endpoint) &&
         record.lineage->reason.find(filter.reason) != std::string::npos &&
         fits_status(filter, record.lineage->reason);
}

bool is_true(const std::vector<delivery::Reshaped>& outputs) {
  return !outputs.empty() && outputs.front().payload != "false" &&
         outputs.front().payload != "null";
}

// Runs the condition over letters, some of them at once.
class Judge {
 public:
  explicit Judge(delivery::Transforming& condition) : condition_(condition) {}

  // Leaves those in `letters` for which it holds. Whoever it fails over does not count.
  Status judge(std::deque<DeadLetter>& letters, DeadPage& page) {
    std::deque<DeadLetter> meant;
    while (!letters.empty()) {
      const std::size_t count = std::min(letters.size(), kJudgedAtOnce);
      std::vector<std::future<Result<delivery::ReshapeOutcome>>> answers;
      for (std::size_t i = 0; i < count; ++i) {
        HAPAX_CHECK(begin(letters[i].record, answers));
      }
      for (auto& waiting : answers) {
        HAPAX_TRY(const delivery::ReshapeOutcome outcome, waiting.get());
        if (const auto* failed = std::get_if<delivery::NotReshaped>(&outcome)) {
          if (page.unjudged++ == 0) page.why_unjudged = failed->reason;
        } else if (is_true(std::get<std::vector<delivery::Reshaped>>(outcome))) {
          meant.push_back(std::move(letters.front()));
        }
        letters.pop_front();
      }
    }
    letters = std::move(meant);
    return Ok{};
  }

 private:
  Status begin(const Record& record,
               std::vector<std::future<Result<delivery::ReshapeOutcome>>>& answers) {
    const auto told = std::make_shared<std::promise<Result<delivery::ReshapeOutcome>>>();
    answers.push_back(told->get_future());
    return condition_.start(
        record.payload, record.time,
        [told](Result<delivery::ReshapeOutcome> outcome) { told->set_value(std::move(outcome)); });
  }

  delivery::Transforming& condition_;
};

// Named ones are asked for one by one, so that they are found however far they lie apart.
Sequence next_named(const DeadFilter& filter, Sequence from) {
  if (filter.sequences.empty()) return from;
  const auto at = filter.sequences.lower_bound(from.value);
  return at == filter.sequences.end() ? Sequence{~std::uint64_t{0}} : Sequence{*at};
}

class DeadReading {
 public:
  DeadReading(const Workflow* declared, const std::string& stream, const DeadFilter& filter,
              const DeadRange& range, Store& store)
      : declared_(declared), stream_(stream), filter_(filter), range_(range), store_(store) {}

  Result<DeadPage> read(const StreamStats& stats) {
    page_.last = stats.last.value;
    const Sequence end{std::min(stats.last.value, range_.through)};
    HAPAX_TRY(Sequence at, first(stats));
    while ((at = next_named(filter_, at)) <= end) {
      if (is_full()) {
        page_.next = at.value;
        break;
      }
      HAPAX_TRY(at, read_some(at, end));
    }
    return std::move(page_);
  }

 private:
  Result<Sequence> first(const StreamStats& stats) {
    Sequence at = std::max(Sequence{range_.from}, stats.first);
    if (filter_.since == Time::min()) return at;
    return delivery::first_since(store_, stream_, at, stats.last.next(), filter_.since);
  }
  [[nodiscard]] bool is_full() const {
    return page_.letters.size() >= range_.max || looks_ >= kDeadLooksMax ||
           bytes_ >= kDeadBytesMax || page_.unjudged >= kUnjudgedMax ||
           (judged_ && judged_for_ >= range_.judge_max);
  }

  // Answers where to go on. No more than there is room for, so that nothing is judged in vain.
  Result<Sequence> read_some(Sequence at, Sequence end) {
    const bool one = !filter_.sequences.empty();
    const std::size_t room = std::max<std::size_t>(range_.max - page_.letters.size(), 1);
    const auto most = static_cast<std::uint32_t>(
        one ? 1
            : std::min<std::size_t>(filter_.condition == nullptr ? kDeadReadAtOnce : kJudgedAtOnce,
                                    std::max<std::size_t>(room, 16)));
    HAPAX_TRY(Records found, store_.read({.stream = stream_, .from = at, .max = most}));
    if (found.records.empty()) return end.next();
    std::deque<DeadLetter> letters;
    Sequence next = at.next();
    for (Record& record : found.records) {
      if (one && record.sequence != at) return at.next();
      if (record.sequence > end) {
        next = end.next();
        break;
      }
      if (page_.letters.size() + letters.size() >= range_.max) break;
      next = record.sequence.next();
      ++looks_;
      bytes_ += record.payload.size();
      DeadLetter letter{std::move(record), {}};
      letter.endpoint = endpoint_of(declared_, letter.record);
      if (takes(filter_, letter)) letters.push_back(std::move(letter));
    }
    if (filter_.condition != nullptr) {
      const auto began = std::chrono::steady_clock::now();
      HAPAX_CHECK(Judge(*filter_.condition).judge(letters, page_));
      judged_for_ += std::chrono::steady_clock::now() - began;
      judged_ = true;
    }
    std::move(letters.begin(), letters.end(), std::back_inserter(page_.letters));
    return next;
  }

  const Workflow* const declared_;
  const std::string& stream_;
  const DeadFilter& filter_;
  const DeadRange& range_;
  Store& store_;
  DeadPage page_;
  std::size_t looks_ = 0;
  std::uint64_t bytes_ = 0;
  bool judged_ = false;
  std::chrono::steady_clock::duration judged_for_{};
};

}  // namespace

std::string dead_letters_of(std::string_view workflow) { return std::string(workflow) + ".dead"; }

int status_in(std::string_view reason) {
  constexpr std::string_view kHttp = "HTTP ";
  const std::size_t at = reason.find(kHttp);
  if (at == std::string_view::npos) return 0;
  reason.remove_prefix(at + kHttp.size());
  int status = 0;
  std::from_chars(reason.data(), reason.data() + std::min<std::size_t>(reason.size(), 3), status);
  return status >= 100 && status <= 599 ? status : 0;
}

Result<DeadPage> find_dead_letters(const Workflow* declared, const std::string& stream,
                                   const DeadFilter& filter, const DeadRange& range, Store& store) {
  const auto stats = store.describe(stream);
  // It is made with the first dead letter.
  const bool none = !stats && stats.error().code == Errc::kNotFound;
  if (none && declared != nullptr) return DeadPage{};
  if (!stats) return stats.error();
  return DeadReading(declared, stream, filter, range, store).read(*stats);
}

Result<DeadReplay> put_back(const std::string& stream, const std::vector<DeadLetter>& letters,
                            Store& store) {
  DeadReplay replay;
  if (letters.empty()) return replay;
  std::vector<Op> ops;
  for (const DeadLetter& letter : letters) {
    ops.emplace_back(Redrive{.dead_letters = stream, .sequence = letter.record.sequence});
  }
  // Each on its own: one that cannot be put back hinders no other.
  HAPAX_TRY(const Answer answer, store.commit({.ops = ops, .mode = Mode::kEach}));
  for (std::size_t i = 0; i < answer.verdicts.size(); ++i) {
    const Verdict& verdict = answer.verdicts[i];
    const std::uint64_t sequence = letters[i].record.sequence.value;
    if (std::holds_alternative<Appended>(verdict)) {
      ++replay.replayed;
    } else if (std::holds_alternative<Duplicate>(verdict)) {
      ++replay.repeated;
    } else if (const auto* refused = std::get_if<Refused>(&verdict)) {
      // Z31: not there any more, or the stream or consumer that it came from is not.
      const auto there = store.read({.stream = stream, .from = Sequence{sequence}, .max = 1});
      const bool stays =
          !there || (!there->records.empty() && there->records.front().sequence.value == sequence);
      if (stays) {
        replay.refused.push_back({sequence, refused->error.text()});
      } else {
        ++replay.gone;
      }
    }
  }
  return replay;
}

Status drop_dead_letters(const std::string& stream, std::uint64_t through, Store& store) {
  const Op op = Trim{stream, Sequence{through}.next()};
  HAPAX_TRY(const Answer answer, store.commit({.ops = {&op, 1}, .mode = Mode::kEach}));
  if (const auto* refused = std::get_if<Refused>(&answer.verdicts.front())) return refused->error;
  return Ok{};
}

}  // namespace hapax::workflows
