#include "sim/call_log.h"

#include <string>

#include "base/assert.h"
#include "base/format.h"

namespace hapax::sim {

std::string_view word_of(DiskCall call) {
  switch (call) {
    case DiskCall::kWrite:
      return "write";
    case DiskCall::kSync:
      return "sync";
    case DiskCall::kTruncate:
      return "truncate";
    case DiskCall::kReserve:
      return "reserve";
    case DiskCall::kCreate:
      return "create";
    case DiskCall::kRename:
      return "rename";
    case DiskCall::kRemove:
      return "remove";
    case DiskCall::kSyncFolder:
      return "sync folder";
    case DiskCall::kLock:
      return "lock";
    case DiskCall::kOpen:
      return "open";
    case DiskCall::kRead:
      return "read";
    case DiskCall::kSize:
      return "size";
    case DiskCall::kList:
      return "list";
  }
  HAPAX_ASSERT(false, "the call is known");
}

Error failed(const CallStep& step, Errc code) {
  return Error{code, base::format("{} {} at offset {}, {} bytes: simulated {} at call {}.",
                                  word_of(step.call), step.name, step.offset, step.length,
                                  hapax::word_of(code), step.number)};
}

void CallLog::note(const CallStep& step, std::uint64_t outcome, std::string_view word) {
  trace_.add(static_cast<std::uint64_t>(step.call));
  trace_.add(step.name);
  trace_.add(step.offset);
  trace_.add(step.length);
  trace_.add(outcome);
  trace_.add(word);
  if (!watcher_) return;
  std::string line = base::format("{} {} {} {}+{}: {}", step.number, word_of(step.call), step.name,
                                  step.offset, step.length, word);
  if (outcome != 0) base::append_format(line, " {}", outcome);
  watcher_(line);
}

}  // namespace hapax::sim
