// Tools for a data folder that no process uses: look, verify, repair. The folder is locked while
// they work; inspect and verify change nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <hapax/store.h>

#include "journal/repair.h"
#include "journal/verify.h"
#include "ports/entropy.h"
#include "ports/files.h"

namespace hapax::engine {

struct Inspection {
  std::string store_id;  // hex
  std::uint64_t history = 0;
  std::uint64_t last_lsn = 0;
  std::uint64_t snapshot_lsn = 0;
  bool clean = false;                  // the last process ended in order
  std::optional<std::string> refusal;  // why a start would refuse
  std::uint64_t live_bytes = 0;        // of records and results that are still needed
  Statistics figures;
  std::vector<StreamStats> streams;
  std::vector<std::string> lines;  // for people
};
// kNotFound if there is no store in the folder. For before the lock is taken: a folder that is not
// ours gets no file of ours.
[[nodiscard]] Status demand_store(ports::Folder& folder);

[[nodiscard]] Result<Inspection> inspect(ports::Folder& folder);

// Every byte, and every fact: a fact that does not parse is a problem of its batch.
[[nodiscard]] Result<journal::VerifyReport> verify(ports::Folder& folder);

[[nodiscard]] Result<journal::RepairReport> repair(ports::Folder& folder, ports::Entropy& entropy,
                                                   journal::RepairMode mode);

}  // namespace hapax::engine
