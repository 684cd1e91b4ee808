#include "tables/made.h"

#include <algorithm>
#include <utility>

namespace hapax::tables {

namespace {

constexpr std::string_view kSchema = "\"{schema}\".";

bool is_in_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '{' || c == '}';
}

std::string_view name_at(std::string_view text) {
  std::size_t size = 0;
  while (size < text.size() && is_in_name(text[size])) ++size;
  return text.substr(0, size);
}

std::string_view without_schema(std::string_view text) {
  if (text.starts_with(kSchema)) text.remove_prefix(kSchema.size());
  return text;
}

// Functions and triggers have semicolons inside; they end with $$; and END; .
std::string_view statement_at(std::string_view text, Made::Kind kind) {
  const auto until = [text](std::string_view end, std::size_t kept) {
    const std::size_t at = text.find(end);
    return at == std::string_view::npos ? text : text.substr(0, at + kept);
  };
  if (kind == Made::Kind::kFunction) return until("$$;\n", 2);
  return kind == Made::Kind::kTrigger ? until("\nEND;\n", 4) : until(";\n", 0);
}

std::string_view word_at(std::string_view text) {
  const std::size_t from = std::min(text.find_first_not_of(' '), text.size());
  text.remove_prefix(from);
  return text.substr(0, text.find_first_of(" ,\n"));
}

Column column_in(std::string_view definition) {
  const std::string_view name = word_at(definition);
  const std::string_view type = word_at(definition.substr(definition.find(name) + name.size()));
  const auto says = [definition](std::string_view words) {
    return definition.find(words) != std::string_view::npos;
  };
  return {std::string(name), std::string(type), std::string(definition),
          says("NOT NULL") || says("PRIMARY KEY"), says("DEFAULT") || says("IDENTITY")};
}

// Two spaces and a name begin the definition of a column; four go on with it.
std::vector<Column> columns_of(std::string_view table_sql) {
  std::vector<std::string> definitions;
  for (std::size_t at = table_sql.find('\n'); at != std::string_view::npos;) {
    const std::size_t end = table_sql.find('\n', at + 1);
    std::string_view line = table_sql.substr(
        at + 1, end == std::string_view::npos ? std::string_view::npos : end - at - 1);
    at = end;
    line = line.substr(0, line.find("  --"));
    if (line.starts_with("    ") && !definitions.empty()) definitions.back().append(line);
    const bool begins =
        line.size() > 2 && line.starts_with("  ") && line[2] >= 'a' && line[2] <= 'z';
    if (begins) definitions.emplace_back(line.substr(2));
  }
  std::vector<Column> columns;
  for (std::string& each : definitions) {
    if (each.ends_with(',')) each.pop_back();
    columns.push_back(column_in(each));
  }
  return columns;
}

// The types in "(scope text, key text DEFAULT NULL)", or in "(text, text)".
std::string argument_types(std::string_view text) {
  const std::size_t open = text.find('(');
  std::string_view list = text.substr(open + 1, text.find(')', open) - open - 1);
  std::string types;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    std::string_view one = list.substr(0, comma);
    list.remove_prefix(std::min(comma + 1, list.size()));
    one.remove_prefix(std::min(one.find_first_not_of(" \n"), one.size()));
    const std::size_t space = one.find(' ');
    if (space != std::string_view::npos) one.remove_prefix(space + 1);
    if (!types.empty()) types += ", ";
    types += full_type(word_at(one));
  }
  return types;
}

std::string body_of(std::string_view function_sql) {
  const std::size_t from = function_sql.find("$$") + 2;
  return std::string(function_sql.substr(from, function_sql.rfind("$$") - from));
}

void forget(std::vector<Made>& all, Made::Kind kind, std::string_view name,
            std::string_view arguments = {}) {
  std::erase_if(all, [&](const Made& made) {
    return made.kind == kind && made.name == name && made.arguments == arguments;
  });
}

void read_creation(std::string_view text, std::vector<Made>& all) {
  constexpr std::pair<std::string_view, Made::Kind> kBeginnings[] = {
      {"CREATE TABLE ", Made::Kind::kTable},
      {"CREATE INDEX ", Made::Kind::kIndex},
      {"CREATE SEQUENCE ", Made::Kind::kSequence},
      {"CREATE FUNCTION ", Made::Kind::kFunction},
      {"CREATE OR REPLACE FUNCTION ", Made::Kind::kFunction},
      {"CREATE TRIGGER ", Made::Kind::kTrigger},
  };
  for (const auto& [beginning, kind] : kBeginnings) {
    if (!text.starts_with(beginning)) continue;
    const std::string_view sql = statement_at(text, kind);
    Made made{kind, std::string(name_at(without_schema(text.substr(beginning.size())))),
              std::string(sql)};
    if (kind == Made::Kind::kTable) made.columns = columns_of(sql);
    if (kind == Made::Kind::kFunction) {
      made.arguments = argument_types(sql);
      made.body = body_of(sql);
    }
    forget(all, kind, made.name, made.arguments);
    all.push_back(std::move(made));
  }
}

void read_change(std::string_view text, std::vector<Made>& all) {
  constexpr std::string_view kDrop = "DROP FUNCTION ";
  constexpr std::string_view kDropTrigger = "DROP TRIGGER ";
  constexpr std::string_view kAlter = "ALTER TABLE ";
  constexpr std::string_view kAdd = " ADD COLUMN ";
  const std::string_view sql = text.substr(0, text.find(";\n"));
  if (text.starts_with(kDrop)) {
    const std::string_view rest = without_schema(sql.substr(kDrop.size()));
    forget(all, Made::Kind::kFunction, name_at(rest), argument_types(rest));
  } else if (text.starts_with(kDropTrigger)) {
    forget(all, Made::Kind::kTrigger, name_at(sql.substr(kDropTrigger.size())));
  } else if (text.starts_with(kAlter) && sql.find(kAdd) != std::string_view::npos) {
    const std::string_view table = name_at(without_schema(sql.substr(kAlter.size())));
    const auto found = std::ranges::find(all, table, &Made::name);
    if (found == all.end()) return;
    found->columns.push_back(column_in(sql.substr(sql.find(kAdd) + kAdd.size())));
  }
}

}  // namespace

std::string full_type(std::string_view type) {
  return type == "timestamptz" ? "timestamp with time zone" : std::string(type);
}

std::vector<Made> made_by(std::span<const Migration> migrations) {
  std::vector<Made> all;
  for (const Migration& migration : migrations) {
    std::string_view text = migration.text;
    for (;;) {
      read_creation(text, all);
      read_change(text, all);
      const std::size_t line = text.find('\n');
      if (line == std::string_view::npos) break;
      text.remove_prefix(line + 1);
    }
  }
  return all;
}

std::string primary_key_of(std::string_view table_sql) {
  constexpr std::string_view kList = "PRIMARY KEY (";
  const std::size_t at = table_sql.find(kList);
  if (at != std::string_view::npos) {
    const std::size_t from = at + kList.size();
    return std::string(table_sql.substr(from, table_sql.find(')', from) - from));
  }
  const std::size_t word = table_sql.find("PRIMARY KEY");
  if (word == std::string_view::npos) return "";
  const std::size_t line = table_sql.rfind('\n', word);
  const std::size_t from = table_sql.find_first_not_of(" \n", line);
  return std::string(name_at(table_sql.substr(from)));
}

}  // namespace hapax::tables
