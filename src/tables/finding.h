// What a checkup of a database found: `hapax doctor DB` prints these.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"

namespace hapax::tables {

enum class Severity : std::uint8_t { kOk, kWarning, kCritical };

struct Finding {
  std::string check;
  Severity severity = Severity::kOk;
  std::string found;   // what was seen, with its figures; says if one is an estimate or a bound
  std::string remedy;  // the command or the SQL; empty if all is well
  std::vector<std::pair<std::string, std::int64_t>> figures;  // for programs
};

class Findings {
 public:
  void ok(std::string check, std::string found) { add({std::move(check), {}, std::move(found)}); }
  void warn(std::string check, std::string found, std::string remedy) {
    add({std::move(check), Severity::kWarning, std::move(found), std::move(remedy)});
  }
  void critical(std::string check, std::string found, std::string remedy) {
    add({std::move(check), Severity::kCritical, std::move(found), std::move(remedy)});
  }
  void add(Finding finding) { all_.push_back(std::move(finding)); }
  // Adds a figure to the latest finding.
  void figure(std::string name, std::int64_t value) {
    all_.back().figures.emplace_back(std::move(name), value);
  }
  [[nodiscard]] const std::vector<Finding>& all() const { return all_; }

 private:
  std::vector<Finding> all_;
};

// What is too long is worth a warning, and twelve times that is critical: 5 min and an hour.
[[nodiscard]] inline Severity severity_of(std::int64_t ms, std::int64_t patience_ms) {
  if (ms <= patience_ms) return Severity::kOk;
  return ms > 12 * patience_ms ? Severity::kCritical : Severity::kWarning;
}

// "1500 ms", "42 s", "7 min", "31 h", "12 d".
[[nodiscard]] inline std::string span_text(std::int64_t ms) {
  constexpr std::pair<std::int64_t, std::string_view> kUnits[] = {
      {86'400'000, " d"}, {3'600'000, " h"}, {60'000, " min"}, {1'000, " s"}};
  for (const auto& [unit, word] : kUnits) {
    if (ms >= 2 * unit) return base::format("{}{}", ms / unit, word);
  }
  return base::format("{} ms", ms);
}

[[nodiscard]] inline std::string bytes_text(std::int64_t bytes) {
  constexpr std::pair<int, std::string_view> kUnits[] = {{30, " GiB"}, {20, " MiB"}, {10, " KiB"}};
  for (const auto& [bits, word] : kUnits) {
    if ((bytes >> bits) >= 2) return base::format("{}{}", bytes >> bits, word);
  }
  return base::format("{} bytes", bytes);
}

}  // namespace hapax::tables
