#include "resp/replies.h"

#include <charconv>

namespace hapax::resp {

void Replies::head_at(std::size_t begin, char sign, std::int64_t number) {
  char line[24];
  line[0] = sign;
  auto [end, failed] = std::to_chars(line + 1, line + sizeof line - 2, number);
  static_cast<void>(failed);  // 20 digits and a minus hold every 64-bit number.
  *end++ = '\r';
  *end++ = '\n';
  out_.insert(begin, line, static_cast<std::size_t>(end - line));
}

void Replies::simple(std::string_view text) {
  out_.push_back('+');
  out_.append(text);
  out_.append("\r\n");
}

void Replies::error(std::string_view code, std::string_view text) {
  out_.push_back('-');
  out_.append(code);
  if (!text.empty()) out_.push_back(' ');
  for (const char c : text) out_.push_back(c == '\r' || c == '\n' ? ' ' : c);
  out_.append("\r\n");
}

void Replies::integer(std::int64_t number) { head(':', number); }

void Replies::bulk(std::string_view bytes) {
  head('$', static_cast<std::int64_t>(bytes.size()));
  out_.append(bytes);
  out_.append("\r\n");
}

void Replies::null() { out_.append(version_ == Version::kResp3 ? "_\r\n" : "$-1\r\n"); }

void Replies::null_array() { out_.append(version_ == Version::kResp3 ? "_\r\n" : "*-1\r\n"); }

void Replies::boolean(bool value) {
  if (version_ == Version::kResp3) {
    out_.append(value ? "#t\r\n" : "#f\r\n");
  } else {
    integer(value ? 1 : 0);
  }
}

void Replies::array(std::size_t size) { head('*', static_cast<std::int64_t>(size)); }

void Replies::map(std::size_t pairs) { map_of(out_.size(), pairs); }

void Replies::map_of(std::size_t begin, std::size_t pairs) {
  if (version_ == Version::kResp3) {
    head_at(begin, '%', static_cast<std::int64_t>(pairs));
  } else {
    head_at(begin, '*', static_cast<std::int64_t>(2 * pairs));
  }
}

std::string Replies::cut(std::size_t begin) {
  std::string rest = out_.substr(begin);
  out_.resize(begin);
  return rest;
}

}  // namespace hapax::resp
