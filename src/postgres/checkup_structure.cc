#include <algorithm>
#include <map>
#include <set>

#include "base/format.h"
#include "postgres/checkup.h"
#include "postgres/migrate.h"
#include "tables/made.h"

namespace hapax::postgres {

namespace {

using tables::Made;

constexpr int kLanesMade = 16;

std::string migrate_command(const CheckupOptions& options) {
  return "hapax migrate '" + options.shown + "'" +
         (options.schema == kSchemaDefault ? "" : " --schema " + options.schema);
}

// Whether the rest can be looked at.
bool check_tables_version(const CheckupOptions& options, Look& look) {
  Findings& findings = look.findings();
  const auto applied = applied_in(look.connection(), options.schema);
  if (!applied) {
    findings.warn("schema", "could not be looked at: " + applied.error().detail,
                  "GRANT USAGE ON SCHEMA " + options.schema + " TO this role, or ask as another");
    return false;
  }
  if (applied->empty()) {
    const std::string found = "there are no tables of Hapax in schema " + options.schema;
    options.tables_expected ? findings.critical("schema", found, migrate_command(options))
                            : findings.ok("schema", found);
    return false;
  }
  const std::uint32_t newest = applied->back().version;
  const std::uint32_t known = migrations().back().version;
  const auto left = tables::pending(migrations(), *applied);
  if (newest > known) {
    findings.warn("schema",
                  base::format("has version {}, this program knows {}: somebody uses a newer one",
                               newest, known),
                  "use the newer Hapax everywhere, and this command from it");
  } else if (!left) {
    findings.critical("schema", left.error().detail, "use the build that made these tables");
  } else if (!left->empty()) {
    findings.critical("schema",
                      base::format("has version {}, this program needs {}", newest, known),
                      migrate_command(options));
  } else {
    findings.ok("schema", base::format("{} has version {}", options.schema, newest));
  }
  findings.figure("version", newest);
  return left && left->empty();
}

// Of what check_structure() finds.
enum class FoundColumn { kKind, kName, kColumns };

std::set<std::string> names_in(const std::optional<Rows>& rows, std::string_view kind) {
  using enum FoundColumn;
  std::set<std::string> names;
  for (std::size_t row = 0; rows && row < rows->size(); ++row) {
    if (rows->at(row, kKind) == kind) names.insert(rows->text(row, kName));
  }
  return names;
}

// An index of a table that has rows is made without keeping writers away, where PostgreSQL can.
std::string index_sql(const std::string& sql) {
  if (sql.find("\".outbox (") != std::string::npos) return sql;
  return "CREATE INDEX CONCURRENTLY" + sql.substr(std::string_view("CREATE INDEX").size());
}

struct Present {
  std::set<std::string> tables;
  std::set<std::string> indexes;
  std::set<std::string> broken;  // indexes that a failed CREATE INDEX CONCURRENTLY left
  std::set<std::string> sequences;
  std::set<std::string> keyed;  // tables with a primary key
};

class Structure {
 public:
  Structure(Look& look, Present present) : look_(look), present_(std::move(present)) {}

  void check(const Made& made) {
    if (made.kind == Made::Kind::kTable) return table(made);
    if (made.kind == Made::Kind::kIndex) return index(made);
    if (made.kind == Made::Kind::kSequence && !present_.sequences.contains(made.name)) {
      missing("the sequence " + made.name, look_.named(made.sql) + ";");
    }
  }
  void partitions() {
    for (int part = 0; part < kPartitions; ++part) {
      const std::string number = base::format("{:02}", part);
      if (present_.tables.contains("outbox_p" + number)) continue;
      missing("the partition outbox_p" + number,
              look_.named("CREATE TABLE \"{schema}\".outbox_p" + number +
                          " PARTITION OF \"{schema}\".outbox FOR VALUES IN (" +
                          std::to_string(part) + ");"));
    }
  }
  [[nodiscard]] bool good() const { return good_; }

 private:
  void missing(const std::string& what, const std::string& remedy) {
    good_ = false;
    look_.findings().critical("structure", what + " is missing", remedy);
  }
  void table(const Made& made) {
    if (!present_.tables.contains(made.name)) {
      return missing("the table " + made.name,
                     "run its CREATE TABLE from: hapax migrate postgres:// --schema " +
                         look_.schema() + " --print");
    }
    if (present_.keyed.contains(made.name)) return;
    missing("the primary key of " + made.name,
            look_.named("ALTER TABLE \"{schema}\"." + made.name + " ADD PRIMARY KEY (" +
                        tables::primary_key_of(made.sql) +
                        "); after removing the duplicates that it names"));
  }
  void index(const Made& made) {
    if (!present_.indexes.contains(made.name)) {
      return missing("the index " + made.name, look_.named(index_sql(made.sql)) + ";");
    }
    if (!present_.broken.contains(made.name)) return;
    missing("a valid index " + made.name,
            look_.named("REINDEX INDEX \"{schema}\"." + made.name) + ";");
  }

