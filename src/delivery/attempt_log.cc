#include "delivery/attempt_log.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <hapax/limits.h>

#include "base/format.h"

namespace hapax::delivery {

namespace {

constexpr std::int64_t kSayEveryMs = 60'000;

StreamSettings stream_settings(const AttemptLogSettings& settings) {
  StreamSettings stream;
  stream.window = Window{limits::kWindowMin};  // Its records have no ids.
  stream.track_groups = false;
  stream.record_bytes_max = limits::kRecordBytesMax;
  stream.retention.age = settings.kept;
  stream.retention.bytes = settings.bytes_max;
  return stream;
}

}  // namespace

// A stream of that name with other settings than a log can have is somebody's, who must not lose
// records to our retention.
Status AttemptLog::look() {
  setup_ = Setup::kCreate;
  const auto stats = store_.describe(settings_.stream);
  if (!stats) return stats.error().code == Errc::kNotFound ? Status(Ok{}) : stats.error();
  StreamSettings wanted = stream_settings(settings_);
  if (stats->settings == wanted) {
    setup_ = Setup::kNothing;
    return Ok{};
  }
  wanted.retention = stats->settings.retention;
  setup_ = stats->settings == wanted ? Setup::kConfigure : Setup::kNotOurs;
  return Ok{};
}

void AttemptLog::note(std::vector<Attempt> attempts) {
  for (Attempt& attempt : attempts) {
    std::string& answer = attempt.facts.answer;
    const std::size_t most = std::min(kAnswerMax, kAnswersPerCommit - answer_bytes_);
    if (answer.size() > most) {
      answer.resize(most);
      attempt.facts.answer_cut = true;
    }
    answer_bytes_ += answer.size();
    attempt.reason.resize(std::min(attempt.reason.size(), kReasonMax));
    waiting_.push_back(std::move(attempt));
  }
  if (waiting_.size() <= kWaitingMax) return;
  const std::size_t beyond = waiting_.size() - kWaitingMax;
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(beyond));
  drop(beyond, "the store has not answered for long");
}

void AttemptLog::speak(const AddOp& add) {
  spoken_.clear();
  first_ = end_ = 0;
  if (setup_ == Setup::kNotOurs) forget("that stream was made by somebody else");
  if (waiting_.empty()) return;
  for (std::size_t at = 0; at < waiting_.size();) {
    AttemptWriter writer(clock_.steady_ms());
    while (at < waiting_.size() && writer.count() < kAttemptsPerRecord) writer.add(waiting_[at++]);
    spoken_.push_back({0, writer.count(), writer.payload()});
  }
  std::optional<std::size_t> setup;
  if (setup_ == Setup::kCreate) {
    setup = add(CreateStream{settings_.stream, stream_settings(settings_)});
  } else if (setup_ == Setup::kConfigure) {
    setup = add(ConfigureStream{settings_.stream, stream_settings(settings_)});
  }
  for (Spoken& each : spoken_) {
    each.place = add(Append{.stream = settings_.stream, .payload = each.payload});
  }
  first_ = setup.value_or(spoken_.front().place);
  end_ = spoken_.back().place + 1;
}

void AttemptLog::hear(const Answer& answer) {
  if (spoken_.empty()) return;
  if (spoken_.front().place != first_) hear_setup(answer.verdicts[first_]);
  for (const Spoken& each : std::exchange(spoken_, {})) {
    const auto* refused = std::get_if<Refused>(&answer.verdicts[each.place]);
    if (refused == nullptr) continue;
    drop(each.attempts, refused->error.text());
    if (refused->error.code == Errc::kNotFound) setup_ = Setup::kCreate;
  }
  waiting_.clear();
  answer_bytes_ = 0;
}

// Another process may have made it meanwhile.
void AttemptLog::hear_setup(const Verdict& verdict) {
  setup_ = Setup::kNothing;
  const auto* refused = std::get_if<Refused>(&verdict);
  const bool there = refused == nullptr || refused->error.code == Errc::kAlreadyExists;
  if (!there && log_) log_(base::format("the log of attempts: {}", refused->error.text()));
}

// Z21: after an unknown outcome they may be there. After any other error they are not, and what
// they tell is still true.
void AttemptLog::hear_nothing(Errc why) {
  const bool some = !std::exchange(spoken_, {}).empty();
  if (!some || why != Errc::kOutcomeUnknown) return;
  forget("nobody knows whether the store has them");
}

void AttemptLog::forget(std::string_view why) {
  if (!waiting_.empty()) drop(waiting_.size(), why);
  waiting_.clear();
  answer_bytes_ = 0;
}

void AttemptLog::write() {
  if (waiting_.empty()) return;
  if (!looked_) looked_ = look().ok();
  if (!looked_) return;
  std::vector<Op> ops;
  speak([&](const Op& op) {
    ops.push_back(op);
    return ops.size() - 1;
  });
  if (ops.empty()) return;
  const Result<Answer> answer = store_.commit({.ops = ops, .mode = Mode::kEach});
  if (answer) return hear(*answer);
  hear_nothing(answer.error().code);
}

void AttemptLog::drop(std::size_t attempts, std::string_view why) {
  given_up_ += attempts;
  unsaid_ += attempts;
  const std::int64_t now = clock_.steady_ms();
  if (!log_ || now < say_at_ms_) return;
  say_at_ms_ = now + kSayEveryMs;
  log_(base::format("attempts that are not in the log '{}': {}; {}", settings_.stream, unsaid_,
                    why));
  unsaid_ = 0;
}

}  // namespace hapax::delivery
