// Events that are stored in the application's transaction, together with the change they tell of. A
// relay (`hapax relay`) delivers them afterwards. See docs/guide/outbox.md.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include <hapax/database.h>

namespace hapax {

struct Event {
  std::string id;  // the same on every attempt to deliver it; empty = a UUIDv7 is made
  std::string type;
  std::string key;  // of the aggregate: events of one key are delivered in order of their commits
  std::string payload;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string correlation_id;
  std::string causation_id;
};

class Outbox {
 public:
  explicit Outbox(Database& database) : database_(database) {}

  // In the transaction that is open; HX1012 without one. Answers the event's id.
  [[nodiscard]] Result<std::string> publish(const Event& event);
  // All of them in one round trip, in this order; answers their ids.
  [[nodiscard]] Result<std::vector<std::string>> publish(std::span<const Event> events);

 private:
  Database& database_;
};

}  // namespace hapax
