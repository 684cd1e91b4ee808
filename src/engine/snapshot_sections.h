// What the sections of a snapshot mean. docs/internals/snapshot-format.md
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <hapax/result.h>

#include "engine/snapshotter.h"
#include "journal/snapshot_file.h"

namespace hapax::engine {

inline constexpr std::uint32_t kTagMeta = 1;
inline constexpr std::uint32_t kTagState = 2;
inline constexpr std::uint32_t kTagIds = 3;      // a chunk that is not full yet
inline constexpr std::uint32_t kTagSettled = 4;  // the same
inline constexpr std::uint32_t kTagChunk = 5;    // the content of a part

// A chunk as bytes: generation, serial, count, then the entries as they are in memory.
template <class Chunk>
[[nodiscard]] std::string encode_chunk(const Chunk& chunk);

// `parts` gets the numbers of all parts the snapshot refers to.
Status write_sections(journal::SnapshotWriter& writer, const SnapshotImage& image,
                      std::vector<std::uint64_t>& parts);

}  // namespace hapax::engine
