// Reads: ranges, descriptions, figures.
#include "store_contract.h"

namespace hapax::contract {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class Reads : public StoreContract {
 protected:
  void fill(std::size_t count, std::size_t bytes = 10) {
    make_stream("s");
    std::vector<std::string> texts;
    for (std::size_t i = 1; i <= count; ++i) {
      texts.push_back(std::to_string(i) + std::string(bytes, '.'));
    }
    std::vector<Op> ops;
    for (const std::string& text : texts) ops.push_back(Append{.stream = "s", .payload = text});
    EXPECT_TRUE(commit(ops).committed);
  }
  std::vector<std::uint64_t> range(std::uint64_t from, std::uint32_t max,
                                   std::uint64_t bytes_max = std::uint64_t{4} << 20) {
    const auto read =
        store().read({.stream = "s", .from = Sequence{from}, .max = max, .bytes_max = bytes_max});
    std::vector<std::uint64_t> all;
    for (const Record& record : read.value().records) all.push_back(record.sequence.value);
    return all;
  }
};

TEST_P(Reads, ARangeHasItsFirstAndAtMostSoMany) {
  fill(10);
  always([&] {
    EXPECT_THAT(range(3, 4), ElementsAre(3, 4, 5, 6));
    EXPECT_THAT(range(9, 100), ElementsAre(9, 10));
    EXPECT_THAT(range(11, 100), IsEmpty());
    EXPECT_THAT(range(0, 1), ElementsAre(1));
    const Records all = store().read({.stream = "s", .max = 1}).value();
    EXPECT_EQ(all.first, Sequence{1});
    EXPECT_EQ(all.last, Sequence{10});
  });
  EXPECT_EQ(store().read({.stream = "nowhere"}).error().code, Errc::kNotFound);
}

TEST_P(Reads, ARangeEndsWhenItsBytesAreFullButHasAtLeastOne) {
  fill(10, 1'000);
  always([&] {
    EXPECT_THAT(range(1, 100, 0), ElementsAre(1));
    EXPECT_THAT(range(4, 100, 1), ElementsAre(4));
    EXPECT_THAT(range(1, 100, 3'500), SizeIs(testing::AllOf(testing::Ge(3), testing::Le(5))));
  });
}

TEST_P(Reads, TrimmedRecordsAreGoneAndTheRestIsWhole) {
  fill(200);
  run<Done>(Trim{"s", Sequence{100}});
  always([&] {
    EXPECT_THAT(range(1, 2), ElementsAre(100, 101));
    EXPECT_EQ(store().read({.stream = "s"}).value().first, Sequence{100});
    EXPECT_THAT(records("s"), SizeIs(101));
    EXPECT_EQ(records("s").front().payload, "100..........");
    run<Done>(Trim{"s", Sequence{50}});  // Never backwards.
  });
  run<Done>(Trim{"s", Sequence{1'000}});
  always([&] {
    EXPECT_THAT(records("s"), IsEmpty());
    const StreamStats stats = store().describe("s").value();
    EXPECT_EQ(stats.first, Sequence{201});
    EXPECT_EQ(stats.last, Sequence{200});
    EXPECT_EQ(stats.bytes, 0U);
  });
  EXPECT_EQ(append("s", "next"), Sequence{201});
}

TEST_P(Reads, OldRecordsSurviveTheCleaningAroundThem) {
  make_stream("s");
  std::vector<std::string> kept;
  for (int i = 0; i < 40; ++i) {
    kept.push_back("kept " + std::to_string(i));
    append("s", kept.back());
    if (i % 10 == 9) churn();
  }
  always([&] { EXPECT_EQ(payloads(records("s")), kept); });
}

TEST_P(Reads, AStreamIsDescribed) {
  const StreamSettings settings{.window = Window{std::chrono::hours{2}},
                                .retention = {.age = Duration{60'000'000}, .count = 1'000}};
  const Time created = commit({CreateStream{"s", settings}}).time;
  append("s", "p", "one");
  append("s", "p", "two");
  run<Appended>(Append{.stream = "s", .payload = "p", .producer = ProducerMark{"w", Epoch{1}, {}}});
  receive("s", "c", 2);
  always([&] {
    const StreamStats stats = store().describe("s").value();
    EXPECT_EQ(stats.stream, "s");
    EXPECT_EQ(stats.settings, settings);
    EXPECT_EQ(stats.first, Sequence{1});
    EXPECT_EQ(stats.last, Sequence{3});
    EXPECT_GT(stats.bytes, 0U);
    EXPECT_EQ(stats.ids, 2U);
    EXPECT_EQ(stats.producers, 1U);
    EXPECT_EQ(stats.created_at, created);
    EXPECT_EQ(stats.horizon, created);
    ASSERT_THAT(stats.consumers, SizeIs(1));
    EXPECT_EQ(stats.consumers[0].consumer, "c");
    EXPECT_EQ(stats.consumers[0].in_flight, 2U);
    EXPECT_EQ(stats.consumers[0].next, Sequence{3});
  });
  EXPECT_EQ(store().describe("nowhere").error().code, Errc::kNotFound);
}

TEST_P(Reads, TheHorizonFollowsTheWindow) {
  make_stream("s", {.window = Window{std::chrono::seconds{1}}});
  const StreamStats fresh = store().describe("s").value();
  if (log_time() < fresh.created_at + std::chrono::seconds{1}) {
    EXPECT_EQ(fresh.horizon, fresh.created_at);
  }
  wait_until(fresh.created_at + Duration{1'200});
  const Time before = log_time();
  const Time horizon = store().describe("s").value().horizon;
  EXPECT_GE(horizon, before - std::chrono::seconds{1});
  EXPECT_LE(horizon, log_time() - std::chrono::seconds{1});
}

TEST_P(Reads, StreamsAreListedInOrder) {
  for (const char* name : {"b", "a", "c"}) make_stream(name);
  EXPECT_THAT(store().streams().value(), ElementsAre("a", "b", "c"));
  run<Done>(DeleteStream{"b"});
  reopen();
  EXPECT_THAT(store().streams().value(), ElementsAre("a", "c"));
}

TEST_P(Reads, TheFiguresCountWhatIsThere) {
  make_stream("s");
  append("s", "p", "id");
  run<Claimed>(Claim{.scope = "c", .key = "open"});
  const Fence fence = run<Claimed>(Claim{.scope = "c", .key = "settled"}).fence;
  run<Done>(Settle{.scope = "c", .key = "settled", .fence = fence});
  commit({Set{.name = "r", .value = "v"}}, Mode::kAtomic, "an answer is kept, and is no claim");
  run<Done>(Advance{"source", "", "1", Epoch{1}});
  run<Began>(Begin{"t"});
  EXPECT_GE(store().statistics().value().commits, 8U);
  EXPECT_GE(store().statistics().value().batches, 8U);
  reopen();
  const Statistics stats = store().statistics().value();
  EXPECT_EQ(stats.streams, 1U);
  EXPECT_EQ(stats.ids, 1U);
  EXPECT_EQ(stats.claims_open, 1U);
  EXPECT_EQ(stats.claims_settled, 1U);
  EXPECT_EQ(stats.claims_unknown, 0U);
  EXPECT_EQ(stats.registers, 1U);
  EXPECT_EQ(stats.positions, 1U);
  EXPECT_EQ(stats.transactions_open, 1U);
  EXPECT_GT(stats.memory_bytes, 0U);
  EXPECT_GE(stats.segments, 1U);
  EXPECT_GT(stats.journal_bytes, 0U);
  EXPECT_EQ(stats.gaps + stats.records_lost + stats.results_lost, 0U);
  EXPECT_FALSE(stats.writes_refused);
  EXPECT_FALSE(stats.clock_jump_pending);
}

TEST_P(Reads, LogTimeNeverGoesBack) {
  Time before = log_time();
  for (int i = 0; i < 5; ++i) {
    const Time decided = commit({Set{.name = "r", .mode = SetMode::kLastWriter}}).time;
    EXPECT_GE(decided, before);
    reopen();
    before = log_time();
    EXPECT_GE(before, decided);
  }
}

TEST_P(Reads, AReadSeesWhatWasSubmittedBeforeIt) {
  make_stream("s");
  const std::string payload(3'000, 'p');
  const std::vector<Op> ops{Append{.stream = "s", .payload = payload},
                            Claim{.scope = "c", .key = "k", .lease = Duration{1}}};
  Commit commit;
  commit.ops = ops;
  commit.mode = Mode::kEach;
  // Many segments are begun here; a read must not depend on whether one is on the disk yet.
  for (std::uint64_t i = 1; i <= 150; ++i) {
    store().submit(commit, [](const Result<Answer>& answer) { EXPECT_TRUE(answer.ok()); });
    const auto read = store().read({.stream = "s", .from = Sequence{i}});
    ASSERT_TRUE(read.ok()) << read.error().text();
    ASSERT_THAT(read->records, SizeIs(1));
    ASSERT_EQ(read->records[0].payload, payload);
  }
}

TEST_P(Reads, AResultIsFoundRightAfterItsSettleWasSubmitted) {
  const std::string body(3'000, 'b');
  for (int i = 0; i < 100; ++i) {
    const std::string key = "k" + std::to_string(i);
    const Fence fence = run<Claimed>(Claim{.scope = "c", .key = key}).fence;
    const std::vector<Op> ops{
        Settle{.scope = "c", .key = key, .fence = fence, .result = {200, "", body}}};
    Commit commit;
    commit.ops = ops;
    store().submit(commit, [](const Result<Answer>& answer) { EXPECT_TRUE(answer.ok()); });
    const auto found = store().find_claim("c", key);
    ASSERT_TRUE(found.ok()) << found.error().text();
    ASSERT_TRUE(found.value()->result);
    ASSERT_EQ(found.value()->result->body, body);
  }
}

INSTANTIATE_TEST_SUITE_P(, Reads, testing::ValuesIn(all_stores()), name_of);

}  // namespace
}  // namespace hapax::contract
