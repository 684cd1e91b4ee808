#include "postgres/table_rows.h"

#include <algorithm>
#include <array>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>

#include "base/format.h"
#include "relay/headers.h"
#include "tables/sql_name.h"

namespace hapax::postgres {

namespace {

using tables::sql_name;

constexpr std::uint32_t kTablesNeeded = 6;
constexpr Duration kTableNapFirst{20};
constexpr Duration kTableNapMax{1'000};
constexpr std::size_t kTableBytes = std::size_t{32} << 20;  // about so much is read at once
constexpr std::uint64_t kTableCounted = 100'000;
constexpr std::string_view kTakenOver = "published";
constexpr std::string_view kFailed = "failed";

// Two tables never have one name: it is a part of keys.
std::string told_name(std::string_view name) {
  const bool plain = name.find_first_of(".\"") == std::string_view::npos;
  return plain ? std::string(name) : sql_name(name);
}

Error wrong(std::string text) { return {Errc::kPreconditionFailed, std::move(text)}; }

bool is_one_of(std::string_view type, std::initializer_list<std::string_view> types) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

std::string or_null(const std::string& column) {
  return column.empty() ? "NULL::text" : sql_name(column) + "::text";
}

}  // namespace

TableRows::TableRows(TableRowsOptions options)
    : options_(std::move(options)),
      session_(options_.uri, "hapax",
               {.application_name = "hapax relay",
                .silence_max = options_.silence_max,
                .hurry_fd = signs_.end.get(),
                .notice = options_.notice},
               [this] { resolved_ = false; }) {}

Result<std::unique_ptr<TableRows>> TableRows::open(TableRowsOptions options) {
  std::unique_ptr<TableRows> rows(new TableRows(std::move(options)));
  HAPAX_CHECK(rows->resolve());
  return rows;
}

// Of each connection: it may be to another server now.
Status TableRows::resolve() {
  if (resolved_) HAPAX_CHECK(session_.reconnect());
  if (resolved_) return Ok{};
  HAPAX_CHECK(session_.reconnect());
  HAPAX_CHECK(session_.check_version(kTablesNeeded));
  HAPAX_CHECK(find_table());
  HAPAX_CHECK(check_columns());
  write_statements();
  resolved_ = true;
  return Ok{};
}

Status TableRows::find_table() {
  Values values;
  values.text(options_.table.table);
  enum Column { kOid, kKind, kSchema, kName, kColumns };
  HAPAX_TRY(const Rows rows,
            session_.ask("SELECT c.oid::pg_catalog.int8 AS oid, c.relkind AS kind, n.nspname AS "
                         "schema, c.relname AS name FROM pg_catalog.pg_class c JOIN "
                         "pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = "
                         "pg_catalog.to_regclass($1)",
                         values));
  if (rows.size() != 1) {
    return wrong(base::format("source.table: there is no table {} that this role can see",
                              options_.table.table));
  }
  if (!is_one_of(rows.at(0, kKind), {"r", "p"})) {
    return wrong(base::format("source.table: {} is no table", options_.table.table));
  }
  oid_ = rows.at(0, kOid);
  name_ = base::format("{}.{}", told_name(rows.at(0, kSchema)), told_name(rows.at(0, kName)));
  sql_name_ = base::format("{}.{}", sql_name(rows.at(0, kSchema)), sql_name(rows.at(0, kName)));
  return Ok{};
}

Result<TableRows::ColumnType> TableRows::find_column(std::string_view key,
                                                     const std::string& column) {
  Values values;
  values.text(oid_).text(column);
  enum Of { kType, kBase, kNotNull, kColumns };
  HAPAX_TRY(const Rows rows,
            session_.ask("SELECT pg_catalog.format_type(atttypid, atttypmod) AS type, "
                         "pg_catalog.format_type(atttypid, -1) AS base, attnotnull AS not_null "
                         "FROM pg_catalog.pg_attribute WHERE attrelid = $1::pg_catalog.oid AND "
                         "attname = $2 AND attnum > 0 AND NOT attisdropped",
                         values));
  if (rows.size() == 1) {
    return ColumnType{rows.text(0, kType), rows.text(0, kBase), rows.is_true(0, kNotNull)};
  }
  Values table;
  table.text(oid_);
  HAPAX_TRY(const Rows all,
            session_.ask("SELECT pg_catalog.string_agg(attname, ', ' ORDER BY attnum) FROM "
                         "pg_catalog.pg_attribute WHERE attrelid = $1::pg_catalog.oid AND attnum "
                         "> 0 AND NOT attisdropped",
                         table));
  return wrong(base::format("source.columns.{}: table {} has no column {}; it has {}", key, name_,
                            column, all.size() == 1 ? all.at(0, kOnly) : ""));
}

Status TableRows::check_columns() {
  const relay::OutboxColumns& names = options_.table.columns;
  const auto expect = [&](std::string_view key, const std::string& name, const ColumnType& column,
                          std::initializer_list<std::string_view> types,
                          std::string_view words) -> Status {
    if (is_one_of(column.base, types)) return Ok{};
    return wrong(base::format("source.columns.{}: column {} of table {} is {}; it must be {}", key,
                              name, name_, column.type, words));
  };
  HAPAX_TRY(id_, find_column("id", names.id));
  HAPAX_TRY(payload_, find_column("payload", names.payload));
  HAPAX_TRY(delivered_, find_column("delivered", names.delivered));
  HAPAX_CHECK(check_id());
  HAPAX_CHECK(expect("delivered", names.delivered, delivered_,
                     {"timestamp without time zone", "timestamp with time zone", "date", "boolean"},
                     "a timestamp, a date or a boolean"));
  for (const auto& [key, name] : {std::pair{"key", &names.key}, std::pair{"type", &names.type}}) {
    if (!name->empty()) HAPAX_CHECK(find_column(key, *name));
  }
  const auto find = [&](std::string_view key, const std::string& name,
                        std::optional<ColumnType>& column) -> Status {
    column.reset();
    if (name.empty()) return Ok{};
    HAPAX_TRY(column, find_column(key, name));
    return Ok{};
  };
  HAPAX_CHECK(find("headers", names.headers, headers_));
  if (headers_) {
    HAPAX_CHECK(expect("headers", names.headers, *headers_, {"json", "jsonb"}, "json or jsonb"));
  }
  HAPAX_CHECK(find("created", names.created, created_));
  if (created_) {
    HAPAX_CHECK(expect("created", names.created, *created_,
                       {"timestamp without time zone", "timestamp with time zone", "date"},
                       "a timestamp or a date"));
  }
  HAPAX_CHECK(find("attempts", names.attempts, attempts_));
  if (attempts_) {
    HAPAX_CHECK(expect("attempts", names.attempts, *attempts_, {"smallint", "integer", "bigint"},
                       "a whole number"));
  }
  HAPAX_CHECK(find("error", names.error, error_));
  if (error_) {
    HAPAX_CHECK(expect("error", names.error, *error_, {"text", "character varying"}, "a text"));
  }
  HAPAX_CHECK(find("status", names.status, status_));
  return check_status();
}

// What tells records apart must be there, and there once.
Status TableRows::check_id() {
  const std::string& name = options_.table.columns.id;
  Values values;
  values.text(oid_).text(name);
  HAPAX_TRY(const Rows rows,
            session_.ask("SELECT EXISTS (SELECT FROM pg_catalog.pg_index i JOIN "
                         "pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = "
                         "i.indkey[0] WHERE i.indrelid = $1::pg_catalog.oid AND i.indisunique AND "
                         "i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL AND "
                         "i.indnkeyatts = 1 AND a.attname = $2)",
                         values));
  if (rows.is_true(0, kOnly) && id_.not_null) return Ok{};
  return wrong(base::format(
      "source.columns.id: column {} of table {} must be NOT NULL and have a unique index of its "
      "own, because it tells records apart",
      name, name_));
}

// The words are written by statements that mark many rows: one that is refused would refuse all.
Status TableRows::check_status() {
  if (!status_) return Ok{};
  const auto fits = session_.ask(
      base::format("SELECT '{}'::{}::text = '{}' AND '{}'::{}::text = '{}'", kTakenOver,
                   status_->type, kTakenOver, kFailed, status_->type, kFailed),
      Values{});
  if (fits && fits->is_true(0, kOnly)) return Ok{};
  if (!fits && fits.error().code == Errc::kUnavailable) return fits.error();
  return wrong(base::format(
      "source.columns.status: column {} of table {} is {}; it must take the words {} and {}",
      options_.table.columns.status, name_, status_->type, kTakenOver, kFailed));
}

std::string TableRows::pending() const {
  const std::string column = sql_name(options_.table.columns.delivered);
  return column + (delivered_.base == "boolean" ? " IS NOT TRUE" : " IS NULL");
}

void TableRows::write_statements() {
  const relay::OutboxColumns& names = options_.table.columns;
  const std::string id = sql_name(names.id);
  const std::string order =
      (created_ ? sql_name(names.created) + " NULLS FIRST, " : std::string()) + id;
  const std::string payload =
      payload_.base == "bytea"
          ? sql_name(names.payload)
          : base::format("pg_catalog.convert_to({}::text, 'UTF8')", sql_name(names.payload));
  std::string headers = "''";
  if (headers_) {
    headers = base::format(
        "CASE WHEN {0} IS NULL OR pg_catalog.jsonb_typeof({0}::jsonb) = 'null' THEN '' WHEN "
        "pg_catalog.jsonb_typeof({0}::jsonb) <> 'object' THEN '!' ELSE (SELECT coalesce("
        "pg_catalog.string_agg(pg_catalog.octet_length(pg_catalog.convert_to(h.key, 'UTF8')) || "
        "':' || h.key || pg_catalog.octet_length(pg_catalog.convert_to(h.value, 'UTF8')) || ':' || "
        "h.value, '' ORDER BY h.key), '') FROM pg_catalog.jsonb_each_text({0}::jsonb) AS h "
        "WHERE h.value IS NOT NULL) END",
        sql_name(names.headers));
  }
  const std::string created =
      created_ ? base::format(
                     "CASE WHEN pg_catalog.isfinite({0}::timestamptz) THEN "
                     "(pg_catalog.date_part('epoch', {0}::timestamptz) * 1000)::bigint END",
                     sql_name(names.created))
               : "NULL::bigint";
  const std::string wanted = base::format(
      "SELECT {}::text AS id, {} AS payload, {} AS key, {} AS type, {} AS headers, {} AS created, "
      "row_number() OVER (ORDER BY {}) AS place FROM {} WHERE {} AND {} <> ALL ($2::{}[]) ORDER BY "
      "{} LIMIT $1",
      id, payload, or_null(names.key), or_null(names.type), headers, created, order, sql_name_,
      pending(), id, id_.base, order);
  read_sql_ = base::format(
      "SELECT id, payload, key, type, headers, created FROM (SELECT *, pg_catalog.sum("
      "coalesce(pg_catalog.octet_length(payload), 0)) OVER (ORDER BY place) AS bytes FROM ({}) AS "
      "wanted) AS measured WHERE place = 1 OR bytes <= {} ORDER BY place",
      wanted, kTableBytes);
  const std::string counted =
      attempts_ ? base::format(", {0} = coalesce({0}, 0) + 1", sql_name(names.attempts)) : "";
  const auto word = [&](std::string_view status) {
    if (!status_) return std::string();
    return base::format(", {} = '{}'::{}", sql_name(names.status), status, status_->type);
  };
  const bool boolean = delivered_.base == "boolean";
  taken_sql_ = base::format("UPDATE {} SET {} = {}{}{} WHERE {} = ANY ($1::{}[]) AND {}", sql_name_,
                            sql_name(names.delivered), boolean ? "true" : "pg_catalog.now()",
                            counted, word(kTakenOver), id, id_.base, pending());
  failed_sql_.clear();
  if (error_ || attempts_ || status_) {
    const std::string reason =
        error_ ? base::format(", {} = $2::{}", sql_name(names.error), error_->type) : "";
    failed_sql_ = base::format("UPDATE {} SET {} WHERE {} = $1::{} AND $2::text IS NOT NULL AND {}",
                               sql_name_, (counted + word(kFailed) + reason).substr(2), id,
                               id_.base, pending());
  }
  const std::string oldest =
      created_ ? base::format(
                     "(pg_catalog.date_part('epoch', pg_catalog.now() - min({0}) FILTER (WHERE "
                     "pg_catalog.isfinite({0}))) * 1000)::bigint",
                     "created")
               : "NULL::bigint";
  report_sql_ = base::format(
      "SELECT count(*) AS waiting, {} AS oldest_ms FROM (SELECT {} AS created FROM {} WHERE {} "
      "LIMIT {}) AS waiting",
      oldest, created_ ? sql_name(names.created) + "::timestamptz" : "NULL::timestamptz", sql_name_,
      pending(), kTableCounted + 1);
}

Result<std::string> TableRows::uid() {
  HAPAX_TRY(const Rows rows, session_.ask("SELECT uid FROM \"{schema}\".outbox_uid", Values{}));
  if (rows.size() == 1) return rows.text(0, kOnly);
  return wrong("the database has no uid: its row in hapax.outbox_uid was deleted");
}

Result<std::vector<relay::Outgoing>> TableRows::read(std::uint32_t most,
                                                     std::span<const std::string> without) {
  HAPAX_CHECK(resolve());
  std::vector<std::optional<std::string_view>> ids(without.begin(), without.end());
  Values values;
  values.number(most).text(array_of(ids));
  HAPAX_TRY(const Rows rows, session_.ask({.sql = read_sql_, .values = values}));
  enum Column { kId, kPayload, kKey, kType, kHeaders, kCreated, kColumns };
  std::vector<relay::Outgoing> all;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    relay::Outgoing& row = all.emplace_back();
    row.id = rows.text(i, kId);
    row.payload = rows.bytes(i, kPayload);
    row.key = rows.text(i, kKey);
    row.type = rows.text(i, kType);
    row.time = time_from_ms(rows.number(i, kCreated));
    auto headers = relay::headers_of(rows.at(i, kHeaders));
    if (headers) row.headers = *std::move(headers);
    if (!headers) row.flaw = "its headers are no JSON object";
    if (row.key.size() > relay::kKeyBytesMax) row.flaw = relay::kLongKey;
    if (row.id.empty()) row.flaw = "its id is empty";
  }
  return all;
}

Status TableRows::mark(std::span<const relay::RowMarking> rows) {
  HAPAX_CHECK(resolve());
  std::vector<std::optional<std::string_view>> taken;
  for (const relay::RowMarking& row : rows) {
    if (row.taken_over) taken.emplace_back(row.id);
  }
  if (!taken.empty()) {
    Values values;
    values.text(array_of(taken));
    HAPAX_CHECK(session_.ask({.sql = taken_sql_, .values = values}));
  }
  for (const relay::RowMarking& row : rows) {
    if (row.taken_over || failed_sql_.empty()) continue;
    Values values;
    values.text(row.id).text(row.error);
    HAPAX_CHECK(session_.ask({.sql = failed_sql_, .values = values}));
  }
  return Ok{};
}

Result<relay::LaneReport> TableRows::report() {
  HAPAX_CHECK(resolve());
  HAPAX_TRY(const Rows rows, session_.ask({.sql = report_sql_, .values = {}}));
  enum Column { kWaiting, kOldestMs, kColumns };
  relay::LaneReport lane;
  lane.waiting = std::min(static_cast<std::uint64_t>(rows.number(0, kWaiting)), kTableCounted);
  lane.more_waiting = static_cast<std::uint64_t>(rows.number(0, kWaiting)) > kTableCounted;
  if (!rows.is_null(0, kOldestMs)) {
    lane.oldest_waiting = Duration{std::max<std::int64_t>(rows.number(0, kOldestMs), 0)};
  }
  return lane;
}

// Nothing tells of an insert into a table of others, so it is looked at.
bool TableRows::wait(Duration most) {
  nap_ = std::clamp(nap_ * 2, kTableNapFirst, kTableNapMax);
  std::array<pollfd, 2> watched = {pollfd{signs_.end.get(), POLLIN, 0},
                                   pollfd{signs_.nudge.get(), POLLIN, 0}};
  const auto span = static_cast<int>(std::min(nap_, most).count());
  if (::poll(watched.data(), watched.size(), span) <= 0) return true;
  eventfd_t count = 0;
  if (watched[1].revents != 0) ::eventfd_read(signs_.nudge.get(), &count);
  return watched[0].revents != 0;
}

void TableRows::nudge() { ::eventfd_write(signs_.nudge.get(), 1); }

void TableRows::wake() { ::eventfd_write(signs_.end.get(), 1); }

}  // namespace hapax::postgres
