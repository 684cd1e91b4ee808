#include "sqlite/checkup.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include <sys/statfs.h>
#include <unistd.h>

#include "base/format.h"
#include "sqlite/connection.h"
#include "sqlite/migrate.h"
#include "tables/made.h"

namespace hapax::sqlite {

namespace {

using tables::bytes_text;
using tables::Finding;
using tables::Findings;
using tables::Made;
using tables::Severity;
using tables::severity_of;
using tables::span_text;

constexpr std::int64_t kReadMax = std::int64_t{256} << 20;  // a larger file is not read as a whole
constexpr std::int64_t kWalMax = std::int64_t{64} << 20;
constexpr std::chrono::milliseconds kWriterTime{1'000};

class FileCheckup {
 public:
  FileCheckup(const CheckupOptions& options, Connection& connection, Findings& findings)
      : options_(options), connection_(connection), findings_(findings) {}

  void run() {
    check_file_system();
    if (!check_integrity()) return;
    check_encoding();
    check_journal();
    check_settings();
    check_writer();
    if (!check_version()) return;
    if (!check_structure()) return;
    check_ids();
    check_equal_events();
    check_inbox_ids();
    check_unknown();
    check_lane();
    check_turns();
    check_retries();
    check_dead_letters();
    check_expired();
    check_size();
  }

 private:
  [[nodiscard]] std::string named(std::string_view sql) const {
    return tables::expanded(sql, "prefix", options_.prefix);
  }
  [[nodiscard]] std::string shell(const std::string& sql) const {
    return "sqlite3 '" + options_.path + "' \"" + sql + "\"";
  }

  // One row, or a warning and nothing.
  std::optional<Row> ask(const std::string& check, const std::string& sql) {
    auto rows = connection_.ask(named(sql), {});
    if (!rows) {
      findings_.warn(check, "could not be looked at: " + rows.error().detail,
                     "see that this user may read the file and its folder");
      return {};
    }
    if (rows->empty()) return {};
    return std::move(rows->front());
  }
  std::int64_t number(const std::string& check, const std::string& sql) {
    const auto row = ask(check, sql);
    return row ? (*row)[kOnly].number : 0;
  }

  // The write-ahead log is shared memory: processes on two machines do not see each other's.
  void check_file_system() {
    struct statfs disk {};
    if (::statfs(options_.path.c_str(), &disk) != 0) return;
    const auto type = static_cast<std::uint32_t>(disk.f_type);
    constexpr std::pair<std::uint32_t, std::string_view> kNetworks[] = {
        {0x6969, "NFS"},      {0x517B, "SMB"},        {0xFF534D42, "CIFS"},
        {0xFE534D42, "SMB"},  {0x00C36400, "Ceph"},   {0x5346414F, "AFS"},
        {0x73757245, "Coda"}, {0x0BD00BD0, "Lustre"}, {0x47504653, "GPFS"}};
    const std::string remedy = "keep the file on a disk of this machine";
    for (const auto& [number, name] : kNetworks) {
      if (type != number) continue;
      return findings_.critical("file system",
                                "the file is on " + std::string(name) +
                                    ": WAL does not work across machines, and locks may not hold",
                                remedy);
    }
    if (type == 0x65735546 || type == 0x01021997) {
      return findings_.warn("file system",
                            "the file is on FUSE or 9p, which may be a network: "
                            "locks and WAL may not work",
                            remedy);
    }
    findings_.ok("file system", "no network file system that is known as such");
  }

  bool check_integrity() {
    std::error_code error;
    const auto size = static_cast<std::int64_t>(std::filesystem::file_size(options_.path, error));
    if (!error && size > kReadMax) {
      findings_.ok("integrity", "not looked at, for the file is of " + bytes_text(size) +
                                    "; when there is time: " + shell("PRAGMA quick_check"));
      return true;
    }
    const auto rows = connection_.ask("PRAGMA quick_check(3)", {});
    const bool good = rows && rows->size() == 1 && rows->front()[kOnly].bytes == "ok";
    if (good) {
      findings_.ok("integrity", "quick_check says ok");
      return true;
    }
    findings_.critical(
        "integrity", rows ? "quick_check: " + rows->front()[kOnly].bytes : rows.error().detail,
        "stop the application, keep a copy of the file with -wal and -shm, restore a "
        "backup, or: sqlite3 '" +
            options_.path + "' .recover | sqlite3 recovered.db");
    return false;
  }

  void check_encoding() {
    const auto encoding = ask("encoding", "PRAGMA encoding");
    if (!encoding || (*encoding)[kOnly].bytes == "UTF-8") return;
    findings_.critical(
        "encoding", "is " + (*encoding)[kOnly].bytes + ": Hapax refuses a file that is not UTF-8",
        "sqlite3 '" + options_.path + "' .dump | sqlite3 utf8.db");
  }

  void check_journal() {
    const auto mode = ask("journal", "PRAGMA journal_mode");
    if (!mode) return;
    if ((*mode)[kOnly].bytes != "wal") {
      return findings_.warn("journal",
                            "the mode is " + (*mode)[kOnly].bytes +
                                ": readers and writers wait for each other, relays find out late",
                            shell("PRAGMA journal_mode = WAL"));
    }
    std::error_code error;
    const auto size =
        static_cast<std::int64_t>(std::filesystem::file_size(options_.path + "-wal", error));
    if (!error && size > kWalMax) {
      findings_.warn("journal",
                     "the WAL file has grown to " + bytes_text(size) +
                         ": a reader that never ends keeps it from being emptied",
                     "end that reader, then: " + shell("PRAGMA wal_checkpoint(TRUNCATE)"));
    } else {
      findings_.ok("journal", "WAL, of " + bytes_text(error ? 0 : size));
    }
    findings_.figure("wal_bytes", error ? 0 : size);
  }

  // Settings of connections, not of the file: what can be seen is what those get that set nothing.
  void check_settings() {
    const std::int64_t synchronous = number("synchronous", "PRAGMA synchronous");
    if (synchronous < 2) {
      return findings_.warn(
          "synchronous",
          base::format("is {} by default here: a power failure may lose what was committed",
                       synchronous),
          "PRAGMA synchronous = FULL; in every connection of the application");
    }
    findings_.ok("synchronous",
                 "FULL unless a connection says otherwise; like busy_timeout (0 "
                 "unless set), the file does not tell");
  }

  // BEGIN IMMEDIATE and ROLLBACK: what every writer has to get.
  void check_writer() {
    if (::access(options_.path.c_str(), W_OK) != 0) {
      return findings_.warn("writer", "this user may not write the file: not tried", "");
    }
    auto writer = Connection::open(options_.path);
    if (!writer) return;
    writer->set_patience(kWriterTime);
    const auto since = std::chrono::steady_clock::now();
    const Status begun = writer->run("BEGIN IMMEDIATE");
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(
                          std::chrono::steady_clock::now() - since)
                          .count();
    if (begun) {
      ignore(writer->run("ROLLBACK"), "nothing was changed");
      findings_.ok("writer", base::format("the file can be written, after {} ms", took));
      return findings_.figure("waited_ms", took);
    }
    if (begun.error().code != Errc::kLocked) {
      return findings_.critical("writer", begun.error().detail, "correct what is named there");
    }
    findings_.warn("writer", "another writer held the file for more than a second",
                   "find it (fuser -v '" + options_.path +
                       "'), keep its transactions short, and "
                       "PRAGMA busy_timeout = 5000; in every connection");
  }

  bool check_version() {
    const auto applied = applied_in(connection_, options_.prefix);
    const std::string command =
        "hapax migrate 'sqlite:" + options_.path + "'" +
        (options_.prefix == kPrefixDefault ? "" : " --prefix " + options_.prefix);
    if (!applied || applied->empty()) {
      findings_.critical("schema",
                         applied ? "there are no tables of Hapax with the prefix " + options_.prefix
                                 : applied.error().detail,
                         command);
      return false;
    }
    const std::uint32_t newest = applied->back().version;
    const std::uint32_t known = migrations().back().version;
    const std::string found = base::format("has version {}", newest);
    const auto left = tables::pending(migrations(), *applied);
    if (newest > known) {
      findings_.warn("schema", base::format("{}, this program knows {}", found, known),
                     "use the newer Hapax everywhere, and this command from it");
    } else if (!left) {
      findings_.critical("schema", left.error().detail, "use the build that made these tables");
    } else if (!left->empty()) {
      findings_.critical("schema", base::format("{}, this program needs {}", found, known),
                         command);
    } else {
      findings_.ok("schema", found);
    }
    findings_.figure("version", newest);
    return left && left->empty();
  }

  bool check_structure() {
    enum Column { kName, kSql, kColumns };
    const auto rows = connection_.ask("SELECT name, sql FROM sqlite_schema", {});
    if (!rows) return false;
    std::map<std::string, std::string> present;
    for (const Row& row : *rows) present[row[kName].bytes] = row[kSql].bytes;
    const std::size_t before = findings_.all().size();
    bool good = true;  // The rest can be looked at.
    const auto all = tables::made_by(migrations());
    for (const Made& made : all) {
      const auto found = present.find(named(made.name));
      if (found == present.end()) {
        good = good && made.kind != Made::Kind::kTable;
        findings_.critical("structure", word_for(made.kind) + named(made.name) + " is missing",
                           named(made.sql) + ";");
      } else if (made.kind == Made::Kind::kTrigger && found->second != named(made.sql)) {
        findings_.critical("structure",
                           "the trigger " + named(made.name) + " was replaced by somebody",
                           "DROP TRIGGER " + named(made.name) + "; " + named(made.sql) + ";");
      } else if (made.kind == Made::Kind::kTable) {
        good = check_columns(made) && good;
      }
    }
    check_strangers(all);
    if (good && number("structure", "SELECT count(*) FROM {prefix}outbox_lane") != 1) {
      findings_.critical(
          "structure", "the lane of the outbox is missing: nothing is sent",
          shell(named("INSERT INTO {prefix}outbox_lane VALUES (1, NULL, 0, 0, 0, 0, 0, 0)")));
    }
    if (findings_.all().size() == before) {
      findings_.ok("structure",
                   base::format("{} tables, indexes and triggers expected", all.size()));
    }
    return good;
  }
  static std::string word_for(Made::Kind kind) {
    if (kind == Made::Kind::kTrigger) return "the trigger ";
    return kind == Made::Kind::kIndex ? "the index " : "the table ";
  }

  // Whether all columns are there.
  bool check_columns(const Made& made) {
    enum Column { kName, kType, kColumns };
    const auto rows = connection_.ask("SELECT name, type FROM pragma_table_info(?1)",
                                      {Value::text(named(made.name))});
    if (!rows) return false;
    std::map<std::string, std::string> types;
    for (const Row& row : *rows) types[row[kName].bytes] = row[kType].bytes;
    bool complete = true;
    for (const tables::Column& column : made.columns) {
      const std::string name = named(made.name) + "." + column.name;
      const auto found = types.find(column.name);
      if (found == types.end()) {
        complete = false;
        findings_.critical("structure", "the column " + name + " is missing",
                           "restore a backup; what it held is lost. It was: " + column.sql);
      } else if (found->second != column.type) {
        findings_.critical(
            "structure",
            "the column " + name + " has the type " + found->second + ", not " + column.type,
            "make the table again as `hapax migrate sqlite: --print` shows it, and "
            "copy its rows");
      }
    }
    return complete;
  }

  // They may change or drop rows, and nobody else would notice.
  void check_strangers(const std::vector<Made>& all) {
    std::set<std::string> ours;
    for (const Made& made : all) ours.insert(named(made.name));
    enum Column { kName, kTblName, kColumns };
    const auto rows = connection_.ask(
        named("SELECT name, tbl_name FROM sqlite_schema WHERE type = 'trigger' "
              "AND substr(tbl_name, 1, length('{prefix}')) = '{prefix}' ORDER BY name LIMIT 20"),
        {});
    for (std::size_t i = 0; rows && i < rows->size(); ++i) {
      const std::string& name = (*rows)[i][kName].bytes;
      if (ours.contains(name)) continue;
      findings_.warn("triggers",
                     "the table " + (*rows)[i][kTblName].bytes + " has a trigger of somebody, " +
                         name + ": it can change or drop rows, which are then never sent or known",
                     "see what it does; without it: " + shell("DROP TRIGGER " + name));
    }
  }

  void check_ids() {
    enum Column { kLooked, kWithoutId, kTwice, kExample, kColumns };
    const auto row = ask(
        "ids",
        "WITH newest AS MATERIALIZED (SELECT id FROM {prefix}outbox ORDER BY seq DESC LIMIT 10000) "
        "SELECT (SELECT count(*) FROM newest) AS looked, "
        "(SELECT count(*) FROM newest WHERE id IS NULL OR id = '') AS without_id, "
        "(SELECT count(*) FROM (SELECT 1 FROM newest WHERE id <> '' GROUP BY id "
        "HAVING count(*) > 1)) AS twice, (SELECT quote(id) FROM newest WHERE id <> '' GROUP BY id "
        "HAVING count(*) > 1 LIMIT 1) AS example");
    if (!row) return;
    const std::string looked = base::format(" of the newest {} rows", (*row)[kLooked].number);
    if ((*row)[kWithoutId].number > 0) {
      findings_.critical(
          "ids",
          base::format("{}{} of the outbox have no id: receivers cannot tell them apart",
                       (*row)[kWithoutId].number, looked),
          shell(named("SELECT seq, type, key FROM {prefix}outbox WHERE id IS NULL OR "
                      "id = '' LIMIT 10")));
    }
    if ((*row)[kTwice].number > 0) {
      findings_.warn(
          "duplicates",
          base::format("{} ids are there more than once{} of the outbox, as {}: the same event was "
                       "published several times",
                       (*row)[kTwice].number, looked, (*row)[kExample].bytes),
          shell(named("SELECT seq, type, key, created_at FROM {prefix}outbox WHERE id = " +
                      (*row)[kExample].bytes)) +
              "; then guard that operation with a claim or the inbox");
      findings_.figure("ids", (*row)[kTwice].number);
    }
    if ((*row)[kWithoutId].number == 0 && (*row)[kTwice].number == 0) {
      findings_.ok("ids", "every one" + looked + " of the outbox has an id of its own");
    }
  }

  // A transaction that is run again publishes its events again, and an id that was made at random
  // does not tell. Small payloads only, so that little is read.
  void check_equal_events() {
    enum Column { kEvents, kExample, kColumns };
    const auto row =
        ask("equal events",
            "WITH newest AS MATERIALIZED (SELECT id, type, key, payload, created_at FROM "
            "{prefix}outbox ORDER BY seq DESC LIMIT 10000), twice AS (SELECT type, key FROM newest "
            "WHERE key IS NOT NULL AND length(payload) BETWEEN 1 AND 2048 "
            "AND (id LIKE '________-____-4___-____-____________' OR "
            "id LIKE '________-____-7___-____-____________') GROUP BY type, key, payload "
            "HAVING count(DISTINCT id) > 1 AND max(created_at) - min(created_at) < 3600000) "
            "SELECT count(*) AS events, max(quote(type) || ' of ' || quote(key)) AS example FROM "
            "twice");
    if (!row || (*row)[kEvents].number == 0) return;
    findings_.warn(
        "equal events",
        base::format(
            "{} events of the newest 10000 rows are there again within an hour under another "
            "random id, as {}: receivers cannot tell a repetition from a new event",
            (*row)[kEvents].number, (*row)[kExample].bytes),
        "if an operation was run again, derive the id from what happened "
        "(order.placed/o-1, or hapax::uuid_of)");
    findings_.figure("events", (*row)[kEvents].number);
  }

  // From subscriber to subscriber along the primary key, not along the rows.
  void check_inbox_ids() {
    const auto row =
        ask("inbox ids",
            "WITH RECURSIVE s(subscriber) AS (SELECT min(subscriber) FROM {prefix}inbox UNION ALL "
            "SELECT (SELECT min(i.subscriber) FROM {prefix}inbox AS i WHERE i.subscriber > "
            "s.subscriber) FROM s WHERE s.subscriber IS NOT NULL LIMIT 1000) "
            "SELECT quote(min(subscriber)) FROM s WHERE subscriber = '' OR EXISTS (SELECT 1 FROM "
            "{prefix}inbox AS i WHERE i.subscriber = s.subscriber AND i.message_id = '')");
    if (!row || (*row)[kOnly].bytes == "NULL") return;
    const std::string subscriber = (*row)[kOnly].bytes;
    findings_.critical(
        "inbox ids",
        "the subscriber " + subscriber +
            " has taken a message without an id: every other one like it is taken for its "
            "duplicate",
        "set ids where messages are sent, then: " +
            shell(named("DELETE FROM {prefix}inbox WHERE subscriber = " + subscriber +
                        " AND message_id = ''")));
  }

  // Nobody does their work before somebody decides.
  void check_unknown() {
    enum Column { kClaims, kExample, kColumns };
    const auto row =
        ask("unknown outcomes",
            "SELECT count(*) AS claims, max(quote(scope) || ', ' || quote(key)) AS example FROM "
            "{prefix}claims "
            "WHERE state = 'unknown' OR (state = 'processing' AND on_lapse = 'unknown' AND "
            "lease_until <= CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER))");
    if (!row || (*row)[kClaims].number == 0) return;
    findings_.warn("unknown outcomes",
                   base::format("{} claims may have been done or not, as {}",
                                (*row)[kClaims].number, (*row)[kExample].bytes),
                   "find out, then decide with JobClaims::resolve");
    findings_.figure("count", (*row)[kClaims].number);
  }

  // A retry that is due for longer than a record may wait counts like a new one: nobody takes it.
  void check_lane() {
    enum Column {
      kOwner,
      kHeld,
      kAttempts,
      kWaiting,
      kOldestMs,
      kStillMs,
      kOverdue,
      kOverdueMs,
      kColumns
    };
    const auto row = ask(
        "waiting",
        "WITH t(now) AS (SELECT CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER)) "
        "SELECT l.owner, l.lease_until > t.now AS held, l.attempts, "
        "(SELECT count(*) FROM (SELECT 1 FROM {prefix}outbox AS o WHERE o.seq > l.pos LIMIT "
        "10000)) AS waiting, "
        "coalesce((SELECT t.now - o.created_at FROM {prefix}outbox AS o WHERE o.seq > l.pos "
        "ORDER BY o.seq LIMIT 1), 0) AS oldest_ms, t.now - l.moved_at AS still_ms, "
        "(SELECT count(*) FROM (SELECT 1 FROM {prefix}outbox_retry AS r WHERE r.next_at < "
        "t.now - " +
            std::to_string(options_.patience_ms) +
            " LIMIT 10000)) AS overdue, "
            "coalesce((SELECT t.now - min(r.next_at) FROM {prefix}outbox_retry AS r), 0) AS "
            "overdue_ms "
            "FROM {prefix}outbox_lane AS l, t");
    if (!row) return;
    const bool held = (*row)[kHeld].number != 0;
    const std::int64_t attempts = (*row)[kAttempts].number;
    const std::int64_t overdue = (*row)[kOverdue].number;
    const std::int64_t waiting = (*row)[kWaiting].number + overdue;
    const std::int64_t oldest =
        std::max((*row)[kOldestMs].number, overdue > 0 ? (*row)[kOverdueMs].number : 0);
    const std::int64_t still = std::min((*row)[kStillMs].number, oldest);
    Finding finding{"waiting",
                    severity_of(oldest, options_.patience_ms),
                    base::format("{} records (10000 are counted at most), the oldest for {}",
                                 waiting, span_text(oldest)),
                    "",
                    {{"waiting", waiting}, {"oldest_ms", oldest}}};
    if (finding.severity != Severity::kOk && !held) {
      finding.check = "no relay";
      finding.found += ", and no relay runs";
      finding.remedy =
          "hapax relay --from 'sqlite:" + options_.path + "' --to http://HOST:7171/streams/NAME";
    } else if (finding.severity != Severity::kOk &&
               (attempts >= 2 || still > options_.patience_ms)) {
      finding.check = "stuck lanes";
      finding.severity = Severity::kCritical;
      finding.found += "; " + (*row)[kOwner].bytes + " holds the lane and ";
      finding.found += attempts >= 2
                           ? base::format("has taken them {} times without an end", attempts)
                           : "has sent nothing for " + span_text(still);
      finding.remedy = "see that relay's log and whether its destination answers; restart it";
    } else if (finding.severity != Severity::kOk) {
      finding.remedy =
          "see the log of " + (*row)[kOwner].bytes + ", and whether its destination answers";
    }
    findings_.add(std::move(finding));
  }

  // The first of a key has its turn; none has if somebody deleted that one.
  void check_turns() {
    const std::int64_t without =
        number("turns",
               "SELECT count(*) FROM (SELECT 1 FROM {prefix}outbox_retry AS r WHERE r.next_at IS "
               "NULL AND NOT EXISTS (SELECT 1 FROM {prefix}outbox_retry AS q WHERE q.key = r.key "
               "AND q.n < r.n) LIMIT 10000)");
    if (without == 0) return;
    findings_.critical(
        "turns",
        base::format("the records of {} keys wait behind a retry that was deleted, for ever",
                     without),
        "restart the relay: it gives the next ones their turn when it takes the lane");
    findings_.figure("keys", without);
  }

  void check_retries() {
    enum Column { kRecords, kAttempts, kExample, kColumns };
    const auto row =
        ask("retries",
            "SELECT count(*) AS records, coalesce(max(attempts), 0) AS attempts, "
            "coalesce(max(last_error), '') AS example FROM (SELECT * FROM {prefix}outbox_retry "
            "ORDER BY n LIMIT 10000)");
    if (!row) return;
    const std::string found =
        base::format("{} records wait for another attempt", (*row)[kRecords].number);
    if ((*row)[kAttempts].number < 3) return findings_.ok("retries", found);
    findings_.warn("retries",
                   base::format("{}, with up to {} attempts; as: {}", found,
                                (*row)[kAttempts].number, (*row)[kExample].bytes.substr(0, 200)),
                   "correct what the destination says; " +
                       shell(named("SELECT * FROM {prefix}outbox_retry ORDER BY attempts DESC "
                                   "LIMIT 20")));
  }

  void check_dead_letters() {
    enum Column { kRecords, kReason, kColumns };
    const auto row = ask("dead letters",
                         "SELECT (SELECT count(*) FROM (SELECT 1 FROM {prefix}outbox_dead LIMIT "
                         "10000)) AS records, (SELECT reason FROM {prefix}outbox_dead ORDER BY seq "
                         "DESC LIMIT 1) AS reason");
    if (!row || (*row)[kRecords].number == 0) return;
    findings_.warn("dead letters",
                   base::format("{} records were given up, the latest because: {}",
                                (*row)[kRecords].number, (*row)[kReason].bytes.substr(0, 200)),
                   "correct the cause, publish them again under their ids, and delete them: " +
                       shell(named("SELECT seq, id, type, key, reason FROM {prefix}outbox_dead "
                                   "LIMIT 20")));
    findings_.figure("count", (*row)[kRecords].number);
  }

  void check_expired() {
    enum Column { kInbox, kClaims, kColumns };
    const auto row = ask(
        "expired",
        "WITH t(then_ms) AS (SELECT CAST(round((julianday('now') - 2440587.5) * 86400000) AS "
        "INTEGER) - 3600000) SELECT (SELECT count(*) FROM (SELECT 1 FROM {prefix}inbox, t WHERE "
        "expires_at < then_ms LIMIT 10000)) AS inbox, (SELECT count(*) FROM (SELECT 1 FROM "
        "{prefix}claims, "
        "t "
        "WHERE expires_at < then_ms LIMIT 10000)) AS claims");
    if (!row) return;
    const std::string found = base::format(
        "{} rows of the inbox and {} claims are past their retention for an hour (10000 are "
        "counted)",
        (*row)[kInbox].number, (*row)[kClaims].number);
    if ((*row)[kInbox].number + (*row)[kClaims].number == 0) return findings_.ok("expired", found);
    findings_.warn(
        "expired", found,
        "run a relay, which forgets them, or: hapax clean 'sqlite:" + options_.path + "'");
  }

  void check_size() {
    const std::int64_t page = number("size", "PRAGMA page_size");
    const std::int64_t all = page * number("size", "PRAGMA page_count");
    const std::int64_t unused = page * number("size", "PRAGMA freelist_count");
    findings_.ok("size", bytes_text(all) + ", of which " + bytes_text(unused) + " are free");
    findings_.figure("bytes", all);
    findings_.figure("free_bytes", unused);
  }

  const CheckupOptions& options_;
  Connection& connection_;
  Findings& findings_;
};

}  // namespace

void check_file(const CheckupOptions& options, Findings& findings) {
  std::error_code error;
  if (!std::filesystem::exists(options.path, error)) {
    return findings.critical(
        "reach", options.path + " is not there",
        "give the application's file, or: hapax migrate 'sqlite:" + options.path + "'");
  }
  auto connection = Connection::open(options.path, Opening::kReadOnly);
  if (!connection) {
    return findings.critical("reach", connection.error().detail,
                             "see that this user may read the file and its folder");
  }
  FileCheckup(options, *connection, findings).run();
}

}  // namespace hapax::sqlite
