#include "access/gatherer.h"

#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "access/no_store_test.h"
#include "net/held_loop_test.h"

namespace hapax::access {
namespace {

// A commit with an operation that is too large fails as a whole, as the real store's do.
class StrictStore final : public NoStore {
 public:
  std::vector<std::size_t> commits;  // how many operations each had
  std::size_t led = 0;               // by who asked
  std::function<Result<Answer>(const Commit&)> answer;

  void submit_here(const Commit& commit, Done done) override {
    ++led;
    submit(commit, std::move(done));
  }
  Result<Answer> commit(const Commit& commit) override {
    EXPECT_EQ(commit.detail, Detail::kBrief);  // Or what one asks for would refuse the others.
    commits.push_back(commit.ops.size());
    if (answer) return answer(commit);
    std::size_t bytes = 0;
    for (const Op& op : commit.ops) {
      if (const auto* set = std::get_if<Set>(&op)) bytes += set->value.size();
      if (const auto* receive = std::get_if<Receive>(&op)) bytes += receive->max * std::size_t{10};
    }
    if (bytes > limits::kCommitBytesMax) return Error{Errc::kLimitExceeded, "too large"};
    Answer held{.committed = true};
    held.verdicts.resize(commit.ops.size(), Held{});
    return held;
  }
};

const Caller kAnyone{{"", std::string(kAnybody), Rights::all()}};

class Client final : public Asker, public std::enable_shared_from_this<Client> {
 public:
  std::size_t good = 0;
  std::size_t bad = 0;

  std::vector<std::string> scopes;  // of the claims, as it was told them
  std::vector<Verdict> verdicts;
  std::string why;
  std::string named;

  void told(std::uint64_t, const Op& op, Verdict& verdict, Time) override {
    ++good;
    if (const auto* claim = std::get_if<Claim>(&op)) scopes.emplace_back(claim->scope);
    verdicts.push_back(verdict);
  }
  void failed(std::uint64_t, const Error& error) override {
    ++bad;
    why = error.detail;
  }
  [[nodiscard]] std::string_view reference() const override { return named; }
  void told_all() override {}
  [[nodiscard]] std::shared_ptr<Asker> keep() override { return shared_from_this(); }
};

class GathererTest : public testing::Test {
 protected:
  void set(Client& client, std::size_t bytes) {
    const std::string value(bytes, 'v');
    gatherer_.make_room(bytes);
    Set op{.name = "r", .value = gatherer_.keep(value), .mode = SetMode::kAlways};
    add(op, client);
  }
  void add(const Op& op, Client& client, const Caller& caller = kAnyone) {
    EXPECT_TRUE(gatherer_.add(caller, TenantNames(caller), op, client, 0));
  }

