// Fixed blocks: fields at fixed offsets, a magic word and a format version in front, a CRC-32C in
// the last four bytes. Every header of every file is one.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include <hapax/result.h>

namespace hapax::journal {

// What is written. Every version from the first one on is read; a higher one is refused.
inline constexpr std::uint16_t kFormatVersion = 2;
inline constexpr std::uint16_t kFormatVersionFirst = 1;

template <class T>
void put(std::span<char> block, std::size_t offset, T value) {
  std::memcpy(block.subspan(offset, sizeof value).data(), &value, sizeof value);
}

template <class T>
[[nodiscard]] T get(std::string_view block, std::size_t offset) {
  T value{};
  std::memcpy(&value, block.substr(offset, sizeof value).data(), sizeof value);
  return value;
}

[[nodiscard]] std::string hex(std::uint32_t number);    // 8 digits
[[nodiscard]] std::string hex16(std::uint64_t number);  // 16 digits

// Writes magic, version and CRC around fields that are already there.
void close_block(std::span<char> block, std::string_view magic,
                 std::uint16_t version = kFormatVersion);

// Whether `bytes` begins with an intact block of this size and magic: if not, kCorruption with the
// reason, or kFormatVersion if a newer program wrote it.
[[nodiscard]] Status check_block(std::string_view bytes, std::string_view magic, std::size_t size);

// Of a block that was checked.
[[nodiscard]] inline std::uint16_t version_of(std::string_view block, std::string_view magic) {
  return get<std::uint16_t>(block, magic.size());
}

// Where every block keeps its CRC.
[[nodiscard]] std::uint32_t crc_of(std::string_view block);

}  // namespace hapax::journal
