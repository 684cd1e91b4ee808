#include "postgres/connection.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <utility>

#include <libpq-fe.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/assert.h"
#include "base/format.h"
#include "base/hex.h"
#include "tables/numbered.h"

namespace hapax::postgres {

namespace {

constexpr Oid kUntyped = 0;
constexpr Oid kBytea = 17;

constexpr std::chrono::milliseconds kHurriedSilenceMax{1'000};

int cell(std::size_t index) { return static_cast<int>(index); }

// Characters that could end the line, or command the terminal that shows it, become spaces.
std::string one_line(std::string_view text) {
  std::string line(text);
  for (char& c : line) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) c = ' ';
  }
  return line;
}

// PostgreSQL ends its messages with a newline, and says "ERROR:  " before them.
std::string trimmed(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  return one_line(text);
}

// libpq quotes the part of a URI that it cannot read, which may be the password.
std::string without_quotes(std::string text, const std::string& uri) {
  for (std::size_t open = 0; (open = text.find('"', open)) != std::string::npos;) {
    const std::size_t close = text.find('"', open + 1);
    if (close == std::string::npos) break;
    const std::string quoted = text.substr(open + 1, close - open - 1);
    const bool secret = quoted.find('%') != std::string::npos || quoted == uri;
    if (secret) text.replace(open + 1, quoted.size(), "…");
    open = text.find('"', open + 1) + 1;
  }
  return text;
}

std::string without(std::string text, const char* secret) {
  constexpr std::string_view kHidden = "…";
  const std::string_view hidden = secret == nullptr ? "" : secret;
  if (hidden.empty()) return text;
  for (std::size_t at = 0; (at = text.find(hidden, at)) != std::string::npos;) {
    text.replace(at, hidden.size(), kHidden);
    at += kHidden.size();
  }
  return text;
}

// Somebody else's words in our log: as much of them as tells what is the matter.
std::string short_of(std::string text) {
  constexpr std::size_t kMost = 500;
  if (text.size() <= kMost) return text;
  std::size_t end = kMost;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) --end;
  return text.substr(0, end) + "…";
}

void to_stderr(const std::string& line) { std::fprintf(stderr, "hapax: %s\n", line.c_str()); }

// Whether a name stands for more than one address, as one with IPv4 and IPv6 does.
bool has_several_addresses(const std::string& host) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), nullptr, &wanted, &found) != 0) return false;
  const bool several = found != nullptr && found->ai_next != nullptr;
  ::freeaddrinfo(found);
  return several;
}

bool has_several_servers(PGconn* connection) {
  PQconninfoOption* const all = ::PQconninfo(connection);
  std::string host;
  std::string address;
  for (const PQconninfoOption* one = all; one != nullptr && one->keyword != nullptr; ++one) {
    const std::string_view name = one->keyword;
    if (one->val == nullptr) continue;
    if (name == "host") host = one->val;
    if (name == "hostaddr") address = one->val;
  }
  ::PQconninfoFree(all);
  const std::string& servers = address.empty() ? host : address;
  const bool by_file = servers.empty() || servers.front() == '/' || servers.front() == '@';
  return servers.find(',') != std::string::npos ||
         (!by_file && address.empty() && has_several_addresses(host));
}

std::string server_of(const PGconn* connection) {
  const auto text = [](const char* part) { return std::string(part == nullptr ? "" : part); };
  return one_line(text(::PQhost(connection)) + ":" + text(::PQport(connection)));
}

// 0: the time is over.
int poll_until(pollfd& watched, std::chrono::steady_clock::time_point until) {
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    if (left <= std::chrono::milliseconds{0}) return 0;
    const int ready = ::poll(&watched, 1, static_cast<int>(left.count()));
    if (ready != -1 || errno != EINTR) return ready;
  }
}

std::string_view field(const PGresult* result, int code) {
  const char* text = result == nullptr ? nullptr : ::PQresultErrorField(result, code);
  return text == nullptr ? std::string_view{} : std::string_view(text);
}

