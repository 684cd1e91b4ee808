#include "digest/base64.h"

#include <algorithm>

#include <sodium.h>

namespace hapax::digest {

namespace {

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

}  // namespace

std::string encode_base64(std::string_view bytes, Base64 variant) {
  const int kind = variant == Base64::kUrl ? sodium_base64_VARIANT_URLSAFE_NO_PADDING
                                           : sodium_base64_VARIANT_ORIGINAL;
  std::string text(sodium_base64_encoded_len(bytes.size(), kind), '\0');
  sodium_bin2base64(text.data(), text.size(), reinterpret_cast<const unsigned char*>(bytes.data()),
                    bytes.size(), kind);
  text.pop_back();  // It counts and writes a terminating zero.
  return text;
}

std::optional<std::string> decode_base64(std::string_view text, Base64 variant) {
  const int kind = variant == Base64::kUrl ? sodium_base64_VARIANT_URLSAFE_NO_PADDING
                                           : sodium_base64_VARIANT_ORIGINAL_NO_PADDING;
  // libsodium 1.0.18 takes every byte from 0x80 on for the last digit of the alphabet.
  if (!is_ascii(text)) return std::nullopt;
  // Padding is left out, or what it must be.
  const std::size_t padded = text.size();
  while (text.ends_with('=') && padded - text.size() < 2) text.remove_suffix(1);
  if (padded != text.size() && padded % 4 != 0) return std::nullopt;
  std::string bytes(text.size() / 4 * 3 + 3, '\0');
  std::size_t size = 0;
  const int failed = sodium_base642bin(reinterpret_cast<unsigned char*>(bytes.data()), bytes.size(),
                                       text.data(), text.size(), nullptr, &size, nullptr, kind);
  if (failed != 0) return std::nullopt;
  bytes.resize(size);
  return bytes;
}

}  // namespace hapax::digest
