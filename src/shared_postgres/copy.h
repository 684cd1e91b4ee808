// Moves a store from a data folder into a database, or back: everything stays as it was, down to
// the places of its records. A copy that was cut short is gone on with by the next one.
//
// J3: nobody uses either side meanwhile, and nothing is overwritten: the target is empty, or holds
//     an unfinished copy of the same store as it is now.
// J4: the target becomes a store only when every batch was read back and compared with the
// source's,
//     and the state that follows from them is the source's, byte by byte.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include <hapax/result.h>

#include "journal/moving.h"
#include "shared_postgres/copy_side.h"

namespace hapax::shared_postgres {

struct CopyStep {
  std::string_view doing;  // "files", "log", "verify" …
  std::uint64_t done = 0;  // bytes
  std::uint64_t all = 0;   // about
};

struct CopyOptions {
  journal::Journey journey;
  bool keep =
      false;  // The source stays a store: both have one identity, and never may both be used.
  // Called after each piece. False: the copy ends there, as if it had been killed.
  std::function<bool(const CopyStep&)> step{};
};

struct CopyReport {
  std::string store_id;  // hex
  std::uint64_t history = 0;
  std::uint64_t last_lsn = 0;
  std::uint64_t snapshot_lsn = 0;
  std::uint64_t files = 0;  // of the snapshot
  std::uint64_t file_bytes = 0;
  std::uint64_t batches = 0;  // compared
  std::uint64_t log_bytes = 0;
  std::uint64_t copied_bytes = 0;  // of both; the rest was there from an earlier copy
  std::uint64_t left_out = 0;      // batches that cannot be read, and that nothing needs
  std::string state_digest;        // hex
  std::uint64_t streams = 0;
  std::uint64_t ids = 0;
  bool done_before = false;  // It was finished before: nothing was copied or compared.
};

[[nodiscard]] Result<CopyReport> copy_store(CopySide& source, CopySide& target,
                                            const CopyOptions& options);

}  // namespace hapax::shared_postgres
