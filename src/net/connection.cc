#include "net/connection.h"

#include <chrono>
#include <utility>

#include "base/assert.h"

namespace hapax::net {

namespace {

constexpr std::chrono::seconds kLingerTime{2};

}  // namespace

// The connection may be cut while its handshake's success is on the way to be told.
void Connection::open() {
  HAPAX_ASSERT(session_ == nullptr, "a connection has one session");
  if (closed()) return;
  session_ = make_session_(*this);
  read();
}

void Connection::flush() {
  if (!out_.begin_flush() || closed()) return;
  if (out_.size() == 0) return sent_all();
  write();
}

void Connection::drain() {
  if (session_ != nullptr && close_state_.open()) session_->drain();
  if (session_ == nullptr) cut();
}

void Connection::cut() {
  if (!close_state_.close()) return;
  const auto keep = shared_from_this();
  close();
  loop_.remove(keep);
  if (session_ != nullptr) std::exchange(session_, nullptr)->lost();
}

void Connection::check_deadline(SteadyTime now) {
  if (closed()) return;
  if (send_progress_.is_stuck(out_, now, loop_.limits().stuck_max)) return cut();
  if (!deadline_ || now < *deadline_) return;
  if (session_ == nullptr) return cut();  // Its handshake or its lingering took too long.
  const auto keep = session_;
  keep->late();
  if (close_state_.open()) return cut();
  HAPAX_ASSERT(!deadline_, "a session is told once that it is late");
}

// --- reading

bool Connection::wants_bytes() const {
  if (closed() || in_.lent() || peer_ended()) return false;
  if (close_state_.lingering()) return true;
  // What was read before it was paused comes first, also before the peer's end.
  return !read_pause_.holds_reads() && close_state_.open() &&
         out_.size() <= loop_.limits().unsent_max;
}

void Connection::read() {
  if (wants_bytes()) ask_for_bytes();
}

void Connection::arrived(std::size_t count) {
  in_.take_back(count);
  if (closed()) return;
  loop_.counters().bytes_in.fetch_add(count, std::memory_order_relaxed);
  if (!close_state_.lingering()) return offer();
  in_.drop(in_.bytes().size());
  read();
}

void Connection::offer() {
  if (!close_state_.open() || read_pause_.paused() || session_ == nullptr || in_.lent()) return;
  const auto keep = session_;
  in_.drop(keep->take(in_.bytes()));
  read();
}

// An orderly end leaves the way back open.
void Connection::ended() {
  close_state_.end_peer();
  if (closed()) return;
  if (session_ == nullptr) return cut();
  const auto keep = session_;
  if (close_state_.open()) keep->half_closed();
}

void Connection::resume() {
  if (closed() || !read_pause_.resume()) return;
  auto offer_rest = [self = shared_from_this()] {
    self->read_pause_.offer_begins();
    self->offer();
  };
  loop_.at_end_of_turn(std::move(offer_rest));
}

// --- writing

void Connection::send(std::string_view bytes) {
  if (!close_state_.open()) return;
  out_.append(bytes);
  want_flush();
}

void Connection::finish() {
  if (!close_state_.finish()) return;
  deadline_.reset();
  want_flush();
}

void Connection::want_flush() {
  if (out_.ask_for_flush()) loop_.will_flush(shared_from_this());
}

void Connection::left(std::size_t count) {
  loop_.counters().bytes_out.fetch_add(count, std::memory_order_relaxed);
  out_.sent(count);
}

void Connection::sent_all() {
  HAPAX_ASSERT(out_.size() == 0, "everything has left");
  if (!close_state_.open()) return linger();
  if (session_ == nullptr) return;
  const auto keep = session_;
  keep->sent();
  read();  // Nothing was read while too much was unsent.
}

// A socket closed with unread bytes resets the connection and takes the last answer with it; so
// only our side is closed, and what still comes is thrown away for a while.
void Connection::linger() {
  if (!close_state_.linger()) return;
  if (session_ != nullptr) std::exchange(session_, nullptr)->lost();
  deadline_ = std::chrono::steady_clock::now() + kLingerTime;
  end_sending();
}

}  // namespace hapax::net
