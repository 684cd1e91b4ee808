#include "host/whole_file.h"

#include <cstdlib>
#include <fstream>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/temporary_folder_test.h"

namespace hapax::host {
namespace {

namespace fs = std::filesystem;

class WholeFile : public ::testing::Test {
 protected:
  static Status append(const fs::path& path, const std::string& more) {
    return edit_file(path, [&](std::string_view before) -> Result<std::string> {
      return std::string(before) + more;
    });
  }

  const TemporaryFolder temporary_;
  const fs::path& folder_ = temporary_.path();
  const fs::path path_ = folder_ / "tokens";
};

TEST_F(WholeFile, IsMadeChangedAndReadBack) {
  const auto missing = read_file(path_);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Errc::kNotFound);
  ASSERT_TRUE(append(path_, "one\n"));
  ASSERT_TRUE(append(path_, "two\n"));
  EXPECT_EQ(*read_file(path_), "one\ntwo\n");
  struct stat about {};
  ASSERT_EQ(::stat(path_.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777U, 0600U);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);  // nothing is left beside it
}

TEST_F(WholeFile, StaysAsItIsWhenTheEditFails) {
  ASSERT_TRUE(append(path_, "one\n"));
  const Status failed = edit_file(path_, [](std::string_view) -> Result<std::string> {
    return Error{Errc::kInvalidArgument, "no"};
  });
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().detail, "no");
  EXPECT_EQ(*read_file(path_), "one\n");
}

TEST_F(WholeFile, OfAnInterruptedEditIsNoObstacle) {
  std::ofstream(folder_ / "tokens.new") << "half";
  ASSERT_TRUE(append(path_, "one\n"));
  EXPECT_EQ(*read_file(path_), "one\n");
}

TEST_F(WholeFile, BehindALinkIsChangedAndTheLinkStays) {
  ASSERT_TRUE(append(path_, "one\n"));
  const fs::path link = folder_ / "link";
  fs::create_symlink(path_, link);
  ASSERT_TRUE(append(link, "two\n"));
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(*read_file(path_), "one\ntwo\n");
}

TEST_F(WholeFile, KeepsItsOwner) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may give files away";
  ASSERT_TRUE(append(path_, "one\n"));
  ASSERT_EQ(::chown(path_.c_str(), 1234, 1235), 0);
  ASSERT_TRUE(append(path_, "two\n"));
  struct stat about {};
  ASSERT_EQ(::stat(path_.c_str(), &about), 0);
  EXPECT_EQ(about.st_uid, 1234U);
  EXPECT_EQ(about.st_gid, 1235U);
}

TEST_F(WholeFile, LosesNoEditOfSeveralAtOnce) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 10; ++n) EXPECT_TRUE(append(path_, "x"));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(read_file(path_)->size(), 40U);
}

TEST_F(WholeFile, OfTheWorkingFolderIsMissedByItsName) {
  const auto missing = read_file("hapax_no_such_file");
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().text().find("hapax_no_such_file"), std::string::npos);
}

TEST_F(WholeFile, WithoutAFolderOrNameIsRefused) {
  EXPECT_EQ(append(folder_ / "missing" / "tokens", "x").error().code, Errc::kNotFound);
  EXPECT_EQ(append(folder_, "x").error().code, Errc::kInvalidArgument);
  EXPECT_EQ(append("", "x").error().code, Errc::kInvalidArgument);
  EXPECT_EQ(read_file("").error().code, Errc::kInvalidArgument);
}

}  // namespace
}  // namespace hapax::host
