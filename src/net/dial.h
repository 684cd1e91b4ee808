// A connection to another process, for a thread that waits for it.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <hapax/result.h>

namespace hapax::net {

struct DialTls {
  std::string authorities;  // PEM file of who may have signed; empty: those of the system
};

struct DialTo {
  std::string host;  // a name or an address
  std::string port;
  std::optional<DialTls> tls;
  std::chrono::milliseconds timeout{10'000};  // to be connected, all addresses of the name together
};

// A peer that does not move for a whole timeout is an error. After an error it is of no use, except
// that what came before a send failed can still be received.
class Dialed {
 public:
  Dialed() = default;
  Dialed(const Dialed&) = delete;
  Dialed& operator=(const Dialed&) = delete;
  virtual ~Dialed() = default;

  [[nodiscard]] virtual Status send(std::string_view bytes, std::chrono::milliseconds timeout) = 0;
  // How many bytes came; 0: the peer sends no more. REQUIRES: `into` is not empty.
  [[nodiscard]] virtual Result<std::size_t> receive(std::span<char> into,
                                                    std::chrono::milliseconds timeout) = 0;
  // Nothing has come that was not received, neither bytes nor the end.
  [[nodiscard]] virtual bool quiet() = 0;
};

// kUnavailable says in words what is wrong with the way there; kInvalidArgument with `authorities`.
[[nodiscard]] Result<std::unique_ptr<Dialed>> dial(const DialTo& to);

}  // namespace hapax::net
