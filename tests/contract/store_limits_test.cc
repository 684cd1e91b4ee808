// Every limit of hapax/limits.h that one store can reach in a test: what is at the limit is taken,
// what is beyond it is refused with the thing, its value and the most.
#include <array>

#include "store_contract.h"

namespace hapax::contract {
namespace {

using testing::HasSubstr;

class Limits : public StoreContract {
 protected:
  void beyond(const Op& op, std::string_view says) {
    SCOPED_TRACE(says);
    const Error error = refusal(op);
    EXPECT_EQ(error.code, Errc::kLimitExceeded);
    EXPECT_THAT(error.text(), HasSubstr("HX1002"));
    EXPECT_THAT(error.detail, HasSubstr(std::string(says)));
  }
  // Too short: a mistake of the caller, not more than the store offers.
  void below(const Op& op, std::string_view says) {
    SCOPED_TRACE(says);
    const Error error = refusal(op);
    EXPECT_EQ(error.code, Errc::kInvalidArgument);
    EXPECT_THAT(error.detail, HasSubstr(std::string(says)));
  }
  template <class T>
  static void beyond(const Result<T>& result, std::string_view says) {
    SCOPED_TRACE(says);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, Errc::kLimitExceeded);
    EXPECT_THAT(result.error().detail, HasSubstr(std::string(says)));
  }

