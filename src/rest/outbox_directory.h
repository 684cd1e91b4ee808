// Outboxes in databases of applications that the server knows, for the routes that ask.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <hapax/time.h>

namespace hapax::rest {

// What the database said last.
struct DatabaseOutbox {
  std::string workflow;  // that delivers it
  std::uint64_t pending = 0;
  std::uint64_t published = 0;
  std::uint64_t failed = 0;
  std::optional<Time> oldest{};  // since when the oldest pending event waits
  std::optional<Time> asked{};   // nothing: it never said anything
  std::string trouble{};         // why it says nothing now; empty: it does
};

// Those of a tenant; never waits. None: the server knows no databases.
using OutboxDirectory = std::function<std::vector<DatabaseOutbox>(std::string_view tenant)>;

}  // namespace hapax::rest
