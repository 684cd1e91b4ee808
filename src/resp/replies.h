// Replies in RESP2 and RESP3.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hapax::resp {

enum class RespVersion : std::uint8_t { kResp2 = 2, kResp3 = 3 };

// Writes replies one behind the other.
class Replies {
 public:
  void use(RespVersion version) { version_ = version; }
  [[nodiscard]] RespVersion version() const { return version_; }

  void ok() { simple("OK"); }
  void simple(std::string_view text);
  void error(std::string_view code, std::string_view text);  // line breaks become spaces
  void integer(std::int64_t number);
  void bulk(std::string_view bytes);
  void null();
  void null_array();
  void boolean(bool value);
  void array(std::size_t size);
  void map(std::size_t pairs);  // RESP2: an array of twice as many
  // A map of what was written behind the first `begin` bytes: its size is known only then.
  void map_of(std::size_t begin, std::size_t pairs);
  void raw(std::string_view replies) { out_.append(replies); }  // replies already written

  [[nodiscard]] std::string_view text() const { return out_; }
  [[nodiscard]] std::size_t size() const { return out_.size(); }
  void clear();
  // Takes back what was written behind the first `begin` bytes.
  [[nodiscard]] std::string cut(std::size_t begin);

 private:
  void head(char sign, std::int64_t number);

  RespVersion version_ = RespVersion::kResp2;
  std::string out_;
};

}  // namespace hapax::resp
