// The first step of every start: which store is in this folder? An empty folder becomes one.
#pragma once

#include <cstdint>

#include <hapax/result.h>

#include "journal/identity.h"
#include "ports/entropy.h"
#include "ports/files.h"

namespace hapax::journal {

// The identity of the store in the folder; a new store is made when there is none. STORE is written
// last, so a creation that was cut short is begun again; so is one that nothing was written to yet,
// because the process that made it may have failed to sync its names. kCorruption when STORE is
// missing beside files that hold facts: nothing is made up for it. kPreconditionFailed: J1, J2.
Result<Identity> open_store(ports::Folder& folder, ports::Entropy& entropy, std::int64_t wall_ms);

// For those who make nothing: refuses, in the same words, what open_store() refuses because STORE
// is missing or of another format version.
Status check_store_file(ports::Folder& folder);

}  // namespace hapax::journal
