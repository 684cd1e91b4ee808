#include "journal/file_window.h"

#include <algorithm>

namespace hapax::journal {

Result<FileWindow> FileWindow::open(std::shared_ptr<const ports::File> file) {
  HAPAX_TRY(const std::uint64_t size, file->size());
  return FileWindow(std::move(file), size);
}

Result<std::string_view> FileWindow::view(std::uint64_t offset, std::size_t size) {
  if (offset >= size_) return std::string_view{};
  size = static_cast<std::size_t>(std::min<std::uint64_t>(size, size_ - offset));
  const bool here = offset >= start_ && offset + size <= start_ + filled_;
  if (!here) {
    const auto wanted = std::min<std::uint64_t>(std::max(size, kReadBytes), size_ - offset);
    buffer_.resize(std::max(buffer_.size(), static_cast<std::size_t>(wanted)));
    filled_ = 0;
    const std::span<char> into(buffer_.data(), static_cast<std::size_t>(wanted));
    HAPAX_TRY(filled_, file_->read_at(offset, into));
    start_ = offset;
  }
  const auto at = static_cast<std::size_t>(offset - start_);
  return std::string_view(buffer_).substr(at, std::min(size, filled_ - at));
}

Result<std::uint64_t> FileWindow::end_of_content(std::uint64_t from) {
  std::uint64_t end = from;
  for (std::uint64_t offset = from; offset < size_;) {
    HAPAX_TRY(const std::string_view bytes, view(offset, kReadBytes));
    if (bytes.empty()) break;
    const std::size_t last = bytes.find_last_not_of('\0');
    if (last != std::string_view::npos) end = offset + last + 1;
    offset += bytes.size();
  }
  return end;
}

}  // namespace hapax::journal
