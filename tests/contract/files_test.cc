// What a ports::Folder promises when nothing goes wrong, asked of the real disk and of the
// simulated one: a simulation that is kinder or stranger than the disk proves nothing.
#include <gtest/gtest.h>

#include "host/folder.h"
#include "host/temporary_folder_test.h"
#include "sim/disk.h"

namespace hapax {
namespace {

using ports::OpenMode;

class World {
 public:
  World() = default;
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  virtual ~World() = default;
  virtual std::unique_ptr<ports::Folder> open_folder() = 0;
};

class HostWorld final : public World {
 public:
  std::unique_ptr<ports::Folder> open_folder() override {
    return host::DiskFolder::open_folder(folder_.path(), host::FolderMode::kMustExist).value();
  }

 private:
  const host::TemporaryFolder folder_;
};

class SimWorld final : public World {
 public:
  std::unique_ptr<ports::Folder> open_folder() override {
    return std::make_unique<sim::SimFolder>(disk_);
  }

 private:
  sim::SimDisk disk_{sim::Random(1)};
};

enum class Kind : std::uint8_t { kHost, kSim };

class Files : public ::testing::TestWithParam<Kind> {
 protected:
  Files() {
    if (GetParam() == Kind::kHost) world = std::make_unique<HostWorld>();
    if (GetParam() == Kind::kSim) world = std::make_unique<SimWorld>();
    folder = world->open_folder();
  }

  std::unique_ptr<ports::File> create(std::string_view name) {
    return folder->open(name, OpenMode::kCreate).value();
  }
  static std::string read(const ports::File& file, std::uint64_t offset, std::size_t size) {
    std::string bytes(size, '?');
    bytes.resize(file.read_at(offset, bytes).value());
    return bytes;
  }

  std::unique_ptr<World> world;
  std::unique_ptr<ports::Folder> folder;
};

TEST_P(Files, BytesAreReadWhereTheyWereWritten) {
  const auto file = create("a");
  EXPECT_EQ(file->write_at(0, "hello").value(), 5U);
  EXPECT_EQ(file->write_at(3, "LO!").value(), 3U);
  EXPECT_EQ(read(*file, 0, 6), "helLO!");
  EXPECT_EQ(read(*file, 2, 2), "lL");
  EXPECT_EQ(file->size().value(), 6U);
  EXPECT_TRUE(file->sync().ok());
  EXPECT_EQ(file->write_at(6, "").value(), 0U);
}

TEST_P(Files, AReadIsShortOnlyAtTheEnd) {
  const auto file = create("a");
  ASSERT_EQ(file->write_at(0, "hello").value(), 5U);
  EXPECT_EQ(read(*file, 3, 100), "lo");
  EXPECT_EQ(read(*file, 5, 100), "");
  EXPECT_EQ(read(*file, 1000, 100), "");
  EXPECT_EQ(read(*file, 0, 0), "");
}

TEST_P(Files, AWriteBeyondTheEndLeavesZerosBetween) {
  const auto file = create("a");
  ASSERT_EQ(file->write_at(3, "x").value(), 1U);
  EXPECT_EQ(read(*file, 0, 10), std::string("\0\0\0x", 4));
}

TEST_P(Files, ATruncationCutsAndExtends) {
  const auto file = create("a");
  ASSERT_EQ(file->write_at(0, "hello").value(), 5U);
  ASSERT_TRUE(file->truncate(2).ok());
  ASSERT_TRUE(file->truncate(4).ok());
  EXPECT_EQ(read(*file, 0, 10), std::string("he\0\0", 4));
}

TEST_P(Files, AReservationReadsZerosAndKeepsWhatIsThere) {
  const auto file = create("a");
  ASSERT_EQ(file->write_at(0, "hello").value(), 5U);
  ASSERT_TRUE(file->reserve(8).ok());
  ASSERT_TRUE(file->reserve(2).ok());
  const std::string bytes = read(*file, 0, 10);
  EXPECT_TRUE(bytes == "hello" || bytes == std::string("hello\0\0\0", 8));
}

TEST_P(Files, EveryModeChecksWhetherTheFileExists) {
  EXPECT_EQ(folder->open("a", OpenMode::kRead).error().code, Errc::kNotFound);
  EXPECT_EQ(folder->open("a", OpenMode::kReadWrite).error().code, Errc::kNotFound);
  const auto file = create("a");
  EXPECT_EQ(folder->open("a", OpenMode::kCreate).error().code, Errc::kIo);
  EXPECT_TRUE(folder->open("a", OpenMode::kRead).ok());
  EXPECT_TRUE(folder->open("a", OpenMode::kReadWrite).ok());
}

TEST_P(Files, AFileOpenedForReadingIsNotWritten) {
  ASSERT_EQ(create("a")->write_at(0, "hello").value(), 5U);
  const auto file = folder->open("a", OpenMode::kRead).value();
  EXPECT_EQ(file->write_at(0, "x").error().code, Errc::kIo);
  EXPECT_EQ(file->truncate(0).error().code, Errc::kIo);
  EXPECT_EQ(file->reserve(10).error().code, Errc::kIo);
  EXPECT_EQ(read(*file, 0, 10), "hello");
}

TEST_P(Files, ARenameReplaces) {
  ASSERT_EQ(create("a")->write_at(0, "first").value(), 5U);
  ASSERT_EQ(create("b")->write_at(0, "second").value(), 6U);
  ASSERT_TRUE(folder->rename("a", "b").ok());
  EXPECT_EQ(read(*folder->open("b", OpenMode::kRead).value(), 0, 10), "first");
  EXPECT_EQ(folder->list().value(), (std::vector<std::string>{"b"}));
  EXPECT_EQ(folder->rename("a", "c").error().code, Errc::kNotFound);
  EXPECT_TRUE(folder->rename("b", "b").ok());
  EXPECT_TRUE(folder->sync().ok());
}

TEST_P(Files, ARemovedFileIsGoneButForItsOpenHandles) {
  const auto file = create("a");
  ASSERT_EQ(file->write_at(0, "hello").value(), 5U);
  ASSERT_TRUE(folder->remove("a").ok());
  ASSERT_TRUE(folder->sync().ok());
  EXPECT_EQ(read(*file, 0, 10), "hello");
  EXPECT_EQ(folder->list().value(), std::vector<std::string>{});
  EXPECT_EQ(folder->remove("a").error().code, Errc::kNotFound);
}

TEST_P(Files, TheListIsInOrderOfBytes) {
  for (const char* name : {"b", "10", "a", "Z", "9"}) create(name);
  EXPECT_EQ(folder->list().value(), (std::vector<std::string>{"10", "9", "Z", "a", "b"}));
}

TEST_P(Files, ALockIsHeldAsLongAsItLives) {
  auto lock = folder->lock("lock").value();
  EXPECT_EQ(folder->lock("lock").error().code, Errc::kLocked);
  EXPECT_EQ(world->open_folder()->lock("lock").error().code, Errc::kLocked);
  EXPECT_TRUE(folder->lock("other").ok());
  lock.reset();
  EXPECT_TRUE(folder->lock("lock").ok());
  EXPECT_EQ(folder->list().value(), (std::vector<std::string>{"lock", "other"}));
}

INSTANTIATE_TEST_SUITE_P(, Files, ::testing::Values(Kind::kHost, Kind::kSim),
                         [](const auto& instance) {
                           return instance.param == Kind::kHost ? "host" : "sim";
                         });

}  // namespace
}  // namespace hapax
