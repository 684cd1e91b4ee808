// Redrive: a dead letter goes back to where it came from.
#include <utility>

#include "base/format.h"
#include "core/consumer_rules.h"
#include "core/text_bytes.h"

namespace hapax::core {

namespace {

std::optional<Error> check_kept(const Stream& dead_letters, Sequence sequence) {
  if (dead_letters.keeps(sequence)) return std::nullopt;
  const std::string which =
      base::format("stream '{}' has no record {}", dead_letters.name, sequence.value);
  if (sequence > Sequence{0} && sequence <= dead_letters.last) {
    return Error{Errc::kNotFound, which + " any more: it was redriven or trimmed"};
  }
  return Error{Errc::kNotFound, base::format("{}; its last is {}", which, dead_letters.last.value)};
}

struct Letter {
  Lineage lineage;
  Fingerprint content;
};

Result<Letter> read_letter(Turn& turn, const Stream& dead_letters, Sequence sequence) {
  HAPAX_TRY(const std::string bytes, turn.read_record(dead_letters, sequence));
  HAPAX_TRY(Fact fact, decode_fact(bytes));
  auto* const record = std::get_if<RecordAppended>(&fact);
  // A redriven record has a lineage too, but no consumer gave it up since.
  if (record == nullptr || !record->lineage || !record->lineage->is_dead_letter()) {
    return Error{Errc::kInvalidArgument,
                 base::format("record {} of stream '{}' is not a dead letter; it stays where it is",
                              sequence.value, dead_letters.name)};
  }
  return Letter{*std::move(record->lineage), record->fingerprint};
}

// What is taken from the front is a trim; only holes need a mark of their own.
void remove(Turn& turn, const Stream& stream, Sequence sequence) {
  if (sequence == stream.first) {
    turn.emit(trimmed(stream, stream.removed.first_missing(sequence.next()), turn.now()));
  } else {
    turn.emit(RecordRemoved{stream.uid, sequence});
  }
}

// Whoever blocked on the dead letter waited for a person, and that is what happened.
void unblock(Turn& turn, const Stream& stream, Sequence sequence) {
  for (const auto& [name, uid] : stream.consumers) {
    const Consumer& consumer = turn.state().consumers.at(uid);
    const auto found = consumer.pending.find(sequence);
    if (found == consumer.pending.end()) continue;
    if (found->second.state == PendingState::kBlocked) turn.emit(Acked{uid, sequence, false});
  }
}

// C10: a failure is put back once, however many dead letters tell of it: of the same first record,
// after as many redrives, to the same consumer or to all. That is remembered as a message id is,
// for the window of the stream. The content counts, too: a letter that outlived its stream names a
// sequence that a record of the stream's successor may have.
base::Hash128 remembered_as(const Stream& source, const Letter& letter) {
  const Lineage& lineage = letter.lineage;
  base::Hash128 hash = base::spread(source.uid.value);
  const auto mix = [&hash](std::uint64_t number) {
    hash = {base::spread(hash.high + number).low, base::spread(hash.low ^ number).low};
  };
  mix(letter.content.high);
  mix(letter.content.low);
  mix(lineage.sequence.value);
  mix(lineage.redrives);
  mix(lineage.is_for_one() ? 1 : 0);
  if (!lineage.is_for_one()) return hash;
  for (const char byte : lineage.consumer) mix(static_cast<unsigned char>(byte));
  return hash;
}

// Nobody would be handed a record that is for a consumer that does not exist.
std::optional<Error> check_addressee(const State& state, const Stream& source,
                                     const Lineage& lineage) {
  if (!lineage.is_for_one()) return std::nullopt;
  if (state.find_consumer(source, lineage.consumer) != nullptr) return std::nullopt;
  Error error = no_consumer(source.name, lineage.consumer);
  error.detail += ", which gave this record up; make it again, or redrive to all";
  return error;
}

// A record is put back once under the name of a replay, whichever copy of it is meant.
base::Hash128 replayed_as(const Stream& stream, Sequence first, const Redrive& op) {
  base::Hash128 hash = base::spread(~stream.uid.value);
  const auto mix = [&hash](std::uint64_t number) {
    hash = {base::spread(hash.high + number).low, base::spread(hash.low ^ number).low};
  };
  mix(first.value);
  mix(op.again_for.size());
  for (const char byte : op.again_for) mix(static_cast<unsigned char>(byte));
  for (const char byte : op.replay) mix(static_cast<unsigned char>(byte));
  return hash;
}

// C12
Verdict put_again(Turn& turn, Stream& stream, const Redrive& op) {
  const Consumer* consumer = turn.state().find_consumer(stream, op.again_for);
  if (consumer == nullptr) return Refused{no_consumer(stream.name, op.again_for)};
  // C12: otherwise the record itself would be handed out once more, beside its copy.
  if (!consumer->acked.contains(op.sequence)) {
    return Refused{
        Error{Errc::kUnavailable,
              base::format("record {} of stream '{}' is not acked by consumer '{}'; try again when "
                           "it is",
                           op.sequence.value, stream.name, op.again_for)}};
  }
  auto lineage = first_lineage(turn, stream, op.sequence);
  if (!lineage) return Refused{std::move(lineage).error()};
  const bool of_stream = lineage->stream == stream.name;
  const Sequence first = of_stream ? lineage->sequence : op.sequence;
  lineage->consumer = op.again_for;
  lineage->to = RedriveTo::kConsumer;
  lineage->reason = base::format("delivered, and replayed as {}", op.replay);
  ++lineage->redrives;
  const base::Hash128 replayed = replayed_as(stream, first, op);
  if (const IdEntry* known = turn.state().ids.find(replayed, turn.now())) {
    return Duplicate{known->sequence(), known->first_seen(), known->expires_at()};
  }
  if (auto full = check_memory(turn.state(), *stream.tenant, kIdBytes)) {
    return Refused{*std::move(full)};
  }
  if (auto full = check_storage(*stream.tenant, stream.run_of(op.sequence)->largest)) {
    return Refused{*std::move(full)};
  }
  auto copied = copy_record(turn, stream, op.sequence, stream, *lineage, replayed);
  if (!copied) return Refused{std::move(copied).error()};
  return Appended{*copied};
}

void end_letter(Turn& turn, const Stream& dead_letters, Sequence sequence) {
  remove(turn, dead_letters, sequence);
  unblock(turn, dead_letters, sequence);
}

}  // namespace

Verdict run(Turn& turn, const Redrive& op) {
  Stream* dead_letters = turn.state().find_stream(op.dead_letters);
  if (dead_letters == nullptr) return Refused{no_stream(op.dead_letters)};
  if (auto error = check_kept(*dead_letters, op.sequence)) return Refused{*std::move(error)};
  if (!op.again_for.empty()) return put_again(turn, *dead_letters, op);
  auto letter = read_letter(turn, *dead_letters, op.sequence);
  if (!letter) return Refused{std::move(letter).error()};
  Lineage& lineage = letter->lineage;
  Stream* source = turn.state().find_stream(lineage.stream);
  if (source == nullptr) {
    return Refused{no_stream(lineage.stream)
                       .within(base::format("redrive record {} of stream '{}'", op.sequence.value,
                                            dead_letters->name))};
  }
  lineage.to = op.to;
  ++lineage.redrives;
  if (auto error = check_addressee(turn.state(), *source, lineage)) {
    return Refused{*std::move(error)};
  }
  const base::Hash128 put_back = remembered_as(*source, *letter);
  if (const IdEntry* known = turn.state().ids.find(put_back, turn.now())) {
    const Duplicate duplicate{known->sequence(), known->first_seen(), known->expires_at()};
    end_letter(turn, *dead_letters, op.sequence);
    return duplicate;
  }
  if (auto error = check_memory(turn.state(), *source->tenant, kIdBytes)) {
    return Refused{*std::move(error)};
  }
  auto copied = copy_record(turn, *dead_letters, op.sequence, *source, lineage, put_back);
  if (!copied) return Refused{std::move(copied).error()};
  end_letter(turn, *dead_letters, op.sequence);
  return Appended{*copied};
}

}  // namespace hapax::core
