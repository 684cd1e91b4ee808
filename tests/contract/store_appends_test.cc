// Append: one record per message id, for as long as was promised.
#include <array>

#include "store_contract.h"

namespace hapax::contract {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class Appends : public StoreContract {
 protected:
  Duplicate repeat(std::string_view stream, std::string_view payload, std::string_view id) {
    return run<Duplicate>(Append{.stream = stream, .payload = payload, .id = id});
  }
  Time time_of(const Op& op) { return commit({op}).time; }
};

TEST_P(Appends, ARecordIsReadBackByteForByte) {
  make_stream("s");
  const std::string payload("a\0b\xff\n", 5);
  const std::array headers{Header{"type", "order"}, Header{"", ""}, Header{"type", "again"}};
  const Answer answer = commit(
      {Append{.stream = "s", .payload = payload, .id = "id 1", .group = "g", .headers = headers}});
  EXPECT_TRUE(answer.committed);
  EXPECT_EQ(answer.verdicts, (std::vector<Verdict>{Appended{Sequence{1}}}));
  EXPECT_EQ(append("s", ""), Sequence{2});
  always([&] {
    const std::vector<Record> found = records("s");
    ASSERT_THAT(found, SizeIs(2));
    const Record first{
        Sequence{1}, answer.time, "id 1", "g", {{"type", "order"}, {"", ""}, {"type", "again"}},
        payload,     std::nullopt};
    EXPECT_EQ(found[0], first);
    EXPECT_EQ(found[1].sequence, Sequence{2});
    EXPECT_THAT(found[1].payload, IsEmpty());
  });
}

TEST_P(Appends, ARepeatIsToldTheFirstSequenceTimeAndExpiry) {
  make_stream("s");
  append("s", "before");
  const Time accepted = time_of(Append{.stream = "s", .payload = "p", .id = "id"});
  always([&] {
    EXPECT_EQ(repeat("s", "p", "id"),
              (Duplicate{Sequence{2}, accepted, accepted + std::chrono::hours{24}}));
    EXPECT_EQ(last("s"), Sequence{2});
    const auto known = store().find_id("s", "id", std::nullopt).value();
    ASSERT_TRUE(known);
    EXPECT_EQ(known->sequence, Sequence{2});
    EXPECT_EQ(known->first_seen, accepted);
    EXPECT_EQ(known->expires_at, accepted + std::chrono::hours{24});
  });
}

TEST_P(Appends, ARepeatWithinOneCommitIsADuplicateToo) {
  make_stream("s");
  const Append op{.stream = "s", .payload = "p", .id = "id"};
  const Answer answer = commit({op, op});
  EXPECT_TRUE(answer.committed);
  EXPECT_EQ(as<Appended>(answer.verdicts[0]).sequence, Sequence{1});
  EXPECT_EQ(as<Duplicate>(answer.verdicts[1]).sequence, Sequence{1});
}

TEST_P(Appends, OtherContentUnderAKnownIdConflictsAndNothingIsStored) {
  make_stream("s");
  const Time accepted = time_of(Append{.stream = "s", .payload = "p", .id = "id"});
  always([&] {
    const auto told = run<Conflict>(Append{.stream = "s", .payload = "other", .id = "id"});
    EXPECT_NE(told.stored, told.received);
    EXPECT_EQ(told.stored, store().find_id("s", "id", std::nullopt).value()->fingerprint);
    EXPECT_EQ(told.first_seen, accepted);
    run<Conflict>(Append{.stream = "s", .payload = "p", .id = "id", .group = "another"});
    EXPECT_EQ(last("s"), Sequence{1});
    EXPECT_EQ(repeat("s", "p", "id").sequence, Sequence{1});
  });
}

TEST_P(Appends, HeadersAreNoPartOfTheContent) {
  make_stream("s");
  append("s", "p", "id");
  const std::array headers{Header{"try", "2"}};
  run<Duplicate>(Append{.stream = "s", .payload = "p", .id = "id", .headers = headers});
}

TEST_P(Appends, AnIdIsAnyBytesFromOneTo255) {
  make_stream("s");
  std::vector<std::string> ids;
  for (int byte = 0; byte < 256; ++byte) ids.emplace_back(1, static_cast<char>(byte));
  ids.emplace_back(2, '\0');
  ids.emplace_back(254, '\xff');
  ids.emplace_back(255, '\xff');
  std::vector<Op> ops;
  for (const std::string& id : ids) ops.push_back(Append{.stream = "s", .payload = "p", .id = id});
  for (const Verdict& verdict : commit(ops).verdicts) as<Appended>(verdict);
  always([&] {
    const Answer again = commit(ops);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      EXPECT_EQ(as<Duplicate>(again.verdicts[i]).sequence, Sequence{i + 1});
    }
  });
  const std::string long_id(256, 'x');
  const Error error = refusal(Append{.stream = "s", .payload = "p", .id = long_id});
  EXPECT_EQ(error.code, Errc::kLimitExceeded);
  EXPECT_THAT(error.text(), HasSubstr("HX1002"));
  EXPECT_THAT(error.detail, HasSubstr("message id has 256; the most is 255"));
  EXPECT_EQ(last("s"), Sequence{ids.size()});
}

