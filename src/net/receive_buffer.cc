#include "net/receive_buffer.h"

#include <algorithm>
#include <cstring>

#include "base/assert.h"

namespace hapax::net {

std::span<char> ReceiveBuffer::lend(std::size_t read_max) {
  HAPAX_ASSERT(!lent_, "one read at a time is under way");
  lent_ = true;
  if (filled_ == 0 && space_.size() > kReadBytesMax) std::string().swap(space_);
  const std::size_t more = std::max(std::min(filled_, read_max), read_size_);
  if (space_.size() < filled_ + read_size_) space_.resize(filled_ + more);
  return std::span(space_).subspan(filled_);
}

// A peer that sends much gets larger reads; one that rests keeps little memory.
void ReceiveBuffer::take_back(std::size_t count) {
  HAPAX_ASSERT(lent_ && count <= space_.size() - filled_, "a read fills the space it was lent");
  lent_ = false;
  if (count == 0) return;
  filled_ += count;
  read_size_ = filled_ == space_.size() ? std::min(2 * read_size_, kReadBytesMax) : kReadBytes;
}

std::string_view ReceiveBuffer::bytes() const {
  HAPAX_ASSERT(!lent_, "nobody looks at a buffer that is being written");
  return {space_.data(), filled_};
}

void ReceiveBuffer::drop(std::size_t count) {
  HAPAX_ASSERT(!lent_ && count <= filled_, "only bytes that were read are dropped");
  filled_ -= count;
  if (filled_ != 0 && count != 0) std::memmove(space_.data(), space_.data() + count, filled_);
  if (filled_ == 0 && space_.size() > kKeptBytesMax) std::string().swap(space_);
}

}  // namespace hapax::net
