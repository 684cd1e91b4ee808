// The rules of streams: who may append what, and what a repeat is told.
#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/format.h"
#include "base/mutant.h"
#include "base/utf8.h"
#include "core/tenants.h"
#include "core/text_bytes.h"
#include "core/turn.h"

namespace hapax::core {

namespace {

using base::Mutant;
using base::mutant;

// --- producers -------------------------------------------------------------------------------

Verdict decide_stored(const Stream& stream, const Producer& producer, const ProducerMark& mark,
                      const Fingerprint& content, Time now) {
  const std::uint64_t back = producer.next.value - mark.sequence.value;  // 1 = the latest
  // P3: everything below `next` was stored; only where is remembered for a limited number.
  if (back > producer.stored.size()) return TooOldToKnow{stream.horizon(now)};
  const Producer::Stored& stored = producer.stored[producer.stored.size() - back];
  // P4: two writers under one name must not take each other's records for their own repeats.
  if (stored.fingerprint != content && !mutant(Mutant::kKeyOnlyDuplicate)) {
    return Conflict{stored.fingerprint, content, stored.time};
  }
  // No clock ends it: later records of the producer do.
  const std::uint64_t memory = stream.settings.producer_memory;
  return Duplicate{stored.at, stored.time, Time::max(), memory < back ? 1 : memory - back + 1};
}

// An epoch that the producer chose itself, above the known one. Those the store hands out have room
// above it, so a wrong choice never leaves a producer without a next epoch.
std::optional<Verdict> decide_new_epoch(const ProducerMark& mark) {
  if (mark.epoch.value > limits::kEpochMax) {
    return Refused{limit_error("epoch of producer '" + std::string(mark.name) + "'",
                               mark.epoch.value, limits::kEpochMax)};
  }
  if (mark.sequence == ProducerSequence{0}) return std::nullopt;
  return Gap{ProducerSequence{0}, mark.sequence};
}

// None: it is the expected one, to be stored.
std::optional<Verdict> decide_producer(const Stream& stream, const ProducerMark& mark,
                                       const Fingerprint& content, Time now) {
  const Producer* known = stream.find_producer(mark.name, now);
  const bool starts = mark.sequence == ProducerSequence{0};
  if (known == nullptr) {
    // P1: a producer nobody knows must start at 0: its earlier records may be stored and forgotten.
    if (starts) return decide_new_epoch(mark);
    return UnknownProducer{mark.epoch, mark.sequence};
  }
  const Producer& producer = *known;
  const bool too_old =
      producer.retired ? mark.epoch <= producer.epoch : mark.epoch < producer.epoch;
  if (too_old) return Fenced{producer.epoch.value, mark.epoch.value};
  if (mark.epoch > producer.epoch) return decide_new_epoch(mark);
  if (mark.sequence == producer.next) return std::nullopt;
  // P2: a hole means that something before it never arrived; storing past it would lose it.
  if (mark.sequence > producer.next) return Gap{producer.next, mark.sequence};
  return decide_stored(stream, producer, mark, content, now);
}

// --- append ----------------------------------------------------------------------------------

// A producer that is new, or comes back after it was retired, needs a place.
std::optional<Error> check_producers(const Stream& stream, std::string_view name, Time now) {
  if (stream.producers_active < stream.settings.producers_max) return std::nullopt;
  const Producer* known = stream.find_producer(name, now);
  if (known != nullptr && !known->retired) return std::nullopt;
  return Error{Errc::kLimitExceeded,
               base::format("stream '{}' knows {} producers, its budget; '{}' was refused. Retire "
                            "one that will not come back, or raise producers_max.",
                            stream.name, stream.producers_active, name)};
}

std::optional<Error> check_room(const State& state, const Stream& stream, const Append& op,
                                Time now) {
  if (op.payload.size() > stream.settings.record_bytes_max) {
    return limit_error("record of stream '" + stream.name + "'", op.payload.size(),
                       stream.settings.record_bytes_max);
  }
  const std::uint64_t more = op.id ? kIdBytes : 0;
  if (!is_the_stores(stream.name)) {
    if (auto full = check_memory(state, *stream.tenant, more)) return full;
  } else if (more != 0) {
    // A13: a line without an id takes no memory, and what frees some must be possible without any.
    if (auto full = check_budget(state, *stream.tenant, more)) return full;
  }
  return op.producer ? check_producers(stream, op.producer->name, now) : std::nullopt;
}

// Nothing is refused for what retention gives up anyway.
void make_room(Turn& turn, const Stream& stream, const Append& op) {
  constexpr std::uint64_t kFieldsMax = 256;  // what the fact adds to its texts, at most
  std::uint64_t bytes = op.payload.size() + kFieldsMax;
  bytes += op.id.value_or("").size() + op.group.value_or("").size();
  for (const Header& header : op.headers) bytes += header.name.size() + header.value.size() + 10;
  if (op.producer) bytes += op.producer->name.size();
  const std::uint64_t quota = stream.settings.quota_bytes;
  const std::uint64_t beyond = is_the_stores(stream.name) ? turn.reserve() : 0;
  const auto enough = [&] {
    const bool in_quota = quota == 0 || stream.bytes + bytes <= quota;
    return in_quota && may_store(*stream.tenant, bytes + kIdBytes, beyond);
  };
  if (!enough()) free_storage(turn, *stream.tenant, &stream, enough);
}

// Counted as it is stored, with id, group key, headers and what the journal adds.
std::optional<Error> check_quota(const Stream& stream, const RecordAppended& fact) {
  const std::uint64_t quota = stream.settings.quota_bytes;
  if (quota == 0) return std::nullopt;
  std::string encoded;
  encode(fact, encoded);
  constexpr std::size_t kLengthMax = 5;
  const std::uint64_t more = encoded.size() + kFactTrailer + kLengthMax;
  if (stream.bytes + more <= quota) return std::nullopt;
  return Error{Errc::kQuotaExceeded,
               base::format("stream '{}' holds {} of {} bytes, and the record takes {}; nothing "
                            "was stored. Trim it, raise quota_bytes, or set a retention.",
                            stream.name, stream.bytes, quota, more)};
}

std::optional<Verdict> check_expectation(const Stream& stream, const Append& op,
                                         const AppendHashes& hashes, Time now) {
  if (!op.expect) return std::nullopt;
  Sequence actual = stream.last;
  if (op.expect->of == ExpectLast::Of::kGroup) {
    if (!stream.settings.track_groups) {
      return Refused{{Errc::kInvalidArgument,
                      "stream '" + stream.name +
                          "' does not track group keys; set track_groups to expect one"}};
    }
    actual = stream.last_of_group(hashes.group, now);
  }
  if (actual == op.expect->last) return std::nullopt;
  return ExpectationFailed{actual, {}};
}

// D6: a repeat moves the end to a window from now, at least, and to an eighth of it more, at most.
// That eighth is why most repeats renew nothing: each renewal is an entry of its own, and an id has
// about ten of them at most, however often it repeats. None: the end is far enough.
std::optional<Window> renewed_window(const Stream& stream, const IdEntry& known, Time now) {
  const Window wanted = stream.settings.window;
  const bool renews =
      stream.settings.window_start == WindowStart::kLastSeen || mutant(Mutant::kWindowRefreshed);
  if (!renews || known.expires_at() >= wanted.end(now)) return std::nullopt;
  if (wanted.is_forever()) return wanted;
  const auto since = std::chrono::ceil<std::chrono::seconds>(now - known.first_seen());
  return Window{since + std::chrono::seconds{wanted.raw() + wanted.raw() / 8}};
}

Verdict answer_known_id(Turn& turn, const Stream& stream, const IdEntry& known,
                        const AppendHashes& hashes, const Append& op, base::Hash128 id) {
  if (known.fingerprint() != hashes.content && !mutant(Mutant::kKeyOnlyDuplicate)) {
    return Conflict{known.fingerprint(), hashes.content, known.first_seen()};
  }
  Duplicate duplicate{known.sequence(), known.first_seen(), known.expires_at()};
  const auto renewed = renewed_window(stream, known, turn.now());
  // Not renewed, it would be forgotten earlier than the stream promises.
  if (auto error = renewed ? check_memory(turn.state(), *stream.tenant, 0) : std::nullopt) {
    return Refused{*std::move(error)};
  }
  if (op.producer) {
    if (auto error = check_producers(stream, op.producer->name, turn.now())) {
      return Refused{*std::move(error)};
    }
    turn.emit(ProducerNoted{stream.uid, *op.producer, known.sequence(), hashes.content,
                            known.first_seen()});
  }
  if (renewed) {
    turn.emit(IdRenewed{stream.uid, id, *renewed});
    duplicate.expires_at = renewed->end(duplicate.first_seen);
  }
  return duplicate;
}

Verdict store_record(Turn& turn, Stream& stream, const Append& op, const AppendHashes& hashes,
                     base::Hash128 id) {
  std::string headers;
  if (!op.headers.empty()) encode_headers(op.headers, headers);
  RecordAppended fact;
  fact.stream = stream.uid;
  fact.sequence = stream.last.next();
  fact.id_hash = id;
  fact.fingerprint = hashes.content;
  fact.window = stream.settings.window;
  fact.group_hash = hashes.group;
  fact.id = op.id.value_or("");
  fact.group = op.group.value_or("");
  fact.headers = headers;
  fact.producer = op.producer;
  fact.payload = op.payload;
  if (auto error = check_quota(stream, fact)) return Refused{*std::move(error)};
  const std::uint64_t bytes =
      op.payload.size() + fact.id.size() + fact.group.size() + headers.size();
  const std::uint64_t beyond = is_the_stores(stream.name) ? turn.reserve() : 0;
  if (auto error = check_storage(*stream.tenant, bytes, beyond)) return Refused{*std::move(error)};
  turn.emit(fact);
  return Appended{fact.sequence};
}

// Retention by count and bytes keeps up with the appends, in steps, so that it costs little.
void keep_retention(Turn& turn, const Stream& stream) {
  const Retention& retention = stream.settings.retention;
  if (!retention.count && !retention.bytes) return;
  const std::uint64_t kept = stream.last.value + 1 - stream.first.value;
  const bool too_many = retention.count && kept >= *retention.count + kRunRecordsMax;
  const bool too_big = retention.bytes && stream.bytes > *retention.bytes;
  if (!too_many && !too_big) return;
  if (const auto target = retention_target(turn.state(), stream, turn.now())) {
    turn.emit(trimmed(stream, *target, turn.now()));
  }
}

// Mutants only: why others forgot ids that they had.
bool forgets(const Stream& stream, const IdEntry& known, const Append& op) {
  if (mutant(Mutant::kIdsDieWithRecords) && !stream.keeps(known.sequence())) return true;
  const bool starts_over = op.producer && op.producer->sequence == ProducerSequence{0};
  return mutant(Mutant::kEpochIsIdentity) && starts_over;
}

Verdict run_append(Turn& turn, Stream& stream, const Append& op, const AppendHashes& hashes) {
  if (op.producer) {
    if (auto told = decide_producer(stream, *op.producer, hashes.content, turn.now())) {
      if (std::holds_alternative<Fenced>(*told)) turn.count_fenced();
      return *std::move(told);
    }
  }
  base::Hash128 id;
  if (op.id) {
    id = scoped_id(stream, hashes);
    const IdEntry* known = turn.state().ids.find(id, turn.now());
    if (known != nullptr && !forgets(stream, *known, op)) {
      return answer_known_id(turn, stream, *known, hashes, op, id);
    }
    const Time horizon = stream.horizon(turn.now());
    // W6: the caller's time is one of the wall clock.
    if (op.first_sent && turn.moment().log_at(*op.first_sent) < horizon) {
      return TooOldToKnow{horizon};
    }
  }
  // Repeats are answered before room and expectations are looked at: a retry of what succeeded
  // must not be told that it failed.
  if (auto refusal = check_expectation(stream, op, hashes, turn.now())) {
    return *std::move(refusal);
  }
  make_room(turn, stream, op);
  if (auto error = check_room(turn.state(), stream, op, turn.now())) {
    return Refused{*std::move(error)};
  }
  Verdict verdict = store_record(turn, stream, op, hashes, id);
  if (std::holds_alternative<Appended>(verdict)) keep_retention(turn, stream);
  return verdict;
}

std::optional<Error> check_number(const State& state, Tenant& tenant) {
  const std::uint64_t all = state.stream_names.size();
  if (may_have_one_more(tenant.share.streams_max, tenant.streams, all, limits::kStreamsMax)) {
    return std::nullopt;
  }
  if (all >= limits::kStreamsMax) {
    return limit_error("number of streams", limits::kStreamsMax + 1, limits::kStreamsMax);
  }
  ++tenant.refused;
  return Error{Errc::kLimitExceeded, base::format("this tenant has {} streams, as many as it may "
                                                  "(streams_max); delete one, or ask for more",
                                                  tenant.streams)};
}

// Settings whose change would forget something silently.
std::optional<Error> check_change(const Stream& stream, const StreamSettings& wanted) {
  const bool empty = stream.last == Sequence{0};
  if (wanted.id_scope != stream.settings.id_scope && !empty) {
    return Error{Errc::kPreconditionFailed,
                 "the id scope of stream '" + stream.name +
                     "' cannot change: its ids would no longer be recognised. Use a new stream."};
  }
  if (wanted.track_groups && !stream.settings.track_groups && !empty) {
    return Error{Errc::kPreconditionFailed,
                 "stream '" + stream.name +
                     "' has records whose group keys were not tracked; track_groups can be set "
                     "only while it is empty"};
  }
  return std::nullopt;
}

// UTF-8 stays as it is; a byte that is none is shown as the character of its number.
std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    const auto byte = static_cast<unsigned char>(c);
    if (const std::size_t length = base::utf8_size(text.substr(at)); length > 1) {
      out += text.substr(at, length);
      at += length - 1;
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte >= 0x7f) {
      char escaped[7];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", byte);
      out += escaped;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

}  // namespace

base::Hash128 scoped_id(const Stream& stream, const AppendHashes& hashes) {
  base::Hash128 hash = hashes.id.plus(base::spread(stream.uid.value));
  if (stream.settings.id_scope == IdScope::kGroup) hash = hash.plus(base::spread(hashes.group));
  return hash == base::Hash128{} ? base::Hash128{0, 1} : hash;  // Zero means "no id" in a fact.
}

Verdict run(Turn& turn, const CreateStream& op) {
  if (const Stream* stream = turn.state().find_stream(op.stream)) {
    if (stream->settings == op.settings) return Done{};
    return Refused{{Errc::kAlreadyExists, "stream '" + stream->name +
                                              "' exists with other settings; to change them use "
                                              "configure"}};
  }
  Tenant& tenant = turn.state().tenants.of(op.stream);
  if (auto error = is_the_stores(op.stream) ? std::nullopt : check_number(turn.state(), tenant)) {
    return Refused{*std::move(error)};
  }
  // A13: a tenant that has no memory left must not escape its audit.
  const std::uint64_t more = kStreamBytes + op.stream.size();
  auto full = is_the_stores(op.stream) ? check_budget(turn.state(), tenant, more)
                                       : check_memory(turn.state(), tenant, more);
  if (full) return Refused{*std::move(full)};
  turn.emit(StreamMade{StreamUid{turn.state().streams.size() + 1}, op.stream, op.settings});
  return Done{};
}

Stream& ensure_stream(Turn& turn, std::string_view name) {
  if (Stream* stream = turn.state().find_stream(name)) return *stream;
  const StreamUid uid{turn.state().streams.size() + 1};
  turn.emit(StreamMade{uid, name, StreamSettings{}});
  return turn.state().stream(uid);
}

Verdict run(Turn& turn, const ConfigureStream& op) {
  const Stream* stream = turn.state().find_stream(op.stream);
  if (stream == nullptr) return Refused{no_stream(op.stream)};
  if (stream->settings == op.settings) return Done{};
  if (auto error = check_change(*stream, op.settings)) return Refused{*std::move(error)};
  turn.emit(StreamConfigured{stream->uid, op.settings});
  return Done{};
}

Verdict run(Turn& turn, const DeleteStream& op) {
  const Stream* stream = turn.state().find_stream(op.stream);
  if (stream == nullptr) return Refused{no_stream(op.stream)};
  const auto consumers = stream->consumers;
  for (const auto& [name, uid] : consumers) turn.emit(ConsumerGone{uid});
  turn.emit(StreamGone{stream->uid});
  return Done{};
}

// D7: trims of one slice of the window end together, so that a stream has few of these ends.
RecordsTrimmed trimmed(const Stream& stream, Sequence before, Time now) {
  constexpr std::int64_t kSlices = 16;
  constexpr std::int64_t kSliceMsMin = 1'000;
  const Window window = stream.settings.window;
  if (!stream.has_groups || window.is_forever()) return {stream.uid, before};
  const std::int64_t slice = std::max(kSliceMsMin, std::int64_t{window.raw()} * 1'000 / kSlices);
  const std::int64_t latest = to_ms(window.end(now)) + slice - 1;
  return {stream.uid, before, time_from_ms(latest - latest % slice)};
}

Verdict run(Turn& turn, const Trim& op) {
  const Stream* stream = turn.state().find_stream(op.stream);
  if (stream == nullptr) return Refused{no_stream(op.stream)};
  const Sequence before = std::min(op.before, stream->last.next());
  if (before > stream->first) turn.emit(trimmed(*stream, before, turn.now()));
  return Done{};
}

Verdict run(Turn& turn, const RetireProducer& op) {
  const Stream* stream = turn.state().find_stream(op.stream);
  if (stream == nullptr) return Refused{no_stream(op.stream)};
  const Producer* known = stream->find_producer(op.producer, turn.now());
  if (known == nullptr) {
    return Refused{{Errc::kNotFound, "stream '" + stream->name + "' has no producer '" +
                                         std::string(op.producer) + "'"}};
  }
  if (!known->retired) {
    turn.emit(ProducerRetired{stream->uid, op.producer, stream->settings.window.end(turn.now())});
    const std::string subject = stream->name + "/" + std::string(op.producer);
    if (auto error = audit(turn, "retire-producer", subject, op.actor, op.reason)) {
      return Refused{*std::move(error)};
    }
  }
  return Done{};
}

// P5: a writer that opens its name fences all who wrote under it before, whether they noticed or
// not, and hears how far they came: what is not stored by then never will be.
Verdict run(Turn& turn, const OpenProducer& op) {
  const Stream* stream = turn.state().find_stream(op.stream);
  if (stream == nullptr) return Refused{no_stream(op.stream)};
  if (auto error = check_producers(*stream, op.producer, turn.now())) {
    return Refused{*std::move(error)};
  }
  const Producer* found = stream->find_producer(op.producer, turn.now());
  const std::uint64_t more = found != nullptr ? 0 : kProducerBytes + op.producer.size();
  if (auto error = check_growth(turn.state(), *stream->tenant, 0, more)) {
    return Refused{*std::move(error)};
  }
  const Producer known = found != nullptr ? *found : Producer{};
  // Epochs of the store's own counter are never given out twice, not even after a repair.
  const Epoch epoch = std::max(turn.state().next_epoch, known.epoch.next());
  const Producer::Former former = known.before();
  if (!mutant(Mutant::kOpenedNotRaised)) {
    turn.emit(ProducerRaised{stream->uid, op.producer, epoch});
  }
  return Opened{epoch, former.epoch, former.next, former.last};
}

Verdict run(Turn& turn, const Append& op, const AppendHashes& hashes) {
  Stream* stream = turn.state().find_stream(op.stream);
  if (stream == nullptr) return Refused{no_stream(op.stream)};
  if (op.id || !stream->settings.content_ids) return run_append(turn, *stream, op, hashes);
  const ContentId content = turn.content_id(op.payload);
  Append named = op;
  named.id = content.id;
  return run_append(turn, *stream, named, {content.hash, hashes.content, hashes.group});
}

std::optional<Error> audit(Turn& turn, std::string_view act, std::string_view subject,
                           std::string_view actor, std::string_view reason) {
  if (has_tenant(subject)) return std::nullopt;
  std::string line = "{\"act\":" + json_text(act);
  line += ",\"subject\":" + json_text(subject);
  line += ",\"actor\":" + json_text(actor);
  line += ",\"reason\":" + json_text(reason) + "}";
  Tenant& tenant = turn.state().tenants.of(kAuditStream);
  if (auto full = check_storage(tenant, line.size(), turn.reserve())) return full;
  const Stream& stream = ensure_stream(turn, kAuditStream);
  RecordAppended fact;
  fact.stream = stream.uid;
  fact.sequence = stream.last.next();
  fact.payload = line;
  turn.emit(fact);
  return std::nullopt;
}

Result<Sequence> copy_record(Turn& turn, const Stream& from, Sequence sequence, Stream& to,
                             const Lineage& lineage, base::Hash128 remembered_as) {
  HAPAX_TRY(const std::string bytes, turn.read_record(from, sequence));
  HAPAX_TRY(const Fact source, decode_fact(bytes));
  const auto* original = std::get_if<RecordAppended>(&source);
  HAPAX_ASSERT(original != nullptr, "a record's place holds a record");
  RecordAppended copy = *original;
  copy.stream = to.uid;
  copy.sequence = to.last.next();
  // D5: a copy is not a new acceptance of its id, and no repeat of it either.
  copy.id_hash = remembered_as;
  copy.window = to.settings.window;
  copy.producer.reset();
  copy.lineage = lineage;
  turn.emit(copy);
  return copy.sequence;
}

}  // namespace hapax::core
