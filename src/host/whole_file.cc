#include "host/whole_file.h"

#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/format.h"
#include "host/descriptor.h"
#include "host/folder.h"

namespace hapax::host {

namespace {

namespace fs = std::filesystem;

struct SplitPath {
  fs::path folder;
  std::string name;
};

// Behind links: it is the file that is replaced, not the link to it.
Result<SplitPath> place_of(const fs::path& path) {
  std::error_code error;
  const fs::path whole = fs::absolute(path, error);  // A missing file would stay relative.
  fs::path real = fs::weakly_canonical(whole, error);
  if (error) real = whole;
  if (real.empty() || !real.has_filename() || fs::is_directory(real, error)) {
    return Error{Errc::kInvalidArgument, "'" + path.string() + "' names no file"};
  }
  return SplitPath{real.parent_path(), real.filename().string()};
}

Result<std::string> read_whole(ports::Folder& folder, const std::string& name) {
  HAPAX_TRY(const std::unique_ptr<ports::File> file, folder.open(name, ports::OpenMode::kRead));
  HAPAX_TRY(const std::uint64_t size, file->size());
  if (size > kWholeFileMax) {
    return Error{Errc::kLimitExceeded, base::format("{} has {} bytes; at most {} are read",
                                                    folder.describe(name), size, kWholeFileMax)};
  }
  std::string bytes(size, '\0');
  HAPAX_TRY(const std::size_t got, file->read_at(0, bytes));
  bytes.resize(got);
  return bytes;
}

Status write_whole(ports::Folder& folder, const std::string& name, std::string_view bytes) {
  HAPAX_TRY(const std::unique_ptr<ports::File> file, folder.open(name, ports::OpenMode::kCreate));
  for (std::size_t done = 0; done < bytes.size();) {
    HAPAX_TRY(const std::size_t wrote, file->write_at(done, bytes.substr(done)));
    done += wrote;
  }
  return file->sync();
}

// Held until the descriptor is closed. The folder itself is locked: a lock on the file would be on
// one that the next rename replaces.
Result<Descriptor> lock_folder(const fs::path& path) {
  Descriptor folder{::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (folder.ok()) {
    int failed = ::flock(folder.get(), LOCK_EX);
    while (failed != 0 && errno == EINTR) failed = ::flock(folder.get(), LOCK_EX);
    if (failed == 0) return folder;
  }
  const int number = errno;
  return Error{number == ENOENT ? Errc::kNotFound : Errc::kInvalidArgument,
               "lock the folder " + path.string() + ": " + std::system_category().message(number)};
}

// A server that runs as somebody else must still be able to read what root wrote for it.
void keep_owner(const std::string& old_path, const std::string& fresh_path) {
  struct stat about {};
  if (::stat(old_path.c_str(), &about) != 0 || about.st_uid == ::geteuid()) return;
  [[maybe_unused]] const int refused = ::lchown(fresh_path.c_str(), about.st_uid, about.st_gid);
}

}  // namespace

Result<std::string> read_file(const fs::path& path) {
  HAPAX_TRY(const SplitPath place, place_of(path));
  HAPAX_TRY(const auto folder, DiskFolder::open_folder(place.folder, FolderMode::kMustExist));
  return read_whole(*folder, place.name);
}

Status edit_file(const fs::path& path, const Edit& edit) {
  HAPAX_TRY(const SplitPath place, place_of(path));
  HAPAX_TRY(const Descriptor lock, lock_folder(place.folder));
  HAPAX_TRY(const auto folder, DiskFolder::open_folder(place.folder, FolderMode::kMustExist));
  auto before = read_whole(*folder, place.name);
  if (!before && before.error().code == Errc::kNotFound) before = std::string();
  if (!before) return std::move(before).error();
  HAPAX_TRY(const std::string after, edit(*before));
  const std::string fresh = place.name + ".new";
  ignore(folder->remove(fresh), "it is there only if an earlier edit was interrupted");
  if (Status written = write_whole(*folder, fresh, after); !written) {
    ignore(folder->remove(fresh), "the error that counts is the first one");
    return written;
  }
  keep_owner(folder->describe(place.name), folder->describe(fresh));
  HAPAX_CHECK(folder->rename(fresh, place.name));
  return folder->sync();
}

}  // namespace hapax::host
