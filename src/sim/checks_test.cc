// The judges themselves: each must see the lie it is there for, and believe the truth.
#include "sim/checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hapax::sim {
namespace {

constexpr std::int64_t kStart = 1'000'000;

Time at(std::int64_t ms) { return time_from_ms(kStart + ms); }

// A history told by hand.
class Judges : public testing::Test {
 protected:
  Judges() {
    StreamSettings settings;
    settings.window = Window{std::chrono::seconds{10}};
    tell({CreateStream{"s", settings}}, {Done{}}, 0);
    contents_.now = at(60'000);
    contents_.streams["s"].first = Sequence{1};
  }

  Attempt& invoke(std::vector<Op> ops, Mode mode = Mode::kAtomic) {
    auto request = std::make_shared<SimRequest>();
    request->number = ++requests_;
    request->ops = std::move(ops);
    request->mode = mode;
    return history_.invoke(request);
  }
  void tell(std::vector<Op> ops, std::vector<Verdict> verdicts, std::int64_t ms) {
    history_.answer(invoke(std::move(ops)), Answer{true, false, at(ms), std::move(verdicts)});
  }
  void store(std::uint64_t sequence, std::string id, std::string payload, std::int64_t ms) {
    Record record;
    record.sequence = Sequence{sequence};
    record.id = std::move(id);
    record.payload = std::move(payload);
    record.time = at(ms);
    contents_.streams["s"].last = record.sequence;
    contents_.streams["s"].records.push_back(std::move(record));
  }
  // The broken invariant, or nothing.
  std::string judged() {
    const auto found = check_all(history_, contents_);
    return found ? found->invariant : "";
  }

  static Append append(std::string_view id, std::string_view payload) {
    return {.stream = "s", .payload = payload, .id = id};
  }

  History history_;
  Contents contents_;
  std::uint64_t requests_ = 0;
};

TEST_F(Judges, BelieveWhatIsTrue) {
  tell({append("a", "1")}, {Appended{Sequence{1}}}, 5);
  tell({append("a", "1")}, {Duplicate{Sequence{1}, at(5), at(10'005)}}, 9);
  store(1, "a", "1", 5);
  EXPECT_EQ(judged(), "");
}

TEST_F(Judges, SeeALostRecord) {
  tell({append("a", "1")}, {Appended{Sequence{1}}}, 5);
  EXPECT_EQ(judged(), "I1");
}

TEST_F(Judges, SeeWrongBytes) {
  tell({append("a", "1")}, {Appended{Sequence{1}}}, 5);
  store(1, "a", "2", 5);
  EXPECT_EQ(judged(), "I7");
}

TEST_F(Judges, SeeAnIdStoredTwiceInItsWindowAndNotAfterIt) {
  tell({append("a", "1")}, {Appended{Sequence{1}}}, 5);
  tell({append("a", "1")}, {Appended{Sequence{2}}}, 10'005);
  store(1, "a", "1", 5);
  store(2, "a", "1", 10'005);
  EXPECT_EQ(judged(), "");
  tell({append("a", "1")}, {Appended{Sequence{3}}}, 20'004);
  store(3, "a", "1", 20'004);
  EXPECT_EQ(judged(), "I2");
}

TEST_F(Judges, SeeADuplicateOfOtherContent) {
  tell({append("a", "1")}, {Appended{Sequence{1}}}, 5);
  tell({append("a", "2")}, {Duplicate{Sequence{1}, at(5), at(10'005)}}, 9);
  store(1, "a", "1", 5);
  EXPECT_EQ(judged(), "I3");
}

TEST_F(Judges, SeeHalfOfAnAtomicCommitOfUnknownOutcome) {
  invoke({append("a", "1"), append("b", "2")});
  history_.crash();
  EXPECT_EQ(judged(), "");
  store(1, "a", "1", 5);
  EXPECT_EQ(judged(), "I15");
  store(2, "b", "2", 5);
  EXPECT_EQ(judged(), "");
}

TEST_F(Judges, SeeARecordOfACommitThatWasRefused) {
  history_.answer(invoke({append("a", "1")}), Error{Errc::kNoSpace, "full"});
  EXPECT_EQ(judged(), "");
  store(1, "a", "1", 5);
  EXPECT_EQ(judged(), "I15");
}

TEST_F(Judges, SeeTwoHoldersOfOneClaim) {
  const Claim claim{.scope = "job", .key = "k", .content = "c", .lease = Duration{100}};
  tell({claim}, {Claimed{Fence{1}, 1, at(100)}}, 0);
  tell({claim}, {Claimed{Fence{2}, 2, at(200), Former::kLapsed}}, 100);
  EXPECT_EQ(judged(), "");
  tell({claim}, {Claimed{Fence{3}, 3, at(299), Former::kLapsed}}, 199);
  EXPECT_EQ(judged(), "I14");
}

TEST_F(Judges, SeeALateWorkerSettle) {
  const Claim claim{.scope = "job", .key = "k", .content = "c", .lease = Duration{100}};
  tell({claim}, {Claimed{Fence{1}, 1, at(100)}}, 0);
  tell({claim}, {Claimed{Fence{2}, 2, at(200), Former::kLapsed}}, 100);
  tell({Settle{.scope = "job", .key = "k", .fence = Fence{1}}}, {Done{}}, 120);
  EXPECT_EQ(judged(), "I11");
}

TEST_F(Judges, SeeARecordHandedOutAfterItsAck) {
  tell({append("a", "1")}, {Appended{Sequence{1}}}, 5);
  store(1, "a", "1", 5);
  const auto hand_out = [&](std::uint64_t token, std::uint32_t attempt, std::int64_t ms) {
    Delivery delivery{Token{token}, attempt, at(ms + 10), contents_.streams["s"].records[0]};
    tell({Receive{.stream = "s", .consumer = "c"}}, {Received{{delivery}}}, ms);
  };
  hand_out(1, 1, 10);
  hand_out(2, 2, 20);
  EXPECT_EQ(judged(), "");
  tell({Ack{"s", "c", {Sequence{1}, Token{2}}}}, {Done{}}, 25);
  EXPECT_EQ(judged(), "");
  hand_out(3, 3, 40);
  EXPECT_EQ(judged(), "I2");
}

TEST_F(Judges, SeeTwoHoldersOfOneLock) {
  const Set lock{.name = "lock", .value = "v", .mode = SetMode::kAbsent};
  tell({lock}, {Held{true, {}, Version{1}, at(100)}}, 5);
  tell({lock}, {Held{true, {}, Version{2}, at(200)}}, 100);
  EXPECT_EQ(judged(), "") << "the first one had gone";
  tell({lock}, {Held{true, {}, Version{3}, at(300)}}, 199);
  EXPECT_EQ(judged(), "I14");
}

TEST_F(Judges, SeeALockThatIsGoneBeforeItsTime) {
  tell({Set{.name = "lock", .value = "v", .mode = SetMode::kAbsent}},
       {Held{true, {}, Version{1}, at(70'000)}}, 5);
  EXPECT_EQ(judged(), "I1");
}

TEST_F(Judges, SeeAnExpiryThatIsForgotten) {
  tell({Set{.name = "brief", .value = "v", .mode = SetMode::kAlways}},
       {Held{true, {}, Version{1}, Time::max()}}, 5);
  tell({Expire{"brief"}}, {Held{true, {}, Version{1}, at(100)}}, 6);
  tell({Get{"brief"}}, {Held{true, "v", Version{1}, at(100)}}, 7);
  EXPECT_EQ(judged(), "");
  tell({Get{"brief"}}, {Held{true, "v", Version{1}, Time::max()}}, 8);
  EXPECT_EQ(judged(), "I1");
}

TEST_F(Judges, SeeWhatIsReadAfterItsExpiry) {
  tell({Get{"brief"}}, {Held{true, "v", Version{1}, at(100)}}, 100);
  EXPECT_EQ(judged(), "I12");
}

TEST_F(Judges, SeeSumsThatAreLostOrToldTwice) {
  tell({Add{"count"}}, {Held{true, {}, Version{1}, Time::max(), 1}}, 5);
  EXPECT_EQ(judged(), "I1");
  contents_.registers["count"] = {"1", Version{1}, {}};
  EXPECT_EQ(judged(), "");
  contents_.registers["count"] = {"2", Version{2}, {}};
  EXPECT_EQ(judged(), "I2");
  tell({Add{"count"}}, {Held{true, {}, Version{2}, Time::max(), 1}}, 6);
  EXPECT_EQ(judged(), "I14");
}

TEST_F(Judges, SeeADelayedEndOfAnOlderTransaction) {
  tell({Begin{"t"}}, {Began{Epoch{1}, at(1'000)}}, 0);
  tell({Begin{"t"}}, {Began{Epoch{2}, at(1'000)}}, 1);
  EXPECT_EQ(judged(), "");
  tell({End{"t", Epoch{1}}}, {Done{}}, 2);
  EXPECT_EQ(judged(), "I11");
}

}  // namespace
}  // namespace hapax::sim
