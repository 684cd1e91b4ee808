#include "metrics/page.h"

#include <charconv>

#include "base/utf8.h"

namespace hapax::metrics {

namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

void add_character(std::string& to, std::string_view character) {
  if (character == "\n") {
    to += "\\n";
    return;
  }
  if (character == "\\" || character == "\"") to.push_back('\\');
  to += character;
}

void add_byte(std::string& to, unsigned char byte) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  to += kReplacement;
  to.push_back(kDigits[byte >> 4U]);
  to.push_back(kDigits[byte & 0xfU]);
}

// A name may be any bytes, a label is UTF-8. A byte that is not is U+FFFD and two hex digits, and
// so are those of a U+FFFD that stood there: two names are never one series.
void add_escaped(std::string& to, std::string_view text) {
  while (!text.empty()) {
    const std::size_t size = base::utf8_size(text);
    const std::string_view character = text.substr(0, size);
    if (size != 0 && character != kReplacement) {
      add_character(to, character);
      text.remove_prefix(size);
    } else {
      add_byte(to, static_cast<unsigned char>(text.front()));
      text.remove_prefix(1);
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

void Page::sample(const Labels& labels, const HistogramValues& values) {
  std::uint64_t up_to = 0;
  const auto bucket = [&](std::string_view bound) {
    Labels with_bound = labels;
    with_bound.emplace_back("le", bound);
    line("_bucket", with_bound, std::to_string(up_to));
  };
  for (std::size_t i = 0; i < values.bounds.size(); ++i) {
    up_to += values.counts[i];
    bucket(number(values.bounds[i]));
  }
  up_to += values.counts.back();
  bucket("+Inf");
  line("_sum", labels, number(values.sum));
  line("_count", labels, std::to_string(up_to));
}

}  // namespace hapax::metrics
