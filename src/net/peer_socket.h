// The socket of an accepted connection, whatever carries its bytes.
#pragma once

#include <string>

#include <boost/asio/ip/tcp.hpp>

namespace hapax::net {

using boost::asio::ip::tcp;

// As every connection wants its socket: it never blocks, sends at once, and notices in the end that
// a peer has gone without a word.
void prepare_socket(tcp::socket& socket);
[[nodiscard]] std::string name_of_peer(const tcp::socket& socket);  // "127.0.0.1:40112"

}  // namespace hapax::net
