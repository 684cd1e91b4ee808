// What the data folders in tests/golden hold: one of everything.
#pragma once

#include <cstdint>

#include <hapax/hapax.h>

namespace hapax {

// Into a new store. What a released folder holds stays as it is: whatever a new version adds goes
// behind it, with an expectation for folders of that version and later ones.
void fill(Store& store);
void add_ballast(Store& store);  // one record more

// Of a copy: asking changes it.
void expect_content(Store& store, std::uint16_t version);

}  // namespace hapax
