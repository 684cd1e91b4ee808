// A log that several processes append to, batch by batch, each behind what it believes to be the
// end. Used by one thread.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <hapax/result.h>

namespace hapax::ports {

struct LogPlace {
  std::uint32_t segment = 0;
  std::uint32_t offset = 0;
  friend auto operator<=>(const LogPlace&, const LogPlace&) = default;
};

struct LogBatch {
  LogPlace at;
  std::uint64_t last = 0;  // lsn of its last fact
  std::uint64_t mark = 0;  // drawn at random for it: no other batch has it
  std::string bytes;
};

// The latest batch that somebody knows.
struct LogTip {
  LogPlace at;
  std::uint64_t mark = 0;
  bool none = true;  // the log was empty
};

struct LogPart {
  std::vector<LogBatch> batches;  // oldest first; some, if there are any
  bool all = true;                // the log ended with them; false: it may have, or more follows
};

class SharedLog {
 public:
  SharedLog() = default;
  SharedLog(const SharedLog&) = delete;
  SharedLog& operator=(const SharedLog&) = delete;
  virtual ~SharedLog() = default;

  enum class Put : std::uint8_t {
    kDone,  // it is durable
    kNot,   // nothing was written: the log does not end at the tip
  };
  // Only where the log ends with the tip: not where something lay behind it, and was removed since.
  // kOutcomeUnknown: it may be there, or come to be there. Every other error: certainly not.
  // Saying the same again is harmless: what is there already is never written twice.
  virtual Result<Put> append(const LogTip& tip, const LogBatch& batch) = 0;
  // What lies behind the tip. Segments of it may have been removed. kNotFound: the tip itself is
  // not there, because it was removed or lost.
  virtual Result<LogPart> read_behind(const LogTip& tip) = 0;
  // The same, of batches whose last fact is `lsn` or a later one.
  virtual Result<LogPart> read_from(std::uint64_t lsn) = 0;
};

}  // namespace hapax::ports
