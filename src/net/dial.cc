#include "net/dial.h"

#include <type_traits>
#include <utility>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>
#include <poll.h>

#include "base/assert.h"
#include "base/format.h"

namespace hapax::net {

namespace {

namespace dial_asio = boost::asio;
using DialSocket = dial_asio::ip::tcp::socket;
using DialTlsStream = dial_asio::ssl::stream<DialSocket>;
using DialCode = boost::system::error_code;
using std::chrono::milliseconds;

// Runs one operation of Asio to its end, or to its time limit.
class OneAtATime {
 public:
  explicit OneAtATime(dial_asio::io_context& context) : context_(context) {}

  // `begin` starts the operation with the handler it is given.
  template <class Begin, class Cancel>
  DialCode run(milliseconds timeout, const Begin& begin, const Cancel& cancel) {
    DialCode result = dial_asio::error::would_block;
    begin([&result](const DialCode& error, const auto&...) { result = error; });
    context_.restart();
    context_.run_for(timeout);
    if (context_.stopped()) return result;
    cancel();
    context_.run();
    return dial_asio::error::timed_out;
  }

 private:
  dial_asio::io_context& context_;
};

std::string place_of(const DialTo& to) { return to.host + ":" + to.port; }

Error not_reached(const DialTo& to, const DialCode& error) {
  std::string what = "cannot reach " + place_of(to) + ": " + error.message();
  if (error == dial_asio::error::connection_refused) {
    what = "nobody listens on " + place_of(to) + " (connection refused)";
  } else if (error == dial_asio::error::host_not_found) {
    what = "there is no machine called '" + to.host + "'";
  } else if (error == dial_asio::error::timed_out) {
    what = base::format("{} did not answer within {} ms", place_of(to), to.timeout.count());
  }
  return Error{Errc::kUnavailable, std::move(what)};
}

Error no_tls(const DialTo& to, const DialCode& error) {
  return Error{Errc::kUnavailable,
               "no encrypted connection to " + place_of(to) + ": " + error.message() +
                   "; is it https there, and is its certificate's signer known?"};
}

template <class Stream>
class AsioDialed final : public Dialed {
 public:
  AsioDialed(std::unique_ptr<dial_asio::io_context> context,
             std::unique_ptr<dial_asio::ssl::context> tls, Stream stream)
      : context_(std::move(context)), tls_(std::move(tls)), stream_(std::move(stream)) {}

  Status send(std::string_view bytes, milliseconds timeout) override {
    const DialCode error = run(timeout, [&](auto done) {
      dial_asio::async_write(stream_, dial_asio::buffer(bytes), std::move(done));
    });
    if (error) return lost(error);
    return Ok{};
  }

  Result<std::size_t> receive(std::span<char> into, milliseconds timeout) override {
    HAPAX_ASSERT(!into.empty(), "there is space for what is received");
    std::size_t count = 0;
    const DialCode error = run(timeout, [&](auto done) {
      stream_.async_read_some(dial_asio::buffer(into.data(), into.size()),
                              [&count, done](const DialCode& failed, std::size_t got) mutable {
                                count = got;
                                done(failed);
                              });
    });
    const bool end =
        error == dial_asio::error::eof || error == dial_asio::ssl::error::stream_truncated;
    if (error && !end) return lost(error);
    return end ? 0 : count;
  }

  bool quiet() override {
    if constexpr (std::is_same_v<Stream, DialTlsStream>) {
      SSL* const ssl = stream_.native_handle();
      if (SSL_pending(ssl) > 0 || BIO_ctrl_pending(SSL_get_rbio(ssl)) > 0) return false;
    }
    pollfd socket{stream_.lowest_layer().native_handle(), POLLIN, 0};
    return ::poll(&socket, 1, 0) == 0;
  }

 private:
  template <class Begin>
  DialCode run(milliseconds timeout, const Begin& begin) {
    return OneAtATime(*context_).run(timeout, begin, [this] {
      DialCode ignored;
      stream_.lowest_layer().close(ignored);
    });
  }
  static Error lost(const DialCode& error) {
    return Error{Errc::kUnavailable, "the connection was lost: " + error.message()};
  }

  std::unique_ptr<dial_asio::io_context> context_;
  std::unique_ptr<dial_asio::ssl::context> tls_;  // Outlives the stream made from it.
  Stream stream_;
};

Result<DialSocket> connect(dial_asio::io_context& context, const DialTo& to) {
  DialSocket socket(context);
  dial_asio::ip::tcp::resolver resolver(context);
  DialCode error;
  const auto places = resolver.resolve(to.host, to.port, error);
  if (!error) {
    error = OneAtATime(context).run(
        to.timeout, [&](auto done) { dial_asio::async_connect(socket, places, std::move(done)); },
        [&] {
          DialCode ignored;
          socket.close(ignored);
        });
  }
  if (error) return not_reached(to, error);
  socket.set_option(dial_asio::ip::tcp::no_delay(true), error);
  return socket;
}

Result<std::unique_ptr<dial_asio::ssl::context>> trusting(const DialTls& wanted) {
  auto tls = std::make_unique<dial_asio::ssl::context>(dial_asio::ssl::context::tls_client);
  DialCode error;
  if (wanted.authorities.empty()) {
    tls->set_default_verify_paths(error);
  } else {
    tls->load_verify_file(wanted.authorities, error);
  }
  if (error) {
    return Error{Errc::kInvalidArgument, "cannot use " + wanted.authorities +
                                             " as authorities for TLS: " + error.message() +
                                             "; a PEM file is expected"};
  }
  tls->set_verify_mode(dial_asio::ssl::verify_peer);
  return tls;
}

Result<std::unique_ptr<Dialed>> encrypt(std::unique_ptr<dial_asio::io_context> context,
                                        DialSocket socket, const DialTo& to) {
  HAPAX_TRY(auto tls, trusting(*to.tls));
  DialTlsStream stream(std::move(socket), *tls);
  stream.set_verify_callback(dial_asio::ssl::host_name_verification(to.host));
  // What the macro SSL_set_tlsext_host_name does, without its C cast.
  SSL_ctrl(stream.native_handle(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
           const_cast<char*>(to.host.c_str()));
  const DialCode error = OneAtATime(*context).run(
      to.timeout,
      [&](auto done) {
        stream.async_handshake(dial_asio::ssl::stream_base::client, std::move(done));
      },
      [&] {
        DialCode ignored;
        stream.lowest_layer().close(ignored);
      });
  if (error) return no_tls(to, error);
  return std::unique_ptr<Dialed>(std::make_unique<AsioDialed<DialTlsStream>>(
      std::move(context), std::move(tls), std::move(stream)));
}

}  // namespace

Result<std::unique_ptr<Dialed>> dial(const DialTo& to) {
  auto context = std::make_unique<dial_asio::io_context>(1);
  HAPAX_TRY(DialSocket socket, connect(*context, to));
  if (to.tls) return encrypt(std::move(context), std::move(socket), to);
  return std::unique_ptr<Dialed>(
      std::make_unique<AsioDialed<DialSocket>>(std::move(context), nullptr, std::move(socket)));
}

}  // namespace hapax::net
