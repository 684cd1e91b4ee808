#include "serve/survey.h"

#include <future>

#include <gtest/gtest.h>

#include "access/no_store_test.h"

namespace hapax::serve {
namespace {

// Has many streams, and counts the questions. It answers when it is let go.
class ManyStreams final : public access::NoStore {
 public:
  std::uint64_t streams_there = 2'500;
  std::atomic<int> questions = 0;
  std::shared_future<void> answers_from;  // none: at once

  Result<Statistics> statistics() override {
    ++questions;
    if (answers_from.valid()) answers_from.wait();
    return Statistics{};
  }
  Result<StreamPage> scan_streams(const StreamScan& scan) override {
    ++questions;
    StreamPage page;
    std::uint64_t at = scan.cursor;
    for (; at < streams_there && page.streams.size() < scan.max; ++at) {
      page.streams.push_back({.stream = std::to_string(at)});
    }
    page.next = at < streams_there ? at : 0;
    return page;
  }
};

TEST(Survey, AsksOnceForAThousandStreams) {
  ManyStreams store;
  const auto survey = take_survey(store, [] { return true; });
  ASSERT_TRUE(survey);
  ASSERT_EQ(survey->streams.size(), 2'500U);
  EXPECT_EQ(survey->streams.back().stream, "2499");
  EXPECT_EQ(store.questions, 4);
}

TEST(Survey, EndsBetweenTwoAnswers) {
  ManyStreams store;
  int answers = 0;
  ASSERT_TRUE(take_survey(store, [&] { return ++answers < 3; }));
  EXPECT_EQ(store.questions, 2);
}

// The main thread goes on while the store stands still, and sees that it does.
TEST(Survey, AStoreThatStandsStillIsNoticedAndHoldsUpNobody) {
  ManyStreams store;
  std::promise<void> let_go;
  store.answers_from = let_go.get_future().share();
  std::promise<void> looked;
  std::atomic<int> looks = 0;
  const Surveyor::Found found{[&](const Result<Statistics>&) {
                                if (looks++ == 0) looked.set_value();
                              },
                              [](const Survey&) {}};
  Surveyor surveyor(store, found, {.look = std::chrono::milliseconds{1}});
  while (store.questions == 0) std::this_thread::yield();
  EXPECT_EQ(surveyor.answers(), 0U);
  let_go.set_value();
  looked.get_future().wait();
  EXPECT_GT(surveyor.answers(), 0U);
  surveyor.stop();
}

}  // namespace
}  // namespace hapax::serve
