// The disk, as the store sees it. It promises little: a write may be short, nothing is durable
// before sync(), a name is not durable before its folder's sync(). Failures are Errors:
// kNoSpace (disk or quota full, part of a write may have happened), kUnavailable (open() only: no
// descriptor is free), kNotFound, kLocked, kIo for all the rest. Interrupted calls are repeated
// inside. One File may be read by many threads at once, a Folder be used by several; every other
// call to a File belongs to one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hapax/result.h>

namespace hapax::ports {

class File {
 public:
  File() = default;
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  virtual ~File() = default;

  // How many bytes were written; fewer than asked for is not an error.
  virtual Result<std::size_t> write_at(std::uint64_t offset, std::string_view bytes) = 0;
  // Fewer than asked for only at the end of the file.
  virtual Result<std::size_t> read_at(std::uint64_t offset, std::span<char> into) const = 0;
  // Data and size are on stable storage when this returns Ok. After a failure they may never be,
  // whatever a later sync says: the caller must end the process.
  virtual Status sync() = 0;
  virtual Status truncate(std::uint64_t size) = 0;
  [[nodiscard]] virtual Result<std::uint64_t> size() const = 0;
  // Sets disk space aside up to `size` bytes, read as zeros; a speed-up that may be refused.
  virtual Status reserve(std::uint64_t size) = 0;
};

enum class OpenMode : std::uint8_t {
  kRead,       // must exist
  kReadWrite,  // must exist
  kCreate,     // must not exist
};

// Held as long as it lives; another process that wants it gets kLocked.
class Lock {
 public:
  Lock() = default;
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  virtual ~Lock() = default;
};

// One flat folder; names have no slashes.
class Folder {
 public:
  Folder() = default;
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  virtual ~Folder() = default;

  virtual Result<std::unique_ptr<File>> open(std::string_view name, OpenMode mode) = 0;
  virtual Status rename(std::string_view from, std::string_view to) = 0;  // replaces `to`
  virtual Status remove(std::string_view name) = 0;
  virtual Status sync() = 0;  // names made, renamed and removed so far are durable
  virtual Result<std::vector<std::string>> list() = 0;  // sorted
  virtual Result<std::unique_ptr<Lock>> lock(std::string_view name) = 0;
  [[nodiscard]] virtual std::string describe(std::string_view name) const = 0;  // path for people
};

}  // namespace hapax::ports
