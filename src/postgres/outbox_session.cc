#include "postgres/outbox_session.h"

#include "postgres/migrate.h"
#include "tables/migration.h"

namespace hapax::postgres {

OutboxSession::OutboxSession(std::string uri, std::string schema, ConnectOptions options,
                             std::function<void()> forget)
    : uri_(std::move(uri)),
      schema_(std::move(schema)),
      options_(std::move(options)),
      forget_(std::move(forget)) {}

Status OutboxSession::connect() {
  forget_();
  HAPAX_TRY(connection_, Connection::open(uri_, options_));
  return Ok{};
}

Status OutboxSession::reconnect() {
  return !connection_ || connection_->lost() ? connect() : Status{Ok{}};
}

Result<Connection> OutboxSession::open_beside(const std::string& name) const {
  ConnectOptions options = options_;
  options.application_name = name;
  return Connection::open(uri_, options);
}

Result<Rows> OutboxSession::ask(const Query& question) {
  HAPAX_CHECK(reconnect());
  ++questions_;
  return connection_->ask(question.sql, question.values, question.rowed);
}

Result<Rows> OutboxSession::ask(const std::string& sql, const Values& values) {
  return ask({.sql = named(sql), .values = values});
}

Result<std::pair<Rows, Rows>> OutboxSession::ask_both(const Query& first, const Query& second) {
  questions_ += 2;
  return connection_->ask_both(first, second);
}

std::string OutboxSession::named(std::string_view sql) const {
  return tables::expanded(sql, "schema", schema_);
}

Status OutboxSession::check_version(std::uint32_t needs) {
  return postgres::check_version(*connection_, schema_, needs);
}

}  // namespace hapax::postgres
