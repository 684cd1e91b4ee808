#include "resp/op_arguments.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "resp/verdict_reply.h"

namespace hapax::resp {
namespace {

class OpArguments : public testing::Test {
 protected:
  Result<Op> read(std::string_view name, std::vector<std::string_view> arguments) {
    kept_ = std::move(arguments);
    const auto found = std::find_if(op_syntaxes().begin(), op_syntaxes().end(),
                                    [&](const OpSyntax& command) { return command.name == name; });
    Op op;
    const Status read = found->read(kept_, headers_, usual_, op);
    return read ? Result<Op>(op) : Result<Op>(read.error());
  }
  std::string refusal(std::string_view name, std::vector<std::string_view> arguments) {
    const auto op = read(name, std::move(arguments));
    return op ? "accepted" : op.error().detail;
  }

  std::vector<std::string_view> kept_;
  std::deque<std::vector<Header>> headers_;
  wire::Usual usual_;
};

TEST_F(OpArguments, RequiredFieldsStandInTheirOrderAndOptionsByName) {
  const auto op = read("HX.APPEND", {"orders", "payload", "ID", "a", "group", "g", "HEADERS", "1",
                                     "n", "v", "EXPECT_LAST", "7"});
  ASSERT_TRUE(op) << op.error().text();
  const auto& append = std::get<Append>(*op);
  EXPECT_EQ(append.stream, "orders");
  EXPECT_EQ(append.payload, "payload");
  EXPECT_EQ(append.id, "a");
  EXPECT_EQ(append.group, "g");
  ASSERT_EQ(append.headers.size(), 1U);
  EXPECT_EQ(append.headers[0].value, "v");
  ASSERT_TRUE(append.expect);
  EXPECT_EQ(append.expect->last, Sequence{7});
}

TEST_F(OpArguments, WhatIsNotSaidIsAsUsual) {
  const Window hour{std::chrono::hours{1}};
  usual_.window = hour;
  const auto made = read("HX.CREATE_STREAM", {"orders"});
  ASSERT_TRUE(made) << made.error().text();
  EXPECT_EQ(std::get<CreateStream>(*made).settings.window, hour);
  const auto claimed = read("HX.CLAIM", {"mail", "k", "TOMBSTONE_S", "7200"});
  ASSERT_TRUE(claimed) << claimed.error().text();
  EXPECT_EQ(std::get<Claim>(*claimed).retention, hour);
  EXPECT_EQ(std::get<Claim>(*claimed).tombstone, Window{std::chrono::hours{2}});
}

TEST_F(OpArguments, EveryMistakeIsNamed) {
  EXPECT_EQ(refusal("HX.APPEND", {"orders"}), "payload: is missing (The record's content)");
  EXPECT_EQ(refusal("HX.APPEND", {"s", "p", "ID"}), "ID: has no value");
  EXPECT_EQ(refusal("HX.APPEND", {"s", "p", "IDD", "x"}),
            "IDD: is not an option here; did you mean 'id'?");
  EXPECT_EQ(refusal("HX.APPEND", {"s", "p", "ID", "x", "id", "y"}), "id: is given twice");
  EXPECT_EQ(refusal("HX.RECEIVE", {"s", "c", "MAX", "many"}),
            "max: expected a whole number from 0 to 4294967295, got 'many'");
  EXPECT_EQ(refusal("HX.SETTLE", {"s", "k", "1", "OUTCOME", "done"}),
            "outcome: expected one of completed, failed, unknown, released, got 'done'");
  EXPECT_EQ(refusal("HX.APPEND", {"s", "p", "HEADERS", "2", "n", "v"}),
            "headers: expected their number, then as many names and values");
  EXPECT_EQ(refusal("HX.APPEND", {"s", "p", "PRODUCER", "x"}),
            "producer: producer, producer_epoch and producer_sequence come together");
  EXPECT_EQ(refusal("HX.ACK", {"s", "c", "17"}),
            "receipt: expected a receipt as it was handed out, got '17'");
}

TEST_F(OpArguments, AnOptionMayLookLikeAName) {
  const auto op = read("HX.APPEND", {"ID", "GROUP", "ID", "ID"});
  ASSERT_TRUE(op) << op.error().text();
  EXPECT_EQ(std::get<Append>(*op).stream, "ID");
  EXPECT_EQ(std::get<Append>(*op).id, "ID");
}

TEST(RespReplies, AMapIsFlatInTheOldProtocol) {
  Replies replies;
  reply_verdict(replies, Appended{Sequence{3}}, time_from_ms(7));
  EXPECT_EQ(
      replies.text(),
      "*6\r\n$7\r\nverdict\r\n$5\r\nfresh\r\n$7\r\ntime_ms\r\n:7\r\n$8\r\nsequence\r\n:3\r\n");
  replies.clear();
  replies.use(RespVersion::kResp3);
  reply_verdict(replies, Appended{Sequence{3}}, time_from_ms(7));
  EXPECT_EQ(
      replies.text(),
      "%3\r\n$7\r\nverdict\r\n$5\r\nfresh\r\n$7\r\ntime_ms\r\n:7\r\n$8\r\nsequence\r\n:3\r\n");
}

TEST(RespReplies, AnErrorStaysOnItsLine) {
  Replies replies;
  replies.error("ERR", "two\r\nlines");
  EXPECT_EQ(replies.text(), "-ERR two  lines\r\n");
}

}  // namespace
}  // namespace hapax::resp
