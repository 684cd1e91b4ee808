#include "net/send_progress.h"

#include <gtest/gtest.h>

namespace hapax::net {
namespace {

class SendProgressTest : public testing::Test {
 protected:
  // So long after the last time it was asked.
  bool is_stuck_after(std::chrono::seconds span) {
    now_ += span;
    return progress_.is_stuck(queue_, now_, std::chrono::seconds{10});
  }
  void take(std::size_t count) {
    EXPECT_GE(queue_.front().size(), count);
    queue_.sent(count);
  }

  SendQueue queue_;

 private:
  SendProgress progress_;
  std::chrono::steady_clock::time_point now_ = std::chrono::steady_clock::now();
};

TEST_F(SendProgressTest, APeerThatTakesNothingIsStuckInTheEnd) {
  queue_.append("answer");
  EXPECT_FALSE(is_stuck_after(std::chrono::seconds{0}));
  EXPECT_FALSE(is_stuck_after(std::chrono::seconds{9}));
  EXPECT_TRUE(is_stuck_after(std::chrono::seconds{1}));
}

TEST_F(SendProgressTest, APeerThatIsOwedNothingIsNeverStuck) {
  EXPECT_FALSE(is_stuck_after(std::chrono::seconds{0}));
  EXPECT_FALSE(is_stuck_after(std::chrono::seconds{100}));
}

// What waits has waited since then at the most.
TEST_F(SendProgressTest, TimeCountsFromTheFirstQuestionThatFindsBytes) {
  EXPECT_FALSE(is_stuck_after(std::chrono::seconds{0}));
  queue_.append("answer");
  EXPECT_FALSE(is_stuck_after(std::chrono::seconds{100}));
  EXPECT_TRUE(is_stuck_after(std::chrono::seconds{10}));
}

TEST_F(SendProgressTest, EachByteTakenGivesNewTime) {
  queue_.append("answer");
  EXPECT_FALSE(is_stuck_after(std::chrono::seconds{0}));
  EXPECT_FALSE(is_stuck_after(std::chrono::seconds{9}));
  take(1);
  EXPECT_FALSE(is_stuck_after(std::chrono::seconds{9}));
  EXPECT_FALSE(is_stuck_after(std::chrono::seconds{9}));
  EXPECT_TRUE(is_stuck_after(std::chrono::seconds{1}));
}

// Between two questions it took everything, and is owed just as much again.
TEST_F(SendProgressTest, APeerThatIsAlwaysOwedSomethingButTakesItIsNotStuck) {
  for (int i = 0; i < 10; ++i) {
    queue_.append("answer");
    EXPECT_FALSE(is_stuck_after(std::chrono::seconds{9}));
    take(6);
  }
}

}  // namespace
}  // namespace hapax::net
