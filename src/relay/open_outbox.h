// How an outbox is opened by those who do not know which database it is in.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <hapax/result.h>
#include <hapax/time.h>

#include "relay/outbox_table.h"
#include "relay/source.h"

namespace hapax::relay {

struct OutboxAddress {
  std::string database;  // postgres://… or sqlite:FILE
  std::string schema = "hapax";
  std::string prefix = "hapax_";
  std::optional<OutboxTable> table{};  // some: a table that was there before
  std::string owner{};                 // LABEL#KEY; the key is new in every process
  bool waits = true;                   // for what is published: it will be asked to wait()
  bool is_named = false;               // its uid is wanted
  // How long a database may be silent, after which the connection is made anew.
  Duration silence_max = Duration::max();
  Duration retention{30LL * 24 * 3600 * 1'000};  // of what was sent, in SQLite
  // PostgreSQL: it holds there, too, where it is shorter than what `hapax migrate` said.
  bool shortens_retention = false;
  // Is told what its users should know: warnings of the server, and what makes it slow.
  std::function<void(std::string_view)> notice{};
};

struct OpenedOutbox {
  std::unique_ptr<Source> source;
  std::string uid{};   // of its tables: the same after a restore
  std::string name{};  // of a table that was there before, as the database calls it
};

using OpenOutbox = std::function<Result<OpenedOutbox>(const OutboxAddress&)>;

}  // namespace hapax::relay
