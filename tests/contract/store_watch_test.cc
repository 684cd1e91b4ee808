// Who waits is woken by what became true, whichever operation brought it about, and by nothing that
// cannot concern it. What time alone brings, the empty answer says.
#include <atomic>
#include <future>

#include "store_contract.h"

namespace hapax::contract {
namespace {

constexpr StreamWatch kRecords{"s", ""};
constexpr StreamWatch kMail{"s", "mail"};
constexpr ClaimWatch kClaim{"pay", "o-1"};

class Watched : public StoreContract {
 protected:
  void SetUp() override {
    StoreContract::SetUp();
    if (!IsSkipped()) make_stream("s");
  }

  // Whoever watched before is called because of what `act` does.
  void wakes(const Watch& watch, const std::function<void()>& act) {
    std::promise<void> woken;
    const std::uint64_t number = store().watch(watch, [&] { woken.set_value(); });
    act();
    const auto waited = woken.get_future().wait_for(std::chrono::seconds{60});
    EXPECT_EQ(waited, std::future_status::ready) << "nobody was woken";
    store().unwatch(number);
  }
  // … and not before the append that follows.
  void does_not_wake(const Watch& watch, const std::function<void()>& act) {
    std::atomic<bool> appends = false;
    std::promise<bool> woken;
    const std::uint64_t number = store().watch(watch, [&] { woken.set_value(!appends); });
    act();
    appends = true;
    append("s", "the one that wakes");
    auto early = woken.get_future();
    ASSERT_EQ(early.wait_for(std::chrono::seconds{60}), std::future_status::ready);
    EXPECT_FALSE(early.get());
    store().unwatch(number);
  }

  Delivery receive_one(std::string_view consumer = "mail", Duration lease = limits::kLeaseDefault) {
    return receive("s", consumer, 1, lease).at(0);
  }
  void nothing_for(std::string_view consumer) { EXPECT_TRUE(receive("s", consumer).empty()); }
  Fence claim() { return run<Claimed>(Claim{.scope = "pay", .key = "o-1", .owner = "w"}).fence; }
  void settle(Fence fence, Outcome outcome) {
    commit({Settle{.scope = "pay", .key = "o-1", .fence = fence, .outcome = outcome}});
  }
};

TEST_P(Watched, WatchAnAppend) {
  wakes(kRecords, [&] { append("s", "x"); });
  wakes(kMail, [&] { append("s", "x"); });
}

TEST_P(Watched, WatchTheEndOfATransaction) {
  const Epoch epoch = run<Began>(Begin{"t"}).epoch;
  const Op op = Append{.stream = "s", .payload = "staged"};
  Commit staged;
  staged.ops = {&op, 1};
  staged.transaction = TransactionRef{"t", epoch};
  ASSERT_TRUE(store().commit(staged).ok());
  wakes(kMail, [&] { commit({End{"t", epoch}}); });
}

TEST_P(Watched, WatchANack) {
  append("s", "x");
  const Delivery held = receive_one();
  nothing_for("mail");
  wakes(kMail, [&] { run<Done>(Nack{"s", "mail", receipt_of(held)}); });
  EXPECT_EQ(receive_one().attempt, 2U);
}

TEST_P(Watched, WatchTheAckOfAGroupsHead) {
  append("s", "first", {}, "g");
  append("s", "second", {}, "g");
  const Delivery head = receive_one();
  nothing_for("mail");
  wakes(kMail, [&] { run<Done>(Ack{"s", "mail", receipt_of(head)}); });
  EXPECT_EQ(receive_one().record.sequence, Sequence{2});
}

TEST_P(Watched, WatchAFreedPlace) {
  run<Done>(CreateConsumer{"s", "mail", {.in_flight_max = 1}});
  append("s", "first");
  append("s", "second");
  const Delivery only = receive_one();
  nothing_for("mail");
  wakes(kMail, [&] { run<Done>(Ack{"s", "mail", receipt_of(only)}); });
  EXPECT_EQ(receive_one().record.sequence, Sequence{2});
}

TEST_P(Watched, WatchARedrive) {
  run<Done>(CreateConsumer{"s", "mail", {.attempts_max = 1}});
  append("s", "x");
  run<Done>(Nack{"s", "mail", receipt_of(receive_one())});
  nothing_for("mail");
  wakes(kMail, [&] { commit({Redrive{"s.dead", Sequence{1}}}); });
}

TEST_P(Watched, WatchASeek) {
  append("s", "x");
  run<Done>(Ack{"s", "mail", receipt_of(receive_one())});
  nothing_for("mail");
  wakes(kMail, [&] { run<Done>(Seek{"s", "mail", Sequence{1}}); });
  EXPECT_EQ(receive_one().record.sequence, Sequence{1});
}

TEST_P(Watched, WatchAConsumerThatIsMadeAndAStreamThatGoes) {
  append("s", "x");
  wakes(kMail, [&] { run<Done>(CreateConsumer{"s", "mail", {}}); });
  wakes(kRecords, [&] { run<Done>(DeleteStream{"s"}); });
}

TEST_P(Watched, WatchWhatBecomesOfAClaim) {
  wakes(kClaim, [&] { settle(claim(), Outcome::kFailed); });
  wakes(kClaim, [&] { settle(claim(), Outcome::kUnknown); });
  wakes(kClaim, [&] {
    commit({Resolve{.scope = "pay",
                    .key = "o-1",
                    .resolution = Resolution::kRelease,
                    .actor = "me",
                    .reason = "it never left"}});
  });
  wakes(kClaim, [&] { settle(claim(), Outcome::kCompleted); });
  wakes(kClaim,
        [&] { commit({Forget{.scope = "pay", .key = "o-1", .actor = "me", .reason = "a test"}}); });
}

// Otherwise every worker that waits would look whenever one of them works.
TEST_P(Watched, WatchersSleepThroughWhatGivesThemNothing) {
  run<Done>(CreateConsumer{"s", "mail", {}});
  append("s", "x");
  append("s", "y");
  does_not_wake(kMail, [&] {
    const Delivery held = receive_one();
    commit({Extend{"s", "mail", receipt_of(held)}});
    run<Done>(Ack{"s", "mail", receipt_of(held)});
    const Delivery other = receive_one("billing");
    run<Done>(Nack{"s", "billing", receipt_of(other)});
    claim();
  });
  does_not_wake(kRecords, [&] { run<Done>(Nack{"s", "mail", receipt_of(receive_one())}); });
}

TEST_P(Watched, WatchersThatLeftAreNotCalled) {
  std::atomic<int> calls = 0;
  store().unwatch(store().watch(kRecords, [&] { ++calls; }));
  wakes(kRecords, [&] { append("s", "x"); });
  EXPECT_EQ(calls, 0);
}

TEST_P(Watched, WatchersAreToldWhenALeaseOrADelayEnds) {
  append("s", "x");
  const Receive look{"s", "mail", 1, Duration{60'000}, "w"};
  const Delivery held = receive_one("mail", Duration{40'000});
  EXPECT_EQ(run<Received>(look).next_due, held.lease_until);
  run<Done>(Nack{"s", "mail", receipt_of(held), Duration{20'000}});
  const Answer delayed = commit({look});
  const Time ready = as<Received>(delayed.verdicts.front()).next_due;
  EXPECT_LE(ready, delayed.time + Duration{20'000});
  EXPECT_GT(ready, delayed.time);
  EXPECT_EQ(run<Received>(Receive{"s", "billing", 10}).next_due, Time::max());
}

INSTANTIATE_TEST_SUITE_P(, Watched, testing::ValuesIn(all_stores()), name_of);

}  // namespace
}  // namespace hapax::contract
