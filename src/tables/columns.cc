#include "tables/columns.h"

#include <cstdio>

#include "base/assert.h"

namespace hapax::tables {

bool is_column_of(std::string_view enumerator, std::string_view column) {
  if (!enumerator.starts_with('k')) return false;
  std::size_t at = 0;
  for (const char c : enumerator.substr(1)) {
    const bool starts_word = c >= 'A' && c <= 'Z';
    if (starts_word && at != 0 && (at == column.size() || column[at++] != '_')) return false;
    const char expected = starts_word ? static_cast<char>(c - 'A' + 'a') : c;
    if (at == column.size() || column[at++] != expected) return false;
  }
  return at == column.size();
}

void check_columns(std::span<const std::string_view> enumerators,
                   std::span<const std::string_view> columns) {
  const bool only = enumerators.size() == 1 && enumerators.front() == "kOnly";
  bool fit = enumerators.size() == columns.size();
  for (std::size_t at = 0; fit && !only && at < columns.size(); ++at) {
    fit = is_column_of(enumerators[at], columns[at]);
  }
  if (fit) return;
  for (std::size_t at = 0; at < columns.size() || at < enumerators.size(); ++at) {
    const std::string_view column = at < columns.size() ? columns[at] : "-";
    const std::string_view enumerator = at < enumerators.size() ? enumerators[at] : "-";
    std::fprintf(stderr, "hapax: column %zu is %.*s, read as %.*s\n", at,
                 static_cast<int>(column.size()), column.data(),
                 static_cast<int>(enumerator.size()), enumerator.data());
  }
  HAPAX_ASSERT(fit, "a statement answers the columns that are read");
}

}  // namespace hapax::tables
