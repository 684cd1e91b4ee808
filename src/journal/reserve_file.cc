#include "journal/reserve_file.h"

#include <algorithm>
#include <string>
#include <vector>

#include "journal/names.h"
#include "journal/new_file.h"

namespace hapax::journal {

Status ensure_reserve(ports::Folder& folder, std::uint64_t bytes) {
  HAPAX_TRY(const std::vector<std::string> names, folder.list());
  if (std::find(names.begin(), names.end(), kReserveName) != names.end()) return Ok{};
  HAPAX_TRY(const auto file, folder.open(kReserveName, ports::OpenMode::kCreate));
  auto reserved = file->reserve(bytes);
  if (!reserved.ok()) ignore(release_reserve(folder), "the refusal is what matters");
  return reserved;
}

Status restore_reserve(ports::Folder& folder, std::uint64_t bytes) {
  constexpr std::uint64_t kLeast = 4'096;
  for (; bytes > 0; bytes = bytes > kLeast ? bytes / 2 : 0) {
    auto made = ensure_reserve(folder, bytes);
    if (made.ok() || made.error().code != Errc::kNoSpace) return made;
  }
  return Ok{};
}

Status release_reserve(ports::Folder& folder) {
  auto removed = folder.remove(kReserveName);
  if (!removed.ok() && removed.error().code == Errc::kNotFound) return Ok{};
  HAPAX_CHECK(std::move(removed));
  return sync_names(folder);
}

}  // namespace hapax::journal
