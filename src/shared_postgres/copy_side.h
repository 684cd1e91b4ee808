// One side of a copy: a data folder, or the tables of a shared store. Held alone for as long as it
// lives (J3).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <hapax/result.h>

#include "journal/identity.h"
#include "ports/files.h"
#include "shared_postgres/log.h"
#include "shared_postgres/log_reader.h"
#include "shared_postgres/log_writer.h"

namespace hapax::shared_postgres {

enum class CopyRole : std::uint8_t {
  kSource,  // must be a store
  kTarget,  // is made if it is not there
};

class CopySide {
 public:
  CopySide() = default;
  CopySide(const CopySide&) = delete;
  CopySide& operator=(const CopySide&) = delete;
  virtual ~CopySide() = default;

  [[nodiscard]] virtual ports::Folder& folder() = 0;
  // The last fact of the log; an error if a start would be refused.
  [[nodiscard]] virtual Result<journal::Lsn> last(const journal::Identity& identity,
                                                  journal::Lsn snapshot) = 0;
  // A place such that all batches with facts behind the snapshot lie behind it.
  [[nodiscard]] virtual Result<journal::Slot> before_end_of(const journal::Identity& identity,
                                                            journal::Lsn snapshot) = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<LogReader>> read(const journal::Identity& identity,
                                                                LogSpan span,
                                                                journal::Slot after) = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<LogWriter>> write(
      const journal::Identity& identity) = 0;
};

// kLocked: another process uses it. kNotFound: there is no store.
[[nodiscard]] Result<std::unique_ptr<CopySide>> folder_side(const std::string& path, CopyRole role);
[[nodiscard]] Result<std::unique_ptr<CopySide>> tables_side(const StorePlace& place, CopyRole role,
                                                            std::uint32_t segment_bytes);

}  // namespace hapax::shared_postgres
