// Cheap, bounded questions of a checkup.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "postgres/connection.h"
#include "tables/finding.h"

namespace hapax::postgres {

using tables::Finding;
using tables::Findings;
using tables::Severity;

// Each question is asked in a read-only transaction of its own that gives up after three seconds,
// so that a checkup changes nothing, leaves nothing behind in a pooled session and stops nobody; it
// calls nothing but the server's own functions and ours, whatever is on the search_path.
class Look {
 public:
  Look(Connection& connection, std::string schema, Findings& findings)
      : connection_(connection), schema_(std::move(schema)), findings_(findings) {}

  // {schema} in the SQL is replaced. What cannot be looked at is a warning under `check`, and then
  // there is no answer.
  [[nodiscard]] std::optional<Rows> ask(std::string_view check, std::string_view sql);

  // "{schema}" replaced, for remedies, too.
  [[nodiscard]] std::string named(std::string_view sql) const;
  [[nodiscard]] Findings& findings() { return findings_; }
  [[nodiscard]] const std::string& schema() const { return schema_; }
  [[nodiscard]] Connection& connection() { return connection_; }

 private:
  Connection& connection_;
  std::string schema_;
  Findings& findings_;
};

}  // namespace hapax::postgres
