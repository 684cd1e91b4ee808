#include "cli/outboxes.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "cli/show.h"
#include "host/clock.h"
#include "ports/clock.h"
#include "postgres/outbox_source.h"
#include "postgres/table_rows.h"
#include "relay/table_source.h"
#include "sqlite/outbox_source.h"
#include "sqlite/table_rows.h"

namespace hapax::cli {

namespace {

constexpr std::string_view kSqlite = "sqlite:";
constexpr std::string_view kPolls =
    "NOTIFY does not reach this relay, as behind a pooler that changes sessions; it polls at most "
    "every 1.7 s. A direct connection, or a pooler that pools sessions, makes it sooner";

template <class Opened>
Result<relay::OpenedOutbox> named(std::unique_ptr<Opened> source, bool is_named) {
  std::string uid;
  if (is_named) {
    HAPAX_TRY(uid, source->uid());
  }
  return relay::OpenedOutbox{std::move(source), std::move(uid)};
}

// It lives for as long as the process.
ports::Clock& clock_of_tables() {
  static host::HostClock clock;
  return clock;
}

template <class Rows>
Result<relay::OpenedOutbox> table_of(std::unique_ptr<Rows> rows) {
  relay::OpenedOutbox opened;
  HAPAX_TRY(opened.uid, rows->uid());
  opened.name = rows->name();
  opened.source = std::make_unique<relay::TableSource>(std::move(rows), clock_of_tables());
  return opened;
}

Result<relay::OpenedOutbox> open_postgres_table(const relay::OutboxAddress& address) {
  HAPAX_TRY(auto rows, postgres::TableRows::open({.uri = address.database,
                                                  .table = *address.table,
                                                  .silence_max = address.silence_max,
                                                  .notice = address.notice}));
  return table_of(std::move(rows));
}

Result<relay::OpenedOutbox> open_postgres_outbox(const relay::OutboxAddress& address) {
  const auto kept = address.shortens_retention ? std::optional(address.retention) : std::nullopt;
  HAPAX_TRY(auto source, postgres::OutboxSource::open({.uri = address.database,
                                                       .schema = address.schema,
                                                       .owner = address.owner,
                                                       .listen = address.waits,
                                                       .silence_max = address.silence_max,
                                                       .kept = kept,
                                                       .notice = address.notice}));
  if (address.waits && !source->is_notified() && address.notice) address.notice(kPolls);
  return named(std::move(source), address.is_named);
}

Result<relay::OpenedOutbox> open_sqlite_table(const relay::OutboxAddress& address) {
  HAPAX_TRY(auto rows, sqlite::TableRows::open({.path = address.database.substr(kSqlite.size()),
                                                .table = *address.table}));
  return table_of(std::move(rows));
}

Result<relay::OpenedOutbox> open_sqlite_outbox(const relay::OutboxAddress& address) {
  HAPAX_TRY(auto source,
            sqlite::OutboxSource::open({.path = address.database.substr(kSqlite.size()),
                                        .prefix = address.prefix,
                                        .owner = address.owner,
                                        .retention = address.retention}));
  return named(std::move(source), address.is_named);
}

}  // namespace

Result<relay::OpenedOutbox> open_outbox(const relay::OutboxAddress& address) {
  if (is_postgres(address.database)) {
    return address.table ? open_postgres_table(address) : open_postgres_outbox(address);
  }
  if (address.database.starts_with(kSqlite)) {
    return address.table ? open_sqlite_table(address) : open_sqlite_outbox(address);
  }
  return Error{Errc::kInvalidArgument, "unknown outbox '" + without_password(address.database) +
                                           "'; expected postgres://… or sqlite:FILE"};
}

}  // namespace hapax::cli
