#include "journal/segment_files.h"

#include <algorithm>

#include "journal/names.h"
#include "journal/new_file.h"

namespace hapax::journal {

Result<std::shared_ptr<const ports::File>> SegmentFiles::open(std::uint32_t number) {
  const std::lock_guard lock(mutex_);
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
  const std::lock_guard lock(mutex_);
  files_.erase(number);
}

void SegmentFiles::make_room() {
  if (files_.size() < kOpenMax) return;
  files_.erase(std::min_element(files_.begin(), files_.end(), [](const auto& a, const auto& b) {
    return a.second.used < b.second.used;
  }));
}

Status remove_segment(ports::Folder& folder, SegmentFiles& files, std::uint32_t number) {
  files.drop(number);
  HAPAX_CHECK(folder.remove(segment_name(number)));
  return sync_names(folder);
}

}  // namespace hapax::journal
