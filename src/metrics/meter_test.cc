#include "metrics/meter.h"

#include <thread>

#include <gtest/gtest.h>

#include "metrics/page.h"

namespace hapax::metrics {
namespace {

std::vector<Meter::Queue> queues_of(const Meter& meter) {
  std::vector<Meter::Queue> all;
  meter.each_queue([&](const Meter::Queue& queue) { all.push_back(queue); });
  return all;
}

TEST(Page, IsTheTextThatPrometheusReads) {
  Histogram sizes({1, 2.5});
  for (const double value : {0.5, 1.0, 2.0, 7.0}) sizes.observe(value);
  Page page;
  page.counter("a_total", "Counts.");
  page.sample({{"queue", "x\"\\\n"}, {"result", "fresh"}}, std::uint64_t{3});
  page.gauge("b", "Is.");
  page.sample({}, 0.25);
  page.histogram("c", "Sizes.", sizes);
  EXPECT_EQ(page.text(),
            "# HELP a_total Counts.\n# TYPE a_total counter\n"
            "a_total{queue=\"x\\\"\\\\\\n\",result=\"fresh\"} 3\n"
            "# HELP b Is.\n# TYPE b gauge\nb 0.25\n"
            "# HELP c Sizes.\n# TYPE c histogram\n"
            "c_bucket{le=\"1\"} 2\nc_bucket{le=\"2.5\"} 3\nc_bucket{le=\"+Inf\"} 4\n"
            "c_sum 10.5\nc_count 4\n");
}

TEST(Meter, CountsVerdictsByOperationAndQueue) {
  Meter meter;
  const Op ops[] = {Append{.stream = "s"}, Append{.stream = "s"}, Claim{.scope = "k"}, Ack{}};
  Answer answer;
  answer.time = time_from_ms(10'000);
  answer.verdicts = {Appended{}, Duplicate{.first_seen = time_from_ms(8'000)},
                     DuplicateClaim{.settled_at = time_from_ms(9'950)}, Done{}};
  meter.answered(ops, answer, std::chrono::milliseconds{2});
  const auto verdicts = meter.verdicts();
  EXPECT_EQ(verdicts.size(), 4U);
  EXPECT_EQ(verdicts.at({"append", "duplicate"}), 1U);
  EXPECT_EQ(verdicts.at({"claim", "duplicate"}), 1U);
  const auto queues = queues_of(meter);
  ASSERT_EQ(queues.size(), 2U);
  EXPECT_EQ(queues[1].name, "s");
  EXPECT_EQ(queues[1].checks.at("fresh"), 1U);
  EXPECT_EQ(queues[1].duplicates, 1U);
  EXPECT_DOUBLE_EQ(meter.duplicate_age_seconds().sum(), 2.05);
  EXPECT_DOUBLE_EQ(meter.commit_ops().sum(), 4);
}

// A plain key that stands for a job is asked for with SETNX; what is no such key is no check.
TEST(Meter, CountsKeysOfJobsAndTellsWhatWasSet) {
  Meter meter;
  const std::string framed =
      "\x01t\x01"
      "dedup:q:1";
  const Op ops[] = {Set{.name = "dedup:q:1", .mode = SetMode::kAbsent},
                    Set{.name = "dedup:q:1", .mode = SetMode::kAbsent},
                    Set{.name = framed, .mode = SetMode::kAbsent},
                    Set{.name = "dedup:q:1", .mode = SetMode::kAlways},
                    Set{.name = "q:1", .mode = SetMode::kAbsent}};
  const Held done{.applied = true};
  Answer answer;
  answer.verdicts = {done, Held{}, done, done, done};
  meter.answered(ops, answer, {});
  const auto verdicts = meter.verdicts();
  EXPECT_EQ(verdicts.at({"set", "done"}), 4U);
  EXPECT_EQ(verdicts.at({"set", "unchanged"}), 1U);
  const auto queues = queues_of(meter);
  ASSERT_EQ(queues.size(), 2U);
  EXPECT_EQ(queues[0].name,
            "\x01t\x01"
            "q");
  EXPECT_EQ(queues[1].name, "q");
  EXPECT_EQ(queues[1].checks.at("fresh"), 1U);
  EXPECT_EQ(queues[1].checks.at("duplicate"), 1U);
  EXPECT_EQ(queues[1].duplicates, 1U);
}

// What a scrape costs does not grow with what clients make up.
TEST(Meter, KeepsAnEndToNames) {
  Meter meter;
  Answer answer;
  answer.verdicts = {Claimed{}};
  for (std::size_t i = 0; i < 2 * kQueuesMax; ++i) {
    const std::string scope = std::to_string(i);
    const Op ops[] = {Claim{.scope = scope}};
    meter.answered(ops, answer, {});
  }
  const auto queues = queues_of(meter);
  EXPECT_EQ(queues.size(), kQueuesMax + 1);
  EXPECT_EQ(queues.front().name, kOtherQueues);
  EXPECT_EQ(queues.front().checks.at("fresh"), kQueuesMax);
}

TEST(Meter, GivesEachTenantPlacesOfItsOwn) {
  Meter meter;
  Answer answer;
  answer.verdicts = {Claimed{}};
  const auto claim = [&](const std::string& scope) {
    const Op ops[] = {Claim{.scope = scope}};
    meter.answered(ops, answer, {});
  };
  for (std::size_t i = 0; i < 2 * kQueuesMax; ++i) claim("\x01thief\x01" + std::to_string(i));
  claim("\x01victim\x01pay");
  std::map<std::string, std::uint64_t> fresh;
  for (const auto& queue : queues_of(meter)) fresh[queue.name] = queue.checks.at("fresh");
  EXPECT_EQ(fresh.size(), kQueuesMax + 2);
  EXPECT_EQ(fresh["\x01victim\x01pay"], 1U);
  EXPECT_EQ(fresh["\x01thief\x01(others)"], kQueuesMax);
}

// A scrape that takes its time holds nobody up.
TEST(Meter, CommitsAreCountedWhileTheQueuesAreLookedThrough) {
  Meter meter;
  Answer answer;
  answer.verdicts = {Claimed{}};
  const auto claim = [&](const std::string& scope) {
    const Op ops[] = {Claim{.scope = scope}};
    meter.answered(ops, answer, {});
  };
  for (int number = 0; number < 200; ++number) claim("q" + std::to_string(number));
  std::uint64_t seen = 0;
  meter.each_queue([&](const Meter::Queue&) {
    ++seen;
    std::thread([&] { claim("q7"); }).join();
  });
  EXPECT_EQ(seen, 200U);
  EXPECT_EQ(meter.verdicts().at({"claim", "fresh"}), 400U);
}

}  // namespace
}  // namespace hapax::metrics
