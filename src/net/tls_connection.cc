#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/ssl/stream.hpp>

#include "net/carriers.h"

namespace hapax::net {

namespace {

using boost::system::error_code;
using TlsStream = asio::ssl::stream<tcp::socket>;

constexpr std::chrono::seconds kHandshakeTime{10};
constexpr std::chrono::seconds kBriefHandshakeTime{2};

class TlsConnection final : public Connection {
 public:
  TlsConnection(AsioLoop& loop, tcp::socket socket, const MakeSession& make_session,
                std::shared_ptr<asio::ssl::context> tls, SessionKind kind)
      : Connection(loop, make_session, name_of_peer(socket)),
        tls_(std::move(tls)),
        kind_(kind),
        stream_(std::move(socket), *tls_) {}

  void start() override {
    prepare_socket(stream_.next_layer());
    const auto time = kind_ == SessionKind::kBrief ? kBriefHandshakeTime : kHandshakeTime;
    set_deadline(std::chrono::steady_clock::now() + time);
    stream_.async_handshake(TlsStream::server, [self = self()](const error_code& error) {
      if (error) return self->cut();
      self->clear_deadline();
      self->open();
    });
  }

  [[nodiscard]] bool encrypted() const override { return true; }

 private:
  std::shared_ptr<TlsConnection> self() {
    return std::static_pointer_cast<TlsConnection>(shared_from_this());
  }

  void ask_for_bytes() override {
    const std::span<char> space = lend_space();
    stream_.async_read_some(asio::buffer(space.data(), space.size()),
                            [self = self()](const error_code& error, std::size_t count) {
                              self->received(error, count);
                            });
  }

  void received(const error_code& error, std::size_t count) {
    const bool wasted = !waste_.empty();  // It was asked for before the end.
    if (!error && !wasted) return arrived(count);
    nothing_arrived();
    if (wasted) return;
    return error == asio::error::eof ? ended() : cut();
  }

  // Piece by piece: each tells that the peer takes something.
  void write() override {
    out().carrier_begins();
    const std::string_view next = out().front();
    stream_.async_write_some(asio::buffer(next.data(), next.size()),
                             [self = self()](const error_code& error, std::size_t count) {
                               self->out().carrier_is_ready();
                               self->left(count);
                               if (error) return self->cut();
                               self->flush();
                             });
  }

  // Says that no more comes, and does not wait to be told the same: OpenSSL takes bytes that come
  // instead for an error. What still comes is thrown away as it is, encrypted.
  void end_sending() override {
    waste_.resize(ReceiveBuffer::kReadBytes);
    SSL_set_shutdown(stream_.native_handle(), SSL_RECEIVED_SHUTDOWN);
    stream_.async_shutdown([self = self()](const error_code& error) {
      if (error || self->peer_ended()) return self->cut();
      error_code ignored;
      self->stream_.next_layer().shutdown(tcp::socket::shutdown_send, ignored);
      self->throw_away();
    });
  }

  void throw_away() {
    stream_.next_layer().async_read_some(asio::buffer(waste_),
                                         [self = self()](const error_code& error, std::size_t) {
                                           return error ? self->cut() : self->throw_away();
                                         });
  }

  void close() override {
    error_code ignored;
    stream_.next_layer().close(ignored);
  }

  const std::shared_ptr<asio::ssl::context> tls_;  // Outlives the stream made from it.
  const SessionKind kind_;
  TlsStream stream_;
  std::string waste_;  // not empty: our side has ended, and what comes is written over
};

}  // namespace

std::shared_ptr<Connection> make_tls_connection(AsioLoop& loop, tcp::socket socket,
                                                const MakeSession& make_session,
                                                std::shared_ptr<asio::ssl::context> tls,
                                                SessionKind kind) {
  return std::make_shared<TlsConnection>(loop, std::move(socket), make_session, std::move(tls),
                                         kind);
}

}  // namespace hapax::net
