#include "journal/segment_files.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "journal/names.h"
#include "journal/new_file.h"

namespace hapax::journal {

Result<std::shared_ptr<const ports::File>> SegmentFiles::open(std::uint32_t number) {
  const base::MutexLock lock(mutex_);
  auto entry = files_.find(number);
  if (entry == files_.end()) {
    HAPAX_TRY(std::shared_ptr<const ports::File> file,
              folder_.open(segment_name(number), ports::OpenMode::kRead));
    make_room();
    entry = files_.emplace(number, Entry{std::move(file)}).first;
  }
  entry->second.used = ++uses_;
  return entry->second.file;
}

void SegmentFiles::drop(std::uint32_t number) {
  const base::MutexLock lock(mutex_);
  files_.erase(number);
}

void SegmentFiles::make_room() {
  if (files_.size() < kOpenMax) return;
  files_.erase(std::min_element(files_.begin(), files_.end(), [](const auto& a, const auto& b) {
    return a.second.used < b.second.used;
  }));
}

Result<SegmentUse> segments_on_disk(ports::Folder& folder) {
  HAPAX_TRY(const std::vector<std::string> names, folder.list());
  SegmentUse use;
  for (const std::string& name : names) {
    if (parse_name(name).kind != FileName::Kind::kSegment) continue;
    const auto file = folder.open(name, ports::OpenMode::kRead);
    if (!file && file.error().code == Errc::kNotFound) continue;  // Removed since it was listed.
    if (!file) return file.error();
    HAPAX_TRY(const std::uint64_t size, (*file)->size());
    ++use.segments;
    use.bytes += size;
  }
  return use;
}

Status remove_segment(ports::Folder& folder, SegmentFiles& files, std::uint32_t number) {
  files.drop(number);
  HAPAX_CHECK(folder.remove(segment_name(number)));
  return sync_names(folder);
}

}  // namespace hapax::journal
