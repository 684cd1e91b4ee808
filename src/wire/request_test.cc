#include "wire/request.h"

#include <gtest/gtest.h>

#include "base/utf8.h"
#include "wire/answer.h"
#include "wire/json_text.h"
#include "wire/op_fields.h"

namespace hapax::wire {
namespace {

std::string refusal(const Result<SharedRequest>& request) {
  return request ? "accepted" : request.error().detail;
}

TEST(WireRequest, AnAppendWithEverything) {
  const auto request =
      read_op("append",
              R"({"payload":"hello","id":"a","group":"g","headers":{"n":"v"},"producer":"p",
          "producer_epoch":1,"producer_sequence":2,"expect_last":7,"first_sent_ms":12})",
              std::vector<TextField>{{"stream", "orders"}});
  ASSERT_TRUE(request) << request.error().text();
  const auto& op = std::get<Append>((*request)->ops.front());
  EXPECT_EQ(op.stream, "orders");
  EXPECT_EQ(op.payload, "hello");
  EXPECT_EQ(op.id, "a");
  EXPECT_EQ(op.group, "g");
  ASSERT_EQ(op.headers.size(), 1U);
  EXPECT_EQ(op.headers[0].name, "n");
  EXPECT_EQ(op.producer->sequence, ProducerSequence{2});
  EXPECT_EQ(op.expect->last, Sequence{7});
  EXPECT_EQ(op.first_sent, time_from_ms(12));
}

TEST(WireRequest, AnEventBecomesARecordWithItsTypeAmongTheHeaders) {
  const std::vector<TextField> path{{"workflow", "shop"}};
  const auto request =
      read_ops("event", "events",
               R"({"events":[{"id":"a","type":"T","key":"k","payload":1.50,"headers":{"n":"v"}},
          {"id_base64":"/w==","payload":"x"}]})",
               path);
  ASSERT_TRUE(request) << request.error().text();
  const auto& full = std::get<Append>((*request)->ops.at(0));
  EXPECT_EQ(full.id, "a");
  EXPECT_EQ(full.group, "k");
  EXPECT_EQ(full.payload, "1.50");
  ASSERT_EQ(full.headers.size(), 2U);
  EXPECT_EQ(full.headers[0].name, "event_type");
  EXPECT_EQ(full.headers[0].value, "T");
  EXPECT_EQ(full.headers[1].name, "n");
  const auto& plain = std::get<Append>((*request)->ops.at(1));
  EXPECT_EQ(plain.id, "\xff");
  EXPECT_TRUE(plain.headers.empty());
  EXPECT_EQ(refusal(read_ops("event", "events", R"({"payload":1,"type":""})", path)),
            "type: is empty; leave it out instead");
  EXPECT_EQ(refusal(read_ops("event", "events", R"({"payload":1})", path)),
            "id: is missing (Id of the event: the same one again is a duplicate)");
}

// An event is posted to its workflow; in a commit there is none.
TEST(WireRequest, AnEventIsNoOperationOfACommit) {
  EXPECT_EQ(refusal(read_commit(R"({"ops":[{"op":"event","id":"a","payload":1}]})"))
                .find("'event' is not an operation"),
            std::string("ops/0/op: ").size());
}

TEST(WireRequest, BytesComeAsTextAsBase64OrAsJson) {
  const auto payload = [](std::string_view body) {
    const auto request = read_op("append", body, std::vector<TextField>{{"stream", "s"}});
    return request ? std::string(std::get<Append>((*request)->ops.front()).payload)
                   : request.error().detail;
  };
  EXPECT_EQ(payload(R"({"payload":"text"})"), "text");
  EXPECT_EQ(payload(R"({"payload_base64":"AAH/"})"), std::string("\x00\x01\xff", 3));
  EXPECT_EQ(payload(R"({"payload":{"a":[1,2]}})"), R"({"a":[1,2]})");
  EXPECT_EQ(payload(R"({"payload_base64":"!"})"), "payload_base64: expected bytes in base64");
}

std::string_view payload_of(const Result<SharedRequest>& request, std::size_t op) {
  return std::get<Append>((*request)->ops.at(op)).payload;
}

