#include "sqlite/connection.h"

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

#include <sqlite3.h>

#include "base/format.h"
#include "tables/numbered.h"

namespace hapax::sqlite {

namespace {

Errc code_of(int code) {
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Errc::kLocked;
    case SQLITE_FULL:
      return Errc::kNoSpace;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return Errc::kForbidden;
    case SQLITE_CANTOPEN:
      return Errc::kNotFound;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return Errc::kCorruption;
    case SQLITE_IOERR:
      return Errc::kUnavailable;
    default:
      return Errc::kInvalidArgument;
  }
}

std::string_view advice_of(int code) {
  if (code == SQLITE_BUSY_SNAPSHOT) {
    return "; this transaction has read before another one wrote, and cannot write any more: roll "
           "back, and begin with BEGIN IMMEDIATE";
  }
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return "; another writer held the file all the while: nothing was stored, try again";
    case SQLITE_FULL:
      return "; nothing was stored: free disk space";
    case SQLITE_READONLY:
      return "; the file or its folder cannot be written by this process";
    default:
      return {};
  }
}

int bound(sqlite3_stmt* statement, int at, const Value& value) {
  // A null pointer would be NULL, not an empty text or blob.
  const char* data = value.bytes.empty() ? "" : value.bytes.data();
  switch (value.kind) {
    case Value::Kind::kNumber:
      return ::sqlite3_bind_int64(statement, at, value.number);
    case Value::Kind::kText:
      return ::sqlite3_bind_text64(statement, at, data, value.bytes.size(), SQLITE_STATIC,
                                   SQLITE_UTF8);
    case Value::Kind::kBlob:
      return ::sqlite3_bind_blob64(statement, at, data, value.bytes.size(), SQLITE_STATIC);
    case Value::Kind::kNull:
      break;
  }
  return ::sqlite3_bind_null(statement, at);
}

Value column(sqlite3_stmt* statement, int at) {
  const int type = ::sqlite3_column_type(statement, at);
  if (type == SQLITE_NULL) return Value::null();
  if (type == SQLITE_INTEGER) return Value::of(::sqlite3_column_int64(statement, at));
  // The size counts in the encoding that was asked for last; a text may be stored as UTF-16.
  const void* const start = type == SQLITE_BLOB ? ::sqlite3_column_blob(statement, at)
                                                : ::sqlite3_column_text(statement, at);
  const auto* data = static_cast<const char*>(start);
  const auto size = static_cast<std::size_t>(::sqlite3_column_bytes(statement, at));
  const std::string_view bytes =
      data == nullptr ? std::string_view{} : std::string_view(data, size);
  return type == SQLITE_BLOB ? Value::blob(bytes) : Value::text(bytes);
}

std::shared_ptr<Heading> heading_of(sqlite3_stmt* statement) {
  auto heading = std::make_shared<Heading>();
  for (int at = 0; at < ::sqlite3_column_count(statement); ++at) {
    // An application that set full_column_names is told the table, too.
    const std::string_view name = ::sqlite3_column_name(statement, at);
    heading->names.emplace_back(name.substr(name.rfind('.') + 1));
  }
  return heading;
}

}  // namespace

void Connection::Close::operator()(sqlite3* connection) const {
  if (owned) ::sqlite3_close_v2(connection);
}

void Connection::Finalize::operator()(sqlite3_stmt* statement) const {
  ::sqlite3_finalize(statement);
}

Connection::Connection(sqlite3* connection, bool owned) : connection_(connection, Close{owned}) {}

Connection Connection::borrow(sqlite3* connection) { return {connection, false}; }

Result<Connection> Connection::open(const std::string& path, Opening opening) {
  int mode = opening == Opening::kReadOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
  if (opening == Opening::kCreate) mode |= SQLITE_OPEN_CREATE;
  sqlite3* opened = nullptr;
  const int code = ::sqlite3_open_v2(path.c_str(), &opened, mode | SQLITE_OPEN_NOMUTEX, nullptr);
  Connection made(opened, true);
  if (code != SQLITE_OK) return made.failure(code).within("open " + path);
  ::sqlite3_extended_result_codes(opened, 1);
  return made;
}

void Row::fit(std::span<const std::string_view> names) const {
  const std::vector<std::string_view> columns(heading_->names.begin(), heading_->names.end());
  tables::check_columns(names, columns);
  heading_->fitting = names.data();
}

