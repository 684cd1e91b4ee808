#include "postgres/pooling.h"

#include <utility>

#include <libpq-fe.h>

namespace hapax::postgres {

namespace {

constexpr int kRounds = 8;  // Other clients of a busy pool may hide a change.

Result<std::int64_t> pid_of(Connection& connection) {
  HAPAX_TRY(const Rows rows, connection.run("SELECT pg_catalog.pg_backend_pid()"));
  return rows.number(0, kOnly);
}

Error changing() {
  return {Errc::kInvalidArgument,
          "the address leads to a connection pooler that changes sessions between transactions "
          "(pool_mode = transaction), and here prepared statements and locks of a session are "
          "needed. Connect to PostgreSQL directly, or let the pooler pool sessions (pool_mode = "
          "session)."};
}

// While `other` holds a server process in its transaction: has it got that of `connection`, or has
// `connection` got another one than before?
Result<bool> changes(Connection& connection, Connection& other) {
  HAPAX_TRY(const std::int64_t before, pid_of(connection));
  HAPAX_CHECK(other.run("BEGIN"));
  HAPAX_TRY(const std::int64_t taken, pid_of(other));
  HAPAX_TRY(const std::int64_t after, pid_of(connection));
  HAPAX_CHECK(other.run("ROLLBACK"));
  return taken == before || after != before;
}

Status check_pooler(Connection& connection, const std::string& uri, const Notice& notice) {
  HAPAX_TRY(Connection other, Connection::open(uri, {.application_name = "hapax (session check)",
                                                     .silence_max = std::chrono::seconds{5},
                                                     .notice = notice}));
  for (int round = 0; round < kRounds; ++round) {
    HAPAX_TRY(const bool changed, changes(connection, other));
    if (changed) return changing();
  }
  return Ok{};
}

}  // namespace

// Who cancels at the server itself was told the number of its process; poolers tell their own.
Status check_keeps_session(Connection& connection, const std::string& uri, const Notice& notice) {
  HAPAX_TRY(const std::int64_t pid, pid_of(connection));
  if (pid == ::PQbackendPID(connection.raw())) return Ok{};
  auto checked = check_pooler(connection, uri, notice);
  if (checked || checked.error().code == Errc::kInvalidArgument) return checked;
  return std::move(checked).error().within(
      "looking whether the pooler keeps sessions, with a second connection");
}

}  // namespace hapax::postgres
