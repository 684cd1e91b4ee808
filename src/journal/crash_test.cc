// Every crash point, every failing call, every full disk, for one small history. The history is
// long enough to rotate segments, write marks of both kinds, end clean and unclean, and recover.
#include <gtest/gtest.h>

#include "base/format.h"
#include "journal/scribe.h"
#include "sim/disk.h"
#include "sim/entropy.h"

namespace hapax::journal {
namespace {

using sim::Crash;
using sim::Random;
using sim::SimDisk;
using sim::SimEntropy;
using sim::SimFolder;
using sim::When;

// One process: recovers, writes a few batches, ends clean or not. Throws Crash where the disk does.
Status live(SimDisk& disk, Witness& witness, std::uint64_t seed, bool ends_clean) {
  SimFolder folder(disk);
  SimEntropy entropy(Random(seed).split(disk.calls()));
  Scribe scribe(folder, entropy, witness);
  HAPAX_CHECK(scribe.open());
  HAPAX_CHECK(scribe.write(1, 10));
  HAPAX_CHECK(scribe.write(3, 40));
  HAPAX_CHECK(scribe.mark(MarkKind::kRunning));
  HAPAX_CHECK(scribe.write(2, 150));  // Over the end of a segment of 512 bytes.
  HAPAX_CHECK(scribe.write(1, 700));  // Over several sectors.
  if (ends_clean) HAPAX_CHECK(scribe.mark(MarkKind::kClean));
  return Ok{};
}

// Three processes one after the other.
Status live_thrice(SimDisk& disk, Witness& witness, std::uint64_t seed) {
  for (const bool ends_clean : {true, false, false}) {
    HAPAX_CHECK(live(disk, witness, seed, ends_clean));
    disk.restart();
  }
  return Ok{};
}

std::uint64_t calls_of_history() {
  SimDisk disk(Random(1));
  Witness witness;
  EXPECT_TRUE(live_thrice(disk, witness, 1).ok());
  return disk.calls();
}

// L1: what was acknowledged is found, and the store goes on.
void expect_survival(SimDisk& disk, Witness& witness, std::uint64_t seed) {
  disk.restart();
  disk.clear_script();
  const std::size_t promised = witness.acknowledged.size();
  const Status lived = live(disk, witness, seed + 1, false);
  ASSERT_TRUE(lived.ok()) << lived.error().text();
  ASSERT_GE(witness.acknowledged.size(), promised + 7);
  disk.restart();
  const Status again = live(disk, witness, seed + 2, true);
  ASSERT_TRUE(again.ok()) << again.error().text();
}

struct Point {
  std::uint64_t call;
  When when;
  Crash::Kind kind;
};

// Runs the history up to the crash. False when it ended before.
bool crashes(SimDisk& disk, Witness& witness, std::uint64_t seed, const Point& point) {
  disk.crash_at_call(point.call, point.when, point.kind);
  try {
    const Status lived = live_thrice(disk, witness, seed);
    EXPECT_TRUE(lived.ok()) << lived.error().text();
    return false;
  } catch (const Crash&) {
    return true;
  }
}

class EveryCrash : public testing::TestWithParam<std::tuple<When, Crash::Kind>> {};

// L1, L3, L4, L9, L11: whatever instant the process or the machine dies at.
TEST_P(EveryCrash, LosesNothingAcknowledged) {
  const auto [when, kind] = GetParam();
  const std::uint64_t seeds = kind == Crash::Kind::kKill ? 2 : 20;
  for (std::uint64_t call = 0; call < calls_of_history(); ++call) {
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
      SCOPED_TRACE(base::format("call {} seed {}", call, seed));
      SimDisk disk{Random(seed)};
      Witness witness;
      ASSERT_TRUE(crashes(disk, witness, seed, {call, when, kind}));
      expect_survival(disk, witness, seed);
      if (HasFatalFailure() || HasNonfatalFailure()) return;
    }
  }
}

// The same with a second crash at every call of the recovery from the first one.
TEST_P(EveryCrash, ARecoveryCanDieAtAnyPoint) {
  const auto [when, kind] = GetParam();
  const std::uint64_t calls = calls_of_history();
  for (std::uint64_t call = 3; call < calls; call += 7) {
    for (std::uint64_t second = 0; second < 40; ++second) {
      SCOPED_TRACE(base::format("call {} then {}", call, second));
      SimDisk disk{Random(call * 100 + second)};
      Witness witness;
      ASSERT_TRUE(crashes(disk, witness, call, {call, When::kAfter, Crash::Kind::kPowerLoss}));
      disk.restart();
      disk.crash_at_call(disk.calls() + second, when, kind);
      try {
        const Status lived = live(disk, witness, call, true);
        ASSERT_TRUE(lived.ok()) << lived.error().text();
      } catch (const Crash&) {
      }
      expect_survival(disk, witness, call);
      if (HasFatalFailure() || HasNonfatalFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, EveryCrash,
    testing::Combine(testing::Values(When::kBefore, When::kMiddle, When::kAfter),
                     testing::Values(Crash::Kind::kKill, Crash::Kind::kPowerLoss)));

// L2: an error ends the process; what it could not promise it did not. Then the cache is lost, too.
TEST(EveryFailure, OfACallIsNoticedAndSurvived) {
  for (std::uint64_t call = 0; call < calls_of_history(); ++call) {
    for (const bool power_fails : {false, true}) {
      for (std::uint64_t seed = 0; seed < 8; ++seed) {
        SCOPED_TRACE(base::format("call {} seed {}", call, seed));
        SimDisk disk{Random(seed)};
        Witness witness;
        disk.fail_at_call(call, Errc::kIo, sim::Lasting::kForever);
        const Status lived = live_thrice(disk, witness, seed);
        ASSERT_FALSE(lived.ok());
        EXPECT_EQ(lived.error().code, Errc::kIo) << lived.error().text();
        if (power_fails) disk.power_loss();
        expect_survival(disk, witness, seed);
        if (HasFatalFailure() || HasNonfatalFailure()) return;
      }
    }
  }
}

// A single failing call may be survived by the process only if it is a speed-up that failed. After
// it ended, the next one serves from the cache what the disk may not have (S5), and only then the
// power fails.
TEST(EveryFailure, IsSurvivedThoughTheCacheShowsMoreThanTheDiskHas) {
  for (std::uint64_t call = 0; call < calls_of_history(); ++call) {
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      SCOPED_TRACE(base::format("call {} seed {}", call, seed));
      SimDisk disk{Random(seed)};
      Witness witness;
      disk.fail_at_call(call, Errc::kIo);
      const Status lived = live_thrice(disk, witness, seed);
      disk.restart();
      const Status next = live(disk, witness, seed, false);
      ASSERT_TRUE(next.ok()) << next.error().text();
      disk.power_loss();
      expect_survival(disk, witness, seed);
      if (HasFatalFailure() || HasNonfatalFailure()) return;
    }
  }
}

// L13: a disk that cannot be read stops the start, changes nothing, and is no damage.
TEST(EveryFailure, OfAReadStopsTheStart) {
  SimDisk disk{Random(5)};
  Witness witness;
  ASSERT_TRUE(
      crashes(disk, witness, 5, {calls_of_history() - 2, When::kMiddle, Crash::Kind::kPowerLoss}));
  disk.restart();
  const sim::DiskImage image = disk.copy();
  for (std::uint64_t look = 0;; ++look) {
    Witness expected = witness;
    disk.restore(image);
    disk.clear_script();
    const std::uint64_t looks = disk.looks();
    disk.fail_at_look(looks + look, Errc::kIo, sim::Lasting::kForever);
    SimFolder folder(disk);
    SimEntropy entropy{Random(look)};
    Scribe scribe(folder, entropy, expected);
    const Status opened = scribe.open();
    if (disk.looks() <= looks + look) {
      EXPECT_TRUE(opened.ok());
      break;
    }
    ASSERT_FALSE(opened.ok()) << "look " << look;
    EXPECT_EQ(opened.error().code, Errc::kIo) << opened.error().text();
    disk.power_loss();
    expect_survival(disk, expected, look);
  }
}

// L5: at every call the disk is suddenly full. Nothing is promised that is not kept, nothing that
// was refused appears, and when there is space again the same process goes on.
TEST(FullDisk, AtEveryCallRefusesAndGoesOn) {
  for (std::uint64_t call = 0; call < calls_of_history() + 10; ++call) {
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      SCOPED_TRACE(base::format("call {} seed {}", call, seed));
      SimDisk disk{Random(seed)};
      Witness witness;
      {
        SimFolder folder(disk);
        SimEntropy entropy{Random(seed)};
        Scribe scribe(folder, entropy, witness);
        disk.fail_at_call(call, Errc::kNoSpace);
        Status opened = scribe.open();
        if (!opened.ok() && opened.error().code == Errc::kNoSpace) opened = scribe.open();
        bool poisoned = !opened.ok();
        for (std::size_t batch = 0; batch < 12 && !poisoned; ++batch) {
          const Status written = scribe.write(2, 30 * batch);
          if (!written.ok() && written.error().code != Errc::kNoSpace) poisoned = true;
        }
      }
      if (seed % 2 == 0) disk.power_loss();
      expect_survival(disk, witness, seed);
      if (HasFatalFailure() || HasNonfatalFailure()) return;
    }
  }
}

// L5: the limit is met in the middle of things, and then lifted.
TEST(FullDisk, ServesAgainWhenThereIsSpace) {
  for (std::uint64_t limit = 10'000; limit < 16'000; limit += 37) {
    SCOPED_TRACE("limit " + std::to_string(limit));
    SimDisk disk(Random(limit), {.space_limit = limit});
    Witness witness;
    {
      SimFolder folder(disk);
      SimEntropy entropy{Random(limit)};
      Scribe scribe(folder, entropy, witness);
      const Status opened = scribe.open();
      if (!opened.ok()) {
        ASSERT_EQ(opened.error().code, Errc::kNoSpace) << opened.error().text();
        disk.set_faults({});
        const Status again = scribe.open();
        ASSERT_TRUE(again.ok()) << again.error().text();
      }
      Status written = Ok{};
      for (int i = 0; i < 60 && written.ok(); ++i) written = scribe.write(1, 60);
      if (!written.ok()) {
        ASSERT_EQ(written.error().code, Errc::kNoSpace) << written.error().text();
        EXPECT_FALSE(scribe.write(1, 60).ok());
        disk.set_faults({});
      }
      written = scribe.write(1, 60);
      ASSERT_TRUE(written.ok()) << written.error().text();
      ASSERT_TRUE(limit % 2 == 0 || scribe.mark(MarkKind::kClean).ok());
    }
    disk.power_loss();
    expect_survival(disk, witness, limit);
    if (HasFatalFailure() || HasNonfatalFailure()) return;
  }
}

}  // namespace
}  // namespace hapax::journal
