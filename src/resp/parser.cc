#include "resp/parser.h"

#include <algorithm>
#include <utility>

#include "base/whole_number.h"
#include "base/words.h"

namespace hapax::resp {

using base::hex_digit;

namespace {

constexpr std::string_view kSpaces = " \t";
constexpr std::int64_t kStrangersArguments = 10;  // as Redis has them
constexpr std::int64_t kStrangersArgumentBytes = 16'384;
constexpr std::size_t kKeptArgumentsMax = 8'192;  // room for arguments, while there are fewer

char unescaped(char c) {
  switch (c) {
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'b':
      return '\b';
    case 'a':
      return '\a';
    default:
      return c;
  }
}

// No line that a person types has one, and what speaks another protocol, TLS before all, does.
bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\t') || byte == 0x7f;
}

// The record of a TLS handshake begins with this byte.
constexpr char kTlsHandshake = 0x16;

}  // namespace

Parsed Parser::parse(std::string_view bytes) {
  if (bytes.empty() || bytes.size() < needs_) return Parsed::kMore;
  arguments_.clear();
  if (arguments_.capacity() > kKeptArgumentsMax) {
    std::vector<std::string_view>().swap(arguments_);
    if (spans_.empty()) std::vector<Span>().swap(spans_);
  }
  return bytes.front() == '*' ? parse_array(bytes) : parse_words(bytes);
}

Parsed Parser::parse_array(std::string_view bytes) {
  if (missing_ < 0) {
    const Parsed counted = read_number(bytes, '*', missing_);
    if (counted != Parsed::kCommand) return counted;
    if (missing_ > static_cast<std::int64_t>(limits_.arguments_max)) {
      return broken("invalid multibulk length");
    }
    if (stranger_ && missing_ > kStrangersArguments) {
      return broken("unauthenticated multibulk length");
    }
    missing_ = std::max<std::int64_t>(missing_, 0);
  }
  for (; missing_ > 0; --missing_) {
    const std::size_t began = at_;
    std::int64_t size = 0;
    const Parsed sized = read_number(bytes, '$', size);
    if (sized != Parsed::kCommand) return sized;
    if (size < 0 || size > static_cast<std::int64_t>(limits_.argument_bytes_max)) {
      return broken("invalid bulk length");
    }
    if (stranger_ && size > kStrangersArgumentBytes) return broken("unauthenticated bulk length");
    const auto count = static_cast<std::size_t>(size);
    if (at_ + count + 2 > limits_.command_bytes_max) return broken("command too large");
    if (bytes.size() < at_ + count + 2) {
      needs_ = at_ + count + 2;
      at_ = began;
      return Parsed::kMore;
    }
    if (bytes.substr(at_ + count, 2) != "\r\n") return broken("a bulk string without its end");
    spans_.push_back({at_, count});
    at_ += count + 2;
  }
  for (const Span& span : spans_) arguments_.push_back(bytes.substr(span.from, span.size));
  return finish(bytes, at_);
}

// Reads "<sign><number>\r\n" at at_ and moves past it.
Parsed Parser::read_number(std::string_view bytes, char sign, std::int64_t& number) {
  return read_short_number(bytes, sign, number) ? Parsed::kCommand
                                                : read_any_number(bytes, sign, number);
}

// Nearly all of them: whole, without a minus and of few digits.
bool Parser::read_short_number(std::string_view bytes, char sign, std::int64_t& number) {
  constexpr std::size_t kDigits = 9;
  const std::string_view rest = bytes.substr(at_, 1 + kDigits + 2);
  std::size_t end = 1;
  std::int64_t value = 0;
  for (; end < rest.size() && rest[end] >= '0' && rest[end] <= '9'; ++end) {
    value = value * 10 + (rest[end] - '0');
  }
  if (end > 2 && rest[1] == '0') return false;
  const bool whole = end > 1 && end + 1 < rest.size() && rest[end] == '\r' && rest[end + 1] == '\n';
  if (!whole || rest.front() != sign) return false;
  number = value;
  at_ += end + 2;
  return true;
}

