// Names of others within SQL.
#pragma once

#include <string>
#include <string_view>

namespace hapax::tables {

// "na""me": a name as it is, in both databases.
[[nodiscard]] inline std::string sql_name(std::string_view name) {
  std::string text = "\"";
  for (const char c : name) {
    if (c == '"') text += '"';
    text += c;
  }
  return text + '"';
}

}  // namespace hapax::tables
