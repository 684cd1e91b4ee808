// Whose turn it is: requests wait here, by origin, until a connection may be used or opened for
// them. Pure bookkeeping; no libcurl, no clock.
//
// Origins take turns, one request each, so that a long queue of one holds up no other. An origin
// whose names or connects hang can fill the places for connects, but an origin with an open
// connection needs no such place.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <hapax/result.h>

#include "webhook/exchange.h"

namespace hapax::webhook {

// How far a request has come. kPooled probably finds an open connection.
enum class Stage : std::uint8_t { kPooled, kResolving, kConnecting, kSent };

struct SendLimits {
  std::size_t under_way = 8'192;
  std::size_t per_origin = 64;  // requests under way; over HTTP/1.1 as many connections
  std::size_t lookups = 256;    // libcurl runs a thread for each
  std::size_t connects = 2'048;
};

// Runs exactly once for each request, on the sender's thread.
using OnReply = std::function<void(SendReply)>;

struct WaitingRequest {
  SendRequest request;
  OnReply done;
  std::chrono::steady_clock::time_point started;
};

struct Origin {
  enum class Place : std::uint8_t { kNowhere, kReady, kParked };

  std::size_t number = 0;  // counted up
  std::deque<WaitingRequest> waiting;
  std::size_t under_way = 0;
  std::size_t pooled = 0;  // connections that are probably open and idle
  Place place = Place::kNowhere;
};

class Origins {
 public:
  explicit Origins(SendLimits limits) : limits_(limits) {}

  // The origin of a URL, which stays where it is while it has requests. An error: see origin_of().
  [[nodiscard]] Result<Origin*> of(const std::string& url);
  void wait(Origin& origin, WaitingRequest request);

  struct Begun {
    Origin* origin;
    WaitingRequest waiting;
    Stage stage;
  };
  // The next request that may begin, which then counts as under way.
  [[nodiscard]] std::optional<Begun> next();
  // True: a place for a connect became free that somebody waits for.
  [[nodiscard]] bool moved(Stage from, Stage to);
  // A request that next() handed out has ended; `kept`: its connection can serve another.
  void ended(Origin& origin, Stage stage, bool kept);

  // All that wait, for a sender that begins nothing more.
  [[nodiscard]] std::vector<WaitingRequest> take_waiting();

 private:
  void enqueue(Origin& origin);
  [[nodiscard]] Origin* pick();
  [[nodiscard]] bool may_connect() const {
    return resolving_ < limits_.lookups && connecting_ < limits_.connects;
  }
  [[nodiscard]] std::size_t* count_of(Stage stage);
  void sweep();

  SendLimits limits_;
  std::unordered_map<std::string, std::unique_ptr<Origin>> origins_;
  std::unordered_map<std::string, Origin*> by_url_;
  std::deque<Origin*> ready_;
  std::deque<Origin*>
      parked_;  // until there is a place for a connect; skip whose place says not so
  std::size_t made_ = 0;
  std::size_t under_way_ = 0;
  std::size_t resolving_ = 0;
  std::size_t connecting_ = 0;
};

}  // namespace hapax::webhook
