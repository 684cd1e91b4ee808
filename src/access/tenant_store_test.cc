#include "access/tenant_store.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "access/no_store_test.h"

namespace hapax::access {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const std::string kOfAcme =
    "\x01"
    "acme\x01";
const std::string kOfOther = "\x01other\x01";
const std::string kReaching = kOfOther + "orders";
const Time kLogTime{std::chrono::milliseconds{7}};

// Keeps the names it is asked for, and answers with names of several tenants; or fails.
class SharedByTenants : public NoStore {
 public:
  Result<Answer> commit(const Commit& commit) override {
    for (const Op& op : commit.ops) {
      std::visit([&](const auto& one) { detail::each_name(one, [&](auto name) { ask(name); }); },
                 op);
    }
    if (commit.id) ask(*commit.id);
    if (commit.transaction) ask(commit.transaction->name);
    if (fails) return failure();
    Answer answer{true};
    answer.verdicts = verdicts;
    return answer;
  }
  void submit(const Commit& commit, Done done) override {
    waiting = [this, commit, done = std::move(done)] { done(this->commit(commit)); };
  }
  void submit_here(const Commit& commit, Done done) override { done(this->commit(commit)); }

  Result<Records> read(const ReadRange& range) override {
    max = range.max;
    return answer(range.stream, Records{{record_from(kOfAcme + "origin")}, {}, {}, 3});
  }
  Result<std::optional<IdStatus>> find_id(std::string_view stream, std::string_view id,
                                          std::optional<std::string_view> group) override {
    return answer(below(stream, std::string(id) + "/" + std::string(group.value_or("none"))),
                  std::optional(IdStatus{Sequence{5}}));
  }
  Result<std::optional<ClaimStatus>> find_claim(std::string_view scope,
                                                std::string_view key) override {
    return answer(below(scope, key), std::optional(ClaimStatus{ClaimState::kUnknown}));
  }
  Result<std::optional<RegisterValue>> find_register(std::string_view name) override {
    return answer(name, std::optional(RegisterValue{"value"}));
  }
  Result<RegisterPage> scan_registers(const RegisterScan& scan) override {
    max = scan.max;
    return answer(scan.prefix,
                  RegisterPage{{"plain", kOfAcme + "a", kOfOther + "b"}, scan.cursor + 1});
  }
  Result<std::optional<Position>> find_position(std::string_view source) override {
    return answer(source, std::optional(Position{"at"}));
  }
  Result<std::optional<ProducerStatus>> find_producer(std::string_view stream,
                                                      std::string_view producer) override {
    return answer(below(stream, producer), std::optional(ProducerStatus{Epoch{2}}));
  }
  Result<StreamStats> describe(std::string_view stream) override {
    return answer(stream, StreamStats{std::string(stream)});
  }
  Result<UnackedPage> scan_unacked(const UnackedScan& scan) override {
    max = scan.max;
    return answer(below(scan.stream, scan.consumer), UnackedPage{});
  }
  Result<std::vector<std::string>> streams() override {
    return answer("", std::vector<std::string>{"plain", kOfAcme + "a", kOfOther + "b"});
  }
  Result<StreamPage> scan_streams(const StreamScan& scan) override {
    return answer("", StreamPage{{{"plain"}, {kOfAcme + "a"}, {kOfOther + "b"}}, scan.cursor + 1});
  }
  Result<Statistics> statistics() override {
    Statistics all;
    all.streams = 100;
    all.claims_open = 100;
    all.log_time = kLogTime;
    all.writes_refused = true;
    return all;
  }
  Result<std::vector<TenantUse>> tenants() override {
    TenantUse acme{.tenant = "acme", .memory_bytes = 4, .streams = 1, .registers = 2};
    acme.transactions_open = 3;
    return std::vector<TenantUse>{{.tenant = "", .streams = 50}, acme, {.tenant = "other"}};
  }
  std::uint64_t watch(const Watch& watch, Changed) override {
    if (const auto* claim = std::get_if<ClaimWatch>(&watch)) ask(below(claim->scope, claim->key));
    if (const auto* stream = std::get_if<StreamWatch>(&watch)) {
      ask(below(stream->stream, stream->consumer));
    }
    return 9;
  }
  void unwatch(std::uint64_t number) override { unwatched = number; }

  static Record record_from(std::string stream) {
    Record record;
    record.lineage = Lineage{.stream = std::move(stream)};
    return record;
  }

  std::vector<std::string> asked;
  std::vector<Verdict> verdicts;
  std::function<void()> waiting;
  std::uint64_t unwatched = 0;
  std::uint32_t max = 0;
  bool fails = false;

