#include "host/entropy.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

namespace hapax::host {
namespace {

TEST(HostEntropy, FillsEveryByteOfALargeBuffer) {
  HostEntropy entropy;
  // More than the 256 bytes which the kernel promises in one call; a run of 64 zero bytes in it
  // has odds of about 2^-492.
  std::vector<std::byte> bytes(1 << 20);
  entropy.fill(bytes);
  const std::vector<std::byte> zeros(64);
  EXPECT_EQ(std::search(bytes.begin(), bytes.end(), zeros.begin(), zeros.end()), bytes.end());
}

TEST(HostEntropy, TwoDrawsDiffer) {
  HostEntropy entropy;
  EXPECT_NE(ports::draw_u64(entropy), ports::draw_u64(entropy));
}

TEST(HostEntropy, AnEmptyBufferIsFine) {
  HostEntropy entropy;
  entropy.fill({});
}

}  // namespace
}  // namespace hapax::host
