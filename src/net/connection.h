// One connection: bytes in and out, deadlines, back-pressure and an orderly end. What carries the
// bytes, a socket or TLS over one, is below.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "net/asio_loop.h"
#include "net/link.h"

namespace hapax::net {

class Connection : public Link, public std::enable_shared_from_this<Connection> {
 public:
  static constexpr std::size_t kReadBytes = std::size_t{16} << 10;  // at a time, of a quiet peer

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
    if (!finishing_) deadline_ = deadline;
  }
  void clear_deadline() override {
    if (!finishing_) deadline_.reset();
  }
  void pause() override { paused_ = true; }
  void resume() override;

  [[nodiscard]] std::size_t unsent() const override { return out_.size() + under_way(); }
  [[nodiscard]] const std::string& peer() const override { return peer_; }
  [[nodiscard]] Loop& loop() override { return loop_; }

 protected:
  // --- what a carrier does

  // Bytes are wanted: arrived() tells them, once or, if the carrier goes on by itself, as they come
  // while wants_bytes().
  virtual void ask_for_bytes() = 0;
  // Sends of out() what it can; calls sent() for it, and flush() again when it can send more.
  virtual void write() = 0;
  [[nodiscard]] virtual std::size_t under_way() const { return 0; }
  // Ends our side, and reads on until the peer ends its own.
  virtual void end_sending() = 0;
  virtual void close() = 0;

  // --- what a carrier tells

  void open();
  struct Room {
    char* begin;
    std::size_t size;
  };
  [[nodiscard]] Room room();
  [[nodiscard]] bool wants_bytes() const;
  void arrived(std::size_t count);
  void ended();  // The peer sends no more.
  void left(std::size_t count);
  void sent_all();
  // Empties a buffer. One that was needed for something large is not kept for what is small.
  static void give_back(std::string& buffer);

  [[nodiscard]] std::string& out() { return out_; }
  [[nodiscard]] AsioLoop& own_loop() { return loop_; }
  [[nodiscard]] bool closed() const { return closed_; }
  [[nodiscard]] bool peer_ended() const { return ended_; }
  void set_reading(bool reading) { reading_ = reading; }
  void set_writing(bool writing) { writing_ = writing; }

 private:
  void read();
  void offer();
  void want_flush();
  void linger();
  // Asked four times a second.
  [[nodiscard]] bool is_stuck(SteadyTime now);

  AsioLoop& loop_;
  const MakeSession& make_session_;
  const std::string peer_;
  std::shared_ptr<Session> session_;
  std::string in_;  // as long as the room there is; filled_ bytes of it were read and not taken
  std::size_t filled_ = 0;
  std::size_t read_size_ = kReadBytes;
  std::string out_;
  std::optional<SteadyTime> deadline_;
  std::uint64_t left_ = 0;  // bytes, in all; and as it was when is_stuck() was asked …
  std::uint64_t seen_left_ = 0;
  bool owed_ = false;                                    // … there was something to send …
  SteadyTime moved_ = std::chrono::steady_clock::now();  // … and last found something new
  bool reading_ = false;                                 // the carrier writes into in_
  bool writing_ = false;  // the carrier calls flush() when it can send
  bool paused_ = false;
  bool resuming_ = false;
  bool flush_wanted_ = false;
  bool ended_ = false;
  bool finishing_ = false;  // the session said finish()
  bool lingering_ = false;  // our side is closed
  bool late_ = false;
  bool closed_ = false;
};

}  // namespace hapax::net
