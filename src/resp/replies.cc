#include "resp/replies.h"

#include <charconv>

namespace hapax::resp {

namespace {

constexpr std::string_view kEnd = "\r\n";
constexpr std::size_t kKeptBytesMax = std::size_t{256}
                                      << 10;  // room for replies, while there are none

// "$12\r\n"
class Head {
 public:
  Head(char sign, std::int64_t number) {
    line_[0] = sign;
    char* const last = line_ + sizeof line_ - kEnd.size();
    // 20 digits and a minus hold every 64-bit number.
    char* const end = std::to_chars(line_ + 1, last, number).ptr;
    size_ = static_cast<std::size_t>(end - line_) + kEnd.copy(end, kEnd.size());
  }
  [[nodiscard]] std::string_view text() const { return {line_, size_}; }

 private:
  char line_[24];
  std::size_t size_;
};

}  // namespace

void Replies::head(char sign, std::int64_t number) { out_.append(Head(sign, number).text()); }

void Replies::simple(std::string_view text) {
  out_.push_back('+');
  out_.append(text);
  out_.append(kEnd);
}

void Replies::error(std::string_view code, std::string_view text) {
  out_.push_back('-');
  out_.append(code);
  if (!text.empty()) out_.push_back(' ');
  for (const char c : text) out_.push_back(c == '\r' || c == '\n' ? ' ' : c);
  out_.append(kEnd);
}

void Replies::integer(std::int64_t number) { head(':', number); }

void Replies::bulk(std::string_view bytes) {
  head('$', static_cast<std::int64_t>(bytes.size()));
  out_.append(bytes);
  out_.append(kEnd);
}

void Replies::null() { out_.append(version_ == RespVersion::kResp3 ? "_\r\n" : "$-1\r\n"); }

void Replies::null_array() { out_.append(version_ == RespVersion::kResp3 ? "_\r\n" : "*-1\r\n"); }

void Replies::boolean(bool value) {
  if (version_ == RespVersion::kResp3) {
    out_.append(value ? "#t\r\n" : "#f\r\n");
  } else {
    integer(value ? 1 : 0);
  }
}

void Replies::array(std::size_t size) { head('*', static_cast<std::int64_t>(size)); }

void Replies::map(std::size_t pairs) { map_of(out_.size(), pairs); }

void Replies::map_of(std::size_t begin, std::size_t pairs) {
  const bool real = version_ == RespVersion::kResp3;
  const Head head(real ? '%' : '*', static_cast<std::int64_t>(real ? pairs : 2 * pairs));
  out_.insert(begin, head.text());
}

void Replies::clear() {
  out_.clear();
  if (out_.capacity() > kKeptBytesMax) std::string().swap(out_);
}

std::string Replies::cut(std::size_t begin) {
  std::string rest = out_.substr(begin);
  out_.resize(begin);
  return rest;
}

}  // namespace hapax::resp
