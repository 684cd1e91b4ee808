// RESERVE: space that is given back when the disk is full, so that a last mark can be written on
// file systems that need space even to overwrite, facts that free space, and a snapshot that lets
// dead segments go. Its bytes mean nothing.
#pragma once

#include <cstdint>

#include "ports/files.h"

namespace hapax::journal {

// Makes the file if it is not there. kNoSpace: the disk is too full for it.
Status ensure_reserve(ports::Folder& folder, std::uint64_t bytes);
// As much of it as fits, after it was used. Ok also if that is nothing.
Status restore_reserve(ports::Folder& folder, std::uint64_t bytes);
// 0 if it is not there.
Result<std::uint64_t> reserve_bytes(ports::Folder& folder);
// Ok also if it was not there.
Status release_reserve(ports::Folder& folder);

// `call` once, and again with the reserve given back if the disk was too full for it.
template <class Call>
auto with_reserve(ports::Folder& folder, const Call& call) -> decltype(call()) {
  auto answer = call();
  if (answer.ok() || answer.error().code != Errc::kNoSpace) return answer;
  HAPAX_CHECK(release_reserve(folder));
  return call();
}

// L18: what the reserve gives back is for what frees space, and nobody else's batch takes it.
enum class Room : std::uint8_t {
  kOrdinary,       // a batch takes what the disk has
  kMayUseReserve,  // the store's own batch, on the way to a snapshot that frees space
  kClosed,         // that snapshot is being written: batches are refused
};

}  // namespace hapax::journal
