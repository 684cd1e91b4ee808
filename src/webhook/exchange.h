// One request to an endpoint, and how it ended.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hapax/result.h>

namespace hapax::webhook {

inline constexpr std::size_t kBodyKeptMax = 16 * 1024;   // of an answer
inline constexpr std::size_t kHeadBytesMax = 64 * 1024;  // of an answer, all 1xx heads included
inline constexpr std::chrono::milliseconds kConnectTimeout{5'000};
inline constexpr std::chrono::milliseconds kTotalTimeout{15'000};

// Files in PEM. The endpoint must prove its name by a certificate, TLS 1.2 or newer, unless the
// operator switches that off. Requests to one origin that name the same certificate file share open
// connections, whatever key file they name.
struct EndpointTls {
  std::string ca_file;  // empty: the authorities of this machine
  std::string certificate_file;
  std::string key_file;
  bool verify = true;
  std::string server_name{};  // the name that the certificate must have; empty: that of the URL

  friend bool operator==(const EndpointTls&, const EndpointTls&) = default;
};

// A forward proxy sees the name, we do not see the address. A guarded request therefore passes a
// proxy only if the operator says that the proxy refuses what the guard would refuse.
struct ForwardProxy {
  std::string url;  // empty: none; the environment is never asked
  bool filters = false;

  friend bool operator==(const ForwardProxy&, const ForwardProxy&) = default;
};

struct SendRequest {
  std::string url;
  std::string method = "POST";
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  std::chrono::milliseconds connect_timeout = kConnectTimeout;  // name, TCP and TLS
  std::chrono::milliseconds total_timeout = kTotalTimeout;      // counted from start()
  EndpointTls tls;
  ForwardProxy proxy;
  bool guarded = true;  // by the sender's Guard
  // Asked on the sender's thread right before the first byte leaves, because a lookup and a
  // connection take their time; false: the request is not sent. None: it may always leave.
  std::function<bool()> may_leave{};
};

enum class SendEnding : std::uint8_t {
  kAnswered,  // the whole answer came, or its head and as much of its body as is kept
  kNotSent,   // certainly not one byte of the request left
  kUnknown,   // bytes may have left, and there is no complete answer
};

// What to tell people and to count; whether to send again depends on the ending alone.
enum class SendCause : std::uint8_t {
  kNone,      // answered
  kInvalid,   // the request itself; sending it again does not help
  kGuard,     // the guard refuses the address
  kName,      // the host's name was not found
  kConnect,   // nobody listens there, or no way leads there
  kTls,       // no agreement on TLS, or a certificate that proves nothing
  kTimeout,   // connect or total
  kBroken,    // the connection ended before the answer did
  kProtocol,  // the answer is not HTTP, or its head is too large
  kStopped,   // the sender stopped
  kWithheld,  // may_leave() said no
};

// Since the request's turn came; zero if the phase was not reached or not needed.
struct PhaseTimes {
  std::chrono::microseconds waited{};  // from start() until then
  std::chrono::microseconds name{};
  std::chrono::microseconds connected{};
  std::chrono::microseconds tls{};
  std::chrono::microseconds first_byte{};
  std::chrono::microseconds total{};
};

struct SendReply {
  SendEnding ending = SendEnding::kNotSent;
  SendCause cause = SendCause::kNone;
  std::string reason;  // for people, one printable line; empty if answered
  int status = 0;      // of an answer's head, even if its body did not follow
  std::string retry_after, date, content_type, location;  // header fields as they came
  std::string body;                                       // at most kBodyKeptMax
  bool truncated = false;                                 // there was more of the body
  PhaseTimes times;
};

// Whether a sender would take the request: only http and https, no user in the URL, no fragment, no
// control characters; a known method; header names and values that cannot smuggle a second header
// or change the framing; a guarded request through a proxy only if the proxy filters.
[[nodiscard]] Status check_request(const SendRequest& request);

// The same without the URL, for a sender that has judged the URL before.
[[nodiscard]] Status check_besides_url(const SendRequest& request);

// An endpoint's URL alone, for those that store it. The answer is its origin, "https://host:443":
// requests of one origin share connections.
[[nodiscard]] Result<std::string> origin_of(const std::string& url);

// The word for metrics and logs: "answered", "not_sent", "unknown".
[[nodiscard]] std::string_view word_of(SendEnding ending);
[[nodiscard]] std::string_view word_of(SendCause cause);

}  // namespace hapax::webhook
