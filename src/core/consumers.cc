// The rules of consumers as such: making, removing and moving them, and giving a record up.
#include "core/consumers.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "core/consumer_rules.h"
#include "core/tenants.h"
#include "core/text_bytes.h"

namespace hapax::core {

namespace {

constexpr std::string_view kDeadSuffix = ".dead";

bool same(const OwnedConsumerSettings& owned, const ConsumerSettings& given) {
  return owned.attempts_max == given.attempts_max && owned.last_attempt == given.last_attempt &&
         owned.dead_letters == given.dead_letters && owned.start == given.start &&
         owned.in_flight_max == given.in_flight_max;
}

std::string dead_letters_of(const Stream& stream, std::string_view given) {
  return given.empty() ? stream.name + std::string(kDeadSuffix) : std::string(given);
}

// Beyond the end it would swallow records that are not even written.
std::optional<Error> check_target(const Stream& stream, std::string_view consumer, Sequence to) {
  if (to <= stream.last.next()) return std::nullopt;
  return Error{Errc::kInvalidArgument,
               base::format("consumer '{}' cannot go to {}: the last record of stream '{}' is {}",
                            consumer, to.value, stream.name, stream.last.value)};
}

std::optional<Error> check_new(const Stream& stream, std::string_view name,
                               const ConsumerSettings& settings) {
  if (stream.consumers.size() >= limits::kConsumersPerStreamMax) {
    return limit_error("number of consumers of stream '" + stream.name + "'",
                       stream.consumers.size() + 1, limits::kConsumersPerStreamMax);
  }
  if (auto error = check_target(stream, name, settings.start)) return error;
  if (settings.last_attempt != LastAttempt::kDeadLetter) return std::nullopt;
  const std::string dead_letters = dead_letters_of(stream, settings.dead_letters);
  if (dead_letters == stream.name) {
    return Error{Errc::kInvalidArgument, "consumer '" + std::string(name) +
                                             "' would put the dead letters of stream '" +
                                             stream.name + "' into that stream; name another one"};
  }
  const std::size_t size = local_name(dead_letters).size();
  if (size > limits::kNameBytesMax) {
    return limit_error("name of the dead letters '" + dead_letters +
                           "' (give the consumer a shorter one as dead_letters)",
                       size, limits::kNameBytesMax);
  }
  return std::nullopt;
}

// What failed before a redrive stays in front.
void add_history(Lineage& lineage, const Pending& pending, PastAttempt last) {
  const auto add = [&lineage](PastAttempt attempt) {
    attempt.redrives = lineage.redrives;
    add_attempt(lineage.history, std::move(attempt));
  };
  if (pending.past != nullptr) {
    for (const PastAttempt& attempt : *pending.past) add(attempt);
  }
  add(std::move(last));
}

// C9: what is for others counts as acked as soon as it is appended. `at` is the first record that
// is not acked.
Sequence floor_past_others(const Stream& stream, const Consumer& consumer, Sequence at) {
  while (at >= consumer.next && at <= stream.last && !stream.is_for(consumer.name, at)) {
    at = at.next();
  }
  return Sequence{at.value - 1};
}

// As Consumer::floor(), with what was trimmed since the consumer last looked.
Sequence floor_within(const Stream& stream, const Consumer& consumer) {
  const Sequence kept = std::max(consumer.floor().next(), stream.first);
  return floor_past_others(stream, consumer, consumer.acked.first_missing(kept));
}

}  // namespace

Result<Lineage> first_lineage(Turn& turn, const Stream& stream, Sequence sequence) {
  HAPAX_TRY(const std::string bytes, turn.read_record(stream, sequence));
  HAPAX_TRY(Fact fact, decode_fact(bytes));
  auto* const record = std::get_if<RecordAppended>(&fact);
  if (record == nullptr) {
    return Error{Errc::kCorruption, base::format("record {} of stream '{}' is another fact",
                                                 sequence.value, stream.name)};
  }
  if (record->lineage) return *std::move(record->lineage);
  Lineage lineage;
  lineage.stream = stream.name;
  lineage.sequence = sequence;
  return lineage;
}

Result<Consumer*> make_consumer(Turn& turn, const Stream& stream, std::string_view name,
                                const ConsumerSettings& settings) {
  if (auto error = check_new(stream, name, settings)) return *std::move(error);
  const std::uint64_t more = kConsumerBytes + name.size() + settings.dead_letters.size();
  if (auto error = check_memory(turn.state(), *stream.tenant, more)) return *std::move(error);
  turn.emit(ConsumerMade{stream.uid, turn.state().next_consumer, name, settings});
  return turn.state().find_consumer(stream, name);
}

Verdict run(Turn& turn, const CreateConsumer& op) {
  const Stream* stream = turn.state().find_stream(op.stream);
  if (stream == nullptr) return Refused{no_stream(op.stream)};
  if (const Consumer* known = turn.state().find_consumer(*stream, op.consumer)) {
    if (same(known->settings, op.settings)) return Done{};
    return Refused{{Errc::kAlreadyExists,
                    "consumer '" + known->name + "' of stream '" + stream->name +
                        "' exists with other settings and goes on with them; to change them "
                        "delete it and make it again with `start` where it is to go on"}};
  }
  auto made = make_consumer(turn, *stream, op.consumer, op.settings);
  if (!made) return Refused{std::move(made).error()};
  return Done{};
}

Verdict run(Turn& turn, const DeleteConsumer& op) {
  const Stream* stream = turn.state().find_stream(op.stream);
  if (stream == nullptr) return Refused{no_stream(op.stream)};
  const Consumer* consumer = turn.state().find_consumer(*stream, op.consumer);
  if (consumer == nullptr) return Refused{no_consumer(op.stream, op.consumer)};
  turn.emit(ConsumerGone{consumer->uid});
  return Done{};
}

Verdict run(Turn& turn, const Seek& op) {
  const Stream* stream = turn.state().find_stream(op.stream);
  if (stream == nullptr) return Refused{no_stream(op.stream)};
  const Consumer* consumer = turn.state().find_consumer(*stream, op.consumer);
  if (consumer == nullptr) return Refused{no_consumer(op.stream, op.consumer)};
  if (auto error = check_target(*stream, consumer->name, op.to)) return Refused{*std::move(error)};
  turn.emit(Sought{consumer->uid, std::max(op.to, stream->first)});
  return Done{};
}

Status bury(Turn& turn, const Stream& stream, const Consumer& consumer, Sequence sequence,
            AttemptEnding ending, std::string_view reason) {
  const std::string name = dead_letters_of(stream, consumer.settings.dead_letters);
  const Run* run = stream.run_of(sequence);
  HAPAX_ASSERT(run != nullptr, "only a kept record becomes a dead letter");
  if (auto full = check_storage(turn.state().tenants.of(name), run->largest)) {
    return *std::move(full);
  }
  HAPAX_TRY(Lineage lineage, first_lineage(turn, stream, sequence));
  const Pending& pending = consumer.pending.at(sequence);
  const bool nacked = ending == AttemptEnding::kNacked;
  add_history(lineage, pending,
              {pending.attempts, 0, pending.last_handed_out, nacked ? turn.now() : pending.due,
               ending, *pending.owner, nacked ? std::string(reason) : std::string()});
  // A dead letter that is given up keeps whose it is: that is where a redrive puts it.
  if (!lineage.is_dead_letter()) lineage.consumer = consumer.name;
  lineage.to.reset();
  lineage.reason = reason;
  lineage.attempts = pending.attempts;
  lineage.first_handed_out = pending.first_handed_out;
  lineage.last_handed_out = pending.last_handed_out;
  HAPAX_CHECK(copy_record(turn, stream, sequence, ensure_stream(turn, name), lineage));
  turn.emit(Acked{consumer.uid, sequence, true});
  return Ok{};
}

Sequence acked_by_all(const State& state, const Stream& stream) {
  Sequence lowest;
  bool first = true;
  for (const auto& [name, uid] : stream.consumers) {
    const Sequence floor = floor_within(stream, state.consumers.at(uid));
    lowest = first ? floor : std::min(lowest, floor);
    first = false;
  }
  return lowest;
}

ConsumerStats consumer_stats(const Stream& stream, const Consumer& consumer) {
  ConsumerStats stats;
  stats.consumer = consumer.name;
  stats.floor = floor_past_others(stream, consumer, consumer.floor().next());
  stats.next = consumer.next;
  stats.in_flight = consumer.in_flight;
  stats.waiting = consumer.pending.size() - consumer.in_flight + consumer.parked.size();
  stats.dead_lettered = consumer.dead_lettered;
  return stats;
}

}  // namespace hapax::core