  Look& look_;
  Present present_;
  bool good_ = true;
};

bool check_lanes_present(Look& look) {
  const auto rows = look.ask("structure", "SELECT count(*) FROM \"{schema}\".outbox_lane");
  if (!rows || rows->number(0, kOnly) == kLanesMade) return rows.has_value();
  look.findings().critical(
      "structure", base::format("{} of 16 lanes: the rest is never sent", rows->number(0, kOnly)),
      look.named("INSERT INTO \"{schema}\".outbox_lane (lane) SELECT generate_series(0, 15) "
                 "ON CONFLICT DO NOTHING;"));
  return false;
}

// relay_clean() knows 32 partitions. What is in another one is sent, and then kept for ever; and a
// DEFAULT one takes without a word what belongs to a partition that is missing.
bool check_foreign_partitions(Look& look) {
  enum Column { kName, kBounds, kColumns };
  const auto rows = look.ask(
      "structure",
      "SELECT format('%I.%I', n.nspname, c.relname) AS name, "
      "pg_get_expr(c.relpartbound, c.oid) AS bounds "
      "FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid "
      "JOIN pg_namespace AS n ON n.oid = c.relnamespace "
      "WHERE i.inhparent = to_regclass('\"{schema}\".outbox') AND NOT (n.nspname = '{schema}' "
      "AND (c.relname, pg_get_expr(c.relpartbound, c.oid)) IN (SELECT 'outbox_p' || "
      "lpad(p::text, 2, '0'), format('FOR VALUES IN (%s)', p) FROM generate_series(0, 31) AS p)) "
      "ORDER BY 1 LIMIT 20");
  for (std::size_t row = 0; rows && row < rows->size(); ++row) {
    const std::string table = rows->text(row, kName);
    look.findings().warn(
        "structure",
        "the partition " + table + " of the outbox (" + rows->text(row, kBounds) +
            ") is not one of ours: relays send what is in it and never empty it",
        look.named("once nothing waits: ALTER TABLE \"{schema}\".outbox DETACH PARTITION " + table +
                   ";"));
  }
  return rows && rows->size() == 0;
}

}  // namespace

bool has_schema(Connection& connection, const std::string& schema) {
  const auto rows = connection.ask("SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = $1",
                                   Values().text(schema));
  return rows && rows->size() == 1;
}

void check_unlogged(Look& look, const std::string& check) {
  const auto rows = look.ask(
      check,
      "SELECT c.relname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace "
      "WHERE n.nspname = '{schema}' AND c.relkind IN ('r', 'p') AND c.relpersistence = 'u' "
      "ORDER BY 1");
  for (std::size_t row = 0; rows && row < rows->size(); ++row) {
    const std::string table = rows->text(row, kOnly);
    look.findings().critical(
        check, "the table " + table + " is unlogged: a crash of the server empties it",
        look.named("ALTER TABLE \"{schema}\"." + table + " SET LOGGED;"));
  }
}

void check_structure(Look& look) {
  const auto rows = look.ask(
      "structure",
      "SELECT c.relkind::text AS kind, c.relname AS name FROM pg_class AS c JOIN pg_namespace AS n "
      "ON n.oid = c.relnamespace WHERE n.nspname = '{schema}' UNION ALL "
      "SELECT 'broken', c.relname FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid "
      "JOIN pg_namespace AS n ON n.oid = c.relnamespace "
      "WHERE n.nspname = '{schema}' AND NOT i.indisvalid UNION ALL "
      "SELECT 'keyed', c.relname FROM pg_constraint AS k JOIN pg_class AS c ON c.oid = k.conrelid "
      "JOIN pg_namespace AS n ON n.oid = c.relnamespace "
      "WHERE n.nspname = '{schema}' AND k.contype = 'p'");
  if (!rows) return;
  Present present{names_in(rows, "r"), names_in(rows, "i"), names_in(rows, "broken"),
                  names_in(rows, "S"), names_in(rows, "keyed")};
  present.tables.merge(names_in(rows, "p"));
  present.indexes.merge(names_in(rows, "I"));
  Structure structure(look, std::move(present));
  const auto all = tables::made_by(migrations());
  for (const Made& made : all) structure.check(made);
  structure.partitions();
  const bool same = check_drift(look, all);
  const bool ours = check_foreign_partitions(look);
  if (!structure.good() || !same || !ours) return;
  if (check_lanes_present(look)) {
    look.findings().ok(
        "structure",
        base::format("{} tables, indexes, sequences and functions, 32 partitions, 16 lanes",
                     all.size()));
  }
}

void check_tables(const CheckupOptions& options, Connection& connection, Findings& findings) {
  Look look(connection, options.schema, findings);
  if (!check_tables_version(options, look)) return;
  check_structure(look);
  check_unlogged(look, "unlogged");
  check_contents(options, look);
}

}  // namespace hapax::postgres
