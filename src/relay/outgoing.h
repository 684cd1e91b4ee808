// A record on its way out of an application's outbox.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <hapax/time.h>

namespace hapax::relay {

using Headers = std::vector<std::pair<std::string, std::string>>;

struct Outgoing {
  std::int64_t place = 0;  // what its source knows it by
  std::string id;          // message id, the same on every attempt
  std::string type;
  std::string key;  // order is kept per key; empty = none
  std::string payload;
  Headers headers{};
  std::string correlation_id{};
  std::string causation_id{};
  Time time{};                // of the event; the beginning of 1970: its source does not know
  std::uint32_t replay = 0;   // how often it was replayed
  std::uint32_t attempt = 1;  // this one included; what others died over does not count
  Duration tried_for{0};      // ago was its first attempt; 0: this is the first, or nobody knows
  bool blocked = false;       // an earlier record of its key waits for another attempt
  std::string flaw{};         // why it cannot be sent as it is stored; empty = it can
};

}  // namespace hapax::relay
