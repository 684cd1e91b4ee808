// One connection to an SQLite file: the only place that knows sqlite3.h. Ours or a caller's; used
// by one thread at a time. What another writer holds is waited for, with a bound.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hapax/result.h>

#include "tables/columns.h"

struct sqlite3;
struct sqlite3_stmt;

namespace hapax::sqlite {

using tables::kOnly;

// What a column holds, or a parameter is given.
struct Value {
  enum class Kind : std::uint8_t { kNull, kNumber, kText, kBlob };
  Kind kind = Kind::kNull;
  std::int64_t number = 0;  // 0 for what is none
  std::string bytes;        // of text and blobs

  static Value null() { return {}; }
  static Value of(std::int64_t number) { return {Kind::kNumber, number, {}}; }
  static Value text(std::string_view text) { return {Kind::kText, 0, std::string(text)}; }
  static Value blob(std::string_view bytes) { return {Kind::kBlob, 0, std::string(bytes)}; }
  static Value text_or_null(std::string_view text) {
    return text.empty() ? null() : Value::text(text);
  }
  static Value blob_or_null(std::string_view bytes) { return bytes.empty() ? null() : blob(bytes); }
  [[nodiscard]] bool is_null() const { return kind == Kind::kNull; }
};

// What a statement's columns are called. Of one connection, and so used by one thread at a time.
struct Heading {
  std::vector<std::string> names;
  const std::string_view* fitting = nullptr;  // the enum's names that were compared last
};

class Row {
 public:
  Row(std::vector<Value> values, std::shared_ptr<Heading> heading)
      : values_(std::move(values)), heading_(std::move(heading)) {}

  template <tables::Columns Column>
  [[nodiscard]] const Value& operator[](Column column) const {
    const auto& names = tables::kColumnNames<Column>;
    if (heading_->fitting != names.data()) fit(names);
    return values_[static_cast<std::size_t>(column)];
  }

 private:
  void fit(std::span<const std::string_view> names) const;

  std::vector<Value> values_;
  std::shared_ptr<Heading> heading_;
};

enum class Opening : std::uint8_t { kReadOnly, kWrite, kCreate };  // kCreate: if there is none

class Connection {
 public:
  [[nodiscard]] static Result<Connection> open(const std::string& path,
                                               Opening opening = Opening::kCreate);
  // Borrows: the owner closes it, after this object is gone (it keeps statements).
  [[nodiscard]] static Connection borrow(sqlite3* connection);

  // How long another writer is waited for before HX1023.
  void set_patience(std::chrono::milliseconds patience) { patience_ = patience; }

  // Statements without values, one after the other.
  [[nodiscard]] Status run(const std::string& sql);
  // One statement, compiled once and kept.
  [[nodiscard]] Result<std::vector<Row>> ask(const std::string& sql,
                                             const std::vector<Value>& values);
  [[nodiscard]] std::uint64_t changes() const;  // rows that the latest statement changed
  [[nodiscard]] bool in_transaction() const;
  [[nodiscard]] sqlite3* raw() const { return connection_.get(); }

 private:
  struct Close {
    bool owned = true;
    void operator()(sqlite3* connection) const;
  };
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  Connection(sqlite3* connection, bool owned);
  struct Statement {
    std::unique_ptr<sqlite3_stmt, Finalize> compiled;
    std::shared_ptr<Heading> heading;
  };
  Result<const Statement*> compiled(const std::string& sql);
  Result<std::vector<Row>> asked(const Statement& statement, const std::vector<Value>& values);
  Result<std::vector<Row>> stepped(const Statement& statement);
  [[nodiscard]] bool waits(int code, std::chrono::steady_clock::time_point since, int& turn) const;
  Error failure(int code) const;

  std::unique_ptr<sqlite3, Close> connection_;
  std::map<std::string, Statement, std::less<>> statements_;
  std::chrono::milliseconds patience_{5'000};
};

}  // namespace hapax::sqlite
