// An outbox that is divided into lanes, as a source of single records. A lane gives one batch at a
// time, and the next one when every record of the batch is settled.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "delivery/source.h"
#include "ports/clock.h"
#include "relay/source.h"

namespace hapax::delivery {

// Whoever sends from an outbox forgets what is old in it, so often.
inline constexpr Duration kCleanEvery{60'000};

struct LaneSettings {
  std::uint32_t batch = 500;        // records of one lane at a time
  std::uint32_t attempts_max = 10;  // of a record that ends whoever takes it
  Duration lease_again{500};        // after lanes were leased, if one of them was lost
  // No attempt begins later than this after the first one; 0: only attempts_max ends them.
  Duration give_up_after{0};
};

// What becomes of a record on its way from the outbox to the engine.
struct LaneHooks {
  // Names it as it is called outside. May find a flaw.
  std::function<void(Outgoing&)> dress{};
  // Others are passed over: they count as sent.
  std::function<bool(const Outgoing&)> wanted{};
};

class LaneSource final : public Source {
 public:
  using Log = std::function<void(std::string_view)>;

  LaneSource(relay::Source& outbox, ports::Clock& clock, const LaneSettings& settings, Log log = {},
             LaneHooks hooks = {})
      : outbox_(outbox),
        clock_(clock),
        settings_(settings),
        log_(std::move(log)),
        hooks_(std::move(hooks)) {}

  [[nodiscard]] Result<Hand> take(const TakeCall& call) override;
  [[nodiscard]] Status give_back(std::span<const Settlement> settled) override;
  void wait(Duration most) override {
    if (outbox_.wait(most)) news_ = true;
  }
  void nudge() override { outbox_.nudge(); }
  // As if wait() had returned.
  void expect_news() { news_ = true; }

  [[nodiscard]] std::size_t lanes() const { return lanes_.size(); }
  [[nodiscard]] std::uint32_t share() const { return share_; }
  [[nodiscard]] std::uint64_t lanes_lost() const { return lanes_lost_; }
  [[nodiscard]] std::uint64_t passed_over() const { return passed_over_; }

 private:
  struct Lane {
    relay::Lease lease;
    std::uint64_t batch = 0;                   // number of the batch that is out; 0 = none
    std::vector<relay::SendOutcome> outcomes;  // of its records
    std::vector<bool> settled;
    std::vector<std::int64_t> due_ms;    // what they wait for, counted from when they were settled
    std::vector<std::int64_t> tried_ms;  // when their first attempts began, as far as it is known
    std::size_t unsettled = 0;
  };

  [[nodiscard]] Result<Hand> settle_and_take(const TakeCall& call);
  [[nodiscard]] Status keep_leases(Duration lease, Hand& hand);
  [[nodiscard]] Status exchange(std::uint32_t room, Hand& hand);
  [[nodiscard]] std::vector<relay::LaneTurn> turns_of(std::uint32_t room,
                                                      const std::optional<std::uint32_t>& alone);
  // Y5: the suspect lane whose turn is now: nothing else is under way.
  [[nodiscard]] std::optional<std::uint32_t> next_suspect();
  [[nodiscard]] bool is_out() const;  // a batch of any lane
  [[nodiscard]] Status give_back_surplus();
  void note(const Settlement& settlement);
  // What a failed attempt comes to.
  [[nodiscard]] relay::SendOutcome retry(const Settlement& settlement, Duration tried_for) const;
  void hand_out(Lane& lane, relay::OutgoingBatch batch, bool alone, Hand& hand);
  void pass_over(Lane& lane, std::size_t place);
  void lose(std::uint32_t lane, Hand& hand);
  void shorten_waits(Lane& lane) const;
  // What is not settled when the source is given back.
  static void close(Lane& lane);
  static void hold_gaps(Lane& lane);
  void forget();
  [[nodiscard]] Lane* find(std::uint32_t lane);

  relay::Source& outbox_;
  ports::Clock& clock_;
  const LaneSettings settings_;
  const Log log_;
  const LaneHooks hooks_;
  std::vector<Lane> lanes_;
  std::unordered_map<std::uint64_t, std::uint32_t> lane_of_batch_;
  std::vector<relay::SuspectLane> suspects_;  // as the latest answer named them
  bool alone_ = false;                        // what is out was taken alone
  std::uint64_t batches_ = 0;
  std::uint32_t share_ = 0;
  std::int64_t leased_at_ms_ = 0;
  std::int64_t lease_end_ms_ = 0;
  std::int64_t renew_at_ms_ = 0;
  bool news_ = true;       // an empty lane may have something
  bool asked_all_ = true;  // of the lanes that might have something, in the latest turns
  std::size_t first_ = 0;  // which lane begins: no lane is always last
  std::uint64_t lanes_lost_ = 0;
  std::uint64_t passed_over_ = 0;
};

}  // namespace hapax::delivery
