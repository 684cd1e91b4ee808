// Writes JSON: keys in the order given, text escaped. An object and everything in it are appended
// to one buffer.
#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hapax/ids.h>
#include <hapax/time.h>

namespace hapax::wire {

// With quotes. Bytes that are not UTF-8 are shown as U+FFFD.
void append_json_text(std::string& out, std::string_view text);
[[nodiscard]] std::string json_text(std::string_view text);

// An `Out` of verdict_fields.h.
class JsonObject {
 public:
  JsonObject() : own_("{") {}

  JsonObject& add(std::string_view key, std::string_view text) {
    append_json_text(name(key), text);
    return *this;
  }
  JsonObject& add(std::string_view key, const std::string& text) {
    return add(key, std::string_view(text));
  }
  JsonObject& add(std::string_view key, const char* text) {
    return add(key, std::string_view(text));
  }
  JsonObject& add(std::string_view key, bool value) { return raw(key, value ? "true" : "false"); }
  template <std::integral Integer>
  requires(!std::same_as<Integer, bool>) JsonObject& add(std::string_view key, Integer value) {
    char digits[24];
    const auto [end, failed] = std::to_chars(std::begin(digits), std::end(digits), value);
    return raw(key, {digits, static_cast<std::size_t>(end - digits)});
  }
  template <class Tag>
  JsonObject& add(std::string_view key, Number<Tag> number) {
    return add(key, number.value);
  }
  // As text, or as `<key>_base64` if they are not UTF-8.
  JsonObject& bytes(std::string_view key, std::string_view bytes);
  // Milliseconds, or null for what never ends.
  JsonObject& time(std::string_view key, Time time) {
    return time == Time::max() ? raw(key, "null") : add(key, to_ms(time));
  }
  JsonObject& pairs(std::string_view key,
                    const std::vector<std::pair<std::string, std::string>>& pairs);
  // `json` is already JSON.
  JsonObject& raw(std::string_view key, std::string_view json) {
    name(key) += json;
    return *this;
  }
  // tell(object) writes what is in it.
  template <class Tell>
  JsonObject& object(std::string_view key, const Tell& tell) {
    inner(name(key), tell);
    return *this;
  }
  // tell(object, item) writes one item.
  template <class List, class Tell>
  JsonObject& list(std::string_view key, const List& items, const Tell& tell) {
    std::string& out = name(key);
    out += '[';
    for (const auto& item : items) {
      if (out.back() != '[') out += ',';
      inner(out, [&](JsonObject& object) { tell(object, item); });
    }
    out += ']';
    return *this;
  }

  // REQUIRES: not one that tell() was given.
  [[nodiscard]] std::string text() const& { return own_ + '}'; }
  [[nodiscard]] std::string text() && {
    own_ += '}';
    return std::move(own_);
  }

 private:
  explicit JsonObject(std::string& out) : outer_(&out) { out += '{'; }

  [[nodiscard]] std::string& out() { return outer_ != nullptr ? *outer_ : own_; }
  // Where the value of the key is to be appended.
  std::string& name(std::string_view key) {
    std::string& to = out();
    if (to.back() != '{') to += ',';
    append_json_text(to, key);
    to += ':';
    return to;
  }
  template <class Tell>
  static void inner(std::string& out, const Tell& tell) {
    JsonObject object(out);
    tell(object);
    out += '}';
  }

  std::string own_;
  std::string* outer_ = nullptr;  // of an object inside another one: the buffer of the outermost
};

// Of values that are JSON already.
class JsonArray {
 public:
  void add(std::string_view json) {
    if (body_.size() > 1) body_ += ',';
    body_ += json;
  }
  [[nodiscard]] std::string text() const& { return body_ + ']'; }
  [[nodiscard]] std::string text() && {
    body_ += ']';
    return std::move(body_);
  }

 private:
  std::string body_ = "[";
};

}  // namespace hapax::wire
