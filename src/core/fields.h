// One list of fields per type serves both directions: a field written is a field read. A type takes
// part by a function `fields(io, value)` that names its fields in order with io.all(…); FieldWriter
// writes them, FieldReader reads them and never trusts a length, a count or an enumerator before
// checking it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <hapax/ids.h>
#include <hapax/ops.h>
#include <hapax/time.h>
#include <hapax/verdicts.h>

#include "base/encoding.h"
#include "base/hash128.h"
#include "base/where.h"

namespace hapax::core {

template <class F, class Plain>
concept Is = std::is_same_v<std::remove_const_t<F>, Plain>;

// The highest enumerator that may be read.
template <class Enum>
inline constexpr std::uint8_t kEnumMax = 1;
template <>
inline constexpr std::uint8_t kEnumMax<Outcome> = 3;
template <>
inline constexpr std::uint8_t kEnumMax<Former> = 2;
template <>
inline constexpr std::uint8_t kEnumMax<SetMode> = 4;
template <>
inline constexpr std::uint8_t kEnumMax<Expiry::Kind> = 3;
template <>
inline constexpr std::uint8_t kEnumMax<ExpireIf> = 5;

// What these fields are written as, in states, answers and staged operations. Fields that came with
// a later version than the first one are given to since(): bytes of an older version do not have
// them, and what is read then keeps its default.
inline constexpr std::uint64_t kFieldsVersion = 2;

class FieldWriter {
 public:
  explicit FieldWriter(std::string& out) : out_(out) {}

  template <class Tag>
  void operator()(const Number<Tag>& number) {
    out_.varint(number.value);
  }
  void operator()(std::uint64_t value) { out_.varint(value); }
  void operator()(std::uint32_t value) { out_.varint(value); }
  void operator()(std::uint16_t value) { out_.varint(value); }
  void operator()(std::int64_t value) { out_.i64(value); }
  void operator()(bool value) { out_.u8(value ? 1 : 0); }
  void operator()(std::string_view text) { out_.bytes(text); }
  void operator()(const std::string& text) { out_.bytes(text); }
  void operator()(Time time) { out_.i64(to_ms(time)); }
  void operator()(Duration span) { out_.i64(span.count()); }
  void operator()(Window window) { out_.u32(window.raw()); }
  template <class Pair>
  requires(std::is_same_v<Pair, base::Hash128> || std::is_same_v<Pair, Fingerprint>) void
  operator()(const Pair& pair) {
    out_.u64(pair.high);
    out_.u64(pair.low);
  }
  template <class Enum>
  requires std::is_enum_v<Enum>
  void operator()(Enum value) { out_.u8(static_cast<std::uint8_t>(value)); }
  template <class Value>
  void operator()(const std::optional<Value>& value) {
    (*this)(value.has_value());
    if (value) (*this)(*value);
  }
  template <class Value>
  void operator()(const std::vector<Value>& values) {
    out_.varint(values.size());
    for (const Value& value : values) (*this)(value);
  }
  template <class First, class Second>
  void operator()(const std::pair<First, Second>& pair) {
    all(pair.first, pair.second);
  }
  template <class... Kinds>
  void operator()(const std::variant<Kinds...>& value) {
    out_.u8(static_cast<std::uint8_t>(value.index()));
    std::visit(*this, value);
  }
  template <class Value>
  requires requires(FieldWriter& put, const Value& value) { fields(put, value); }
  void operator()(const Value& value) { fields(*this, value); }
  void last(std::string_view bytes) { out_.raw(bytes); }  // up to the end of the input

  template <class... Values>
  void all(const Values&... values) {
    ((*this)(values), ...);
  }
  template <class... Values>
  void since(std::uint64_t, const Values&... values) {
    all(values...);
  }

 private:
  base::Encoder out_;
};

class FieldReader {
 public:
  explicit FieldReader(std::string_view in, std::uint64_t version = kFieldsVersion)
      : in_(in), version_(version) {}
  // A fact has a length but no version, because it is moved and read alone. So fields that came
  // later stand at its very end, and a fact that ends before them is older. Where that cannot be, a
  // changed fact is a new kind.
  static FieldReader of_fact(std::string_view in) { return FieldReader(in, kByLength); }

