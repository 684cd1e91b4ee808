// Follows the journal: each fact of each batch, in order, changes the state. Used by a start and by
// the offline tools, so that they cannot disagree.
#pragma once

#include <cstddef>

#include <hapax/result.h>

#include "core/state.h"
#include "engine/watches.h"
#include "journal/segment.h"

namespace hapax::engine {

class Replay {
 public:
  // `wakes`, if given, gets what the facts give to those who wait.
  explicit Replay(core::State& state, Wakes* wakes = nullptr) : state_(state), wakes_(wakes) {}

  Status operator()(const journal::BatchView& batch);

 private:
  core::State& state_;
  Wakes* const wakes_;
  std::size_t facts_ = 0;  // since the latest collection
};

}  // namespace hapax::engine