  net::TurnByTurn loop_;
  StrictStore store_;
  Entry entry_{store_, 1};
  Gatherer gatherer_{entry_, loop_};
  std::shared_ptr<Client> one_ = std::make_shared<Client>();
  std::shared_ptr<Client> other_ = std::make_shared<Client>();
};

TEST_F(GathererTest, WhatComesInOneTurnIsOneCommit) {
  set(*one_, 10);
  set(*other_, 10);
  set(*one_, 10);
  loop_.end_turn();
  EXPECT_EQ(store_.commits, std::vector<std::size_t>{3});
  EXPECT_EQ(one_->good, 2U);
  EXPECT_EQ(other_->good, 1U);
}

TEST_F(GathererTest, WhatIsTooLargeFailsAlone) {
  set(*one_, 10);
  set(*other_, limits::kCommitBytesMax + 1);
  set(*one_, 10);
  loop_.end_turn();
  EXPECT_EQ(store_.commits, (std::vector<std::size_t>{1, 1, 1}));
  EXPECT_EQ(one_->good, 2U);
  EXPECT_EQ(other_->bad, 1U);
}

TEST_F(GathererTest, ManyThatAreLargeTogetherAreSeveralCommits) {
  for (int i = 0; i < 1'000; ++i) set(*one_, limits::kRegisterBytesMax);
  loop_.end_turn();
  EXPECT_EQ(one_->good, 1'000U);
}

// They are small themselves, and what they hand out is not.
TEST_F(GathererTest, ReceivesCountWhatTheyMayHandOut) {
  for (int i = 0; i < 1'000; ++i) {
    add(Receive{"s", "c", limits::kReceiveMax}, *one_);
  }
  loop_.end_turn();
  EXPECT_EQ(one_->good, 1'000U);
}

TEST_F(GathererTest, ThoseWithLargeAnswersAreSeveralCommits) {
  const Op get = Get{"r"};
  for (int i = 0; i < 1'000; ++i) add(get, *one_);
  const Op receive = Receive{"s", "c", 1};
  for (int i = 0; i < 10; ++i) add(receive, *one_);
  loop_.end_turn();
  EXPECT_EQ(store_.commits, (std::vector<std::size_t>{256, 256, 256, 234, 8}));
  EXPECT_EQ(answer_bytes_max(Set{.name = "r", .mode = SetMode::kAbsent}), 0U);
  EXPECT_EQ(answer_bytes_max(Claim{.scope = "s", .key = "k"}), limits::kBriefResultBytesMax);
}

// The memory of a large one is not kept for the small ones behind it: what was refused before it
// was added goes with the next.
TEST_F(GathererTest, WhatWasKeptInVainTakesNobodysRoom) {
  set(*one_, 10);
  gatherer_.make_room(limits::kCommitBytesMax);
  EXPECT_EQ(gatherer_.keep(std::string(limits::kCommitBytesMax, 'x')).size(),
            limits::kCommitBytesMax);
  set(*one_, 10);
  set(*one_, 10);
  loop_.end_turn();
  EXPECT_EQ(store_.commits, (std::vector<std::size_t>{1, 2}));
}

// Nothing that was not admitted is handed over, and nothing of it fails the others.
TEST_F(GathererTest, WhatIsNotAdmittedIsNotAdded) {
  const Caller reader{{"acme", "r", {Right::kConsume}}};
  set(*one_, 10);
  const Status refused = gatherer_.add(reader, TenantNames(reader), Unset{.name = "r"}, *other_, 0);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kForbidden);
  loop_.end_turn();
  EXPECT_EQ(store_.commits, std::vector<std::size_t>{1});
  EXPECT_EQ(other_->good + other_->bad, 0U);
}

// A6: tenants share a commit, and nothing else. What is asked goes in under the tenant's own name,
// and what is told comes out as that tenant knows it.
TEST_F(GathererTest, TenantsShareACommitAndNothingElse) {
  const Caller acme{{"acme", "a", Rights::all()}};
  const Caller blind{{"other", "b", {Right::kProduce}}};
  std::set<std::string> inside;
  store_.answer = [&](const Commit& commit) {
    Answer answer{.committed = true};
    for (const Op& op : commit.ops) {
      const std::string scope(std::get<Claim>(op).scope);
      inside.insert(scope);
      answer.verdicts.push_back(Refused{{Errc::kNotFound, "no '" + scope + "'"}});
    }
    answer.verdicts.back() = DuplicateClaim{.result = StoredResult{}};
    return answer;
  };
  add(Claim{.scope = "s", .key = "k"}, *one_, acme);
  add(Claim{.scope = "s", .key = "k"}, *other_, blind);
  loop_.end_turn();
  EXPECT_EQ(store_.commits, std::vector<std::size_t>{2});
  EXPECT_EQ(std::get<Refused>(one_->verdicts.at(0)).error.detail, "no 's'");
  const auto& hidden = std::get<DuplicateClaim>(other_->verdicts.at(0));
  EXPECT_TRUE(hidden.hidden);
  EXPECT_FALSE(hidden.result);
  EXPECT_EQ(inside.size(), 2U);
  EXPECT_FALSE(inside.contains("s"));
  EXPECT_EQ(one_->scopes, std::vector<std::string>{"s"});
  EXPECT_EQ(other_->scopes, std::vector<std::string>{"s"});
}

// N2: a loop that must not wait never leads, and is told by a post.
TEST_F(GathererTest, ALoopThatMustNotWaitNeverLeads) {
  set(*one_, 10);
  loop_.end_turn();
  EXPECT_EQ(store_.led, 1U);
  loop_.waits = false;
  set(*one_, 10);
  loop_.end_turn();
  EXPECT_EQ(store_.led, 1U);
  EXPECT_EQ(one_->good, 2U);
}

// A12: each is told under the reference of its own request.
TEST_F(GathererTest, AFailureIsToldUnderTheReferenceOfEachRequest) {
  std::vector<std::string> noted;
  const Redaction redaction{
      [] { return std::string("new"); },
      [&](const Error&, std::string_view reference) { noted.emplace_back(reference); }};
  Entry entry{store_, 1, nullptr, &redaction};
  Gatherer gatherer{entry, loop_};
  store_.answer = [](const Commit&) { return Error{Errc::kIo, "/var/lib/hapax: broken"}; };
  one_->named = "request-1";
  for (Client* client : {one_.get(), other_.get()}) {
    EXPECT_TRUE(gatherer.add(kAnyone, TenantNames(kAnyone), Get{"r"}, *client, 0));
  }
  loop_.end_turn();
  EXPECT_EQ(noted, (std::vector<std::string>{"request-1", "new"}));
  EXPECT_EQ(one_->why.find("/var/lib"), std::string::npos);
  EXPECT_NE(one_->why.find("request-1"), std::string::npos);
}

}  // namespace
}  // namespace hapax::access
