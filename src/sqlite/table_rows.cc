#include "sqlite/table_rows.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "base/hex.h"
#include "base/words.h"
#include "relay/headers.h"
#include "tables/sql_name.h"

namespace hapax::sqlite {

namespace {

using tables::sql_name;

constexpr std::uint32_t kTablesNeeded = 5;
constexpr std::size_t kTableBytes = std::size_t{32} << 20;  // about so much is read at once
constexpr std::int64_t kTableCounted = 100'000;

Error wrong(std::string text) { return {Errc::kPreconditionFailed, std::move(text)}; }

std::string or_null(const std::string& column) {
  return column.empty() ? "NULL" : base::format("CAST({} AS TEXT)", sql_name(column));
}

// Milliseconds since 1970 of a text; of anything else nothing is known.
std::string moment(const std::string& column) {
  if (column.empty()) return "NULL";
  return base::format(
      "CASE WHEN typeof({0}) = 'text' THEN CAST(round((julianday({0}) - 2440587.5) * 86400000) AS "
      "INTEGER) END",
      sql_name(column));
}

// As a list of JSON: hexadecimal needs no escapes.
std::string hex_list(std::span<const std::string> texts) {
  std::string list = "[";
  for (const std::string& text : texts) {
    base::append_format(list, "{}\"{}\"", list.size() == 1 ? "" : ",", base::hex(text));
  }
  return list + ']';
}

}  // namespace

TableRows::TableRows(TableRowsOptions options, OutboxFile file)
    : options_(std::move(options)), file_(std::move(file)), watch_(options_.path) {}

Result<std::unique_ptr<TableRows>> TableRows::open(TableRowsOptions options) {
  HAPAX_TRY(OutboxFile file, OutboxFile::open(options.path, "hapax_", kTablesNeeded));
  std::unique_ptr<TableRows> rows(new TableRows(std::move(options), std::move(file)));
  HAPAX_CHECK(rows->check());
  return rows;
}

Status TableRows::check() {
  HAPAX_CHECK(find_table());
  const relay::OutboxColumns& names = options_.table.columns;
  HAPAX_CHECK(find_column("id", names.id));
  HAPAX_CHECK(check_id());
  HAPAX_CHECK(find_column("payload", names.payload));
  HAPAX_TRY(const std::string delivered, find_column("delivered", names.delivered));
  const auto declared = [&](std::string_view word) {
    return delivered.find(word) != std::string::npos;
  };
  is_boolean_ = declared("bool");
  if (!is_boolean_ && !declared("time") && !declared("date") && !declared("text")) {
    return wrong(base::format(
        "source.columns.delivered: column {} of table {} is declared as '{}'; it must be a "
        "timestamp, a date, a text or a boolean",
        names.delivered, name_, delivered));
  }
  for (const auto& [key, name] :
       {std::pair{"key", &names.key}, std::pair{"type", &names.type},
        std::pair{"headers", &names.headers}, std::pair{"created", &names.created},
        std::pair{"attempts", &names.attempts}, std::pair{"error", &names.error},
        std::pair{"status", &names.status}}) {
    if (!name->empty()) HAPAX_CHECK(find_column(key, *name));
  }
  write_statements();
  return Ok{};
}

Status TableRows::find_table() {
  enum Column { kName, kWr, kColumns };
  HAPAX_TRY(const auto rows,
            file_.ask("SELECT name, wr FROM pragma_table_list WHERE schema = 'main' AND type = "
                      "'table' AND name = ?1 COLLATE NOCASE",
                      {Value::text(options_.table.table)}));
  if (rows.size() != 1) {
    return wrong(
        base::format("source.table: there is no table {} in the file", options_.table.table));
  }
  name_ = rows[0][kName].bytes;
  has_rowid_ = rows[0][kWr].number == 0;
  return Ok{};
}

// As what it is declared, in small letters.
Result<std::string> TableRows::find_column(std::string_view key, const std::string& column) {
  enum Column { kName, kType, kColumns };
  HAPAX_TRY(const auto rows,
            file_.ask("SELECT name, type FROM pragma_table_info(?1)", {Value::text(name_)}));
  std::string all;
  for (const Row& row : rows) {
    if (base::lower(row[kName].bytes) == base::lower(column)) return base::lower(row[kType].bytes);
    base::append_format(all, "{}{}", all.empty() ? "" : ", ", row[kName].bytes);
  }
  return wrong(base::format("source.columns.{}: table {} has no column {}; it has {}", key, name_,
                            column, all));
}

// What tells records apart must be there once.
Status TableRows::check_id() {
  HAPAX_TRY(const auto rows,
            file_.ask("SELECT EXISTS (SELECT 1 FROM pragma_index_list(?1) AS i WHERE i.\"unique\" "
                      "AND NOT i.partial AND (SELECT group_concat(lower(c.name)) FROM "
                      "pragma_index_info(i.name) AS c) = lower(?2)) OR (SELECT count(*) = 1 AND "
                      "min(lower(t.name)) = lower(?2) FROM pragma_table_info(?1) AS t WHERE t.pk > "
                      "0)",
                      {Value::text(name_), Value::text(options_.table.columns.id)}));
  if (rows.at(0)[kOnly].number != 0) return Ok{};
  return wrong(
      base::format("source.columns.id: column {} of table {} must have a unique index of its own, "
                   "because it tells records apart",
                   options_.table.columns.id, name_));
}

void TableRows::write_statements() {
  const relay::OutboxColumns& names = options_.table.columns;
  const std::string id = sql_name(names.id);
  const std::string delivered = sql_name(names.delivered);
  const std::string pending =
      is_boolean_ ? base::format("({0} IS NULL OR {0} = 0)", delivered) : delivered + " IS NULL";
  const std::string order =
      (names.created.empty() ? std::string() : sql_name(names.created) + ", ") +
      (has_rowid_ ? std::string("rowid") : id);
  std::string headers = "''";
  if (!names.headers.empty()) {
    headers = base::format(
        "CASE WHEN {0} IS NULL THEN '' WHEN CASE WHEN json_valid({0}) THEN json_type({0}) END IS "
        "NOT 'object' THEN '!' ELSE coalesce((SELECT group_concat(length(CAST(h.key AS BLOB)) || "
        "':' || h.key || length(CAST(h.value AS BLOB)) || ':' || h.value, '') FROM json_each({0}) "
        "AS h WHERE h.value IS NOT NULL), '') END",
        sql_name(names.headers));
  }
  const std::string id_text = base::format(
      "CASE typeof({0}) WHEN 'blob' THEN '' ELSE coalesce(CAST({0} AS TEXT), '') END", id);
  const std::string wanted = base::format(
      "SELECT {0} AS id, CAST({1} AS BLOB) AS payload, {2} AS key, {3} AS type, {4} AS headers, "
      "{5} AS created, row_number() OVER (ORDER BY {6}) AS place FROM {7} WHERE {8} AND "
      "lower(hex({0})) NOT IN (SELECT value FROM json_each(?2)) ORDER BY {6} LIMIT ?1",
      id_text, sql_name(names.payload), or_null(names.key), or_null(names.type), headers,
      moment(names.created), order, sql_name(name_), pending);
  read_sql_ = base::format(
      "SELECT id, payload, key, type, headers, created FROM (SELECT *, "
      "sum(coalesce(length(payload), 0)) OVER (ORDER BY place) AS bytes FROM ({})) WHERE place = 1 "
      "OR bytes <= {} ORDER BY place",
      wanted, kTableBytes);
  const std::string counted = names.attempts.empty() ? ""
                                                     : base::format(", {0} = coalesce({0}, 0) + 1",
                                                                    sql_name(names.attempts));
  const auto word = [&](std::string_view status) {
    return names.status.empty() ? "" : base::format(", {} = '{}'", sql_name(names.status), status);
  };
  // A column that declares no type has numbers beside texts, and its collation may know less apart.
  const std::string that_row = base::format(
      "{0} IN (?1, +CAST(?1 AS NUMERIC)) AND CAST({0} AS TEXT) COLLATE BINARY = ?1", id);
  taken_sql_ = base::format("UPDATE {} SET {} = {}{}{} WHERE {} AND {}", sql_name(name_), delivered,
                            is_boolean_ ? "1" : "CURRENT_TIMESTAMP", counted, word("published"),
                            that_row, pending);
  std::string set = counted + word("failed");
  if (!names.error.empty()) set += base::format(", {} = ?2", sql_name(names.error));
  failed_sql_.clear();
  if (!set.empty()) {
    failed_sql_ = base::format("UPDATE {} SET {} WHERE {} AND ?2 IS NOT NULL AND {}",
                               sql_name(name_), set.substr(2), that_row, pending);
  }
  report_sql_ = base::format(
      "SELECT count(*) AS waiting, CAST(round((julianday('now') - 2440587.5) * 86400000) AS "
      "INTEGER) - min(created) AS oldest_ms FROM (SELECT {} AS created FROM {} WHERE {} LIMIT {})",
      moment(names.created), sql_name(name_), pending, kTableCounted + 1);
}

Result<std::string> TableRows::uid() {
  HAPAX_TRY(const auto rows, file_.ask("SELECT uid FROM {prefix}outbox_uid", {}));
  if (rows.size() == 1) return rows[0][kOnly].bytes;
  return wrong("the file has no uid: its row in hapax_outbox_uid was deleted");
}

Result<std::vector<relay::Outgoing>> TableRows::read(std::uint32_t most,
                                                     std::span<const std::string> without) {
  enum Column { kId, kPayload, kKey, kType, kHeaders, kCreated, kColumns };
  HAPAX_TRY(const auto rows,
            file_.ask(read_sql_, {Value::of(std::int64_t{most}), Value::text(hex_list(without))}));
  std::vector<relay::Outgoing> all;
  for (const Row& from : rows) {
    relay::Outgoing& row = all.emplace_back();
    row.id = from[kId].bytes;
    row.payload = from[kPayload].bytes;
    row.key = from[kKey].bytes;
    row.type = from[kType].bytes;
    row.time = time_from_ms(from[kCreated].number);
    auto headers = relay::headers_of(from[kHeaders].bytes);
    if (headers) row.headers = *std::move(headers);
    if (!headers) row.flaw = "its headers are no JSON object";
    if (row.key.size() > relay::kKeyBytesMax) row.flaw = relay::kLongKey;
    if (row.id.empty()) row.flaw = "its id is empty, or a blob";
  }
  return all;
}

Status TableRows::mark(std::span<const relay::RowMarking> rows) {
  const auto act = [&]() -> Status {
    for (const relay::RowMarking& row : rows) {
      if (row.taken_over) {
        HAPAX_CHECK(file_.ask(taken_sql_, {Value::text(row.id)}));
      } else if (!failed_sql_.empty()) {
        HAPAX_CHECK(file_.ask(failed_sql_, {Value::text(row.id), Value::text(row.error)}));
      }
    }
    return Ok{};
  };
  return file_.in_write(act);
}

Result<relay::LaneReport> TableRows::report() {
  enum Column { kWaiting, kOldestMs, kColumns };
  HAPAX_TRY(const auto rows, file_.ask(report_sql_, {}));
  relay::LaneReport lane;
  const Row& row = rows.at(0);
  lane.waiting = static_cast<std::uint64_t>(std::min(row[kWaiting].number, kTableCounted));
  lane.more_waiting = row[kWaiting].number > kTableCounted;
  if (!row[kOldestMs].is_null()) {
    lane.oldest_waiting = Duration{std::max<std::int64_t>(row[kOldestMs].number, 0)};
  }
  return lane;
}

}  // namespace hapax::sqlite
