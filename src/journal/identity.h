// Who a store is: the file STORE. Written when the store is made, again only by repair and when a
// program of a newer format opens it (L19). It has two equal blocks, 4 KiB apart: without the hash
// key every remembered id would be lost, so a damaged block stops the start, and repair restores it
// from the other one.
//
// Block, 72 bytes:
//    0  8  magic "HAPAXSTO"        32 16  key of the store's hashes
//    8  2  format version          48  8  history id
//   10  6  zeros                   56  8  wall clock at creation, ms since 1970
//   16 16  store id                64  4  zeros
//                                  68  4  CRC-32C of bytes 0 to 67
// This shape and place of the first block stay in every format version, so that an old program
// recognises a newer store.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include <hapax/result.h>

#include "journal/block.h"
#include "ports/entropy.h"
#include "ports/files.h"

namespace hapax::journal {

struct Identity {
  std::array<char, 16> store_id{};
  std::array<char, 16> hash_key{};
  std::uint64_t history = 1;  // Grows when a repair gave up acknowledged facts.
  std::int64_t created_ms = 0;
  std::uint16_t version = kFormatVersion;  // Of the store: what an older program must refuse.

  // First half of the store id, as the segments bear it.
  [[nodiscard]] std::uint64_t store() const;
  friend bool operator==(const Identity&, const Identity&) = default;
};

[[nodiscard]] Identity draw_identity(ports::Entropy& entropy, std::int64_t wall_ms);
[[nodiscard]] std::string encode(const Identity& identity);

// kNotFound; kFormatVersion; kCorruption if either block is damaged.
Result<Identity> read_identity(ports::Folder& folder);
// From whichever block is intact: for repair. kCorruption if neither is.
Result<Identity> salvage_identity(ports::Folder& folder);
// Replaces the file, with the present version; durable after the folder's next sync.
Status write_identity(ports::Folder& folder, const Identity& identity);

}  // namespace hapax::journal