 private:
  static std::string below(std::string_view name, std::string_view key) {
    return std::string(name).append("/").append(key);
  }
  void ask(std::string_view name) { asked.emplace_back(name); }
  static Error failure() { return {Errc::kNotFound, "no '" + kOfAcme + "x', " + kOfAcme + "y"}; }
  template <class Value>
  Result<Value> answer(std::string_view name, Value value) {
    ask(name);
    if (fails) return failure();
    return value;
  }
};

class TenantStoreTest : public testing::Test {
 protected:
  // What the store was asked for since.
  std::vector<std::string> asked() { return std::exchange(store.asked, {}); }

  // Every question that has a name, with that name.
  template <class Visit>
  void each_question(std::string_view name, const Visit& visit) {
    visit(acme.read({.stream = name}));
    visit(acme.find_id(name, "id", std::nullopt));
    visit(acme.find_claim(name, "key"));
    visit(acme.find_register(name));
    visit(acme.find_position(name));
    visit(acme.find_producer(name, "p"));
    visit(acme.describe(name));
    visit(acme.scan_unacked({.stream = name}));
    const std::vector<Op> ops = {Append{.stream = name}};
    visit(acme.commit({.ops = ops}));
    visit(acme.commit({.id = name}));
    visit(acme.commit({.transaction = TransactionRef{name}}));
    acme.submit_here({.ops = ops}, visit);
    acme.submit({.ops = ops}, visit);
    if (store.waiting) std::exchange(store.waiting, nullptr)();
  }

  SharedByTenants store;
  TenantStore acme{store, "acme"};
  TenantStore nameless{store, ""};
};

// A6
TEST_F(TenantStoreTest, NamesGoInAsTheTenantsOwn) {
  ASSERT_TRUE(acme.read({.stream = "s", .max = 17}));
  EXPECT_EQ(store.max, 17U);
  ASSERT_TRUE(acme.find_id("s", "id", "group"));
  ASSERT_TRUE(acme.find_claim("s", "key"));
  ASSERT_TRUE(acme.find_register("s"));
  ASSERT_TRUE(acme.find_position("s"));
  ASSERT_TRUE(acme.find_producer("s", "p"));
  ASSERT_TRUE(acme.describe("s"));
  ASSERT_TRUE(acme.scan_unacked({.stream = "s", .consumer = "c", .max = 19}));
  EXPECT_EQ(store.max, 19U);
  ASSERT_TRUE(acme.scan_registers({.cursor = 4, .max = 18, .prefix = "s"}));
  EXPECT_EQ(store.max, 18U);
  EXPECT_THAT(asked(), ElementsAre(kOfAcme + "s", kOfAcme + "s/id/group", kOfAcme + "s/key",
                                   kOfAcme + "s", kOfAcme + "s", kOfAcme + "s/p", kOfAcme + "s",
                                   kOfAcme + "s/c", kOfAcme + "s"));
  ASSERT_TRUE(acme.scan_registers({}));
  EXPECT_THAT(asked(), ElementsAre(kOfAcme)) << "else the store would stop at pages of others";
  ASSERT_TRUE(acme.find_register(""));
  EXPECT_THAT(asked(), ElementsAre("")) << "no name is nobody's";
}

TEST_F(TenantStoreTest, WhatIsFoundComesBack) {
  EXPECT_EQ((*acme.find_id("s", "id", std::nullopt))->sequence, Sequence{5});
  EXPECT_EQ((*acme.find_claim("s", "key"))->state, ClaimState::kUnknown);
  EXPECT_EQ((*acme.find_register("s"))->value, "value");
  EXPECT_EQ((*acme.find_position("s"))->value, "at");
  EXPECT_EQ((*acme.find_producer("s", "p"))->epoch, Epoch{2});
  EXPECT_EQ(acme.describe("s")->stream, "s");
  const Result<Records> records = acme.read({.stream = "s"});
  EXPECT_EQ(records->stream_uid, 3U);
  EXPECT_EQ(records->records.front().lineage->stream, "origin");
}

// A6
TEST_F(TenantStoreTest, WhatIsAnothersIsNotListed) {
  EXPECT_THAT(*acme.streams(), ElementsAre("a"));
  EXPECT_THAT(*nameless.streams(), ElementsAre("plain"));
  const Result<RegisterPage> registers = acme.scan_registers({.cursor = 4});
  EXPECT_THAT(registers->names, ElementsAre("a"));
  EXPECT_EQ(registers->next, 5U);
  EXPECT_THAT(nameless.scan_registers({})->names, ElementsAre("plain"));
  EXPECT_THAT(acme.scan_registers({.prefix = kReaching})->names, IsEmpty());
  const Result<StreamPage> page = acme.scan_streams({.cursor = 4});
  ASSERT_EQ(page->streams.size(), 1U);
  EXPECT_EQ(page->streams.front().stream, "a");
  EXPECT_EQ(page->next, 5U);
  ASSERT_EQ(nameless.scan_streams({})->streams.size(), 1U);
  EXPECT_EQ(nameless.scan_streams({})->streams.front().stream, "plain");
}

TEST_F(TenantStoreTest, FiguresAreItsOwn) {
  const Result<std::vector<TenantUse>> uses = acme.tenants();
  ASSERT_EQ(uses->size(), 1U);
  EXPECT_EQ(uses->front().tenant, "acme");
  EXPECT_EQ(nameless.tenants()->size(), 3U);
  const Result<Statistics> figures = acme.statistics();
  EXPECT_EQ(figures->streams, 1U);
  EXPECT_EQ(figures->registers, 2U);
  EXPECT_EQ(figures->transactions_open, 3U);
  EXPECT_EQ(figures->memory_bytes, 4U);
  EXPECT_EQ(figures->claims_open, 0U) << "they would tell of others";
  EXPECT_EQ(figures->log_time, kLogTime);
  EXPECT_TRUE(figures->writes_refused);
  EXPECT_EQ(nameless.statistics()->claims_open, 100U);
}

// A6
TEST_F(TenantStoreTest, NoNameReachesIntoAnotherTenant) {
  std::size_t refused = 0;
  each_question(kReaching, [&](const auto& answer) {
    ++refused;
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error(),
              (Error{Errc::kInvalidArgument, "a name must not begin with the byte 0x01"}));
  });
  EXPECT_EQ(refused, 13U);
  EXPECT_EQ(acme.watch(StreamWatch{kReaching}, [] {}), 0U);
  EXPECT_EQ(acme.watch(ClaimWatch{kReaching, "key"}, [] {}), 0U);
  EXPECT_FALSE(nameless.describe(kReaching));
  EXPECT_THAT(asked(), IsEmpty());
}

