// Open segments, for reading payloads. Thread-safe: one lock around the table; reading itself needs
// none. The Folder's open() is called from the reading threads, one at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include <hapax/result.h>

#include "base/mutex.h"
#include "ports/files.h"

namespace hapax::journal {

class SegmentFiles {
 public:
  static constexpr std::size_t kOpenMax = 256;  // The least recently used one is closed first.

  explicit SegmentFiles(ports::Folder& folder) : folder_(folder) {}

  // kNotFound if the segment was removed. The file stays readable for as long as it is held.
  Result<std::shared_ptr<const ports::File>> open(std::uint32_t number);
  void drop(std::uint32_t number);

 private:
  struct Entry {
    std::shared_ptr<const ports::File> file;
    std::uint64_t used = 0;
  };
  void make_room() HAPAX_REQUIRES(mutex_);

  ports::Folder& folder_;
  base::Mutex mutex_;
  std::map<std::uint32_t, Entry> files_ HAPAX_GUARDED_BY(mutex_);
  std::uint64_t uses_ HAPAX_GUARDED_BY(mutex_) = 0;
};

// What the segments take on disk, space reserved for the next batches included.
struct SegmentUse {
  std::uint64_t segments = 0;
  std::uint64_t bytes = 0;
};
Result<SegmentUse> segments_on_disk(ports::Folder& folder);

// Removes a segment for good: only the engine knows that nothing in it is needed, neither a payload
// nor, by any snapshot it keeps, a fact.
Status remove_segment(ports::Folder& folder, SegmentFiles& files, std::uint32_t number);

}  // namespace hapax::journal
