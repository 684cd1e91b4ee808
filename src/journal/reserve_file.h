// RESERVE: space that is given back when the disk is full, so that a last mark can be written on
// file systems that need space even to overwrite. Its bytes mean nothing.
#pragma once

#include <cstdint>

#include "ports/files.h"

namespace hapax::journal {

// Makes the file if it is not there. kNoSpace: the disk is too full for it.
Status ensure_reserve(ports::Folder& folder, std::uint64_t bytes);
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

}  // namespace hapax::journal