  const std::string name_ = std::string(255, 'n');
  const std::string long_ = std::string(256, 'n');
};

constexpr std::string_view kSays255 = "has 256; the most is 255";

TEST_P(Limits, OfNames) {
  make_stream(name_);
  run<Appended>(Append{.stream = name_,
                       .payload = "p",
                       .group = name_,
                       .producer = ProducerMark{name_, Epoch{1}, {}}});
  run<Claimed>(Claim{.scope = name_, .key = name_, .owner = name_});
  run<Registered>(Set{.name = name_});
  run<Done>(Advance{name_, "", "1", Epoch{1}});
  run<Began>(Begin{name_});
  make_stream("s");
  receive("s", name_, 1, limits::kLeaseDefault, name_);
  const std::vector<Op> all{CreateStream{long_, {}},
                            Append{.stream = long_},
                            Append{.stream = "s", .group = long_},
                            Append{.stream = "s", .id = long_},
                            Append{.stream = "s", .producer = ProducerMark{long_, Epoch{1}, {}}},
                            Claim{.scope = long_, .key = "k"},
                            Claim{.scope = "c", .key = long_},
                            Claim{.scope = "c", .key = "k", .owner = long_},
                            Advance{long_, "", "1", Epoch{1}},
                            Begin{long_},
                            End{long_, Epoch{1}},
                            Receive{.stream = "s", .consumer = long_},
                            Receive{.stream = "s", .consumer = "c", .owner = long_},
                            CreateConsumer{"s", "c", {.dead_letters = long_}},
                            Trim{long_, Sequence{1}},
                            Resolve{.scope = "c", .key = "k", .actor = long_, .reason = "r"},
                            Forget{"c", long_, "ann", "r"},
                            RetireProducer{"s", long_, "ann", "r"}};
  for (std::size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(i);
    if (std::holds_alternative<End>(all[i])) {
      beyond(try_commit({all[i]}), kSays255);
    } else {
      beyond(all[i], kSays255);
    }
  }
  beyond(try_commit({Set{.name = "r"}}, Mode::kAtomic, long_), kSays255);
  EXPECT_TRUE(try_commit({Set{.name = "r"}}, Mode::kAtomic, name_).ok());
}

TEST_P(Limits, OfRegisters) {
  const std::string name(512, 'n');
  const std::string beyond_it(513, 'n');
  run<Registered>(Set{.name = name});
  const Expiry late{Expiry::Kind::kAfter, {}, limits::kExpiryMax + Duration{1}};
  const Expiry at{Expiry::Kind::kAt, time_from_ms(limits::kExpiryMax.count() + 1), {}};
  for (const Op& op : std::vector<Op>{Set{.name = beyond_it}, Get{beyond_it}, Unset{beyond_it},
                                      Expire{beyond_it, {}}, Add{beyond_it}}) {
    SCOPED_TRACE(op.index());
    beyond(op, "has 513; the most is 512");
  }
  for (const Op& op :
       std::vector<Op>{Set{.name = "r", .expiry = late}, Set{.name = "r", .expiry = at},
                       Expire{"r", late}, Expire{"r", at}}) {
    SCOPED_TRACE(op.index());
    beyond(op, "and " + std::to_string(limits::kExpiryMax.count()));
  }
}

TEST_P(Limits, OfMissingNames) {
  make_stream("s");
  for (const Op& op :
       std::vector<Op>{CreateStream{}, Append{}, Claim{.scope = "s"}, Claim{.key = "k"}, Set{},
                       Begin{}, Receive{.stream = "s"}, Receive{.consumer = "c"},
                       Advance{.source = "s"}, Append{.stream = "s", .producer = ProducerMark{}}}) {
    SCOPED_TRACE(op.index());
    EXPECT_EQ(refusal(op).code, Errc::kInvalidArgument);
  }
}

TEST_P(Limits, OfReasons) {
  const std::string reason(1'024, 'r');
  const std::string longer(1'025, 'r');
  const Fence fence = run<Claimed>(Claim{.scope = "c", .key = "k"}).fence;
  const auto settle = [&](std::string_view why) {
    return Settle{
        .scope = "c", .key = "k", .fence = fence, .outcome = Outcome::kUnknown, .reason = why};
  };
  beyond(settle(longer), "reason has 1025; the most is 1024");
  run<Done>(settle(reason));
  beyond(Resolve{.scope = "c", .key = "k", .actor = "ann", .reason = longer},
         "has 1025; the most is 1024");
  run<Done>(Resolve{.scope = "c", .key = "k", .actor = "ann", .reason = reason});
  make_stream("s");
  append("s", "p");
  const Receipt receipt = receipt_of(receive("s", "c").front());
  beyond(Nack{"s", "c", receipt, {}, longer}, "reason has 1025; the most is 1024");
  run<Done>(Nack{"s", "c", receipt, {}, reason});
}

TEST_P(Limits, OfRecords) {
  const std::string most(limits::kRecordBytesMax, 'p');
  const std::string more = most + 'p';
  make_stream("default");
  make_stream("large", {.record_bytes_max = limits::kRecordBytesMax});
  append("large", most);
  beyond(Append{.stream = "large", .payload = more}, "has 8388609; the most is 8388608");
  const std::string_view mebibyte = std::string_view(most).substr(0, std::size_t{1} << 20);
  append("default", mebibyte);
  beyond(Append{.stream = "default", .payload = std::string_view(most).substr(0, 1'048'577)},
         "has 1048577; the most is 1048576");
  beyond(CreateStream{"s", {.record_bytes_max = limits::kRecordBytesMax + 1}},
         "record_bytes_max has 8388609; the most is 8388608");
  always([&] { EXPECT_TRUE(records("large").front().payload == most); });
}

TEST_P(Limits, OfHeaders) {
  make_stream("s");
  std::vector<Header> headers(64, Header{"n", "v"});
  run<Appended>(Append{.stream = "s", .payload = "p", .headers = headers});
  headers.push_back({"n", "v"});
  beyond(Append{.stream = "s", .payload = "p", .headers = headers},
         "number of headers has 65; the most is 64");
  const std::string value(65'535, 'v');
  headers = {Header{"n", value}};
  run<Appended>(Append{.stream = "s", .payload = "p", .headers = headers});
  headers = {Header{"nn", value}};
  beyond(Append{.stream = "s", .payload = "p", .headers = headers},
         "headers of a record has 65537; the most is 65536");
}

TEST_P(Limits, OfResults) {
  const Fence fence = run<Claimed>(Claim{.scope = "c", .key = "k"}).fence;
  const std::string body(limits::kResultBytesMax, 'b');
  const auto settle = [&](std::string_view headers) {
    return Settle{.scope = "c", .key = "k", .fence = fence, .result = {200, headers, body}};
  };
  beyond(settle("h"), "result has 8388609; the most is 8388608");
  run<Done>(settle(""));
  EXPECT_TRUE(store().find_claim("c", "k").value()->result->body == body);
}

TEST_P(Limits, OfRegistersAndPositions) {
  const std::string value(65'537, 'v');
  beyond(Set{.name = "r", .value = value}, "value of a register has 65537; the most is 65536");
  run<Registered>(Set{.name = "r", .value = std::string_view(value).substr(1)});
  const std::string position(1'025, 'p');
  const std::string_view most = std::string_view(position).substr(1);
  beyond(Advance{"s", "", position, Epoch{1}}, "has 1025; the most is 1024");
  beyond(Advance{"s", position, "1", Epoch{1}}, "expected position has 1025; the most is 1024");
  run<Done>(Advance{"s", "", most, Epoch{1}});
  run<Done>(Advance{"s", most, "1", Epoch{1}});
}

TEST_P(Limits, OfACommit) {
  EXPECT_EQ(try_commit({}).error().code, Errc::kInvalidArgument);
  make_stream("s", {.record_bytes_max = limits::kRecordBytesMax});
  std::vector<Op> many(limits::kCommitOpsMax, Op{Trim{"s", Sequence{1}}});
  EXPECT_TRUE(commit(many).committed);
  many.push_back(many.back());
  beyond(try_commit(many), "has 100001; the most is 100000");
  const std::string eighth(limits::kRecordBytesMax, 'p');
  std::vector<Op> large(4, Op{Append{.stream = "s", .payload = eighth}});
  EXPECT_TRUE(commit(large).committed);
  large.push_back(large.back());
  beyond(try_commit(large), "commit in bytes has");
  EXPECT_EQ(last("s"), Sequence{4});
}

TEST_P(Limits, OfConsumersPerStream) {
  make_stream("s");
  std::vector<std::string> names;
  for (std::size_t i = 0; i < limits::kConsumersPerStreamMax; ++i) {
    names.push_back("c" + std::to_string(i));
  }
  std::vector<Op> ops;
  for (const std::string& name : names) ops.push_back(CreateConsumer{"s", name, {}});
  EXPECT_TRUE(commit(ops).committed);
  beyond(CreateConsumer{"s", "more", {}}, "has 1001; the most is 1000");
  beyond(Receive{.stream = "s", .consumer = "more"}, "has 1001; the most is 1000");
}

TEST_P(Limits, OfReceiveAndRead) {
  make_stream("s");
  run<Received>(Receive{.stream = "s", .consumer = "c", .max = 10'000});
  beyond(Receive{.stream = "s", .consumer = "c", .max = 10'001}, "has 10001; the most is 10000");
  EXPECT_EQ(refusal(Receive{.stream = "s", .consumer = "c", .max = 0}).code,
            Errc::kInvalidArgument);
  EXPECT_TRUE(store().read({.stream = "s", .max = 10'000}).ok());
  beyond(store().read({.stream = "s", .max = 10'001}), "has 10001; the most is 10000");
}

TEST_P(Limits, OfConsumerSettings) {
  make_stream("s");
  beyond(CreateConsumer{"s", "c", {.in_flight_max = 100'001}},
         "in_flight_max has 100001; the most is 100000");
  beyond(CreateConsumer{"s", "c", {.attempts_max = 1'000'001}},
         "attempts_max has 1000001; the most is 1000000");
  EXPECT_EQ(refusal(CreateConsumer{"s", "c", {.attempts_max = 0}}).code, Errc::kInvalidArgument);
  run<Done>(CreateConsumer{"s", "c", {.attempts_max = 1'000'000, .in_flight_max = 100'000}});
}

TEST_P(Limits, OfStreamSettings) {
  const auto wrong = [this](const Retention& retention, std::string_view says) {
    for (const Op& op : {Op{CreateStream{"s", {.retention = retention}}},
                         Op{ConfigureStream{"known", {.retention = retention}}}}) {
      const Error error = refusal(op);
      EXPECT_EQ(error.code, Errc::kInvalidArgument);
      EXPECT_THAT(error.detail, HasSubstr(std::string(says)));
    }
  };
  make_stream("known");
  wrong({.age = Duration{0}}, "retention by age is 0 ms; it must be at least 1");
  wrong({.age = Duration{-5}}, "retention by age is -5 ms; it must be at least 1");
  wrong({.bytes = 0}, "retention by bytes is 0; leave it out to keep all records");
  wrong({.count = 0}, "retention by count is 0; leave it out to keep all records");
  EXPECT_EQ(refusal(CreateStream{"s", {.record_bytes_max = 0}}).code, Errc::kInvalidArgument);
  make_stream("s", {.retention = {.age = Duration{1}, .bytes = 1, .count = 1}});
}

TEST_P(Limits, OfTheBytesOfAReceive) {
  make_stream("s", {.record_bytes_max = limits::kRecordBytesMax});
  const std::string largest(limits::kRecordBytesMax, 'l');
  const std::string half(GetParam().receive_bytes_max / 2 - 1'024, 'h');
  append("s", "small");
  append("s", largest);  // Beyond the limit on its own.
  std::vector<Op> batch(4, Op{Append{.stream = "s", .payload = half}});
  EXPECT_TRUE(commit(batch).committed);
  using testing::ElementsAre;
  EXPECT_THAT(sequences(receive("s", "c")), ElementsAre(1));
  const std::vector<Delivery> alone = receive("s", "c");
  ASSERT_THAT(sequences(alone), ElementsAre(2));
  EXPECT_TRUE(alone.front().record.payload == largest);
  EXPECT_THAT(sequences(receive("s", "c")), ElementsAre(3, 4));
  reopen();
  const std::vector<Delivery> last = receive("s", "c", 100, Duration{1});
  EXPECT_THAT(sequences(last), ElementsAre(5, 6));
  append("s", std::string(4'096, 'n'));
  wait_until(last.front().lease_until);
  // What is due again comes first and counts, too.
  EXPECT_THAT(sequences(receive("s", "c")), ElementsAre(5, 6));
  EXPECT_THAT(sequences(receive("s", "c")), ElementsAre(7));
}

TEST_P(Limits, OfProducerSettings) {
  beyond(CreateStream{"s", {.producer_memory = 100'001}},
         "producer_memory has 100001; the most is 100000");
  beyond(CreateStream{"s", {.producers_max = 100'001}},
         "producers_max has 100001; the most is 100000");
  EXPECT_EQ(refusal(CreateStream{"s", {.producer_memory = 0}}).code, Errc::kInvalidArgument);
  make_stream("s", {.producer_memory = 100'000, .producers_max = 100'000});
}

TEST_P(Limits, OfTransactions) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < limits::kTransactionsOpenMax; ++i) {
    names.push_back("t" + std::to_string(i));
  }
  std::vector<Op> ops;
  for (const std::string& name : names) ops.push_back(Begin{name});
  const Answer began = commit(ops);
  EXPECT_TRUE(began.committed);
  const Error more = refusal(Begin{"more"});
  EXPECT_EQ(more.code, Errc::kRateLimited);  // Waiting helps.
  EXPECT_THAT(more.detail, HasSubstr("has 1000 open transactions, as many as it may"));
  const Epoch epoch = run<Began>(Begin{"t0"}).epoch;  // Replaces an open one.
  make_stream("s", {.record_bytes_max = limits::kRecordBytesMax});
  const std::string payload(limits::kRecordBytesMax - 1'024, 'p');
  const std::vector<Op> large{Append{.stream = "s", .payload = payload}};
  Commit stage;
  stage.ops = large;
  stage.transaction = TransactionRef{"t0", epoch};
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(store().commit(stage).ok());
  beyond(store().commit(stage), "the most is 33554432");
  EXPECT_TRUE(commit({End{"t0", epoch}}).committed);
  EXPECT_EQ(last("s"), Sequence{4});
}

TEST_P(Limits, OfWindows) {
  const Window least{limits::kWindowMin};
  const Window most{limits::kWindowMax};
  const Window none{std::chrono::seconds{0}};
  const Window more{limits::kWindowMax + std::chrono::seconds{1}};
  constexpr std::string_view kBounds = "between 1 and 34560000 s";
  const Window negative{std::chrono::seconds{-1}};
  const Window endless{std::chrono::years{137}};  // More seconds than 32 bits hold.
  const auto all = [](Window wrong) {
    return std::vector<Op>{CreateStream{"s", {.window = wrong}},
                           Claim{.scope = "c", .key = "k", .retention = wrong},
                           Claim{.scope = "c", .key = "k", .tombstone = wrong}};
  };
  const auto remembered = [&](Window wrong) {
    const std::array<Op, 1> ops{Set{.name = "r"}};
    return store().commit({.ops = ops, .id = "id", .id_window = wrong});
  };
  for (const Window wrong : {more, endless}) {
    for (const Op& op : all(wrong)) beyond(op, kBounds);
    beyond(remembered(wrong), kBounds);
  }
  for (const Window wrong : {none, negative}) {
    for (const Op& op : all(wrong)) below(op, kBounds);
    EXPECT_EQ(remembered(wrong).error().code, Errc::kInvalidArgument);
  }
  make_stream("least", {.window = least});
  make_stream("most", {.window = most});
  run<Claimed>(Claim{.scope = "c", .key = "k", .retention = most, .tombstone = most});
}

TEST_P(Limits, OfSpans) {
  make_stream("s");
  constexpr std::string_view kLease = "it must be between 1 and 86400000";
  const auto all = [](Duration wrong) {
    return std::vector<Op>{Claim{.scope = "c", .key = "k", .lease = wrong},
                           Receive{.stream = "s", .consumer = "c", .lease = wrong},
                           Renew{"c", "k", Fence{1}, wrong}, Extend{"s", "c", {}, wrong}};
  };
  for (const Op& op : all(limits::kLeaseMax + Duration{1})) beyond(op, kLease);
  for (const Op& op : all(Duration{0})) below(op, "lease is 0 ms; it must be between 1 and 8640");
  for (const Op& op : all(Duration{-1})) below(op, "lease is -1 ms; it must be between 1 and 8640");
  run<Claimed>(Claim{.scope = "c", .key = "k", .lease = limits::kLeaseMax});
  beyond(Nack{"s", "c", {}, limits::kDelayMax + Duration{1}}, "between 0 and 2592000000");
  below(Nack{"s", "c", {}, Duration{-1}}, "between 0 and 2592000000");
  beyond(Begin{"t", limits::kTransactionTimeoutMax + Duration{1}}, "between 1 and 900000");
  below(Begin{"t", Duration{0}}, "between 1 and 900000");
  run<Began>(Begin{"t", limits::kTransactionTimeoutMax});
}

TEST(EmbeddedOptions, AreRefusedBeyondTheirRange) {
  const auto refused = [](const EmbeddedOptions& options) {
    const auto opened = open_embedded("/nowhere/at/all", options);
    EXPECT_EQ(opened.error().code, Errc::kInvalidArgument) << opened.error().text();
    return opened.error().detail;
  };
  EXPECT_EQ(refused({.segment_bytes = 255}),
            "segment_bytes is 255; it must be between 256 and 1073741824");
  EXPECT_EQ(refused({.snapshot_every_bytes = 0}),
            "snapshot_every_bytes is 0; it must be at least 4096");
  EXPECT_EQ(refused({.clock_jump_max = Duration{-5}}),
            "clock_jump_max is -5 ms; it must be at least 2000");
}

INSTANTIATE_TEST_SUITE_P(, Limits, testing::ValuesIn(all_stores()), name_of);

}  // namespace
}  // namespace hapax::contract
