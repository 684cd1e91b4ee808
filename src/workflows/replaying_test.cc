#include "workflows/replaying.h"

#include <gmock/gmock.h>

#include <hapax/limits.h>

#include "workflows/kept_workflow_test.h"

namespace hapax::workflows {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class ReplayOfDeliveries : public KeptWorkflow {
 protected:
  Result<ReplayPage> replay(const std::string& id, std::size_t max = 100) {
    return replay_delivered(workflow_, id, ReplayTerms{.since = Time{}}, max, *losing_);
  }
  std::vector<std::string> sent() {
    std::vector<std::string> ids;
    for (const Record& each : deliver()) ids.push_back(each.id);
    return ids;
  }
};

TEST_F(ReplayOfDeliveries, PutsEachRecordBehindTheOthersUnderItsKey) {
  append("o1", "k");
  const std::string key = key_for(deliver().front());
  append("o2", "k");
  const auto page = replay("r1");
  ASSERT_TRUE(page.ok());
  EXPECT_EQ(page->state.replayed, 1U);
  EXPECT_TRUE(page->state.done);
  EXPECT_THAT(sent(), ElementsAre("o2"));
  const auto again = deliver();
  ASSERT_THAT(again, SizeIs(1));
  EXPECT_EQ(again.front().id, "o1");
  EXPECT_EQ(again.front().lineage->redrives, 1U);
  EXPECT_EQ(key_for(again.front()), key);
}

// Z32
TEST_F(ReplayOfDeliveries, IsOncePerIdHoweverOftenAnswersAreLost) {
  for (const char* id : {"o1", "o2", "o3", "o4", "o5"}) append(id);
  deliver();
  std::uint64_t errors = 0;
  for (int call = 0; call < 20; ++call) {
    losing_->lost = call % 2;
    const auto page = replay("r1", 2);
    if (!page) {
      EXPECT_EQ(page.error().code, Errc::kOutcomeUnknown);
      ++errors;
    }
  }
  EXPECT_GT(errors, 0U);
  losing_->lost = 0;
  EXPECT_TRUE(replay("r1")->state.done);
  EXPECT_EQ(replay("r1")->state.replayed, 5U);
  EXPECT_THAT(sent(), ElementsAre("o1", "o2", "o3", "o4", "o5"));
  // Another one is another one, though the log tells of each record twice by now.
  const auto other = replay("r2");
  EXPECT_EQ(other->state.replayed, 10U);
  EXPECT_EQ(other->repeated, 5U);
  EXPECT_THAT(sent(), SizeIs(5));
}

// Z33
TEST_F(ReplayOfDeliveries, OneRunsAtATime) {
  append("o1");
  append("o2");
  deliver();
  ASSERT_FALSE(replay("r1", 1)->state.done);
  const auto other = replay("r2");
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code, Errc::kPreconditionFailed);
  EXPECT_THAT(other.error().detail, HasSubstr("replay r1 of workflow 'erp' is not done"));
  ASSERT_TRUE(cancel_replay(workflow_, "r1", *store_).ok());
  EXPECT_TRUE(replay("r2").ok());
  EXPECT_THAT(sent(), ElementsAre("o1", "o1", "o2"));
  EXPECT_FALSE(cancel_replay(workflow_, "nobody", *store_).ok());
}

TEST_F(ReplayOfDeliveries, ForgetsTheClaimThatWouldSwallowIt) {
  workflow_.delivery.guarantee = delivery::Guarantee::kExactlyOnce;
  append("o1");
  const std::string key = key_for(deliver().front());
  const Verdict claimed = run(Claim{.scope = "erp.deliveries", .key = key});
  run(Settle{.scope = "erp.deliveries", .key = key, .fence = std::get<Claimed>(claimed).fence});
  ASSERT_TRUE(replay("r1").ok());
  EXPECT_EQ(*store_->find_claim("erp.deliveries", key), std::nullopt);
  // One that is under way is not touched.
  EXPECT_THAT(sent(), ElementsAre("o1"));
  run(Claim{.scope = "erp.deliveries", .key = key});
  ASSERT_TRUE(replay("r2").ok());
  EXPECT_EQ((*store_->find_claim("erp.deliveries", key))->state, ClaimState::kProcessing);
}

// Z34
TEST_F(ReplayOfDeliveries, TellsWhatIsGone) {
  append("o1");
  append("o2");
  const std::string key = key_for(deliver().front());
  run(Trim{"orders", Sequence{2}});
  const auto page = replay("r1");
  EXPECT_EQ(page->state.replayed, 1U);
  EXPECT_EQ(page->state.gone, 1U);
  ASSERT_THAT(page->gone, SizeIs(1));
  EXPECT_EQ(page->gone.front().key, key);
  EXPECT_EQ(page->gone.front().sequence, 1U);
  EXPECT_THAT(sent(), ElementsAre("o2"));
}

// What is put back by one commit must fit the journal.
TEST_F(ReplayOfDeliveries, APageOfLargeRecordsIsCut) {
  run(ConfigureStream{"orders", {.record_bytes_max = limits::kRecordBytesMax}});
  const std::string large(std::size_t{7} << 20, 'x');
  for (const char* id : {"o1", "o2", "o3", "o4", "o5", "o6", "o7", "o8", "o9", "o10"}) {
    run(Append{.stream = "orders", .payload = large, .id = id});
  }
  while (!deliver().empty()) {
  }
  const auto first = replay("r1");
  ASSERT_TRUE(first.ok()) << first.error().text();
  EXPECT_FALSE(first->state.done);
  EXPECT_EQ(first->state.replayed, 3U);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(replay("r1").ok());
  EXPECT_TRUE(replay("r1")->state.done);
  EXPECT_EQ(replay("r1")->state.replayed, 10U);
}

TEST_F(ReplayOfDeliveries, ARecordOfAStreamThatWasMadeAgainIsAnotherOne) {
  append("o1");
  deliver();
  run(DeleteStream{"orders"});
  run(CreateStream{"orders", {}});
  run(CreateConsumer{"orders", "erp", delivery::workflow_consumer("erp.dead")});
  append("o1");
  EXPECT_EQ(replay("r1")->state.gone, 1U);
  EXPECT_THAT(sent(), ElementsAre("o1"));
}

TEST_F(ReplayOfDeliveries, SaysWhyItCannotBe) {
  EXPECT_EQ(replay_delivered(workflow_, "r1", std::nullopt, 1, *store_).error().code,
            Errc::kNotFound);
  workflow_.retention.attempts = Duration{0};
  EXPECT_THAT(replay("r1").error().detail, HasSubstr("no log of attempts"));
  workflow_.source = delivery::FromOutbox{};
  EXPECT_THAT(replay("r1").error().detail, HasSubstr("rows of a database"));
}

TEST_F(ReplayOfDeliveries, WithoutAnAttemptThereIsNothing) {
  const auto page = replay("r1");
  EXPECT_TRUE(page->state.done);
  EXPECT_EQ(page->state.replayed, 0U);
  EXPECT_THAT(sent(), IsEmpty());
}

TEST(ReplayState, ComesBackFromItsRegister) {
  ReplayState state{.terms = {Time{}, time_from_ms(7), "crm eu"}, .next = 3, .replayed = 2};
  state.done = true;
  const auto read = read_replay(text_of(state));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->terms, state.terms);
  EXPECT_EQ(read->next, 3U);
  EXPECT_TRUE(read->done);
  EXPECT_EQ(read_replay("2 0 0 0 0 0 0 "), std::nullopt);
  EXPECT_EQ(read_replay("1 0 x"), std::nullopt);
}

}  // namespace
}  // namespace hapax::workflows