TEST(WireRequest, AJsonValueIsKeptAsItWasSent) {
  const std::vector<TextField> stream{{"stream", "s"}};
  for (const std::string_view value :
       {"12345678901234567890123", "18446744073709551616", "-0", "0.1", "1.10", "1E5", "1e400",
        "true", "[ ]", "{}", "[1 , 2.0,\n\t[\"]\", {\"}\": 1.50}]]",
        R"({"a\"b\\":"\u00e9\/\\","c":[{}]})"}) {
    const std::string body = "{ \"id\" : \"a\\\"}\" ,\"payload\": " + std::string(value) + " }";
    const auto one = read_op("append", body, stream);
    ASSERT_TRUE(one) << one.error().text();
    EXPECT_EQ(payload_of(one, 0), value);
    const std::string text = R"({"payload":"1,["})";
    for (const std::string& list :
         {"[" + text + " , " + body + "]",
          "{\"mode\":\"each\", \"records\" :[" + text + "," + body + " ]}"}) {
      const auto listed = read_ops("append", "records", list, stream);
      ASSERT_TRUE(listed) << listed.error().text();
      EXPECT_EQ(payload_of(listed, 0), "1,[");
      EXPECT_EQ(payload_of(listed, 1), value);
    }
  }
  const auto lines =
      read_op_lines("append", "{\"payload\":1.0}\n\n {\"payload\": {\"n\":2.0} }\r\n", stream);
  ASSERT_TRUE(lines) << lines.error().text();
  EXPECT_EQ(payload_of(lines, 0), "1.0");
  EXPECT_EQ(payload_of(lines, 1), "{\"n\":2.0}");
}

TEST(WireRequest, EveryContentThatMayBeJsonIsKeptAsItWasSent) {
  const auto request = read_commit(
      R"({"id":"c","ops":[{"op":"set","name":"r","value":1.0,"mode":"always"},
          {"op":"claim","content": {"a": 2.0},"scope":"s","key":"k"},
          {"body":[3.0],"op":"settle","result_headers":{"h":4.0},"scope":"s","key":"k","fence":1},
          {"op":"advance","source":"s","expected":5.0,"to":6.0}]})");
  ASSERT_TRUE(request) << request.error().text();
  const auto& ops = (*request)->ops;
  EXPECT_EQ(std::get<Set>(ops[0]).value, "1.0");
  EXPECT_EQ(std::get<Claim>(ops[1]).content, R"({"a": 2.0})");
  EXPECT_EQ(std::get<Settle>(ops[2]).result.body, "[3.0]");
  EXPECT_EQ(std::get<Settle>(ops[2]).result.headers, R"({"h":4.0})");
  EXPECT_EQ(std::get<Advance>(ops[3]).expected, "5.0");
  EXPECT_EQ(std::get<Advance>(ops[3]).to, "6.0");
}

TEST(WireRequest, EveryMistakeIsNamedWithItsPlace) {
  const std::vector<TextField> stream{{"stream", "s"}};
  EXPECT_EQ(refusal(read_op("append", "{}", stream)), "payload: is missing (The record's content)");
  EXPECT_EQ(refusal(read_op("append", R"({"payload":"","idd":"x"})", stream)),
            "idd: is not a field of this operation; did you mean 'id'?");
  EXPECT_EQ(refusal(read_op("append", R"({"payload":"","id":5})", stream)),
            "id: expected a string, got a number");
  EXPECT_EQ(refusal(read_op("append", R"({"payload":"","stream":"t"})", stream)),
            "stream: stands in the path already; leave it out of the body");
  EXPECT_EQ(refusal(read_op("append", "[]", stream)), "expected an object, got an array");
  EXPECT_EQ(refusal(read_op("trim", "", std::vector<TextField>{{"stream", "s"}, {"before", "x"}})),
            "before: expected a whole number from 0 to 18446744073709551615, got 'x'");
  EXPECT_NE(refusal(read_op("append", "{\n  \"payload\": nope}", stream)).find("line 2, column"),
            std::string::npos);
  EXPECT_EQ(refusal(read_commit(R"({"ops":[{"op":"append","stream":"s","payload":""},
                                           {"op":"apend"}]})")),
            "ops/1/op: 'apend' is not an operation; did you mean 'append'?");
  EXPECT_EQ(refusal(read_commit(R"({"ops":[{"op":"ack","stream":"s","consumer":"c"}]})")),
            "ops/0/receipt: is missing (As it was handed out)");
  EXPECT_EQ(refusal(read_commit(R"({"mode":"all","ops":[]})")),
            "mode: expected one of atomic, each, got a string");
  EXPECT_EQ(refusal(read_op_lines("append", "{\"payload\":\"\"}\n\n{}\n", stream)),
            "line 3/payload: is missing (The record's content)");
}

