// A moving view of a file: few large reads, many small looks. Used by everything that reads a file
// from front to back.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "ports/files.h"

namespace hapax::journal {

class FileWindow {
 public:
  static Result<FileWindow> open(std::shared_ptr<const ports::File> file);

  [[nodiscard]] std::uint64_t size() const { return size_; }  // of the file, when it was opened
  [[nodiscard]] const ports::File& file() const { return *file_; }

  // The bytes at `offset`, fewer than `size` only at the end of the file. Valid until the next
  // call. Never more memory than `size` or what is left of the file.
  Result<std::string_view> view(std::uint64_t offset, std::size_t size);

  // Offset behind the last byte that is not zero, looking from `from` on; `from` if there is none.
  Result<std::uint64_t> end_of_content(std::uint64_t from);

 private:
  static constexpr std::size_t kReadBytes = std::size_t{256} << 10;

  FileWindow(std::shared_ptr<const ports::File> file, std::uint64_t size)
      : file_(std::move(file)), size_(size) {}

  std::shared_ptr<const ports::File> file_;
  std::uint64_t size_;
  std::string buffer_;
  std::uint64_t start_ = 0;  // of the buffer, in the file
  std::size_t filled_ = 0;
};

}  // namespace hapax::journal