// What somebody has to do, where the server's own words do not say it.
std::string_view advice_of(std::string_view sqlstate) {
  constexpr std::pair<std::string_view, std::string_view> kAdvice[] = {
      {"42501", "; grant the missing right to this role"},
      {"25006", "; this server or session is read-only: connect to the primary"},
      {"53100", "; nothing was stored: free disk space on the database server"},
      {"53300", "; all connections are in use: use fewer or raise max_connections"},
      {"40001", "; the transaction is undone: run it again"},
      {"40P01", "; the transaction is undone: run it again"},
      {"25P02", "; an earlier statement failed: roll back and run the transaction again"},
  };
  for (const auto& [state, advice] : kAdvice) {
    if (state == sqlstate) return advice;
  }
  return {};
}

}  // namespace

Errc code_of(std::string_view sqlstate) {
  constexpr std::pair<std::string_view, Errc> kCodes[] = {
      // The first that the SQLSTATE begins with counts.
      {"42501", Errc::kForbidden},
      {"25006", Errc::kUnavailable},
      {"25P02", Errc::kPreconditionFailed},
      {"25P01", Errc::kPreconditionFailed},
      {"53100", Errc::kNoSpace},
      {"53", Errc::kUnavailable},
      {"40001", Errc::kLocked},
      {"40P01", Errc::kLocked},
      {"55P03", Errc::kLocked},
      {"40003", Errc::kOutcomeUnknown},
      {"57", Errc::kUnavailable},
      {"08", Errc::kUnavailable},
      {"28", Errc::kUnauthenticated},
      {"3D000", Errc::kNotFound},
      {"3F000", Errc::kNotFound},
      {"42P01", Errc::kNotFound},
      {"42883", Errc::kNotFound},
      {"23505", Errc::kAlreadyExists},
      {"22", Errc::kInvalidArgument},
      {"23", Errc::kInvalidArgument},
      {"42", Errc::kInvalidArgument},
      {"54", Errc::kLimitExceeded},
  };
  if (sqlstate.size() == 5 && sqlstate.starts_with("HX")) {
    unsigned number = 0;
    const char* const end = sqlstate.data() + 5;
    const bool whole = std::from_chars(sqlstate.data() + 2, end, number).ptr == end;
    const auto code = static_cast<Errc>(1000 + number);
    if (whole && is_known(code)) return code;
  }
  for (const auto& [beginning, code] : kCodes) {
    if (sqlstate.starts_with(beginning)) return code;
  }
  return Errc::kUnavailable;
}

void Rows::Clear::operator()(pg_result* result) const { ::PQclear(result); }

std::size_t Rows::size() const { return static_cast<std::size_t>(::PQntuples(result_.get())); }

void Rows::fit(std::span<const std::string_view> names) const {
  std::vector<std::string_view> columns;
  for (int at = 0; at < ::PQnfields(result_.get()); ++at) {
    columns.emplace_back(::PQfname(result_.get(), at));
  }
  tables::check_columns(names, columns);
  fitting_ = names.data();
}

bool Rows::is_null_at(std::size_t row, int column) const {
  return ::PQgetisnull(result_.get(), cell(row), column) == 1;
}

std::string_view Rows::view_at(std::size_t row, int column) const {
  const int size = ::PQgetlength(result_.get(), cell(row), column);
  return {::PQgetvalue(result_.get(), cell(row), column), static_cast<std::size_t>(size)};
}

