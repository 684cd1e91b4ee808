#include "core/hash_index.h"

#include <array>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace hapax::core {
namespace {

using base::Hash128;

// Number n has hash hashes[n].
struct ListedHashes {
  const std::vector<Hash128>* hashes;
  Hash128 operator()(std::uint32_t number) const { return (*hashes)[number]; }
  void prefetch(std::uint32_t) const {}
};

Hash128 uniform(std::uint64_t number) {
  return {base::spread(number * 2).low, base::spread(number * 2 + 1).low};
}

std::vector<Hash128> uniform_hashes(std::uint64_t count) {
  std::vector<Hash128> hashes;
  for (std::uint64_t i = 0; i < count; ++i) hashes.push_back(uniform(i));
  return hashes;
}

// All of them live in a handful of buckets and share three tags: everything overflows.
Hash128 crowded(std::uint64_t number) {
  static constexpr std::uint64_t kHomes[] = {0, 0x7fffffff, 0xffffffff, 0xfffffffe};
  return {kHomes[number % 4], number << 8 | number % 3};
}

RC_GTEST_PROP(IndexBucket, PortableMatchIsTheSameAsTheFastOne,
              (const std::array<std::uint8_t, 12>& tags, std::uint32_t passed, std::uint8_t tag)) {
  IndexBucket bucket;
  for (std::size_t slot = 0; slot < 12; ++slot) bucket.tags[slot] = tags[slot] % 4;
  bucket.passed = passed;
  RC_ASSERT(bucket.match(tag % 4) == bucket.match_portable(tag % 4));
}

TEST(IndexBucket, TheCounterBesideTheTagsIsNotTakenForATag) {
  IndexBucket bucket;
  bucket.passed = 0x07070707;
  EXPECT_EQ(bucket.match(7), 0U);
  EXPECT_EQ(bucket.match(0), 0xfffU);
}

struct Checked {
  explicit Checked(std::uint64_t universe) {
    for (std::uint64_t i = 0; i < universe; ++i) hashes.push_back(crowded(i / 3));
  }
  [[nodiscard]] ListedHashes source() const { return {&hashes}; }
  // Three numbers share each hash, so that a hash can be given another number.
  void put(std::uint32_t number) {
    const auto known = model.find(hashes[number]);
    if (known == model.end()) {
      index.insert(hashes[number], number, source());
    } else {
      index.repoint(hashes[number], known->second, number);
    }
    model[hashes[number]] = number;
  }
  void erase(std::uint32_t number) {
    const auto known = model.find(hashes[number]);
    const bool stands = known != model.end() && known->second == number;
    RC_ASSERT(index.erase(hashes[number], number, source()) == stands);
    if (stands) model.erase(known);
  }
  void compare() const {
    RC_ASSERT(index.size() == model.size());
    for (const Hash128& hash : hashes) {
      const auto known = model.find(hash);
      const std::uint32_t expected = known == model.end() ? HashIndex::kNone : known->second;
      RC_ASSERT(index.find(hash, source()) == expected);
    }
  }

  std::vector<Hash128> hashes;
  std::map<Hash128, std::uint32_t> model;
  HashIndex index{1};
};

RC_GTEST_PROP(HashIndex, AnswersLikeAMapEvenWhenEveryBucketOverflows, ()) {
  constexpr std::uint32_t kUniverse = 360;
  Checked checked(kUniverse);
  const auto steps =
      *rc::gen::container<std::vector<std::tuple<bool, std::uint32_t, std::uint32_t>>>(
          rc::gen::tuple(rc::gen::arbitrary<bool>(), rc::gen::inRange<std::uint32_t>(0, kUniverse),
                         rc::gen::inRange<std::uint32_t>(1, 40)));
  for (const auto& [putting, first, count] : steps) {
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t number = (first + i * 7) % kUniverse;
      putting ? checked.put(number) : checked.erase(number);
    }
    checked.compare();
  }
}