TEST_P(Appends, TheScopeOfIdsMayBeTheGroup) {
  make_stream("whole");
  make_stream("grouped", {.id_scope = IdScope::kGroup});
  append("whole", "p", "id", "a");
  append("grouped", "p", "id", "a");
  append("grouped", "p", "id", "b");
  append("grouped", "p", "id");
  always([&] {
    run<Conflict>(Append{.stream = "whole", .payload = "p", .id = "id", .group = "b"});
    const auto in_b =
        run<Duplicate>(Append{.stream = "grouped", .payload = "p", .id = "id", .group = "b"});
    EXPECT_EQ(in_b.sequence, Sequence{2});
    EXPECT_EQ(repeat("grouped", "p", "id").sequence, Sequence{3});
    EXPECT_EQ(store().find_id("grouped", "id", "a").value()->sequence, Sequence{1});
    EXPECT_EQ(store().find_id("grouped", "id", "c").value(), std::nullopt);
    EXPECT_EQ(store().find_id("grouped", "id", std::nullopt).value()->sequence, Sequence{3});
    EXPECT_EQ(store().find_id("whole", "id", std::nullopt).value()->sequence, Sequence{1});
  });
}

// "Not there" is never said of a group that nobody looked at.
TEST_P(Appends, ToFindAnIdOfAGroupOneNamesTheGroup) {
  make_stream("grouped", {.id_scope = IdScope::kGroup});
  append("grouped", "p", "id", "a");
  always([&] {
    const auto told = store().find_id("grouped", "id", std::nullopt);
    ASSERT_FALSE(told.ok());
    EXPECT_EQ(told.error().code, Errc::kInvalidArgument);
    EXPECT_THAT(told.error().detail, HasSubstr("unique per group"));
    const auto nowhere = store().find_id("grouped", "id", "");
    ASSERT_FALSE(nowhere.ok());
    EXPECT_THAT(nowhere.error().detail, HasSubstr("group is empty"));
  });
}

// A value that was never filled in must not turn a guarantee off.
TEST_P(Appends, AnEmptyIdOrGroupIsRefused) {
  make_stream("s");
  for (const Mode mode : {Mode::kAtomic, Mode::kEach}) {
    const auto told = [&](const Append& op) {
      const auto answer = try_commit({op}, mode);
      return answer ? as<Refused>(answer->verdicts.front()).error : answer.error();
    };
    const Error id = told(Append{.stream = "s", .payload = "p", .id = ""});
    EXPECT_EQ(id.code, Errc::kInvalidArgument);
    EXPECT_THAT(id.detail, HasSubstr("id is empty; leave the field out for no id"));
    const Error group = told(Append{.stream = "s", .payload = "p", .group = ""});
    EXPECT_EQ(group.code, Errc::kInvalidArgument);
    EXPECT_THAT(group.detail, HasSubstr("group is empty; leave the field out for no group"));
    const ProducerMark nobody{"", Epoch{1}, ProducerSequence{0}};
    EXPECT_EQ(told(Append{.stream = "s", .payload = "p", .producer = nobody}).code,
              Errc::kInvalidArgument);
  }
  EXPECT_EQ(last("s"), Sequence{0});
  append("s", "p");
  EXPECT_EQ(records("s").front().id, "");
}

TEST_P(Appends, IdsOfTwoStreamsDoNotMeet) {
  make_stream("a");
  make_stream("b");
  append("a", "p", "id");
  EXPECT_EQ(append("b", "other", "id"), Sequence{1});
}

