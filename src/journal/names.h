// The files of a store's folder. A name that does not follow exactly one of these patterns is not
// ours: L10, it is never changed, read or removed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ports/files.h"

namespace hapax::journal {

inline constexpr std::string_view kStoreName = "STORE";
inline constexpr std::string_view kLockName = "LOCK";
inline constexpr std::string_view kMarksName = "MARKS";
inline constexpr std::string_view kReserveName = "RESERVE";
inline constexpr std::string_view kCopyingName = "COPYING";  // moving.h
inline constexpr std::string_view kMovedName = "MOVED";
inline constexpr std::string_view kUnfinishedSuffix = ".tmp";
inline constexpr std::string_view kRenewedSuffix = ".renewed";

[[nodiscard]] std::string segment_name(std::uint32_t number);  // journal-000000000000002a.log
[[nodiscard]] std::string snapshot_name(std::uint64_t lsn);    // snapshot-000000000000002a.snap
[[nodiscard]] std::string part_name(std::uint64_t number);     // part-000000000000002a.part
// quarantine-journal-000000000000002a-at-0000000000000040
[[nodiscard]] std::string torn_tail_name(std::uint32_t segment, std::uint64_t offset);
// The name under which repair keeps a whole file: quarantine-journal-000000000000002a.log
[[nodiscard]] std::string quarantine_name(std::string_view name);

struct FileName {
  enum class Kind : std::uint8_t {
    kStore,
    kLock,
    kMarks,
    kReserve,
    kCopying,
    kMoved,
    kSegment,
    kSnapshot,
    kPart,
    kQuarantine,
    kUnfinished,  // one of the above, not yet renamed to its name: nothing refers to it
    kRenewed,     // a snapshot or part whose name is being given once more (renew_names.h)
    kUnknown,
  };
  Kind kind = Kind::kUnknown;
  std::uint64_t number = 0;  // of a segment, snapshot or part, also of a quarantined segment
};
[[nodiscard]] FileName parse_name(std::string_view name);

// The folder itself, for people: the argument of a command.
[[nodiscard]] std::string folder_path(const ports::Folder& folder);

}  // namespace hapax::journal