Parsed Parser::read_any_number(std::string_view bytes, char sign, std::int64_t& number) {
  const std::string_view rest = bytes.substr(at_);
  if (!rest.empty() && rest.front() != sign) {
    return broken(std::string("expected '") + sign + "', got '" + rest.front() + "'");
  }
  const std::size_t end = rest.find("\r\n");
  if (end == std::string_view::npos) {
    if (rest.size() > limits_.line_bytes_max) return broken("too big count string");
    return Parsed::kMore;
  }
  const auto value = base::whole_number(rest.substr(1, end - 1));
  if (!value) return broken(sign == '*' ? "invalid multibulk length" : "invalid bulk length");
  number = *value;
  at_ += end + 2;
  return Parsed::kCommand;
}

Parsed Parser::parse_words(std::string_view bytes) {
  const std::size_t end = bytes.find('\n');
  std::string_view line = bytes.substr(0, end);
  if (line.ends_with('\r')) line.remove_suffix(1);  // It ends the line, or the rest will show.
  // A9: the bytes of another protocol can hold whole lines that somebody else chose (the ticket of
  // a TLS hello). The first of its other bytes ends the connection, before such a line is reached.
  if (std::any_of(line.begin(), line.end(), is_control)) {
    return broken(bytes.front() == kTlsHandshake ? "TLS is not spoken at this port"
                                                 : "control byte in an inline request");
  }
  if (end == std::string_view::npos) {
    return bytes.size() > limits_.line_bytes_max ? broken("too big inline request") : Parsed::kMore;
  }
  if (!split_words(line)) return broken("unbalanced quotes in request");
  for (const std::string& word : words_) arguments_.push_back(word);
  return finish(bytes, end + 1);
}

bool Parser::split_words(std::string_view line) {
  words_.clear();
  std::size_t at = 0;
  while ((at = line.find_first_not_of(kSpaces, at)) != std::string_view::npos) {
    if (!take_word(line, at)) return false;
  }
  return true;
}

// As redis-cli reads its own lines: "…" with escapes, '…' without.
bool Parser::take_word(std::string_view line, std::size_t& at) {
  std::string& word = words_.emplace_back();
  const char quote = line[at] == '"' || line[at] == '\'' ? line[at] : '\0';
  if (quote == '\0') {
    const std::size_t end = std::min(line.find_first_of(kSpaces, at), line.size());
    word = line.substr(at, end - at);
    at = end;
    return true;
  }
  for (++at; at < line.size() && line[at] != quote; ++at) {
    if (line[at] != '\\' || at + 1 >= line.size()) {
      word.push_back(line[at]);
      continue;
    }
    const char next = line[++at];
    const bool hex = quote == '"' && next == 'x' && at + 2 < line.size() &&
                     hex_digit(line[at + 1]) >= 0 && hex_digit(line[at + 2]) >= 0;
    if (hex) {
      word.push_back(static_cast<char>(hex_digit(line[at + 1]) * 16 + hex_digit(line[at + 2])));
      at += 2;
    } else if (quote == '"') {
      word.push_back(unescaped(next));
    } else {
      if (next != '\'') word.push_back('\\');
      word.push_back(next);
    }
  }
  if (at >= line.size()) return false;
  ++at;  // What follows a closing quote is a space or nothing.
  return at == line.size() || kSpaces.find(line[at]) != std::string_view::npos;
}

Parsed Parser::finish(std::string_view bytes, std::size_t consumed) {
  start_over();
  consumed_ = std::min(consumed, bytes.size());
  return Parsed::kCommand;
}

Parsed Parser::broken(std::string problem) {
  start_over();
  problem_ = std::move(problem);
  return Parsed::kBroken;
}

void Parser::start_over() {
  spans_.clear();
  at_ = 0;
  missing_ = -1;
  needs_ = 0;
}

}  // namespace hapax::resp
