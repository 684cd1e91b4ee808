// What goes with a workflow that is removed: everything in the store whose name is its own, and its
// place in its source.
//
// F2: unless somebody said that they may go, no record that waits and no dead letter is removed:
//      what holds them goes in a commit that fails if one came.
// F5: a stream that the workflow was told to read, or to write to, stays, whatever it is called.
#pragma once

#include <cstdint>
#include <string>

#include <hapax/result.h>
#include <hapax/store.h>

#include "delivery/workflow.h"
#include "serve/declarations.h"

namespace hapax::serve {

struct Undelivered {
  std::uint64_t waiting = 0;
  std::uint64_t dead_letters = 0;
  [[nodiscard]] bool any() const { return waiting != 0 || dead_letters != 0; }
  // "2 records wait, and 1 dead letter is kept"
  [[nodiscard]] std::string text() const;
};
// Of all that the workflow was to deliver; the store is as its tenant sees it. Records in a
// database are not counted.
[[nodiscard]] Result<Undelivered> undelivered_of(Store& store, const delivery::Workflow& workflow);

enum class Removal : std::uint8_t {
  kDone,
  kMoved,        // somebody else is at it: look again
  kUndelivered,  // something came meanwhile, and may not go
};
// The whole store. REQUIRES: the workflow runs in no process any more. Whoever dies in between is
// followed by one who does it again.
[[nodiscard]] Result<Removal> remove_names(Store& store, const Declaration& declaration,
                                           Version version);

}  // namespace hapax::serve
