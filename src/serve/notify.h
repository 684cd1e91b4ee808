// Tells systemd how the process is: a datagram of a few bytes to the socket named in NOTIFY_SOCKET
// (sd_notify(3)). Without one, nothing.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace hapax::serve {

class Notifier {
 public:
  explicit Notifier(std::string socket) : socket_(std::move(socket)) {}
  static Notifier of_environment();

  // "READY=1", "STOPPING=1", "WATCHDOG=1". A manager that does not listen is none of our business.
  void tell(std::string_view state) const;

 private:
  std::string socket_;  // empty: nobody wants to know
};

// How often a sign of life is wanted: half of WATCHDOG_USEC, if it is meant for this process.
[[nodiscard]] std::optional<std::chrono::milliseconds> watchdog_of_environment();

}  // namespace hapax::serve
