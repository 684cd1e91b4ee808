// A record on its way out of an application's outbox.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

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
  std::uint32_t attempt = 1;  // this one included; what others died over does not count
  bool blocked = false;       // an earlier record of its key waits for another attempt
  std::string flaw{};         // why it cannot be sent as it is stored; empty = it can
};

}  // namespace hapax::relay
