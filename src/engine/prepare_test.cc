// What a commit is before it meets the state: limits, and hashes that never meet by accident.
#include "engine/prepare.h"

#include <map>
#include <string>

#include <gtest/gtest.h>

namespace hapax::engine {
namespace {

constexpr digest::HashKey kKey{1, 2, 3};
constexpr digest::HashKey kOtherKey{1, 2, 4};

Commit commit_of(std::span<const Op> ops, std::optional<std::string_view> id = {}) {
  Commit commit;
  commit.ops = ops;
  commit.id = id;
  return commit;
}
Errc refusal(const Commit& commit) { return prepare(commit, kKey).error().code; }

TEST(Prepare, RefusesWhatNoStateCouldAccept) {
  const std::vector<Op> one{Set{.name = "r"}};
  EXPECT_EQ(refusal(commit_of({})), Errc::kInvalidArgument);
  EXPECT_TRUE(prepare(commit_of(one), kKey).ok());

  const std::vector<Op> many(limits::kCommitOpsMax + 1, one.front());
  EXPECT_EQ(refusal(commit_of(many)), Errc::kLimitExceeded);
  EXPECT_TRUE(prepare(commit_of(std::span(many).subspan(1)), kKey).ok());

  const std::string id(limits::kMessageIdBytesMax + 1, 'i');
  EXPECT_EQ(refusal(commit_of(one, id)), Errc::kLimitExceeded);
  EXPECT_TRUE(prepare(commit_of(one, std::string_view(id).substr(1)), kKey).ok());

  const std::string large(limits::kCommitBytesMax + 600, 'l');
  const std::vector<Op> heavy{Append{.stream = "s", .payload = large}};
  EXPECT_EQ(refusal(commit_of(heavy)), Errc::kLimitExceeded);
}

// A commit of that many bytes fits, whatever its operations are.
TEST(Prepare, CountsTheBytesOfACommitOnce) {
  const std::string value(std::size_t{64} << 10, 'v');
  const std::vector<Op> sets(500, Set{.name = "r", .value = value});
  ASSERT_GT(sets.size() * value.size(), limits::kCommitBytesMax * 9 / 10);
  EXPECT_TRUE(prepare(commit_of(sets), kKey).ok());
}

// It is refused by itself, not with all others of its commit.
TEST(Prepare, AReceiveOfTooManyAddsNoMoreThanOneOfTheMost) {
  const std::vector<Op> most{Receive{"s", "c", limits::kReceiveMax}};
  const std::vector<Op> more{Receive{"s", "c", ~std::uint32_t{0}}};
  ASSERT_TRUE(prepare(commit_of(more), kKey).ok());
  EXPECT_EQ(prepare(commit_of(more), kKey)->bytes, prepare(commit_of(most), kKey)->bytes);
}

TEST(Prepare, ARefusalNamesTheLimitTheValueAndTheMost) {
  const std::vector<Op> many(100'001, Op{Set{.name = "r"}});
  EXPECT_EQ(prepare(commit_of(many), kKey).error().text(),
            "HX1002 limit_exceeded: number of operations of a commit has 100001; the most is "
            "100000");
}

TEST(Prepare, EqualCommitsAreEqualAndTheKeyMatters) {
  const std::vector<Op> ops{Append{.stream = "s", .payload = "p", .id = "id", .group = "g"},
                            Claim{.scope = "c", .key = "k", .content = "x"}};
  const Prepared one = prepare(commit_of(ops, "id"), kKey).value();
  const Prepared two = prepare(commit_of(ops, "id"), kKey).value();
  const Prepared other = prepare(commit_of(ops, "id"), kOtherKey).value();
  EXPECT_EQ(one.content, two.content);
  EXPECT_EQ(one.id, two.id);
  EXPECT_NE(one.content, other.content);
  EXPECT_NE(one.id, other.id);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    EXPECT_EQ(one.hashes[i].key, two.hashes[i].key);
    EXPECT_NE(one.hashes[i].key, other.hashes[i].key);
    EXPECT_NE(one.hashes[i].content, other.hashes[i].content);
  }
}

TEST(Prepare, NotesAreNoPartOfWhatACommitSays) {
  const auto noted = [](std::vector<Op> ops, std::size_t notes) {
    return prepare({.ops = ops, .id = "id", .notes = notes}, kKey);
  };
  const Op act = DeleteStream{"s"};
  const Op by_ann = Append{.stream = "a", .payload = "ann"};
  const Op by_bob = Append{.stream = "a", .payload = "bob"};
  const Fingerprint alone = noted({act}, 0)->content;
  EXPECT_EQ(noted({act, by_ann}, 1)->content, alone);
  EXPECT_EQ(noted({act, by_bob}, 1)->content, alone);
  EXPECT_NE(noted({act, by_ann}, 0)->content, alone);
  EXPECT_NE(noted({by_ann, by_bob}, 1)->content, alone);
  EXPECT_EQ(noted({act}, 1).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(noted({by_ann, act}, 1).error().code, Errc::kInvalidArgument);
}

TEST(Prepare, NotedAreOperationsOfACommitInWhichEachStandsAlone) {
  const auto noted = [](Mode mode, std::vector<std::size_t> places) {
    const Op line = Append{.stream = "a", .payload = "ann"};
    const std::vector<Op> ops{DeleteStream{"s"}, DeleteStream{"t"}, line, line};
    return prepare({.ops = ops, .mode = mode, .notes = 2, .noted = places}, kKey).ok();
  };
  EXPECT_TRUE(noted(Mode::kEach, {0, 1}));
  EXPECT_TRUE(noted(Mode::kEach, {}));
  EXPECT_FALSE(noted(Mode::kAtomic, {0, 1}));
  EXPECT_FALSE(noted(Mode::kEach, {0}));
  EXPECT_FALSE(noted(Mode::kEach, {1, 0}));
  EXPECT_FALSE(noted(Mode::kEach, {1, 1}));
  EXPECT_FALSE(noted(Mode::kEach, {1, 2}));
}

// What is staged is decided as a whole, without them.
TEST(Prepare, NothingIsNotedInATransaction) {
  const std::vector<Op> ops{DeleteStream{"s"}, Append{.stream = "a", .payload = "ann"}};
  const std::vector<std::size_t> first{0};
  Commit commit{.ops = ops, .mode = Mode::kEach, .notes = 1, .noted = first};
  EXPECT_TRUE(prepare(commit, kKey).ok());
  commit.transaction = TransactionRef{"t", Epoch{1}};
  const auto staged = prepare(commit, kKey);
  ASSERT_FALSE(staged.ok());
  EXPECT_EQ(staged.error().code, Errc::kInvalidArgument);
  commit.noted = {};
  EXPECT_TRUE(prepare(commit, kKey).ok());
}

// What may be asked for may be noted.
TEST(Prepare, NotesAreNotCountedAsOperations) {
  std::vector<Op> ops(limits::kCommitOpsMax, DeleteStream{"s"});
  ops.resize(2 * limits::kCommitOpsMax, Append{.stream = "a"});
  EXPECT_TRUE(prepare({.ops = ops, .notes = limits::kCommitOpsMax}, kKey).ok());
  EXPECT_FALSE(prepare({.ops = ops, .notes = limits::kCommitOpsMax - 1}, kKey).ok());
}

// However long their lines are.
TEST(Prepare, NotesAreNotCountedInBytes) {
  const std::string line(1'000, 'l');
  std::vector<Op> ops(limits::kCommitOpsMax, DeleteStream{"s"});
  ops.resize(2 * limits::kCommitOpsMax, Append{.stream = "a", .payload = line});
  const auto noted = prepare({.ops = ops, .notes = limits::kCommitOpsMax}, kKey);
  ASSERT_TRUE(noted.ok()) << noted.error().text();
  EXPECT_GT(noted->bytes, limits::kCommitOpsMax * line.size()) << "but they need room in a batch";
  const std::string large(limits::kCommitBytesMax + 600, 'l');
  const Op own = Append{.stream = "s", .payload = large};
  const std::vector<Op> too_large{own, Append{.stream = "a", .payload = line}};
  EXPECT_EQ(prepare({.ops = too_large, .notes = 1}, kKey).error().code, Errc::kLimitExceeded);
}

TEST(Prepare, HashesOfDifferentThingsDoNotMeet) {
  EXPECT_NE(id_hash(kKey, "x"), claim_hash(kKey, "", "x"));
  EXPECT_NE(claim_hash(kKey, "ab", "c"), claim_hash(kKey, "a", "bc"));
  EXPECT_NE(claim_hash(kKey, "a", ""), claim_hash(kKey, "", "a"));
  EXPECT_EQ(group_hash(kKey, std::nullopt), 0U);
  EXPECT_NE(group_hash(kKey, "g"), 0U);
  const std::vector<Op> ops{
      Append{.stream = "s", .payload = "ab"},
      Append{.stream = "s", .payload = "a", .group = "b"},
      Append{.stream = "s", .payload = "", .group = "ab"},
      Append{.stream = "s", .payload = "ab", .group = "ab"},
  };
  const Prepared prepared = prepare(commit_of(ops, "ab"), kKey).value();
  std::map<Fingerprint, std::size_t> seen;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    EXPECT_TRUE(seen.emplace(prepared.hashes[i].content, i).second) << i;
  }
  EXPECT_NE(prepared.id, id_hash(kKey, "ab"));
}

// Each differs from every other one in what it says, however its bytes would lie side by side.
std::vector<std::vector<Op>> different_commits(const std::array<Header, 1>& header) {
  const ProducerMark mark{"a", Epoch{1}, ProducerSequence{98}};  // 98 is 'b'
  const ExpectLast expect{ExpectLast::Of::kStream, Sequence{0}};
  Set timed{.name = "r", .mode = SetMode::kLastWriter};
  timed.at = HybridTime{1, 2, 3};
  return {
      {Append{.stream = "s"}},
      {Append{.stream = "s", .payload = "p"}},
      {Append{.stream = "s", .id = "p"}},
      {Append{.stream = "s", .group = "p"}},
      {Append{.stream = "s", .headers = header}},
      {Append{.stream = "s", .producer = mark}},
      {Append{.stream = "s", .expect = expect}},
      {Append{.stream = "s", .producer = mark, .expect = expect}},
      {Append{.stream = "s"}, Append{.stream = "s"}},
      {Append{.stream = "s"}, Append{.stream = "s"}, Append{.stream = "s"}},
      {Claim{.scope = "s", .key = "k"}},
      {Claim{.scope = "s", .key = "k", .content = "c"}},
      {Claim{.scope = "s", .key = "k", .owner = "c"}},
      {Claim{.scope = "s", .key = "k", .lease = Duration{1}}},
      {Renew{"s", "k", Fence{1}}},
      {Settle{.scope = "s", .key = "k", .fence = Fence{1}}},
      {Settle{.scope = "s", .key = "k", .fence = Fence{1}, .outcome = Outcome::kFailed}},
      {Settle{.scope = "s", .key = "k", .fence = Fence{1}, .result = {1, "", ""}}},
      {Settle{.scope = "s", .key = "k", .fence = Fence{1}, .result = {0, "x", ""}}},
      {Settle{.scope = "s", .key = "k", .fence = Fence{1}, .result = {0, "", "x"}}},
      {Settle{.scope = "s", .key = "k", .fence = Fence{1}, .reason = "x"}},
      {Resolve{.scope = "s", .key = "k", .actor = "a", .reason = "r"}},
      {Forget{"s", "k", "a", "r"}},
      {Receive{"s", "c", 1}},
      {Receive{"s", "c", 2}},
      {Ack{"s", "c", {Sequence{1}, Token{2}}}},
      {Ack{"s", "c", {Sequence{2}, Token{1}}}},
      {Nack{"s", "c", {Sequence{1}, Token{2}}}},
      {Nack{"s", "c", {Sequence{1}, Token{2}}, Duration{1}}},
      {Nack{.stream = "s", .consumer = "c", .receipt = {Sequence{1}, Token{2}}, .last = true}},
      {Extend{"s", "c", {Sequence{1}, Token{2}}}},
      {Advance{"s", "", "1", Epoch{1}}},
      {Advance{"s", "1", "", Epoch{1}}},
      {Set{.name = "r"}},
      {Set{.name = "r", .mode = SetMode::kLastWriter}},
      {timed},
      {CreateStream{"s", {}}},
      {CreateStream{"s", {.content_ids = true}}},
      {ConfigureStream{"s", {}}},
      {DeleteStream{"s"}},
      {Trim{"s", Sequence{1}}},
      {Trim{"s", Sequence{2}}},
      {RetireProducer{"s", "k", "a", "r"}},
      {CreateConsumer{"s", "c", {}}},
      {CreateConsumer{"s", "c", {.attempts_max = 3}}},
      {DeleteConsumer{"s", "c"}},
      {Seek{"s", "c", Sequence{1}}},
      {Redrive{"s", Sequence{1}}},
      {Begin{"t"}},
      {End{"t", Epoch{1}, Finish::kCommit}},
      {End{"t", Epoch{1}, Finish::kAbort}},
  };
}

TEST(Prepare, CommitsThatSayDifferentThingsAreToldApart) {
  const std::array header{Header{"a", "b"}};
  std::map<Fingerprint, std::size_t> seen;
  const auto commits = different_commits(header);
  for (std::size_t i = 0; i < commits.size(); ++i) {
    Commit commit = commit_of(commits[i], "id");
    for (const Mode mode : {Mode::kAtomic, Mode::kEach}) {
      commit.mode = mode;
      commit.transaction.reset();
      EXPECT_TRUE(seen.emplace(prepare(commit, kKey).value().content, i).second) << i;
      commit.transaction = TransactionRef{"t", Epoch{1}};
      EXPECT_TRUE(seen.emplace(prepare(commit, kKey).value().content, i).second) << i;
    }
  }
  EXPECT_EQ(seen.size(), commits.size() * 4);
}

TEST(Prepare, WhenItWasFirstSentIsNoPartOfACommit) {
  const std::vector<Op> plain{Append{.stream = "s", .payload = "p"}};
  const std::vector<Op> dated{Append{.stream = "s", .payload = "p", .first_sent = time_from_ms(1)}};
  EXPECT_EQ(prepare(commit_of(plain, "id"), kKey).value().content,
            prepare(commit_of(dated, "id"), kKey).value().content);
}

TEST(Prepare, TheRoomOfACommitIsNeverUnderrated) {
  const std::string text(255, 't');
  const std::string long_text(1'024, 'r');
  const std::string value(65'536, 'v');
  const std::vector<Op> ops{
      Append{.stream = text,
             .payload = value,
             .id = text,
             .group = text,
             .producer = ProducerMark{text, Epoch{1}, {}}},
      Resolve{text, text, Resolution::kCompleted, {200, text, value}, text, long_text},
      Settle{.scope = text, .key = text, .result = {200, text, value}, .reason = long_text},
      Nack{text, text, {}, {}, long_text},
      Set{.name = text, .value = value},
      Advance{text, long_text, long_text, Epoch{1}}};
  for (const Op& op : ops) {
    std::string described;
    const std::size_t bytes = prepare(commit_of({&op, 1}), kKey).value().bytes;
    EXPECT_GE(bytes, std::visit(
                         [&](const auto& plain) -> std::size_t {
                           if constexpr (requires { plain.payload; })
                             return plain.payload.size() + 3 * text.size();
                           if constexpr (requires { plain.result; })
                             return plain.result.body.size() + long_text.size();
                           if constexpr (requires { plain.value; })
                             return plain.value.size() + text.size();
                           return long_text.size();
                         },
                         op))
        << op.index();
  }
}

}  // namespace
}  // namespace hapax::engine
