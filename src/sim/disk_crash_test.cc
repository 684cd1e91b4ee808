// Proof that the simulated disk is neither too kind nor too harsh: a careful little store loses
// nothing on it, and every careless one is caught.
#include <algorithm>

#include <gtest/gtest.h>

#include "sim/disk.h"

namespace hapax::sim {
namespace {

using ports::OpenMode;

// More than a sector, and no multiple of one: records are torn, and share sectors.
constexpr std::size_t kRecordBytes = 700;

std::string record(std::size_t number) {
  return std::string(kRecordBytes, static_cast<char>('a' + number % 26));
}

// What a store may do wrong. The simulated disk is worth something only if it finds every one.
enum class Mistake : std::uint8_t {
  kNone,
  kAcknowledgesBeforeSync,
  kNeverSyncsTheFolder,
  kRetriesAFailedSync,
  kTrustsTheCache,   // Goes on in the old file after a start, syncing it once more.
  kRewritesInPlace,  // Stores what it proved over the old bytes.
  kIgnoresShortWrites,
};

// A little store: one record per commit, each known beforehand. It stops at its first error. At
// every start it writes what it can prove into a new file, because the cache may show what the disk
// does not have (S5), and never over the old one, because a torn write would harm it (S2).
class Pen {
 public:
  static Result<Pen> open(ports::Folder& folder, Mistake mistake) {
    HAPAX_TRY(const std::string text, proven(folder));
    const bool goes_on =
        mistake == Mistake::kTrustsTheCache || mistake == Mistake::kRewritesInPlace;
    if (goes_on && !text.empty()) return go_on(folder, mistake, text);
    ignore(folder.remove("book.new"), "an unfinished one may be left, or not");
    HAPAX_TRY(auto file, folder.open("book.new", OpenMode::kCreate));
    HAPAX_CHECK(write_all(*file, 0, text, mistake));
    HAPAX_CHECK(file->sync());
    HAPAX_CHECK(folder.rename("book.new", "book"));
    if (mistake != Mistake::kNeverSyncsTheFolder) HAPAX_CHECK(folder.sync());
    return Pen(std::move(file), text.size() / kRecordBytes, mistake);
  }

  Status commit() {
    HAPAX_CHECK(write_all(*file_, count_ * kRecordBytes, record(count_), mistake_));
    if (mistake_ != Mistake::kAcknowledgesBeforeSync) {
      Status synced = file_->sync();
      if (!synced.ok() && mistake_ == Mistake::kRetriesAFailedSync) synced = file_->sync();
      HAPAX_CHECK(std::move(synced));
    }
    ++count_;
    return Ok{};
  }

  [[nodiscard]] std::size_t count() const { return count_; }

 private:
  Pen(std::unique_ptr<ports::File> file, std::size_t count, Mistake mistake)
      : file_(std::move(file)), count_(count), mistake_(mistake) {}

  static Result<std::string> proven(ports::Folder& folder) {
    auto file = folder.open("book", OpenMode::kRead);
    if (!file.ok() && file.error().code == Errc::kNotFound) return std::string();
    if (!file.ok()) return std::move(file).error();
    HAPAX_TRY(const std::uint64_t size, (*file)->size());
    std::string text(size, '?');
    HAPAX_TRY(const std::size_t got, (*file)->read_at(0, text));
    std::size_t count = 0;
    while ((count + 1) * kRecordBytes <= got &&
           text.compare(count * kRecordBytes, kRecordBytes, record(count)) == 0) {
      ++count;
    }
    text.resize(count * kRecordBytes);
    return text;
  }

  static Status write_all(ports::File& file, std::uint64_t offset, std::string_view bytes,
                          Mistake mistake) {
    while (!bytes.empty()) {
      HAPAX_TRY(const std::size_t written, file.write_at(offset, bytes));
      offset += written;
      bytes.remove_prefix(written);
      if (mistake == Mistake::kIgnoresShortWrites) break;
    }
    return Ok{};
  }

  static Result<Pen> go_on(ports::Folder& folder, Mistake mistake, const std::string& text) {
    HAPAX_TRY(auto file, folder.open("book", OpenMode::kReadWrite));
    if (mistake == Mistake::kRewritesInPlace) HAPAX_CHECK(write_all(*file, 0, text, mistake));
    HAPAX_CHECK(file->truncate(text.size()));
    HAPAX_CHECK(file->sync());
    HAPAX_CHECK(folder.sync());
    return Pen(std::move(file), text.size() / kRecordBytes, mistake);
  }

