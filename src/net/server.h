// Listens, accepts, and drives sessions on a fixed number of loops.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <hapax/result.h>

#include "net/link.h"

namespace hapax::net {

struct TlsFiles {
  std::string certificate;  // PEM, the chain with the server's own first
  std::string key;          // PEM
};

// Whether a door could speak TLS with them.
[[nodiscard]] Status check_tls(const TlsFiles& files);

struct Endpoint {
  std::string address;  // "127.0.0.1:7171", "[::1]:0", ":7171"; port 0 = any free one
  MakeSession make_session;
  std::optional<TlsFiles> tls;
  // For connections beyond ServerLimits::connections_max: it says that there are too many, or
  // answers one short question, and ends within a second or two. None: they are closed at once.
  MakeSession make_brief_session{};
  // Its sessions may hold their loop up, such as for a disk: they have loops of their own, and who
  // comes to another endpoint never waits with them.
  bool may_wait = false;
};

struct ServerLimits {
  std::size_t connections_max = 10'000;           // further ones get a brief session
  std::size_t unsent_max = std::size_t{4} << 20;  // of one connection; then nothing is read from it
  std::size_t read_max = std::size_t{1} << 20;  // taken from a socket before others have their turn
  std::chrono::milliseconds stuck_max{
      60'000};                 // then one that takes nothing of what is sent is cut
  std::size_t brief_max = 32;  // brief sessions at once; further connections are closed at once
};

struct ServerStatistics {
  std::uint64_t accepted = 0;
  std::uint64_t refused = 0;  // beyond connections_max: closed, or served briefly
  std::uint64_t paused = 0;   // times that nobody was accepted for want of descriptors
  std::uint64_t open = 0;
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
};

class Server {
 public:
  // Binds every endpoint; nothing is accepted before start(). So many loops are for endpoints that
  // may wait, and as many for the others, if there are any.
  [[nodiscard]] static Result<std::unique_ptr<Server>> open(std::vector<Endpoint> endpoints,
                                                            std::size_t loops,
                                                            const ServerLimits& limits);
  Server() = default;
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  virtual ~Server() = default;

  virtual void start() = 0;
  // Closes the doors, lets sessions end what they began, cuts off what is left at the deadline.
  virtual void stop(std::chrono::milliseconds deadline) = 0;
  // Reads certificates and keys anew; on an error the old ones stay in use.
  [[nodiscard]] virtual Status reload_certificates() = 0;

  // Where each endpoint really listens, in the order given.
  [[nodiscard]] virtual std::vector<std::string> addresses() const = 0;
  [[nodiscard]] virtual std::vector<Loop*> loops() = 0;
  [[nodiscard]] virtual ServerStatistics statistics() const = 0;
};

}  // namespace hapax::net