  template <class Tag>
  void operator()(Number<Tag>& number) {
    number.value = in_.varint();
  }
  void operator()(std::uint64_t& value) { value = in_.varint(); }
  void operator()(std::uint32_t& value) { narrow(value); }
  void operator()(std::uint16_t& value) { narrow(value); }
  void operator()(std::int64_t& value) { value = in_.i64(); }
  void operator()(bool& value) {
    const std::uint8_t byte = in_.u8();
    if (byte > 1) in_.refuse();
    value = byte == 1;
  }
  void operator()(std::string_view& text) { text = in_.bytes(); }
  void operator()(std::string& text) { text = in_.bytes(); }
  void operator()(Time& time) { time = time_from_ms(in_.i64()); }
  void operator()(Duration& span) { span = Duration{in_.i64()}; }
  void operator()(Window& window) { window = Window::from_raw(in_.u32()); }
  template <class Pair>
  requires(std::is_same_v<Pair, base::Hash128> || std::is_same_v<Pair, Fingerprint>) void
  operator()(Pair& pair) {
    pair.high = in_.u64();
    pair.low = in_.u64();
  }
  template <class Enum>
  requires(std::is_enum_v<Enum> && !std::is_same_v<Enum, Errc>) void operator()(Enum& value) {
    const std::uint8_t byte = in_.u8();
    if (byte > kEnumMax<Enum>) in_.refuse();
    value = static_cast<Enum>(byte);
  }
  template <class Value>
  void operator()(std::optional<Value>& value) {
    bool there = false;
    (*this)(there);
    if (there) (*this)(value.emplace());
  }
  template <class Value>
  void operator()(std::vector<Value>& values) {
    const std::uint64_t count = in_.varint();
    if (count > in_.left()) in_.refuse();  // Every value takes at least one byte.
    for (std::uint64_t i = 0; i < count && in_.ok(); ++i) (*this)(values.emplace_back());
  }
  template <class First, class Second>
  void operator()(std::pair<First, Second>& pair) {
    all(pair.first, pair.second);
  }
  template <class... Kinds>
  void operator()(std::variant<Kinds...>& value) {
    const std::size_t kind = in_.u8();
    if (kind >= sizeof...(Kinds)) {
      in_.refuse();
      return;
    }
    read_kind(value, kind, std::index_sequence_for<Kinds...>{});
  }
  template <class Value>
  requires requires(FieldReader& get, Value& value) { fields(get, value); }
  void operator()(Value& value) { fields(*this, value); }
  void last(std::string_view& bytes) { bytes = in_.raw(in_.left()); }

  template <class... Values>
  void all(Values&... values) {
    ((*this)(values), ...);
  }

  template <class... Values>
  void since(std::uint64_t version, Values&... values) {
    if (version_ == kByLength ? in_.left() > 0 : version_ >= version) all(values...);
  }

  void refuse() { in_.refuse(); }
  void set_version(std::uint64_t version) { version_ = version; }
  [[nodiscard]] std::uint64_t version() const { return version_; }
  [[nodiscard]] bool ok() const { return in_.ok(); }
  [[nodiscard]] std::size_t left() const { return in_.left(); }
  [[nodiscard]] bool finished() const { return in_.finished(); }

 private:
  static constexpr std::uint64_t kByLength = 0;

  template <class Narrow>
  void narrow(Narrow& value) {
    const std::uint64_t wide = in_.varint();
    if (wide > std::uint64_t{static_cast<Narrow>(~Narrow{0})}) in_.refuse();
    value = static_cast<Narrow>(wide);
  }
  template <class Variant, std::size_t... kKinds>
  void read_kind(Variant& value, std::size_t kind, std::index_sequence<kKinds...>) {
    ((kind == kKinds ? (*this)(value.template emplace<kKinds>()) : void()), ...);
  }

  base::Decoder in_;
  std::uint64_t version_;
};

// --- parts that several formats share ----------------------------------------------------------

template <class Io, Is<HybridTime> F>
void fields(Io& io, F& f) {
  io.all(f.wall_ms, f.counter, f.node);
}
template <class Io, Is<base::Where> F>
void fields(Io& io, F& f) {
  io.all(f.segment, f.offset, f.length);
}
template <class Io, Is<ProducerMark> F>
void fields(Io& io, F& f) {
  io.all(f.name, f.epoch, f.sequence);
}
template <class Io, Is<ResultView> F>
void fields(Io& io, F& f) {
  io.all(f.status, f.headers, f.body);
}
template <class Io, Is<PastAttempt> F>
void fields(Io& io, F& f) {
  io.all(f.attempt, f.redrives, f.handed_out, f.ended, f.ending, f.owner, f.reason);
}
template <class Io, Is<Lineage> F>
void fields(Io& io, F& f) {
  io.all(f.stream, f.sequence, f.consumer, f.reason, f.attempts, f.first_handed_out,
         f.last_handed_out, f.redrives, f.history);
}
template <class Io, Is<Retention> F>
void fields(Io& io, F& f) {
  io.all(f.age, f.bytes, f.count, f.acked_by_all);
}
template <class Io, Is<StreamSettings> F>
void fields(Io& io, F& f) {
  io.all(f.window, f.window_start, f.id_scope, f.content_ids, f.track_groups, f.retention,
         f.record_bytes_max, f.quota_bytes, f.producer_memory, f.producers_max);
}
template <class Io, Is<ConsumerSettings> F>
void fields(Io& io, F& f) {
  io.all(f.attempts_max, f.last_attempt, f.dead_letters, f.start, f.in_flight_max);
}

}  // namespace hapax::core
