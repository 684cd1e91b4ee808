#include "base/json_pointer.h"

namespace hapax::base {

std::optional<std::vector<std::string>> read_json_pointer(std::string_view text) {
  std::vector<std::string> path;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '/') {
      path.emplace_back();
      continue;
    }
    if (path.empty()) return std::nullopt;
    char c = text[i];
    if (c == '~') {
      if (++i == text.size() || (text[i] != '0' && text[i] != '1')) return std::nullopt;
      c = text[i] == '0' ? '~' : '/';
    }
    path.back() += c;
  }
  return path;
}

std::string json_pointer(const std::vector<std::string>& path) {
  std::string text;
  for (const std::string& name : path) {
    text += '/';
    for (const char c : name) {
      if (c == '~') {
        text += "~0";
      } else if (c == '/') {
        text += "~1";
      } else {
        text += c;
      }
    }
  }
  return text;
}

}  // namespace hapax::base
