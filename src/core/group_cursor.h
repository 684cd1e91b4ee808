// The group keys of a stream's records, read in ascending order without searching each time.
#pragma once

#include "core/state.h"

namespace hapax::core {

class GroupCursor {
 public:
  explicit GroupCursor(const Stream& stream) : stream_(stream) {}

  // REQUIRES: the record is kept, and not below the one asked for before.
  [[nodiscard]] GroupHash at(Sequence sequence) {
    if (run_ == nullptr || sequence > run_->last()) run_ = stream_.run_of(sequence);
    return run_->groups.empty() ? 0 : run_->groups[sequence.value - run_->first.value];
  }

 private:
  const Stream& stream_;
  const Run* run_ = nullptr;
};

}  // namespace hapax::core
