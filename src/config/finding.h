// What is wrong with a configuration, and where.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"

namespace hapax::config {

struct Place {
  std::string source;  // a file, or an environment variable
  int line = 0;        // from 1; 0 = the whole source
  int column = 0;
  [[nodiscard]] std::string text() const {
    if (line == 0) return source;
    return base::format("{}:{}:{}", source, line, column);
  }
};

struct ConfigFinding {
  Place place;
  std::string what;
  [[nodiscard]] std::string text() const { return place.text() + ": " + what; }
};

inline constexpr std::size_t kErrorsMax = 20;

struct ConfigFindings {
  std::vector<ConfigFinding>
      errors;  // after finish(): in the order of the file, at most kErrorsMax
  std::vector<ConfigFinding> warnings;
  std::size_t errors_more = 0;  // that were found beyond them

  void error(const Place& place, std::string what) {
    if (errors.size() == kCollectedMax) {
      ++errors_more;
    } else {
      errors.push_back({place, std::move(what)});
    }
  }
  // What stands under that path ("server.loops"; "" is everything) was not understood.
  void misread(const Place& place, const std::string& path, std::string what) {
    error(place, std::move(what));
    misread_.insert(path);
  }
  // Whether everything in a section was: what it says together can be judged.
  [[nodiscard]] bool understood(std::string_view section) const {
    return std::none_of(misread_.begin(), misread_.end(), [&](const std::string& path) {
      return lies_in(path, section) || lies_in(section, path);
    });
  }
  void warning(const Place& place, std::string what) {
    if (warnings.size() < kCollectedMax) warnings.push_back({place, std::move(what)});
  }
  void finish() {
    sort(errors);
    sort(warnings);
    if (errors.size() <= kErrorsMax) return;
    errors_more += errors.size() - kErrorsMax;
    errors.resize(kErrorsMax);
  }

 private:
  static constexpr std::size_t kCollectedMax = 1'000;  // of a file that is no configuration at all

  static bool lies_in(std::string_view path, std::string_view section) {
    if (section.empty() || path == section) return true;
    return path.starts_with(section) && path[section.size()] == '.';
  }
  static void sort(std::vector<ConfigFinding>& findings) {
    std::stable_sort(
        findings.begin(), findings.end(), [](const ConfigFinding& a, const ConfigFinding& b) {
          return std::pair(a.place.line, a.place.column) < std::pair(b.place.line, b.place.column);
        });
  }

  std::set<std::string> misread_;
};

// The keys that somebody wrote, by their path ("server.loops", "streams.0.window_s").
using Given = std::map<std::string, Place, std::less<>>;

// Where a key was written, or the section around it.
[[nodiscard]] inline Place place_of(const Given& given, std::string path) {
  while (true) {
    if (const auto found = given.find(path); found != given.end()) return found->second;
    const std::size_t dot = path.rfind('.');
    if (dot == std::string::npos) return {"configuration"};
    path.resize(dot);
  }
}

}  // namespace hapax::config
