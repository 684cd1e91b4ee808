// Calls a Hapax server over HTTP, and waits. For one thread.
//
// Every call that changes something carries an id (of its own, or as Idempotency-Key), so a call
// whose answer was lost is made again: the server answers what it answered the first time.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <hapax/result.h>

#include "client/escape.h"
#include "client/url.h"
#include "http/message.h"
#include "net/dial.h"

namespace hapax::client {

struct ClientOptions {
  Url url;
  std::string token;        // empty: none is sent
  std::string authorities;  // PEM file, for https; empty: those of the system
  std::chrono::milliseconds connect_time{5'000};
  std::chrono::milliseconds answer_time{30'000};
  unsigned attempts_max = 5;  // of a call whose answer is lost; one on a connection that had been
                              // closed while it rested is not counted
  std::function<void(std::chrono::milliseconds)> pause;  // between attempts; none = sleep
};

// Texts of others are encoded() in the path, and as_value() in the key and the fields.
struct ApiCall {
  std::string method = "GET";
  std::string path;  // "/api/v1/streams", with its query
  std::string body{};
  std::string type = "application/json";
  std::string key{};                   // Idempotency-Key; empty: none is sent
  std::chrono::milliseconds waits{0};  // how long the server may wait on purpose
  std::chrono::milliseconds time{0};   // of the whole call; 0: only what the options say counts
  std::function<bool()> may_send{};    // asked right before each attempt sends; none = yes
  http::Fields fields{};               // further header fields
};

struct Reply {
  unsigned status = 0;
  http::Fields fields;
  std::string body;

  [[nodiscard]] bool good() const { return status >= 200 && status < 300; }
};

class Client {
 public:
  explicit Client(ClientOptions options) : options_(std::move(options)) {}

  // kUnavailable: nobody is there, the answer was lost each time, or it may not be sent; the text
  // says which, and whether it may have happened. kUnsupportedMedia: what answers speaks no HTTP.
  // kInvalidArgument: the file of authorities is of no use; or something in the head of the request
  // would not arrive as it is, and nothing was sent.
  [[nodiscard]] Result<Reply> call(const ApiCall& call);

  [[nodiscard]] const ClientOptions& options() const { return options_; }

 private:
  // For one move of the peer, and for all together.
  struct Limits {
    std::chrono::milliseconds move;
    std::chrono::steady_clock::time_point end;
    [[nodiscard]] std::chrono::milliseconds left() const;
  };
  struct Attempt {
    std::optional<Error> lost;
    Reply reply{};
    bool sent = false;      // at least a part of the request, perhaps
    bool answered = false;  // at least a part of the answer came
  };

  [[nodiscard]] Limits limits_of(const ApiCall& call) const;
  [[nodiscard]] Status connect(const Limits& limits);
  [[nodiscard]] Attempt attempt(const ApiCall& call, const std::string& text, const Limits& limits);
  [[nodiscard]] Status exchange(const std::string& text, const Limits& limits, Attempt& attempt);
  [[nodiscard]] Result<std::string> text_of(const ApiCall& call) const;

  const ClientOptions options_;
  std::unique_ptr<net::Dialed> link_;
};

}  // namespace hapax::client
