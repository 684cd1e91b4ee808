// How a record leaves from between others. Its bytes stay until its run goes; consumers that have
// it pending find it gone when they come to it.
#include "base/assert.h"
#include "core/state.h"

namespace hapax::core {

void apply_stream(State& state, const RecordRemoved& fact, base::Where, Time, Undo* undo) {
  Stream& stream = state.stream(fact.stream);
  HAPAX_ASSERT(stream.keeps(fact.sequence), "only a kept record is removed");
  stream.removed.add(fact.sequence);
  record(undo,
         [owner = &stream, sequence = fact.sequence](State&) { owner->removed.remove(sequence); });
}

}  // namespace hapax::core
