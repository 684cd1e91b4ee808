// Bytes we own: little-endian fixed integers, varints, length-prefixed text. Encoder appends to a
// string; Decoder never reads past its input and never trusts a length before checking it.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace hapax::base {

static_assert(std::endian::native == std::endian::little, "the formats are written in host order");

class Encoder {
 public:
  explicit Encoder(std::string& out) : out_(out) {}

  void u8(std::uint8_t value) { out_.push_back(static_cast<char>(value)); }
  void u16(std::uint16_t value) { fixed(value); }
  void u32(std::uint32_t value) { fixed(value); }
  void u64(std::uint64_t value) { fixed(value); }
  void i64(std::int64_t value) { fixed(value); }
  void varint(std::uint64_t value) {
    if (value < 0x80) return u8(static_cast<std::uint8_t>(value));  // Most are.
    char buffer[10];
    std::size_t used = 0;
    while (value >= 0x80) {
      buffer[used++] = static_cast<char>((value & 0x7f) | 0x80);
      value >>= 7;
    }
    buffer[used++] = static_cast<char>(value);
    out_.append(buffer, used);
  }
  void bytes(std::string_view bytes) {
    varint(bytes.size());
    out_.append(bytes);
  }
  void raw(std::string_view bytes) { out_.append(bytes); }
  [[nodiscard]] std::size_t size() const { return out_.size(); }

 private:
  template <class T>
  void fixed(T value) {
    char buffer[sizeof value];
    std::memcpy(buffer, &value, sizeof value);
    out_.append(buffer, sizeof value);
  }

  std::string& out_;
};

// After the first impossible read every read answers 0 or "" and ok() is false: decode first,
// then ask once.
class Decoder {
 public:
  explicit Decoder(std::string_view in) : in_(in) {}

  std::uint8_t u8() { return fixed<std::uint8_t>(); }
  std::uint16_t u16() { return fixed<std::uint16_t>(); }
  std::uint32_t u32() { return fixed<std::uint32_t>(); }
  std::uint64_t u64() { return fixed<std::uint64_t>(); }
  std::int64_t i64() { return fixed<std::int64_t>(); }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (in_.empty()) return fail();
      const auto byte = static_cast<std::uint8_t>(in_.front());
      in_.remove_prefix(1);
      if (shift == 63 && byte > 1) return fail();  // More than 64 bits.
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    return fail();
  }
  std::string_view bytes() { return raw(varint()); }
  std::string_view raw(std::uint64_t size) {
    if (size > in_.size()) {
      fail();
      return {};
    }
    const std::string_view taken = in_.substr(0, size);
    in_.remove_prefix(size);
    return taken;
  }
  void refuse() { fail(); }  // The caller found a value that cannot be.

  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] bool finished() const { return ok_ && in_.empty(); }
  [[nodiscard]] std::size_t left() const { return in_.size(); }

 private:
  template <class T>
  T fixed() {
    T value{};
    if (in_.size() < sizeof value) {
      fail();
      return T{};
    }
    std::memcpy(&value, in_.data(), sizeof value);
    in_.remove_prefix(sizeof value);
    return value;
  }
  std::uint64_t fail() {
    ok_ = false;
    in_ = {};
    return 0;
  }

  std::string_view in_;
  bool ok_ = true;
};

}  // namespace hapax::base
