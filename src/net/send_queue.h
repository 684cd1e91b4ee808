// What waits to be sent on one connection, and who will come for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/assert.h"

namespace hapax::net {

// Two buffers take turns, so that a message costs no allocation: new bytes are appended to one
// while the other leaves. The bytes of front() stay where they are until they have left: a write
// that is under way holds their address.
class SendQueue {
 public:
  static constexpr std::size_t kKeptBytesMax = std::size_t{256} << 10;  // of an empty buffer

  void append(std::string_view bytes) { waiting_.append(bytes); }

  // The bytes that leave next. Not empty unless the queue is.
  [[nodiscard]] std::string_view front() {
    if (leaving_.empty()) std::swap(leaving_, waiting_);
    return std::string_view(leaving_).substr(gone_);
  }

  // So many bytes of front() have left.
  void sent(std::size_t count) {
    HAPAX_ASSERT(count <= leaving_.size() - gone_, "only bytes of front() leave");
    gone_ += count;
    sent_total_ += count;
    if (gone_ != leaving_.size()) return;
    leaving_.clear();
    gone_ = 0;
    if (waiting_.empty()) give_back_large();
  }

  [[nodiscard]] std::size_t size() const { return waiting_.size() + leaving_.size() - gone_; }
  [[nodiscard]] std::uint64_t sent_total() const { return sent_total_; }
  [[nodiscard]] std::size_t memory() const { return waiting_.capacity() + leaving_.capacity(); }

  // --- who comes for the bytes: the loop, at the end of its turn, or the carrier once it can send

  // False: the loop was already asked to flush.
  [[nodiscard]] bool ask_for_flush() { return !std::exchange(flush_asked_, true); }
  // False: the carrier is still sending and will flush by itself.
  [[nodiscard]] bool begin_flush() {
    flush_asked_ = false;
    return !carrier_sends_;
  }
  void carrier_begins() {
    HAPAX_ASSERT(!carrier_sends_, "a carrier has one write under way");
    carrier_sends_ = true;
  }
  void carrier_is_ready() {
    HAPAX_ASSERT(carrier_sends_, "only a write that was under way is over");
    carrier_sends_ = false;
  }

 private:
  // A buffer that was needed for something large is not kept for what is small.
  void give_back_large() {
    if (waiting_.capacity() > kKeptBytesMax) std::string().swap(waiting_);
    if (leaving_.capacity() > kKeptBytesMax) std::string().swap(leaving_);
  }

  std::string waiting_;
  std::string leaving_;
  std::size_t gone_ = 0;  // bytes of leaving_, fewer than it has unless it is empty
  std::uint64_t sent_total_ = 0;
  bool flush_asked_ = false;
  bool carrier_sends_ = false;
};

}  // namespace hapax::net
