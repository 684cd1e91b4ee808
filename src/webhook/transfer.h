// One request on its way through libcurl, and the rules of its ending.
//
// Q1: one start is at most one request on the wire. libcurl by itself sends a request again when a
// reused connection ends before the answer, when HTTP/2 refuses a stream, and when a server asks
// for HTTP/1.1. Each repetition passes through the callback before the request (`before_request`),
// which lets one request pass and ends the transfer at the second.
//
// Q2: a request is "not sent" only if that callback was never passed: libcurl writes no byte of a
// request before it.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <curl/curl.h>

#include "webhook/exchange.h"
#include "webhook/guard.h"
#include "webhook/origins.h"
#include "webhook/renamed_url.h"

namespace hapax::webhook {

// Whom transfers tell what happens to them; called from inside libcurl.
class TransferOwner {
 public:
  TransferOwner() = default;
  TransferOwner(const TransferOwner&) = delete;
  TransferOwner& operator=(const TransferOwner&) = delete;

  virtual void moved(Stage from, Stage to) = 0;
  virtual void opened(int socket) = 0;
  virtual void closing(int socket) = 0;

 protected:
  ~TransferOwner() = default;
};

// Used again for request after request: an easy handle costs more to make than a request to send.
class Transfer {
 public:
  Transfer(TransferOwner& owner, const Guard& guard);
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  // Sets the handle up for `request`, which has passed check_request() and waited so long.
  void begin(Stage stage, std::chrono::nanoseconds waited);
  // What libcurl's ending means. Once for each begin().
  void conclude(CURLcode code);
  // The same for a transfer that is given up while it is under way, or before it began.
  void give_up(SendCause cause, std::string_view why);
  void forget();  // what belongs to one request

  [[nodiscard]] CURL* easy() const { return easy_; }
  [[nodiscard]] Stage stage() const { return stage_; }

  SendRequest request;
  SendReply reply;
  OnReply done;
  Origin* origin = nullptr;
  std::size_t place = 0;  // among the transfers under way

 private:
  void set_once();
  void set_url();
  void set_times(std::chrono::nanoseconds waited);
  void set_headers();
  void set_tls();
  void set_proxy();
  void move_to(Stage stage);
  void measure();
  [[nodiscard]] bool refused(const IpAddress& address);
  [[nodiscard]] bool judged() const { return request.guarded && request.proxy.url.empty(); }
  void take_field(std::string_view line);
  [[nodiscard]] SendCause cause_of(CURLcode code) const;

  static std::size_t take_head(char* bytes, std::size_t size, std::size_t count, void* self);
  static std::size_t take_body(char* bytes, std::size_t size, std::size_t count, void* self);
  static curl_socket_t open_socket(void* self, curlsocktype purpose, curl_sockaddr* address);
  static int close_socket(void* owner, curl_socket_t socket);
  static int before_request(void* self, char* remote, char* local, int remote_port, int local_port);

  TransferOwner& owner_;
  const Guard& guard_;
  CURL* easy_;
  Stage stage_ = Stage::kPooled;
  bool withheld_ = false;         // may_leave() said no
  bool repeated_ = false;         // libcurl wanted to send the request once more
  std::string_view guard_words_;  // why the guard refused; empty: it did not
  std::size_t head_bytes_ = 0;
  bool head_ended_ = false;
  std::string lines_;             // the header list's text, line by line, each with its zero
  std::vector<curl_slist> list_;  // points into lines_
  RenamedUrl renamed_;            // empty: the URL is used as it is
  curl_slist connect_to_{};       // points into renamed_
  EndpointTls tls_set_;           // what the handle has now
  ForwardProxy proxy_set_;
  std::array<char, CURL_ERROR_SIZE> words_{};
};

}  // namespace hapax::webhook
