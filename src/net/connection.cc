#include "net/connection.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace hapax::net {

namespace {

constexpr std::size_t kReadBytesMax = 4 * Connection::kReadBytes;
constexpr std::size_t kKeptBytesMax = std::size_t{256} << 10;  // of a buffer that is empty
constexpr std::chrono::seconds kLingerTime{2};

}  // namespace

void Connection::open() {
  session_ = make_session_(*this);
  read();
}

void Connection::flush() {
  flush_wanted_ = false;
  if (closed_ || writing_) return;
  if (unsent() == 0) return sent_all();
  write();
}

void Connection::drain() {
  if (session_ != nullptr && !finishing_) session_->drain();
  if (session_ == nullptr) cut();
}

void Connection::cut() {
  if (std::exchange(closed_, true)) return;
  const auto keep = shared_from_this();
  close();
  loop_.remove(keep);
  if (session_ != nullptr) std::exchange(session_, nullptr)->lost();
}

void Connection::check_deadline(SteadyTime now) {
  if (closed_) return;
  if (is_stuck(now)) return cut();
  if (!deadline_ || now < *deadline_) return;
  const bool told = std::exchange(late_, true);
  deadline_ = now + kLingerTime;
  if (told || lingering_ || session_ == nullptr) return cut();
  const auto keep = session_;
  keep->late();
  if (!finishing_) cut();
}

// A peer that takes nothing costs memory for as long as it stays, whoever it is. Bytes are counted
// so that sending costs no look at the clock.
bool Connection::is_stuck(SteadyTime now) {
  const bool moves = std::exchange(seen_left_, left_) != left_;
  const bool was_owed = std::exchange(owed_, unsent() != 0);
  if (moves || !was_owed || !owed_) moved_ = now;
  return owed_ && now - moved_ >= loop_.limits().stuck_max;
}

// --- reading

bool Connection::wants_bytes() const {
  if (closed_ || reading_ || ended_) return false;
  if (lingering_) return true;
  // What was read before it was paused comes first, also before the peer's end.
  return !paused_ && !resuming_ && !finishing_ && unsent() <= loop_.limits().unsent_max;
}

void Connection::read() {
  if (wants_bytes()) ask_for_bytes();
}

// A peer that sends much gets larger reads; one that rests keeps little memory.
Connection::Room Connection::room() {
  if (filled_ == 0 && in_.size() > 4 * kReadBytes) std::string().swap(in_);
  const std::size_t more = std::max(std::min(filled_, loop_.limits().read_max), read_size_);
  if (in_.size() < filled_ + read_size_) in_.resize(filled_ + more);
  return {in_.data() + filled_, in_.size() - filled_};
}

void Connection::arrived(std::size_t count) {
  if (closed_) return;
  loop_.counters().bytes_in.fetch_add(count, std::memory_order_relaxed);
  filled_ += count;
  read_size_ = filled_ == in_.size() ? std::min(2 * read_size_, kReadBytesMax) : kReadBytes;
  if (!lingering_) return offer();
  filled_ = 0;
  read();
}

void Connection::offer() {
  if (closed_ || finishing_ || paused_ || session_ == nullptr || reading_) return;
  const auto keep = session_;
  const std::size_t taken = keep->take(std::string_view(in_.data(), filled_));
  filled_ -= taken;
  if (filled_ != 0 && taken != 0) std::memmove(in_.data(), in_.data() + taken, filled_);
  if (filled_ == 0 && in_.size() > kKeptBytesMax) std::string().swap(in_);
  read();
}

// An orderly end leaves the way back open.
void Connection::ended() {
  ended_ = true;
  if (closed_) return;
  if (session_ == nullptr) return cut();
  const auto keep = session_;
  if (!finishing_) keep->half_closed();
}

void Connection::resume() {
  if (!std::exchange(paused_, false) || closed_ || resuming_) return;
  resuming_ = true;  // Not from inside of the session's own call.
  auto offer_rest = [self = shared_from_this()] {
    self->resuming_ = false;
    self->offer();
  };
  loop_.at_end_of_turn(std::move(offer_rest));
}

// --- writing

void Connection::send(std::string_view bytes) {
  if (closed_ || finishing_) return;
  out_.append(bytes);
  want_flush();
}

void Connection::give_back(std::string& buffer) {
  buffer.clear();
  if (buffer.capacity() > kKeptBytesMax) std::string().swap(buffer);
}

void Connection::finish() {
  if (closed_ || std::exchange(finishing_, true)) return;
  deadline_.reset();
  want_flush();
}

void Connection::want_flush() {
  if (!std::exchange(flush_wanted_, true)) loop_.will_flush(shared_from_this());
}

void Connection::left(std::size_t count) {
  loop_.counters().bytes_out.fetch_add(count, std::memory_order_relaxed);
  left_ += count;
}

void Connection::sent_all() {
  if (finishing_) return linger();
  give_back(out_);
  if (session_ == nullptr) return;
  const auto keep = session_;
  keep->sent();
  read();  // Nothing was read while too much was unsent.
}

// A socket closed with unread bytes resets the connection and takes the last answer with it; so
// only our side is closed, and what still comes is thrown away for a while.
void Connection::linger() {
  if (std::exchange(lingering_, true)) return;
  if (session_ != nullptr) std::exchange(session_, nullptr)->lost();
  deadline_ = std::chrono::steady_clock::now() + kLingerTime;
  end_sending();
}

}  // namespace hapax::net
