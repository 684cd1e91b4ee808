// Data folders of every format that was ever released, each read as a whole and part by part.
//
// To add the folder of a new format version N, when the format will not change any more:
//
//   HAPAX_GOLDEN_MAKE=tests/golden/vN build/release/bin/hapax_golden_test
//
// writes it instead of testing. Then run the test without the variable and commit the folder. A
// folder that was released is never made again. If a test fails for a folder of the present
// version, its format has changed: raise the version (journal/block.h, core/fields.h), read the
// older one as before, and make a new folder.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <hapax/hapax.h>

#include "content.h"
#include "core/facts.h"
#include "core/state_codec.h"
#include "engine/frames.h"
#include "engine/replay.h"
#include "engine/snapshot_sections.h"
#include "host/folder.h"
#include "host/temporary_folder_test.h"
#include "journal/examine.h"
#include "journal/names.h"
#include "journal/snapshot_file.h"

namespace hapax {
namespace {

namespace fs = std::filesystem;
using journal::Lsn;

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

EmbeddedOptions small_files(std::vector<std::string>& log) {
  EmbeddedOptions options;
  options.log = [&log](const std::string& line) { log.push_back(line); };
  options.snapshot_every_bytes = 8192;  // So that the folder has snapshots, too.
  options.segment_bytes = 8192;
  return options;
}

// A golden folder, or a copy of one, and what is read of it without a store.
class DataFolder {
 public:
  explicit DataFolder(fs::path path)
      : path_(std::move(path)),
        folder_(host::DiskFolder::open_folder(path_, host::FolderMode::kMustExist).value()),
        identity_(journal::read_identity(*folder_).value()) {}

  [[nodiscard]] const fs::path& path() const { return path_; }
  [[nodiscard]] const journal::Identity& identity() const { return identity_; }
  [[nodiscard]] ports::Folder& folder() const { return *folder_; }
  [[nodiscard]] bool is_of_the_present_format() const {
    return identity_.version == journal::kFormatVersion;
  }
  [[nodiscard]] std::vector<Lsn> snapshots() const {  // newest first
    return journal::list_snapshots(*folder_).value().snapshots;
  }

  // The batches from the one behind `after` on.
  journal::JournalFindings read(Lsn after, const journal::BatchVisitor& visit) const {
    auto findings = journal::examine(*folder_, identity_, after.next(), visit);
    EXPECT_TRUE(findings.ok()) << findings.error().text();
    return findings ? *std::move(findings) : journal::JournalFindings{};
  }
  // What the facts in (after, last] do to `state`; the log time they end at.
  void follow(core::State& state, Lsn after, Lsn last) const {
    engine::Replay replay(state);
    read(after, [&](const journal::BatchView& batch) -> Status {
      if (batch.header.first <= after || batch.header.last() > last) return Ok{};
      return replay(batch);
    });
  }

 private:
  fs::path path_;
  std::unique_ptr<ports::Folder> folder_;
  journal::Identity identity_;
};

// A copy with none of the snapshots but this one (0: none), for reading or for a store.
class Copy {
 public:
  explicit Copy(const DataFolder& original, Lsn snapshot) {
    fs::copy(original.path(), scratch_.path(), fs::copy_options::recursive);
    for (const Lsn lsn : original.snapshots()) {
      if (lsn != snapshot) fs::remove(scratch_.path() / journal::snapshot_name(lsn.value));
    }
  }
  [[nodiscard]] const fs::path& path() const { return scratch_.path(); }

 private:
  const host::TemporaryFolder scratch_;
};

struct Restored {
  engine::LoadedSnapshot from;
  std::unique_ptr<core::State> state;
};

// From one snapshot alone.
Restored restore(const DataFolder& golden, Lsn snapshot) {
  const Copy copy(golden, snapshot);
  const DataFolder alone(copy.path());
  Restored restored;
  std::vector<std::string> lines;
  auto loaded = engine::load_snapshot(alone.folder(), alone.identity(), 4, restored.state, lines);
  EXPECT_TRUE(loaded.ok()) << loaded.error().text();
  for (const std::string& line : lines) ADD_FAILURE() << line;
  if (loaded) restored.from = *std::move(loaded);
  EXPECT_EQ(restored.from.lsn, snapshot);
  return restored;
}

class Golden : public testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("HAPAX_GOLDEN_MAKE") != nullptr) GTEST_SKIP() << "a folder is being made";
    for (const auto& entry : fs::directory_iterator(HAPAX_GOLDEN_FOLDER)) {
      if (entry.is_directory()) paths_.push_back(entry.path());
    }
    std::sort(paths_.begin(), paths_.end());
    ASSERT_FALSE(paths_.empty()) << "no golden folder was found";
  }

  template <class Check>
  void for_each_folder(Check check) {
    for (const fs::path& path : paths_) {
      SCOPED_TRACE(path.filename().string());
      check(DataFolder(path));
    }
  }

  std::vector<fs::path> paths_;
};

void expect_opens(const DataFolder& golden, Lsn snapshot) {
  const Copy copy(golden, snapshot);
  std::vector<std::string> log;
  auto store = open_embedded(copy.path(), small_files(log));
  ASSERT_TRUE(store.ok()) << store.error().text();
  for (const std::string& line : log) {
    EXPECT_EQ(line.find("not usable"), std::string::npos) << line;
  }
  expect_content(**store, golden.identity().version);
}

TEST_F(Golden, EveryFolderOpensFromEachSnapshotAndFromTheJournalAlone) {
  for_each_folder([](const DataFolder& golden) {
    std::vector<Lsn> from = golden.snapshots();
    EXPECT_GE(from.size(), 2U);
    from.emplace_back(0);
    for (const Lsn snapshot : from) {
      SCOPED_TRACE("from snapshot " + std::to_string(snapshot.value));
      expect_opens(golden, snapshot);
    }
  });
}

