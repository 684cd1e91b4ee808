// A reply that is a map of named fields; an `Out` of wire/verdict_fields.h.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hapax/ids.h>
#include <hapax/time.h>

#include "resp/replies.h"

namespace hapax::resp {

// Counts its fields while they are written, because a map begins with their number.
class MapReply {
 public:
  explicit MapReply(Replies& replies) : replies_(replies), begin_(replies.size()) {}

  void add(std::string_view key, std::string_view text) {
    name(key);
    replies_.bulk(text);
  }
  void add(std::string_view key, const std::string& text) { add(key, std::string_view(text)); }
  void add(std::string_view key, const char* text) { add(key, std::string_view(text)); }
  void add(std::string_view key, bool value) {
    name(key);
    replies_.boolean(value);
  }
  template <std::integral Integer>
  requires(!std::same_as<Integer, bool>) void add(std::string_view key, Integer number) {
    name(key);
    replies_.integer(static_cast<std::int64_t>(number));
  }
  template <class Tag>
  void add(std::string_view key, Number<Tag> number) {
    add(key, number.value);
  }
  void bytes(std::string_view key, std::string_view bytes) { add(key, bytes); }
  void time(std::string_view key, Time time) {
    name(key);
    if (time == Time::max()) {
      replies_.null();
    } else {
      replies_.integer(to_ms(time));
    }
  }
  void pairs(std::string_view key, const std::vector<std::pair<std::string, std::string>>& pairs) {
    name(key);
    replies_.array(2 * pairs.size());
    for (const auto& [first, second] : pairs) {
      replies_.bulk(first);
      replies_.bulk(second);
    }
  }
  void words(std::string_view key, const std::vector<std::string_view>& words) {
    name(key);
    replies_.array(words.size());
    for (const std::string_view word : words) replies_.simple(word);
  }
  template <class Tell>
  void object(std::string_view key, const Tell& tell) {
    name(key);
    put_map(tell);
  }
  template <class List, class Tell>
  void list(std::string_view key, const List& items, const Tell& tell) {
    name(key);
    replies_.array(items.size());
    for (const auto& item : items) put_map([&](MapReply& out) { tell(out, item); });
  }

  void finish() { replies_.map_of(begin_, fields_); }

 private:
  void name(std::string_view key) {
    ++fields_;
    replies_.bulk(key);
  }
  template <class Tell>
  void put_map(const Tell& tell) {
    MapReply map(replies_);
    tell(map);
    map.finish();
  }

  Replies& replies_;
  const std::size_t begin_;
  std::size_t fields_ = 0;
};

template <class Tell>
void reply_map(Replies& replies, const Tell& tell) {
  MapReply map(replies);
  tell(map);
  map.finish();
}

}  // namespace hapax::resp
