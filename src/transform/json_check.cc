#include "transform/json_check.h"

#include <array>

#include "base/format.h"
#include "base/utf8.h"
#include "base/words.h"
#include "transform/number_check.h"

namespace hapax::transform {

namespace {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

class JsonCheck {
 public:
  JsonCheck(std::string_view text, TransformNumbers numbers) : text_(text), numbers_(numbers) {}

  std::optional<TransformFailed> run() {
    while (!fault_ && step()) {
    }
    if (!fault_) skip_space();
    if (!fault_ && at_ < text_.size()) bad("a second value");
    return std::move(fault_);
  }

 private:
  // Reads one value, or the beginning of one, and what may close after it. False: the end.
  bool step() {
    skip_space();
    const char c = peek();
    if (c == '{' || c == '[') return open(c);
    if (c == '"') {
      text();
    } else if (c == '-' || is_digit(c)) {
      number();
    } else {
      word();
    }
    return !fault_ && after_value();
  }

  bool open(char bracket) {
    if (depth_ == kDepthMax) return bad("more than 256 levels");
    open_[depth_++] = bracket;
    ++at_;
    skip_space();
    if (peek() == (bracket == '{' ? '}' : ']')) return after_value();
    return bracket == '[' || member();
  }

  // What follows a value: commas and closing brackets. False: the outermost value is complete.
  bool after_value() {
    while (depth_ > 0) {
      skip_space();
      const bool in_object = open_[depth_ - 1] == '{';
      const char c = peek();
      if (c == ',') {
        ++at_;
        return !in_object || member();
      }
      if (c != (in_object ? '}' : ']')) return bad("a comma or a closing bracket is missing");
      ++at_;
      --depth_;
    }
    return false;
  }

  bool member() {
    skip_space();
    if (peek() != '"') return bad("an object's key is missing");
    text();
    if (fault_) return false;
    skip_space();
    if (peek() != ':') return bad("a colon is missing");
    ++at_;
    return true;
  }

  void text() {
    ++at_;
    while (!fault_) {
      if (at_ >= text_.size()) return void(bad("a string does not end"));
      const char c = text_[at_];
      const auto byte = static_cast<unsigned char>(c);
      if (c == '"') break;
      if (c == '\\') {
        escape();
      } else if (byte < 0x20) {
        bad("a control character in a string");
      } else if (byte < 0x80) {
        ++at_;
      } else if (const std::size_t size = base::utf8_size(text_.substr(at_)); size > 0) {
        at_ += size;
      } else {
        alters("text that is not UTF-8");
      }
    }
    ++at_;
  }

  void escape() {
    const char c = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
    if (c != 'u') {
      if (c == '\0' || std::string_view("\"\\/bfnrt").find(c) == std::string_view::npos) {
        return void(bad("an unknown escape"));
      }
      at_ += 2;
      return;
    }
    const int first = unit(at_);
    if (first < 0) return void(bad("an incomplete \\u escape"));
    if (first >= 0xdc00 && first <= 0xdfff) return void(alters("half a surrogate pair"));
    if (first >= 0xd800 && first <= 0xdbff) {
      const int second = unit(at_ + 6);
      if (second < 0xdc00 || second > 0xdfff) return void(alters("half a surrogate pair"));
      at_ += 6;
    }
    at_ += 6;
  }

  // The code unit of the escape \uXXXX at this place, or -1.
  [[nodiscard]] int unit(std::size_t at) const {
    if (text_.size() < at + 6 || text_[at] != '\\' || text_[at + 1] != 'u') return -1;
    int value = 0;
    for (const char c : text_.substr(at + 2, 4)) {
      const int digit = base::hex_digit(c);
      if (digit < 0) return -1;
      value = value * 16 + digit;
    }
    return value;
  }

  void number() {
    const std::size_t begin = at_;
    if (peek() == '-') ++at_;
    if (peek() == '0') {
      ++at_;
    } else if (!digits()) {
      return;
    }
    if (peek() == '.') {
      ++at_;
      if (!digits()) return;
    }
    if (peek() == 'e' || peek() == 'E') {
      ++at_;
      if (peek() == '+' || peek() == '-') ++at_;
      if (!digits()) return;
    }
    const std::string_view number = text_.substr(begin, at_ - begin);
    if (numbers_ == TransformNumbers::kExact && !double_keeps(number)) {
      at_ = begin;
      constexpr std::size_t kShown = 60;
      alters(base::format("the number {}{}", number.substr(0, kShown),
                          number.size() > kShown ? "…" : ""));
    }
  }

  bool digits() {
    if (!is_digit(peek())) return bad("a digit is missing");
    while (is_digit(peek())) ++at_;
    return true;
  }

  void word() {
    for (const std::string_view known : {"true", "false", "null"}) {
      if (text_.substr(at_).starts_with(known)) return void(at_ += known.size());
    }
    bad(at_ < text_.size() ? "no value begins here" : "a value is missing");
  }

  void skip_space() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t')) {
      ++at_;
    }
  }

  // The next byte; at the end NUL, which no rule accepts.
  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  bool bad(std::string_view what) {
    fault_ = TransformFailed{TransformFault::kBadInput,
                             base::format("the input is not JSON: {} at byte {}", what, at_)};
    return false;
  }
  void alters(std::string_view what) {
    fault_ = TransformFailed{TransformFault::kWouldAlter,
                             base::format("transform would alter it: {} at byte {}", what, at_)};
  }

  std::string_view text_;
  TransformNumbers numbers_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;
  std::array<char, kDepthMax> open_{};
  std::optional<TransformFailed> fault_;
};

}  // namespace

std::optional<TransformFailed> check_json(std::string_view text, TransformNumbers numbers) {
  return JsonCheck(text, numbers).run();
}

}  // namespace hapax::transform
