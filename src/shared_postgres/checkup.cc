#include "shared_postgres/checkup.h"

#include "base/format.h"
#include "journal/names.h"
#include "shared/shared_store.h"
#include "shared_postgres/log.h"

namespace hapax::shared_postgres {

namespace {

using postgres::Findings;
using postgres::kOnly;
using postgres::Look;
using postgres::Severity;

bool check_format(Look& look) {
  const auto rows = look.ask("store format", "SELECT version FROM \"{schema}\".format");
  if (!rows) return false;
  const std::int64_t version = rows->size() == 1 ? rows->number(0, kOnly) : 0;
  if (version >= kStoreVersionFirst && version <= kStoreVersion) {
    look.findings().ok("store format", base::format("{} has format {}", look.schema(), version));
    return true;
  }
  look.findings().critical("store format",
                           base::format("{} has format {}, this program knows formats {} to {}",
                                        look.schema(), version, kStoreVersionFirst, kStoreVersion),
                           "use the Hapax that made it, everywhere");
  return false;
}

void check_keys(Look& look) {
  enum Column { kName, kKey, kColumns };
  const auto rows = look.ask(
      "store structure",
      "SELECT t.name, t.key FROM (VALUES ('log', 'segment, at'), ('file', 'id'), "
      "('piece', 'file, at')) AS t(name, key) WHERE NOT EXISTS (SELECT 1 FROM pg_constraint AS k "
      "WHERE k.conrelid = to_regclass('\"{schema}\".' || t.name) AND k.contype = 'p')");
  for (std::size_t row = 0; rows && row < rows->size(); ++row) {
    look.findings().critical(
        "store structure", "the table " + rows->text(row, kName) + " or its primary key is missing",
        look.named("stop all processes; ALTER TABLE \"{schema}\"." + rows->text(row, kName) +
                   " ADD PRIMARY KEY (" + rows->text(row, kKey) + ");"));
  }
}

// Processes without a keeper write no snapshots, and the log grows.
void check_keeper(Look& look) {
  enum Column { kProcesses, kPid, kAddress, kSince, kColumns };
  const auto rows = look.ask(
      "store keeper",
      "SELECT (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND "
      "application_name = 'hapax store log') AS processes, a.pid, "
      "coalesce(a.client_addr::text, 'local') AS address, "
      "to_char(a.backend_start, 'YYYY-MM-DD HH24:MI:SS TZ') AS since FROM (SELECT 1) AS one LEFT "
      "JOIN "
      "(pg_locks AS l JOIN pg_stat_activity AS a ON a.pid = l.pid) ON l.locktype = 'advisory' "
      "AND l.granted AND l.objsubid = 2 AND l.database = (SELECT oid FROM pg_database WHERE "
      "datname = current_database()) AND l.classid::bigint = (hashtext('{schema}')::bigint & "
      "4294967295) AND l.objid::bigint = (hashtext('" +
          std::string(shared::kKeeperName) + "')::bigint & 4294967295) LIMIT 1");
  if (!rows) return;
  const std::string processes = rows->text(0, kProcesses) + " processes are connected";
  if (!rows->is_null(0, kPid)) {
    look.findings().ok("store keeper", processes + ", the keeper is pid " + rows->text(0, kPid) +
                                           " from " + rows->text(0, kAddress) + " since " +
                                           rows->text(0, kSince));
  } else if (rows->number(0, kProcesses) == 0) {
    look.findings().ok("store keeper", "nobody uses it now");
  } else {
    look.findings().warn(
        "store keeper", processes + ", and none keeps it: no snapshots are written",
        "ask again in a minute; if it stays, restart one `hapax serve`, and use no "
        "pooler, or one that pools sessions");
  }
  look.findings().figure("processes", rows->number(0, kProcesses));
}

void check_moved(Look& look) {
  const auto rows =
      look.ask("store moved", "SELECT name FROM \"{schema}\".file WHERE name IN ('" +
                                  std::string(journal::kCopyingName) + "', '" +
                                  std::string(journal::kMovedName) + "') ORDER BY name LIMIT 1");
  if (!rows || rows->size() == 0) return;
  if (rows->text(0, kOnly) == journal::kMovedName) {
    look.findings().warn("store moved", "this store was moved to another place by hapax copy",
                         look.named("use it there; when you need this copy of it no longer: DROP "
                                    "SCHEMA \"{schema}\" CASCADE;"));
  } else {
    look.findings().warn("store moved", "a hapax copy into this schema was not finished",
                         "give the same command again");
  }
}

// The ends of the log and the snapshots are found by index; sizes are of files.
void check_growth(Look& look) {
  enum Column { kSegments, kLogBytes, kPieceBytes, kSnapshots, kOldest, kColumns };
  const auto rows =
      look.ask("store size",
               "SELECT coalesce((SELECT max(segment) FROM \"{schema}\".log), 0) - "
               "coalesce((SELECT min(segment) FROM \"{schema}\".log), 1) + 1 AS segments, "
               "pg_total_relation_size('\"{schema}\".log') AS log_bytes, "
               "pg_total_relation_size('\"{schema}\".piece') AS piece_bytes, (SELECT count(*) FROM "
               "\"{schema}\".file "
               "WHERE starts_with(name, 'snapshot-')) AS snapshots, coalesce((SELECT min(name) "
               "FROM \"{schema}\".file "
               "WHERE starts_with(name, 'snapshot-')), 'none') AS oldest");
  if (!rows) return;
  look.findings().ok("store size", rows->text(0, kSegments) + " segments, " +
                                       tables::bytes_text(rows->number(0, kLogBytes)) +
                                       " of log; " + rows->text(0, kSnapshots) + " snapshots, " +
                                       tables::bytes_text(rows->number(0, kPieceBytes)) +
                                       ", the oldest " + rows->text(0, kOldest));
  look.findings().figure("segments", rows->number(0, kSegments));
  look.findings().figure("log_bytes", rows->number(0, kLogBytes));
  look.findings().figure("snapshots", rows->number(0, kSnapshots));
}

}  // namespace

void check_store(const std::string& schema, postgres::Connection& connection, Findings& findings) {
  Look look(connection, schema, findings);
  if (!check_format(look)) return;
  check_keys(look);
  postgres::check_unlogged(look, "store unlogged");
  check_keeper(look);
  check_moved(look);
  check_growth(look);
}

}  // namespace hapax::shared_postgres
