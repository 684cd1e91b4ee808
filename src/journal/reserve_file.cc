#include "journal/reserve_file.h"

#include <algorithm>
#include <string>
#include <vector>

#include "journal/names.h"
#include "journal/new_file.h"

namespace hapax::journal {

// A smaller one, of a time of need, grows; if it cannot, it stays as it is.
Status ensure_reserve(ports::Folder& folder, std::uint64_t bytes) {
  HAPAX_TRY(const std::vector<std::string> names, folder.list());
  const bool there = std::find(names.begin(), names.end(), kReserveName) != names.end();
  const auto mode = there ? ports::OpenMode::kReadWrite : ports::OpenMode::kCreate;
  HAPAX_TRY(const auto file, folder.open(kReserveName, mode));
  HAPAX_TRY(const std::uint64_t size, file->size());
  if (size >= bytes) return Ok{};
  auto reserved = file->reserve(bytes);
  if (!reserved.ok() && !there) ignore(release_reserve(folder), "the refusal is what matters");
  return reserved;
}

Status restore_reserve(ports::Folder& folder, std::uint64_t bytes) {
  constexpr std::uint64_t kLeast = 4'096;
  const std::uint64_t half = bytes / 2;
  const std::uint64_t step = bytes / 16;  // What a small batch took costs little more than it.
  while (bytes > 0) {
    auto made = ensure_reserve(folder, bytes);
    if (made.ok() || made.error().code != Errc::kNoSpace) return made;
    const std::uint64_t less = bytes > kLeast ? bytes / 2 : 0;
    bytes = bytes > half && step > 0 ? bytes - step : less;
  }
  return Ok{};
}

Result<std::uint64_t> reserve_bytes(ports::Folder& folder) {
  const auto file = folder.open(kReserveName, ports::OpenMode::kRead);
  if (!file.ok() && file.error().code == Errc::kNotFound) return std::uint64_t{0};
  if (!file.ok()) return file.error();
  return (*file)->size();
}

Status release_reserve(ports::Folder& folder) {
  auto removed = folder.remove(kReserveName);
  if (!removed.ok() && removed.error().code == Errc::kNotFound) return Ok{};
  HAPAX_CHECK(std::move(removed));
  return sync_names(folder);
}

}  // namespace hapax::journal
