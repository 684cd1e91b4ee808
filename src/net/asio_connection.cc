#include "net/asio_connection.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>

namespace hapax::net {

namespace {

using boost::system::error_code;
using TlsStream = asio::ssl::stream<tcp::socket>;

constexpr std::size_t kReadBytes = std::size_t{16} << 10;
constexpr std::chrono::seconds kHandshakeTime{10};
constexpr std::chrono::seconds kLingerTime{2};

std::string name_of_peer(const tcp::socket& socket) {
  error_code error;
  const tcp::endpoint peer = socket.remote_endpoint(error);
  if (error) return "unknown";
  const std::string address = peer.address().to_string();
  const std::string host = peer.address().is_v6() ? "[" + address + "]" : address;
  return host + ":" + std::to_string(peer.port());
}

template <class Stream>
class AsioConnection final : public Connection,
                             public Link,
                             public std::enable_shared_from_this<AsioConnection<Stream>> {
 public:
  static constexpr bool kEncrypted = std::is_same_v<Stream, TlsStream>;

  AsioConnection(AsioLoop& loop, Stream stream, const MakeSession& make_session,
                 std::shared_ptr<asio::ssl::context> tls)
      : loop_(loop),
        tls_(std::move(tls)),
        stream_(std::move(stream)),
        make_session_(make_session),
        peer_(name_of_peer(socket())) {}

  // --- the loop's side

  void start() override {
    error_code ignored;
    socket().non_blocking(true, ignored);
    socket().set_option(tcp::no_delay(true), ignored);
    if constexpr (kEncrypted) {
      set_deadline(std::chrono::steady_clock::now() + kHandshakeTime);
      stream_.async_handshake(Stream::server, [self = self()](const error_code& error) {
        if (error) return self->cut();
        self->clear_deadline();
        self->open();
      });
    } else {
      open();
    }
  }

  void flush() override {
    flush_wanted_ = false;
    if (closed_ || writing_) return;
    if (out_.empty()) return sent_all();
    if constexpr (kEncrypted) {
      write_encrypted();
    } else {
      write_plain();
    }
  }

  void drain() override {
    if (session_ != nullptr && !finishing_) session_->drain();
    if (session_ == nullptr) cut();
  }

  void cut() override {
    if (std::exchange(closed_, true)) return;
    const auto keep = self();
    error_code ignored;
    socket().close(ignored);
    loop_.remove(keep);
    if (session_ != nullptr) std::exchange(session_, nullptr)->lost();
  }

  void check_deadline(SteadyTime now) override {
    if (closed_ || !deadline_ || now < *deadline_) return;
    const bool told = std::exchange(late_, true);
    deadline_ = now + kLingerTime;
    if (told || lingering_ || session_ == nullptr) return cut();
    const auto keep = session_;
    keep->late();
    if (!finishing_) cut();
  }

  // --- the session's side

  void send(std::string_view bytes) override {
    if (closed_ || finishing_) return;
    out_.append(bytes);
    want_flush();
  }

  void finish() override {
    if (closed_ || std::exchange(finishing_, true)) return;
    want_flush();
  }

  void set_deadline(SteadyTime deadline) override { deadline_ = deadline; }
  void clear_deadline() override { deadline_.reset(); }

  void pause() override { paused_ = true; }
  void resume() override {
    if (!std::exchange(paused_, false) || closed_ || resuming_) return;
    resuming_ = true;  // Not from inside of the session's own call.
    loop_.at_end_of_turn([self = self()] {
      self->resuming_ = false;
      self->offer();
    });
  }

  [[nodiscard]] std::size_t unsent() const override { return out_.size() + writing_bytes_.size(); }
  [[nodiscard]] const std::string& peer() const override { return peer_; }
  [[nodiscard]] bool encrypted() const override { return kEncrypted; }
  [[nodiscard]] Loop& loop() override { return loop_; }

 private:
  std::shared_ptr<AsioConnection> self() { return this->shared_from_this(); }

  tcp::socket& socket() {
    if constexpr (kEncrypted) {
      return stream_.next_layer();
    } else {
      return stream_;
    }
  }

  void open() {
    session_ = make_session_(*this);
    read();
  }

  // --- reading

  [[nodiscard]] bool wants_bytes() const {
    return !closed_ && !reading_ && !ended_ && (lingering_ || !paused_) &&
           (lingering_ || unsent() <= loop_.limits().unsent_max);
  }

  void read() {
    if (!wants_bytes()) return;
    reading_ = true;
    make_room();
    stream_.async_read_some(asio::buffer(in_.data() + filled_, in_.size() - filled_),
                            [self = self()](const error_code& error, std::size_t count) {
                              self->reading_ = false;
                              self->filled_ += count;
                              self->arrived(error, count);
                            });
  }

  // A peer that sends much gets larger reads; one that rests keeps little memory.
  void make_room() {
    if (filled_ == 0 && in_.size() > 4 * kReadBytes) std::string().swap(in_);
    const std::size_t room = std::clamp(filled_, kReadBytes, loop_.limits().read_max);
    if (in_.size() < filled_ + kReadBytes) in_.resize(filled_ + room);
  }

  void arrived(const error_code& error, std::size_t count) {
    if (closed_) return;
    loop_.counters().bytes_in.fetch_add(count, std::memory_order_relaxed);
    if (lingering_) {
      filled_ = 0;
      return error ? cut() : read();
    }
    if (error) return ended(error);
    offer();
  }

  void offer() {
    if (closed_ || finishing_ || paused_ || session_ == nullptr || reading_) return;
    const auto keep = session_;
    const std::size_t taken = keep->take(std::string_view(in_.data(), filled_));
    filled_ -= taken;
    if (filled_ != 0 && taken != 0) std::memmove(in_.data(), in_.data() + taken, filled_);
    read();
  }

  // An orderly end leaves the way back open; anything else does not.
  void ended(const error_code& error) {
    ended_ = true;
    if (error != asio::error::eof || session_ == nullptr) return cut();
    const auto keep = session_;
    if (!finishing_) keep->half_closed();
  }

  // --- writing

  void want_flush() {
    if (!std::exchange(flush_wanted_, true)) loop_.will_flush(self());
  }

  void write_plain() {
    error_code error;
    const std::size_t count = socket().write_some(asio::buffer(out_), error);
    loop_.counters().bytes_out.fetch_add(count, std::memory_order_relaxed);
    out_.erase(0, count);
    if (error && error != asio::error::would_block) return cut();
    if (out_.empty()) return sent_all();
    writing_ = true;
    socket().async_wait(tcp::socket::wait_write, [self = self()](const error_code& failed) {
      self->writing_ = false;
      if (failed) return self->cut();
      self->flush();
    });
  }

  void write_encrypted() {
    writing_ = true;
    std::swap(out_, writing_bytes_);
    asio::async_write(stream_, asio::buffer(writing_bytes_),
                      [self = self()](const error_code& error, std::size_t count) {
                        self->writing_ = false;
                        self->writing_bytes_.clear();
                        self->loop_.counters().bytes_out.fetch_add(count,
                                                                   std::memory_order_relaxed);
                        if (error) return self->cut();
                        self->flush();
                      });
  }

  void sent_all() {
    if (finishing_) return linger();
    if (session_ == nullptr) return;
    const auto keep = session_;
    keep->sent();
    read();  // Nothing was read while too much was unsent.
  }

  // A socket closed with unread bytes resets the connection and takes the last answer with it; so
  // only our side is closed, and what still comes is thrown away for a while.
  void linger() {
    if (std::exchange(lingering_, true)) return;
    if (session_ != nullptr) std::exchange(session_, nullptr)->lost();
    set_deadline(std::chrono::steady_clock::now() + kLingerTime);
    if constexpr (kEncrypted) {
      stream_.async_shutdown([self = self()](const error_code&) { self->cut(); });
    } else {
      error_code ignored;
      socket().shutdown(tcp::socket::shutdown_send, ignored);
      if (ended_) return cut();
      read();
    }
  }

  AsioLoop& loop_;
  const std::shared_ptr<asio::ssl::context> tls_;  // Outlives the stream made from it.
  Stream stream_;
  const MakeSession& make_session_;
  const std::string peer_;
  std::shared_ptr<Session> session_;
  std::string in_;  // as long as the room there is; filled_ bytes of it were read and not taken
  std::size_t filled_ = 0;
  std::string out_;
  std::string writing_bytes_;
  std::optional<SteadyTime> deadline_;
  bool reading_ = false;
  bool writing_ = false;
  bool paused_ = false;
  bool resuming_ = false;
  bool flush_wanted_ = false;
  bool ended_ = false;      // the peer sends no more
  bool finishing_ = false;  // the session said finish()
  bool lingering_ = false;  // our side is closed
  bool late_ = false;
  bool closed_ = false;
};

}  // namespace

std::shared_ptr<Connection> make_plain_connection(AsioLoop& loop, tcp::socket socket,
                                                  const MakeSession& make_session) {
  return std::make_shared<AsioConnection<tcp::socket>>(loop, std::move(socket), make_session,
                                                       nullptr);
}

std::shared_ptr<Connection> make_tls_connection(AsioLoop& loop, tcp::socket socket,
                                                const MakeSession& make_session,
                                                std::shared_ptr<asio::ssl::context> tls) {
  TlsStream stream(std::move(socket), *tls);
  return std::make_shared<AsioConnection<TlsStream>>(loop, std::move(stream), make_session,
                                                     std::move(tls));
}

}  // namespace hapax::net
