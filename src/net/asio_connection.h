// A connection on Asio, plain or encrypted.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>

#include "net/asio_loop.h"

namespace hapax::net {

using asio::ip::tcp;

[[nodiscard]] std::shared_ptr<Connection> make_plain_connection(AsioLoop& loop, tcp::socket socket,
                                                                const MakeSession& make_session);
[[nodiscard]] std::shared_ptr<Connection> make_tls_connection(
    AsioLoop& loop, tcp::socket socket, const MakeSession& make_session,
    std::shared_ptr<asio::ssl::context> tls);

}  // namespace hapax::net
