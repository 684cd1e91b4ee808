// The operations as lists of named fields: the one description from which JSON, RESP and the
// OpenAPI document are made. A reader fills the operation, a schema only listens.
//
//   reader.required("stream", op.stream, "…");   positional in RESP, in this order
//   reader.optional("id", op.id, "…");           a key in RESP: ID value
//
// Units are in the names: _ms is milliseconds, _s is seconds (or "forever").
#pragma once

#include <array>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <tuple>
#include <variant>

#include <hapax/ops.h>
#include <hapax/verdicts.h>

#include "wire/allowed.h"

namespace hapax::wire {

// Any bytes; in JSON as text, or as `<name>_base64`, or as another JSON value, which is kept as it
// was sent.
struct Bytes {
  std::string_view& view;
};

// Any bytes that tell one thing from another: ids, keys, names of registers. In JSON as text, or as
// `<name>_base64`; never another JSON value, which two programs may write differently.
struct KeyBytes {
  std::string_view& view;
};
// The same where there may be none: the field is left out. One that is given and empty is refused
// by the store.
struct OptionalKeyBytes {
  std::optional<std::string_view>& view;
};
template <class Value>
inline constexpr bool kMayBeBase64 =
    std::is_same_v<Value, Bytes> || std::is_same_v<Value, KeyBytes> ||
    std::is_same_v<Value, OptionalKeyBytes>;

// A sequence and a token, "17-9f0c…": handed out as one word, given back as one word.
struct ReceiptText {
  Receipt& receipt;
};

template <class Enum>
struct Word {
  Enum value;
  std::string_view word;
};
template <class Enum>
Word(Enum, const char*) -> Word<Enum>;  // clang 14 deduces no aggregates

// The words of each enumeration, the same in every interface.
constexpr auto words_of(IdScope) {
  return std::array{Word{IdScope::kStream, "stream"}, Word{IdScope::kGroup, "group"}};
}
constexpr auto words_of(WindowStart) {
  return std::array{Word{WindowStart::kFirstSeen, "first_seen"},
                    Word{WindowStart::kLastSeen, "last_seen"}};
}
constexpr auto words_of(OnLapse) {
  return std::array{Word{OnLapse::kTakeOver, "take_over"}, Word{OnLapse::kUnknown, "unknown"}};
}
constexpr auto words_of(Former) {
  return std::array{Word{Former::kNone, "none"}, Word{Former::kFailed, "failed"},
                    Word{Former::kLapsed, "lapsed"}};
}
constexpr auto words_of(Outcome) {
  return std::array{Word{Outcome::kCompleted, "completed"}, Word{Outcome::kFailed, "failed"},
                    Word{Outcome::kUnknown, "unknown"}, Word{Outcome::kReleased, "released"}};
}
constexpr auto words_of(Resolution) {
  return std::array{Word{Resolution::kCompleted, "completed"},
                    Word{Resolution::kNotApplied, "not_applied"},
                    Word{Resolution::kRelease, "release"}};
}
constexpr auto words_of(LastAttempt) {
  return std::array{Word{LastAttempt::kDeadLetter, "dead_letter"},
                    Word{LastAttempt::kBlock, "block"}};
}
constexpr auto words_of(RedriveTo) {
  return std::array{Word{RedriveTo::kConsumer, "consumer"}, Word{RedriveTo::kAll, "all"}};
}
constexpr auto words_of(SetMode) {
  return std::array{Word{SetMode::kVersion, "version"}, Word{SetMode::kLastWriter, "last_writer"},
                    Word{SetMode::kAlways, "always"}, Word{SetMode::kAbsent, "absent"},
                    Word{SetMode::kPresent, "present"}};
}
constexpr auto words_of(ExpireIf) {
  return std::array{
      Word{ExpireIf::kAlways, "always"},   Word{ExpireIf::kNever, "never"},
      Word{ExpireIf::kSome, "some"},       Word{ExpireIf::kLater, "later"},
      Word{ExpireIf::kEarlier, "earlier"}, Word{ExpireIf::kSomeEarlier, "some_earlier"}};
}
constexpr auto words_of(Finish) {
  return std::array{Word{Finish::kCommit, "commit"}, Word{Finish::kAbort, "abort"}};
}
constexpr auto words_of(AttemptEnding) {
  return std::array{Word{AttemptEnding::kNacked, "nacked"},
                    Word{AttemptEnding::kLeaseRanOut, "lease_ran_out"}};
}
constexpr auto words_of(Mode) {
  return std::array{Word{Mode::kAtomic, "atomic"}, Word{Mode::kEach, "each"}};
}

// --- what holds between fields: those who read check it themselves, a schema only listens

using Names = std::initializer_list<std::string_view>;

template <class V>
void together(V& v, Names names) {
  if constexpr (requires { v.together(names); }) v.together(names);
}
template <class V>
void apart(V& v, Names names) {
  if constexpr (requires { v.apart(names); }) v.apart(names);
}
// `name` needs the key `other`, in either of its forms.
template <class V>
void needs_key(V& v, std::string_view name, std::string_view other) {
  if constexpr (requires { v.needs_key(name, other); }) v.needs_key(name, other);
}
template <class V>
void alone_if_true(V& v, std::string_view name, Names others) {
  if constexpr (requires { v.alone_if_true(name, others); }) v.alone_if_true(name, others);
}

// --- streams

template <class V>
void settings_fields(V& v, StreamSettings& settings) {
  v.optional("window_s", settings.window,
             About{"How long a message id is remembered", allowed::kWindow});
  v.optional("window_start", settings.window_start, "What the window counts from");
  v.optional("id_scope", settings.id_scope, "Where a message id must be unique");
  v.optional("content_ids", settings.content_ids,
             "SHA-256 of the payload is the id of a record without one");
  v.optional("track_groups", settings.track_groups, "Remember the last sequence of each group key");
  v.optional("retention_age_ms", settings.retention.age,
             About{"Records leave when they are older", allowed::kSome});
  v.optional("retention_bytes", settings.retention.bytes,
             About{"The oldest leave beyond this size", allowed::kSome});
  v.optional("retention_count", settings.retention.count,
             About{"The oldest leave beyond this number", allowed::kSome});
  v.optional("retention_acked_by_all", settings.retention.acked_by_all,
             "Records leave when every consumer has acked them");
  v.optional("record_bytes_max", settings.record_bytes_max,
             About{"Largest payload", allowed::kRecordBytes});
  v.optional("quota_bytes", settings.quota_bytes, "Of stored records; 0 = none");
  v.optional("producer_memory", settings.producer_memory,
             About{"Sequences remembered per producer", allowed::kProducerMemory});
  v.optional("producers_max", settings.producers_max,
             About{"Then a new producer is refused", allowed::kProducers});
}

template <class V>
void fields(V& v, CreateStream& op) {
  v.required("stream", op.stream, About{"Name of the stream", allowed::kNewName});
  settings_fields(v, op.settings);
}
template <class V>
void fields(V& v, ConfigureStream& op) {
  v.required("stream", op.stream, About{"Name of the stream", allowed::kKeptName});
  settings_fields(v, op.settings);
}
template <class V>
void fields(V& v, DeleteStream& op) {
  v.required("stream", op.stream, About{"Name of the stream", allowed::kNewName});
}
template <class V>
void fields(V& v, Trim& op) {
  v.required("stream", op.stream, About{"Name of the stream", allowed::kKeptName});
  v.required("before", op.before, "Records below this sequence are removed");
}

template <class V>
void producer_fields(V& v, std::optional<ProducerMark>& producer) {
  std::optional<std::string_view> name;
  std::optional<Epoch> epoch;
  std::optional<ProducerSequence> sequence;
  v.optional("producer", name, About{"Who counts its records", allowed::kNameBelow});
  v.optional("producer_epoch", epoch, About{"Incarnation of the producer", allowed::kEpoch});
  v.optional("producer_sequence", sequence, "Counted by the producer from 0");
  together(v, {"producer", "producer_epoch", "producer_sequence"});
  if (name.has_value() != epoch.has_value() || name.has_value() != sequence.has_value()) {
    v.refuse("producer", "producer, producer_epoch and producer_sequence come together");
  } else if (name) {
    producer = ProducerMark{*name, *epoch, *sequence};
  }
}

template <class V>
void fields(V& v, Append& op) {
  v.required("stream", op.stream, About{"Stream it is appended to", allowed::kNewName});
  v.required("payload", Bytes{op.payload}, About{"The record's content", allowed::kPayload});
  v.optional("id", OptionalKeyBytes{op.id},
             About{"Message id: the same one again is a duplicate", allowed::kKey});
  v.optional("group", OptionalKeyBytes{op.group},
             About{"Group key: order and one in flight are kept per group", allowed::kKey});
  v.optional("headers", op.headers, About{"Names and values", allowed::kHeaders});
  producer_fields(v, op.producer);
  std::optional<Sequence> last;
  std::optional<Sequence> last_of_group;
  v.optional("expect_last", last, "Append only if this is the stream's last sequence");
  v.optional("expect_last_of_group", last_of_group, "Append only if it is its group's last one");
  apart(v, {"expect_last", "expect_last_of_group"});
  needs_key(v, "expect_last_of_group", "group");
  if (last && last_of_group) {
    v.refuse("expect_last", "expect_last and expect_last_of_group exclude each other");
  }
  if (last) op.expect = ExpectLast{ExpectLast::Of::kStream, *last};
  if (last_of_group) op.expect = ExpectLast{ExpectLast::Of::kGroup, *last_of_group};
  v.optional("first_sent_ms", op.first_sent, "When it was first tried; refused before the horizon");
}
template <class V>
void fields(V& v, OpenProducer& op) {
  v.required("stream", op.stream, About{"Name of the stream", allowed::kNewName});
  v.required("producer", op.producer, About{"Who writes from now on", allowed::kNameBelow});
}
template <class V>
void fields(V& v, RetireProducer& op) {
  v.required("stream", op.stream, About{"Name of the stream", allowed::kNewName});
  v.required("producer", op.producer, About{"Who will not come back", allowed::kNameBelow});
  v.optional("actor", op.actor, About{"Who decided it", allowed::kActor});
  v.optional("reason", op.reason, About{"Why", allowed::kWhy});
}

// --- claims

template <class V, class ClaimOp>
void claim_key(V& v, ClaimOp& op) {
  v.required("scope", KeyBytes{op.scope}, About{"Namespace of the key", allowed::kName});
  v.required("key", KeyBytes{op.key}, About{"What is done once", allowed::kKey});
}
template <class V>
void result_fields(V& v, ResultView& result) {
  v.optional("status", result.status, "Status that duplicates are answered with");
  v.optional("result_headers", Bytes{result.headers},
             About{"Headers that duplicates get", allowed::kResult});
  v.optional("body", Bytes{result.body}, About{"Body that duplicates get", allowed::kResult});
}

template <class V>
void fields(V& v, Claim& op) {
  claim_key(v, op);
  v.optional("content", Bytes{op.content}, "The same key with other content is a conflict");
  v.optional("owner", op.owner, About{"Who works on it", allowed::kOwner});
  v.optional("lease_ms", op.lease, About{"Then somebody else may take over", allowed::kLease});
  v.optional("retention_s", op.retention, About{"How long the result is kept", allowed::kWindow});
  v.optional("tombstone_s", op.tombstone,
             About{"How long it is known that it happened", allowed::kWindow});
  v.optional("on_lapse", op.on_lapse, "What it means if the lease runs out before the settle");
}
template <class V>
void fields(V& v, Renew& op) {
  claim_key(v, op);
  v.required("fence", op.fence, "As the claim was given");
  v.optional("lease_ms", op.lease, About{"From now", allowed::kLease});
}
template <class V>
void fields(V& v, Settle& op) {
  claim_key(v, op);
  v.required("fence", op.fence, "As the claim was given");
  v.optional("outcome", op.outcome, "How it ended");
  result_fields(v, op.result);
  v.optional("reason", op.reason, About{"Of a failure or an unknown outcome", allowed::kReason});
}
template <class V>
void fields(V& v, Resolve& op) {
  claim_key(v, op);
  v.required("resolution", op.resolution, "What really happened");
  result_fields(v, op.result);
  v.optional("actor", op.actor, About{"Who decided it", allowed::kActor});
  v.optional("reason", op.reason, About{"Why", allowed::kWhy});
}
template <class V>
void fields(V& v, Forget& op) {
  claim_key(v, op);
  v.optional("actor", op.actor, About{"Who decided it", allowed::kActor});
  v.optional("reason", op.reason, About{"Why", allowed::kWhy});
}

// --- consumers

template <class V, class ConsumerOp>
void consumer_name(V& v, ConsumerOp& op) {
  v.required("stream", op.stream, About{"Name of the stream", allowed::kName});
  v.required("consumer", op.consumer, About{"Name of the consumer", allowed::kNameBelow});
}

template <class V>
void fields(V& v, CreateConsumer& op) {
  consumer_name(v, op);
  v.optional("attempts_max", op.settings.attempts_max,
             About{"Then the last-attempt policy applies", allowed::kAttempts});
  v.optional("last_attempt", op.settings.last_attempt, "What happens after the last attempt");
  v.optional("dead_letters", op.settings.dead_letters,
             About{"Stream of dead letters", allowed::kDeadLetters});
  v.optional("start", op.settings.start, "First record it is interested in");
  v.optional("in_flight_max", op.settings.in_flight_max,
             About{"Records handed out at once", allowed::kInFlight});
}
template <class V>
void fields(V& v, DeleteConsumer& op) {
  consumer_name(v, op);
}
template <class V>
void fields(V& v, Seek& op) {
  consumer_name(v, op);
  v.required("to", op.to, "It goes on from here");
}
template <class V>
void fields(V& v, Receive& op) {
  consumer_name(v, op);
  v.optional("max", op.max, About{"How many records at most", allowed::kReceive});
  v.optional("lease_ms", op.lease, About{"Then they are handed out again", allowed::kLease});
  v.optional("owner", op.owner, About{"Who works on them", allowed::kOwner});
}
template <class V>
void fields(V& v, Ack& op) {
  consumer_name(v, op);
  v.required("receipt", ReceiptText{op.receipt}, "As it was handed out");
}
template <class V>
void fields(V& v, Nack& op) {
  consumer_name(v, op);
  v.required("receipt", ReceiptText{op.receipt}, "As it was handed out");
  v.optional("delay_ms", op.delay, About{"Not again before that", allowed::kDelay});
  v.optional("reason", op.reason, About{"Why", allowed::kReason});
  v.optional("last", op.last, "No attempt follows: the last-attempt policy applies at once");
}
template <class V>
void fields(V& v, Extend& op) {
  consumer_name(v, op);
  v.required("receipt", ReceiptText{op.receipt}, "As it was handed out");
  v.optional("lease_ms", op.lease, About{"From now", allowed::kLease});
}
template <class V>
void fields(V& v, Redrive& op) {
  v.required("dead_letters", op.dead_letters, About{"Stream of dead letters", allowed::kName});
  v.required("sequence", op.sequence, "Which one");
  v.optional("to", op.to, "Who is handed it: the consumer that gave up, or all");
}

// --- positions, registers, transactions

template <class V>
void fields(V& v, Advance& op) {
  v.required("source", op.source, About{"Outside source", allowed::kName});
  v.required("to", Bytes{op.to}, About{"New position", allowed::kPosition});
  v.optional("expected", Bytes{op.expected},
             About{"Position it must have; none = none yet", allowed::kExpected});
  v.optional("epoch", op.epoch, "Of the owner; an older one is fenced");
}
// Neither given: it stays.
template <class V>
void expiry_fields(V& v, Expiry& expiry, std::int64_t after_least) {
  std::optional<Time> at;
  std::optional<Duration> after;
  v.optional("expires_at_ms", at, About{"When it goes by itself", allowed::kExpiry});
  v.optional("expires_in_ms", after,
             About{"The same, from now", allowed::kExpiry.from(after_least)});
  apart(v, {"expires_at_ms", "expires_in_ms"});
  if (at && after) v.refuse("expires_at_ms", "expires_at_ms and expires_in_ms exclude each other");
  if (at) expiry = Expiry{Expiry::Kind::kAt, *at, {}};
  if (after) expiry = Expiry{Expiry::Kind::kAfter, {}, *after};
}

template <class V>
void fields(V& v, Set& op) {
  v.required("name", KeyBytes{op.name}, About{"Name of the register", allowed::kRegister});
  v.required("value", Bytes{op.value}, About{"New value", allowed::kValue});
  v.optional("mode", op.mode, "Who wins");
  v.optional("expected", op.expected, "Version it must have; 0 = not set yet");
  std::optional<std::int64_t> wall_ms;
  std::optional<std::uint32_t> counter;
  std::optional<std::uint32_t> node;
  v.optional("at_ms", wall_ms, "Hybrid time of the writer: wall clock");
  v.optional("at_counter", counter, "Hybrid time: counter");
  v.optional("at_node", node, "Hybrid time: node");
  if (wall_ms) op.at = HybridTime{*wall_ms, counter.value_or(0), node.value_or(0)};
  expiry_fields(v, op.expiry, 1);
  bool keep = false;
  v.optional("keep_expiry", keep, "It goes when it would have gone");
  alone_if_true(v, "keep_expiry", {"expires_at_ms", "expires_in_ms"});
  if (keep && op.expiry != Expiry{}) {
    v.refuse("keep_expiry", "keep_expiry and another expiry exclude each other");
  }
  if (keep) op.expiry.kind = Expiry::Kind::kKeep;
  v.optional("tell_value", op.tell_value, "Of always, absent, present: tell the former value");
}
template <class V>
void fields(V& v, Get& op) {
  v.required("name", KeyBytes{op.name}, About{"Name of the register", allowed::kRegister});
  v.optional("tell_value", op.tell_value, "false: only whether it is there");
}
template <class V>
void fields(V& v, Unset& op) {
  v.required("name", KeyBytes{op.name}, About{"Name of the register", allowed::kRegister});
  v.optional("tell_value", op.tell_value, "Tell the former value");
}
template <class V>
void fields(V& v, Expire& op) {
  v.required("name", KeyBytes{op.name}, About{"Name of the register", allowed::kRegister});
  expiry_fields(v, op.expiry, -limits::kExpiryMax.count());
  v.optional("only_if", op.only_if, "By the expiry it has");
}
template <class V>
void fields(V& v, Add& op) {
  v.required("name", KeyBytes{op.name}, About{"Name of the register", allowed::kRegister});
  v.optional("by", op.by, "How much; may be below 0");
}
template <class V>
void fields(V& v, Begin& op) {
  v.required("transaction", op.transaction, About{"Stable name", allowed::kName});
  v.optional("timeout_ms", op.timeout, About{"Then it is aborted", allowed::kTimeout});
}
template <class V>
void fields(V& v, End& op) {
  v.required("transaction", op.transaction, About{"Stable name", allowed::kName});
  v.required("epoch", op.epoch, "As begin answered");
  v.required("finish", op.finish, "Commit or abort");
}

// --- names

template <class AnyOp>
struct Named {
  std::string_view name;
};

// Every operation with its name, in the order of the documentation.
inline constexpr std::tuple kOps{
    Named<Append>{"append"},
    Named<Claim>{"claim"},
    Named<Renew>{"renew"},
    Named<Settle>{"settle"},
    Named<Resolve>{"resolve"},
    Named<Forget>{"forget"},
    Named<Receive>{"receive"},
    Named<Ack>{"ack"},
    Named<Nack>{"nack"},
    Named<Extend>{"extend"},
    Named<Redrive>{"redrive"},
    Named<Advance>{"advance"},
    Named<Set>{"set"},
    Named<Get>{"get"},
    Named<Unset>{"unset"},
    Named<Expire>{"expire"},
    Named<Add>{"add"},
    Named<CreateStream>{"create_stream"},
    Named<ConfigureStream>{"configure_stream"},
    Named<DeleteStream>{"delete_stream"},
    Named<Trim>{"trim"},
    Named<OpenProducer>{"open_producer"},
    Named<RetireProducer>{"retire_producer"},
    Named<CreateConsumer>{"create_consumer"},
    Named<DeleteConsumer>{"delete_consumer"},
    Named<Seek>{"seek"},
    Named<Begin>{"begin"},
    Named<End>{"end"},
};
static_assert(std::tuple_size_v<decltype(kOps)> == std::variant_size_v<Op>);

// Calls act(Named<AnyOp>{}) for the operation of that name; false: there is none.
template <class Act>
bool with_op(std::string_view name, const Act& act) {
  return std::apply(
      [&](const auto&... named) {
        return ((named.name == name ? (act(named), true) : false) || ...);
      },
      kOps);
}

}  // namespace hapax::wire