TEST_P(Appends, AContentIdIsTheSha256OfThePayload) {
  make_stream("s", {.content_ids = true});
  append("s", "hello");
  const std::string sha256 =
      "\x2c\xf2\x4d\xba\x5f\xb0\xa3\x0e\x26\xe8\x3b\x2a\xc5\xb9\xe2\x9e"
      "\x1b\x16\x1e\x5c\x1f\xa7\x42\x5e\x73\x04\x33\x62\x93\x8b\x98\x24";
  always([&] {
    EXPECT_EQ(run<Duplicate>(Append{.stream = "s", .payload = "hello"}).sequence, Sequence{1});
    EXPECT_EQ(repeat("s", "hello", sha256).sequence, Sequence{1});
    EXPECT_EQ(records("s").front().id, sha256);
    EXPECT_EQ(store().find_id("s", sha256, std::nullopt).value()->sequence, Sequence{1});
  });
  EXPECT_EQ(append("s", "hello", "explicit"), Sequence{2});
  EXPECT_EQ(repeat("s", "hello", "explicit").sequence, Sequence{2});
  run<Conflict>(Append{.stream = "s", .payload = "other", .id = "explicit"});
}

TEST_P(Appends, AWindowCountsFromTheFirstAcceptanceAndThenARepeatIsNew) {
  make_stream("s", {.window = Window{std::chrono::seconds{1}}});
  const Time accepted = time_of(Append{.stream = "s", .payload = "p", .id = "id"});
  const Time end = accepted + std::chrono::seconds{1};
  for (const Time again : {accepted, accepted + std::chrono::milliseconds{900}}) {
    wait_until(again);
    const Answer late = commit({Append{.stream = "s", .payload = "p", .id = "id"}});
    if (late.time >= end) return;  // A machine that is so slow shows nothing.
    EXPECT_EQ(as<Duplicate>(late.verdicts[0]).expires_at, end);
  }
  wait_until(end);
  EXPECT_EQ(store().find_id("s", "id", std::nullopt).value(), std::nullopt);
  EXPECT_EQ(append("s", "even other content", "id"), Sequence{2});
}

