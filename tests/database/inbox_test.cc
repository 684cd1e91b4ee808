// Messages and jobs take effect once.
#include <thread>

#include "application.h"

namespace hapax::application {
namespace {

using testing::ElementsAre;

class InboxTest : public ApplicationTest {
 protected:
  static Work answers(const std::string& outcome) {
    return [outcome]() -> Result<std::string> { return outcome; };
  }
  const Message message_{"m-1", "content"};
};
INSTANTIATE_TEST_SUITE_P(All, InboxTest, testing::ValuesIn(all_kinds()), name_of);

TEST_P(InboxTest, a_duplicate_gets_the_first_outcome_and_does_nothing) {
  Inbox inbox(database());
  int ran = 0;
  const Work work = [&]() -> Result<std::string> {
    ++ran;
    HAPAX_CHECK(order("o-1"));
    return std::string("out\0come", 8);
  };
  const auto first = inbox.handle("billing", message_, work);
  ASSERT_TRUE(first) << first.error().text();
  EXPECT_EQ(first->taking, Taking::kFresh);
  const auto second = inbox.handle("billing", message_, work);
  ASSERT_TRUE(second) << second.error().text();
  EXPECT_EQ(second->taking, Taking::kDuplicate);
  EXPECT_EQ(second->outcome, std::string("out\0come", 8));
  EXPECT_LE(second->first_seen, first->first_seen + Duration{1});
  EXPECT_EQ(ran, 1);
  // Other content under the same id, and the same message to somebody else.
  EXPECT_EQ(inbox.handle("billing", {"m-1", "other"}, work)->taking, Taking::kConflict);
  EXPECT_EQ(inbox.handle("mail", message_, answers(""))->taking, Taking::kFresh);
  EXPECT_EQ(ran, 1);
}

TEST_P(InboxTest, a_handler_that_fails_may_run_again) {
  Inbox inbox(database());
  const auto failed = inbox.handle("billing", message_, [&]() -> Result<std::string> {
    HAPAX_CHECK(order("o-1"));
    return Error{Errc::kUnavailable, "no"};
  });
  EXPECT_EQ(failed.error().detail, "no");
  EXPECT_EQ(count("orders"), 0);
  EXPECT_EQ(inbox.handle("billing", message_, answers("yes"))->taking, Taking::kFresh);
}

TEST_P(InboxTest, in_the_callers_transaction_it_is_undone_with_it) {
  Inbox inbox(database());
  ASSERT_TRUE(app_->run("BEGIN"));
  EXPECT_EQ(inbox.handle("billing", message_, answers("x"))->taking, Taking::kFresh);
  EXPECT_FALSE(inbox.handle("billing", {"m-2", ""}, [&]() -> Result<std::string> {
    return Error{Errc::kUnavailable, "only this one"};
  }));
  EXPECT_EQ(count(table("inbox")), 1);
  ASSERT_TRUE(app_->run("ROLLBACK"));
  EXPECT_EQ(count(table("inbox")), 0);
}

TEST_P(InboxTest, a_batch_answers_the_new_ones) {
  Inbox inbox(database());
  ASSERT_TRUE(inbox.handle("s", {"b", "x"}, answers("")));
  ASSERT_TRUE(inbox.handle("s", {"c", "x"}, answers("")));
  const std::vector<Message> messages = {{"d", "1"}, {"b", "x"}, {"a", "2"},
                                         {"c", "y"}, {"d", "1"}, {"a", "3"}};
  EXPECT_EQ(inbox.accept("s", messages).error().code, Errc::kPreconditionFailed);
  Accepted accepted;
  ASSERT_TRUE(database().with_transaction([&]() -> Status {
    HAPAX_TRY(accepted, inbox.accept("s", messages));
    return Ok{};
  }));
  EXPECT_THAT(accepted.fresh, ElementsAre(0, 2));
  EXPECT_THAT(accepted.conflicts, ElementsAre(3, 5));
}

TEST_P(InboxTest, many_receivers_of_one_message_run_it_once) {
  std::atomic<int> fresh{0};
  std::vector<std::thread> threads;
  for (int n = 0; n < 4; ++n) {
    threads.emplace_back([&] {
      const auto process = start();
      Inbox inbox(process->database());
      for (int i = 0; i < 10; ++i) {
        const Message message{"m-" + std::to_string(i), ""};
        for (;;) {
          const auto handled = inbox.handle("s", message, [&]() -> Result<std::string> {
            HAPAX_CHECK(order(*process, message.id));
            return std::string();
          });
          if (!handled && handled.error().code == Errc::kLocked) continue;
          ASSERT_TRUE(handled) << handled.error().text();
          if (handled->taking == Taking::kFresh) ++fresh;
          break;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(fresh, 10);
  EXPECT_EQ(count("orders"), 10);
}

TEST_P(InboxTest, ids_are_forgotten_after_their_time) {
  Inbox brief(database(), {.retention = Window{std::chrono::seconds{0}}});
  Inbox eternal(database());
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(brief.handle("s", {std::to_string(i), ""}, answers("")));
  }
  ASSERT_TRUE(eternal.handle("s", {"kept", ""}, answers("")));
  std::uint64_t forgotten = 0;
  while (forgotten < 5) forgotten += *brief.forget_expired(2);
  EXPECT_EQ(count(table("inbox")), 1);
}

// Somebody without claims may have taken the id meanwhile, for another content.
TEST_P(InboxTest, finish_tells_a_conflict_from_a_duplicate) {
  Inbox inbox(database());
  const auto one = as<Claimed>(inbox.begin("s", {"m-1", "mine"}, "worker"));
  const auto two = as<Claimed>(inbox.begin("s", {"m-2", "same"}, "worker"));
  ASSERT_TRUE(inbox.handle("s", {"m-1", "theirs"}, answers("x")));
  ASSERT_TRUE(inbox.handle("s", {"m-2", "same"}, answers("x")));
  const auto never = [&]() -> Result<std::string> {
    ADD_FAILURE();
    return std::string();
  };
  const auto conflict = as<Conflict>(inbox.finish("s", {"m-1", "mine"}, one.fence, never));
  EXPECT_NE(conflict.stored, conflict.received);
  EXPECT_EQ(as<DuplicateClaim>(inbox.finish("s", {"m-2", "same"}, two.fence, never)).result->body,
            "x");
}

// Every other message without an id would be taken for its duplicate.
TEST_P(InboxTest, what_was_not_filled_in_is_refused) {
  Inbox inbox(database());
  const auto refused = [](const auto& result, std::string_view what) {
    ASSERT_FALSE(result) << what;
    EXPECT_EQ(result.error().code, Errc::kInvalidArgument) << result.error().text();
    EXPECT_THAT(result.error().detail, testing::HasSubstr(what));
  };
  refused(inbox.handle("billing", {"", "x"}, answers("")), "the id of a message is empty");
  refused(inbox.handle("", message_, answers("")), "the subscriber is empty");
  refused(inbox.begin("billing", {"", "x"}, "w"), "the id of a message is empty");
  refused(inbox.begin("billing", message_, "w", Duration{-1}), "the lease is -1 ms");
  refused(inbox.fail("billing", {"", "x"}, Fence{1}, "no"), "the id of a message is empty");
  ASSERT_TRUE(app_->run("BEGIN"));
  const std::vector<Message> two{{"m-1", ""}, {"", ""}};
  refused(inbox.accept("billing", two), "the id of a message is empty");
  ASSERT_TRUE(app_->run("ROLLBACK"));
  EXPECT_EQ(count(table("inbox")), 0);
  // The same from SQL, where INSERT OR IGNORE would pass over it.
  const bool sqlite = GetParam().name == "sqlite";
  for (const std::string names : {"'billing', ''", "'', 'm-1'", "'billing', NULL"}) {
    const Status told = app_->run(
        sqlite ? "INSERT OR IGNORE INTO hapax_inbox (subscriber, message_id) VALUES (" + names + ")"
               : "SELECT hapax.inbox_take(" + names + ")");
    refused(told, "empty or NULL");
  }
  for (const char* names : {"'billing', '{\"\"}'", "'billing', '{a,NULL}'", "'', '{a}'"}) {
    if (sqlite) break;
    refused(app_->run("SELECT hapax.inbox_accept(" + std::string(names) + ")"), "empty or NULL");
  }
  EXPECT_EQ(count(table("inbox")), 0);
}

TEST_P(InboxTest, a_retention_can_be_given_later) {
  Inbox eternal(database());
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(eternal.handle("s", {std::to_string(i), ""}, answers("")));
  }
  ASSERT_TRUE(eternal.handle("other", {"kept", ""}, answers("")));
  EXPECT_EQ(*eternal.forget_expired(), 0U);
  std::string behind;
  int calls = 0;
  for (;; ++calls) {
    const auto last = eternal.retain("s", Window{std::chrono::seconds{0}}, behind, 2);
    ASSERT_TRUE(last) << last.error().text();
    if (!*last) break;
    behind = **last;
  }
  EXPECT_EQ(calls, 3);
  std::uint64_t forgotten = 0;
  while (forgotten < 5) forgotten += *eternal.forget_expired(2);
  EXPECT_EQ(count(table("inbox")), 1);
  // And taken back, before it is over.
  ASSERT_TRUE(eternal.retain("other", Window{std::chrono::hours{1}}));
  ASSERT_TRUE(eternal.retain("other", Window::forever()));
  EXPECT_EQ(app_->number("SELECT count(*) FROM " + table("inbox") + " WHERE expires_at IS NULL"),
            1);
}

// O3: what is finished is neither claimed nor handled again.
TEST_P(InboxTest, claim_work_commit) {
  Inbox inbox(database());
  const auto claimed = as<Claimed>(inbox.begin("s", message_, "worker 1"));
  EXPECT_EQ(as<InProgress>(inbox.begin("s", message_, "worker 2")).owner, "worker 1");
  EXPECT_FALSE(database().in_transaction());  // The slow part holds no lock.
  as<Renewed>(inbox.renew("s", message_, claimed.fence));
  const auto finished = inbox.finish("s", message_, claimed.fence, [&]() -> Result<std::string> {
    HAPAX_CHECK(order("o-1"));
    return std::string("result");
  });
  as<Done>(finished);
  const auto again = as<DuplicateClaim>(inbox.begin("s", message_, "worker 2"));
  EXPECT_EQ(again.result->body, "result");
  as<Conflict>(inbox.begin("s", {"m-1", "other"}, "worker 2"));
  EXPECT_EQ(inbox.handle("s", message_, answers(""))->outcome, "result");
  EXPECT_EQ(count(table("claims")), 0);
}

TEST_P(InboxTest, a_worker_that_lost_its_lease_is_fenced_and_changes_nothing) {
  Inbox inbox(database());
  const auto slow = as<Claimed>(inbox.begin("s", message_, "slow"));
  lapse();
  const auto quick = as<Claimed>(inbox.begin("s", message_, "quick"));
  EXPECT_EQ(quick.attempt, 2u);
  EXPECT_GT(quick.fence, slow.fence);
  const Work work = [&]() -> Result<std::string> {
    HAPAX_CHECK(order("o-1"));
    return std::string();
  };
  EXPECT_EQ(as<Fenced>(inbox.finish("s", message_, slow.fence, work)).current, quick.fence.value);
  EXPECT_EQ(count("orders"), 0);
  as<Done>(inbox.finish("s", message_, quick.fence, work));
  as<Fenced>(inbox.finish("s", message_, slow.fence, work));
  EXPECT_EQ(count("orders"), 1);
}

TEST_P(InboxTest, work_that_fails_in_finish_keeps_the_claim) {
  Inbox inbox(database());
  const auto claimed = as<Claimed>(inbox.begin("s", message_, "w"));
  EXPECT_FALSE(inbox.finish("s", message_, claimed.fence, [&]() -> Result<std::string> {
    return Error{Errc::kUnavailable, "disk"};
  }));
  as<InProgress>(inbox.begin("s", message_, "other"));
  as<Done>(inbox.fail("s", message_, claimed.fence, "gave up"));
  EXPECT_EQ(as<Claimed>(inbox.begin("s", message_, "other")).attempt, 2u);
}

// Document D's idempotency helper.
TEST_P(InboxTest, job_claims_check_lock_complete) {
  JobClaims jobs(database(), "mail");
  EXPECT_EQ(*jobs.get_status("j"), JobStatus::kNotSeen);
  const auto claimed = as<Claimed>(jobs.check_and_lock("j", "w1", Duration{60'000}, "letter"));
  EXPECT_EQ(*jobs.get_status("j"), JobStatus::kProcessing);
  EXPECT_EQ(as<InProgress>(jobs.check_and_lock("j", "w2")).owner, "w1");
  as<Conflict>(jobs.check_and_lock("j", "w2", Duration{60'000}, "another letter"));
  EXPECT_FALSE(*jobs.is_processed("j"));
  as<Renewed>(jobs.renew("j", claimed.fence));
  as<Done>(jobs.mark_complete("j", claimed.fence, "sent"));
  as<Done>(jobs.mark_complete("j", claimed.fence, "sent"));  // The answer may have been lost.
  EXPECT_TRUE(*jobs.is_processed("j"));
  EXPECT_EQ(as<DuplicateClaim>(jobs.check_and_lock("j", "w2")).result->body, "sent");
  EXPECT_EQ(*JobClaims(database(), "other scope").get_status("j"), JobStatus::kNotSeen);
}

TEST_P(InboxTest, job_claims_survive_their_worker) {
  JobClaims jobs(database(), "mail");
  const auto lost = as<Claimed>(jobs.check_and_lock("j", "dead"));
  lapse();
  const auto taken = as<Claimed>(jobs.check_and_lock("j", "alive"));
  EXPECT_EQ(taken.attempt, 2u);
  EXPECT_EQ(as<Fenced>(jobs.mark_complete("j", lost.fence)).current, taken.fence.value);
  as<Fenced>(jobs.renew("j", lost.fence));
  as<Done>(jobs.mark_failed("j", taken.fence, "mailbox full"));
  EXPECT_EQ(*jobs.get_status("j"), JobStatus::kFailed);
  EXPECT_EQ(as<Claimed>(jobs.check_and_lock("j", "alive")).attempt, 3u);
}

TEST_P(InboxTest, job_claims_begin_anew_after_their_retention) {
  JobClaims jobs(database(), "mail");
  const auto claimed = as<Claimed>(jobs.check_and_lock("j", "w"));
  as<Done>(jobs.mark_complete("j", claimed.fence, "", Window{std::chrono::seconds{0}}));
  EXPECT_EQ(*jobs.get_status("j"), JobStatus::kNotSeen);
  EXPECT_EQ(as<Claimed>(jobs.check_and_lock("j", "w")).attempt, 1u);
}

TEST_P(InboxTest, an_effect_and_its_completion_are_one) {
  JobClaims jobs(database(), "mail");
  const auto lost = as<Claimed>(jobs.check_and_lock("j", "dead"));
  lapse();
  as<Claimed>(jobs.check_and_lock("j", "alive"));
  const Status done = database().with_transaction([&]() -> Status {
    HAPAX_CHECK(order("o-1"));
    HAPAX_TRY(const Verdict verdict, jobs.mark_complete("j", lost.fence));
    if (!holds(verdict)) return Error{Errc::kConflict, "fenced"};
    return Ok{};
  });
  EXPECT_FALSE(done);
  EXPECT_EQ(count("orders"), 0);
}

}  // namespace
}  // namespace hapax::application
