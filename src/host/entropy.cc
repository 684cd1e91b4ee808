#include "host/entropy.h"

#include <cerrno>

#include <sys/random.h>
#include <sys/types.h>

#include "base/assert.h"

namespace hapax::host {

void HostEntropy::fill(std::span<std::byte> into) {
  while (!into.empty()) {
    const ssize_t got = getrandom(into.data(), into.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    HAPAX_ASSERT(got > 0, "the kernel gives randomness");
    into = into.subspan(static_cast<std::size_t>(got));
  }
}

}  // namespace hapax::host