std::int64_t Rows::number_at(std::size_t row, int column) const {
  const std::string_view text = view_at(row, column);
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// As the session writes it: its bytea_output may be 'hex' or 'escape'.
std::string Rows::bytes_at(std::size_t row, int column) const {
  std::size_t size = 0;
  const char* const text = ::PQgetvalue(result_.get(), cell(row), column);
  unsigned char* const raw = ::PQunescapeBytea(reinterpret_cast<const unsigned char*>(text), &size);
  HAPAX_ASSERT(raw != nullptr, "there is memory for what was answered");
  std::string out(reinterpret_cast<const char*>(raw), size);
  ::PQfreemem(raw);
  return out;
}

std::uint64_t Rows::affected() const {
  const std::string_view text = ::PQcmdTuples(result_.get());
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

Values& Values::text(std::string_view value) {
  values_.push_back({std::string(value), false, false});
  return *this;
}

Values& Values::bytes(std::string_view value) {
  values_.push_back({std::string(value), false, true});
  return *this;
}

Values& Values::null() {
  values_.push_back({{}, true, false});
  return *this;
}

std::string array_of(const std::vector<std::optional<std::string_view>>& elements) {
  std::string out = "{";
  for (const auto& element : elements) {
    if (out.size() > 1) out += ',';
    if (!element) {
      out += "NULL";
      continue;
    }
    out += '"';
    for (const char c : *element) {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
    out += '"';
  }
  return out + "}";
}

std::string hex_of(std::string_view bytes) { return "\\x" + base::hex(bytes); }

void Connection::Finish::operator()(pg_conn* connection) const {
  if (owned) ::PQfinish(connection);
}

Connection::Connection(pg_conn* connection, bool owned) : connection_(connection, Finish{owned}) {}

// Notices of lower severity ("… already exists, skipping") are for people at a prompt. Whoever may
// write to the database says what is in them: it is one line, and no password of ours.
void Connection::hear(const Notice& notice) {
  const auto tell = [to = notice ? notice : Notice(to_stderr),
                     from = raw()](const std::string& text) {
    to("PostgreSQL warns: " + short_of(without(one_line(text), ::PQpass(from))));
  };
  connection_.get_deleter().notice = std::make_shared<const Notice>(tell);
  ::PQsetNoticeReceiver(
      raw(),
      [](void* told, const pg_result* result) {
        if (field(result, PG_DIAG_SEVERITY_NONLOCALIZED) != "WARNING") return;
        (*static_cast<const Notice*>(told))(std::string(field(result, PG_DIAG_MESSAGE_PRIMARY)));
      },
      const_cast<Notice*>(connection_.get_deleter().notice.get()));
}

// As PQconnectdb() does it, which nobody can listen to. Of several addresses only libpq can leave
// out one that does not answer; what was begun is then begun again. False: silence.
bool Connection::finish_connecting(std::chrono::milliseconds timeout) {
  if (::PQstatus(raw()) == CONNECTION_BAD) return true;
  if (has_several_servers(raw())) {
    ::PQreset(raw());
    return true;
  }
  const auto until = std::chrono::steady_clock::now() + timeout;
  for (auto next = PGRES_POLLING_WRITING; next != PGRES_POLLING_OK && next != PGRES_POLLING_FAILED;
       next = ::PQconnectPoll(raw())) {
    pollfd watched{::PQsocket(raw()),
                   static_cast<short>(next == PGRES_POLLING_READING ? POLLIN : POLLOUT), 0};
    const int ready = poll_until(watched, until);
    if (ready == 0) return false;
  }
  return true;
}

Connection Connection::borrow(pg_conn* connection) { return Connection(connection, false); }

Result<Connection> Connection::open(const std::string& uri, const ConnectOptions& options) {
  // libpq counts whole seconds, and takes 1 as 2.
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(options.timeout).count();
  const std::string timeout = std::to_string(seconds);
  // What is before the URI gives way to what the URI says. A machine that is gone without a word is
  // noticed within half a minute also by who only listens.
  const std::array names = {"keepalives_idle",  "keepalives_interval",
                            "keepalives_count", "dbname",
                            "connect_timeout",  "fallback_application_name",
                            "client_encoding",  static_cast<const char*>(nullptr)};
  const std::array values = {"15",
                             "5",
                             "3",
                             uri.c_str(),
                             timeout.c_str(),
                             options.application_name.c_str(),
                             "UTF8",
                             static_cast<const char*>(nullptr)};
  Connection made(::PQconnectStartParams(names.data(), values.data(), 1), true);
  made.hear(options.notice);
  if (!made.finish_connecting(options.timeout)) {
    return Error{Errc::kUnavailable,
                 base::format("connect to PostgreSQL: {} does not answer within {} ms",
                              server_of(made.raw()), options.timeout.count())};
  }
  if (::PQstatus(made.raw()) == CONNECTION_OK) {
    // A database that does not know its texts' encoding may hold what is not UTF-8: it is to come
    // as it is, not as an error of the whole answer.
    const char* const server = ::PQparameterStatus(made.raw(), "server_encoding");
    if (server != nullptr && std::string_view(server) == "SQL_ASCII" &&
        ::PQsetClientEncoding(made.raw(), "SQL_ASCII") != 0) {
      return Error{Errc::kUnavailable,
                   "connect to PostgreSQL: " + trimmed(::PQerrorMessage(made.raw()))};
    }
    made.silence_max_ = options.silence_max;
    made.hurry_fd_ = options.hurry_fd;
    if (options.silence_max != std::chrono::milliseconds::max()) {
      ::PQsetnonblocking(made.raw(), 1);  // Else what is sent may wait for a silent server, too.
    }
    return made;
  }
  const std::string text = without_quotes(trimmed(::PQerrorMessage(made.raw())), uri);
  // libpq keeps no SQLSTATE of a refused connection; what the server said is in the text.
  if (text.find("password") != std::string::npos || text.find("pg_hba") != std::string::npos ||
      text.find("authentication") != std::string::npos) {
    return Error{Errc::kUnauthenticated, "connect to PostgreSQL: " + text};
  }
  if (text.find("does not exist") != std::string::npos) {
    return Error{Errc::kNotFound, "connect to PostgreSQL: " + text};
  }
  if (text.find("missing \"=\"") != std::string::npos ||
      text.find("invalid ") != std::string::npos) {
    return Error{Errc::kInvalidArgument, "connect to PostgreSQL: " + text};
  }
  const bool full = text.find("too many clients") != std::string::npos ||
                    text.find("remaining connection slots") != std::string::npos ||
                    text.find("too many connections for") != std::string::npos;
  return Error{Errc::kUnavailable,
               "connect to PostgreSQL: " + text + std::string(full ? advice_of("53300") : "")};
}

Result<Rows> Connection::run(const std::string& sql) {
  return checked(answer_of(::PQsendQuery(ready(), sql.c_str())));
}

// What the owner of a borrowed connection left unread is dropped, as PQexec() does.
pg_conn* Connection::ready() {
  while (pg_result* left = ::PQgetResult(raw())) ::PQclear(left);
  return raw();
}

// Until something can be had without waiting, everything having been sent. False: silence.
bool Connection::wait_for_answer() {
  std::chrono::milliseconds patience = silence_max_;
  pollfd hurry{hurry_fd_, POLLIN, 0};
  for (;;) {
    const int unsent = ::PQflush(raw());  // -1: what libpq hands out next says why.
    if (unsent < 0 || (unsent == 0 && ::PQisBusy(raw()) == 0)) return true;
    const bool forever = patience == std::chrono::milliseconds::max();
    const auto wanted = static_cast<short>(unsent > 0 ? POLLIN | POLLOUT : POLLIN);
    pollfd watched[2] = {{::PQsocket(raw()), wanted, 0}, hurry};
    const int ready = ::poll(watched, 2, forever ? -1 : static_cast<int>(patience.count()));
    if (ready == 0) return false;
    if (ready < 0 && errno != EINTR) return false;
    if (ready <= 0) continue;
    if (watched[1].revents != 0) {
      hurry.fd = -1;  // It stays readable.
      patience = std::min(patience, kHurriedSilenceMax);
    }
    if ((watched[0].revents & ~POLLOUT) != 0 && ::PQconsumeInput(raw()) == 0) return true;
  }
}

Status Connection::check_encoding() const {
  const std::string_view client = ::pg_encoding_to_char(::PQclientEncoding(raw()));
  if (client == "UTF8" || lost()) return Ok{};
  const char* told = ::PQparameterStatus(raw(), "server_encoding");
  const std::string_view server = told == nullptr ? "" : told;
  if (client == "SQL_ASCII" && (server == "UTF8" || server == "SQL_ASCII")) return Ok{};
  return Error{Errc::kPreconditionFailed,
               "the connection's client_encoding is " + std::string(client) +
                   ", so that ids would not be stored as the bytes that they are; on this "
                   "connection: SET client_encoding TO 'UTF8'"};
}

// The last result, as PQexec() answers it; none if the server is silent.
pg_result* Connection::answer_of(int sent) {
  pg_result* last = nullptr;
  if (sent == 0) return last;
  for (;;) {
    silent_ = !wait_for_answer();
    pg_result* next = silent_ ? nullptr : ::PQgetResult(raw());
    if (silent_) ::PQclear(std::exchange(last, nullptr));
    if (next == nullptr) return last;
    ::PQclear(std::exchange(last, next));
  }
}

namespace {

// The arrays that libpq reads values from.
struct Arguments {
  template <class All>
  explicit Arguments(const All& all) {
    for (const auto& value : all) {
      types.push_back(value.is_binary ? kBytea : kUntyped);
      values.push_back(value.is_null ? nullptr : value.bytes.c_str());
      lengths.push_back(static_cast<int>(value.bytes.size()));
      formats.push_back(value.is_binary ? 1 : 0);
    }
  }
  [[nodiscard]] int count() const { return static_cast<int>(values.size()); }

  std::vector<Oid> types;
  std::vector<const char*> values;
  std::vector<int> lengths;
  std::vector<int> formats;
};

}  // namespace

int Connection::send(pg_conn* to, const std::string& sql, const Values& values, Rowed rowed) {
  const Arguments all(values.values_);
  return ::PQsendQueryParams(to, sql.c_str(), all.count(), all.types.data(), all.values.data(),
                             all.lengths.data(), all.formats.data(),
                             rowed == Rowed::kBinary ? 1 : 0);
}

// libpq takes texts up to their first NUL: 'a\0b' and 'a\0c' would be one id.
Status Connection::check(const Values& values) {
  for (const Values::Value& value : values.values_) {
    if (value.is_null || value.is_binary) continue;
    const std::size_t at = value.bytes.find('\0');
    if (at == std::string::npos) continue;
    return Error{Errc::kInvalidArgument, "a text has a NUL byte behind '" +
                                             value.bytes.substr(0, at) +
                                             "', which PostgreSQL cannot store in one"};
  }
  return Ok{};
}

Result<Rows> Connection::ask(const std::string& sql, const Values& values, Rowed rowed) {
  HAPAX_CHECK(check(values));
  return checked(answer_of(send(ready(), sql, values, rowed)));
}

Result<std::pair<Rows, Rows>> Connection::ask_both(const Query& first, const Query& second) {
  const auto send_one = [this](const Query& each) {
    return send(raw(), each.sql, each.values, each.rowed) == 1 && ::PQpipelineSync(raw()) == 1;
  };
  const bool sent = ::PQenterPipelineMode(ready()) == 1 && send_one(first) && send_one(second);
  auto one = piped_answer(sent);
  auto two = piped_answer(sent && !lost());
  if (::PQexitPipelineMode(raw()) != 1) lost_ = true;
  if (!one) return one.error();
  if (!two) return two.error();
  return std::pair(*std::move(one), *std::move(two));
}

pg_result* Connection::next_result() {
  silent_ = silent_ || !wait_for_answer();
  return silent_ ? nullptr : ::PQgetResult(raw());
}

// The result, none, and the mark between the statements.
Result<Rows> Connection::piped_answer(bool sent) {
  silent_ = false;
  if (!sent) return failure(nullptr);
  auto answer = checked(next_result());
  if (lost()) return answer;
  ::PQclear(next_result());
  ::PQclear(next_result());
  return answer;
}

Status Connection::prepare(const std::string& name, const std::string& sql) {
  HAPAX_CHECK(checked(answer_of(::PQsendPrepare(ready(), name.c_str(), sql.c_str(), 0, nullptr))));
  return Ok{};
}

Result<Rows> Connection::ask_prepared(const std::string& name, const Values& values, Rowed rowed) {
  HAPAX_CHECK(check(values));
  const Arguments all(values.values_);
  return checked(answer_of(::PQsendQueryPrepared(
      ready(), name.c_str(), all.count(), all.values.data(), all.lengths.data(), all.formats.data(),
      rowed == Rowed::kBinary ? 1 : 0)));
}

Status Connection::commit() {
  PGresult* result = answer_of(::PQsendQuery(ready(), "COMMIT"));
  // In a failed transaction COMMIT succeeds as a ROLLBACK.
  const bool rolled_back =
      result != nullptr && std::string_view(::PQcmdStatus(result)) == "ROLLBACK";
  const auto done = checked(result);
  if (done && !rolled_back) return Ok{};
  if (done) {
    return Error{Errc::kPreconditionFailed,
                 "the transaction had failed before its COMMIT and was rolled back"};
  }
  if (lost()) {
    return Error{Errc::kOutcomeUnknown,
                 "the connection was lost at COMMIT, which may have happened: look for what the "
                 "transaction stored before running it again: " +
                     done.error().detail};
  }
  return done.error();
}

Result<Notified> Connection::wait_notified(std::chrono::milliseconds timeout) {
  const auto until = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    bool notified = false;
    while (PGnotify* note = ::PQnotifies(raw())) {
      ::PQfreemem(note);
      notified = true;
    }
    if (notified) return Notified::kChannel;
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    if (left.count() <= 0) return Notified::kNothing;
    pollfd socket{::PQsocket(raw()), POLLIN, 0};
    const int ready = ::poll(&socket, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno != EINTR) return failure(nullptr);
    if (ready > 0 && ::PQconsumeInput(raw()) == 0) return failure(nullptr);
  }
}

bool Connection::in_transaction() const {
  const PGTransactionStatusType status = ::PQtransactionStatus(raw());
  return status == PQTRANS_INTRANS || status == PQTRANS_INERROR || status == PQTRANS_ACTIVE;
}

bool Connection::lost() const { return lost_ || ::PQstatus(raw()) == CONNECTION_BAD; }

bool Connection::is_retryable() const { return sqlstate_ == "40001" || sqlstate_ == "40P01"; }

Result<Rows> Connection::checked(pg_result* result) {
  Rows rows(result);
  const ExecStatusType status = ::PQresultStatus(result);  // of nullptr: PGRES_FATAL_ERROR
  if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK || status == PGRES_EMPTY_QUERY) {
    sqlstate_.clear();
    return rows;
  }
  return failure(result);
}

Error Connection::failure(const pg_result* result) {
  sqlstate_ = field(result, PG_DIAG_SQLSTATE);
  // libpq may still call a connection good that the server has ended, or that it could not read.
  lost_ = lost_ || sqlstate_.empty() || sqlstate_.starts_with("57P0");
  if (lost()) {
    const std::string text = silent_ ? "the server is silent" : trimmed(::PQerrorMessage(raw()));
    return {Errc::kUnavailable,
            "the connection to PostgreSQL is lost, its transaction is undone: " + text};
  }
  std::string text(tables::without_number(field(result, PG_DIAG_MESSAGE_PRIMARY)));
  if (text.empty()) text = trimmed(::PQerrorMessage(raw()));
  if (const auto detail = field(result, PG_DIAG_MESSAGE_DETAIL); !detail.empty()) {
    text += " (" + trimmed(detail) + ")";
  }
  if (!sqlstate_.empty()) text += " [" + sqlstate_ + "]";
  return {code_of(sqlstate_), "PostgreSQL: " + text + std::string(advice_of(sqlstate_))};
}

}  // namespace hapax::postgres
