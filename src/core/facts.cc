#include "core/facts.h"

#include <array>
#include <utility>

#include "base/encoding.h"
#include "base/format.h"
#include "core/fields.h"

namespace hapax::core {

namespace {

// Which lineage follows. Since format 2 that of a redriven record says to whom; before, its
// consumer was empty and it was everybody's.
enum class LineageKind : std::uint8_t { kNone, kPlain, kToConsumer, kToAll };

}  // namespace

template <>
inline constexpr std::uint8_t kEnumMax<LineageKind> = 3;

namespace {

void lineage_field(FieldWriter& put, const std::optional<Lineage>& lineage) {
  LineageKind kind = lineage ? LineageKind::kPlain : LineageKind::kNone;
  if (lineage && lineage->to) {
    kind = lineage->is_for_one() ? LineageKind::kToConsumer : LineageKind::kToAll;
  }
  put(kind);
  if (lineage) put(*lineage);
}

void lineage_field(FieldReader& get, std::optional<Lineage>& lineage) {
  LineageKind kind{};
  get(kind);
  if (kind == LineageKind::kNone) return;
  get(lineage.emplace());
  if (kind == LineageKind::kPlain) return;
  lineage->to = kind == LineageKind::kToConsumer ? RedriveTo::kConsumer : RedriveTo::kAll;
  if (lineage->consumer.empty()) get.refuse();
}

}  // namespace

// F is const when writing.
template <class Io, Is<StreamMade> F>
void fields(Io& io, F& f) {
  io.all(f.stream, f.name, f.settings);
}
template <class Io, Is<StreamConfigured> F>
void fields(Io& io, F& f) {
  io.all(f.stream, f.settings);
}
template <class Io, Is<StreamGone> F>
void fields(Io& io, F& f) {
  io.all(f.stream);
}
template <class Io, Is<RecordAppended> F>
void fields(Io& io, F& f) {
  io.all(f.stream, f.sequence, f.id_hash, f.fingerprint, f.window, f.group_hash, f.id, f.group,
         f.headers, f.producer);
  lineage_field(io, f.lineage);
  io.last(f.payload);
}
template <class Io, Is<IdRenewed> F>
void fields(Io& io, F& f) {
  io.all(f.stream, f.id_hash, f.window);
}
template <class Io, Is<RecordsTrimmed> F>
void fields(Io& io, F& f) {
  io.all(f.stream, f.before);
  io.since(2, f.groups_end);
}
template <class Io, Is<RunMoved> F>
void fields(Io& io, F& f) {
  io.all(f.stream, f.first, f.count);
  io.last(f.frames);
}
template <class Io, Is<ProducerRetired> F>
void fields(Io& io, F& f) {
  io.all(f.stream, f.producer);
  io.since(2, f.forgotten_at);
}
template <class Io, Is<ClaimOpened> F>
void fields(Io& io, F& f) {
  io.all(f.hash, f.scope, f.key, f.fingerprint, f.owner, f.fence, f.lease_until, f.attempt,
         f.retention, f.tombstone);
  io.since(2, f.on_lapse);
}
template <class Io, Is<ClaimRenewed> F>
void fields(Io& io, F& f) {
  io.all(f.hash, f.lease_until);
}
template <class Io, Is<ClaimSettled> F>
void fields(Io& io, F& f) {
  io.all(f.hash, f.fence, f.outcome, f.reason, f.result);
  io.since(2, f.owner);
}
template <class Io, Is<ClaimForgotten> F>
void fields(Io& io, F& f) {
  io.all(f.hash, f.fence);
}
template <class Io, Is<CommitAnswered> F>
void fields(Io& io, F& f) {
  io.all(f.hash, f.fingerprint, f.fence, f.window, f.answer);
}
template <class Io, Is<ResultMoved> F>
void fields(Io& io, F& f) {
  io.all(f.hash);
  io.last(f.frame);
}
template <class Io, Is<ConsumerMade> F>
void fields(Io& io, F& f) {
  io.all(f.stream, f.consumer, f.name, f.settings);
}
template <class Io, Is<ConsumerGone> F>
void fields(Io& io, F& f) {
  io.all(f.consumer);
}
template <class Io, Is<Sought> F>
void fields(Io& io, F& f) {
  io.all(f.consumer, f.to);
}
template <class Io, Is<HandedOut> F>
void fields(Io& io, F& f) {
  io.all(f.consumer, f.owner, f.lease_until, f.first_token, f.next, f.sequences);
}
template <class Io, Is<Acked> F>
void fields(Io& io, F& f) {
  io.all(f.consumer, f.sequence, f.gave_up);
}
template <class Io, Is<Returned> F>
void fields(Io& io, F& f) {
  io.all(f.consumer, f.sequence, f.ready_at, f.reason);
}
template <class Io, Is<LeaseExtended> F>
void fields(Io& io, F& f) {
  io.all(f.consumer, f.sequence, f.lease_until);
}
template <class Io, Is<Blocked> F>
void fields(Io& io, F& f) {
  io.all(f.consumer, f.sequence);
}
template <class Io, Is<PositionMoved> F>
void fields(Io& io, F& f) {
  io.all(f.source, f.value, f.epoch);
}
template <class Io, Is<RegisterSet> F>
void fields(Io& io, F& f) {
  io.all(f.hash, f.name, f.value, f.version, f.at, f.expires_at);
}
template <class Io, Is<TransactionBegun> F>
void fields(Io& io, F& f) {
  io.all(f.name, f.epoch, f.expires_at);
}
template <class Io, Is<TransactionStaged> F>
void fields(Io& io, F& f) {
  io.all(f.name, f.ops);
}
template <class Io, Is<TransactionEnded> F>
void fields(Io& io, F& f) {
  io.all(f.name, f.committed);
}
template <class Io, Is<JournalGap> F>
void fields(Io& io, F& f) {
  io.all(f.first_lsn, f.last_lsn);
}

template <class Io, Is<ProducerNoted> F>
void fields(Io& io, F& f) {
  io.all(f.stream, f.producer, f.sequence, f.fingerprint, f.first_seen);
}
template <class Io, Is<RecordRemoved> F>
void fields(Io& io, F& f) {
  io.all(f.stream, f.sequence);
}
template <class Io, Is<ProducerRaised> F>
void fields(Io& io, F& f) {
  io.all(f.stream, f.producer, f.epoch);
}
template <class Io, Is<RecordsLost> F>
void fields(Io& io, F& f) {
  io.all(f.stream, f.sequences);
}
template <class Io, Is<ResultLost> F>
void fields(Io& io, F& f) {
  io.all(f.hash);
}
template <class Io, Is<RegisterExpires> F>
void fields(Io& io, F& f) {
  io.all(f.hash, f.expires_at);
}
template <class Io, Is<RegisterGone> F>
void fields(Io& io, F& f) {
  io.all(f.hash);
}
template <class Io, Is<TimeNoted> F>
void fields(Io& /*io*/, F& /*f*/) {}
template <class Io, Is<ClaimLapsed> F>
void fields(Io& io, F& f) {
  io.all(f.hash);
}

namespace {

template <std::size_t kKind>
std::optional<Fact> decode_kind(std::string_view body) {
  Fact fact{std::in_place_index<kKind>};
  FieldReader get = FieldReader::of_fact(body);
  get(std::get<kKind>(fact));
  if (!get.finished()) return std::nullopt;
  return fact;
}

using DecodeKind = std::optional<Fact> (*)(std::string_view);

template <std::size_t... kKinds>
constexpr auto decoders(std::index_sequence<kKinds...>) {
  return std::array<DecodeKind, sizeof...(kKinds)>{decode_kind<kKinds>...};
}

constexpr auto kDecoders = decoders(std::make_index_sequence<std::variant_size_v<Fact>>{});

}  // namespace

void encode(const Fact& fact, std::string& out) {
  out.push_back(static_cast<char>(fact.index() + 1));
  FieldWriter put(out);
  std::visit([&put](const auto& plain) { put(plain); }, fact);
}

Result<Fact> decode_fact(std::string_view bytes) {
  const std::size_t kind = bytes.empty() ? 0 : static_cast<std::uint8_t>(bytes.front());
  if (kind == 0 || kind > kDecoders.size()) {
    return Error{Errc::kCorruption, base::format("fact of unknown kind {}", kind)};
  }
  std::optional<Fact> fact = kDecoders[kind - 1](bytes.substr(1));
  if (!fact) {
    return Error{Errc::kCorruption,
                 base::format("fact of kind {} with {} bytes does not parse", kind, bytes.size())};
  }
  return *std::move(fact);
}

void encode_headers(std::span<const Header> headers, std::string& out) {
  base::Encoder encoder(out);
  for (const Header& header : headers) {
    encoder.bytes(header.name);
    encoder.bytes(header.value);
  }
}

Result<std::vector<std::pair<std::string, std::string>>> decode_headers(std::string_view bytes) {
  std::vector<std::pair<std::string, std::string>> headers;
  base::Decoder decoder(bytes);
  while (decoder.ok() && decoder.left() > 0) {
    const std::string_view name = decoder.bytes();
    const std::string_view value = decoder.bytes();
    headers.emplace_back(name, value);
  }
  if (!decoder.ok()) return Error{Errc::kCorruption, "the headers of a record do not parse"};
  return headers;
}

}  // namespace hapax::core
