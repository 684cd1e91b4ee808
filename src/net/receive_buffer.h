// What was read from one connection and not yet taken by its session.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace hapax::net {

// While space is lent, a carrier writes into it, so nothing moves and no bytes are looked at.
class ReceiveBuffer {
 public:
  static constexpr std::size_t kReadBytes = std::size_t{16} << 10;  // at a time, of a quiet peer
  static constexpr std::size_t kReadBytesMax = 4 * kReadBytes;
  static constexpr std::size_t kKeptBytesMax = std::size_t{256} << 10;  // of an empty buffer

  // Space for the next read. A large message that is not complete yet gets as much again as it has
  // so far, but at most `read_max` beyond the usual.
  [[nodiscard]] std::span<char> lend(std::size_t read_max);
  // The read is over and wrote so many bytes at the front of the space.
  void take_back(std::size_t count);
  [[nodiscard]] bool lent() const { return lent_; }

  [[nodiscard]] std::string_view bytes() const;
  // So many bytes at the front are of no more use.
  void drop(std::size_t count);

  [[nodiscard]] std::size_t memory() const { return space_.capacity(); }

 private:
  std::string space_;  // filled_ bytes of it were read and not dropped, the rest is free
  std::size_t filled_ = 0;
  std::size_t read_size_ = kReadBytes;
  bool lent_ = false;
};

}  // namespace hapax::net
