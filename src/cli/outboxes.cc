#include "cli/outboxes.h"

#include <memory>
#include <string>
#include <utility>

#include "cli/show.h"
#include "postgres/outbox_source.h"
#include "sqlite/outbox_source.h"

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

Result<relay::OpenedOutbox> open_postgres_outbox(const relay::OutboxAddress& address) {
  HAPAX_TRY(auto source, postgres::OutboxSource::open({.uri = address.database,
                                                       .schema = address.schema,
                                                       .owner = address.owner,
                                                       .listen = address.waits,
                                                       .silence_max = address.silence_max,
                                                       .notice = address.notice}));
  if (address.waits && !source->is_notified() && address.notice) address.notice(kPolls);
  return named(std::move(source), address.is_named);
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
  if (is_postgres(address.database)) return open_postgres_outbox(address);
  if (address.database.starts_with(kSqlite)) return open_sqlite_outbox(address);
  return Error{Errc::kInvalidArgument, "unknown outbox '" + without_password(address.database) +
                                           "'; expected postgres://… or sqlite:FILE"};
}

}  // namespace hapax::cli
