#include "serve/descriptors.h"

#include <algorithm>

#include <sys/resource.h>

namespace hapax::serve {

namespace {

// The store reads up to 256 segments at once, and opens some ten files more. The rest is for loops,
// listeners, a database, and brief connections.
constexpr std::size_t kReserve = 384;
constexpr std::size_t kUsual = 1'024;       // if nobody tells
constexpr std::size_t kEnough = 1'048'576;  // a limit beyond it, or none

}  // namespace

std::size_t raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return kUsual;
  const rlimit raised{std::min<rlim_t>(limit.rlim_max, kEnough), limit.rlim_max};
  if (raised.rlim_cur > limit.rlim_cur && ::setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  return std::min<rlim_t>(limit.rlim_cur, kEnough);
}

std::size_t connections_within(std::size_t descriptors) {
  const std::size_t reserve = std::min(kReserve, descriptors - descriptors / 4);
  return std::max<std::size_t>(1, descriptors - reserve);
}

}  // namespace hapax::serve
