// Reads every byte of every file of a store and reports each problem. Changes nothing, stops at
// nothing: behind a damaged batch it looks for the next intact one. It may find damage in old
// segments that a start does not read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <hapax/result.h>

#include "journal/examine.h"
#include "journal/format.h"
#include "ports/files.h"

namespace hapax::journal {

struct FileProblem {
  std::string file;
  std::uint64_t offset = 0;
  std::string text;
};

struct VerifyReport {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  std::uint64_t batches = 0;
  std::uint64_t facts = 0;
  Lsn last;  // Highest lsn seen.
  std::vector<FileProblem> problems;
  // Damage that a start and all reads do without; whoever knows what is needed moves it here.
  std::vector<FileProblem> unneeded;
  std::vector<std::string> notes;  // Harmless, but worth knowing.

  [[nodiscard]] bool intact() const { return problems.empty(); }
};

// `visit`, if there is one, sees every valid batch; its refusal is a problem of that batch. An
// error of verify() itself means that there is no store.
Result<VerifyReport> verify(ports::Folder& folder, const BatchVisitor& visit = {});

}  // namespace hapax::journal