// A variable that was never filled in must not turn off what the field is for.
TEST(WireRequest, NoneIsTheFieldLeftOut) {
  const std::vector<TextField> stream{{"stream", "s"}};
  for (const char* field : {"id", "group", "headers", "producer", "expect_last", "first_sent_ms"}) {
    const std::string body = R"({"payload":"","X":null})";
    const std::string named = std::string(body).replace(body.find('X'), 1, field);
    EXPECT_EQ(refusal(read_op("append", named, stream)),
              std::string(field) + ": is null; leave the field out instead");
  }
  EXPECT_EQ(refusal(read_op("append", R"({"payload":null})", stream)),
            "payload: is null; leave the field out instead");
  EXPECT_EQ(refusal(read_commit(R"({"id":null,"ops":[]})")),
            "id: is null; leave the field out instead");
  EXPECT_EQ(refusal(read_op("append", R"({"payload":"","id":null,"id_base64":"eA=="})", stream)),
            "id: id and id_base64 exclude each other");
  // An empty one is given: the store refuses it.
  for (const char* body : {R"({"payload":"","id":""})", R"({"payload":"","id_base64":""})"}) {
    const auto request = read_op("append", body, stream);
    ASSERT_TRUE(request) << request.error().text();
    EXPECT_EQ(std::get<Append>((*request)->ops.front()).id, std::string_view());
  }
  const auto none = read_op("append", R"({"payload":""})", stream);
  ASSERT_TRUE(none);
  EXPECT_EQ(std::get<Append>((*none)->ops.front()).id, std::nullopt);
  EXPECT_EQ((*none)->commit().id, std::nullopt);
}

TEST(WireRequest, EverythingThatIsMissingIsToldAtOnce) {
  EXPECT_EQ(refusal(read_commit(R"({"ops":[{"op":"resolve"}]})")),
            "ops/0/scope, ops/0/key, ops/0/resolution: are missing (Namespace of the key; What is "
            "done once; What really happened)");
}

TEST(WireRequest, ARegisterMayExpire) {
  const std::vector<TextField> name{{"name", "r"}};
  const auto expiry = [&](std::string_view body) {
    const auto request = read_op("set", body, name);
    return request ? std::get<Set>((*request)->ops.front()).expiry : Expiry{};
  };
  EXPECT_EQ(expiry(R"({"value":"v"})"), Expiry{});
  EXPECT_EQ(expiry(R"({"value":"v","keep_expiry":true})").kind, Expiry::Kind::kKeep);
  EXPECT_EQ(expiry(R"({"value":"v","expires_in_ms":5})"),
            (Expiry{Expiry::Kind::kAfter, {}, Duration{5}}));
  EXPECT_EQ(expiry(R"({"value":"v","expires_at_ms":7})"),
            (Expiry{Expiry::Kind::kAt, time_from_ms(7), {}}));
  EXPECT_EQ(refusal(read_op("set", R"({"value":"","expires_at_ms":7,"expires_in_ms":5})", name)),
            "expires_at_ms: expires_at_ms and expires_in_ms exclude each other");
  EXPECT_EQ(refusal(read_op("set", R"({"value":"","expires_at_ms":7,"keep_expiry":true})", name)),
            "keep_expiry: keep_expiry and another expiry exclude each other");
  EXPECT_EQ(refusal(read_op("expire", R"({"only_if":"once"})", name)),
            "only_if: expected one of always, never, some, later, earlier, some_earlier, got a "
            "string");
  EXPECT_EQ(json_of(Verdict{Held{true, "v", Version{3}, Time::max(), 0}}),
            R"({"verdict":"done","applied":true,"value":"v","version":3,"expires_at_ms":null,)"
            R"("number":0})");
  EXPECT_EQ(json_of(Verdict{Held{.applied = true, .version = Version{3}}}),
            R"({"verdict":"done","applied":true,"version":3,"expires_at_ms":null})");
}