// Each snapshot alone is what the facts before it add up to, and with those behind it, what all
// facts add up to: neither part stands in for the other.
TEST_F(Golden, SnapshotsAndJournalTellTheSame) {
  for_each_folder([](const DataFolder& golden) {
    Lsn last;
    Time end{};
    golden.read(Lsn{0}, [&](const journal::BatchView& batch) -> Status {
      last = batch.header.last();
      end = batch.header.log_time;
      return Ok{};
    });
    core::State of_all(4);
    golden.follow(of_all, Lsn{0}, last);
    for (const Lsn snapshot : golden.snapshots()) {
      SCOPED_TRACE("snapshot " + std::to_string(snapshot.value));
      Restored restored = restore(golden, snapshot);
      if (HasFailure()) return;
      const Time then = restored.from.log_time;
      core::State before(4);
      golden.follow(before, Lsn{0}, snapshot);
      EXPECT_TRUE(core::canonical(*restored.state, then) == core::canonical(before, then));
      golden.follow(*restored.state, snapshot, last);
      EXPECT_TRUE(core::canonical(*restored.state, end) == core::canonical(of_all, end));
    }
  });
}

// A snapshot that is read and written again is the same file: a field more, or in another place,
// and it is not.
TEST_F(Golden, ThePresentFormatIsWrittenAsInItsFolder) {
  for_each_folder([](const DataFolder& golden) {
    if (!golden.is_of_the_present_format()) return;
    const journal::SnapshotFiles files = journal::list_snapshots(golden.folder()).value();
    for (const Lsn snapshot : files.snapshots) {
      Restored restored = restore(golden, snapshot);
      if (HasFailure()) return;
      engine::SnapshotImage image;
      image.log_time = restored.from.log_time;
      image.state = core::image_of(*restored.state);
      image.ids = restored.state->ids.snapshot();
      image.settled = restored.state->settled.snapshot();
      const host::TemporaryFolder scratch;
      const auto folder =
          host::DiskFolder::open_folder(scratch.path(), host::FolderMode::kMustExist).value();
      journal::SnapshotHeader header;
      header.store_id = golden.identity().store_id;
      header.history = golden.identity().history;
      header.number = snapshot.value;
      header.log_time = image.log_time;
      auto writer = journal::SnapshotWriter::create(*folder, header).value();
      std::vector<std::uint64_t> parts;
      ASSERT_TRUE(engine::write_sections(writer, image, parts).ok());
      ASSERT_TRUE(writer.finish().ok());
      const std::string name = journal::snapshot_name(snapshot.value);
      EXPECT_TRUE(bytes_of(scratch.path() / name) == bytes_of(golden.path() / name))
          << name << " would be written otherwise: the format changed without a new version";
    }
  });
}

// What only a repair or the emptying of segments writes, and what takes days of log time.
const std::set<std::size_t> kNotInAFolder = {
    core::Fact(core::IdRenewed{}).index(),   core::Fact(core::RunMoved{}).index(),
    core::Fact(core::ResultMoved{}).index(), core::Fact(core::JournalGap{}).index(),
    core::Fact(core::RecordsLost{}).index(), core::Fact(core::ResultLost{}).index(),
};

TEST_F(Golden, EveryFactIsReadAndThePresentOnesAreWrittenSo) {
  for_each_folder([](const DataFolder& golden) {
    std::set<std::size_t> kinds = kNotInAFolder;
    const auto check = [&](Lsn lsn, base::Where, std::string_view frame) -> Status {
      HAPAX_TRY(const std::string_view bytes, engine::checked_fact(frame));
      HAPAX_TRY(const core::Fact fact, core::decode_fact(bytes));
      kinds.insert(fact.index());
      std::string again;
      core::encode(fact, again);
      EXPECT_TRUE(!golden.is_of_the_present_format() || again == bytes)
          << "fact " << lsn.value << " of kind " << fact.index() + 1 << " is written otherwise";
      return Ok{};
    };
    const auto findings = golden.read(Lsn{0}, [&](const journal::BatchView& batch) {
      return journal::for_each_fact(batch, check);
    });
    EXPECT_EQ(findings.first_segment, 1U) << "the journal does not begin with the first fact";
    if (!golden.is_of_the_present_format()) return;
    for (std::size_t kind = 0; kind < std::variant_size_v<core::Fact>; ++kind) {
      EXPECT_TRUE(kinds.contains(kind)) << "kind " << kind + 1 << ": fill() makes none";
    }
  });
}

// The folder that HAPAX_GOLDEN_MAKE names.
TEST(GoldenMake, WritesAFolder) {
  const char* make = std::getenv("HAPAX_GOLDEN_MAKE");
  if (make == nullptr) GTEST_SKIP() << "only when a folder is to be made";
  std::vector<std::string> log;
  const auto snapshots = [make] {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(make)) {
      if (entry.path().extension() == ".snap") names.insert(entry.path().filename());
    }
    return names;
  };
  {
    auto store = open_embedded(make, small_files(log));
    ASSERT_TRUE(store.ok()) << store.error().text();
    fill(**store);
    // Two snapshots more, so that the newest one was begun when everything was there.
    std::set<std::string> seen = snapshots();
    const std::size_t enough = seen.size() + 2;
    while (seen.size() < enough) {
      add_ballast(**store);
      seen.merge(snapshots());
    }
  }
  for (const std::string_view made_again : {"RESERVE", "LOCK"})
    fs::remove(fs::path(make) / made_again);
}

}  // namespace
}  // namespace hapax
