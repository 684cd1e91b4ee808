#include "cluster/checkup.h"

#include "cluster/log.h"
#include "journal/names.h"
#include "shared/shared_store.h"

namespace hapax::cluster {

namespace {

using postgres::Findings;
using postgres::Look;
using postgres::Severity;
using postgres::text_of;

bool check_format(Look& look) {
  const auto rows = look.ask("store format", "SELECT version FROM \"{schema}\".format");
  if (!rows) return false;
  const std::int64_t version = rows->size() == 1 ? rows->number(0, 0) : 0;
  if (version >= kStoreVersionFirst && version <= kStoreVersion) {
    look.findings().ok("store format", look.schema() + " has format " + std::to_string(version));
    return true;
  }
  look.findings().critical(
      "store format",
      look.schema() + " has format " + std::to_string(version) + ", this program knows formats " +
          std::to_string(kStoreVersionFirst) + " to " + std::to_string(kStoreVersion),
      "use the Hapax that made it, everywhere");
  return false;
}

void check_keys(Look& look) {
  const auto rows = look.ask(
      "store structure",
      "SELECT t.name, t.key FROM (VALUES ('log', 'segment, at'), ('file', 'id'), "
      "('piece', 'file, at')) AS t(name, key) WHERE NOT EXISTS (SELECT 1 FROM pg_constraint AS k "
      "WHERE k.conrelid = to_regclass('\"{schema}\".' || t.name) AND k.contype = 'p')");
  for (std::size_t row = 0; rows && row < rows->size(); ++row) {
    look.findings().critical(
        "store structure", "the table " + text_of(*rows, row, 0) + " or its primary key is missing",
        look.named("stop all processes; ALTER TABLE \"{schema}\"." + text_of(*rows, row, 0) +
                   " ADD PRIMARY KEY (" + text_of(*rows, row, 1) + ");"));
  }
}

// Processes without a keeper write no snapshots, and the log grows.
void check_keeper(Look& look) {
  const auto rows = look.ask(
      "store keeper",
      "SELECT (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND "
      "application_name = 'hapax store log'), a.pid, coalesce(a.client_addr::text, 'local'), "
      "to_char(a.backend_start, 'YYYY-MM-DD HH24:MI:SS TZ') FROM (SELECT 1) AS one LEFT JOIN "
      "(pg_locks AS l JOIN pg_stat_activity AS a ON a.pid = l.pid) ON l.locktype = 'advisory' "
      "AND l.granted AND l.objsubid = 2 AND l.database = (SELECT oid FROM pg_database WHERE "
      "datname = current_database()) AND l.classid::bigint = (hashtext('{schema}')::bigint & "
      "4294967295) AND l.objid::bigint = (hashtext('" +
          std::string(shared::kKeeperName) + "')::bigint & 4294967295) LIMIT 1");
  if (!rows) return;
  const std::string processes = text_of(*rows, 0, 0) + " processes are connected";
  if (!rows->is_null(0, 1)) {
    look.findings().ok("store keeper", processes + ", the keeper is pid " + text_of(*rows, 0, 1) +
                                           " from " + text_of(*rows, 0, 2) + " since " +
                                           text_of(*rows, 0, 3));
  } else if (rows->number(0, 0) == 0) {
    look.findings().ok("store keeper", "nobody uses it now");
  } else {
    look.findings().warn(
        "store keeper", processes + ", and none keeps it: no snapshots are written",
        "ask again in a minute; if it stays, restart one `hapax serve`, and use no "
        "pooler, or one that pools sessions");
  }
  look.findings().figure("processes", rows->number(0, 0));
}

void check_moved(Look& look) {
  const auto rows =
      look.ask("store moved", "SELECT name FROM \"{schema}\".file WHERE name IN ('" +
                                  std::string(journal::kCopyingName) + "', '" +
                                  std::string(journal::kMovedName) + "') ORDER BY name LIMIT 1");
  if (!rows || rows->size() == 0) return;
  if (text_of(*rows, 0, 0) == journal::kMovedName) {
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
  const auto rows = look.ask(
      "store size",
      "SELECT coalesce((SELECT max(segment) FROM \"{schema}\".log), 0) - "
      "coalesce((SELECT min(segment) FROM \"{schema}\".log), 1) + 1, "
      "pg_total_relation_size('\"{schema}\".log'), "
      "pg_total_relation_size('\"{schema}\".piece'), (SELECT count(*) FROM \"{schema}\".file "
      "WHERE starts_with(name, 'snapshot-')), coalesce((SELECT min(name) FROM \"{schema}\".file "
      "WHERE starts_with(name, 'snapshot-')), 'none')");
  if (!rows) return;
  look.findings().ok("store size", text_of(*rows, 0, 0) + " segments, " +
                                       database::bytes_text(rows->number(0, 1)) + " of log; " +
                                       text_of(*rows, 0, 3) + " snapshots, " +
                                       database::bytes_text(rows->number(0, 2)) + ", the oldest " +
                                       text_of(*rows, 0, 4));
  look.findings().figure("segments", rows->number(0, 0));
  look.findings().figure("log_bytes", rows->number(0, 1));
  look.findings().figure("snapshots", rows->number(0, 3));
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

}  // namespace hapax::cluster
