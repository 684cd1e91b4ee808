// The log of a store, written by a copy: every batch at the place that it had, because records are
// known by their places. What is there is found again by a copy that goes on: batches become
// durable in their order.
#pragma once

#include <memory>

#include <hapax/result.h>
#include <hapax/time.h>

#include "journal/identity.h"
#include "journal/segment.h"
#include "ports/entropy.h"
#include "ports/files.h"
#include "shared_postgres/folder.h"

namespace hapax::shared_postgres {

class LogWriter {
 public:
  LogWriter() = default;
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;
  virtual ~LogWriter() = default;

  // The last batch that is there; {0, 0} if there is none. Those behind it are put.
  [[nodiscard]] virtual journal::Slot there() const = 0;
  virtual Status put(const journal::BatchView& batch) = 0;
  // All were put: when it answers Ok, all are durable.
  virtual Status end() = 0;
};

// Segments have a salt and their batches a chain: batches are sealed anew, facts stay.
[[nodiscard]] Result<std::unique_ptr<LogWriter>> write_segments(ports::Folder& folder,
                                                                ports::Entropy& entropy,
                                                                const journal::Identity& identity);
[[nodiscard]] Result<std::unique_ptr<LogWriter>> write_rows(PostgresFolder& folder);

}  // namespace hapax::shared_postgres
