#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/ssl/stream.hpp>

#include "net/carriers.h"

namespace hapax::net {

namespace {

using boost::system::error_code;
using TlsStream = asio::ssl::stream<tcp::socket>;

constexpr std::chrono::seconds kHandshakeTime{10};

class TlsConnection final : public Connection {
 public:
  TlsConnection(AsioLoop& loop, tcp::socket socket, const MakeSession& make_session,
                std::shared_ptr<asio::ssl::context> tls)
      : Connection(loop, make_session, name_of_peer(socket)),
        tls_(std::move(tls)),
        stream_(std::move(socket), *tls_) {}

  void start() override {
    prepare_socket(stream_.next_layer());
    set_deadline(std::chrono::steady_clock::now() + kHandshakeTime);
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
    const Room free = room();
    set_reading(true);
    stream_.async_read_some(asio::buffer(free.begin, free.size),
                            [self = self()](const error_code& error, std::size_t count) {
                              self->set_reading(false);
                              self->received(error, count);
                            });
  }

  void received(const error_code& error, std::size_t count) {
    if (!error) return arrived(count);
    return error == asio::error::eof ? ended() : cut();
  }

  // Piece by piece: each tells that the peer takes something.
  void write() override {
    set_writing(true);
    if (under_way() == 0) std::swap(writing_, out());
    stream_.async_write_some(asio::buffer(writing_) + gone_,
                             [self = self()](const error_code& error, std::size_t count) {
                               self->set_writing(false);
                               self->wrote(count);
                               if (error) return self->cut();
                               self->flush();
                             });
  }

  void wrote(std::size_t count) {
    left(count);
    gone_ += count;
    if (under_way() != 0) return;
    give_back(writing_);
    gone_ = 0;
  }
  [[nodiscard]] std::size_t under_way() const override { return writing_.size() - gone_; }

  void end_sending() override {
    stream_.async_shutdown([self = self()](const error_code&) { self->cut(); });
  }

  void close() override {
    error_code ignored;
    stream_.next_layer().close(ignored);
  }

  const std::shared_ptr<asio::ssl::context> tls_;  // Outlives the stream made from it.
  TlsStream stream_;
  std::string writing_;
  std::size_t gone_ = 0;  // bytes of it
};

}  // namespace

std::shared_ptr<Connection> make_tls_connection(AsioLoop& loop, tcp::socket socket,
                                                const MakeSession& make_session,
                                                std::shared_ptr<asio::ssl::context> tls) {
  return std::make_shared<TlsConnection>(loop, std::move(socket), make_session, std::move(tls));
}

}  // namespace hapax::net
