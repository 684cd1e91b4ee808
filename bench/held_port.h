// A port of loopback that is held, so that nobody else gets it, and answers nobody.
#pragma once

#include <cstdint>
#include <string>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "folder.h"
#include "processes.h"

namespace hapax::bench {

// Who connects to one that listens is never accepted and hangs; to others it is refused.
struct HeldPort {
  int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::uint16_t number = 0;

  explicit HeldPort(bool listens, const std::string& on = "127.0.0.1") {
    sockaddr_in address = loopback(0);
    if (::inet_pton(AF_INET, on.c_str(), &address.sin_addr) != 1) fail("no address " + on);
    socklen_t size = sizeof address;
    if (::bind(socket, reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
        ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
        (listens && ::listen(socket, 4'096) != 0)) {
      fail("no free port");
    }
    number = ntohs(address.sin_port);
  }
  ~HeldPort() { ::close(socket); }
  HeldPort(const HeldPort&) = delete;
  HeldPort& operator=(const HeldPort&) = delete;
};

}  // namespace hapax::bench
