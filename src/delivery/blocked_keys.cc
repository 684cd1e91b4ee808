#include "delivery/blocked_keys.h"

#include <algorithm>
#include <iterator>

#include <hapax/limits.h>

#include "base/assert.h"
#include "base/format.h"
#include "base/whole_number.h"
#include "delivery/workflow_streams.h"
#include "relay/headers.h"

namespace hapax::delivery {

namespace {

constexpr int kRegisterForm = 1;
constexpr std::int64_t kNoEnd = -1;
// Of a register whose record nobody looks at any more, after the end of its lease.
constexpr Duration kRegisterKept{std::chrono::days{30}};
constexpr std::size_t kTogetherMax = 1'000;  // records of one commit

Set note_of(std::string_view name, std::string_view value, Duration lease) {
  return {.name = name,
          .value = value,
          .mode = SetMode::kAlways,
          .expiry = {.kind = Expiry::Kind::kAfter, .after = lease + kRegisterKept}};
}

Nack nack_of(const BlockTerms& terms, Receipt receipt, std::string_view reason, bool last) {
  return {.stream = terms.stream,
          .consumer = terms.consumer,
          .receipt = receipt,
          .reason = reason,
          .last = last};
}

std::string register_name(const BlockTerms& terms, std::uint64_t stream_uid, Sequence sequence) {
  return base::format("{}/{}/{}", terms.registers, stream_uid, sequence.value);
}

// The verdict that kept a commit from holding.
const Verdict& culprit(const Answer& answer) {
  const auto at = std::find_if(
      answer.verdicts.begin(), answer.verdicts.end(),
      [](const Verdict& verdict) { return !std::holds_alternative<NotApplied>(verdict); });
  HAPAX_ASSERT(at != answer.verdicts.end(), "a commit is refused for one of its operations");
  return *at;
}

}  // namespace

// --- registers -------------------------------------------------------------------------------

// "1 waits 17 9 1700000000000 -1 3 0 7 order-1HTTP 422": the form, whether it waits, sequence,
// token, since, until, attempts, retries, the length of the key, the key and the reason.
std::string text_of(const BlockedRecord& record) {
  const bool ends = record.until != Time::max();
  return base::format("{} {} {} {} {} {} {} {} {} {}{}", kRegisterForm, record.waits ? 1 : 0,
                      record.receipt.sequence.value, record.receipt.token.value,
                      to_ms(record.since), ends ? to_ms(record.until) : kNoEnd, record.attempts,
                      record.retries, record.key.size(), record.key, record.reason);
}

std::optional<BlockedRecord> read_blocked(std::string_view text) {
  BlockedRecord record;
  int form = 0;
  int waits = 0;
  std::int64_t since_ms = 0;
  std::int64_t until_ms = 0;
  std::size_t key_bytes = 0;
  const bool whole =
      base::take_word(text, form) && form == kRegisterForm && base::take_word(text, waits) &&
      base::take_word(text, record.receipt.sequence.value) &&
      base::take_word(text, record.receipt.token.value) && base::take_word(text, since_ms) &&
      base::take_word(text, until_ms) && base::take_word(text, record.attempts) &&
      base::take_word(text, record.retries) && base::take_word(text, key_bytes) &&
      key_bytes <= text.size();
  if (!whole) return std::nullopt;
  record.waits = waits != 0;
  record.since = time_from_ms(since_ms);
  if (until_ms != kNoEnd) record.until = time_from_ms(until_ms);
  record.key = text.substr(0, key_bytes);
  record.reason = text.substr(key_bytes);
  return record;
}

std::string KeyBlocks::register_of(std::uint64_t stream_uid, Sequence sequence) const {
  return register_name(terms_, stream_uid, sequence);
}

Result<std::optional<BlockedRecord>> KeyBlocks::find(std::uint64_t stream_uid,
                                                     Sequence sequence) const {
  HAPAX_TRY(const auto found, store_.find_register(register_of(stream_uid, sequence)));
  return found ? read_blocked(found->value) : std::optional<BlockedRecord>();
}

// --- sources ---------------------------------------------------------------------------------

// As the workflow says now, which may be something else than when the record was given up.
bool KeyBlocks::is_over(const BlockedRecord& record, Time now) const {
  return !terms_.hold || now - record.since >= *terms_.hold;
}

std::vector<Op> KeyBlocks::hold(BlockedRecord record, std::uint64_t stream_uid, Time now,
                                Kept& kept) const {
  const Duration most = terms_.hold.value_or(Duration::max());
  record.until = most == Duration::max() ? Time::max() : record.since + most;
  record.waits = true;
  const Duration lease = std::clamp(record.until - now, limits::kLeaseMin, limits::kLeaseMax);
  const std::string& name = kept.emplace_back(register_of(stream_uid, record.receipt.sequence));
  const std::string& value = kept.emplace_back(text_of(record));
  return {Extend{terms_.stream, terms_.consumer, record.receipt, lease},
          note_of(name, value, lease)};
}

std::vector<Op> KeyBlocks::end(const BlockedRecord& record, std::uint64_t stream_uid,
                               Kept& kept) const {
  const std::string& name = kept.emplace_back(register_of(stream_uid, record.receipt.sequence));
  const std::string& reason = kept.emplace_back(record.reason);
  return {nack_of(terms_, record.receipt, reason, true), Unset{.name = name}};
}

Result<Answer> KeyBlocks::commit(std::span<const Given> given, std::uint64_t stream_uid, Time now) {
  Kept kept;
  std::vector<Op> ops;
  for (const Given& each : given) {
    const std::vector<Op> these = is_over(each.record, now)
                                      ? end(each.record, stream_uid, kept)
                                      : hold(each.record, stream_uid, now, kept);
    ops.insert(ops.end(), these.begin(), these.end());
    if (!each.attempts.empty()) ops.emplace_back(Unset{.name = each.attempts});
  }
  return store_.commit({.ops = ops, .mode = Mode::kAtomic});
}

// All together; if one of them does not fit, each alone.
Result<std::vector<KeyBlocks::NotTaken>> KeyBlocks::settle(std::span<const Given> given,
                                                           std::uint64_t stream_uid, Time now) {
  std::vector<NotTaken> not_taken;
  for (std::size_t done = 0; done < given.size(); done += kTogetherMax) {
    const auto piece = given.subspan(done, std::min(given.size() - done, kTogetherMax));
    HAPAX_TRY(const Answer together, commit(piece, stream_uid, now));
    if (together.committed) continue;
    for (std::size_t i = 0; i < piece.size(); ++i) {
      HAPAX_TRY(const Answer alone, commit(piece.subspan(i, 1), stream_uid, now));
      if (alone.committed) continue;
      const auto* refused = std::get_if<Refused>(&culprit(alone));
      if (refused != nullptr) not_taken.push_back({done + i, refused->error});
    }
  }
  return not_taken;
}

// --- people ----------------------------------------------------------------------------------

namespace {

// Registers of other streams of that name have other numbers.
Result<std::vector<std::string>> names_of(Store& store, const std::string& prefix) {
  std::vector<std::string> names;
  RegisterScan scan{.max = static_cast<std::uint32_t>(limits::kReadMax), .prefix = prefix};
  do {
    HAPAX_TRY(RegisterPage page, store.scan_registers(scan));
    std::move(page.names.begin(), page.names.end(), std::back_inserter(names));
    scan.cursor = page.next;
  } while (scan.cursor != 0);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace

Result<std::vector<BlockedRecord>> list_blocked(Store& store, const BlockTerms& terms,
                                                std::size_t most) {
  const auto found = store.read({.stream = terms.stream, .max = 1});
  if (!found && found.error().code == Errc::kNotFound) return std::vector<BlockedRecord>{};
  if (!found) return found.error();
  const std::string prefix = base::format("{}/{}/", terms.registers, found->stream_uid);
  HAPAX_TRY(const std::vector<std::string> names, names_of(store, prefix));
  std::vector<BlockedRecord> all;
  for (const std::string& name : names) {
    HAPAX_TRY(const auto value, store.find_register(name));
    auto record = value ? read_blocked(value->value) : std::nullopt;
    // What the stream itself has removed blocks nobody any more.
    if (!record || !record->waits || record->receipt.sequence < found->first) continue;
    all.push_back(*std::move(record));
  }
  std::sort(all.begin(), all.end(), [](const BlockedRecord& a, const BlockedRecord& b) {
    return std::pair(a.since, a.receipt.sequence) < std::pair(b.since, b.receipt.sequence);
  });
  if (all.size() > most) all.resize(most);
  return all;
}

// Z20
Result<bool> decide_blocked(Store& store, const BlockTerms& terms, const BlockedRecord& record,
                            BlockDecision decision, std::string_view reason) {
  HAPAX_TRY(const std::uint64_t stream_uid, find_source(store, terms.stream));
  const std::string name = register_name(terms, stream_uid, record.receipt.sequence);
  const std::string kept_reason = relay::stored_reason(reason);
  BlockedRecord again = record;
  again.waits = false;
  ++again.retries;
  const std::string value = text_of(again);
  std::vector<Op> ops;
  if (decision == BlockDecision::kRetry) {
    ops.emplace_back(nack_of(terms, record.receipt, kept_reason, false));
    ops.emplace_back(note_of(name, value, Duration{0}));
  } else if (decision == BlockDecision::kPark) {
    ops.emplace_back(nack_of(terms, record.receipt, kept_reason, true));
    ops.emplace_back(Unset{.name = name});
  } else {
    ops.emplace_back(Ack{terms.stream, terms.consumer, record.receipt});
    ops.emplace_back(Unset{.name = name});
  }
  HAPAX_TRY(const Answer answer, store.commit({.ops = ops, .mode = Mode::kAtomic}));
  if (answer.committed) return true;
  if (const auto* refused = std::get_if<Refused>(&culprit(answer))) return refused->error;
  return false;
}

}  // namespace hapax::delivery
