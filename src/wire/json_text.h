// Just enough JSON to print: keys in the order given, text escaped.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hapax::wire {

// With quotes. Bytes that are not UTF-8 are shown as U+FFFD.
[[nodiscard]] std::string json_text(std::string_view text);

class JsonObject {
 public:
  JsonObject& add(std::string_view key, std::string_view text) { return raw(key, json_text(text)); }
  JsonObject& add(std::string_view key, const char* text) {
    return add(key, std::string_view(text));
  }
  JsonObject& add(std::string_view key, bool value) { return raw(key, value ? "true" : "false"); }
  template <std::integral Integer>
  requires(!std::same_as<Integer, bool>) JsonObject& add(std::string_view key, Integer value) {
    return raw(key, std::to_string(value));
  }
  // As text, or as `<key>_base64` if they are not UTF-8.
  JsonObject& bytes(std::string_view key, std::string_view bytes);
  // `json` is already JSON.
  JsonObject& raw(std::string_view key, std::string_view json) {
    if (!body_.empty()) body_ += ",";
    body_ += json_text(key);
    body_ += ":";
    body_ += json;
    return *this;
  }
  [[nodiscard]] std::string text() const { return "{" + body_ + "}"; }

 private:
  std::string body_;
};

class JsonArray {
 public:
  void add(std::string_view json) {
    if (!body_.empty()) body_ += ",";
    body_ += json;
  }
  [[nodiscard]] std::string text() const { return "[" + body_ + "]"; }

 private:
  std::string body_;
};

}  // namespace hapax::wire
