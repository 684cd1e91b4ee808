// A table of an application that was there before us, as an outbox: which column holds what.
#pragma once

#include <string>

namespace hapax::relay {

// Empty: it has no such column.
struct OutboxColumns {
  std::string id;
  std::string payload;
  std::string delivered;  // null or false until the row was taken over
  std::string key;
  std::string type;
  std::string headers;
  std::string created;
  std::string attempts;
  std::string error;
  std::string status;
  friend bool operator==(const OutboxColumns&, const OutboxColumns&) = default;
};

struct OutboxTable {
  std::string table;
  OutboxColumns columns;
  friend bool operator==(const OutboxTable&, const OutboxTable&) = default;
};

}  // namespace hapax::relay
