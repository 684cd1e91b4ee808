// Follows the journal: each fact of each batch, in order, changes the state. Used by a start and by
// the offline tools, so that they cannot disagree.
#pragma once

#include <cstddef>

#include <hapax/result.h>

#include "core/state.h"
#include "journal/segment.h"

namespace hapax::engine {

class Replay {
 public:
  explicit Replay(core::State& state) : state_(state) {}

  Status operator()(const journal::BatchView& batch);

 private:
  core::State& state_;
  std::size_t facts_ = 0;  // since the latest collection
};

}  // namespace hapax::engine
