#include "core/tenants.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/show_text.h"
#include "core/state_codec.h"
#include "core/test_store.h"

namespace hapax::core {
namespace {

using std::chrono::hours;
using testing::HasSubstr;
using testing::Not;

class TenantsTest : public testing::Test {
 protected:
  TenantsTest() { store.begin(Duration{0}); }

  static std::string thief(std::string_view name) { return "\x01thief\x01" + std::string(name); }
  static std::string victim(std::string_view name) { return "\x01victim\x01" + std::string(name); }

  Verdict run(const Op& op) {
    return std::get<Answer>(store.commit({.ops = {&op, 1}})).verdicts.front();
  }
  // Nothing, or why it was refused.
  std::string refusal(const Op& op, Errc code) {
    const Verdict verdict = run(op);
    const auto* refused = std::get_if<Refused>(&verdict);
    if (refused == nullptr) return holds(verdict) ? "" : std::string(word_of(verdict));
    EXPECT_EQ(refused->error.code, code) << refused->error.text();
    return refused->error.detail;
  }
  Op put(const std::string& name, Expiry expiry = {}) {
    return Set{.name = name, .value = value, .mode = SetMode::kAlways, .expiry = expiry};
  }
  void share(TenantShare each) {
    store.state.tenants.set([each](std::string_view) { return each; });
  }
  // How many of these are done before one is refused.
  template <class Make>
  int count(Errc code, const Make& make) {
    for (int i = 0; i < 100'000; ++i) {
      const std::string name = std::to_string(i);
      if (!refusal(make(name), code).empty()) return i;
    }
    return -1;
  }
  Tenant& of_thief() { return store.state.tenants.of(thief("")); }

