// Whether tables and functions are still what the migrations made of them, and nothing of somebody
// else's stands between.
#include <map>
#include <set>

#include "postgres/checkup.h"
#include "postgres/migrate.h"
#include "tables/made.h"

namespace hapax::postgres {

namespace {

using tables::Made;

struct Found {
  std::string type;
  bool not_null = false;
  bool has_default = false;
};

void check_column(Look& look, const std::string& table, const tables::Column& column,
                  const Found& found) {
  const std::string name = table + "." + column.name;
  const std::string alter =
      look.named("ALTER TABLE \"{schema}\"." + table + " ALTER COLUMN " + column.name);
  const std::string wanted = tables::full_type(column.type);
  if (found.type != wanted) {
    look.findings().critical(
        "structure", "the column " + name + " has the type " + found.type + ", not " + wanted,
        alter + " TYPE " + column.type + ";");
  }
  if (column.not_null && !found.not_null) {
    look.findings().critical("structure", name + " may be NULL", alter + " SET NOT NULL;");
  }
  if (column.has_default && !found.has_default) {
    look.findings().critical("structure", "the column " + name + " has lost its default",
                             look.named("see its definition: " + column.sql));
  }
}

void check_columns(Look& look, std::span<const Made> all) {
  enum Column { kTableName, kName, kType, kNotNull, kHasDefault, kColumns };
  const auto rows = look.ask(
      "structure",
      "SELECT c.relname AS table_name, a.attname AS name, "
      "format_type(a.atttypid, a.atttypmod) AS type, a.attnotnull AS not_null, "
      "a.atthasdef OR a.attidentity <> '' AS has_default FROM pg_attribute AS a JOIN pg_class AS c "
      "ON c.oid = "
      "a.attrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = '{schema}' "
      "AND c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped");
  if (!rows) return;
  std::map<std::pair<std::string, std::string>, Found> found;
  std::set<std::string> tables;
  for (std::size_t row = 0; row < rows->size(); ++row) {
    tables.insert(rows->text(row, kTableName));
    found[{rows->text(row, kTableName), rows->text(row, kName)}] = {
        rows->text(row, kType), rows->is_true(row, kNotNull), rows->is_true(row, kHasDefault)};
  }
  for (const Made& made : all) {
    if (!tables.contains(made.name)) continue;  // Told as a missing table.
    for (const tables::Column& column : made.columns) {
      const auto one = found.find({made.name, column.name});
      if (one != found.end()) {
        check_column(look, made.name, column, one->second);
      } else {
        look.findings().critical(
            "structure", "the column " + made.name + "." + column.name + " is missing",
            look.named("ALTER TABLE \"{schema}\"." + made.name + " ADD COLUMN " + column.sql +
                       "; what it held is lost: restore a backup if it mattered"));
      }
    }
  }
}

// `hapax migrate --retention` writes the texts of these.
bool is_set_by_retention(const Made& made) {
  return made.name == "outbox_part" || made.name == "outbox_retention";
}

void check_bodies(Look& look, std::span<const Made> all) {
  enum Column { kName, kBody, kAsOwner, kColumns };
  const auto rows = look.ask(
      "structure",
      "SELECT p.proname || '(' || oidvectortypes(p.proargtypes) || ')' AS name, p.prosrc AS body, "
      "p.prosecdef AS as_owner "
      "FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace "
      "WHERE n.nspname = '{schema}'");
  if (!rows) return;
  std::map<std::string, std::size_t> found;
  for (std::size_t row = 0; row < rows->size(); ++row) found[rows->text(row, kName)] = row;
  for (const Made& made : all) {
    if (made.kind != Made::Kind::kFunction) continue;
    const std::string name = made.name + "(" + made.arguments + ")";
    const auto one = found.find(name);
    const std::string remedy =
        "run its CREATE FUNCTION, as CREATE OR REPLACE, from: hapax migrate postgres:// --schema " +
        look.schema() + " --print";
    if (one == found.end()) {
      look.findings().critical("structure", "the function " + name + " is missing", remedy);
      continue;
    }
    const bool owner = made.sql.find("SECURITY DEFINER") != std::string::npos;
    const bool same =
        is_set_by_retention(made) || (rows->at(one->second, kBody) == look.named(made.body));
    if (same && owner == rows->is_true(one->second, kAsOwner)) continue;
    look.findings().critical("structure",
                             "the function " + name +
                                 " was replaced by somebody: it is not the "
                                 "one that the migrations made",
                             remedy);
  }
}

// They may change or drop rows, and nobody else would notice.
void check_triggers(Look& look) {
  enum Column { kTableName, kName, kRemedy, kColumns };
  const auto rows = look.ask(
      "triggers",
      "SELECT c.relname AS table_name, t.tgname AS name, format('DROP TRIGGER %I ON %I.%I;', "
      "t.tgname, n.nspname, "
      "c.relname) AS remedy FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid "
      "JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = '{schema}' "
      "AND NOT t.tgisinternal AND t.tgparentid = 0 UNION ALL "
      "SELECT c.relname, r.rulename, format('DROP RULE %I ON %I.%I;', r.rulename, n.nspname, "
      "c.relname) FROM pg_rewrite AS r JOIN pg_class AS c ON c.oid = r.ev_class "
      "JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = '{schema}' "
      "AND c.relkind IN ('r', 'p') ORDER BY 1, 2 LIMIT 20");
  for (std::size_t row = 0; rows && row < rows->size(); ++row) {
    look.findings().warn("triggers",
                         "the table " + rows->text(row, kTableName) +
                             " has a trigger or rule of somebody, " + rows->text(row, kName) +
                             ": it can change or drop rows, which are then never sent or known",
                         "see what it does; without it: " + rows->text(row, kRemedy));
  }
}

void check_row_security(Look& look) {
  enum Column { kName, kForced, kColumns };
  const auto rows =
      look.ask("row security",
               "SELECT c.relname AS name, c.relforcerowsecurity AS forced FROM pg_class AS c JOIN "
               "pg_namespace AS n "
               "ON n.oid = c.relnamespace WHERE n.nspname = '{schema}' AND c.relkind IN ('r', 'p') "
               "AND (c.relrowsecurity OR c.relforcerowsecurity) ORDER BY 1 LIMIT 20");
  for (std::size_t row = 0; rows && row < rows->size(); ++row) {
    const std::string table = rows->text(row, kName);
    const bool forced = rows->is_true(row, kForced);
    const std::string alter = look.named("ALTER TABLE \"{schema}\"." + table);
    Finding finding{"row security", forced ? Severity::kCritical : Severity::kWarning,
                    "row level security is " + std::string(forced ? "forced" : "on") + " for " +
                        table + ": rows that a policy hides are neither sent nor known" +
                        (forced ? ", for the owner of the tables, too" : ""),
                    alter + " DISABLE ROW LEVEL SECURITY;" +
                        (forced ? " " + alter + " NO FORCE ROW LEVEL SECURITY;" : "")};
    look.findings().add(std::move(finding));
  }
}

}  // namespace

bool check_drift(Look& look, std::span<const Made> all) {
  const std::size_t before = look.findings().all().size();
  check_columns(look, all);
  check_bodies(look, all);
  check_triggers(look);
  check_row_security(look);
  return look.findings().all().size() == before;
}

}  // namespace hapax::postgres
