// The two notes that a store leaves behind when it is moved to another place (`hapax copy`).
//
// J1: a place with COPYING is no store: nobody starts from it. STORE is written there when
//     everything was compared, and only then COPYING is removed.
// J2: of the old and the new place at most one can be started: MOVED is in the old one before STORE
//     is in the new one. MOVED names the copy that it is for by its ticket, and no other copy of
//     the same store is finished then, wherever it lies and whatever its place is called.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <hapax/result.h>

#include "journal/format.h"
#include "journal/identity.h"
#include "ports/files.h"

namespace hapax::journal {

// What is moved: a store as it was after its last fact. Two that are equal are the same, fact by
// fact.
struct Cargo {
  Identity identity;
  Lsn last;                    // 0 = it has no facts
  std::uint32_t checksum = 0;  // of the batch that ends with it
  Lsn snapshot;                // that a start reads; 0 = none
};

// For people; no passwords.
struct Journey {
  std::string from;
  std::string to;
  std::string command;  // that goes on with it
};

struct MoveNote {
  std::string cargo;   // as text
  std::string ticket;  // drawn at random for each copy that is begun
  Journey journey;
  // Whether both are of one store as it was then, and on the way to a place of this name.
  friend bool operator==(const MoveNote& a, const MoveNote& b) {
    return a.cargo == b.cargo && a.journey.to == b.journey.to;
  }
};

[[nodiscard]] MoveNote note_of(const Cargo& cargo, std::string ticket, Journey journey);
// Whether both are of one store, at whatever fact.
[[nodiscard]] bool same_store(const MoveNote& a, const MoveNote& b);

// `name`: kCopyingName or kMovedName. None: there is no such note.
Result<std::optional<MoveNote>> read_note(ports::Folder& folder, std::string_view name);
// Durable when it answers Ok.
Status write_note(ports::Folder& folder, std::string_view name, const MoveNote& note);
Status remove_note(ports::Folder& folder, std::string_view name);

// kPreconditionFailed: a copy into this folder was not finished.
Status check_copied(ports::Folder& folder);
// kPreconditionFailed: the store is elsewhere now.
Status check_not_moved(ports::Folder& folder);

}  // namespace hapax::journal
