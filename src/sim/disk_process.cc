#include "sim/disk_process.h"

#include "base/assert.h"

namespace hapax::sim {

void DiskProcess::demand(std::uint64_t process) const {
  if (!is(process)) throw end_;
}

void DiskProcess::leave(const Crash& end) {
  dead_ = true;
  end_ = end;
  locks_.clear();
  open_.clear();
}

void DiskProcess::restart() {
  HAPAX_ASSERT(dead_, "one process at a time uses the disk");
  dead_ = false;
  ++number_;
}

void DiskProcess::close(FileId id) {
  const auto found = open_.find(id);
  HAPAX_ASSERT(found != open_.end(), "a file of the living process is counted as open");
  if (--found->second == 0) open_.erase(found);
}

}  // namespace hapax::sim
