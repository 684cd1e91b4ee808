#include "journal/open_store.h"

#include <optional>
#include <string>
#include <vector>

#include "journal/format.h"
#include "journal/marks.h"
#include "journal/moving.h"
#include "journal/names.h"
#include "journal/new_file.h"
#include "journal/renew_names.h"
#include "journal/segment.h"

namespace hapax::journal {
namespace {

// Whether a file can be what a creation that was cut short left behind.
Result<bool> is_empty_beginning(ports::Folder& folder, const std::string& name) {
  switch (parse_name(name).kind) {
    case FileName::Kind::kSegment: {
      HAPAX_TRY(const auto file, folder.open(name, ports::OpenMode::kRead));
      HAPAX_TRY(const std::uint64_t size, file->size());
      // L4: it had its name only when its header was durable, so a shorter one was cut.
      return name == segment_name(1) && size == kHeaderBytes;
    }
    case FileName::Kind::kMarks: {
      HAPAX_TRY(const Marks marks, Marks::open(folder));
      return marks.newest().durable == Lsn{};
    }
    case FileName::Kind::kSnapshot:
    case FileName::Kind::kPart:
    case FileName::Kind::kRenewed:
    case FileName::Kind::kQuarantine:
      return false;
    default:
      return true;
  }
}

struct FolderContents {
  std::optional<std::string> trace;  // A file that shows that the store was used.
  int beginnings = 0;                // Of the two files that are there before STORE is.
  bool copying = false;              // It is being made by a copy.
  bool moved = false;
};

Result<FolderContents> look_at(ports::Folder& folder) {
  HAPAX_TRY(const std::vector<std::string> names, folder.list());
  FolderContents contents;
  for (const std::string& name : names) {
    contents.copying = contents.copying || name == kCopyingName;
    contents.moved = contents.moved || name == kMovedName;
  }
  if (contents.copying) return contents;
  for (const std::string& name : names) {
    HAPAX_TRY(const bool empty, is_empty_beginning(folder, name));
    if (!empty) contents.trace = name;
    if (name == kMarksName || name == segment_name(1)) ++contents.beginnings;
  }
  return contents;
}

Error store_missing(const ports::Folder& folder, const std::string& trace) {
  return Error{Errc::kCorruption,
               folder.describe(kStoreName) + " is missing, but " + trace +
                   " of a store is there. Without STORE its ids cannot be recognised. Put STORE "
                   "back from a backup of this folder, or choose an empty folder."};
}

Result<Identity> create_store(ports::Folder& folder, ports::Entropy& entropy,
                              const Identity& identity) {
  SegmentHeader header;
  header.number = 1;
  header.salt = ports::draw_u64(entropy);
  header.history = identity.history;
  header.store = identity.store();
  Mark mark;
  mark.kind = MarkKind::kClean;
  mark.salt = header.salt;
  mark.end = {header.number, kHeaderBytes};

  HAPAX_TRY(const auto segment, create_segment(folder, header, {}));
  HAPAX_TRY(const Marks marks, Marks::create(folder, mark));
  HAPAX_CHECK(sync_names(folder));
  HAPAX_CHECK(write_identity(folder, identity));
  HAPAX_CHECK(sync_names(folder));
  return identity;
}

}  // namespace

Result<Identity> open_store(ports::Folder& folder, ports::Entropy& entropy, std::int64_t wall_ms) {
  auto identity = read_identity(folder);
  const bool missing = !identity.ok() && identity.error().code == Errc::kNotFound;
  if (!identity.ok() && !missing) return identity;
  HAPAX_TRY(const FolderContents contents, look_at(folder));
  if (contents.copying) HAPAX_CHECK(check_copied(folder));
  if (contents.moved) HAPAX_CHECK(check_not_moved(folder));
  if (missing && contents.trace) return store_missing(folder, *contents.trace);
  if (missing) return create_store(folder, entropy, draw_identity(entropy, wall_ms));
  if (contents.trace || contents.beginnings < 2) {
    HAPAX_CHECK(renew_names(folder));
    return identity;
  }
  // L4: as in renew_names.h, for all files: until the first fact nothing is lost by making them
  // anew.
  return create_store(folder, entropy, *identity);
}

Status check_store_file(ports::Folder& folder) {
  const auto identity = read_identity(folder);
  if (identity.ok() || identity.error().code == Errc::kCorruption) return Ok{};
  if (identity.error().code != Errc::kNotFound) return identity.error();
  HAPAX_TRY(const FolderContents contents, look_at(folder));
  if (contents.copying) HAPAX_CHECK(check_copied(folder));
  if (contents.trace) return store_missing(folder, *contents.trace);
  return Ok{};
}

}  // namespace hapax::journal
