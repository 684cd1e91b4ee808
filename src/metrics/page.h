// The text format of Prometheus (0.0.4): families of samples, one behind the other.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "metrics/histogram.h"

namespace hapax::metrics {

using Label = std::pair<std::string_view, std::string_view>;
using Labels = std::vector<Label>;

class Page {
 public:
  static constexpr std::string_view kMediaType = "text/plain; version=0.0.4; charset=utf-8";

  // Begins a family; its samples follow.
  void counter(std::string_view name, std::string_view help) { family(name, help, "counter"); }
  void gauge(std::string_view name, std::string_view help) { family(name, help, "gauge"); }
  template <std::unsigned_integral Value>
  void sample(const Labels& labels, Value value) {
    line("", labels, std::to_string(value));
  }
  void sample(const Labels& labels, double value) { line("", labels, number(value)); }

  void histogram(std::string_view name, std::string_view help) { family(name, help, "histogram"); }
  void sample(const Labels& labels, const HistogramValues& values);
  void sample(const Labels& labels, const Histogram& values) { sample(labels, values.values()); }
  // A family of one.
  void histogram(std::string_view name, std::string_view help, const Histogram& values) {
    histogram(name, help);
    sample({}, values);
  }

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void family(std::string_view name, std::string_view help, std::string_view type);
  void line(std::string_view suffix, const Labels& labels, std::string_view value);
  static std::string number(double value);

  std::string text_;
  std::string name_;
};

}  // namespace hapax::metrics
