// What the worker's process may do once it reads its first request: read descriptor 0, write
// descriptor 1, use memory up to a limit, look at the clock, end. Anything else kills it.
//
// jq programs come from tenants and libjq has had memory bugs, so the process is locked in before
// it sees either. The filter has no way back.
#pragma once

#include <cstddef>

#include <hapax/result.h>

namespace hapax::jq {

// The sanitizers' shadow memory counts as data and is larger than any limit, so the limit on memory
// is left out of their builds; everything else holds there, too.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif
#else
inline constexpr bool kSanitized = false;
#endif

// Ends all other descriptors, sets the limits, and installs the filter. Call it once, from the only
// thread.
[[nodiscard]] Status lock_in(std::size_t memory_max);

}  // namespace hapax::jq
