#include "front/desk.h"

#include <gtest/gtest.h>

#include "front/no_store_test.h"
#include "net/held_loop_test.h"

namespace hapax::front {
namespace {

// Answers at once: everything is done, but appends where it is full.
class HeldStore final : public NoStore {
 public:
  bool full = false;
  bool repeats = false;
  bool makes_none = false;           // of streams
  std::vector<std::size_t> noted;    // of the latest commit
  std::vector<std::string> commits;  // operations as letters, streams behind them

  Result<Answer> commit(const Commit& commit) override {
    std::string text;
    Answer answer{.committed = true, .repeated = repeats};
    for (const Op& op : commit.ops) {
      const auto* append = std::get_if<Append>(&op);
      if (append != nullptr && full) answer.committed = false;
      text += append != nullptr ? "a" : std::holds_alternative<CreateStream>(op) ? "c" : "d";
    }
    commits.push_back(text);
    noted.assign(commit.noted.begin(), commit.noted.end());
    for (const Op& op : commit.ops) answer.verdicts.push_back(verdict(op, answer.committed));
    return answer;
  }

 private:
  Verdict verdict(const Op& op, bool committed) const {
    if (std::holds_alternative<Append>(op)) {
      if (full) return Refused{{Errc::kNoSpace, "the disk is full"}};
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
  Answer delete_stream(Mode mode = Mode::kAtomic) {
    const auto request = std::make_shared<wire::Request>();
    request->ops.push_back(DeleteStream{"s"});
    request->mode = mode;
    Answer told;
    desk_.commit(loop_, {"acme", "root", Rights::all()}, request,
                 [&](Result<Answer> answer) { told = *answer; });
    return told;
  }

  HeldStore store_;
  net::HeldLoop loop_;
  std::vector<std::string> told_;
  const Discretion discretion_{
      [] { return std::string("r-1"); },
      [this](const Error& error, std::string_view) { told_.push_back(error.detail); }};
  Desk desk_{store_, 1, nullptr, &discretion_};
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
    desk_.commit(loop_, {"", std::string(kAnybody), Rights::all()}, request,
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
  desk_.commit(loop_, {"acme", "w", {Right::kProduce}}, request,
               [&](const Result<Answer>& answer) { code = answer.error().code; });
  EXPECT_EQ(code, Errc::kForbidden);
  EXPECT_TRUE(store_.commits.empty());
}

}  // namespace
}  // namespace hapax::front
