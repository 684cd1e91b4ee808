// Answers and staged operations as bytes.
#include <algorithm>

#include "base/filled.h"
#include "base/format.h"
#include "core/commit.h"
#include "core/fields.h"

namespace hapax::core {

// --- verdicts: the order of the variant is part of the format ----------------------------------

template <class Io, Is<Appended> F>
void fields(Io& io, F& f) {
  io.all(f.sequence);
}
template <class Io, Is<Duplicate> F>
void fields(Io& io, F& f) {
  io.all(f.sequence, f.first_seen, f.expires_at, f.forgotten_after);
}
template <class Io, Is<Conflict> F>
void fields(Io& io, F& f) {
  io.all(f.stored, f.received, f.first_seen);
}
template <class Io, Is<Fenced> F>
void fields(Io& io, F& f) {
  io.all(f.current, f.received);
}
template <class Io, Is<Gap> F>
void fields(Io& io, F& f) {
  io.all(f.expected, f.received);
}
template <class Io, Is<UnknownProducer> F>
void fields(Io& io, F& f) {
  io.all(f.epoch, f.received);
}
template <class Io, Is<TooOldToKnow> F>
void fields(Io& io, F& f) {
  io.all(f.horizon);
}
template <class Io, Is<ExpectationFailed> F>
void fields(Io& io, F& f) {
  io.all(f.actual, f.actual_position);
}
template <class Io, Is<Claimed> F>
void fields(Io& io, F& f) {
  io.all(f.fence, f.attempt, f.lease_until);
  io.since(2, f.former);
}
template <class Io, Is<DuplicateClaim> F>
void fields(Io& io, F& f) {
  io.all(f.fence, f.settled_at, f.expires_at);
}
template <class Io, Is<InProgress> F>
void fields(Io& io, F& f) {
  io.all(f.owner, f.lease_until, f.attempt);
}
template <class Io, Is<UnknownOutcome> F>
void fields(Io& io, F& f) {
  io.all(f.owner, f.reason, f.since);
}
template <class Io, Is<Delivery> F>
void fields(Io& io, F& f) {
  io.all(f.token, f.attempt, f.lease_until, f.record.sequence);
}
template <class Io, Is<Received> F>
void fields(Io& io, F& f) {
  io.all(f.deliveries);
}
template <class Io, Is<Stale> F>
void fields(Io& io, F& f) {
  io.all(f.owner, f.acked);
}
template <class Io, Is<Done> F>
void fields(Io&, F&) {}
template <class Io, Is<Renewed> F>
void fields(Io& io, F& f) {
  io.all(f.lease_until);
}
template <class Io, Is<Registered> F>
void fields(Io& io, F& f) {
  io.all(f.version, f.at);
}
template <class Io, Is<Superseded> F>
void fields(Io& io, F& f) {
  io.all(f.version, f.at);
}
template <class Io, Is<Held> F>
void fields(Io& io, F& f) {
  std::int64_t number = f.number.value_or(0);
  bool has_number = f.number.has_value();
  io.all(f.applied, f.value, f.version, f.expires_at, number);
  if constexpr (!std::is_const_v<F>) has_number = true;  // Version 1 always told one.
  io.since(2, has_number);
  if constexpr (!std::is_const_v<F>) f.number = has_number ? std::optional(number) : std::nullopt;
}
template <class Io, Is<Began> F>
void fields(Io& io, F& f) {
  io.all(f.epoch, f.expires_at);
}
template <class Io, Is<Opened> F>
void fields(Io& io, F& f) {
  io.all(f.epoch, f.former, f.former_next, f.former_last);
}
template <class Io, Is<Staged> F>
void fields(Io&, F&) {}
template <class Io, Is<NotApplied> F>
void fields(Io&, F&) {}
inline void fields(FieldWriter& io, const Refused& f) {
  io.all(static_cast<std::uint16_t>(f.error.code), f.error.detail);
}
inline void fields(FieldReader& io, Refused& f) {
  std::uint16_t code = 0;
  io.all(code, f.error.detail);
  f.error.code = Errc{code};
  if (!is_known(f.error.code)) io.refuse();
}

// The first byte has the flag `committed` and, above it, the version less one: version 1 had the
// flag alone.
void encode_answer(const Answer& answer, std::string& out) {
  constexpr auto kVersionBits = static_cast<char>((kFieldsVersion - 1) << 1);
  out.push_back(static_cast<char>(kVersionBits | (answer.committed ? 1 : 0)));
  FieldWriter{out}.all(answer.time, answer.verdicts);
}

Result<Answer> decode_answer(std::string_view bytes) {
  Answer answer;
  const std::uint8_t first = bytes.empty() ? 0xff : static_cast<std::uint8_t>(bytes.front());
  const std::uint64_t version = (first >> 1) + std::uint64_t{1};
  answer.committed = (first & 1) != 0;
  FieldReader get(bytes.substr(std::min<std::size_t>(1, bytes.size())), version);
  get.all(answer.time, answer.verdicts);
  if (version > kFieldsVersion || !get.finished()) {
    return Error{Errc::kCorruption, "a stored answer does not parse"};
  }
  return answer;
}

// --- staged operations -------------------------------------------------------------------------

using StagedOp = std::variant<Append, Settle, Ack, Advance, Set, Unset, Expire, Add>;

template <class Io, Is<Expiry> F>
void fields(Io& io, F& f) {
  io.all(f.kind, f.at, f.after);
}
template <class Io, Is<ExpectLast> F>
void fields(Io& io, F& f) {
  io.all(f.of, f.last);
}
template <class Io, Is<Receipt> F>
void fields(Io& io, F& f) {
  io.all(f.sequence, f.token);
}
template <class Io, Is<Append> F>
void fields(Io& io, F& f) {  // The headers stand before each operation: see StagedItem.
  std::string_view id = f.id.value_or("");
  std::string_view group = f.group.value_or("");
  io.all(f.stream, f.payload, id, group, f.producer, f.expect, f.first_sent);
  if constexpr (!std::is_const_v<F>) {
    f.id = base::if_filled(id);
    f.group = base::if_filled(group);
  }
}
template <class Io, Is<Settle> F>
void fields(Io& io, F& f) {
  io.all(f.scope, f.key, f.fence, f.outcome, f.result, f.reason);
}
template <class Io, Is<Ack> F>
void fields(Io& io, F& f) {
  io.all(f.stream, f.consumer, f.receipt);
}
template <class Io, Is<Advance> F>
void fields(Io& io, F& f) {
  io.all(f.source, f.expected, f.to, f.epoch);
}
template <class Io, Is<Set> F>
void fields(Io& io, F& f) {
  io.all(f.name, f.value, f.mode, f.expected, f.at, f.expiry);
}
template <class Io, Is<Unset> F>
void fields(Io& io, F& f) {
  io.all(f.name);
}
template <class Io, Is<Expire> F>
void fields(Io& io, F& f) {
  io.all(f.name, f.expiry, f.only_if);
}
template <class Io, Is<Add> F>
void fields(Io& io, F& f) {
  io.all(f.name, f.by);
}
template <class Io, Is<OpHashes> F>
void fields(Io& io, F& f) {
  io.all(f.key, f.content, f.group);
}

namespace {

struct StagedItem {
  std::vector<std::pair<std::string_view, std::string_view>> headers;
  OpHashes hashes;
  StagedOp op;
  StreamUid stream{0};
};

// Version 1 began with the number of operations, never 0 when any follow. Since version 2 a 0 and
// the version stand before it.
constexpr std::uint64_t kStagedHasVersion = 0;

FieldReader read_staged(std::string_view bytes) {
  FieldReader get(bytes, 1);
  if (bytes.size() < 2 || bytes.front() != static_cast<char>(kStagedHasVersion)) return get;
  std::uint64_t first = 0;
  std::uint64_t version = 0;
  get.all(first, version);
  if (version < 2 || version > kFieldsVersion) get.refuse();
  get.set_version(version);
  return get;
}

std::optional<StagedItem> to_staged(const Op& op, const OpHashes& hashes) {
  StagedItem item{{}, hashes, {}, {}};
  const bool allowed = std::visit(
      [&item](const auto& plain) {
        using Plain = std::decay_t<decltype(plain)>;
        if constexpr (std::is_constructible_v<StagedOp, Plain>) {
          item.op = plain;
          // The answers of a hundred thousand operations must fit into one batch.
          if constexpr (requires { plain.tell_value; }) return !plain.tell_value;
          return true;
        } else {
          return false;
        }
      },
      op);
  if (!allowed) return std::nullopt;
  if (const auto* append = std::get_if<Append>(&op)) {
    for (const Header& header : append->headers)
      item.headers.emplace_back(header.name, header.value);
  }
  return item;
}

}  // namespace

template <class Io, Is<StagedItem> F>
void fields(Io& io, F& f) {
  io.all(f.headers, f.hashes, f.op);
  io.since(2, f.stream);
}

std::optional<Error> encode_staged(std::span<const Op> ops, std::span<const OpHashes> hashes,
                                   std::span<const StreamUid> streams, std::string& out) {
  std::vector<StagedItem> items;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    std::optional<StagedItem> item = to_staged(ops[i], hashes[i]);
    if (!item) {
      return Error{Errc::kInvalidArgument,
                   base::format("operation {} cannot wait in a transaction; append, settle, ack, "
                                "advance, set, unset, expire and add can, if they ask for no value",
                                i)};
    }
    item->stream = streams[i];
    items.push_back(*std::move(item));
  }
  FieldWriter put(out);
  put.all(kStagedHasVersion, kFieldsVersion);
  put(items);
  return std::nullopt;
}

std::uint64_t staged_count(std::string_view bytes) {
  FieldReader get = read_staged(bytes);
  std::uint64_t count = 0;
  get(count);
  return count;
}

Result<StagedOps> decode_staged(std::string_view bytes) {
  std::vector<StagedItem> items;
  FieldReader get = read_staged(bytes);
  get(items);
  if (!get.finished()) return Error{Errc::kCorruption, "staged operations do not parse"};
  StagedOps staged;
  for (const StagedItem& item : items) {
    std::vector<Header>& headers = staged.headers.emplace_back();
    for (const auto& [name, value] : item.headers) headers.push_back({name, value});
    staged.hashes.push_back(item.hashes);
    staged.streams.push_back(item.stream);
    staged.ops.push_back(std::visit([](const auto& plain) { return Op{plain}; }, item.op));
    if (auto* append = std::get_if<Append>(&staged.ops.back())) append->headers = headers;
  }
  return staged;
}

}  // namespace hapax::core