TEST(HashIndex, FourShardsHoldTwoHundredThousandAndGiveAllTheirMemoryBack) {
  const auto hashes = uniform_hashes(200'000);
  const ListedHashes source{&hashes};
  HashIndex index(2);
  const std::size_t empty = index.bytes();
  for (std::uint32_t i = 0; i < hashes.size(); ++i) index.insert(hashes[i], i, source);
  EXPECT_EQ(index.size(), hashes.size());
  for (std::uint32_t i = 0; i < hashes.size(); ++i) ASSERT_EQ(index.find(hashes[i], source), i);
  EXPECT_EQ(index.find(uniform(200'000), source), HashIndex::kNone);
  for (std::uint32_t i = 0; i < hashes.size(); ++i) ASSERT_TRUE(index.erase(hashes[i], i, source));
  EXPECT_EQ(index.size(), 0U);
  EXPECT_EQ(index.bytes(), empty);
}

TEST(HashIndex, CostsAtMostElevenBytesAnEntryAtEverySize) {
  const auto hashes = uniform_hashes(300'000);
  HashIndex index(8);
  for (std::uint32_t i = 0; i < hashes.size(); ++i) {
    index.insert(hashes[i], i, ListedHashes{&hashes});
    if (i > 100'000) {
      ASSERT_LE(index.bytes(), std::size_t{i} * 11) << i;
    }
  }
}

// D3: no operation touches more than one shard's worth of memory.
TEST(HashIndex, GrowsAndShrinksOneShardAtATime) {
  const auto hashes = uniform_hashes(100'000);
  const ListedHashes source{&hashes};
  HashIndex index(6);
  const auto shard_bytes_max = [](std::size_t entries) { return entries / 64 * 16 + 4096; };
  for (std::uint32_t i = 0; i < hashes.size(); ++i) {
    const std::size_t before = index.bytes();
    index.insert(hashes[i], i, source);
    ASSERT_LE(index.bytes() - before, shard_bytes_max(i)) << i;
  }
  for (std::uint32_t i = 0; i < hashes.size(); ++i) {
    const std::size_t before = index.bytes();
    index.erase(hashes[i], i, source);
    ASSERT_LE(before - index.bytes(), shard_bytes_max(hashes.size() - i)) << i;
  }
}

TEST(HashIndex, DoesNotGrowFromComingAndGoing) {
  constexpr std::uint32_t kAlive = 1000;
  const auto hashes = uniform_hashes(200'000);
  const ListedHashes source{&hashes};
  HashIndex index(2);
  for (std::uint32_t i = 0; i < hashes.size(); ++i) {
    index.insert(hashes[i], i, source);
    if (i >= kAlive) index.erase(hashes[i - kAlive], i - kAlive, source);
    ASSERT_LE(index.bytes(), std::size_t{kAlive} * 20) << i;
  }
  EXPECT_EQ(index.size(), kAlive);
}

struct CountedReads : ListedHashes {
  std::uint64_t* reads;
  Hash128 operator()(std::uint32_t number) const {
    ++*reads;
    return ListedHashes::operator()(number);
  }
};

// What is not there is found out from the tags of the home bucket, after any amount of churn: no
// trace of entries that left may lengthen the search.
TEST(HashIndex, HardlyReadsAnEntryForWhatIsNotThere) {
  constexpr std::uint32_t kAlive = 4000;
  constexpr std::uint32_t kLookups = 10'000;
  const auto hashes = uniform_hashes(100'000);
  HashIndex index(2);
  for (std::uint32_t i = 0; i < hashes.size(); ++i) {
    index.insert(hashes[i], i, ListedHashes{&hashes});
    if (i >= kAlive) index.erase(hashes[i - kAlive], i - kAlive, ListedHashes{&hashes});
  }
  std::uint64_t reads = 0;
  for (std::uint32_t i = 0; i < kLookups; ++i) {
    const auto found = index.find(uniform(1'000'000 + i), CountedReads{{&hashes}, &reads});
    ASSERT_EQ(found, HashIndex::kNone);
  }
  EXPECT_LT(reads, kLookups / 10);
}

TEST(HashIndex, LeavesAHashAloneThatMeansAnotherNumber) {
  const std::vector<Hash128> hashes{uniform(1), uniform(1)};
  const ListedHashes source{&hashes};
  HashIndex index(2);
  index.insert(hashes[0], 0, source);
  index.repoint(hashes[0], 0, 1);
  EXPECT_FALSE(index.erase(hashes[0], 0, source));
  EXPECT_EQ(index.find(hashes[0], source), 1U);
}

TEST(HashIndexDeathTest, RefusesToReplaceWhatIsNotThere) {
  HashIndex index(2);
  EXPECT_DEATH(index.repoint(uniform(1), 0, 1), "only where it stands");
}

}  // namespace
}  // namespace hapax::core