Result<const Connection::Statement*> Connection::compiled(const std::string& sql) {
  if (const auto found = statements_.find(sql); found != statements_.end()) {
    return &found->second;
  }
  sqlite3_stmt* statement = nullptr;
  const auto since = std::chrono::steady_clock::now();
  for (int turn = 0;;) {
    const int code = ::sqlite3_prepare_v3(raw(), sql.c_str(), static_cast<int>(sql.size()),
                                          SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
    if (code == SQLITE_OK) break;
    if (!waits(code, since, turn)) return failure(code);
  }
  const auto kept = statements_.emplace(sql, Statement{{}, heading_of(statement)}).first;
  kept->second.compiled.reset(statement);
  return &kept->second;
}

// Not what can never succeed: a transaction that has read before another one wrote.
bool Connection::waits(int code, std::chrono::steady_clock::time_point since, int& turn) const {
  const int extended = ::sqlite3_extended_errcode(raw());
  if ((code & 0xff) != SQLITE_BUSY || extended == SQLITE_BUSY_SNAPSHOT) return false;
  if (std::chrono::steady_clock::now() - since >= patience_) return false;
  std::this_thread::sleep_for(std::chrono::milliseconds{std::min(1 << std::min(turn++, 4), 10)});
  return true;
}

Result<std::vector<Row>> Connection::stepped(const Statement& each) {
  sqlite3_stmt* const statement = each.compiled.get();
  std::vector<Row> rows;
  const auto since = std::chrono::steady_clock::now();
  for (int turn = 0;;) {
    const int code = ::sqlite3_step(statement);
    if (code == SQLITE_DONE) return rows;
    if (code == SQLITE_ROW) {
      std::vector<Value> values;
      for (int at = 0; at < ::sqlite3_column_count(statement); ++at) {
        values.push_back(column(statement, at));
      }
      rows.emplace_back(std::move(values), each.heading);
      continue;
    }
    Error error = failure(code);
    const bool again = rows.empty() && waits(code, since, turn);
    ::sqlite3_reset(statement);
    if (!again) return error;
  }
}

Result<std::vector<Row>> Connection::asked(const Statement& kept,
                                           const std::vector<Value>& values) {
  sqlite3_stmt* const statement = kept.compiled.get();
  int at = 0;
  for (const Value& value : values) {
    if (const int code = bound(statement, ++at, value); code != SQLITE_OK) return failure(code);
  }
  return stepped(kept);
}

Result<std::vector<Row>> Connection::ask(const std::string& sql, const std::vector<Value>& values) {
  HAPAX_TRY(const Statement* const kept, compiled(sql));
  auto rows = asked(*kept, values);
  // The statement is kept, and what it was bound to belongs to the caller.
  sqlite3_stmt* const statement = kept->compiled.get();
  ::sqlite3_reset(statement);
  ::sqlite3_clear_bindings(statement);
  return rows;
}

Status Connection::run(const std::string& sql) {
  const char* rest = sql.c_str();
  while (*rest != '\0') {
    sqlite3_stmt* statement = nullptr;
    const char* behind = rest;
    const auto since = std::chrono::steady_clock::now();
    // The first statement reads the schema, which waits while another process recovers the file.
    for (int turn = 0;;) {
      const int code = ::sqlite3_prepare_v2(raw(), rest, -1, &statement, &behind);
      if (code == SQLITE_OK) break;
      if (!waits(code, since, turn)) return failure(code);
    }
    rest = behind;
    Statement once;
    once.compiled.reset(statement);
    if (statement != nullptr) HAPAX_CHECK(stepped(once));
  }
  return Ok{};
}

std::uint64_t Connection::changes() const {
  return static_cast<std::uint64_t>(::sqlite3_changes64(raw()));
}

bool Connection::in_transaction() const { return ::sqlite3_get_autocommit(raw()) == 0; }

Error Connection::failure(int code) const {
  const int extended = ::sqlite3_extended_errcode(raw());
  // The index of the log, which is shared memory, cannot grow, either; SQLite calls that I/O.
  const bool full = (code & 0xff) == SQLITE_IOERR && ::sqlite3_system_errno(raw()) == ENOSPC;
  const std::string_view message = ::sqlite3_errmsg(raw());
  const Errc told = tables::number_of(message).value_or(code_of(code));  // by one of our triggers
  return {full ? Errc::kNoSpace : told,
          base::format("SQLite: {} [{}]{}", tables::without_number(message), extended,
                       advice_of(full ? SQLITE_FULL : extended))};
}

}  // namespace hapax::sqlite
