// How a record leaves from between others. Its bytes stay until its run goes; consumers that have
// it pending find it gone when they come to it.
#include <algorithm>

#include "base/assert.h"
#include "core/sequences.h"
#include "core/state.h"

namespace hapax::core {

namespace {

void remove(Stream& stream, Sequence sequence, Undo* undo) {
  HAPAX_ASSERT(stream.keeps(sequence), "only a kept record is removed");
  stream.removed.add(sequence);
  record(undo, [owner = &stream, sequence](State&) { owner->removed.remove(sequence); });
}

bool keeps_any(const Stream& stream, const Run& run) {
  return stream.removed.first_missing(std::max(run.first, stream.first)) <= run.last();
}

// The run stays as what says when its records came and in which groups they were.
void give_up_place(State& state, Stream& stream, Run& run, Undo* undo) {
  const base::Where from = run.at;
  const std::uint32_t largest = run.largest;
  run.at = {};
  run.largest = 0;
  stream.bytes -= from.length;
  stream.tenant->storage -= from.length;
  drop_live(state, from.segment, from.length);
  record(undo, [owner = &stream, first = run.first, from, largest](State& s) {
    Run& back = owner->runs.edit(owner->runs.ending_from(first).place());
    back.at = from;
    back.largest = largest;
    owner->bytes += from.length;
    owner->tenant->storage += from.length;
    add_live(s, from.segment, from.length);
  });
}

}  // namespace

void apply_stream(State& state, const RecordRemoved& fact, base::Where, Time, Undo* undo) {
  Stream& stream = state.stream(fact.stream);
  remove(stream, fact.sequence, undo);
}

void apply_stream(State& state, const RecordsLost& fact, base::Where, Time, Undo* undo) {
  Stream& stream = state.stream(fact.stream);
  const auto sequences = decode_sequences(fact.sequences);
  HAPAX_ASSERT(sequences.has_value(), "what was lost can be decoded");
  for (const Sequence sequence : *sequences) remove(stream, sequence, undo);
  for (auto run = stream.runs.ending_from(stream.first); run != stream.runs.end(); ++run) {
    const bool has_place = run->at.length > 0;
    if (!has_place || keeps_any(stream, *run)) continue;
    give_up_place(state, stream, stream.runs.edit(run.place()), undo);
  }
  state.records_lost += sequences->size();
  record(undo, [lost = sequences->size()](State& s) { s.records_lost -= lost; });
}

}  // namespace hapax::core
