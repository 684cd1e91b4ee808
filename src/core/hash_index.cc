#include "core/hash_index.h"

#include <utility>

namespace hapax::core {

std::unique_ptr<IndexBucket[]> IndexShard::replace_table(std::uint32_t count) {
  count_ = count;
  return std::exchange(buckets_, std::make_unique<IndexBucket[]>(count));
}

void IndexShard::clear() {
  buckets_.reset();
  count_ = 0;
}

namespace {

// 0 bits would mean a shift by 64; 24 bits would already be 256 MiB of empty shards.
unsigned checked(unsigned shards_log2) {
  HAPAX_ASSERT(shards_log2 >= 1, "an index has at least two shards");
  HAPAX_ASSERT(shards_log2 <= 24, "an index has at most 2^24 shards");
  return shards_log2;
}

}  // namespace

HashIndex::HashIndex(unsigned shards_log2)
    : shards_(std::size_t{1} << checked(shards_log2)), shard_shift_(64 - shards_log2) {}

}  // namespace hapax::core
