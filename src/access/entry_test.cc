#include "access/entry.h"

#include <gtest/gtest.h>

#include "access/no_store_test.h"
#include "net/held_loop_test.h"

namespace hapax::access {
namespace {

// Answers at once: everything is done, but appends where it is full or the audit is gone.
class HeldStore final : public NoStore {
 public:
  bool full = false;
  bool repeats = false;
  bool makes_none = false;           // of streams
  bool away = false;                 // for the next commit
  bool lost = false;                 // the stream of the audit, until it is made again
  std::vector<std::size_t> noted;    // of the latest commit
  std::vector<std::string> commits;  // operations as letters, streams behind them

  Result<Answer> commit(const Commit& commit) override {
    std::string text;
    bool refuses = false;
    for (const Op& op : commit.ops) {
      const auto* append = std::get_if<Append>(&op);
      if (append != nullptr && (full || lost)) refuses = true;
      const bool makes = std::holds_alternative<CreateStream>(op);
      if (makes && !away && !makes_none) lost = false;
      const bool other = std::holds_alternative<CreateConsumer>(op);
      text += append != nullptr ? "a" : makes ? "c" : other ? "n" : "d";
    }
    commits.push_back(text);
    if (std::exchange(away, false)) return Error{Errc::kUnavailable, "the database is away"};
    noted.assign(commit.noted.begin(), commit.noted.end());
    Answer answer{.committed = !refuses || !noted.empty(), .repeated = repeats};
    for (const Op& op : commit.ops) answer.verdicts.push_back(verdict(op, answer.committed));
    // As the store does: who is noted is refused as its note is.
    for (const std::size_t place : noted) {
      if (refuses) answer.verdicts[place] = answer.verdicts.back();
    }
    return answer;
  }

 private:
  Verdict verdict(const Op& op, bool committed) const {
    if (std::holds_alternative<Append>(op)) {
      if (full) return Refused{{Errc::kNoSpace, "the disk is full"}};
      if (lost) return Refused{{Errc::kNotFound, "there is no stream"}};
      return Appended{};
    }
    if (makes_none && std::holds_alternative<CreateStream>(op)) {
      return Refused{{Errc::kMemoryBudget, "no memory"}};
    }
    return committed ? Verdict(hapax::Done{}) : Verdict(NotApplied{});
  }
};

class DeskTest : public testing::Test {
 protected:
  Result<Answer> act(std::vector<Op> ops, Mode mode,
                     std::optional<std::string_view> id = std::nullopt) {
    const auto request = std::make_shared<wire::Request>();
    request->ops = std::move(ops);
    request->mode = mode;
    request->id = id;
    std::optional<Result<Answer>> told;
    entry_.commit(loop_, {{"acme", "root", Rights::all()}}, request,
                  [&](Result<Answer> answer) { told = std::move(answer); });
    return *std::move(told);
  }
  Answer delete_stream(Mode mode = Mode::kAtomic) { return *act({DeleteStream{"s"}}, mode); }
  Errc refusal(std::vector<Op> ops, Mode mode) {
    const Result<Answer> answer = act(std::move(ops), mode);
    return answer ? Errc::kIo : answer.error().code;
  }

