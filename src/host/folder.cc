#include "host/folder.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <system_error>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/assert.h"
#include "base/format.h"

namespace hapax::host {
namespace {

// Stored records are nobody else's business.
constexpr mode_t kFolderRights = 0700;
constexpr mode_t kFileRights = 0600;

template <class Call>
auto retried(const Call& call) {
  auto answer = call();
  while (answer < 0 && errno == EINTR) answer = call();
  return answer;
}

Errc code_of(int number) {
  switch (number) {
    case ENOENT:
      return Errc::kNotFound;
    // EFBIG is a limit somebody set, or the file system's own: like a full disk it spares what is
    // stored, and reading goes on. Ending the process (kIo) would not lift it.
    case EFBIG:
    case ENOSPC:
    case EDQUOT:
      return Errc::kNoSpace;
    // The path is not one we may use; the disk is fine.
    case EACCES:
    case EPERM:
    case EROFS:
    case ENOTDIR:
    case ELOOP:
    case ENAMETOOLONG:
      return Errc::kInvalidArgument;
    // Nothing was opened, so nothing is in doubt, and others may give descriptors back.
    case EMFILE:
    case ENFILE:
      return Errc::kUnavailable;
    default:
      return Errc::kIo;
  }
}

std::string_view advice_of(Errc code) {
  switch (code) {
    case Errc::kNoSpace:
      return " What was stored before is untouched. Free space, or raise the quota or the "
             "file-size limit (ulimit -f).";
    case Errc::kUnavailable:
      return " Nothing was changed. Raise the limit of open files (ulimit -n), or close some.";
    case Errc::kNotFound:
      return "";
    case Errc::kInvalidArgument:
      return " Check the path, its owner and its permissions.";
    default:
      return " The kernel's log (dmesg) may say why.";
  }
}

std::string said(int number) {
  return base::format("{} (errno {}).", std::system_category().message(number), number);
}

// `what` names the call and the path: "write 512 bytes at offset 1024 to /data/000001.log".
Error failure(std::string what, int number) {
  const Errc code = code_of(number);
  return Error{code, std::move(what) + ": " + said(number) + std::string(advice_of(code))};
}

// kIo whatever the number is: see folder.h.
Error sync_failure(const std::string& path, int number) {
  return Error{Errc::kIo, "sync " + path + ": " + said(number) +
                              " What was written since the last good sync may never reach the "
                              "disk: the process must stop and recover."};
}

void demand_plain(std::string_view name) {
  HAPAX_ASSERT(!name.empty(), "a file name is not empty");
  HAPAX_ASSERT(name.find('/') == std::string_view::npos, "a file name has no slash");
  HAPAX_ASSERT(name.find('\0') == std::string_view::npos, "a file name has no zero byte");
  HAPAX_ASSERT(name != "." && name != "..", "a file name names a file");
}

class DiskFile final : public ports::File {
 public:
  DiskFile(std::string path, Descriptor file) : path_(std::move(path)), file_(std::move(file)) {}

  Result<std::size_t> write_at(std::uint64_t offset, std::string_view bytes) override {
    if (bytes.empty()) return std::size_t{0};
    const auto written = retried([&] {
      return ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    });
    if (written > 0) return static_cast<std::size_t>(written);
    // A write of nothing would keep a caller that loops over short writes busy for ever.
    const int number = written < 0 ? errno : EIO;
    return failure(base::format("write {} bytes at offset {} to {}", bytes.size(), offset, path_),
                   number);
  }

  Result<std::size_t> read_at(std::uint64_t offset, std::span<char> into) const override {
    std::size_t done = 0;
    while (done < into.size()) {
      const auto got = retried([&] {
        return ::pread(file_.get(), into.data() + done, into.size() - done,
                       static_cast<off_t>(offset + done));
      });
      if (got < 0) {
        const int number = errno;
        return failure(base::format("read {} bytes at offset {} of {}", into.size(), offset, path_),
                       number);
      }
      if (got == 0) break;
      done += static_cast<std::size_t>(got);
    }
    return done;
  }

  Status sync() override {
    if (retried([&] { return ::fdatasync(file_.get()); }) == 0) return Ok{};
    return sync_failure(path_, errno);
  }

  Status truncate(std::uint64_t size) override {
    if (retried([&] { return ::ftruncate(file_.get(), static_cast<off_t>(size)); }) == 0) {
      return Ok{};
    }
    const int number = errno;
    return failure(base::format("truncate {} to {} bytes", path_, size), number);
  }

  Result<std::uint64_t> size() const override {
    struct stat about {};
    if (::fstat(file_.get(), &about) == 0) return static_cast<std::uint64_t>(about.st_size);
    const int number = errno;
    return failure("stat " + path_, number);
  }

  // Not posix_fallocate(): where the file system cannot, it writes zeros itself, slowly, and over
  // what a concurrent writer may have put there.
  Status reserve(std::uint64_t size) override {
    if (size == 0) return Ok{};
    if (retried([&] { return ::fallocate(file_.get(), 0, 0, static_cast<off_t>(size)); }) == 0) {
      return Ok{};
    }
    const int number = errno;
    if (number == EOPNOTSUPP || number == ENOSYS) return Ok{};
    return failure(base::format("reserve {} bytes for {}", size, path_), number);
  }

 private:
  std::string path_;
  Descriptor file_;
};

// The file stays when the lock is released: removing it would let two processes hold two different
// files of one name.
class DiskLock final : public ports::Lock {
 public:
  explicit DiskLock(Descriptor file) : file_(std::move(file)) {}

