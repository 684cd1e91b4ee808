#include <memory>
#include <set>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <hapax/result.h>
#include <hapax/verdicts.h>

#include "base/hash128.h"
#include "base/place_failure.h"

namespace hapax {
namespace {

constexpr Errc kAll[] = {
#define HAPAX_ERROR(symbol, number, word, http, retry) Errc::symbol,
#include <hapax/errors.def>
#undef HAPAX_ERROR
};

Error full() { return {Errc::kNoSpace, "segment 12: 3 of 8 bytes"}; }

TEST(Result, OwnsWhatCannotBeCopied) {
  Result<std::unique_ptr<int>> made(std::make_unique<int>(7));
  ASSERT_TRUE(made.ok());
  const std::unique_ptr<int> taken = *std::move(made);
  EXPECT_EQ(*taken, 7);
}

TEST(Result, IsAValueOrAnError) {
  const Result<std::string> text(std::string("fine"));
  EXPECT_EQ(*text, "fine");
  const Result<std::string> failed(full());
  EXPECT_FALSE(failed);
  EXPECT_EQ(failed.error(), full());
}

Result<int> doubled(Result<int> number) {
  HAPAX_TRY(const int value, std::move(number));
  return 2 * value;
}

Status checked(Status status, int& reached) {
  HAPAX_CHECK(std::move(status));
  ++reached;
  return Ok{};
}

TEST(Result, TryAndCheckLeaveWithTheErrorAndGoOnWithout) {
  EXPECT_EQ(*doubled(21), 42);
  EXPECT_EQ(doubled(full()).error(), full());
  int reached = 0;
  EXPECT_TRUE(checked(Ok{}, reached));
  EXPECT_EQ(checked(full(), reached).error(), full());
  EXPECT_EQ(reached, 1);
}

TEST(ResultDeathTest, ReadingTheValueOfAFailureTellsWhichOne) {
  const Result<int> failed(full());
  EXPECT_DEATH(static_cast<void>(*failed), "HX1008 no_space: segment 12");
}

TEST(Error, ContextComesInFront) {
  EXPECT_EQ(full().within("seal").within("commit").text(),
            "HX1008 no_space: commit: seal: segment 12: 3 of 8 bytes");
}

TEST(Error, EveryCodeHasAWordOfItsOwnAndAStatus) {
  std::set<std::string_view> words;
  for (const Errc code : kAll) {
    EXPECT_TRUE(is_known(code));
    EXPECT_TRUE(words.insert(word_of(code)).second) << word_of(code);
    EXPECT_GE(http_status_of(code), 400);
    EXPECT_LT(http_status_of(code), 600);
  }
  EXPECT_FALSE(is_known(Errc{0}));
  EXPECT_FALSE(is_known(Errc{9999}));
}

// A client that gets a status of the 4xx range does not send again, unless it is told to wait.
TEST(Error, WhatMayBeTriedLaterIsNotTheCallersFault) {
  for (const Errc code : kAll) {
    const bool waits = retry_of(code) == Retry::kLater || retry_of(code) == Retry::kLook;
    const int status = http_status_of(code);
    EXPECT_TRUE(!waits || status >= 500 || status == 429) << word_of(code);
  }
}

TEST(PlaceFailure, HidesWhatACallerDidNotAskFor) {
  EXPECT_EQ(base::place_failure({Errc::kForbidden, "x"}).code, Errc::kUnavailable);
  EXPECT_EQ(base::place_failure({Errc::kForbidden, "x"}).detail, "x");
  for (const Errc code : base::kPlaceFailures) {
    EXPECT_EQ(base::place_failure({code, "x"}).code, code) << word_of(code);
  }
}

TEST(Hash128, SumsCarryIntoTheHighHalf) {
  const base::Hash128 all{~0ULL, ~0ULL};
  EXPECT_EQ((base::Hash128{0, ~0ULL}.plus({0, 1})), (base::Hash128{1, 0}));
  EXPECT_EQ(all.plus({0, 1}), (base::Hash128{0, 0})) << "the sum is modulo 2^128";
  EXPECT_EQ(all.plus(all), (base::Hash128{~0ULL, ~0ULL - 1}));
}

TEST(Fingerprint, HasAllItsLeadingZeros) {
  EXPECT_EQ(to_fingerprint(base::Hash128{1, 0xab}).hex(), "000000000000000100000000000000ab");
}

TEST(Verdict, ARepeatHoldsAndARefusalDoesNot) {
  EXPECT_TRUE(holds(Duplicate{}));
  EXPECT_TRUE(holds(DuplicateClaim{}));
  EXPECT_FALSE(holds(Conflict{}));
  EXPECT_FALSE(holds(NotApplied{}));
  EXPECT_EQ(word_of(Verdict{Held{.applied = false}}), "unchanged");
}

}  // namespace
}  // namespace hapax
