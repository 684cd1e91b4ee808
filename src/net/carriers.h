// The two kinds of connection: over a socket as it is, and over TLS.
#pragma once

#include <cstdint>
#include <memory>

#include <boost/asio/ssl/context.hpp>

#include "net/connection.h"
#include "net/peer_socket.h"

namespace hapax::net {

// A connection beyond the limit has a brief session and little time for its handshake: it takes the
// place of others that would be told that there are too many.
enum class SessionKind : std::uint8_t { kUsual, kBrief };

[[nodiscard]] std::shared_ptr<Connection> make_plain_connection(AsioLoop& loop, tcp::socket socket,
                                                                const MakeSession& make_session);
[[nodiscard]] std::shared_ptr<Connection> make_tls_connection(
    AsioLoop& loop, tcp::socket socket, const MakeSession& make_session,
    std::shared_ptr<asio::ssl::context> tls, SessionKind kind);

}  // namespace hapax::net