  const std::string value = std::string(1'000, 'v');
  std::string kept;  // what the latest operation refers to
  rig::MemoryStore store;
};

TEST_F(TenantsTest, NoSetOfTenantsTakesAllTheMemory) {
  store.state.memory_max = store.state.memory_bytes() + 1'000'000;
  share({.memory_max = TenantShare::kWhatIsFree});
  const auto fill = [&](std::string_view tenant) {
    return count(Errc::kMemoryBudget, [&](const std::string& name) {
      kept = "\x01" + std::string(tenant) + "\x01" + name;
      return put(kept);
    });
  };
  const int alone = fill("a");
  EXPECT_GT(alone, 350);
  EXPECT_LT(alone, 450);  // about half
  for (const char* const other : {"b", "c", "d"}) EXPECT_GT(fill(other), 10) << other;
  kept = thief("n");
  EXPECT_EQ(refusal(put(kept), Errc::kMemoryBudget), "");
}

TEST_F(TenantsTest, EachKindOfMemoryCountsAndComesBack) {
  const std::string stream = thief("s");
  const std::string scope = thief("q");
  const std::string source = thief("src");
  const std::string name = thief("t");
  const std::string key = thief("k");
  const auto grows = [&](const Op& op) {
    const std::uint64_t before = of_thief().memory;
    EXPECT_TRUE(holds(run(op)));
    EXPECT_GT(of_thief().memory, before);
  };
  grows(CreateStream{stream, {}});
  grows(Append{.stream = stream, .payload = "p", .id = "i", .group = "g"});
  grows(OpenProducer{stream, "w"});
  grows(CreateConsumer{stream, "c", {}});
  grows(Claim{.scope = scope, .key = "k", .owner = "w"});
  grows(Advance{source, "", "1", Epoch{1}});
  grows(Begin{name});
  grows(put(key, {.kind = Expiry::Kind::kAfter, .after = hours{1}}));
  const Tenant& has = of_thief();
  EXPECT_EQ(has.streams, 1U);
  EXPECT_EQ(has.registers, 1U);
  EXPECT_EQ(has.transactions_open, 1U);
  EXPECT_GT(has.storage, value.size());

  store.roll_back();
  EXPECT_EQ(has.memory, 0U);
  EXPECT_EQ(has.storage, 0U);
  EXPECT_EQ(has.streams + has.registers + has.transactions_open, 0U);
}

TEST_F(TenantsTest, IdsAndResultsGoWithTheirTime) {
  const std::string stream = thief("s");
  const std::string scope = thief("q");
  run(CreateStream{stream, {.window = Window{hours{1}}}});
  run(Append{.stream = stream, .payload = "p"});
  const std::uint64_t before = of_thief().memory;
  const std::uint64_t stored = of_thief().storage;
  run(Append{.stream = stream, .payload = "p", .id = "i"});
  run(Trim{stream, Sequence{3}});
  const Fence fence = std::get<Claimed>(run(Claim{.scope = scope,
                                                  .key = "k",
                                                  .retention = Window{hours{1}},
                                                  .tombstone = Window{hours{1}}}))
                          .fence;
  EXPECT_EQ(of_thief().storage, 0U);
  run(Settle{.scope = scope, .key = "k", .fence = fence, .result = {200, "", value}});
  EXPECT_GT(of_thief().memory, before);
  EXPECT_GT(of_thief().storage, value.size());
  store.keep();
  rig::collect_all(store.state, store.now + hours{2});
  EXPECT_LT(of_thief().memory, before);  // A run went, too.
  EXPECT_EQ(of_thief().storage, 0U);
  EXPECT_GT(stored, 0U);
}

TEST_F(TenantsTest, ARestartCountsTheSame) {
  const std::string stream = thief("s");
  const std::string key = thief("k");
  run(CreateStream{stream, {}});
  run(Append{.stream = stream, .payload = "p", .id = "i", .group = "g"});
  run(put(key));
  store.keep();
  std::string bytes;
  encode_state(store.state, bytes);
  State again{4};
  ASSERT_TRUE(decode_state(bytes, again));
  for (const auto& one : store.state.ids.snapshot().counts) {
    charge_restored(again, one.generation, one.counts, store.now);
  }
  const Tenant& restored = again.tenants.of(key);
  EXPECT_EQ(restored.memory, of_thief().memory);
  EXPECT_EQ(restored.storage, of_thief().storage);
  EXPECT_EQ(restored.streams, 1U);
  EXPECT_EQ(restored.registers, 1U);
}

TEST_F(TenantsTest, TransactionsOfOneLeaveSomeToOthers) {
  share({.transactions_max = TenantShare::kWhatIsFree});
  const int open = count(Errc::kRateLimited, [&](const std::string& name) {
    kept = thief(name);
    return Begin{kept};
  });
  EXPECT_EQ(open, limits::kTransactionsOpenMax / 2);
  kept = victim("mine");
  EXPECT_TRUE(holds(run(Begin{kept})));
  // Its own name anew takes no further place.
  kept = thief("0");
  EXPECT_TRUE(holds(run(Begin{kept})));
}

TEST_F(TenantsTest, StreamsEndAtTheShare) {
  share({.streams_max = 3});
  const int made = count(Errc::kLimitExceeded, [&](const std::string& name) {
    kept = thief(name);
    return CreateStream{kept, {}};
  });
  EXPECT_EQ(made, 3);
  kept = thief("0");
  EXPECT_TRUE(holds(run(DeleteStream{kept})));
  EXPECT_TRUE(holds(run(CreateStream{kept, {}})));
  kept = thief("$audit");  // The server's own.
  EXPECT_TRUE(holds(run(CreateStream{kept, {}})));
}

// A7: nothing is added beyond the storage, and only what was added counts.
TEST_F(TenantsTest, StorageCountsWhatIsThere) {
  share({.storage_max = 5'000});
  const std::string stream = thief("s");
  const std::string scope = thief("q");
  const std::string key = thief("k");
  run(CreateStream{stream, {}});
  const Fence fence = std::get<Claimed>(run(Claim{.scope = scope, .key = "k"})).fence;
  const Settle wrong{.scope = scope, .key = "k", .fence = fence.next(), .result = {200, "", value}};
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(std::holds_alternative<Fenced>(run(wrong)));
  EXPECT_EQ(of_thief().storage, 0U);
  Settle right = wrong;
  right.fence = fence;
  EXPECT_TRUE(holds(run(right)));
  EXPECT_GE(of_thief().storage, 1'000U);
  const std::uint64_t once = of_thief().storage;
  EXPECT_TRUE(holds(run(right)));  // A repeat.
  EXPECT_EQ(of_thief().storage, once);
  EXPECT_TRUE(holds(run(put(key))));
  EXPECT_TRUE(holds(run(put(key))));  // In its place.
  const std::string big(4'000, 'x');
  EXPECT_THAT(refusal(Append{.stream = stream, .payload = big}, Errc::kQuotaExceeded),
              HasSubstr("storage_max"));
  EXPECT_TRUE(holds(run(Unset{key})));
  EXPECT_TRUE(holds(run(Append{.stream = stream, .payload = value})));
  const std::string other = victim("k");
  EXPECT_TRUE(holds(run(put(other))));
}

// A7: answers that are kept under the id of their commit are stored, too; a few words always are.
TEST_F(TenantsTest, StorageCountsAnswersThatAreKept) {
  const std::string key = thief("k");
  const std::string fresh = thief("fresh");
  run(put(key));
  share({.storage_max = 5'000});
  std::vector<Op> ops(8, Get{.name = key});
  ops.push_back(put(fresh));
  const std::string id = thief("long");
  const Executed refused = store.commit({.ops = ops, .id = id});
  ASSERT_TRUE(std::holds_alternative<Error>(refused));
  EXPECT_EQ(std::get<Error>(refused).code, Errc::kQuotaExceeded);
  EXPECT_FALSE(std::get<Held>(run(Get{.name = fresh})).applied) << "nothing happened";
  const Op gone = Unset{key};
  const std::string other = thief("short");
  EXPECT_TRUE(std::holds_alternative<Answer>(store.commit({.ops = {&gone, 1}, .id = other})));
}

// A7: a dead letter is stored, too. Without room for it the record stays where it is.
TEST_F(TenantsTest, StorageBindsDeadLetters) {
  share({.storage_max = 5'000});
  const std::string stream = thief("s");
  const std::string dead = thief("s.dead");
  run(CreateStream{stream, {}});
  run(CreateConsumer{stream, "c", {.attempts_max = 1}});
  const std::string big(3'000, 'x');
  ASSERT_TRUE(holds(run(Append{.stream = stream, .payload = big})));
  const Receive receive{.stream = stream, .consumer = "c", .max = 9, .lease = Duration{1'000}};
  const auto received = [&] { return std::get<Received>(run(receive)).deliveries; };
  const Delivery held = received().at(0);
  const Nack nack{stream, "c", {held.record.sequence, held.token}};
  EXPECT_THAT(refusal(nack, Errc::kQuotaExceeded), HasSubstr("storage_max"));
  // The end of the lease gives it up no more than the nack did, and the others go on.
  ASSERT_TRUE(holds(run(Append{.stream = stream, .payload = "small"})));
  store.keep();
  store.begin(Duration{1'000});
  ASSERT_EQ(received().size(), 1U);
  EXPECT_EQ(store.state.find_stream(dead), nullptr);
  EXPECT_LE(of_thief().storage, 5'000U);
  share({.storage_max = 10'000});
  EXPECT_TRUE(received().empty());
  ASSERT_NE(store.state.find_stream(dead), nullptr);
  EXPECT_EQ(store.state.find_stream(dead)->last, Sequence{1});
}

// A7: so are the lines of the audit. What frees space has a reserve for its own.
TEST_F(TenantsTest, StorageBindsAuditLines) {
  const std::string stream = thief("s");
  const std::string audit = thief("$audit");
  const std::string text(1'000, 't');
  run(CreateStream{stream, {}});
  run(CreateStream{audit, {}});
  share({.storage_max = 5'000});
  const auto noted = [&](const Op& act) {
    const std::vector<Op> ops{act, Append{.stream = audit, .payload = text}};
    return std::get<Answer>(store.commit({.ops = ops, .notes = 1})).committed;
  };
  std::vector<std::string> names;
  for (int i = 0; i < 200; ++i) names.push_back("c" + std::to_string(i));
  int made = 0;
  while (noted(CreateConsumer{stream, names[static_cast<std::size_t>(made)], {}})) ++made;
  EXPECT_EQ(made, 4);
  EXPECT_EQ(store.state.find_stream(stream)->consumers.size(), 4U) << "nothing is left of the act";
  EXPECT_LE(of_thief().storage, 5'000U);
  for (int i = 0; i < made; ++i) {
    EXPECT_TRUE(noted(DeleteConsumer{stream, names[static_cast<std::size_t>(i)]}));
  }
  int freed = 0;
  while (freed < 1'000 && noted(Trim{stream, Sequence{1}})) ++freed;
  EXPECT_LT(freed, 70);
  EXPECT_LE(of_thief().storage, 5'000U + kAuditReserve);
  // What frees more than its line takes is never refused.
  EXPECT_TRUE(noted(Trim{audit, Sequence{60}}));
}

// A13: of a commit in which each stands alone, each act holds with its own line or not at all.
TEST_F(TenantsTest, AnActHoldsWithItsLineOrNotAtAll) {
  const std::string stream = thief("s");
  const std::string other = thief("t");
  const std::string audit = thief("$audit");
  const std::string text(1'000, 't');
  for (const std::string& name : {stream, other, audit}) run(CreateStream{name, {}});
  for (int i = 0; i < 4; ++i) run(Append{.stream = other, .payload = text});
  share({.storage_max = 5'000});
  const Append line{.stream = audit, .payload = text};
  const std::vector<Op> ops{CreateConsumer{stream, "c", {}},
                            CreateConsumer{stream, "d", {}},
                            Append{.stream = stream, .payload = "p"},
                            DeleteConsumer{stream, "c"},
                            line,
                            line,
                            line};
  const std::vector<std::size_t> noted{0, 1, 3};
  const auto answer =
      std::get<Answer>(store.commit({.ops = ops, .mode = Mode::kEach, .notes = 3, .noted = noted}));
  ASSERT_EQ(answer.verdicts.size(), ops.size());
  EXPECT_FALSE(holds(answer.verdicts[0])) << "4,000 bytes are taken, and its line has no room";
  EXPECT_EQ(std::get<Refused>(answer.verdicts[0]).error.code, Errc::kQuotaExceeded);
  EXPECT_FALSE(holds(answer.verdicts[1]));
  EXPECT_TRUE(holds(answer.verdicts[2])) << "it is no act";
  EXPECT_EQ(store.state.find_stream(stream)->consumers.size(), 0U);
  EXPECT_EQ(store.state.find_stream(audit)->last, Sequence{0});
  // What only frees has its reserve beside those that do not.
  const std::vector<Op> frees{CreateConsumer{stream, "c", {}}, Trim{other, Sequence{2}}, line,
                              line};
  const std::vector<std::size_t> both{0, 1};
  const auto freed = std::get<Answer>(
      store.commit({.ops = frees, .mode = Mode::kEach, .notes = 2, .noted = both}));
  EXPECT_FALSE(holds(freed.verdicts[0]));
  EXPECT_TRUE(holds(freed.verdicts[1]));
  EXPECT_EQ(freed.verdicts[2], freed.verdicts[0]) << "it was the line that was refused";
  EXPECT_TRUE(std::holds_alternative<Appended>(freed.verdicts[3]));
  EXPECT_EQ(store.state.find_stream(audit)->last, Sequence{1});
  // An act that is refused for a reason of its own is told from that.
  const std::vector<Op> none{DeleteConsumer{other, "none"}, line};
  const std::vector<std::size_t> first{0};
  const auto refused = std::get<Answer>(
      store.commit({.ops = none, .mode = Mode::kEach, .notes = 1, .noted = first}));
  EXPECT_FALSE(holds(refused.verdicts[0]));
  EXPECT_EQ(refused.verdicts[1], Verdict{NotApplied{}});
}

// A13: without memory there is an audit all the same.
TEST_F(TenantsTest, ATenantWithoutMemoryHasAnAudit) {
  share({.memory_max = 1});
  const std::string stream = thief("s");
  const std::string audit = thief("$audit");
  EXPECT_FALSE(holds(run(CreateStream{stream, {}})));
  EXPECT_TRUE(holds(run(CreateStream{audit, {}})));
  store.state.memory_max = 0;
  EXPECT_TRUE(holds(run(Append{.stream = audit, .payload = "line"})));
}

TEST_F(TenantsTest, StorageBindsTheStoresOwnAudit) {
  share({.storage_max = 5'000});
  const std::string reason(limits::kReasonBytesMax, 'r');
  const auto forgets = [&](const std::string& scope, const std::string& key) {
    run(Claim{.scope = scope, .key = key});
    return holds(run(Forget{.scope = scope, .key = key, .actor = "a", .reason = reason}));
  };
  int lines = 0;
  while (lines < 1'000 && forgets("q", std::to_string(lines))) ++lines;
  EXPECT_GT(lines, 10);
  EXPECT_LT(lines, 80);
  EXPECT_LE(store.state.tenants.of("").storage, 5'000U + kAuditReserve);
  EXPECT_EQ(store.state.open_claims.size(), 1U) << "the last one is not forgotten without a line";
  // Of a tenant the server keeps the audit, at the tenant's cost.
  EXPECT_TRUE(forgets(thief("q"), "k"));
}

// A7: registers go within the tenant's time.
TEST_F(TenantsTest, ARegisterSaysWhenItGoes) {
  using Kind = Expiry::Kind;
  const std::string old = thief("old");
  run(put(old));  // From before there was a limit.
  share({.ttl_max = hours{2}});
  const std::string key = thief("k");
  const auto refused = [&](const Op& op) {
    const std::string why = refusal(op, Errc::kLimitExceeded);
    EXPECT_TRUE(why.empty() || why.find("ttl_max") != std::string::npos) << why;
    return !why.empty();
  };
  EXPECT_TRUE(refused(put(key)));
  EXPECT_TRUE(refused(put(key, {.kind = Kind::kAfter, .after = hours{3}})));
  EXPECT_TRUE(refused(put(key, {.kind = Kind::kAt, .at = store.now + hours{3}})));
  EXPECT_TRUE(refused(put(key, {.kind = Kind::kKeep})));
  EXPECT_TRUE(refused(Add{.name = key}));
  EXPECT_FALSE(refused(put(key, {.kind = Kind::kAfter, .after = hours{2}})));
  EXPECT_FALSE(refused(put(key, {.kind = Kind::kAt, .at = store.now + hours{2}})));
  EXPECT_FALSE(refused(put(key, {.kind = Kind::kKeep})));
  EXPECT_TRUE(refused(Expire{.name = key, .expiry = {.kind = Kind::kNever}}));
  EXPECT_TRUE(refused(Expire{.name = key, .expiry = {.kind = Kind::kAfter, .after = hours{3}}}));
  EXPECT_FALSE(refused(Expire{.name = key, .expiry = {.kind = Kind::kAfter, .after = hours{1}}}));
  EXPECT_FALSE(refused(put(old, {.kind = Kind::kKeep})));
  EXPECT_TRUE(refused(put(old)));
  EXPECT_FALSE(refused(Expire{.name = old, .expiry = {.kind = Kind::kNever}}));  // It does stay.
}

// Where nobody says when a register goes, the tenant's default says it, within its limit.
TEST_F(TenantsTest, ARegisterOfWhichNothingIsSaidGoesAfterTheDefault) {
  using Kind = Expiry::Kind;
  const auto end = [&](const Op& op) { return std::get<Held>(run(op)).expires_at - store.now; };
  const std::string key = thief("k");
  share({.ttl_default = hours{1}});
  EXPECT_EQ(end(put(key)), hours{1});
  EXPECT_EQ(end(put(key, {.kind = Kind::kAfter, .after = hours{9}})), hours{9});
  EXPECT_EQ(end(put(key, {.kind = Kind::kKeep})), hours{9});
  const std::string absent = thief("absent");
  EXPECT_EQ(end(Set{.name = absent, .value = value, .mode = SetMode::kAbsent}), hours{1});
  const std::string kept_new = thief("new");
  EXPECT_EQ(end(put(kept_new, {.kind = Kind::kKeep})), hours{1});
  const std::string sum = thief("sum");
  EXPECT_EQ(end(Add{.name = sum}), hours{1});
  run(Expire{.name = sum, .expiry = {.kind = Kind::kNever}});
  EXPECT_EQ(std::get<Held>(run(Add{.name = sum})).expires_at, Time::max()) << "it was said to stay";
  share({.ttl_max = std::chrono::minutes{30}, .ttl_default = hours{1}});
  EXPECT_EQ(end(put(key)), std::chrono::minutes{30});
}

// One limit for what is stored and what is remembered: ids count, and registers count once.
TEST_F(TenantsTest, TheTotalCoversWhatIsRemembered) {
  share({.total_max = 20'000});
  const std::string stream = thief("s");
  const std::string key = thief("k");
  run(CreateStream{stream, {}});
  const std::uint64_t before = of_thief().total();
  EXPECT_TRUE(holds(run(put(key))));
  EXPECT_LT(of_thief().total() - before, 1'500U) << "1,000 bytes, not twice";
  EXPECT_TRUE(holds(run(Unset{key})));
  EXPECT_EQ(of_thief().total(), before);
  const int ids = count(Errc::kQuotaExceeded, [&](const std::string& id) {
    kept = id;
    return Append{.stream = stream, .payload = "", .id = kept};
  });
  EXPECT_GT(ids, 100);
  EXPECT_LT(ids, 300);
  const std::string scope = thief("q");
  EXPECT_LT(of_thief().total(), 20'200U) << "what the journal adds to a record is not foreseen";
  const auto claims = count(Errc::kQuotaExceeded, [&](const std::string& name) {
    kept = name;
    return Claim{.scope = scope, .key = kept};
  });
  EXPECT_LT(claims, 10);
  EXPECT_THAT(refusal(put(key), Errc::kQuotaExceeded), HasSubstr("total_max"));
  const std::string other = victim("k");
  EXPECT_TRUE(holds(run(put(other))));
}

// What every consumer has acked goes before anything is refused for want of room.
TEST_F(TenantsTest, AckedRecordsMakeRoom) {
  const std::string stream = thief("s");
  const std::string other = thief("other");
  const std::string key = thief("k");
  for (const TenantShare& each :
       {TenantShare{.storage_max = 5'000}, TenantShare{.total_max = 20'000}}) {
    share(each);
    run(CreateStream{stream, {.retention = {.acked_by_all = true}}});
    run(CreateStream{other, {}});
    for (int i = 0; i < 50; ++i) {
      ASSERT_EQ(refusal(Append{.stream = stream, .payload = value}, Errc::kQuotaExceeded), "") << i;
      const auto received = std::get<Received>(run(Receive{.stream = stream, .consumer = "c"}));
      const Delivery& one = received.deliveries.at(0);
      run(Ack{stream, "c", {one.record.sequence, one.token}});
    }
    for (int i = 0; i < 3; ++i) run(Append{.stream = other, .payload = value});
    EXPECT_EQ(refusal(put(key), Errc::kQuotaExceeded), "") << "also for what is no record";
    EXPECT_TRUE(holds(run(Unset{key})));
    run(DeleteStream{stream});
    run(DeleteStream{other});
  }
}

TEST_F(TenantsTest, AckedRecordsMakeRoomInTheQuotaOfTheStream) {
  const std::string stream = thief("s");
  run(CreateStream{stream, {.retention = {.acked_by_all = true}, .quota_bytes = 3'000}});
  for (int i = 0; i < 50; ++i) {
    ASSERT_EQ(refusal(Append{.stream = stream, .payload = value}, Errc::kQuotaExceeded), "") << i;
    const auto received = std::get<Received>(run(Receive{.stream = stream, .consumer = "c"}));
    run(Ack{
        stream, "c", {received.deliveries.at(0).record.sequence, received.deliveries.at(0).token}});
  }
}

// What makes no room changes nothing: a refusal of which nothing was written is decided again under
// its id when there is room.
TEST_F(TenantsTest, ARefusalFreesNothingInVain) {
  share({.storage_max = 3'000});
  const std::string stream = thief("s");
  run(CreateStream{stream, {.retention = {.acked_by_all = true}}});
  run(Append{.stream = stream, .payload = value});
  const auto received = std::get<Received>(run(Receive{.stream = stream, .consumer = "c"}));
  run(Ack{
      stream, "c", {received.deliveries.at(0).record.sequence, received.deliveries.at(0).token}});
  const std::uint64_t before = of_thief().storage;
  const std::string big(4'000, 'x');
  const Op op = Append{.stream = stream, .payload = big};
  const std::string id = thief("id");
  const auto answer =
      std::get<Answer>(store.commit({.ops = {&op, 1}, .mode = Mode::kEach, .id = id}));
  EXPECT_TRUE(std::holds_alternative<Refused>(answer.verdicts.front()));
  EXPECT_EQ(of_thief().storage, before);
  share({});
  const auto again =
      std::get<Answer>(store.commit({.ops = {&op, 1}, .mode = Mode::kEach, .id = id}));
  EXPECT_TRUE(std::holds_alternative<Appended>(again.verdicts.front()));
}

// A consumer that a receive makes on the outbox has the attempts that its tenant says.
TEST_F(TenantsTest, TheOutboxSaysHowOftenItsRecordsAreTried) {
  share({.outbox = "events", .outbox_attempts_max = 2});
  const auto handed_out = [&](const std::string& stream) {
    run(CreateStream{stream, {}});
    run(Append{.stream = stream, .payload = "p"});
    for (int i = 0; i < 20; ++i) {
      const auto received = std::get<Received>(run(Receive{.stream = stream, .consumer = "c"}));
      if (received.deliveries.empty()) return i;
      const Delivery& one = received.deliveries.front();
      run(Nack{stream, "c", {one.record.sequence, one.token}});
    }
    return -1;
  };
  EXPECT_EQ(handed_out(thief("events")), 2);
  EXPECT_EQ(handed_out(thief("others")), 10);
}

TEST_F(TenantsTest, ANameIsAsLongForEverybody) {
  const std::string most(limits::kNameBytesMax, 'n');
  const std::string stream = thief(most);
  EXPECT_TRUE(holds(run(CreateStream{stream, {}})));
  EXPECT_TRUE(holds(run(Claim{.scope = stream, .key = most})));
  EXPECT_TRUE(holds(run(Begin{stream})));
  EXPECT_TRUE(holds(run(Advance{stream, "", "1", Epoch{1}})));
  const std::string name = thief(std::string(limits::kRegisterNameBytesMax, 'n'));
  EXPECT_TRUE(holds(run(put(name))));
  const std::string longer = stream + "n";
  EXPECT_THAT(refusal(CreateStream{longer, {}}, Errc::kLimitExceeded),
              HasSubstr("has 256; the most is 255"));
}

// A6: what a caller is told has its tenant's own names.
TEST_F(TenantsTest, NoMessageShowsTheFrame) {
  const std::string scope = thief("schlüssel");
  const std::string told =
      refusal(Forget{.scope = scope, .key = "k", .actor = "a", .reason = "r"}, Errc::kNotFound);
  EXPECT_EQ(told, "claim 'schlüssel/k' is not known");
  kept = thief("bücher");
  EXPECT_EQ(refusal(Append{.stream = kept}, Errc::kNotFound),
            "there is no stream 'bücher'; create it first");
  EXPECT_EQ(shown("a\x1b[1m\xff\xc2\x9b"), "'a\\x1b[1m\\xff\\xc2\\x9b'");
  EXPECT_EQ(shown(std::string(41, 'x')), "'" + std::string(40, 'x') + "…'");
}

TEST_F(TenantsTest, ATenantIsNotToldHowFullTheStoreIs) {
  store.state.memory_max = store.state.memory_bytes();
  kept = thief("k");
  EXPECT_THAT(refusal(put(kept), Errc::kMemoryBudget),
              Not(HasSubstr(std::to_string(store.state.memory_max))));
}

}  // namespace
}  // namespace hapax::core
