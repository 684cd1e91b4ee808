#include "serve/notify.h"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace hapax::serve {

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::optional<std::int64_t> number(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

Notifier Notifier::of_environment() { return Notifier(variable("NOTIFY_SOCKET")); }

void Notifier::tell(std::string_view state) const {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_.empty() || socket_.size() >= sizeof address.sun_path) return;
  std::memcpy(address.sun_path, socket_.data(), socket_.size());
  if (address.sun_path[0] == '@') address.sun_path[0] = '\0';  // of the abstract namespace
  const int link = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (link < 0) return;
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size());
  const auto sent = ::sendto(link, state.data(), state.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                             reinterpret_cast<const sockaddr*>(&address), size);
  static_cast<void>(sent);
  ::close(link);
}

std::optional<std::chrono::milliseconds> watchdog_of_environment() {
  const auto span = number(variable("WATCHDOG_USEC"));
  if (!span || *span <= 0) return std::nullopt;
  const std::string process = variable("WATCHDOG_PID");
  if (!process.empty() && number(process) != ::getpid()) return std::nullopt;
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::microseconds{*span}) /
         2;
}

}  // namespace hapax::serve
