#include <algorithm>
#include <chrono>
#include <span>

#include <hapax/uuid.h>

#include "base/mutex.h"
#include "digest/hash.h"
#include "host/entropy.h"

namespace hapax {

namespace {

void stamp(Uuid& uuid, std::uint8_t version) {
  uuid.bytes[6] = static_cast<std::uint8_t>((uuid.bytes[6] & 0x0f) | (version << 4));
  uuid.bytes[8] = static_cast<std::uint8_t>((uuid.bytes[8] & 0x3f) | 0x80);
}

// Milliseconds and a counter of 12 bits as one number that only grows.
std::uint64_t next_tick() {
  static base::Mutex mutex;
  static std::uint64_t latest = 0;
  const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::system_clock::now().time_since_epoch());
  const base::MutexLock lock(mutex);
  latest = std::max(latest + 1, static_cast<std::uint64_t>(now.count()) << 12);
  return latest;
}

}  // namespace

std::string Uuid::text() const {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

Uuid uuid7() {
  Uuid uuid;
  host::HostEntropy().fill(std::as_writable_bytes(std::span(uuid.bytes)));
  const std::uint64_t tick = next_tick();
  for (std::size_t i = 0; i < 6; ++i) {
    uuid.bytes[i] = static_cast<std::uint8_t>(tick >> (52 - 8 * i));
  }
  uuid.bytes[6] = static_cast<std::uint8_t>((tick >> 8) & 0x0f);
  uuid.bytes[7] = static_cast<std::uint8_t>(tick);
  stamp(uuid, 7);
  return uuid;
}

Uuid uuid_of(const Uuid& space, std::string_view name) {
  std::string text(space.bytes.begin(), space.bytes.end());
  text += name;
  const std::string hash = digest::sha256(text);
  Uuid uuid;
  std::copy_n(hash.begin(), uuid.bytes.size(), uuid.bytes.begin());
  stamp(uuid, 8);
  return uuid;
}

}  // namespace hapax
