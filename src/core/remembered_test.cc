#include "core/remembered.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/id_entry.h"

namespace hapax::core {
namespace {

using base::Hash128;
using std::chrono::seconds;

constexpr std::uint32_t kNobody = OwnerCounts::kNobody;
constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

struct Note {
  Hash128 key;
  std::uint64_t version = 0;
  std::int64_t expires_ms = 0;

  [[nodiscard]] Hash128 hash() const { return key; }
  [[nodiscard]] Time expires_at() const { return time_from_ms(expires_ms); }
  [[nodiscard]] bool newer_than(const Note& other) const { return version > other.version; }
  friend bool operator==(const Note&, const Note&) = default;
};
using Notes = Remembered<Note, 4>;

constexpr Time kStart = time_from_ms(1'700'000'000'123);

Hash128 key(std::uint64_t number) {
  return {base::spread(number * 2).low, base::spread(number * 2 + 1).low};
}
Note note(std::uint64_t number, std::uint64_t version, Time expires_at) {
  return {key(number), version, to_ms(expires_at)};
}
std::uint64_t version_of(const Notes& notes, std::uint64_t number, Time now) {
  const Note* found = notes.find(key(number), now);
  return found == nullptr ? 0 : found->version;
}

// The bytes are copied, as a file would.
Notes restored(Notes& from, Time now) {
  const Notes::Snapshot image = from.snapshot();
  Notes notes(2);
  for (const auto& chunk : image.chunks) {
    const std::vector<Note> stored(chunk.span().begin(), chunk.span().end());
    EXPECT_TRUE(notes.restore(chunk.generation, chunk.serial, stored, now).ok());
  }
  for (const auto& counts : image.counts) {
    EXPECT_TRUE(notes.restore_counts(counts.generation, counts.counts).ok());
  }
  notes.set_next_serial(image.next_serial);
  return notes;
}

RC_GTEST_PROP(GenerationKey, IsASliceThatHoldsTheExpiryAndIsNarrowAgainstTheWindow, ()) {
  const Time now = kStart + Duration{*rc::gen::inRange<std::int64_t>(0, 1'000'000)};
  const Duration window{*rc::gen::inRange<std::int64_t>(-5'000, 40'000'000'000)};
  const GenerationKey slice = GenerationKey::of(now + window, now);
  RC_ASSERT(slice.end() > now);
  RC_ASSERT(slice.end() > now + window);
  RC_ASSERT(slice.end() - (now + std::max(window, Duration{0})) <= window / 8 + seconds{2});
}

TEST(GenerationKey, OfADayIsTwoHoursAndAQuarterWide) {
  EXPECT_EQ(GenerationKey::of(kStart + seconds{86'400}, kStart).width_log2, 13);
  EXPECT_EQ(GenerationKey::of(kStart + seconds{1}, kStart).width_log2, 0);
  EXPECT_EQ(GenerationKey::of(Time::max(), kStart), GenerationKey::forever());
  EXPECT_EQ(GenerationKey::forever().end(), Time::max());
}

TEST(OwnerCounts, CountsManyOwnersAndListsThemSorted) {
  OwnerCounts counts;
  for (std::uint32_t owner = 1000; owner > 0; --owner) counts.add(owner, owner);
  counts.take(1);
  EXPECT_EQ(counts.count_of(1), 0U);
  EXPECT_EQ(counts.count_of(1000), 1000U);
  EXPECT_EQ(counts.count_of(5000), 0U);
  const auto list = counts.list();
  ASSERT_EQ(list.size(), 999U);
  EXPECT_EQ(list.front(), (OwnerCount{2, 2}));
  EXPECT_TRUE(std::ranges::is_sorted(list, {}, &OwnerCount::owner));
}

TEST(IdEntry, KeepsWhatItWasGiven) {
  const Sequence sequence{(std::uint64_t{1} << 48) - 1};
  const IdEntry entry(key(1), {3, 4}, sequence, kStart, Window{seconds{60}});
  EXPECT_EQ(entry.hash(), key(1));
  EXPECT_EQ(entry.fingerprint(), (Fingerprint{3, 4}));
  EXPECT_EQ(entry.sequence(), sequence);
  EXPECT_EQ(entry.first_seen(), kStart);
  EXPECT_EQ(entry.window(), Window{seconds{60}});
  EXPECT_EQ(entry.expires_at(), kStart + seconds{60});
  const IdEntry forever(key(1), {3, 4}, sequence, kStart, Window::forever());
  EXPECT_EQ(forever.expires_at(), Time::max());
}

TEST(IdEntry, IsNewerWhenSeenLaterOrRenewed) {
  const IdEntry first(key(1), {}, Sequence{5}, kStart, Window{seconds{60}});
  const IdEntry renewed(key(1), {}, Sequence{5}, kStart, Window{seconds{90}});
  const IdEntry again(key(1), {}, Sequence{2}, kStart + seconds{90}, Window{seconds{1}});
  EXPECT_TRUE(renewed.newer_than(first));
  EXPECT_TRUE(again.newer_than(renewed));
  EXPECT_FALSE(first.newer_than(renewed));
  EXPECT_FALSE(first.newer_than(first));
}

// D1: an id is remembered for exactly its window of log time.
TEST(Remembered, EntryIsFoundUntilTheMillisecondItExpires) {
  Notes notes(2);
  const Time end = kStart + seconds{10};
  notes.add(note(1, 1, end), kNobody, kStart);
  notes.expire(end - Duration{1}, kAll);
  EXPECT_EQ(version_of(notes, 1, end - Duration{1}), 1U);
  EXPECT_EQ(version_of(notes, 1, end), 0U);
  EXPECT_EQ(version_of(notes, 2, kStart), 0U);
}

TEST(Remembered, AGenerationDiesAtTheEndOfItsSliceAndNotBefore) {
  Notes notes(2);
  const Time end = kStart + seconds{10};
  notes.add(note(1, 1, end), 1, kStart);
  const Time slice_end = GenerationKey::of(end, kStart).end();
  EXPECT_EQ(notes.expire(slice_end - Duration{1}, kAll), 0U);
  EXPECT_EQ(notes.count_of(1), 1U);
  EXPECT_EQ(notes.expire(slice_end, kAll), 1U);
  EXPECT_EQ(notes.count_of(1), 0U);
}

// D1
TEST(Remembered, ForEverIsForEver) {
  Notes notes(2);
  notes.add(note(1, 1, Time::max()), kNobody, kStart);
  const Time late = kStart + std::chrono::years{500};
  EXPECT_EQ(notes.expire(late, kAll), 0U);
  EXPECT_EQ(version_of(notes, 1, late), 1U);
}

// D2: the newest entry of a hash wins.
TEST(Remembered, ReAddedAfterExpirySurvivesTheDeathOfTheOldGeneration) {
  Notes notes(2);
  notes.add(note(1, 1, kStart + seconds{2}), kNobody, kStart);
  const Time later = kStart + seconds{3};
  notes.add(note(1, 2, later + seconds{100}), kNobody, later);
  EXPECT_EQ(notes.expire(later + seconds{5}, kAll), 1U);
  EXPECT_EQ(version_of(notes, 1, later + seconds{5}), 2U);
  EXPECT_EQ(notes.live(), 1U);
}

// D2
TEST(Remembered, RestoreKeepsTheNewestInWhateverOrderGenerationsCome) {
  Notes notes(2);
  notes.add(note(1, 1, kStart + seconds{900}), kNobody, kStart);
  notes.add(note(1, 2, kStart + seconds{1900}), kNobody, kStart);
  const Notes::Snapshot image = notes.snapshot();
  ASSERT_EQ(image.chunks.size(), 2U);
  for (const bool reversed : {false, true}) {
    Notes other(2);
    for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
      const auto& chunk = image.chunks[reversed ? 1 - i : i];
      ASSERT_TRUE(other.restore(chunk.generation, chunk.serial, chunk.span(), kStart).ok());
    }
    EXPECT_EQ(version_of(other, 1, kStart), 2U);
    EXPECT_EQ(other.live(), 1U);
  }
}

// D2: the older entry would otherwise be the only one left in the snapshot.
TEST(Remembered, AShortReplacementDoesNotBringTheOlderBackAfterARestart) {
  Notes notes(2);
  notes.add(note(1, 1, kStart + seconds{900}), kNobody, kStart);
  notes.add(note(1, 2, kStart + seconds{1}), kNobody, kStart);
  const Time later = kStart + seconds{100};
  notes.expire(later, kAll);
  EXPECT_EQ(version_of(notes, 1, later), 0U);
  EXPECT_EQ(version_of(restored(notes, later), 1, later), 0U);
}

TEST(Remembered, UndoGivesAHashBackToTheEntryBefore) {
  Notes notes(2);
  notes.add(note(1, 1, kStart + seconds{900}), kNobody, kStart);
  const Added replacing = notes.add(note(1, 2, kStart + seconds{1900}), kNobody, kStart);
  const Added fresh = notes.add(note(2, 1, kStart + seconds{900}), kNobody, kStart);
  notes.undo(fresh);
  notes.undo(replacing);
  EXPECT_EQ(version_of(notes, 1, kStart), 1U);
  EXPECT_EQ(version_of(notes, 2, kStart), 0U);
  EXPECT_EQ(notes.live(), 1U);
}

TEST(Remembered, UndoLeavesNoChunkGenerationCountOrSerialBehind) {
  Notes notes(2);
  notes.add(note(0, 1, kStart + seconds{100}), 7, kStart);
  const std::size_t bytes = notes.bytes();
  const std::uint64_t serial = notes.next_serial();
  std::vector<Added> added;
  for (std::uint64_t i = 1; i < 40; ++i) {
    const seconds window{i % 2 == 0 ? 100 : 5000};
    added.push_back(notes.add(note(i, 1, kStart + window), 7, kStart));
  }
  EXPECT_EQ(notes.count_of(7), 40U);
  for (; !added.empty(); added.pop_back()) notes.undo(added.back());
  EXPECT_EQ(notes.next_serial(), serial);
  EXPECT_EQ(notes.bytes(), bytes);
  EXPECT_EQ(notes.count_of(7), 1U);
  EXPECT_EQ(notes.snapshot().chunks.size(), 1U);
}

// The chunk of the replaced entry is gone, and its id belongs to another chunk for a while.
TEST(Remembered, UndoForgetsTheHashWhenTheEntryBeforeIsGone) {
  Notes notes(2);
  notes.add(note(1, 1, kStart + seconds{2}), kNobody, kStart);
  const Time later = kStart + seconds{10};
  const Added replacing = notes.add(note(1, 2, later + seconds{100}), kNobody, later);
  notes.expire(later, kAll);
  const Added recycled = notes.add(note(3, 1, later + seconds{5000}), kNobody, later);
  EXPECT_EQ(recycled.number / 4, replacing.replaced / 4);
  notes.undo(recycled);
  notes.undo(replacing);
  EXPECT_EQ(version_of(notes, 1, later), 0U);
  EXPECT_EQ(notes.live(), 0U);
}

TEST(Remembered, UndoRelinksADyingEntryThatIsStillToBeUnlinked) {
  Notes notes(2);
  notes.add(note(1, 1, kStart + seconds{2}), kNobody, kStart);
  notes.add(note(2, 1, kStart + seconds{2}), kNobody, kStart);
  const Time later = kStart + seconds{10};
  const Added replacing = notes.add(note(2, 2, later + seconds{100}), kNobody, later);
  EXPECT_EQ(notes.expire(later, 1), 1U);
  notes.undo(replacing);
  EXPECT_EQ(notes.live(), 1U);
  EXPECT_EQ(notes.expire(later, kAll), 1U);
  EXPECT_EQ(notes.live(), 0U);
}

TEST(Remembered, UndoOfAnEntryWhoseOwnGenerationDiedIsHarmless) {
  for (const std::size_t work : {std::size_t{0}, std::size_t{1}, kAll}) {
    Notes notes(2);
    std::vector<Added> added;
    for (std::uint64_t i = 0; i < 6; ++i) {
      added.push_back(notes.add(note(i % 5, i, kStart + seconds{2}), 1, kStart));
    }
    notes.expire(kStart + seconds{10}, work);
    for (; !added.empty(); added.pop_back()) notes.undo(added.back());
    EXPECT_EQ(notes.expire(kStart + seconds{10}, kAll), 0U);
    EXPECT_EQ(notes.live(), 0U);
    EXPECT_EQ(notes.bytes(), Notes(2).bytes());
  }
}

// D3: no operation touches more than one shard's worth of memory.
TEST(Remembered, DyingIsSpreadOverAsManyCallsAsTheCallerWants) {
  Notes notes(2);
  const std::size_t empty = notes.bytes();
  for (std::uint64_t i = 0; i < 1000; ++i) notes.add(note(i, 1, kStart + seconds{2}), 1, kStart);
  const Time later = kStart + seconds{4};
  std::size_t live = notes.live();
  std::size_t bytes = notes.bytes();
  while (live > 0) {
    ASSERT_EQ(notes.expire(later, 10), 10U);
    ASSERT_EQ(live - notes.live(), 10U);
    ASSERT_LT(notes.bytes(), bytes);
    live = notes.live();
    bytes = notes.bytes();
  }
  EXPECT_EQ(notes.expire(later, 10), 0U);
  EXPECT_EQ(notes.bytes(), empty);
  EXPECT_EQ(notes.count_of(1), 0U);
}

TEST(Remembered, ChunkIdsAreUsedAgainAndSerialsNever) {
  Notes notes(2);
  Time now = kStart;
  for (std::uint64_t i = 0; i < 10'000; ++i) {
    now += Duration{100};
    const Added added = notes.add(note(i, 1, now + seconds{2}), kNobody, now);
    ASSERT_LT(added.number, 100U) << i;
    notes.expire(now, 2);
  }
  EXPECT_GT(notes.next_serial(), 2500U);
}

TEST(Remembered, ASnapshotStaysAsItWasTaken) {
  Notes notes(2);
  const Time end = kStart + seconds{20};
  for (std::uint64_t i = 0; i < 6; ++i) notes.add(note(i, 1, end), 3, kStart);
  const Notes::Snapshot image = notes.snapshot();
  for (std::uint64_t i = 6; i < 12; ++i) notes.add(note(i, 1, end), 3, kStart);
  notes.expire(end + seconds{10}, kAll);
  ASSERT_EQ(image.chunks.size(), 2U);
  EXPECT_TRUE(image.chunks[0].sealed);
  EXPECT_FALSE(image.chunks[1].sealed);
  EXPECT_EQ(image.chunks[1].count, 2U);
  EXPECT_EQ(image.chunks[1].span()[1], note(5, 1, end));
  EXPECT_EQ(image.counts.at(0).counts, (std::vector{OwnerCount{3, 6}}));
  EXPECT_EQ(image.next_serial, 3U);
}

TEST(Remembered, AnOpenChunkGoesOnUnderItsSerialAfterARestart) {
  Notes notes(2);
  for (std::uint64_t i = 0; i < 6; ++i) notes.add(note(i, 1, kStart + seconds{20}), 3, kStart);
  Notes again = restored(notes, kStart);
  for (std::uint64_t i = 6; i < 8; ++i) again.add(note(i, 1, kStart + seconds{20}), 3, kStart);
  const Notes::Snapshot image = again.snapshot();
  ASSERT_EQ(image.chunks.size(), 2U);
  EXPECT_EQ(image.chunks[1].serial, 2U);
  EXPECT_TRUE(image.chunks[1].sealed);
  EXPECT_EQ(again.count_of(3), 8U);
}

TEST(Remembered, RestoreSkipsWhatIsDead) {
  Notes notes(2);
  notes.add(note(1, 1, kStart + seconds{2}), 1, kStart);
  notes.add(note(2, 1, kStart + seconds{900}), 1, kStart);
  Notes again = restored(notes, kStart + seconds{10});
  EXPECT_EQ(again.live(), 1U);
  EXPECT_EQ(again.count_of(1), 1U);
  EXPECT_EQ(again.next_serial(), notes.next_serial());
}

TEST(Remembered, FourShardsHoldTwoHundredThousandIds) {
  Remembered<IdEntry> ids(2);
  const auto id = [](std::uint64_t i) {
    return IdEntry(key(i), {i, i}, Sequence{i}, kStart, Window{seconds{i % 2 == 0 ? 60 : 86'400}});
  };
  for (std::uint64_t i = 0; i < 200'000; ++i) {
    ids.prefetch(key(i));
    ids.prefetch_entry(key(i));
    ids.add(id(i), static_cast<std::uint32_t>(1 + i % 3), kStart);
  }
  for (std::uint64_t i = 0; i < 200'000; ++i) {
    const IdEntry* found = ids.find(key(i), kStart);
    ASSERT_NE(found, nullptr) << i;
    ASSERT_EQ(found->sequence(), Sequence{i});
  }
  EXPECT_LT(ids.bytes(), 200'000U * 64);
  const Time later = kStart + seconds{100};
  while (ids.expire(later, 4096) == 4096) {
  }
  EXPECT_EQ(ids.live(), 100'000U);
  EXPECT_EQ(ids.find(key(0), later), nullptr);
  EXPECT_NE(ids.find(key(1), later), nullptr);
  EXPECT_EQ(ids.count_of(1) + ids.count_of(2) + ids.count_of(3), 100'000U);
}

// B2: checksums prove that bytes are as they were written, not that they make sense.
TEST(Remembered, RefusesChunksThatNoSnapshotCanHave) {
  const GenerationKey slice = GenerationKey::of(kStart + seconds{900}, kStart);
  const std::vector<Note> one = {note(1, 1, kStart + seconds{900})};
  const std::vector<Note> too_many(100'000, one.front());
  const std::vector<Note> long_lived = {note(1, 1, kStart + seconds{90'000})};
  const auto refused = [&](GenerationKey generation, std::uint64_t serial,
                           const std::vector<Note>& entries) {
    Notes notes(2);
    const Status restored = notes.restore(generation, serial, entries, kStart);
    return !restored.ok() && restored.error().code == Errc::kCorruption && notes.live() == 0;
  };
  EXPECT_FALSE(refused(slice, 1, one));
  EXPECT_TRUE(refused(slice, 1, {})) << "empty";
  EXPECT_TRUE(refused(slice, 1, too_many));
  EXPECT_TRUE(refused(slice, 1, long_lived)) << "outlives its slice";
  EXPECT_TRUE(refused(slice, 0, one)) << "serial 0 marks a free chunk";
  EXPECT_TRUE(refused(slice, ~std::uint64_t{0}, one)) << "the next serial would be 0";
  for (const int width : {29, 63, 64, 200, 254}) {
    const GenerationKey wide{static_cast<std::uint8_t>(width), slice.slot};
    EXPECT_TRUE(refused(wide, 1, one)) << width;
  }
  EXPECT_TRUE(refused({slice.width_log2, -1}, 1, one));
  EXPECT_TRUE(refused({slice.width_log2, std::numeric_limits<std::int64_t>::max()}, 1, one));
  EXPECT_TRUE(refused({GenerationKey::kForever, 7}, 1, one));

  Notes notes(2);
  ASSERT_TRUE(notes.restore(slice, 1, one, kStart).ok());
  EXPECT_FALSE(notes.restore(slice, 2, one, kStart).ok()) << "behind a chunk that is not full";
}

// B2
TEST(Remembered, RefusesCountsThatNoSnapshotCanHave) {
  const GenerationKey slice = GenerationKey::of(kStart + seconds{900}, kStart);
  const std::vector<Note> two = {note(1, 1, kStart), note(2, 1, kStart)};
  const auto refused = [&](const std::vector<OwnerCount>& counts) {
    Notes notes(2);
    EXPECT_TRUE(notes.restore(slice, 1, two, kStart).ok());
    return !notes.restore_counts(slice, counts).ok();
  };
  EXPECT_FALSE(refused({{1, 1}, {2, 1}}));
  EXPECT_TRUE(refused({{1, 2}, {2, 1}})) << "more than there are entries";
  EXPECT_TRUE(refused({{1, 0xffffffff}}));
  EXPECT_TRUE(refused({{kNobody, 1}}));
  EXPECT_TRUE(refused({{1, 0}}));
  EXPECT_TRUE(refused({{2, 1}, {1, 1}})) << "out of order";
}

TEST(RememberedDeathTest, StopsAtWhatWouldBreakItsMemory) {
  Notes notes(2);
  const Added first = notes.add(note(1, 5, kStart + seconds{20}), kNobody, kStart);
  const Added second = notes.add(note(2, 5, kStart + seconds{20}), kNobody, kStart);
  EXPECT_DEATH(notes.undo(first), "the latest add is taken back first");
  EXPECT_DEATH(notes.add(note(1, 4, kStart + seconds{20}), kNobody, kStart), "in their order");
  const Notes::Snapshot image = notes.snapshot();
  EXPECT_DEATH(notes.undo(second), "what a snapshot holds is not taken back");
  EXPECT_DEATH(notes.set_next_serial(1), "a serial is given once");
  notes.expire(kStart, kAll);
  EXPECT_DEATH(notes.expire(kStart - Duration{1}, kAll), "log time never goes back");
}

// The same as Remembered, as plainly as possible: every hash has a list of versions.
struct RememberedModel {
  struct Known {
    Note entry;
    Time kept_until;  // end of the generation it must be in
  };
  std::map<std::uint64_t, Known> newest;
  std::vector<std::pair<Time, std::uint32_t>> counted;  // end of generation, owner

  void add(std::uint64_t number, const Note& entry, std::uint32_t owner, Time now) {
    Time until = GenerationKey::of(entry.expires_at(), now).end();
    if (newest.contains(number)) until = std::max(until, newest[number].kept_until);
    newest[number] = {entry, until};
    counted.emplace_back(until, owner);
  }
  [[nodiscard]] std::uint64_t version_of(std::uint64_t number, Time now) const {
    const auto known = newest.find(number);
    if (known == newest.end() || known->second.entry.expires_at() <= now) return 0;
    return known->second.entry.version;
  }
  [[nodiscard]] std::size_t remembered(Time now) const {
    return static_cast<std::size_t>(
        std::count_if(newest.begin(), newest.end(),
                      [&](const auto& known) { return known.second.entry.expires_at() > now; }));
  }
  [[nodiscard]] std::size_t live(Time now) const {
    return static_cast<std::size_t>(
        std::count_if(newest.begin(), newest.end(),
                      [&](const auto& known) { return known.second.kept_until > now; }));
  }
  [[nodiscard]] std::uint64_t count_of(std::uint32_t owner, Time now) const {
    return static_cast<std::uint64_t>(
        std::count_if(counted.begin(), counted.end(),
                      [&](const auto& one) { return one.first > now && one.second == owner; }));
  }
};

class RememberedRun {
 public:
  static constexpr std::uint64_t kKeys = 30;
  enum Kind { kAdd, kAddMany, kWait, kExpire, kDrain, kUndo, kRestart, kHold, kKinds };

  void step(int kind, std::uint64_t what, std::uint64_t how_much) {
    switch (kind) {
      case kAdd:
        return add(what, how_much);
      case kAddMany:
        for (std::uint64_t i = 0; i < how_much; ++i) add(what + i * i, how_much + i % 2);
        return;
      case kWait:
        now_ += Duration{static_cast<std::int64_t>(what * how_much * how_much)};
        return;
      case kExpire:
        return expire(how_much % 7);
      case kDrain:
        expire(kAll);
        RC_ASSERT(notes_.live() == model_.live(now_));
        return;
      case kUndo:
        for (std::uint64_t i = 0; i < how_much; ++i) undo();
        return;
      case kRestart:
        return restart();
      default:
        return hold();
    }
  }

  void compare() const {
    for (std::uint64_t number = 0; number < kKeys; ++number) {
      RC_ASSERT(version_of(notes_, number, now_) == model_.version_of(number, now_));
    }
    std::size_t visited = 0;
    notes_.for_each(now_, [&](const Note& entry) {
      RC_ASSERT(notes_.find(entry.hash(), now_) == &entry);
      ++visited;
    });
    RC_ASSERT(visited == model_.remembered(now_));
    for (std::uint32_t owner = 0; owner < 3; ++owner) {
      RC_ASSERT(notes_.count_of(owner) == model_.count_of(owner, expired_));
    }
    for (const auto& [chunk, bytes] : held_) {
      RC_ASSERT(std::equal(bytes.begin(), bytes.end(), chunk.span().begin(), chunk.span().end()));
    }
  }

 private:
  void add(std::uint64_t what, std::uint64_t how_much) {
    static constexpr std::int64_t kWindows[] = {1, 2, 3, 20, 40, 300, 5000, -1};
    const std::int64_t window = kWindows[how_much % 8];
    const Time end = window < 0 ? Time::max() : now_ + seconds{window};
    const Note entry = note(what % kKeys, ++version_, end);
    const auto owner = static_cast<std::uint32_t>(what % 3);
    undo_.emplace_back(Added{}, model_);
    undo_.back().first = notes_.add(entry, owner, now_);
    model_.add(what % kKeys, entry, owner, now_);
  }
  void expire(std::size_t entries_max) {
    const std::size_t done = notes_.expire(now_, entries_max);
    RC_ASSERT(done <= entries_max);
    expired_ = now_;
  }
  void undo() {
    if (undo_.empty()) return;
    notes_.undo(undo_.back().first);
    model_ = undo_.back().second;
    undo_.pop_back();
  }
  void restart() {
    undo_.clear();
    const std::uint64_t serial = notes_.next_serial();
    notes_ = restored(notes_, now_);
    expired_ = now_;
    RC_ASSERT(notes_.live() == model_.live(now_));
    RC_ASSERT(notes_.next_serial() == serial);
  }
  void hold() {
    undo_.clear();
    for (const auto& chunk : notes_.snapshot().chunks) {
      RC_ASSERT(chunk.sealed == (chunk.count == 4));
      held_.emplace_back(chunk, std::vector<Note>(chunk.span().begin(), chunk.span().end()));
    }
  }

  Notes notes_{1};
  RememberedModel model_;
  std::vector<std::pair<Added, RememberedModel>> undo_;
  std::vector<std::pair<Notes::ChunkImage, std::vector<Note>>> held_;
  Time now_ = kStart;
  Time expired_ = Time::min();
  std::uint64_t version_ = 0;
};

// D1, D2: whatever happens, and in whatever order.
RC_GTEST_PROP(Remembered, AnswersLikeTheModel, ()) {
  const auto steps =
      *rc::gen::container<std::vector<std::tuple<int, std::uint64_t, std::uint64_t>>>(
          rc::gen::tuple(rc::gen::inRange(0, static_cast<int>(RememberedRun::kKinds)),
                         rc::gen::inRange<std::uint64_t>(0, 100),
                         rc::gen::inRange<std::uint64_t>(0, 30)));
  RememberedRun run;
  for (const auto& [kind, what, how_much] : steps) {
    run.step(kind, what, how_much);
    run.compare();
  }
}

}  // namespace
}  // namespace hapax::core
