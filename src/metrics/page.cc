#include "metrics/page.h"

#include <charconv>

namespace hapax::metrics {

namespace {

void add_escaped(std::string& to, std::string_view text) {
  for (const char c : text) {
    if (c == '\\' || c == '"') to.push_back('\\');
    if (c == '\n') {
      to += "\\n";
    } else {
      to.push_back(c);
    }
  }
}

}  // namespace

std::string Page::number(double value) {
  char text[32];
  const auto [end, failed] = std::to_chars(text, text + sizeof text, value);
  return failed == std::errc{} ? std::string(text, end) : "NaN";
}

void Page::family(std::string_view name, std::string_view help, std::string_view type) {
  name_ = name;
  text_ += "# HELP " + name_ + " " + std::string(help) + "\n";
  text_ += "# TYPE " + name_ + " " + std::string(type) + "\n";
}

void Page::line(std::string_view suffix, const Labels& labels, std::string_view value) {
  text_ += name_;
  text_ += suffix;
  char before = '{';
  for (const auto& [label, content] : labels) {
    text_.push_back(std::exchange(before, ','));
    text_ += label;
    text_ += "=\"";
    add_escaped(text_, content);
    text_.push_back('"');
  }
  if (!labels.empty()) text_.push_back('}');
  text_.push_back(' ');
  text_ += value;
  text_.push_back('\n');
}

void Page::histogram(std::string_view name, std::string_view help, const Histogram& values) {
  family(name, help, "histogram");
  std::uint64_t up_to = 0;
  for (std::size_t i = 0; i < values.bounds().size(); ++i) {
    up_to += values.count(i);
    const std::string bound = number(values.bounds()[i]);
    line("_bucket", {{"le", bound}}, std::to_string(up_to));
  }
  up_to += values.count(values.bounds().size());
  line("_bucket", {{"le", "+Inf"}}, std::to_string(up_to));
  line("_sum", {}, number(values.sum()));
  line("_count", {}, std::to_string(up_to));
}

}  // namespace hapax::metrics
