#include <chrono>
#include <cmath>

#include "base/format.h"
#include "host/entropy.h"
#include "ports/entropy.h"
#include "postgres/checkup.h"

namespace hapax::postgres {

namespace {

using tables::severity_of;
using tables::span_text;

constexpr std::int64_t kSkewWarningMs = 2'000;
constexpr std::int64_t kSkewCriticalMs = 60'000;
constexpr std::chrono::milliseconds kNotifyTime{1'000};

void check_standby(Look& look) {
  enum Column { kStandby, kReadOnly, kDatabaseName, kColumns };
  const auto rows = look.ask("writable",
                             "SELECT pg_is_in_recovery() AS standby, "
                             "current_setting('default_transaction_read_only') AS read_only, "
                             "quote_ident(current_database()) AS database_name");
  if (!rows) return;
  if (rows->is_true(0, kStandby)) {
    return look.findings().critical(
        "writable", "this server is a standby: it takes no writes",
        "connect to the primary: several hosts and target_session_attrs=read-write in the URI");
  }
  if (rows->at(0, kReadOnly) == "on") {
    return look.findings().critical(
        "writable", "default_transaction_read_only is on: nothing can be published",
        "ALTER DATABASE " + rows->text(0, kDatabaseName) + " RESET default_transaction_read_only;");
  }
  look.findings().ok("writable", "a primary that takes writes");
}

constexpr std::string_view kLoses =
    ": a crash of the server loses or damages what was committed and acknowledged";

// As it applies here, role by role: what was set for a role and a database goes before what was set
// for one of them. 0 stands for all. What a role has that may not log in is set for nobody.
constexpr std::string_view kUnflushedRolesSql =
    "SELECT CASE WHEN e.setrole = 0 THEN 'roles without a setting of their own' "
    "ELSE 'the role ' || quote_ident(r.rolname) END AS who, "
    "CASE WHEN e.setdatabase = 0 THEN '' ELSE ' in this database' END AS where_set, "
    "'ALTER ROLE ' || CASE WHEN e.setrole = 0 THEN 'ALL' ELSE quote_ident(r.rolname) END "
    "|| CASE WHEN e.setdatabase = 0 THEN '' ELSE ' IN DATABASE ' || "
    "quote_ident(current_database()) END || ' RESET synchronous_commit;' AS remedy "
    "FROM (SELECT DISTINCT ON (s.setrole) s.setrole, s.setdatabase, "
    "lower(split_part(c.entry, '=', 2)) AS value "
    "FROM pg_db_role_setting AS s, unnest(s.setconfig) AS c(entry) "
    "WHERE starts_with(c.entry, 'synchronous_commit=') AND (s.setdatabase = 0 OR s.setdatabase = "
    "(SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())) "
    "ORDER BY s.setrole, s.setdatabase DESC) AS e "
    "LEFT JOIN pg_roles AS r ON r.oid = e.setrole "
    "LEFT JOIN pg_namespace AS n ON n.nspname = '{schema}' "
    "WHERE e.value IN ('off', 'false', 'no', '0') AND (e.setrole = 0 OR (r.rolcanlogin "
    "AND coalesce(has_schema_privilege(e.setrole, n.oid, 'USAGE'), true))) ORDER BY 1 LIMIT 20";

// Whether nobody who may use the tables commits without waiting for the disk.
bool check_roles_flush(Look& look) {
  enum Column { kWho, kWhereSet, kRemedy, kColumns };
  const auto rows = look.ask("durability", kUnflushedRolesSql);
  for (std::size_t row = 0; rows && row < rows->size(); ++row) {
    look.findings().critical("durability",
                             "synchronous_commit is off for " + rows->text(row, kWho) +
                                 rows->text(row, kWhereSet) + std::string(kLoses),
                             rows->text(row, kRemedy));
  }
  return rows && rows->size() == 0;
}

// Settings that this session has from its role or database are told with those of other roles.
void check_durability(Look& look) {
  enum Column { kName, kSource, kColumns };
  const auto rows =
      look.ask("durability",
               "SELECT name, source FROM pg_settings WHERE name IN ('fsync', 'synchronous_commit', "
               "'full_page_writes') AND setting = 'off' "
               "AND source NOT IN ('global', 'database', 'user', 'database user') ORDER BY name");
  if (!rows) return;
  for (std::size_t row = 0; row < rows->size(); ++row) {
    const std::string name = rows->text(row, kName);
    look.findings().critical(
        "durability", name + " is off (" + rows->text(row, kSource) + ")" + std::string(kLoses),
        rows->at(row, kSource) == "client"
            ? "take " + name + " out of the URI's options and out of PGOPTIONS"
            : "ALTER SYSTEM SET " + name + " = on; SELECT pg_reload_conf();");
  }
  if (check_roles_flush(look) && rows->size() == 0) {
    look.findings().ok("durability", "fsync, synchronous_commit and full_page_writes are on");
  }
}

// Of sessions of other roles most is hidden, but not that they are there.
void check_connections(Look& look) {
  enum Column { kUsed, kMost, kBy, kColumns };
  const auto rows = look.ask(
      "connections",
      "WITH clients AS (SELECT coalesce(nullif(application_name, ''), '(no name)') AS name "
      "FROM pg_stat_activity WHERE datid IS NOT NULL AND usesysid IS NOT NULL "
      "AND coalesce(backend_type, 'client backend') = 'client backend') "
      "SELECT (SELECT count(*) FROM clients) AS used, current_setting('max_connections')::int "
      "- current_setting('superuser_reserved_connections')::int AS most, "
      "(SELECT string_agg(n || ' ' || name, ', ') FROM (SELECT count(*) AS n, name FROM clients "
      "GROUP BY 2 ORDER BY 1 DESC LIMIT 3) AS most) AS by");
  if (!rows) return;
  const std::int64_t used = rows->number(0, kUsed);
  const std::int64_t most = rows->number(0, kMost);
  Finding finding{"connections", Severity::kOk, base::format("{} of {} are used", used, most), ""};
  if (used * 10 >= most * 8) {
    finding.severity = used * 20 >= most * 19 ? Severity::kCritical : Severity::kWarning;
    finding.found += ", most by: " + rows->text(0, kBy);
    finding.remedy = base::format(
        "use fewer (a pool), or ALTER SYSTEM SET max_connections = {}; and restart the server",
        2 * most);
  }
  finding.figures = {{"used", used}, {"most", most}};
  look.findings().add(std::move(finding));
}

std::int64_t machine_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

// Against the middle of the question's time.
void check_clock(Look& look) {
  const std::int64_t before = machine_ms();
  auto rows = look.connection().run(
      "SELECT pg_catalog.floor(pg_catalog.date_part('epoch', "
      "pg_catalog.clock_timestamp()) * 1000::double precision)::bigint");
  const std::int64_t after = machine_ms();
  if (!rows) return;
  const std::int64_t skew = rows->number(0, kOnly) - (before + after) / 2;
  Finding finding{"clock", Severity::kOk, base::format("the server's clock differs by {} ms", skew),
                  ""};
  if (std::abs(skew) > kSkewWarningMs + (after - before) / 2) {
    finding.severity = std::abs(skew) > kSkewCriticalMs ? Severity::kCritical : Severity::kWarning;
    finding.remedy = "synchronise both machines: timedatectl set-ntp true (or chronyc makestep)";
  }
  finding.figures = {{"skew_ms", skew}};
  look.findings().add(std::move(finding));
}

// What is hidden from this role is not said to be absent.
void tell_none_open(Look& look) {
  enum Column { kSeesAll, kRoleName, kColumns };
  const auto all = look.ask("transactions",
                            "SELECT pg_has_role('pg_read_all_stats', 'USAGE') AS sees_all, "
                            "quote_ident(current_user) AS role_name");
  if (!all) return;
  if (all->is_true(0, kSeesAll)) {
    return look.findings().ok("transactions", "no other one is open in this database");
  }
  look.findings().warn("transactions",
                       "this role does not see those of other roles, and has none open itself",
                       "GRANT pg_monitor TO " + all->text(0, kRoleName) + ", or ask as another");
}

// Transactions of other databases do not keep rows of this one; a standby that feeds back does.
void check_transactions(const CheckupOptions& options, Look& look) {
  enum Column { kPid, kApplication, kUserName, kDoing, kOpenMs, kSince, kAge, kColumns };
  const auto rows = look.ask(
      "transactions",
      "SELECT pid, coalesce(nullif(application_name, ''), '-') AS application, "
      "coalesce(usename, '-') AS user_name, "
      "coalesce(state, backend_type) AS doing, "
      "floor(extract(epoch FROM clock_timestamp() - xact_start) * 1000)::bigint AS open_ms, "
      "to_char(xact_start, 'YYYY-MM-DD HH24:MI:SS TZ') AS since, "
      "greatest(age(backend_xmin), age(backend_xid)) AS age "
      "FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND xact_start IS NOT NULL "
      "AND (datname = current_database() OR backend_type = 'walsender') "
      "AND backend_type <> 'autovacuum worker' "
      "AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL) "
      "ORDER BY greatest(age(backend_xmin), age(backend_xid)) DESC, xact_start LIMIT 1");
  if (!rows) return;
  if (rows->size() == 0) return tell_none_open(look);
  const std::int64_t ms = rows->number(0, kOpenMs);
  Finding finding{"transactions", severity_of(ms, options.patience_ms),
                  "the oldest xmin is held by pid " + rows->text(0, kPid) + " (application " +
                      rows->text(0, kApplication) + ", user " + rows->text(0, kUserName) + ", " +
                      rows->text(0, kDoing) + ") since " + rows->text(0, kSince) + ", " +
                      span_text(ms) + ", " + rows->text(0, kAge) + " transactions back",
                  ""};
  if (finding.severity != Severity::kOk) {
    finding.remedy = "SELECT pg_terminate_backend(" + rows->text(0, kPid) +
                     "); and against the next one: ALTER SYSTEM SET "
                     "idle_in_transaction_session_timeout = '5min'; SELECT pg_reload_conf();";
  }
  finding.figures = {
      {"pid", rows->number(0, kPid)}, {"open_ms", ms}, {"age", rows->number(0, kAge)}};
  look.findings().add(std::move(finding));
}

// They belong to no connection, outlive restarts, and keep their locks and rows.
void check_prepared(const CheckupOptions& options, Look& look) {
  enum Column { kGid, kOpenMs, kOwner, kCount, kColumns };
  const auto rows =
      look.ask("prepared",
               "SELECT quote_literal(gid) AS gid, floor(extract(epoch FROM clock_timestamp() - "
               "prepared) * 1000)"
               "::bigint AS open_ms, owner, count(*) OVER () AS count FROM pg_prepared_xacts "
               "WHERE database = current_database() ORDER BY prepared LIMIT 1");
  if (!rows || rows->size() == 0) return;
  const std::int64_t ms = rows->number(0, kOpenMs);
  Finding finding{"prepared", severity_of(ms, options.patience_ms),
                  rows->text(0, kCount) + " prepared transactions, the oldest " +
                      rows->text(0, kGid) + " of " + rows->text(0, kOwner) + " for " +
                      span_text(ms),
                  ""};
  if (finding.severity != Severity::kOk) {
    finding.remedy = "ask its transaction manager, then COMMIT PREPARED " + rows->text(0, kGid) +
                     "; or ROLLBACK PREPARED " + rows->text(0, kGid) + ";";
  }
  finding.figures = {{"count", rows->number(0, kCount)}, {"oldest_ms", ms}};
  look.findings().add(std::move(finding));
}

// An unused slot keeps dead rows and the write-ahead log of the whole server.
void check_slots(Look& look) {
  enum Column { kSlot, kWalBytes, kColumns };
  const auto rows =
      look.ask("slots",
               "SELECT quote_literal(slot_name) AS slot, "
               "CASE WHEN NOT pg_is_in_recovery() THEN "
               "pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::bigint END AS wal_bytes "
               "FROM pg_replication_slots "
               "WHERE NOT active AND NOT pg_is_in_recovery() AND restart_lsn IS NOT NULL "
               "ORDER BY restart_lsn LIMIT 1");
  if (!rows || rows->size() == 0) return;
  look.findings().warn("slots",
                       "nobody uses the replication slot " + rows->text(0, kSlot) +
                           ", which keeps " + tables::bytes_text(rows->number(0, kWalBytes)) +
                           " of write-ahead log",
                       "SELECT pg_drop_replication_slot(" + rows->text(0, kSlot) + ");");
}

// Behind a pooler LISTEN may seem to work and never tell anything; so it is tried, as relays do.
void check_notify(const CheckupOptions& options, Look& look) {
  const std::string remedy =
      "give relays a direct connection, or a pooler that pools sessions; until then they poll at "
      "most every 1.7 s";
  auto listener = Connection::open(options.uri, {.application_name = "hapax doctor (listens)"});
  host::HostEntropy entropy;
  const std::string nonce = base::format("hapax_probe_{}", ports::draw_u64(entropy));
  if (!listener || !listener->run("LISTEN " + nonce)) {
    return look.findings().warn("notify", "a second connection that listens was refused", remedy);
  }
  const auto since = std::chrono::steady_clock::now();
  if (!look.connection().run("NOTIFY " + nonce)) {
    return look.findings().warn("notify", "NOTIFY was refused", remedy);
  }
  const auto told = listener->wait_notified(kNotifyTime);
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - since);
  ignore(listener->run("UNLISTEN " + nonce), "the session's end does it, too");
  if (!told || *told != Notified::kChannel) {
    return look.findings().warn("notify", "a NOTIFY did not come through within a second", remedy);
  }
  look.findings().ok("notify", base::format("came through in {} ms", took.count()));
}

void check_notify_queue(Look& look) {
  const auto rows =
      look.ask("notify queue", "SELECT floor(pg_notification_queue_usage() * 100)::int");
  if (!rows || rows->number(0, kOnly) < 50) return;
  look.findings().warn(
      "notify queue", "is full by " + rows->text(0, kOnly) + " %: at 100 % commits fail",
      "end the session that listens and sits in a transaction: see pg_stat_activity");
}

}  // namespace

void check_server(const CheckupOptions& options, Connection& connection, Findings& findings) {
  Look look(connection, options.schema, findings);
  check_standby(look);
  check_durability(look);
  check_connections(look);
  check_clock(look);
  check_transactions(options, look);
  check_prepared(options, look);
  check_slots(look);
  const auto primary = look.ask("notify", "SELECT 1 WHERE NOT pg_is_in_recovery()");
  if (!primary || primary->size() == 0) return;  // A standby notifies nobody.
  check_notify(options, look);
  check_notify_queue(look);
}

}  // namespace hapax::postgres
