// Rows of a benchmark: printed as a table for people, written as JSON for programs. A figure is a
// ratio against something measured in the same run, because machines are noisy.
#pragma once

#include <cstdio>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

namespace hapax::bench {

struct Row {
  std::string name;
  double value = 0;
  std::string unit;
  std::string against;  // what the ratio is taken against; empty = a plain figure
  std::optional<double> ratio;
  std::string bar;  // "≥ 0.6", "≤ 64"; empty = reported only
  std::optional<bool> ok;
};

class Table {
 public:
  void add(Row row) {
    print(row);
    rows_.push_back(std::move(row));
  }
  // Plain figure.
  void figure(const std::string& name, double value, const std::string& unit) {
    add({name, value, unit, "", std::nullopt, "", std::nullopt});
  }
  // A figure with a bar of its own.
  void at_most(const std::string& name, double value, const std::string& unit, double bar) {
    add({name, value, unit, "", std::nullopt, "<= " + text(bar), value <= bar});
  }
  // A ratio with a lower bar.
  void ratio_at_least(const std::string& name, double value, const std::string& unit,
                      const std::string& against, double other, double bar) {
    const double ratio = value / other;
    add({name, value, unit, against, ratio, ">= " + text(bar), ratio >= bar});
  }
  void ratio_at_most(const std::string& name, double value, const std::string& unit,
                     const std::string& against, double other, double bar) {
    const double ratio = value / other;
    add({name, value, unit, against, ratio, "<= " + text(bar), ratio <= bar});
  }

  [[nodiscard]] bool write_json(const std::string& path) const {
    std::ofstream out(path);
    out << "[\n";
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const Row& row = rows_[i];
      out << "  {\"name\": \"" << row.name << "\", \"value\": " << row.value << ", \"unit\": \""
          << row.unit << "\", \"against\": \"" << row.against
          << "\", \"ratio\": " << (row.ratio ? text(*row.ratio) : "null") << ", \"bar\": \""
          << row.bar << "\", \"ok\": " << (row.ok ? (*row.ok ? "true" : "false") : "null") << "}"
          << (i + 1 < rows_.size() ? "," : "") << "\n";
    }
    out << "]\n";
    out.flush();
    return out.good();
  }
  [[nodiscard]] bool all_ok() const {
    for (const Row& row : rows_) {
      if (row.ok && !*row.ok) return false;
    }
    return true;
  }

 private:
  static std::string text(double number) {
    char buffer[32];
    std::snprintf(buffer, sizeof buffer, "%.4g", number);
    return buffer;
  }
  static void print(const Row& row) {
    std::printf("%-58s %14.6g %-10s", row.name.c_str(), row.value, row.unit.c_str());
    if (row.ratio) std::printf(" %7.3f x %-22s", *row.ratio, row.against.c_str());
    if (!row.bar.empty()) std::printf(" bar %-9s %s", row.bar.c_str(), *row.ok ? "ok" : "MISSED");
    std::printf("\n");
    std::fflush(stdout);
  }

  std::vector<Row> rows_;
};

}  // namespace hapax::bench
