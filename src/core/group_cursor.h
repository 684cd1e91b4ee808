// What is known of a stream's records without reading them, looked at one after the other without
// searching each time.
#pragma once

#include <algorithm>
#include <cstdint>

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

// How many bytes the records of a hand-out have, at most: of a run only its size and that of its
// largest record are known.
class BytesTaken {
 public:
  BytesTaken(const Stream& stream, std::uint64_t max) : stream_(stream), max_(max) {}

  // Whether the record fits, beside those taken before; the first one always does.
  // REQUIRES: it is kept.
  [[nodiscard]] bool take(Sequence sequence) {
    if (full_) return false;
    if (run_ == nullptr || sequence < run_->first || sequence > run_->last()) {
      run_ = stream_.run_of(sequence);
      of_run_ = 0;
    }
    const std::uint64_t size = std::min<std::uint64_t>(run_->largest, run_->at.length - of_run_);
    full_ = bytes_ > 0 && bytes_ + size > max_;
    if (full_) return false;
    of_run_ += size;
    bytes_ += size;
    return true;
  }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  const Stream& stream_;
  const std::uint64_t max_;
  const Run* run_ = nullptr;
  std::uint64_t of_run_ = 0;
  std::uint64_t bytes_ = 0;
  bool full_ = false;
};

}  // namespace hapax::core
