#include "delivery/source_keeping.h"

#include <algorithm>
#include <charconv>

#include "base/format.h"
#include "delivery/workflow_check.h"

namespace hapax::delivery {

namespace {

constexpr Duration kLookWhetherItRemoves{10'000};

std::string kept_in(const std::string& prefix, std::uint64_t stream_uid) {
  return base::format("{}/{}", prefix, stream_uid);
}

// "17 4711": how many, and the last one. Others may write registers: what makes no sense is 0.
LostRecords lost_in(std::string_view text) {
  LostRecords lost;
  const char* end = text.data() + text.size();
  const auto count = std::from_chars(text.data(), end, lost.count);
  if (count.ec != std::errc{} || count.ptr == end || *count.ptr != ' ') return {};
  const auto through = std::from_chars(count.ptr + 1, end, lost.through.value);
  return through.ec == std::errc{} && through.ptr == end ? lost : LostRecords{};
}

bool removes_by_itself(const Retention& retention) {
  return retention.age || retention.bytes || retention.count;
}

}  // namespace

// Z24: noted once. A store that has no room for it does not keep the workflow from running.
Result<Time> SourceKeeping::find_beginning(const std::string& name) {
  HAPAX_TRY(const auto found, store_.find_register(name));
  if (found) return time_from_ms(found->at.wall_ms);
  const Op op = Set{.name = name, .value = "began", .mode = SetMode::kAbsent};
  HAPAX_TRY(const Answer answer, store_.commit({.ops = {&op, 1}, .mode = Mode::kEach}));
  if (const auto* refused = std::get_if<Refused>(&answer.verdicts.front())) {
    say(refused->error.text());
  }
  return answer.time;
}

Status SourceKeeping::open(std::uint64_t stream_uid) {
  if (terms_.keeping.keep == Duration{0}) return Ok{};
  HAPAX_TRY(began_, find_beginning(kept_in(terms_.keeping.began, stream_uid)));
  HAPAX_TRY(const StreamStats stats, store_.describe(terms_.stream));
  const Retention& retention = stats.settings.retention;
  if (stream_uid != stream_uid_ && retention.age && *retention.age < terms_.keeping.keep) {
    say(
        base::format("stream '{}' keeps records for {}; what waits for longer is lost, although "
                     "deadLetter.keep is {}",
                     terms_.stream, span_text(*retention.age), span_text(terms_.keeping.keep)));
  }
  removes_ = removes_by_itself(retention);
  stream_uid_ = stream_uid;
  return Ok{};
}

std::optional<std::string> SourceKeeping::expired(Time stored, Time now) const {
  if (terms_.keeping.keep == Duration{0} || now - std::max(stored, began_) < terms_.keeping.keep) {
    return std::nullopt;
  }
  return base::format("expired: it was not delivered within {} (deadLetter.keep)",
                      span_text(terms_.keeping.keep));
}

// Z25: a receive makes the place of the consumer skip what is gone, so it is looked at before.
Status SourceKeeping::notice(Time now) {
  if (terms_.keeping.keep == Duration{0} || (!removes_ && now < look_at_)) return Ok{};
  look_at_ = now + kLookWhetherItRemoves;
  HAPAX_TRY(const StreamStats stats, store_.describe(terms_.stream));
  const bool removed = std::exchange(removes_, removes_by_itself(stats.settings.retention));
  if (!removed && !removes_) return Ok{};
  const auto ours =
      std::find_if(stats.consumers.begin(), stats.consumers.end(),
                   [&](const ConsumerStats& each) { return each.consumer == terms_.consumer; });
  if (ours == stats.consumers.end() || stats.first <= ours->next) return Ok{};
  return count(ours->next, stats.first);
}

// By compare and set: of several processes that notice the same one counts it.
Status SourceKeeping::count(Sequence next, Sequence first) {
  const std::string name = kept_in(terms_.keeping.lost, stream_uid_);
  HAPAX_TRY(const auto found, store_.find_register(name));
  LostRecords lost = found ? lost_in(found->value) : LostRecords{};
  const std::uint64_t from = std::max(next.value, lost.through.value + 1);
  if (from >= first.value) return Ok{};
  const std::uint64_t more = first.value - from;
  const std::string value = base::format("{} {}", lost.count + more, first.value - 1);
  const Op op = Set{.name = name, .value = value, .expected = found ? found->version : Version{0}};
  HAPAX_TRY(const Answer answer, store_.commit({.ops = {&op, 1}, .mode = Mode::kEach}));
  if (const auto* refused = std::get_if<Refused>(&answer.verdicts.front())) {
    say(refused->error.text());
  }
  if (!std::holds_alternative<Registered>(answer.verdicts.front())) return Ok{};
  say(
      base::format("lost: stream '{}' removed {} records ({} to {}) by its own retention before "
                   "they were delivered",
                   terms_.stream, more, from, first.value - 1));
  return Ok{};
}

Result<LostRecords> find_lost(Store& store, const KeepTerms& terms) {
  const auto stream = store.read({.stream = terms.stream, .max = 1});
  if (!stream && stream.error().code == Errc::kNotFound) return LostRecords{};
  if (!stream) return stream.error();
  HAPAX_TRY(const auto found, store.find_register(kept_in(terms.keeping.lost, stream->stream_uid)));
  return found ? lost_in(found->value) : LostRecords{};
}

}  // namespace hapax::delivery
