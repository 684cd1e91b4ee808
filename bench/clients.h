// The least that a client of each protocol needs, so that the server is what is measured.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "processes.h"

namespace hapax::bench {

using Clock = std::chrono::steady_clock;

class Wire {
 public:
  explicit Wire(std::uint16_t port) : socket_(connect_to(port)) {
    if (socket_ < 0) fail("cannot connect to port " + std::to_string(port));
  }
  ~Wire() { ::close(socket_); }
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  void send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const auto sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) fail("the server closed the connection");
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
  }
  [[nodiscard]] int socket() const { return socket_; }
  // What has arrived, at least one byte.
  std::string_view receive() {
    const auto got = ::recv(socket_, buffer_.data(), buffer_.size(), 0);
    if (got <= 0) fail("the server closed the connection");
    return {buffer_.data(), static_cast<std::size_t>(got)};
  }

 private:
  int socket_;
  std::vector<char> buffer_ = std::vector<char>(std::size_t{1} << 18);
};

inline std::uint64_t spread_of(std::uint64_t i) { return i * 0x9e3779b97f4a7c15ULL; }
constexpr std::size_t kSpreadAt = 19;
constexpr std::size_t kSpreadDigits = 16;

// Ids as clients make them: 36 characters, all different.
inline std::string id_of(std::uint64_t i) {
  char text[37];
  std::snprintf(text, sizeof text, "0190a1b2-0000-7000-%016llx%c",
                static_cast<unsigned long long>(spread_of(i)), 'x');
  return text;
}

inline std::uint64_t count(std::string_view text, std::string_view what) {
  std::uint64_t found = 0;
  for (std::size_t at = text.find(what); at != std::string_view::npos;
       at = text.find(what, at + what.size())) {
    ++found;
  }
  return found;
}

// A request that is made once and sent with another id each time, so that the client takes as
// little as it can of the processors that it shares with the server.
class Stamped {
 public:
  // `make` says the request for an id.
  template <class Make>
  explicit Stamped(const Make& make) : text_(make(id_of(0))), at_(text_.find(id_of(0))) {
    at_ += kSpreadAt;
  }

  void operator()(std::string& out, std::uint64_t i) const {
    constexpr char kDigits[] = "0123456789abcdef";
    const std::size_t start = out.size();
    out += text_;
    std::uint64_t spread = spread_of(i);
    for (std::size_t d = kSpreadDigits; d-- > 0; spread >>= 4) {
      out[start + at_ + d] = kDigits[spread & 15];
    }
  }

 private:
  std::string text_;
  std::size_t at_;
};

// Counts a mark that each answer has once, in pieces that may end anywhere.
class Marks {
 public:
  explicit Marks(std::string_view mark) : mark_(mark) {}

  std::uint64_t operator()(std::string_view piece) {
    const std::size_t overlap = std::min(piece.size(), mark_.size() - 1);
    rest_.append(piece.substr(0, overlap));
    const std::uint64_t found = count(rest_, mark_) + count(piece, mark_);
    rest_.append(piece.substr(overlap));
    rest_.erase(0, rest_.size() - std::min(rest_.size(), mark_.size() - 1));
    return found;
  }

 private:
  std::string_view mark_;
  std::string rest_;
};

// Sends `request(out, i)` for i from 0 on with `window` of them under way, for a while. `answers`
// counts the answers in a piece of what came back. Returns answers per second.
template <class Request, class Answers>
double pipeline(Wire& wire, std::uint64_t window, double seconds, const Request& request,
                Answers answers) {
  std::uint64_t sent = 0;
  std::uint64_t answered = 0;
  const auto start = Clock::now();
  const auto end = start + std::chrono::duration<double>(seconds);
  std::string out;
  for (bool more = true; more || answered < sent;) {
    out.clear();
    for (; more && sent < answered + window; ++sent) request(out, sent);
    if (!out.empty()) wire.send(out);
    answered += answers(wire.receive());
    more = more && Clock::now() < end;
  }
  return static_cast<double>(answered) /
         std::chrono::duration<double>(Clock::now() - start).count();
}

inline std::string resp(const std::vector<std::string_view>& words) {
  std::string text = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string_view word : words) {
    text += "$" + std::to_string(word.size()) + "\r\n" + std::string(word) + "\r\n";
  }
  return text;
}

}  // namespace hapax::bench
