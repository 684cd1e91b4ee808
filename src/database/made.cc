#include "database/made.h"

#include <utility>

namespace hapax::database {

namespace {

bool is_in_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '{' || c == '}';
}

std::string_view name_at(std::string_view text) {
  std::size_t size = 0;
  while (size < text.size() && is_in_name(text[size])) ++size;
  return text.substr(0, size);
}

// Functions have semicolons inside; they end with $$; .
std::string_view statement_at(std::string_view text, Made::Kind kind) {
  if (kind != Made::Kind::kFunction) return text.substr(0, text.find(";\n"));
  const std::size_t end = text.find("$$;\n");
  return end == std::string_view::npos ? text : text.substr(0, end + 2);
}

void read_statement(std::string_view text, std::vector<Made>& all) {
  constexpr std::pair<std::string_view, Made::Kind> kBeginnings[] = {
      {"CREATE TABLE ", Made::Kind::kTable},
      {"CREATE INDEX ", Made::Kind::kIndex},
      {"CREATE SEQUENCE ", Made::Kind::kSequence},
      {"CREATE FUNCTION ", Made::Kind::kFunction},
  };
  constexpr std::string_view kSchema = "\"{schema}\".";
  for (const auto& [beginning, kind] : kBeginnings) {
    if (!text.starts_with(beginning)) continue;
    std::string_view rest = text.substr(beginning.size());
    if (rest.starts_with(kSchema)) rest.remove_prefix(kSchema.size());
    all.push_back({kind, std::string(name_at(rest)), std::string(statement_at(text, kind))});
  }
}

}  // namespace

std::vector<Made> made_by(std::span<const Migration> migrations) {
  std::vector<Made> all;
  for (const Migration& migration : migrations) {
    std::string_view text = migration.text;
    for (;;) {
      read_statement(text, all);
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

}  // namespace hapax::database