  std::unique_ptr<ports::File> file_;
  std::size_t count_;
  Mistake mistake_;
};

// One life of the process: up to five commits. Counts in `acknowledged` the records that are
// promised, by a commit or by having been found at the start. Throws Crash where the disk does.
void live(SimDisk& disk, Mistake mistake, std::size_t& acknowledged) {
  SimFolder folder(disk);
  auto pen = Pen::open(folder, mistake);
  if (!pen.ok()) return;
  acknowledged = std::max(acknowledged, pen->count());
  for (int i = 0; i < 5 && pen->commit().ok(); ++i) {
    acknowledged = std::max(acknowledged, pen->count());
  }
}

std::size_t found_at_last(SimDisk& disk) {
  disk.clear_script();
  disk.set_faults({});
  disk.restart();
  SimFolder folder(disk);
  return Pen::open(folder, Mistake::kNone)->count();
}

// Every crash point of a first start and five commits: before, in the middle of and after each
// call, by kill and by power loss. Ends when the run gets through untouched.
TEST(SimCrash, ACrashAtEveryCallLosesNothingAcknowledged) {
  for (const Crash::Kind kind : {Crash::Kind::kKill, Crash::Kind::kPowerLoss}) {
    for (const When when : {When::kBefore, When::kMiddle, When::kAfter}) {
      std::uint64_t points = 0;
      for (bool crashed = true; crashed; ++points) {
        ASSERT_LT(points, 100U) << "the run never ends";
        SimDisk disk{Random(points)};
        disk.crash_at_call(points, when, kind);
        std::size_t acknowledged = 0;
        try {
          live(disk, Mistake::kNone, acknowledged);
          crashed = false;
        } catch (const Crash&) {
        }
        EXPECT_GE(found_at_last(disk), acknowledged);
      }
      EXPECT_GT(points, 15U);
    }
  }
}

TEST(SimCrash, AFailureOfEveryCallIsNoticed) {
  for (std::uint64_t call = 0;; ++call) {
    ASSERT_LT(call, 100U) << "the run never ends";
    SimDisk disk{Random(call)};
    disk.fail_at_call(call, Errc::kIo);
    std::size_t acknowledged = 0;
    live(disk, Mistake::kNone, acknowledged);
    if (disk.calls() <= call) break;
    if (call == 0) continue;  // The removal whose failure is ignored, with its reason.
    EXPECT_LT(acknowledged, 5U) << "call " << call << " failed and nobody noticed";
  }
}

DiskFaults everything() {
  return {.short_write = {1, 20},
          .no_space = {1, 50},
          .write_error = {1, 100},
          .sync_error = {1, 50},
          .folder_sync_error = {1, 50},
          .change_error = {1, 50},
          .cache_dropped = {1, 4},
          .crash_before = {1, 40},
          .crash_middle = {1, 40},
          .crash_after = {1, 40}};
}

struct Outcome {
  std::size_t acknowledged = 0;
  std::size_t found = 0;
  std::uint64_t trace = 0;
  DiskStats stats;
};

Outcome run(std::uint64_t seed, Mistake mistake) {
  SimDisk disk(Random(seed), everything());
  Outcome outcome;
  for (int life = 0; life < 30; ++life) {
    try {
      live(disk, mistake, outcome.acknowledged);
      disk.process_kill();
    } catch (const Crash&) {
    }
    disk.restart();
  }
  disk.power_loss();
  outcome.found = found_at_last(disk);
  outcome.trace = disk.trace_hash();
  outcome.stats = disk.stats();
  return outcome;
}

TEST(SimCrash, NothingAcknowledgedIsLostAndEveryFaultFires) {
  DiskStats sum;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Outcome one = run(seed, Mistake::kNone);
    EXPECT_GE(one.found, one.acknowledged) << "seed " << seed;
    EXPECT_GT(one.found, 10U) << "seed " << seed << " did hardly anything";
    for (std::size_t i = 0; i < kFaultKinds; ++i) sum.fired[i] += one.stats.fired[i];
  }
  for (const InjectedFault fault :
       {InjectedFault::kShortWrite, InjectedFault::kNoSpace, InjectedFault::kWriteError,
        InjectedFault::kSyncError, InjectedFault::kFolderSyncError, InjectedFault::kChangeError,
        InjectedFault::kCacheDropped, InjectedFault::kCrashBefore, InjectedFault::kCrashMiddle,
        InjectedFault::kCrashAfter, InjectedFault::kKill, InjectedFault::kPowerLoss}) {
    EXPECT_GT(sum[fault], 0U) << word_of(fault) << " never fired";
  }
}

TEST(SimCrash, EveryMistakeIsFound) {
  for (const Mistake mistake : {Mistake::kAcknowledgesBeforeSync, Mistake::kNeverSyncsTheFolder,
                                Mistake::kRetriesAFailedSync, Mistake::kTrustsTheCache,
                                Mistake::kRewritesInPlace, Mistake::kIgnoresShortWrites}) {
    int losing = 0;
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
      const Outcome one = run(seed, mistake);
      if (one.found < one.acknowledged) ++losing;
    }
    EXPECT_GT(losing, 0) << "mistake " << static_cast<int>(mistake) << " went unnoticed";
    RecordProperty("mistake_" + std::to_string(static_cast<int>(mistake)), losing);
  }
}

TEST(SimCrash, OneSeedGivesOneTrace) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const std::uint64_t trace = run(seed, Mistake::kNone).trace;
    EXPECT_EQ(trace, run(seed, Mistake::kNone).trace);
    EXPECT_NE(trace, run(seed + 1, Mistake::kNone).trace);
  }
}

// The same on every machine and compiler; if the model changes on purpose, so does this number.
TEST(SimCrash, TheTraceOfASeedIsTheSameEverywhere) {
  EXPECT_EQ(run(1, Mistake::kNone).trace, 13558312155597255515U);
}

}  // namespace
}  // namespace hapax::sim
