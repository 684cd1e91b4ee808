#include "access/gatherer.h"

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

  Result<Answer> commit(const Commit& commit) override {
    EXPECT_EQ(commit.detail, Detail::kBrief);  // Or what one asks for would refuse the others.
    commits.push_back(commit.ops.size());
    std::size_t bytes = 0;
    for (const Op& op : commit.ops) {
      if (const auto* set = std::get_if<Set>(&op)) bytes += set->value.size();
      if (const auto* receive = std::get_if<Receive>(&op)) bytes += receive->max * std::size_t{10};
    }
    if (bytes > limits::kCommitBytesMax) return Error{Errc::kLimitExceeded, "too large"};
    Answer answer{.committed = true};
    answer.verdicts.resize(commit.ops.size(), Held{});
    return answer;
  }
};

class Client final : public Asker, public std::enable_shared_from_this<Client> {
 public:
  std::size_t good = 0;
  std::size_t bad = 0;

  void told(std::uint64_t, const Op&, Verdict&, Time) override { ++good; }
  void failed(std::uint64_t, const Error&) override { ++bad; }
  void told_all() override {}
  [[nodiscard]] std::shared_ptr<Asker> keep() override { return shared_from_this(); }
};

class GathererTest : public testing::Test {
 protected:
  void set(Client& client, std::size_t bytes) {
    const std::string value(bytes, 'v');
    gatherer_.make_room(bytes);
    Set op{.name = "r", .value = gatherer_.keep(value), .mode = SetMode::kAlways};
    gatherer_.add(op, 0, client, 0);
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
    gatherer_.add(Receive{"s", "c", limits::kReceiveMax}, 0, *one_, 0);
  }
  loop_.end_turn();
  EXPECT_EQ(one_->good, 1'000U);
}

TEST_F(GathererTest, ThoseWithLargeAnswersAreSeveralCommits) {
  const Op get = Get{"r"};
  for (int i = 0; i < 1'000; ++i) gatherer_.add(get, answer_bytes_max(get), *one_, 0);
  const Op receive = Receive{"s", "c", 1};
  for (int i = 0; i < 10; ++i) gatherer_.add(receive, answer_bytes_max(receive), *one_, 0);
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

}  // namespace
}  // namespace hapax::access
