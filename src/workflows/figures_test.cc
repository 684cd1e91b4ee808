#include "workflows/figures.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace hapax::workflows {
namespace {

using Kind = delivery::Settlement::Kind;

TEST(EndpointFigures, EachRecordIsCountedUnderWhatBecameOfIt) {
  EndpointFigures figures("acme", "erp", "");
  figures.began(3, 1);
  figures.settled(Kind::kRetry, Duration{5}, "HTTP 500");
  figures.settled(Kind::kDelivered, Duration{15}, "");
  figures.settled(Kind::kDead, Duration{7}, "HTTP 422");
  figures.settled(Kind::kUnknown, Duration{7}, "no answer");
  figures.settled(Kind::kHeld, Duration{7}, "");
  EXPECT_EQ(figures.attempts(), 3U);
  EXPECT_EQ(figures.repeated(), 1U);
  EXPECT_EQ(figures.retried(), 1U);
  EXPECT_EQ(figures.delivered(), 1U);
  EXPECT_EQ(figures.dead(), 1U);
  EXPECT_EQ(figures.unknown(), 1U);
  EXPECT_EQ(figures.last_error(), "no answer");
  // Only what was confirmed has a time to confirmation: 15 ms, in the fifth bucket (up to 20 ms).
  EXPECT_EQ(figures.delivery_seconds().count(4), 1U);
  EXPECT_DOUBLE_EQ(figures.delivery_seconds().sum(), 0.015);
}

std::vector<std::string> endpoints_on(const FiguresBoard& board) {
  std::vector<std::string> names;
  board.each([&](const EndpointFigures& one) { names.push_back(one.endpoint()); });
  return names;
}

delivery::Workflow erp() { return {.id = delivery::WorkflowId::parse("erp").value()}; }

delivery::EndpointSettings named(std::string name) {
  return {.name = std::move(name), .target = delivery::StreamTarget{"any"}};
}

// The new one of a workflow that is replaced begins before the old one is gone.
TEST(FiguresBoard, AWorkflowThatIsReplacedGoesOnCounting) {
  FiguresBoard board;
  auto old = board.add(erp(), named("a"));
  old->began(3, 0);
  const auto other = board.add(erp(), named("b"));
  const auto fresh = board.add(erp(), named("a"));
  old.reset();
  EXPECT_EQ(fresh->attempts(), 3U);
  EXPECT_EQ(endpoints_on(board), (std::vector<std::string>{"a", "b"}));
}

TEST(FiguresBoard, WhatNobodyCountsInAnyMoreIsNotTold) {
  FiguresBoard board;
  auto gone = board.add(erp(), named("a"));
  const auto stays = board.add(erp(), named("b"));
  gone->began(3, 0);
  gone.reset();
  EXPECT_EQ(endpoints_on(board), std::vector<std::string>{"b"});
  EXPECT_EQ(board.add(erp(), named("a"))->attempts(), 0U);
}

}  // namespace
}  // namespace hapax::workflows
