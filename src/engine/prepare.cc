#include "engine/prepare.h"

#include <algorithm>
#include <array>
#include <functional>

#include "base/encoding.h"
#include "core/tenants.h"

namespace hapax::engine {

namespace {

using base::Hash128;
using core::OpHashes;
using digest::HashKey;

// Hashes of different things under one key must never meet: each has a number of its own added.
enum class Domain : std::uint64_t {
  kId = 1,
  kGroup,
  kContent,
  kClaim,
  kCommitId,
  kOps,
  kGroupedContent,
  kRegister
};

Hash128 in_domain(Domain domain, Hash128 hash) {
  return hash.plus(base::spread(~static_cast<std::uint64_t>(domain)));
}

Fingerprint content_of(const HashKey& key, std::string_view payload,
                       std::optional<std::string_view> group) {
  Hash128 hash = digest::hash128(key, payload);
  if (!group) return base::to_fingerprint(in_domain(Domain::kContent, hash));
  const std::array pieces{payload, *group};
  hash = digest::hash128(key, pieces);
  return base::to_fingerprint(in_domain(Domain::kGroupedContent, hash));
}

struct HashOp {
  const HashKey& key;

  OpHashes operator()(const Append& op) const {
    OpHashes hashes;
    if (op.id) hashes.key = id_hash(key, *op.id);
    hashes.content = content_of(key, op.payload, op.group);
    hashes.group = group_hash(key, op.group);
    return hashes;
  }
  OpHashes operator()(const Claim& op) const {
    const Hash128 content = in_domain(Domain::kContent, digest::hash128(key, op.content));
    return {claim_hash(key, op.scope, op.key), base::to_fingerprint(content), 0};
  }
  template <class PlainOp>
  OpHashes operator()(const PlainOp& op) const {
    if constexpr (requires { op.scope; }) return {claim_hash(key, op.scope, op.key), {}, 0};
    if constexpr (requires { op.name; }) return {register_hash(key, op.name), {}, 0};
    return {};
  }
};

// What the operations say, for telling a repeated commit from another one under the same id.
class Describe {
 public:
  explicit Describe(std::string& out) : out_(out), encoder_(out) {}

  void operator()(const Append& op) {
    text(op.stream, op.id.value_or(""), op.group.value_or(""), op.payload);
    number(op.headers.size());
    for (const Header& header : op.headers) text(header.name, header.value);
    number(op.producer.has_value() ? 1U : 0U, op.expect.has_value() ? 1U : 0U);
    if (op.producer) {
      text(op.producer->name);
      number(op.producer->epoch.value, op.producer->sequence.value);
    }
    if (op.expect) number(static_cast<std::uint64_t>(op.expect->of), op.expect->last.value);
  }
  void operator()(const Claim& op) {
    text(op.scope, op.key, op.content, op.owner);
    number(ms(op.lease), op.retention.raw(), op.tombstone.raw());
    // Not of the default: what version 1 described stays described so.
    if (op.on_lapse != OnLapse::kTakeOver) number(static_cast<std::uint64_t>(op.on_lapse));
  }
  void operator()(const Renew& op) {
    text(op.scope, op.key);
    number(op.fence.value, ms(op.lease));
  }
  void operator()(const Settle& op) {
    text(op.scope, op.key, op.reason, op.result.headers, op.result.body);
    number(op.fence.value, static_cast<std::uint64_t>(op.outcome), op.result.status);
  }
  void operator()(const Resolve& op) {
    text(op.scope, op.key, op.actor, op.reason, op.result.headers, op.result.body);
    number(static_cast<std::uint64_t>(op.resolution), op.result.status);
  }
  void operator()(const Forget& op) { text(op.scope, op.key, op.actor, op.reason); }
  void operator()(const Receive& op) {
    text(op.stream, op.consumer, op.owner);
    number(op.max, ms(op.lease));
  }
  void operator()(const Ack& op) { receipt(op); }
  void operator()(const Nack& op) {
    receipt(op);
    text(op.reason);
    number(ms(op.delay));
    // As for a redrive to all.
    if (op.last) number(std::uint64_t{255});
  }
  void operator()(const Extend& op) {
    receipt(op);
    number(ms(op.lease));
  }
  void operator()(const Advance& op) {
    text(op.source, op.expected, op.to);
    number(op.epoch.value);
  }
  void operator()(const Set& op) {
    text(op.name, op.value);
    number(static_cast<std::uint64_t>(op.mode), op.expected.value, op.at.has_value() ? 1U : 0U);
    if (op.at) number(static_cast<std::uint64_t>(op.at->wall_ms), op.at->counter, op.at->node);
    expiry(op.expiry);
    number(op.tell_value ? 1U : 0U);
  }
  void operator()(const Get& op) {
    text(op.name);
    number(op.tell_value ? 1U : 0U);
  }
  void operator()(const Unset& op) {
    text(op.name);
    number(op.tell_value ? 1U : 0U);
  }
  void operator()(const Expire& op) {
    text(op.name);
    expiry(op.expiry);
    number(static_cast<std::uint64_t>(op.only_if));
  }
  void operator()(const Add& op) {
    text(op.name);
    number(static_cast<std::uint64_t>(op.by));
  }
  void operator()(const CreateStream& op) { settings(op); }
  void operator()(const ConfigureStream& op) { settings(op); }
  void operator()(const DeleteStream& op) { text(op.stream); }
  void operator()(const Trim& op) {
    text(op.stream);
    number(op.before.value);
  }
  void operator()(const RetireProducer& op) { text(op.stream, op.producer, op.actor, op.reason); }
  void operator()(const OpenProducer& op) { text(op.stream, op.producer); }
  void operator()(const CreateConsumer& op) {
    text(op.stream, op.consumer, op.settings.dead_letters);
    number(op.settings.attempts_max, static_cast<std::uint64_t>(op.settings.last_attempt),
           op.settings.start.value, op.settings.in_flight_max);
  }
  void operator()(const DeleteConsumer& op) { text(op.stream, op.consumer); }
  void operator()(const Seek& op) {
    text(op.stream, op.consumer);
    number(op.to.value);
  }
  void operator()(const Redrive& op) {
    text(op.dead_letters);
    number(op.sequence.value);
    // No operation has this number, and without it the words are those of older versions.
    if (op.to == RedriveTo::kAll) number(std::uint64_t{255});
    if (!op.again_for.empty()) {
      number(std::uint64_t{254});
      text(op.again_for, op.replay);
    }
  }
  void operator()(const Begin& op) {
    text(op.transaction);
    number(ms(op.timeout));
  }
  void operator()(const End& op) {
    text(op.transaction);
    number(op.epoch.value, static_cast<std::uint64_t>(op.finish));
  }

