// How much is read from the disk for the records somebody asked for.
#include "engine/answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/rig_test.h"

namespace hapax::engine {
namespace {

using testing::SizeIs;

class ReadCostTest : public EngineRig {
 protected:
  static constexpr std::uint64_t kLarge = 32'768;
  static constexpr std::uint64_t kSmall = 200;

  // Sixty-four records of one batch in stream "s".
  void append_64(std::uint64_t bytes) {
    const std::string& payload = texts_.emplace_back(bytes, 'p');
    std::vector<Op> ops = {CreateStream{"s", {}},
                           CreateConsumer{"s", "c", {.attempts_max = 1, .dead_letters = "d"}}};
    ops.insert(ops.end(), 64, Append{.stream = "s", .payload = payload});
    commit(ops);
  }
  template <class Act>
  std::uint64_t bytes_read(Act act) {
    std::uint64_t bytes = 0;
    disk_.watch([&](std::string_view line) {
      if (line.find(" read ") == std::string_view::npos) return;
      bytes += std::stoull(std::string(line.substr(line.rfind('+') + 1)));
    });
    act();
    disk_.watch(nullptr);
    return bytes;
  }
  void read(std::uint64_t from, std::uint32_t max) {
    ReadPlan plan = plan_read(state(), {.stream = "s", .from = Sequence{from}, .max = max}).value();
    ASSERT_TRUE(open_places(plan.places, *engine_->files()).ok());
    EXPECT_THAT(read_records(plan.places).value(), SizeIs(max));
  }
  Delivery receive_one() {
    Call& call = commit({Receive{"s", "c", 1, Duration{1'000}, "o"}});
    const Answer answer = complete(*std::move(call.finished)).value();
    return std::get<Received>(answer.verdicts.front()).deliveries.at(0);
  }
};

TEST_F(ReadCostTest, OneLargeRecordIsReadWithoutItsNeighbours) {
  append_64(kLarge);
  EXPECT_LT(bytes_read([&] { read(40, 1); }), kLarge + 1'000);
  EXPECT_LT(bytes_read([&] { read(40, 3); }), 3 * kLarge + 1'000);
  Delivery delivery;
  EXPECT_LT(bytes_read([&] { delivery = receive_one(); }), kLarge + 1'000);
  EXPECT_LT(bytes_read([&] {
              commit({Nack{"s", "c", {delivery.record.sequence, delivery.token}}});
            }),
            2 * kLarge + 1'000)
      << "looked at and copied for the dead letters";
  EXPECT_EQ(state().find_stream("d")->last, Sequence{1});
}

TEST_F(ReadCostTest, ABriefAnswerLeavesALargeResultOut) {
  const std::string large(limits::kBriefResultBytesMax, 'r');
  for (const auto& [key, body] :
       {std::pair("large", large), std::pair("small", std::string("r"))}) {
    Call& call = commit({Claim{.scope = "s", .key = key}});
    const Fence fence = std::get<Claimed>(call.verdict()).fence;
    commit({Settle{.scope = "s", .key = key, .fence = fence, .result = {200, "", body}}});
  }
  const std::vector<Op> ops = {Claim{.scope = "s", .key = "large"},
                               Claim{.scope = "s", .key = "small"}};
  std::optional<Finished> finished;
  machine().submit(prepare({.ops = ops, .detail = Detail::kBrief}, engine_->key()).value(),
                   [&](Finished it) { finished = std::move(it); });
  const Answer answer = complete(*std::move(finished)).value();
  const auto& without = std::get<DuplicateClaim>(answer.verdicts[0]);
  EXPECT_TRUE(without.left_out);
  EXPECT_FALSE(without.result);
  const auto& with = std::get<DuplicateClaim>(answer.verdicts[1]);
  EXPECT_FALSE(with.left_out);
  EXPECT_EQ(with.result, (StoredResult{200, "", "r"}));
}

TEST_F(ReadCostTest, ABriefAnswerLeavesALargeRecordOut) {
  const std::string& large = texts_.emplace_back(limits::kBriefReceiveBytesMax + 1, 'p');
  commit({CreateStream{"s", {.record_bytes_max = limits::kRecordBytesMax}},
          Append{.stream = "s", .payload = large}, Append{.stream = "s", .payload = "small"}});
  const std::vector<Op> ops(2, Receive{"s", "c", 10});
  std::optional<Finished> finished;
  const std::uint64_t read = bytes_read([&] {
    machine().submit(prepare({.ops = ops, .detail = Detail::kBrief}, engine_->key()).value(),
                     [&](Finished it) { finished = std::move(it); });
    EXPECT_TRUE(write().ok());
    finished->answer = complete(std::move(*finished));
  });
  EXPECT_LT(read, kSmall);
  const auto& without = std::get<Received>(finished->answer->verdicts[0]);
  EXPECT_TRUE(without.left_out);
  EXPECT_THAT(without.deliveries, SizeIs(1));
  EXPECT_EQ(without.deliveries.front().record.payload, "");
  const auto& with = std::get<Received>(finished->answer->verdicts[1]);
  EXPECT_FALSE(with.left_out);
  EXPECT_EQ(with.deliveries.at(0).record.payload, "small");
}

TEST_F(ReadCostTest, SmallNeighboursAreReadAtOnce) {
  append_64(kSmall);
  EXPECT_LE(bytes_read([&] { read(40, 1); }), core::kRunBytesMax);
  const std::uint64_t looks = disk_.looks();
  read(1, 64);
  EXPECT_LE(disk_.looks() - looks, 3U) << "a read for each run, and their file";
}

}  // namespace
}  // namespace hapax::engine
