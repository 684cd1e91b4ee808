// One connection to PostgreSQL: the only place that knows libpq. Ours or a caller's; used by one
// thread at a time. Failures come back as hapax::Error, with the SQLSTATE kept beside for who acts
// on it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hapax/result.h>

#include "tables/columns.h"

struct pg_conn;
struct pg_result;

namespace hapax::postgres {

using tables::kOnly;

// The rows that a statement answered. Text format unless the statement asked for binary.
class Rows {
 public:
  explicit Rows(pg_result* result) : result_(result) {}

  [[nodiscard]] std::size_t size() const;
  template <tables::Columns Column>
  [[nodiscard]] bool is_null(std::size_t row, Column column) const {
    return is_null_at(row, place_of(column));
  }
  template <tables::Columns Column>
  [[nodiscard]] std::string_view at(std::size_t row, Column column) const {  // NULL is ""
    return view_at(row, place_of(column));
  }
  template <tables::Columns Column>
  [[nodiscard]] std::string text(std::size_t row, Column column) const {  // NULL is ""
    return std::string(at(row, column));
  }
  template <tables::Columns Column>
  [[nodiscard]] bool is_true(std::size_t row, Column column) const {  // boolean as text
    return at(row, column) == "t";
  }
  template <tables::Columns Column>
  [[nodiscard]] std::int64_t number(std::size_t row, Column column) const {  // text; NULL is 0
    return number_at(row, place_of(column));
  }
  template <tables::Columns Column>
  [[nodiscard]] std::string bytes(std::size_t row, Column column) const {  // bytea as text
    return bytes_at(row, place_of(column));
  }
  [[nodiscard]] std::uint64_t affected() const;  // rows that it inserted, updated, deleted

 private:
  template <tables::Columns Column>
  [[nodiscard]] int place_of(Column column) const {
    const auto& names = tables::kColumnNames<Column>;
    if (fitting_ != names.data()) fit(names);
    return static_cast<int>(column);
  }
  void fit(std::span<const std::string_view> names) const;
  [[nodiscard]] bool is_null_at(std::size_t row, int column) const;
  [[nodiscard]] std::string_view view_at(std::size_t row, int column) const;
  [[nodiscard]] std::int64_t number_at(std::size_t row, int column) const;
  [[nodiscard]] std::string bytes_at(std::size_t row, int column) const;

  struct Clear {
    void operator()(pg_result* result) const;
  };
  std::unique_ptr<pg_result, Clear> result_;
  mutable const std::string_view* fitting_ = nullptr;  // the names that were compared last
};

// The values of $1, $2, …; what is given as a view must outlive the call.
class Values {
 public:
  Values& text(std::string_view value);  // of any type, as it is written in SQL
  Values& text_or_null(std::string_view value) { return value.empty() ? null() : text(value); }
  Values& bytes(std::string_view value);  // bytea
  Values& number(std::int64_t value) { return text(std::to_string(value)); }
  Values& null();

 private:
  friend class Connection;
  struct Value {
    std::string bytes;
    bool is_null = false;
    bool is_binary = false;
  };
  std::vector<Value> values_;
};

// {"a","b"}: a text[] as a value. An element without a value is NULL.
[[nodiscard]] std::string array_of(const std::vector<std::optional<std::string_view>>& elements);
// "\x6869": a bytea as text, for elements of arrays.
[[nodiscard]] std::string hex_of(std::string_view bytes);

enum class Rowed : std::uint8_t { kText, kBinary };  // how the answered columns are written

struct Query {
  std::string sql;
  Values values;
  Rowed rowed = Rowed::kText;
};

enum class Notified : std::uint8_t { kNothing, kChannel };

// What a server says beside its answers, as one line.
using Notice = std::function<void(const std::string& line)>;

struct ConnectOptions {
  std::chrono::milliseconds timeout{5'000};  // for making the connection
  std::string application_name = "hapax";
  // How long the server may be silent while a statement runs, after which the connection is lost.
  std::chrono::milliseconds silence_max = std::chrono::milliseconds::max();
  // Readable from when on a second of silence is enough, because the program is to end; -1 = none.
  int hurry_fd = -1;
  // Is told the server's warnings, from the first word on. None: standard error.
  Notice notice{};
};

class Connection {
 public:
  // `uri`: postgres://… or "host=… dbname=…", as libpq reads them.
  [[nodiscard]] static Result<Connection> open(const std::string& uri,
                                               const ConnectOptions& options = {});
  // Borrows: the owner of the connection closes it, after this object is gone.
  [[nodiscard]] static Connection borrow(pg_conn* connection);

  // One or several statements without values.
  [[nodiscard]] Result<Rows> run(const std::string& sql);
  // One statement with values, parsed each time. Leaves nothing behind in the session, so that it
  // works behind any pooler.
  [[nodiscard]] Result<Rows> ask(const std::string& sql, const Values& values,
                                 Rowed rowed = Rowed::kText);
  // Two in one round trip, each a transaction of its own; the second happens whatever becomes of
  // the first. The error of the first that failed.
  [[nodiscard]] Result<std::pair<Rows, Rows>> ask_both(const Query& first, const Query& second);
  // Once per connection; then ask_prepared() by that name.
  [[nodiscard]] Status prepare(const std::string& name, const std::string& sql);
  [[nodiscard]] Result<Rows> ask_prepared(const std::string& name, const Values& values,
                                          Rowed rowed = Rowed::kText);

  // COMMIT. A lost connection here is HX1011: the server may have committed.
  [[nodiscard]] Status commit();
  // Waits for a notification on any channel this session listens to.
  [[nodiscard]] Result<Notified> wait_notified(std::chrono::milliseconds timeout);

  [[nodiscard]] bool in_transaction() const;  // also one that has failed
  [[nodiscard]] bool lost() const;
  // HX1012 if texts do not arrive as the bytes that they are: a borrowed session may convert them,
  // and then one id is stored in several ways. Costs no round trip.
  [[nodiscard]] Status check_encoding() const;
  // Of the latest failure; empty if it came from no server.
  [[nodiscard]] const std::string& sqlstate() const { return sqlstate_; }
  // Whether the latest failure undid the transaction for the sake of another one: run it again.
  [[nodiscard]] bool is_retryable() const;
  [[nodiscard]] pg_conn* raw() const { return connection_.get(); }

 private:
  struct Finish {
    bool owned = true;
    std::shared_ptr<const Notice> notice{};  // libpq has its address
    void operator()(pg_conn* connection) const;
  };
  explicit Connection(pg_conn* connection, bool owned);
  void hear(const Notice& notice);
  [[nodiscard]] bool finish_connecting(std::chrono::milliseconds timeout);
  [[nodiscard]] pg_conn* ready();
  [[nodiscard]] pg_result* answer_of(int sent);
  [[nodiscard]] static Status check(const Values& values);
  [[nodiscard]] static int send(pg_conn* to, const std::string& sql, const Values& values,
                                Rowed rowed);
  [[nodiscard]] pg_result* next_result();
  [[nodiscard]] Result<Rows> piped_answer(bool sent);
  [[nodiscard]] bool wait_for_answer();
  Result<Rows> checked(pg_result* result);
  Error failure(const pg_result* result);

  std::unique_ptr<pg_conn, Finish> connection_;
  std::string sqlstate_;
  std::chrono::milliseconds silence_max_ = std::chrono::milliseconds::max();
  int hurry_fd_ = -1;
  bool silent_ = false;
  bool lost_ = false;
};

// The code that callers act on. HXnnn is what our own SQL functions raise.
[[nodiscard]] Errc code_of(std::string_view sqlstate);

}  // namespace hapax::postgres