 private:
  static std::uint64_t ms(Duration span) { return static_cast<std::uint64_t>(span.count()); }
  template <class... Texts>
  void text(const Texts&... texts) {
    (encoder_.bytes(texts), ...);
  }
  template <class... Numbers>
  void number(Numbers... numbers) {
    (encoder_.varint(numbers), ...);
  }
  void expiry(const Expiry& expiry) {
    number(static_cast<std::uint64_t>(expiry.kind), static_cast<std::uint64_t>(to_ms(expiry.at)),
           ms(expiry.after));
  }
  template <class ReceiptOp>
  void receipt(const ReceiptOp& op) {
    text(op.stream, op.consumer);
    number(op.receipt.sequence.value, op.receipt.token.value);
  }
  template <class SettingsOp>
  void settings(const SettingsOp& op) {
    text(op.stream);
    core::encode(core::StreamConfigured{core::StreamUid{}, op.settings}, out_);
  }

  std::string& out_;
  base::Encoder encoder_;
};

Fingerprint content_of(const HashKey& key, const Commit& commit) {
  std::string described;
  base::Encoder encoder(described);
  encoder.u8(static_cast<std::uint8_t>(commit.mode));
  encoder.u8(commit.transaction.has_value() ? 1 : 0);
  if (commit.transaction) {
    encoder.bytes(commit.transaction->name);
    encoder.varint(commit.transaction->epoch.value);
  }
  Describe describe(described);
  for (const Op& op : commit.ops.first(commit.ops.size() - commit.notes)) {
    encoder.u8(static_cast<std::uint8_t>(op.index()));
    std::visit(describe, op);
  }
  return base::to_fingerprint(in_domain(Domain::kOps, digest::hash128(key, described)));
}

// The bytes an operation may add to a batch, generously: all its text. Acts of a person are written
// once more, to the audit.
std::size_t room_of(const Op& op) {
  constexpr std::size_t kOverhead = 512;
  constexpr std::size_t kSequenceBytesMax = 10;
  std::string described;
  if (const auto* append = std::get_if<Append>(&op)) {  // Not copied: it may be large.
    std::size_t headers = 0;
    for (const Header& header : append->headers)
      headers += header.name.size() + header.value.size();
    const std::size_t names = append->id.value_or("").size() + append->group.value_or("").size();
    return kOverhead + append->payload.size() + names + headers;
  }
  if (const auto* claim = std::get_if<Claim>(&op)) {
    return kOverhead + claim->scope.size() + claim->key.size() + claim->owner.size();
  }
  if (const auto* set = std::get_if<Set>(&op)) {
    return kOverhead + set->name.size() + set->value.size();
  }
  if (const auto* receive = std::get_if<Receive>(&op)) {
    // One that asks for more is refused by itself, and adds nothing.
    return kOverhead + std::min<std::size_t>(receive->max, limits::kReceiveMax) * kSequenceBytesMax;
  }
  Describe describe(described);
  std::visit(describe, op);
  const bool audited = std::holds_alternative<Resolve>(op) || std::holds_alternative<Forget>(op) ||
                       std::holds_alternative<RetireProducer>(op);
  return kOverhead + (audited ? 2 : 1) * described.size();
}

// What its answer may add, if the answer is kept.
std::size_t answer_room_of(const Op& op) {
  const auto tells = [](const auto& plain) {
    if constexpr (requires { plain.tell_value; }) return plain.tell_value;
    return false;
  };
  return std::visit(tells, op) ? limits::kRegisterBytesMax : 0;
}

// Notes of a repetition may be others in number and words. So their verdicts must be of one kind,
// and what they do must be nobody's answer.
Status check_notes(const Commit& commit) {
  const auto is_append = [](const Op& op) { return std::holds_alternative<Append>(op); };
  const auto refused = [](const char* why) { return Error{Errc::kInvalidArgument, why}; };
  const char* const kBehind = "notes of a commit are appends behind its operations";
  if (commit.notes >= commit.ops.size()) return refused(kBehind);
  const auto notes = commit.ops.last(commit.notes);
  if (!std::all_of(notes.begin(), notes.end(), is_append)) return refused(kBehind);
  if (commit.noted.empty()) return Ok{};
  const bool ascending = std::adjacent_find(commit.noted.begin(), commit.noted.end(),
                                            std::greater_equal<>()) == commit.noted.end();
  const bool own = commit.noted.back() < commit.ops.size() - commit.notes;
  const bool each = commit.mode == Mode::kEach && !commit.transaction;
  if (each && commit.noted.size() == commit.notes && ascending && own) return Ok{};
  return refused(
      "noted has the places of the operations of an `each` commit without a transaction, one for "
      "each note");
}

Status check_id(const Commit& commit) {
  if (!commit.id) return Ok{};
  const std::size_t size = core::local_name(*commit.id).size();
  if (size == 0) return core::empty_error("id");
  if (size <= limits::kMessageIdBytesMax) return Ok{};
  return core::limit_error("commit id", size, limits::kMessageIdBytesMax);
}

}  // namespace

base::Hash128 id_hash(const HashKey& key, std::string_view id) {
  return in_domain(Domain::kId, digest::hash128(key, id));
}

core::GroupHash group_hash(const HashKey& key, std::optional<std::string_view> group) {
  if (!group) return 0;
  const std::uint64_t hash = in_domain(Domain::kGroup, digest::hash128(key, *group)).low;
  return hash == 0 ? 1 : hash;
}

base::Hash128 claim_hash(const HashKey& key, std::string_view scope, std::string_view claim_key) {
  const std::array pieces{scope, claim_key};
  return in_domain(Domain::kClaim, digest::hash128(key, pieces));
}

base::Hash128 register_hash(const HashKey& key, std::string_view name) {
  return in_domain(Domain::kRegister, digest::hash128(key, name));
}

Result<Prepared> prepare(const Commit& commit, const HashKey& key) {
  if (commit.ops.empty()) return Error{Errc::kInvalidArgument, "a commit without operations"};
  HAPAX_CHECK(check_notes(commit));
  // Notes do not count, neither as operations nor in bytes: what may be asked for may be noted, as
  // far as both fit a batch of the journal.
  const std::size_t own = commit.ops.size() - commit.notes;
  if (std::max(own, commit.notes) > limits::kCommitOpsMax) {
    return core::limit_error("number of operations of a commit", std::max(own, commit.notes),
                             limits::kCommitOpsMax);
  }
  HAPAX_CHECK(check_id(commit));
  if (auto error = core::check_window("id_window", commit.id_window)) return *std::move(error);
  Prepared prepared;
  prepared.commit = commit;
  prepared.hashes.reserve(commit.ops.size());
  const HashOp hash{key};
  std::size_t own_bytes = 0;
  for (std::size_t i = 0; i < commit.ops.size(); ++i) {
    const Op& op = commit.ops[i];
    prepared.hashes.push_back(std::visit(hash, op));
    prepared.bytes += room_of(op) + (commit.id ? answer_room_of(op) : 0);
    if (i < own) own_bytes = prepared.bytes;
  }
  const std::size_t most = limits::kCommitBytesMax + own * 600;
  if (own_bytes > most) return core::limit_error("commit in bytes", own_bytes, most);
  if (commit.id) {
    prepared.id = in_domain(Domain::kCommitId, digest::hash128(key, *commit.id));
    prepared.content = content_of(key, commit);
  }
  return prepared;
}

}  // namespace hapax::engine