  HeldStore store_;
  net::HeldLoop loop_;
  std::vector<std::string> told_;
  const Redaction redaction_{
      [] { return std::string("r-1"); },
      [this](const Error& error, std::string_view) { told_.push_back(error.detail); }};
  Entry entry_{store_, 1, nullptr, &redaction_};
};

TEST_F(DeskTest, AnActTakesItsAuditWithIt) {
  const Answer answer = delete_stream();
  EXPECT_EQ(answer.verdicts, std::vector<Verdict>{hapax::Done{}});
  delete_stream();
  EXPECT_EQ(store_.commits, (std::vector<std::string>{"c", "da", "da"}));
}

// Deleting is what helps when the disk is full.
TEST_F(DeskTest, AnAuditThatCannotBeWrittenPreventsNothing) {
  store_.full = true;
  const Answer answer = delete_stream();
  EXPECT_TRUE(answer.committed);
  EXPECT_EQ(answer.verdicts, std::vector<Verdict>{hapax::Done{}});
  EXPECT_EQ(store_.commits, (std::vector<std::string>{"c", "da", "d", "a"}));
}

// A13
TEST_F(DeskTest, AnActThatStandsAloneTakesItsAuditWithIt) {
  EXPECT_EQ(delete_stream(Mode::kEach).verdicts, std::vector<Verdict>{hapax::Done{}});
  EXPECT_EQ(store_.commits, (std::vector<std::string>{"c", "da"}));
  EXPECT_EQ(store_.noted, std::vector<std::size_t>{0});
}

// A13: nor is it lost without a word.
TEST_F(DeskTest, ALineThatTheAuditLacksIsToldInTheLog) {
  store_.full = true;
  delete_stream();
  ASSERT_EQ(told_.size(), 1U);
  EXPECT_NE(told_[0].find(R"({"act":"delete_stream","subject":"s","actor":"root"})"),
            std::string::npos)
      << told_[0];
  store_.full = false;
  delete_stream();
  EXPECT_EQ(told_.size(), 1U);
}

// A13: it is made again with the next act.
TEST_F(DeskTest, AnActWithoutAStreamForItsAuditIsTold) {
  store_.makes_none = true;
  EXPECT_EQ(delete_stream(Mode::kEach).verdicts, std::vector<Verdict>{hapax::Done{}});
  EXPECT_EQ(store_.commits, (std::vector<std::string>{"c", "d", "a"}));
  store_.makes_none = false;
  delete_stream(Mode::kEach);
  EXPECT_EQ(store_.commits, (std::vector<std::string>{"c", "d", "a", "c", "da"}));
}

// A13: the stream may be made when the database is back, and then the act takes its line with it.
TEST_F(DeskTest, WithoutAStreamForItsAuditAnActIsRefused) {
  for (const Mode mode : {Mode::kAtomic, Mode::kEach}) {
    store_.away = true;
    EXPECT_EQ(refusal({CreateConsumer{"s", "c", {}}}, mode), Errc::kUnavailable);
    store_.away = true;
    EXPECT_EQ(refusal({DeleteStream{"s"}}, mode), Errc::kUnavailable);
  }
  EXPECT_EQ(store_.commits, (std::vector<std::string>{"c", "c", "c", "c"}));
}

// A13: only what frees something goes without.
TEST_F(DeskTest, WhatFreesNothingDoesNotGoWithoutItsAudit) {
  const std::vector<Op> both{DeleteStream{"s"}, CreateConsumer{"t", "c", {}}};
  store_.makes_none = true;
  EXPECT_EQ(refusal({CreateConsumer{"s", "c", {}}}, Mode::kEach), Errc::kMemoryBudget);
  EXPECT_EQ(refusal(both, Mode::kAtomic), Errc::kMemoryBudget);
  EXPECT_EQ(store_.commits, (std::vector<std::string>{"c", "c"}));
  store_.makes_none = false;
  store_.full = true;
  EXPECT_EQ(refusal({CreateConsumer{"s", "c", {}}}, Mode::kAtomic), Errc::kNoSpace);
  EXPECT_EQ(refusal(both, Mode::kAtomic), Errc::kNoSpace);
  EXPECT_EQ(store_.commits, (std::vector<std::string>{"c", "c", "c", "na", "dnaa"}));
}

// A13: a failover may lose the stream.
TEST_F(DeskTest, AStreamForTheAuditThatIsGoneIsMadeAgain) {
  for (const Mode mode : {Mode::kAtomic, Mode::kEach}) {
    delete_stream(mode);
    store_.commits.clear();
    store_.lost = true;
    EXPECT_EQ(delete_stream(mode).verdicts, std::vector<Verdict>{hapax::Done{}});
    EXPECT_EQ(store_.commits, (std::vector<std::string>{"da", "c", "da"}));
  }
}

TEST_F(DeskTest, AStreamForTheAuditThatIsGoneAgainIsMadeWithTheNextAct) {
  delete_stream();
  store_.commits.clear();
  store_.lost = store_.makes_none = true;
  EXPECT_EQ(delete_stream().verdicts, std::vector<Verdict>{hapax::Done{}});
  EXPECT_EQ(store_.commits, (std::vector<std::string>{"da", "c", "d", "a"}));
  EXPECT_EQ(told_.size(), 1U);
  store_.makes_none = false;
  store_.commits.clear();
  delete_stream();
  EXPECT_EQ(store_.commits, (std::vector<std::string>{"c", "da"}));
}

// What held beside it must not happen twice, nor is an answer that is remembered asked for again.
TEST_F(DeskTest, ACommitThatHoldsInPartIsNotTriedAgain) {
  delete_stream();
  store_.commits.clear();
  store_.lost = true;
  const std::vector<Op> some{Set{.name = "r"}, DeleteStream{"s"}};
  const Result<Answer> answer = act(some, Mode::kEach);
  ASSERT_TRUE(answer.ok());
  EXPECT_TRUE(holds(answer->verdicts.at(0)));
  EXPECT_EQ(std::get<Refused>(answer->verdicts.at(1)).error.code, Errc::kNotFound);
  EXPECT_EQ(store_.commits, std::vector<std::string>{"dda"});
  delete_stream();
  store_.lost = true;
  EXPECT_FALSE(holds(act({DeleteStream{"s"}}, Mode::kEach, "id")->verdicts.at(0)));
  delete_stream();
  EXPECT_EQ(store_.commits, (std::vector<std::string>{"dda", "c", "da", "da", "c", "da"}));
}

TEST_F(DeskTest, ALineOfTheServersOwnMakesTheStreamAgain) {
  delete_stream();
  store_.commits.clear();
  store_.lost = true;
  entry_.audit("acme", "line");
  EXPECT_EQ(store_.commits, (std::vector<std::string>{"a", "c", "a"}));
  EXPECT_TRUE(told_.empty());
}

TEST_F(DeskTest, WhatIsRepeatedIsWrittenOnce) {
  store_.makes_none = true;  // So that it could only be written behind its act.
  store_.repeats = true;
  EXPECT_EQ(delete_stream(Mode::kEach).verdicts, std::vector<Verdict>{hapax::Done{}});
  EXPECT_EQ(store_.commits, (std::vector<std::string>{"c", "d"}));
}

// Without a tenant nothing stands before a name, so a name that begins like a tenant's would be
// one.
TEST_F(DeskTest, NoNameOfACommitReachesIntoATenant) {
  const auto refusal = [&](const auto& name_it) {
    const auto request = std::make_shared<wire::Request>();
    request->ops.push_back(Append{.stream = "s", .payload = "x"});
    name_it(*request);
    std::string told;
    entry_.commit(
        loop_, {{"", std::string(kAnybody), Rights::all()}}, request,
        [&](const Result<Answer>& answer) { told = answer ? "" : answer.error().detail; });
    return told;
  };
  EXPECT_EQ(refusal([](wire::Request& request) {
              request.id =
                  "\x01"
                  "acme\x01pay";
            }),
            "the commit's id must not begin with the byte 0x01");
  EXPECT_EQ(refusal([](wire::Request& request) {
              request.transaction = TransactionRef{
                  "\x01"
                  "acme\x01t",
                  Epoch{1}};
            }),
            "the transaction's name must not begin with the byte 0x01");
  EXPECT_TRUE(store_.commits.empty());
  EXPECT_EQ(refusal([](wire::Request& request) { request.id = "pay"; }), "");
}

TEST_F(DeskTest, WhatIsNotAllowedDoesNotReachTheStore) {
  const auto request = std::make_shared<wire::Request>();
  request->ops.push_back(DeleteStream{"s"});
  Errc code = Errc::kIo;
  entry_.commit(loop_, {{"acme", "w", {Right::kProduce}}}, request,
                [&](const Result<Answer>& answer) { code = answer.error().code; });
  EXPECT_EQ(code, Errc::kForbidden);
  EXPECT_TRUE(store_.commits.empty());
}

}  // namespace
}  // namespace hapax::access
