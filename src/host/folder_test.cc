#include "host/folder.h"

#include <csignal>
#include <cstdlib>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/temporary_folder_test.h"

namespace hapax::host {
namespace {

namespace fs = std::filesystem;
using ports::OpenMode;

class HostFolder : public ::testing::Test {
 protected:
  std::unique_ptr<ports::Folder> open_folder() {
    return DiskFolder::open_folder(path, FolderMode::kMustExist).value();
  }

  const TemporaryFolder folder_;
  const fs::path& path = folder_.path();
};

std::string read_all(const ports::File& file, std::uint64_t offset, std::size_t size) {
  std::string bytes(size, '?');
  bytes.resize(file.read_at(offset, bytes).value());
  return bytes;
}

TEST_F(HostFolder, AMissingFolderIsNotFoundUnlessItMayBeCreated) {
  const fs::path inner = path / "data";
  const auto missing = DiskFolder::open_folder(inner, FolderMode::kMustExist);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, Errc::kNotFound);
  EXPECT_NE(missing.error().detail.find(inner.string()), std::string::npos);

  EXPECT_TRUE(DiskFolder::open_folder(inner, FolderMode::kCreateIfMissing).ok());
  EXPECT_TRUE(DiskFolder::open_folder(inner, FolderMode::kCreateIfMissing).ok());
  EXPECT_TRUE(DiskFolder::open_folder(inner / "", FolderMode::kMustExist).ok());
}

TEST_F(HostFolder, AMissingParentIsNotCreated) {
  const fs::path deep = path / "not_mounted" / "data";
  const auto folder = DiskFolder::open_folder(deep, FolderMode::kCreateIfMissing);
  ASSERT_FALSE(folder.ok());
  EXPECT_EQ(folder.error().code, Errc::kNotFound);
  EXPECT_FALSE(fs::exists(path / "not_mounted"));
}

TEST_F(HostFolder, AFileIsNoFolder) {
  std::ofstream(path / "plain").put('x');
  const auto folder = DiskFolder::open_folder(path / "plain", FolderMode::kCreateIfMissing);
  ASSERT_FALSE(folder.ok());
  EXPECT_EQ(folder.error().code, Errc::kInvalidArgument);
}

TEST_F(HostFolder, NobodyElseMayReadWhatIsStored) {
  const fs::path inner = path / "data";
  const auto folder = DiskFolder::open_folder(inner, FolderMode::kCreateIfMissing).value();
  const auto file = folder->open("a", OpenMode::kCreate).value();
  const auto others = fs::perms::group_all | fs::perms::others_all;
  EXPECT_EQ(fs::status(inner).permissions() & others, fs::perms::none);
  EXPECT_EQ(fs::status(inner / "a").permissions() & others, fs::perms::none);
}

TEST_F(HostFolder, OnlyRegularFilesAreListedInOrderOfTheirBytes) {
  const auto folder = open_folder();
  for (const char* name : {"b", "000010.log", "a", "Z", "000009.log"}) {
    ASSERT_TRUE(folder->open(name, OpenMode::kCreate).ok());
  }
  fs::create_directory(path / "quarantine");
  fs::create_symlink("a", path / "link");
  const std::vector<std::string> expected{"000009.log", "000010.log", "Z", "a", "b"};
  EXPECT_EQ(folder->list().value(), expected);
  EXPECT_EQ(folder->list().value(), expected);  // No position is left behind.
}

TEST_F(HostFolder, ASecondLockIsRefusedWithTheHoldersNumber) {
  const auto folder = open_folder();
  auto first = folder->lock("lock");
  ASSERT_TRUE(first.ok());
  const auto second = open_folder()->lock("lock");
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, Errc::kLocked);
  EXPECT_NE(second.error().detail.find("this very process"), std::string::npos);
  EXPECT_NE(second.error().detail.find(std::to_string(::getpid())), std::string::npos);

  { const auto released = std::move(first).value(); }
  EXPECT_TRUE(open_folder()->lock("lock").ok());
  EXPECT_TRUE(fs::exists(path / "lock"));  // Never removed.
}

