#include "net/peer_socket.h"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include "net/address.h"

namespace hapax::net {

void prepare_socket(tcp::socket& socket) {
  boost::system::error_code ignored;
  socket.native_non_blocking(true, ignored);
  socket.set_option(tcp::no_delay(true), ignored);
  socket.set_option(tcp::socket::keep_alive(true), ignored);
  // As Redis has them: a question after five minutes, and a peer that leaves three without an
  // answer has gone.
  const auto set = [&](int name, int value) {
    ::setsockopt(socket.native_handle(), IPPROTO_TCP, name, &value, sizeof value);
  };
  set(TCP_KEEPIDLE, 300);
  set(TCP_KEEPINTVL, 100);
  set(TCP_KEEPCNT, 3);
}

std::string name_of_peer(const tcp::socket& socket) {
  boost::system::error_code error;
  const tcp::endpoint peer = socket.remote_endpoint(error);
  if (error) return "unknown";
  return Address{peer.address().to_string(), peer.port()}.text();
}

}  // namespace hapax::net
