#include "access/left_out.h"

#include <gtest/gtest.h>

#include "access/no_store_test.h"

namespace hapax::access {
namespace {

class OneOfEach final : public NoStore {
 public:
  Result<std::optional<ClaimStatus>> find_claim(std::string_view scope,
                                                std::string_view key) override {
    ClaimStatus found{.state = ClaimState::kCompleted, .fence = Fence{7}};
    found.result = StoredResult{200, "", std::string(scope) + "/" + std::string(key)};
    return std::optional(std::move(found));
  }
  Result<Records> read(const ReadRange& range) override {
    EXPECT_EQ(range.max, 1U);
    if (range.stream != "s") return Error{Errc::kNotFound, "no such stream"};
    Records found;
    found.records.push_back({.sequence = Sequence{5}, .time = time_from_ms(10), .payload = "p"});
    return found;
  }
};

class LeftOutTest : public testing::Test {
 protected:
  StoredResult result_of(Fence fence) {
    const Op op = Claim{.scope = "s", .key = "k"};
    LeftOut it(op, DuplicateClaim{.fence = fence, .left_out = true}, time_from_ms(10));
    EXPECT_TRUE(lacks_something(it.verdict));
    const Verdict read = read_left_out(store_, std::move(it)).value();
    EXPECT_FALSE(lacks_something(read));
    return std::get<DuplicateClaim>(read).result.value_or(StoredResult{});
  }
  Record record_of(std::string_view stream, Sequence sequence, std::int64_t when_ms) {
    const Op op = Receive{stream, "c"};
    Received without{.deliveries = {{.token = Token{3}}}, .left_out = true};
    without.deliveries.front().record.sequence = sequence;
    LeftOut it(op, without, time_from_ms(when_ms));
    EXPECT_TRUE(lacks_something(it.verdict));
    const Verdict read = read_left_out(store_, std::move(it)).value();
    EXPECT_FALSE(lacks_something(read));
    const Delivery& delivery = std::get<Received>(read).deliveries.at(0);
    EXPECT_EQ(delivery.token, Token{3});
    EXPECT_EQ(delivery.record.sequence, sequence);
    return delivery.record;
  }

  OneOfEach store_;
};

TEST_F(LeftOutTest, AResultIsTheOneOfTheClaimThatWasFound) {
  EXPECT_EQ(result_of(Fence{7}).body, "s/k");
  EXPECT_EQ(result_of(Fence{6}).body, "");
}

TEST_F(LeftOutTest, ARecordIsTheOneThatWasHandedOut) {
  EXPECT_EQ(record_of("s", Sequence{5}, 10).payload, "p");
  EXPECT_EQ(record_of("s", Sequence{4}, 10).payload, "");     // It was trimmed.
  EXPECT_EQ(record_of("s", Sequence{5}, 9).payload, "");      // The stream was made anew …
  EXPECT_EQ(record_of("none", Sequence{5}, 10).payload, "");  // … or deleted.
}

TEST_F(LeftOutTest, WhatIsWholeLacksNothing) {
  EXPECT_FALSE(lacks_something(Done{}));
  EXPECT_FALSE(lacks_something(DuplicateClaim{}));
  EXPECT_FALSE(lacks_something(Received{}));
}

}  // namespace
}  // namespace hapax::access
