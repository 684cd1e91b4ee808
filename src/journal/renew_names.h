// L4, at a start: a process whose sync of the folder failed ends, but the names it made stay
// visible although the disk may never have them, and a later sync does not store them. What rests
// on such a name would be lost with it: a snapshot, and parts that later snapshots refer to without
// writing them again. So every start gives those files their names once more. (Segments need it
// not: one whose name was not synced is empty, or superseded by the next start.)
#pragma once

#include <hapax/result.h>

#include "ports/files.h"

namespace hapax::journal {

// Renames every snapshot and part away and back, and syncs the folder.
Status renew_names(ports::Folder& folder);

// Gives back the names that a renewal cut short took away. Nothing else reads them meanwhile, so
// whoever lists snapshots calls one of the two first.
Status finish_renewals(ports::Folder& folder);

}  // namespace hapax::journal
