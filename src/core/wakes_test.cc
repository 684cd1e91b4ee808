#include "core/wakes.h"

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/consumers_harness.h"
#include "core/test_store.h"

namespace hapax::core {
namespace {

using std::chrono::milliseconds;

// Workers that wait for consumer "c", and everything that others do meanwhile.
class Sleepers {
 public:
  explicit Sleepers(std::uint64_t seed) : dice_(seed) {
    const bool blocks = dice_.one_in(2);
    store_.create("c", {.attempts_max = 3,
                        .last_attempt = blocks ? LastAttempt::kBlock : LastAttempt::kDeadLetter,
                        .in_flight_max = static_cast<std::uint32_t>(dice_.between(1, 4))});
    store_.on_fact = [this](const Fact& fact) {
      const Wake wake = wake_of(store_.state, fact);
      const auto* of = std::get_if<StreamWake>(&wake);
      const bool ours =
          of != nullptr && of->stream == "orders" && (of->consumer.empty() || of->consumer == "c");
      if (ours) asleep_until_.reset();
    };
  }

  void step() {
    switch (dice_.below(10)) {
      case 0:
      case 1:
        store_.append(dice_.pick(std::vector<std::string>{"", "g", "h"}));
        break;
      case 2:
        store_.pass(milliseconds{dice_.between(1, 90)});
        break;
      case 3:
      case 4:
        end_one();
        break;
      case 5:
        disturb();
        break;
      default:
        receive();
    }
  }

  [[nodiscard]] std::uint64_t slept() const { return slept_; }

 private:
  // C11: whoever was told that there is nothing is either woken, or told in time when to look.
  void receive() {
    const std::optional<Time> asleep_until = asleep_until_;
    const auto lease = milliseconds{dice_.between(20, 200)};
    const Verdict verdict = store_.run(
        Receive{"orders", "c", static_cast<std::uint32_t>(dice_.between(1, 3)), lease, "w"});
    const auto& received = std::get<Received>(verdict);
    for (const Delivery& one : received.deliveries) {
      held_.push_back({one.record.sequence, one.token});
    }
    if (!received.deliveries.empty() && asleep_until) {
      EXPECT_GE(store_.now, *asleep_until) << "it was slept through";
      ++slept_;
    }
    asleep_until_.reset();
    if (received.deliveries.empty()) asleep_until_ = received.next_due;
  }

  void end_one() {
    if (held_.empty()) return;
    const Receipt receipt = dice_.pick(held_);
    const auto span = milliseconds{dice_.below(100)};
    switch (dice_.below(4)) {
      case 0:
        store_.nack("c", receipt, span);
        break;
      case 1:
        store_.extend("c", receipt, span + milliseconds{1});
        break;
      default:
        store_.ack("c", receipt);
    }
  }

  void disturb() {
    const Sequence some{dice_.between(1, store_.stream().last.value + 1)};
    switch (dice_.below(6)) {
      case 0:
        store_.run(Seek{"orders", "c", some});
        break;
      case 1:
        store_.run(Trim{"orders", Sequence{some.value / 2 + 1}});
        break;
      case 2:
        store_.run(Redrive{"orders.dead", Sequence{dice_.between(1, 5)}});
        break;
      default:
        store_.receive("d", 1, milliseconds{50});
    }
  }

  rig::Dice dice_;
  ConsumersHarness store_;
  std::vector<Receipt> held_;
  std::optional<Time> asleep_until_;
  std::uint64_t slept_ = 0;  // until time alone brought a record
};

TEST(Wakes, NobodySleepsThroughARecord) {
  std::uint64_t slept = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    Sleepers sleepers(seed);
    for (int i = 0; i < 300; ++i) sleepers.step();
    slept += sleepers.slept();
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(slept, 100U);
}

}  // namespace
}  // namespace hapax::core
