// The log of a store, batch by batch from front to back, wherever it lies: in the segments of a
// folder, or in the rows of a table. For who copies; nobody writes meanwhile.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include <hapax/result.h>

#include "journal/identity.h"
#include "journal/segment.h"
#include "ports/files.h"
#include "shared_postgres/folder.h"

namespace hapax::shared_postgres {

class LogReader {
 public:
  LogReader() = default;
  LogReader(const LogReader&) = delete;
  LogReader& operator=(const LogReader&) = delete;
  virtual ~LogReader() = default;

  // None: that was all. What is answered is valid until the next call.
  virtual Result<std::optional<journal::BatchView>> next() = 0;
  // Batches below the snapshot that cannot be read and were left out.
  [[nodiscard]] virtual std::uint64_t left_out() const { return 0; }
};

// What of the log is there.
struct LogSpan {
  journal::Lsn snapshot;  // that a start reads
  journal::Lsn last;
};

// Behind `after`. Superseded batches are no part of the log. Damage is kCorruption, except in
// segments that a start does not read: there the next intact batch follows.
[[nodiscard]] Result<std::unique_ptr<LogReader>> read_segments(ports::Folder& folder,
                                                               const journal::Identity& identity,
                                                               LogSpan span, journal::Slot after);
[[nodiscard]] std::unique_ptr<LogReader> read_rows(PostgresFolder& folder, journal::Slot after);

}  // namespace hapax::shared_postgres