TEST_F(HostFolder, ALockOfAnotherProcessNamesItAndEndsWithIt) {
  int ready[2];
  int finish[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(finish), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto lock = open_folder()->lock("lock");
    char byte = lock.ok() ? 'y' : 'n';
    if (::write(ready[1], &byte, 1) != 1) ::_exit(1);
    if (::read(finish[0], &byte, 1) != 1) ::_exit(1);
    ::raise(SIGKILL);  // Nothing is released by hand: dying is enough.
  }
  char locked = '?';
  ASSERT_EQ(::read(ready[0], &locked, 1), 1);
  ASSERT_EQ(locked, 'y');
  const auto refused = open_folder()->lock("lock");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Errc::kLocked);
  EXPECT_NE(refused.error().detail.find("process " + std::to_string(child)), std::string::npos)
      << refused.error().detail;

  ASSERT_EQ(::write(finish[1], "x", 1), 1);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(open_folder()->lock("lock").ok());
}

TEST_F(HostFolder, AHolderThatLeftNoNumberIsStillAHolder) {
  const auto held = open_folder()->lock("lock").value();
  fs::resize_file(path / "lock", 0);
  const auto refused = open_folder()->lock("lock");
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().detail.find("left no process id"), std::string::npos);
}

TEST_F(HostFolder, ReserveExtendsWithZerosAndNeverShrinks) {
  const auto folder = open_folder();
  const auto file = folder->open("a", OpenMode::kCreate).value();
  ASSERT_EQ(file->write_at(0, "abc").value(), 3U);
  ASSERT_TRUE(file->reserve(0).ok());
  ASSERT_TRUE(file->reserve(8192).ok());
  ASSERT_TRUE(file->reserve(10).ok());
  if (file->size().value() == 3) GTEST_SKIP() << "this file system reserves nothing";
  EXPECT_EQ(file->size().value(), 8192U);
  EXPECT_EQ(read_all(*file, 0, 5), std::string("abc\0\0", 5));
}

TEST_F(HostFolder, FailuresNameTheCallThePathAndTheReason) {
  const auto folder = open_folder();
  const auto missing = folder->open("000042.log", OpenMode::kRead);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, Errc::kNotFound);
  EXPECT_EQ(missing.error().detail,
            "open " + (path / "000042.log").string() + ": No such file or directory (errno 2).");
  EXPECT_EQ(folder->describe("000042.log"), (path / "000042.log").string());
}

// The device /dev/full answers every write with ENOSPC, so a full disk needs no full disk.
TEST(HostFile, AFullDiskIsNoSpace) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  const auto devices = DiskFolder::open_folder("/dev", FolderMode::kMustExist).value();
  const auto full = devices->open("full", OpenMode::kReadWrite).value();
  const auto written = full->write_at(0, "abc");
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().code, Errc::kNoSpace);
  EXPECT_NE(written.error().detail.find("write 3 bytes at offset 0 to /dev/full"),
            std::string::npos);
}

// A device that cannot sync stands in for a disk that fails to.
TEST(HostFile, AFailedSyncTellsToStop) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  const auto devices = DiskFolder::open_folder("/dev", FolderMode::kMustExist).value();
  const auto full = devices->open("full", OpenMode::kReadWrite).value();
  const Status synced = full->sync();
  ASSERT_FALSE(synced.ok());
  EXPECT_EQ(synced.error().code, Errc::kIo);
  EXPECT_NE(synced.error().detail.find("must stop and recover"), std::string::npos);
}

class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    old_action_ = std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &old_limit_);
    const rlimit limit{bytes, old_limit_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &old_limit_);
    std::signal(SIGXFSZ, old_action_);
  }

 private:
  void (*old_action_)(int) = nullptr;
  rlimit old_limit_{};
};

TEST_F(HostFolder, WithoutAFreeDescriptorOpeningIsUnavailableAndNotAnIllDisk) {
  const auto folder = open_folder();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto opened = folder->open("a", OpenMode::kCreate);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, Errc::kUnavailable);
  EXPECT_NE(opened.error().detail.find("ulimit -n"), std::string::npos);
  EXPECT_TRUE(folder->open("a", OpenMode::kCreate).ok());
}

TEST_F(HostFolder, AFileSizeLimitGivesAShortWriteAndThenNoSpace) {
  const auto folder = open_folder();
  const auto file = folder->open("a", OpenMode::kCreate).value();
  const FileSizeLimit limit(1000);
  const std::string bytes(600, 'x');
  EXPECT_EQ(file->write_at(0, bytes).value(), 600U);
  EXPECT_EQ(file->write_at(600, bytes).value(), 400U);
  const auto refused = file->write_at(1000, bytes);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Errc::kNoSpace);
  const Status reserved = file->reserve(5000);
  ASSERT_FALSE(reserved.ok());
  EXPECT_EQ(reserved.error().code, Errc::kNoSpace);
  EXPECT_EQ(file->size().value(), 1000U);
}

}  // namespace
}  // namespace hapax::host