TEST(WireRequest, DeepNestingIsRefused) {
  const std::string deep = "{\"payload\":" + std::string(1000, '[') + std::string(1000, ']') + "}";
  EXPECT_NE(refusal(read_op("append", deep, std::vector<TextField>{{"stream", "s"}})), "accepted");
}

// One reader reads both; requests may be deeper and larger.
TEST(WireRequest, IsReadAsStrictlyAsDocuments) {
  const std::vector<TextField> stream{{"stream", "s"}};
  const auto payload = [&](const std::string& json) {
    return refusal(read_op("append", "{\"payload\":" + json + "}", stream));
  };
  for (const char* text : {"{\"a\":1,}", "[1,]", "'a'", "nul", "01", "1 // c\n", "\"\xff\"",
                           "\"\xed\xa0\x80\"", "\"\\ud800\"", "NaN"}) {
    EXPECT_NE(payload(text), "accepted") << text;
  }
  EXPECT_EQ(refusal(read_op("append", "{\"payload\":1} {}", stream)),
            "the body is not JSON (line 1, column 15): extra data");
  EXPECT_EQ(payload(R"({"a":1,"\u0061":2})"), "a: stands twice in one object (line 1, column 26)");
  EXPECT_EQ(payload(std::string(63, '[') + std::string(63, ']')), "accepted");
  EXPECT_NE(payload(std::string(64, '[') + std::string(64, ']')), "accepted");
}

TEST(WireRequest, NumbersOutOfRangeAreRefused) {
  const std::vector<TextField> path{{"stream", "s"}, {"consumer", "c"}};
  EXPECT_NE(refusal(read_op("receive", R"({"max":4294967296})", path)), "accepted");
  EXPECT_NE(refusal(read_op("receive", R"({"max":-1})", path)), "accepted");
  EXPECT_NE(refusal(read_op("receive", R"({"max":1.5})", path)), "accepted");
  EXPECT_EQ(refusal(read_op("receive", R"({"max":5})", path)), "accepted");
  EXPECT_EQ(refusal(read_op("receive", R"({"max":5e0,"lease_ms":1e3})", path)), "accepted");
  // Neither what no number of ours holds, nor what would become its neighbour.
  for (const std::string lease : {"1e400", "-1e400", "9223372036854775808", "-9223372036854775809",
                                  "9007199254740993.0", "0.1"}) {
    EXPECT_EQ(refusal(read_op("receive", "{\"lease_ms\":" + lease + "}", path)),
              "lease_ms: expected a whole number from -9223372036854775808 to "
              "9223372036854775807, got a number")
        << lease;
  }
}

TEST(WireRequest, AWindowIsANumberOrTheWordForever) {
  const std::vector<TextField> path{{"stream", "s"}};
  const auto window = [&](const std::string& value) {
    return refusal(read_op("create_stream", "{\"window_s\":" + value + "}", path));
  };
  EXPECT_EQ(window("60"), "accepted");
  EXPECT_EQ(window(R"("forever")"), "accepted");
  for (const char* text : {R"("60")", R"("")", R"("Forever")", R"("1h")"}) {
    EXPECT_EQ(window(text), "window_s: expected a number of seconds, or \"forever\", got a string")
        << text;
  }
}

// A fence that is read as its neighbour is the fence of somebody else.
TEST(WireRequest, AWholeNumberWithAPointIsThatNumber) {
  std::uint64_t written = 1;
  for (int i = 0; i < 2'000; ++i) {
    written = written * 6'364'136'223'846'793'005U + 1'442'695'040'888'963'407U;
    const std::uint64_t fence = written >> 11U;  // below 2^53
    const auto request =
        read_op("renew", R"({"scope":"s","key":"k","fence":)" + std::to_string(fence) + ".0}", {});
    ASSERT_TRUE(request) << fence << ": " << request.error().text();
    ASSERT_EQ(std::get<Renew>((*request)->ops.front()).fence.value, fence);
  }
}

