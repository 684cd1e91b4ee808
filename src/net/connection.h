// One connection: bytes in and out, deadlines, back-pressure and an orderly end. What carries the
// bytes, a socket or TLS over one, is below.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "net/asio_loop.h"
#include "net/close_state.h"
#include "net/link.h"
#include "net/read_pause.h"
#include "net/receive_buffer.h"
#include "net/send_progress.h"
#include "net/send_queue.h"

namespace hapax::net {

class Connection : public Link, public std::enable_shared_from_this<Connection> {
 public:
  Connection(AsioLoop& loop, const MakeSession& make_session, std::string peer)
      : loop_(loop), make_session_(make_session), peer_(std::move(peer)) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  virtual ~Connection() = default;

  // --- the loop's side

  virtual void start() = 0;
  void flush();
  void drain();
  void cut();
  void check_deadline(SteadyTime now);

  // --- the session's side

  void send(std::string_view bytes) override;
  void finish() override;
  // Once the last answer is on its way, only its progress counts.
  void set_deadline(SteadyTime deadline) override {
    if (close_state_.open()) deadline_ = deadline;
  }
  void clear_deadline() override {
    if (close_state_.open()) deadline_.reset();
  }
  void pause() override { read_pause_.pause(); }
  void resume() override;

  [[nodiscard]] std::size_t unsent() const override { return out_.size(); }
  [[nodiscard]] const std::string& peer() const override { return peer_; }
  [[nodiscard]] Loop& loop() override { return loop_; }

 protected:
  // --- what a carrier does

  // Bytes are wanted: arrived() tells them, once or, if the carrier goes on by itself, as they come
  // while wants_bytes().
  virtual void ask_for_bytes() = 0;
  // Sends of out() what it can and calls left() for it. Then either all has left, and it calls
  // sent_all(); or it tells out() that it will call flush() when it can send more.
  virtual void write() = 0;
  // Ends our side, and reads on until the peer ends its own.
  virtual void end_sending() = 0;
  virtual void close() = 0;

  // --- what a carrier tells

  void open();
  [[nodiscard]] bool wants_bytes() const;
  // Each loan of space ends with one of the two below.
  [[nodiscard]] std::span<char> lend_space() { return in_.lend(loop_.limits().read_max); }
  void arrived(std::size_t count);
  void nothing_arrived() { in_.take_back(0); }
  void ended();  // The peer sends no more.
  void left(std::size_t count);
  void sent_all();

  [[nodiscard]] SendQueue& out() { return out_; }
  [[nodiscard]] AsioLoop& own_loop() { return loop_; }
  [[nodiscard]] bool closed() const { return close_state_.closed(); }
  [[nodiscard]] bool peer_ended() const { return close_state_.peer_ended(); }

 private:
  void read();
  void offer();
  void want_flush();
  void linger();

  AsioLoop& loop_;
  const MakeSession& make_session_;
  const std::string peer_;
  // From open() until the session is told that the connection is lost.
  std::shared_ptr<Session> session_;
  ReceiveBuffer in_;
  ReadPause read_pause_;
  SendQueue out_;
  SendProgress send_progress_;
  std::optional<SteadyTime> deadline_;
  CloseState close_state_;
};

}  // namespace hapax::net
