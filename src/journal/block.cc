#include "journal/block.h"

#include <algorithm>

#include "base/format.h"
#include "digest/crc32c.h"

namespace hapax::journal {
namespace {

constexpr std::size_t kCrcBytes = sizeof(std::uint32_t);

std::string hex_digits(std::uint64_t number, std::size_t count) {
  std::string text(count, '0');
  for (auto digit = text.rbegin(); digit != text.rend(); ++digit, number >>= 4) {
    *digit = "0123456789abcdef"[number & 0xf];
  }
  return text;
}

}  // namespace

std::string hex(std::uint32_t number) { return hex_digits(number, 8); }
std::string hex16(std::uint64_t number) { return hex_digits(number, 16); }

void close_block(std::span<char> block, std::string_view magic, std::uint16_t version) {
  std::copy(magic.begin(), magic.end(), block.begin());
  put(block, magic.size(), version);
  const std::size_t covered = block.size() - kCrcBytes;
  put(block, covered, digest::crc32c({block.data(), covered}));
}

Status check_block(std::string_view bytes, std::string_view magic, std::size_t size) {
  if (bytes.size() < size) {
    return Error{Errc::kCorruption,
                 base::format("the file ends inside it: {} of {} bytes", bytes.size(), size)};
  }
  const std::string_view block = bytes.substr(0, size);
  const std::size_t covered = size - kCrcBytes;
  const std::uint32_t actual = digest::crc32c(block.substr(0, covered));
  if (actual != crc_of(block)) {
    return Error{Errc::kCorruption,
                 "its checksum is " + hex(actual) + ", expected " + hex(crc_of(block))};
  }
  if (block.substr(0, magic.size()) != magic) {
    return Error{Errc::kCorruption, "it is not a block of the kind " + std::string(magic)};
  }
  const std::uint16_t version = version_of(block, magic);
  if (version < kFormatVersionFirst || version > kFormatVersion) {
    return Error{Errc::kFormatVersion,
                 base::format("its format version is {}, this program knows versions {} to {}",
                              version, kFormatVersionFirst, kFormatVersion)};
  }
  return Ok{};
}

std::uint32_t crc_of(std::string_view block) {
  return get<std::uint32_t>(block, block.size() - kCrcBytes);
}

}  // namespace hapax::journal
