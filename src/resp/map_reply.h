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
  explicit MapReply(Version version) { inner_.use(version); }

  void add(std::string_view key, std::string_view text) {
    name(key);
    inner_.bulk(text);
  }
  void add(std::string_view key, const std::string& text) { add(key, std::string_view(text)); }
  void add(std::string_view key, const char* text) { add(key, std::string_view(text)); }
  void add(std::string_view key, bool value) {
    name(key);
    inner_.boolean(value);
  }
  template <std::integral Integer>
  requires(!std::same_as<Integer, bool>) void add(std::string_view key, Integer number) {
    name(key);
    inner_.integer(static_cast<std::int64_t>(number));
  }
  template <class Tag>
  void add(std::string_view key, Number<Tag> number) {
    add(key, number.value);
  }
  void bytes(std::string_view key, std::string_view bytes) { add(key, bytes); }
  void time(std::string_view key, Time time) {
    name(key);
    if (time == Time::max()) {
      inner_.null();
    } else {
      inner_.integer(to_ms(time));
    }
  }
  void pairs(std::string_view key, const std::vector<std::pair<std::string, std::string>>& pairs) {
    name(key);
    inner_.array(2 * pairs.size());
    for (const auto& [first, second] : pairs) {
      inner_.bulk(first);
      inner_.bulk(second);
    }
  }
  template <class Tell>
  void object(std::string_view key, const Tell& tell) {
    name(key);
    put_map(tell);
  }
  template <class List, class Tell>
  void list(std::string_view key, const List& items, const Tell& tell) {
    name(key);
    inner_.array(items.size());
    for (const auto& item : items) put_map([&](MapReply& out) { tell(out, item); });
  }

  void finish(Replies& out) const {
    out.map(fields_);
    out.raw(inner_.text());
  }

 private:
  void name(std::string_view key) {
    ++fields_;
    inner_.bulk(key);
  }
  template <class Tell>
  void put_map(const Tell& tell) {
    MapReply map(inner_.version());
    tell(map);
    map.finish(inner_);
  }

  Replies inner_;
  std::size_t fields_ = 0;
};

template <class Tell>
void reply_map(Replies& replies, const Tell& tell) {
  MapReply map(replies.version());
  tell(map);
  map.finish(replies);
}

}  // namespace hapax::resp