// A6
TEST_F(TenantStoreTest, ErrorsHaveTheTenantsOwnNames) {
  store.fails = true;
  const auto check = [](const auto& answer) {
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error(), (Error{Errc::kNotFound, "no 'x', y"}));
  };
  each_question("s", check);
  check(acme.streams());
  check(acme.scan_streams({}));
  check(acme.scan_registers({}));
}

TEST_F(TenantStoreTest, CommitsHaveEveryNameOfTheTenantAndVerdictsNone) {
  const Received received{{{.record = SharedByTenants::record_from(kOfAcme + "origin")}}};
  const DuplicateClaim settled{.result = StoredResult{200, "", "body"}};
  store.verdicts = {received, Refused{{Errc::kNotFound, "no '" + kOfAcme + "d'"}}, settled};
  const std::vector<Op> ops = {Receive{"s", "c"}, CreateConsumer{"s", "c", {.dead_letters = "d"}},
                               Claim{"scope", "key"}};
  const Commit commit{.ops = ops, .id = "id", .transaction = TransactionRef{"t"}};
  const auto check = [&](const Result<Answer>& answer) {
    EXPECT_THAT(asked(), ElementsAre(kOfAcme + "s", kOfAcme + "s", kOfAcme + "d", kOfAcme + "scope",
                                     kOfAcme + "id", kOfAcme + "t"));
    const auto& record = std::get<Received>(answer->verdicts[0]).deliveries.front().record;
    EXPECT_EQ(record.lineage->stream, "origin");
    EXPECT_EQ(std::get<Refused>(answer->verdicts[1]).error.detail, "no 'd'");
    EXPECT_EQ(std::get<DuplicateClaim>(answer->verdicts[2]), settled) << "rights are not its task";
  };
  check(acme.commit(commit));
  bool inside_of_the_call = false;
  acme.submit_here(commit, [&](const Result<Answer>& answer) {
    inside_of_the_call = true;
    check(answer);
  });
  EXPECT_TRUE(inside_of_the_call);
  // The store of the tenant may go before the answer comes.
  TenantStore(store, "acme").submit(commit, check);
  ASSERT_TRUE(store.waiting);
  store.waiting();
}

TEST_F(TenantStoreTest, WatchesItsOwn) {
  EXPECT_EQ(acme.watch(StreamWatch{"s", "c"}, [] {}), 9U);
  EXPECT_EQ(acme.watch(ClaimWatch{"s", "key"}, [] {}), 9U);
  EXPECT_EQ(nameless.watch(StreamWatch{"s"}, [] {}), 9U);
  EXPECT_THAT(asked(), ElementsAre(kOfAcme + "s/c", kOfAcme + "s/key", "s/"));
  acme.unwatch(9);
  EXPECT_EQ(store.unwatched, 9U);
}

TEST_F(TenantStoreTest, TheTenantWithoutANameHasNamesAsTheyAre) {
  ASSERT_TRUE(nameless.read({.stream = "s"}));
  const std::vector<Op> ops = {Append{.stream = "s"}};
  ASSERT_TRUE(nameless.commit({.ops = ops, .id = "id"}));
  EXPECT_THAT(asked(), ElementsAre("s", "s", "id"));
}

}  // namespace
}  // namespace hapax::access
