// What State::text_bytes adds up: rough memory of everything but ids and settled claims, map nodes
// included. Following a fact counts by the same rules as loading a snapshot, so that the budget is
// the same before and after a restart.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/state.h"

namespace hapax::core {

inline constexpr std::uint64_t kStreamBytes = 512;      // an empty stream, without its name
inline constexpr std::uint64_t kProducerBytes = 256;    // a producer, without name and sequences
inline constexpr std::uint64_t kConsumerBytes = 1'024;  // one that was handed nothing yet
inline constexpr std::uint64_t kGroupBytes = 56;        // the last sequence of a group key
inline constexpr std::uint64_t kNodeBytes = 96;         // a position or transaction
// What an entry is to its tenant, with its place in the index.
inline constexpr std::uint64_t kIdBytes = sizeof(IdEntry) + 16;
inline constexpr std::uint64_t kSettledBytes = sizeof(SettledEntry) + 16;

[[nodiscard]] std::uint64_t text_bytes_of(const Run& run);
// That a record is for one consumer.
[[nodiscard]] inline std::uint64_t addressed_bytes(std::string_view consumer) {
  return kNodeBytes + consumer.size();
}
// Without its consumers, and without its runs, which leave one by one after it.
[[nodiscard]] std::uint64_t text_bytes_of(const Stream& stream);
[[nodiscard]] std::uint64_t text_bytes_of(const Consumer& consumer);

}  // namespace hapax::core