TEST_P(Appends, ASlidingWindowIsRenewedByEveryRepeat) {
  make_stream("s",
              {.window = Window{std::chrono::seconds{1}}, .window_start = WindowStart::kLastSeen});
  const Time accepted = time_of(Append{.stream = "s", .payload = "p", .id = "id"});
  wait_until(accepted + Duration{200});
  const Answer renewed = commit({Append{.stream = "s", .payload = "p", .id = "id"}});
  if (renewed.time >= accepted + std::chrono::seconds{1}) return;  // Too slow to show anything.
  const auto told = as<Duplicate>(renewed.verdicts[0]);
  EXPECT_EQ(told.first_seen, accepted);
  EXPECT_GE(told.expires_at, renewed.time + std::chrono::seconds{1});
  reopen();
  wait_until(accepted + Duration{1'100});  // Past the first end, before the renewed one.
  const Answer late = commit({Append{.stream = "s", .payload = "p", .id = "id"}});
  if (late.time < told.expires_at) {
    EXPECT_EQ(as<Duplicate>(late.verdicts[0]).sequence, Sequence{1});
    EXPECT_EQ(as<Duplicate>(late.verdicts[0]).first_seen, accepted);
  }
}

TEST_P(Appends, IdsOutliveTheirRecords) {
  make_stream("trimmed");
  make_stream("counted", {.retention = {.count = 1}});
  make_stream("aged", {.retention = {.age = Duration{1}}});
  make_stream("sized", {.retention = {.bytes = 1}});
  make_stream("acked", {.retention = {.acked_by_all = true}});
  const std::array<std::string, 5> names{"trimmed", "counted", "aged", "sized", "acked"};
  for (const std::string& name : names) {
    std::vector<Op> ops;
    std::vector<std::string> ids;
    for (int i = 0; i < 70; ++i) ids.push_back("id " + std::to_string(i));
    for (const std::string& id : ids) {
      ops.push_back(Append{.stream = name, .payload = "p", .id = id});
    }
    for (const Verdict& verdict : commit(ops).verdicts) as<Appended>(verdict);
  }
  run<Done>(Trim{"trimmed", Sequence{71}});
  std::vector<Op> acks;
  for (const Delivery& one : receive("acked", "c"))
    acks.push_back(Ack{"acked", "c", receipt_of(one)});
  commit(acks);
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    wait_for([&] { return store().describe(name).value().first > Sequence{60}; });
  }
  always([&] {
    for (const std::string& name : names) {
      SCOPED_TRACE(name);
      EXPECT_THAT(store().read({.stream = name, .from = Sequence{1}}).value().records,
                  testing::Each(testing::Field(&Record::sequence, testing::Gt(Sequence{60}))));
      EXPECT_EQ(repeat(name, "p", "id 0").sequence, Sequence{1});
      EXPECT_EQ(repeat(name, "p", "id 59").sequence, Sequence{60});
      run<Conflict>(Append{.stream = name, .payload = "other", .id = "id 0"});
    }
  });
}

TEST_P(Appends, AStreamMadeAgainKnowsNoneOfTheOldIds) {
  make_stream("s");
  append("s", "p", "id");
  run<Done>(DeleteStream{"s"});
  EXPECT_EQ(refusal(Append{.stream = "s", .payload = "p"}).code, Errc::kNotFound);
  make_stream("s");
  always([&] {
    EXPECT_EQ(store().find_id("s", "id", std::nullopt).value(), std::nullopt);
    EXPECT_THAT(records("s"), IsEmpty());
  });
  EXPECT_EQ(append("s", "p", "id"), Sequence{1});
}

TEST_P(Appends, AShorterWindowForgetsNothingEarly) {
  make_stream("s");
  const Time accepted = time_of(Append{.stream = "s", .payload = "p", .id = "old"});
  const StreamSettings shorter{.window = Window{std::chrono::seconds{1}}};
  run<Done>(ConfigureStream{"s", shorter});
  const Time since = time_of(Append{.stream = "s", .payload = "p", .id = "new"});
  const Answer again = commit({Append{.stream = "s", .payload = "p", .id = "new"}});
  if (again.time >= since + std::chrono::seconds{1}) return;  // Too slow to show anything.
  EXPECT_EQ(as<Duplicate>(again.verdicts[0]).expires_at, since + std::chrono::seconds{1});
  wait_until(since + std::chrono::seconds{1});
  always([&] {
    EXPECT_EQ(store().find_id("s", "new", std::nullopt).value(), std::nullopt);
    EXPECT_EQ(repeat("s", "p", "old").expires_at, accepted + std::chrono::hours{24});
  });
}

TEST_P(Appends, ALongerWindowDoesNotPretendToKnowWhatIsForgotten) {
  make_stream("s", {.window = Window{std::chrono::seconds{1}}});
  const Time accepted = time_of(Append{.stream = "s", .payload = "p", .id = "id"});
  const Time changed = time_of(ConfigureStream{"s", {}});
  wait_until(accepted + std::chrono::seconds{1});
  always([&] {
    EXPECT_EQ(store().find_id("s", "id", std::nullopt).value(), std::nullopt);
    EXPECT_EQ(store().describe("s").value().settings, StreamSettings{});
    const Time horizon = store().describe("s").value().horizon;
    EXPECT_GE(horizon, changed - std::chrono::seconds{1});
    const Append late{
        .stream = "s", .payload = "p", .id = "id", .first_sent = horizon - Duration{1}};
    EXPECT_EQ(run<TooOldToKnow>(late).horizon, horizon);
  });
}

TEST_P(Appends, ARetryFromBeforeTheHorizonIsTooOldToKnow) {
  make_stream("s");
  const Time created = store().describe("s").value().created_at;
  append("s", "p", "known");
  const Time before = created - Duration{1};
  always([&] {
    EXPECT_EQ(store().describe("s").value().horizon, created);
    const auto told = run<TooOldToKnow>(
        Append{.stream = "s", .payload = "p", .id = "unknown", .first_sent = before});
    EXPECT_EQ(told.horizon, created);
    run<Duplicate>(Append{.stream = "s", .payload = "p", .id = "known", .first_sent = before});
    EXPECT_EQ(last("s"), Sequence{1});
  });
  run<Appended>(Append{.stream = "s", .payload = "p", .id = "new", .first_sent = created});
  run<Appended>(Append{.stream = "s", .payload = "without an id", .first_sent = before});
}

TEST_P(Appends, AWindowMayBeForEver) {
  make_stream("s", {.window = Window::forever()});
  append("s", "p", "id");
  always([&] { EXPECT_EQ(repeat("s", "p", "id").expires_at, Time::max()); });
}

TEST_P(Appends, MakingAStreamAgainIsFineUnlessItsSettingsDiffer) {
  const StreamSettings settings{.window = Window{std::chrono::hours{1}}, .quota_bytes = 1'000};
  make_stream("s", settings);
  always([&] {
    make_stream("s", settings);
    EXPECT_EQ(refusal(CreateStream{"s", {}}).code, Errc::kAlreadyExists);
    EXPECT_EQ(store().describe("s").value().settings, settings);
  });
  EXPECT_EQ(refusal(ConfigureStream{"nowhere", {}}).code, Errc::kNotFound);
  EXPECT_EQ(refusal(DeleteStream{"nowhere"}).code, Errc::kNotFound);
  EXPECT_EQ(refusal(Trim{"nowhere", Sequence{1}}).code, Errc::kNotFound);
}

TEST_P(Appends, NamesThatBeginWithADollarAreTheStoresOwn) {
  EXPECT_EQ(refusal_of_any(CreateStream{"$mine", {}}).code, Errc::kInvalidArgument);
  EXPECT_EQ(refusal_of_any(DeleteStream{"$audit"}).code, Errc::kInvalidArgument);
}

TEST_P(Appends, AFullQuotaRefusesNewRecordsAndStillAnswersRepeats) {
  make_stream("s", {.record_bytes_max = 600, .quota_bytes = 1'000});
  const std::string payload(600, 'p');
  append("s", payload, "id");
  always([&] {
    const Error full = refusal(Append{.stream = "s", .payload = payload, .id = "more"});
    EXPECT_EQ(full.code, Errc::kQuotaExceeded);
    run<Duplicate>(Append{.stream = "s", .payload = payload, .id = "id"});
    const std::string big(601, 'b');
    EXPECT_EQ(refusal(Append{.stream = "s", .payload = big}).code, Errc::kLimitExceeded);
    EXPECT_EQ(last("s"), Sequence{1});
  });
  run<Done>(Trim{"s", Sequence{2}});
  EXPECT_EQ(append("s", payload, "more"), Sequence{2});
}

// --- conditional append --------------------------------------------------------------------------

TEST_P(Appends, TheLastSequenceOfTheStreamMayBeExpected) {
  make_stream("s");
  const auto expecting = [](std::uint64_t sequence) {
    return Append{.stream = "s",
                  .payload = "p",
                  .expect = ExpectLast{ExpectLast::Of::kStream, Sequence{sequence}}};
  };
  EXPECT_EQ(run<ExpectationFailed>(expecting(1)).actual, Sequence{0});
  EXPECT_EQ(run<Appended>(expecting(0)).sequence, Sequence{1});
  always([&] {
    EXPECT_EQ(run<ExpectationFailed>(expecting(0)).actual, Sequence{1});
    EXPECT_EQ(run<ExpectationFailed>(expecting(2)).actual, Sequence{1});
  });
  run<Done>(Trim{"s", Sequence{2}});
  EXPECT_EQ(run<ExpectationFailed>(expecting(0)).actual, Sequence{1});
  EXPECT_EQ(run<Appended>(expecting(1)).sequence, Sequence{2});
}

TEST_P(Appends, TheLastSequenceOfAGroupMayBeExpected) {
  make_stream("s");
  append("s", "p", {}, "a");
  append("s", "p", {}, "b");
  const auto expecting = [](std::string_view group, std::uint64_t sequence) {
    return Append{.stream = "s",
                  .payload = "p",
                  .group = group,
                  .expect = ExpectLast{ExpectLast::Of::kGroup, Sequence{sequence}}};
  };
  always([&] {
    EXPECT_EQ(run<ExpectationFailed>(expecting("a", 2)).actual, Sequence{1});
    EXPECT_EQ(run<ExpectationFailed>(expecting("b", 0)).actual, Sequence{2});
    EXPECT_EQ(run<ExpectationFailed>(expecting("c", 2)).actual, Sequence{0});
  });
  EXPECT_EQ(run<Appended>(expecting("a", 1)).sequence, Sequence{3});
  EXPECT_EQ(run<Appended>(expecting("c", 0)).sequence, Sequence{4});
  make_stream("untracked", {.track_groups = false});
  const Append op{.stream = "untracked",
                  .payload = "p",
                  .group = "a",
                  .expect = ExpectLast{ExpectLast::Of::kGroup, Sequence{0}}};
  EXPECT_EQ(refusal(op).code, Errc::kInvalidArgument);
}

TEST_P(Appends, TheRetryOfAnExpectationThatHeldIsADuplicate) {
  make_stream("s");
  const Append op{.stream = "s",
                  .payload = "p",
                  .id = "id",
                  .expect = ExpectLast{ExpectLast::Of::kStream, Sequence{0}}};
  EXPECT_EQ(run<Appended>(op).sequence, Sequence{1});
  always([&] { EXPECT_EQ(run<Duplicate>(op).sequence, Sequence{1}); });
}

INSTANTIATE_TEST_SUITE_P(, Appends, testing::ValuesIn(all_stores()), name_of);

}  // namespace
}  // namespace hapax::contract
