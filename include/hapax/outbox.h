// Events that are stored in the application's transaction, together with the change they tell of. A
// relay (`hapax relay`) delivers them afterwards. See docs/guide/outbox.md.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <hapax/database.h>

namespace hapax {

struct Event {
  // The same on every attempt to deliver it. None: a UUIDv7 is made. An empty one is refused
  // (HX1001), so that a value that was never filled in cannot turn the guarantee off.
  std::optional<std::string> id{};
  std::string type;
  // Of the aggregate: events of one key are delivered in order of their commits. None: no order. An
  // empty one is refused.
  std::optional<std::string> key{};
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
