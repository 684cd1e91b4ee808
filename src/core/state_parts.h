// What the parts of the state's encoding share: state_codec.cc, stream_codec.cc and
// consumer_codec.cc. Nobody else includes it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/format.h"
#include "core/fields.h"
#include "core/state.h"
#include "core/state_codec.h"

namespace hapax::core {

// --- writing -------------------------------------------------------------------------------------

// The elements of an unordered map by key. Keys and small values are copied, so that sorting
// millions of them does not wait for memory at every step.
template <class Map>
[[nodiscard]] auto sorted(const Map& map) {
  using Key = typename Map::key_type;
  using Value = typename Map::mapped_type;
  using KeyView = std::conditional_t<std::is_same_v<Key, std::string>, std::string_view, Key>;
  constexpr bool kIsSmall = std::is_same_v<Value, Sequence>;
  std::vector<std::pair<KeyView, std::conditional_t<kIsSmall, Value, const Value*>>> elements;
  elements.reserve(map.size());
  for (const auto& [key, value] : map) {
    if constexpr (kIsSmall) elements.emplace_back(key, value);
    if constexpr (!kIsSmall) elements.emplace_back(key, &value);
  }
  std::sort(elements.begin(), elements.end(),
            [](const auto& one, const auto& other) { return one.first < other.first; });
  return elements;
}

// Small differences of either sign are small numbers: 0, -1, 1, -2 … become 0, 1, 2, 3 …
[[nodiscard]] constexpr std::uint64_t zigzag(std::uint64_t difference) {
  return (difference << 1) ^ (difference >> 63 == 0 ? 0 : ~std::uint64_t{0});
}
[[nodiscard]] constexpr std::uint64_t unzigzag(std::uint64_t number) {
  return (number >> 1) ^ ((number & 1) == 0 ? 0 : ~std::uint64_t{0});
}

// Hashes of group keys are uniform: eight bytes are shorter than a varint.
template <class Io, class Hash>
void fixed64(Io& io, Hash& hash) {
  auto bits = static_cast<std::int64_t>(hash);
  io(bits);
  if constexpr (!std::is_const_v<Hash>) hash = static_cast<std::uint64_t>(bits);
}

// Live bytes by segment. Neighbours mostly lie in one segment, so the map is asked seldom.
class LiveBytes {
 public:
  void add(std::uint32_t segment, std::uint64_t bytes) {
    if (segment != segment_) flush();
    segment_ = segment;
    bytes_ += bytes;
  }
  [[nodiscard]] const std::map<std::uint32_t, std::uint64_t>& by_segment() {
    flush();
    return by_segment_;
  }

 private:
  void flush() {
    if (bytes_ != 0) by_segment_[segment_] += bytes_;
    bytes_ = 0;
  }

  std::map<std::uint32_t, std::uint64_t> by_segment_;
  std::uint32_t segment_ = 0;
  std::uint64_t bytes_ = 0;
};

// Makes the image of a state: bytes, and between them what is shared.
struct Writing {
  StateImage& image;
  std::string text = {};
  FieldWriter put{text};
  LiveBytes kept = {};     // by what is among the bytes
  LiveBytes waiting = {};  // by what waits for collect()

  template <class Shared>
  void share(Shared shared) {
    image.parts.emplace_back(std::exchange(text, {}));
    image.parts.emplace_back(std::move(shared));
  }
};

// Writes what is shared, later and perhaps on another thread.
struct Spelling {
  FieldWriter put;
  Time over_at;  // What is over then is left out.
  LiveBytes kept = {};
};

// --- reading -------------------------------------------------------------------------------------

// Reads a state and knows which part it is at, for the error.
class Reading {
 public:
  explicit Reading(std::string_view in) : get(in), size_(in.size()) {}

  void begin(std::string_view kind, std::uint64_t number) {
    kind_ = kind;
    number_ = number;
    begun_at_ = size_ - get.left();
  }
  [[nodiscard]] Error broken(const std::string& why) const {
    return Error{Errc::kCorruption, base::format("state of {} bytes: {} {}, from byte {} on, {}",
                                                 size_, kind_, number_, begun_at_, why)};
  }
  [[nodiscard]] Error unreadable() const {
    return broken("does not parse: it is cut off or has an impossible value");
  }

  // How many of something follow that takes at least a byte each.
  [[nodiscard]] std::uint64_t count() {
    std::uint64_t number = 0;
    get(number);
    if (number > get.left()) get.refuse();
    return get.ok() ? number : 0;
  }

  FieldReader get;  // get.version() is that of the state
  LiveBytes live;   // of what was read
  bool has_first_token = true;

 private:
  std::size_t size_;
  std::string_view kind_ = "part";
  std::uint64_t number_ = 0;
  std::size_t begun_at_ = 0;
};

// Sequences and instants of log time have 48 bits, as in IdEntry; deadlines lie a little later.
// So sums with the longest window, lease or delay do not overflow. What is read keeps well below,
// so that what follows fits, too.
inline constexpr std::uint64_t kSequenceEnd = std::uint64_t{1} << 47;
// Of everything that is counted up: fences, epochs, tokens, uids.
inline constexpr std::uint64_t kNumberEnd = std::uint64_t{1} << 63;
[[nodiscard]] constexpr bool is_plausible(Time time) {
  return to_ms(time) >= 0 && to_ms(time) < std::int64_t{1} << 49;
}

// --- the parts -----------------------------------------------------------------------------------

void encode_streams(State& state, Writing& out);
void spell(const RunsImage& image, Spelling& out);
void spell(const GroupsImage& image, Spelling& out);
[[nodiscard]] Status decode_streams(Reading& in, State& into);

void encode_consumers(const State& state, Writing& out);
// REQUIRES: the streams are there.
[[nodiscard]] Status decode_consumers(Reading& in, State& into);

}  // namespace hapax::core