 private:
  Descriptor file_;
};

// Only for the error text of others: the lock is the flock, whatever the file says. So a failure to
// write the number (a full disk) is no failure to lock.
void write_holder(int file) {
  const std::string text = base::format("{}\n", ::getpid());
  if (::ftruncate(file, 0) != 0) return;
  [[maybe_unused]] const auto written = ::pwrite(file, text.data(), text.size(), 0);
}

std::string read_holder(int file) {
  char text[16] = {};
  const auto got = ::pread(file, text, sizeof text, 0);
  int number = 0;
  if (got <= 0 || std::from_chars(text, text + got, number).ec != std::errc{}) {
    return "another process (it left no process id)";
  }
  if (number == ::getpid()) return base::format("this very process ({})", number);
  return base::format("process {}", number);
}

int flags_of(ports::OpenMode mode) {
  switch (mode) {
    case ports::OpenMode::kRead:
      return O_RDONLY | O_CLOEXEC;
    case ports::OpenMode::kReadWrite:
      return O_RDWR | O_CLOEXEC;
    case ports::OpenMode::kCreate:
      return O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC;
  }
  HAPAX_ASSERT(false, "the open mode is known");
}

Descriptor open_in(int folder, const char* name, int flags) {
  return Descriptor{retried([&] { return ::openat(folder, name, flags, kFileRights); })};
}

bool is_regular(int folder, const dirent& entry) {
  if (entry.d_type != DT_UNKNOWN) return entry.d_type == DT_REG;
  struct stat about {};
  return ::fstatat(folder, entry.d_name, &about, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISREG(about.st_mode);
}

}  // namespace

Result<std::unique_ptr<ports::Folder>> DiskFolder::open_folder(const std::filesystem::path& path,
                                                               FolderMode mode) {
  const bool may_create = mode == FolderMode::kCreateIfMissing;
  if (may_create && ::mkdir(path.c_str(), kFolderRights) != 0 && errno != EEXIST) {
    const int number = errno;
    return failure("create folder " + path.string(), number);
  }
  Descriptor folder = open_in(AT_FDCWD, path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (!folder.ok()) {
    const int number = errno;
    return failure("open folder " + path.string(), number);
  }
  if (may_create) {
    // Also when the folder was there: whoever made it may have died before this very sync.
    const Descriptor parent = open_in(folder.get(), "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (!parent.ok() || retried([&] { return ::fsync(parent.get()); }) != 0) {
      const int number = errno;
      return sync_failure("the folder that holds " + path.string(), number);
    }
  }
  return std::unique_ptr<ports::Folder>(new DiskFolder(path, std::move(folder)));
}

Result<std::unique_ptr<ports::File>> DiskFolder::open(std::string_view name, ports::OpenMode mode) {
  demand_plain(name);
  Descriptor file = open_in(folder_.get(), std::string(name).c_str(), flags_of(mode));
  if (!file.ok()) {
    const int number = errno;
    const bool creates = mode == ports::OpenMode::kCreate;
    return failure((creates ? "create " : "open ") + describe(name), number);
  }
  return std::unique_ptr<ports::File>(std::make_unique<DiskFile>(describe(name), std::move(file)));
}

Status DiskFolder::rename(std::string_view from, std::string_view to) {
  demand_plain(from);
  demand_plain(to);
  const std::string old_name(from);
  const std::string wanted(to);
  if (::renameat(folder_.get(), old_name.c_str(), folder_.get(), wanted.c_str()) == 0) return Ok{};
  const int number = errno;
  return failure("rename " + describe(from) + " to " + wanted, number);
}

Status DiskFolder::remove(std::string_view name) {
  demand_plain(name);
  if (::unlinkat(folder_.get(), std::string(name).c_str(), 0) == 0) return Ok{};
  const int number = errno;
  return failure("remove " + describe(name), number);
}

Status DiskFolder::sync() {
  if (retried([&] { return ::fsync(folder_.get()); }) == 0) return Ok{};
  const int number = errno;
  return sync_failure("folder " + path_.string(), number);
}

Result<std::vector<std::string>> DiskFolder::list() {
  // A fresh descriptor: the position of a shared one would be shared as well.
  Descriptor again = open_in(folder_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(again.ok() ? ::fdopendir(again.get()) : nullptr,
                                                    &::closedir);
  if (entries == nullptr) {
    const int number = errno;
    return failure("list folder " + path_.string(), number);
  }
  const int folder = again.release();  // closedir() ends it.
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(entries.get())) {
    if (is_regular(folder, *entry)) names.emplace_back(entry->d_name);
    errno = 0;
  }
  if (errno != 0) {
    const int number = errno;
    return failure("list folder " + path_.string(), number);
  }
  std::sort(names.begin(), names.end());
  return names;
}

Result<std::unique_ptr<ports::Lock>> DiskFolder::lock(std::string_view name) {
  demand_plain(name);
  const int flags = O_RDWR | O_CREAT | O_CLOEXEC;
  Descriptor file = open_in(folder_.get(), std::string(name).c_str(), flags);
  if (!file.ok()) {
    const int number = errno;
    return failure("open lock " + describe(name), number);
  }
  if (retried([&] { return ::flock(file.get(), LOCK_EX | LOCK_NB); }) != 0) {
    const int number = errno;
    if (number != EWOULDBLOCK) return failure("lock " + describe(name), number);
    return Error{Errc::kLocked, describe(name) + " is held by " + read_holder(file.get()) +
                                    ". One process at a time may use this folder: stop that one, "
                                    "or choose another folder."};
  }
  write_holder(file.get());
  return std::unique_ptr<ports::Lock>(std::make_unique<DiskLock>(std::move(file)));
}

std::string DiskFolder::describe(std::string_view name) const { return (path_ / name).string(); }

}  // namespace hapax::host
