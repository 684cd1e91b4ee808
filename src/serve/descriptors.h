// File descriptors: how many the process may have, and how many of them connections may take.
#pragma once

#include <cstddef>

namespace hapax::serve {

// Raises the soft limit to the hard one, as far as that is allowed, and answers what it is now.
[[nodiscard]] std::size_t raise_descriptor_limit();

// How many connections leave enough for the store, whose next segment must always be openable, and
// for those who are told that there are too many.
[[nodiscard]] std::size_t connections_within(std::size_t descriptors);

}  // namespace hapax::serve
