// Who waits at one process of a shared store, while others work; and a log that stands still.
#include <atomic>
#include <future>

#include <gtest/gtest.h>

#include "shared/process_test.h"

namespace hapax::shared {
namespace {

class SharedWatchTest : public testing::Test {
 protected:
  SharedWatchTest() { EXPECT_TRUE(a_.commit({CreateStream{"s", {}}}).ok()); }

  // What `act` does at the one process wakes who waits at the other, which nobody asks anything.
  void wakes_b(const Watch& watch, const std::function<void()>& act) {
    std::promise<void> woken;
    const std::uint64_t number = b_.store->watch(watch, [&] { woken.set_value(); });
    act();
    EXPECT_EQ(woken.get_future().wait_for(std::chrono::seconds{60}), std::future_status::ready);
    b_.store->unwatch(number);
  }
  Delivery receive() {
    const Verdict got = a_.one(Receive{"s", "mail", 1, limits::kLeaseDefault, "a"});
    return std::get<Received>(got).deliveries.at(0);
  }

  MemoryPlace place_;
  Process a_{place_};
  Process b_{place_};
};

// E12
TEST_F(SharedWatchTest, FactsOfOneWakeWhoWaitsAtAnother) {
  wakes_b(StreamWatch{"s", ""}, [&] { a_.append("1"); });
  const Delivery held = receive();
  wakes_b(StreamWatch{"s", "mail"}, [&] {
    EXPECT_EQ(word(a_.one(Nack{"s", "mail", {held.record.sequence, held.token}})), "done");
  });
  const Verdict claimed = a_.one(Claim{.scope = "c", .key = "k", .owner = "a"});
  wakes_b(ClaimWatch{"c", "k"}, [&] {
    a_.one(Settle{.scope = "c", .key = "k", .fence = std::get<Claimed>(claimed).fence});
  });
}

// The facts that are followed are not told one by one when everything is read again.
TEST_F(SharedWatchTest, ALogThatLostItsEndWakesEverybody) {
  EXPECT_EQ(word(b_.append("lost")), "fresh");
  wakes_b(StreamWatch{"another", "mail"}, [&] { place_.lose_last(1); });
}

// E13
TEST_F(SharedWatchTest, SubmittingDoesNotWaitForALogThatStandsStill) {
  std::promise<void> stands;
  std::promise<void> let_go;
  a_.log.before_append([&] {
    stands.set_value();
    let_go.get_future().wait();
  });
  const Op op = Append{.stream = "s", .payload = "p"};
  Commit commit;
  commit.ops = {&op, 1};
  std::atomic<int> answered = 0;
  a_.store->submit(commit, [&](const Result<Answer>&) { ++answered; });
  stands.get_future().wait();
  constexpr int kMany = 20'000;  // more than wait at once
  std::atomic<int> refused = 0;
  for (int i = 0; i < kMany; ++i) {
    a_.store->submit_here(commit, [&](const Result<Answer>& told) {
      ++answered;
      if (told) return;
      EXPECT_EQ(told.error().code, Errc::kUnavailable);
      ++refused;
    });
  }
  EXPECT_GT(refused, 0);
  let_go.set_value();
  a_.store.reset();
  EXPECT_EQ(answered, kMany + 1);
}

}  // namespace
}  // namespace hapax::shared
