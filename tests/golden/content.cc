#include "content.h"

#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace hapax {
namespace {

Verdict commit_one(Store& store, const Op& op, std::string_view id = {}) {
  Commit commit{.ops = {&op, 1}, .id_window = Window::forever()};
  if (!id.empty()) commit.id = id;
  const auto answer = store.commit(commit);
  EXPECT_TRUE(answer.ok()) << answer.error().text();
  return answer ? answer->verdicts.front() : Verdict{NotApplied{}};
}

const std::string kBody("result\0with a zero", 18);
const std::string kBallast(300, 'b');
const Time kLate = time_from_ms(std::int64_t{1} << 45);

// What version 1 has.
void fill_first(Store& store) {
  StreamSettings settings;
  settings.window = Window::forever();
  commit_one(store, CreateStream{.stream = "orders", .settings = settings});
  commit_one(store, Set{.name = "going", .value = "41", .mode = SetMode::kAlways});
  commit_one(store, Expire{.name = "going", .expiry = {Expiry::Kind::kAt, kLate, {}}});
  for (int i = 1; i <= 100; ++i) {
    const std::string id = "order-" + std::to_string(i);
    const std::string group = "customer-" + std::to_string(i % 7);
    commit_one(store,
               Append{.stream = "orders", .payload = "payload of " + id, .id = id, .group = group});
  }
  commit_one(store, Append{.stream = "orders",
                           .payload = "by producer",
                           .producer = ProducerMark{"p", Epoch{3}, ProducerSequence{0}}});
  const auto received = std::get<Received>(commit_one(
      store, Receive{.stream = "orders", .consumer = "c", .max = 3, .owner = "w"}, "receive-1"));
  commit_one(store, Ack{.stream = "orders",
                        .consumer = "c",
                        .receipt = {Sequence{1}, received.deliveries.at(0).token}});
  commit_one(store, Nack{.stream = "orders",
                         .consumer = "c",
                         .receipt = {Sequence{2}, received.deliveries.at(1).token},
                         .reason = "not now"});
  commit_one(store, OpenProducer{.stream = "orders", .producer = "p"});
  const auto claimed = std::get<Claimed>(commit_one(store, Claim{.scope = "s",
                                                                 .key = "done",
                                                                 .content = "x",
                                                                 .owner = "w",
                                                                 .retention = Window::forever(),
                                                                 .tombstone = Window::forever()}));
  commit_one(
      store,
      Settle{.scope = "s", .key = "done", .fence = claimed.fence, .result = {201, "h: v", kBody}});
  const auto doubtful = std::get<Claimed>(
      commit_one(store, Claim{.scope = "s", .key = "doubt", .content = "x", .owner = "w"}));
  commit_one(store, Settle{.scope = "s",
                           .key = "doubt",
                           .fence = doubtful.fence,
                           .outcome = Outcome::kUnknown,
                           .reason = "timed out"});
  commit_one(store, Set{.name = "register", .value = "value"});
  commit_one(store, Add{.name = "going"});
  commit_one(store, Set{.name = "gone", .value = "v", .mode = SetMode::kAlways});
  commit_one(store, Unset{.name = "gone"});
  commit_one(store, Advance{.source = "source", .expected = "", .to = "42", .epoch = Epoch{2}});
  commit_one(store, Trim{.stream = "orders", .before = Sequence{11}});
}

// Records beside whatever is done, so that no segment is emptied: the folder keeps its whole
// journal.
void do_one(Store& store, const Op& op) {
  const Verdict done = commit_one(store, op);
  EXPECT_FALSE(std::holds_alternative<Refused>(done)) << word_of(done);
  commit_one(store, Append{.stream = "ballast", .payload = kBallast});
}

Receipt receive_one(Store& store, std::string_view consumer) {
  const auto received = std::get<Received>(
      commit_one(store, Receive{.stream = "jobs", .consumer = consumer, .owner = "w"}));
  const Delivery& delivery = received.deliveries.at(0);
  return {delivery.record.sequence, delivery.token};
}

void fill_streams(Store& store) {
  do_one(store, CreateStream{.stream = "going", .settings = {}});
  do_one(store, DeleteStream{"going"});
  StreamSettings settings;
  settings.window = Window::forever();
  do_one(store, CreateStream{.stream = "jobs", .settings = settings});
  settings.quota_bytes = 1'000'000;
  settings.retention.count = 1'000;
  do_one(store, ConfigureStream{.stream = "jobs", .settings = settings});
  const std::array headers{Header{"kind", "test"}};
  for (const char* id : {"a", "b", "c", "d", "e"}) {
    do_one(store,
           Append{.stream = "jobs", .payload = "job", .id = id, .group = "g", .headers = headers});
  }
  for (const char* id : {"f", "g", "h"}) {
    do_one(store, Append{.stream = "jobs", .payload = "job", .id = id});
  }
  do_one(store, Append{.stream = "jobs",
                       .payload = "job",
                       .id = "h",
                       .producer = ProducerMark{"again", Epoch{1}, ProducerSequence{0}}});
  do_one(store, Append{.stream = "jobs",
                       .payload = "job",
                       .producer = ProducerMark{"retired", Epoch{1}, ProducerSequence{0}}});
  do_one(store,
         RetireProducer{.stream = "jobs", .producer = "retired", .actor = "me", .reason = "done"});
}

void fill_consumers(Store& store) {
  ConsumerSettings once;
  once.attempts_max = 1;
  do_one(store, CreateConsumer{.stream = "jobs", .consumer = "once", .settings = once});
  for (const char* reason : {"stays dead", "put back"}) {
    do_one(store, Nack{.stream = "jobs",
                       .consumer = "once",
                       .receipt = receive_one(store, "once"),
                       .reason = reason});
  }
  do_one(store, Redrive{.dead_letters = "jobs.dead", .sequence = Sequence{2}});
  do_one(store,
         Extend{.stream = "jobs", .consumer = "once", .receipt = receive_one(store, "once")});
  once.last_attempt = LastAttempt::kBlock;
  do_one(store, CreateConsumer{.stream = "jobs", .consumer = "blocked", .settings = once});
  do_one(store, Nack{.stream = "jobs",
                     .consumer = "blocked",
                     .receipt = receive_one(store, "blocked"),
                     .reason = "never"});
  do_one(store, CreateConsumer{.stream = "jobs", .consumer = "sought"});
  do_one(store, Seek{.stream = "jobs", .consumer = "sought", .to = Sequence{4}});
  do_one(store, CreateConsumer{.stream = "jobs", .consumer = "gone"});
  do_one(store, DeleteConsumer{.stream = "jobs", .consumer = "gone"});
}

void fill_claims(Store& store) {
  const auto claim = [&store](std::string_view key) {
    const Op op = Claim{.scope = "jobs", .key = key, .content = "x", .owner = "w"};
    return std::get<Claimed>(commit_one(store, op)).fence;
  };
  do_one(store, Renew{.scope = "jobs", .key = "open", .fence = claim("open")});
  do_one(store, Settle{.scope = "jobs",
                       .key = "failed",
                       .fence = claim("failed"),
                       .outcome = Outcome::kFailed,
                       .reason = "no"});
  claim("forgotten");
  do_one(store, Forget{.scope = "jobs", .key = "forgotten", .actor = "me", .reason = "why"});
  const Op lapsing = Claim{.scope = "jobs",
                           .key = "lapsed",
                           .content = "x",
                           .owner = "w",
                           .lease = Duration{1},
                           .on_lapse = OnLapse::kUnknown};
  while (!std::holds_alternative<UnknownOutcome>(commit_one(store, lapsing))) {
  }
}

// One transaction with every operation that can wait in it, and one of each end.
void fill_transactions(Store& store) {
  const auto begin = [&store](std::string_view name) {
    const Op op = Begin{.transaction = name, .timeout = limits::kTransactionTimeoutMax};
    return std::get<Began>(commit_one(store, op)).epoch;
  };
  const std::vector<Op> ops = {
      Append{.stream = "jobs", .payload = "staged", .id = "staged", .group = "g"},
      Settle{.scope = "jobs", .key = "open", .fence = Fence{1}},
      Ack{.stream = "jobs", .consumer = "once", .receipt = {Sequence{3}, Token{3}}},
      Advance{.source = "other", .to = "1", .epoch = Epoch{1}},
      Set{.name = "staged", .value = "v"},
      Unset{.name = "staged"},
      Expire{.name = "staged", .expiry = {Expiry::Kind::kAt, kLate, {}}},
      Add{.name = "staged"},
  };
  const Commit staged{.ops = ops, .transaction = TransactionRef{"open", begin("open")}};
  EXPECT_TRUE(store.commit(staged).ok());
  do_one(store, End{.transaction = "done", .epoch = begin("done"), .finish = Finish::kCommit});
  do_one(store, End{.transaction = "not", .epoch = begin("not"), .finish = Finish::kAbort});
}

void expect_records(Store& store) {
  const auto read = store.read({.stream = "orders", .max = 1000});
  ASSERT_TRUE(read.ok()) << read.error().text();
  ASSERT_EQ(read->records.size(), 91u);
  EXPECT_EQ(read->records.front().sequence, Sequence{11});
  EXPECT_EQ(read->records.front().id, "order-11");
  EXPECT_EQ(read->records.front().payload, "payload of order-11");
  EXPECT_EQ(read->records.back().payload, "by producer");
  // The id of a record that was trimmed away.
  const Verdict again = commit_one(store, Append{.stream = "orders",
                                                 .payload = "payload of order-1",
                                                 .id = "order-1",
                                                 .group = "customer-1"});
  ASSERT_TRUE(std::holds_alternative<Duplicate>(again)) << word_of(again);
  EXPECT_EQ(std::get<Duplicate>(again).sequence, Sequence{1});
  const Verdict other =
      commit_one(store, Append{.stream = "orders", .payload = "another", .id = "order-2"});
  EXPECT_TRUE(std::holds_alternative<Conflict>(other));
  const Verdict old =
      commit_one(store, Append{.stream = "orders",
                               .payload = "by producer",
                               .producer = ProducerMark{"p", Epoch{2}, ProducerSequence{0}}});
  EXPECT_EQ(std::get<Fenced>(old).current, 4u);
  const Verdict opened = commit_one(store, OpenProducer{.stream = "orders", .producer = "p"});
  const auto [epoch, former, former_next, former_last] = std::get<Opened>(opened);
  EXPECT_GT(epoch, Epoch{4});
  EXPECT_EQ(former, Epoch{3});
  EXPECT_EQ(former_next, ProducerSequence{1});
  EXPECT_EQ(former_last, Sequence{101});
}

void expect_claims(Store& store) {
  const Verdict done =
      commit_one(store, Claim{.scope = "s", .key = "done", .content = "x", .owner = "other"});
  ASSERT_TRUE(std::holds_alternative<DuplicateClaim>(done)) << word_of(done);
  EXPECT_EQ(std::get<DuplicateClaim>(done).result, (StoredResult{201, "h: v", kBody}));
  const Verdict doubt =
      commit_one(store, Claim{.scope = "s", .key = "doubt", .content = "x", .owner = "other"});
  ASSERT_TRUE(std::holds_alternative<UnknownOutcome>(doubt)) << word_of(doubt);
  EXPECT_EQ(std::get<UnknownOutcome>(doubt).reason, "timed out");
}

void expect_rest(Store& store) {
  const auto stats = store.describe("orders");
  ASSERT_TRUE(stats.ok());
  ASSERT_EQ(stats->consumers.size(), 1u);
  EXPECT_EQ(stats->consumers.front().consumer, "c");
  const auto set = store.find_register("register");
  ASSERT_TRUE(set.ok() && set->has_value());
  EXPECT_EQ((*set)->value, "value");
  const auto going = store.find_register("going");
  ASSERT_TRUE(going.ok() && going->has_value());
  EXPECT_EQ((*going)->value, "42");
  EXPECT_EQ((*going)->expires_at, kLate);
  EXPECT_FALSE(store.find_register("gone").value().has_value());
  const auto position = store.find_position("source");
  ASSERT_TRUE(position.ok() && position->has_value());
  EXPECT_EQ((*position)->value, "42");
  const Op receive = Receive{.stream = "orders", .consumer = "c", .max = 3, .owner = "w"};
  Commit again{.ops = {&receive, 1}, .id_window = Window::forever()};
  again.id = "receive-1";
  const auto repeated = store.commit(again);
  ASSERT_TRUE(repeated.ok()) << repeated.error().text();
  EXPECT_TRUE(repeated->repeated);
}

// Of what fill() adds to fill_first(): that it is all read is told by comparing states; here is
// what a user sees of it.
void expect_more(Store& store) {
  const auto dead = store.read({.stream = "jobs.dead", .max = 10});
  ASSERT_TRUE(dead.ok()) << dead.error().text();
  ASSERT_EQ(dead->records.size(), 1U);
  ASSERT_TRUE(dead->records.front().lineage.has_value());
  EXPECT_EQ(dead->records.front().lineage->reason, "stays dead");
  const Verdict again = commit_one(store, Append{.stream = "jobs", .payload = "job", .id = "f"});
  EXPECT_TRUE(std::holds_alternative<Duplicate>(again)) << word_of(again);
  EXPECT_FALSE(store.describe("going").ok());
  const Verdict aged =
      commit_one(store, Claim{.scope = "jobs", .key = "failed", .content = "x", .owner = "other"});
  ASSERT_TRUE(std::holds_alternative<Claimed>(aged)) << word_of(aged);
  EXPECT_EQ(std::get<Claimed>(aged).attempt, 2U);
  const auto lapsed = store.find_claim("jobs", "lapsed");
  ASSERT_TRUE(lapsed.ok() && lapsed->has_value());
  EXPECT_EQ((*lapsed)->state, ClaimState::kUnknown);
  EXPECT_EQ((*lapsed)->owner, "w");
}

// Log time is written down before something is told not to be there, if what is durable is older
// than two seconds.
void fill_time(Store& store) {
  const std::uint64_t before = store.statistics().value().batches;
  while (store.statistics().value().batches == before) {
    EXPECT_FALSE(store.find_register("nowhere").value().has_value());
  }
}

}  // namespace

void fill(Store& store) {
  StreamSettings settings;
  settings.window = Window::forever();
  commit_one(store, CreateStream{.stream = "ballast", .settings = settings});
  fill_first(store);
  fill_streams(store);
  fill_consumers(store);
  fill_claims(store);
  fill_transactions(store);
  fill_time(store);
}

void add_ballast(Store& store) {
  commit_one(store, Append{.stream = "ballast", .payload = kBallast});
}

void expect_content(Store& store, std::uint16_t version) {
  expect_records(store);
  expect_claims(store);
  expect_rest(store);
  if (version >= 2) expect_more(store);
}

}  // namespace hapax