TEST(WireRequest, AListIsReadWithItsOptions) {
  const auto request = read_ops("append", "records",
                                R"({"mode":"atomic","id":"c1","records":[{"payload":"1"},
                                    {"payload":"2"}]})",
                                std::vector<TextField>{{"stream", "s"}});
  ASSERT_TRUE(request) << request.error().text();
  EXPECT_EQ((*request)->ops.size(), 2U);
  EXPECT_EQ((*request)->mode, Mode::kAtomic);
  EXPECT_EQ((*request)->id, "c1");
}

// What decides is the member of the outermost object, wherever else the word stands.
TEST(WireRequest, ItKnowsOneOperationFromAList) {
  const auto alone = [](std::string_view body) {
    const auto request =
        read_ops("append", "records", body, std::vector<TextField>{{"stream", "s"}});
    return request && (*request)->alone && (*request)->mode == Mode::kAtomic;
  };
  EXPECT_TRUE(alone(R"({"payload":"1"})"));
  EXPECT_TRUE(alone(R"({"id":"records","payload":"1"})"));
  EXPECT_TRUE(alone(R"({"payload":{"records":[]}})"));
  EXPECT_TRUE(alone(R"({"payload":"1","headers":{"records":"2"}})"));
  EXPECT_FALSE(alone(R"({"\u0072ecords":[{"payload":"1"}]})"));
  EXPECT_FALSE(alone(R"([{"payload":"1"}])"));
}

TEST(WireRequest, WhatStandsTwiceIsRefused) {
  const std::vector<TextField> stream{{"stream", "s"}};
  EXPECT_EQ(refusal(read_op("append", R"({"id":"a","id":"b","payload":"1"})", stream)),
            "id: stands twice in one object (line 1, column 14)");
  EXPECT_EQ(refusal(read_op("append", R"({"payload":{"a":1,"b":[{"c":1,"c":2}]}})", stream)),
            "c: stands twice in one object (line 1, column 33)");
  EXPECT_EQ(refusal(read_op("append", R"({"payload":"","headers":{"n":"1","n":"2"}})", stream)),
            "n: stands twice in one object (line 1, column 36)");
  EXPECT_EQ(refusal(read_op("append", R"({"payload":{"a":{"n":1},"b":{"n":1}}})", stream)),
            "accepted");
  EXPECT_EQ(refusal(read_ops("append", "records",
                             "{\"records\":[{\"payload\":\"1\"},\n{\"id\":\"a\",\"id\":\"a\"}]}",
                             stream)),
            "id: stands twice in one object (line 2, column 14)");
  EXPECT_EQ(
      refusal(read_op_lines("append", "{\"payload\":\"\"}\n{\"id\":\"\",\"id\":\"\"}", stream)),
      "line 2: id: stands twice in one object (line 1, column 13)");
  EXPECT_EQ(refusal(read_op("append", R"({"payload":"1","payload_base64":"Mg=="})", stream)),
            "payload: payload and payload_base64 exclude each other");
}

TEST(WireJson, WhatIsNotUtf8IsShownAsSuch) {
  EXPECT_EQ(json_text("a\"\\\n\x01z"), R"("a\"\\\n\u0001z")");
  EXPECT_EQ(json_text("J\xc3\xbcrgen"), "\"J\xc3\xbcrgen\"");
  EXPECT_EQ(json_text("\xff"), "\"\xef\xbf\xbd\"");
  EXPECT_TRUE(base::is_utf8("\xf0\x9f\x98\x80"));
  for (const std::string_view bad : {"\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82"}) {
    EXPECT_FALSE(base::is_utf8(bad));
  }
}

TEST(WireAnswer, AVerdictIsAnObject) {
  EXPECT_EQ(json_of(Verdict{Appended{Sequence{3}}}), R"({"verdict":"fresh","sequence":3})");
  EXPECT_EQ(json_of(Verdict{Duplicate{Sequence{3}, time_from_ms(5), Time::max()}}),
            R"({"verdict":"duplicate","sequence":3,"first_seen_ms":5,"expires_at_ms":null})");
  Record record;
  record.sequence = Sequence{1};
  record.payload = "\xff";
  EXPECT_EQ(json_of(record), R"({"sequence":1,"time_ms":0,"payload_base64":"/w=="})");
}

}  // namespace
}  // namespace hapax::wire
