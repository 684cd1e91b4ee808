#include "transform/backlog.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hapax::transform {
namespace {

using testing::ElementsAre;

constexpr Vacancy kBusy{.idle = false,
                        .unused = false,
                        .only_alone = false,
                        .alone_allowed = true,
                        .jobs_max = 2,
                        .bytes_max = 1'000'000};

Vacancy idle() {
  Vacancy vacancy = kBusy;
  vacancy.idle = true;
  return vacancy;
}
Vacancy unused() {
  Vacancy vacancy = idle();
  vacancy.unused = true;
  return vacancy;
}

std::unique_ptr<TransformJob> job(std::uint64_t program, std::string input,
                                  Care care = Care::kTogether) {
  auto made = std::make_unique<TransformJob>();
  made->program = std::make_shared<const KnownProgram>(KnownProgram{{program}, {}});
  made->input = std::move(input);
  made->care = care;
  return made;
}

std::vector<std::string> inputs(const std::vector<std::unique_ptr<TransformJob>>& jobs) {
  std::vector<std::string> found;
  for (const auto& each : jobs) found.push_back(each->input);
  return found;
}

template <class... Jobs>
std::vector<std::unique_ptr<TransformJob>> list(Jobs... jobs) {
  std::vector<std::unique_ptr<TransformJob>> all;
  (all.push_back(std::move(jobs)), ...);
  return all;
}

TEST(Backlog, ProgramsTakeTurns) {
  Backlog backlog;
  for (const char* input : {"a", "b", "c"}) backlog.add(job(1, input));
  backlog.add(job(2, "x"));
  EXPECT_THAT(inputs(backlog.take(kBusy)), ElementsAre("a", "b"));
  EXPECT_THAT(inputs(backlog.take(kBusy)), ElementsAre("x"));
  EXPECT_THAT(inputs(backlog.take(kBusy)), ElementsAre("c"));
  EXPECT_THAT(inputs(backlog.take(kBusy)), ElementsAre());
  EXPECT_TRUE(backlog.empty());
}

TEST(Backlog, ALargeJobComesAloneButComes) {
  Backlog backlog;
  backlog.add(job(1, std::string(5'000, 'x')));
  backlog.add(job(1, "b"));
  Vacancy small = kBusy;
  small.bytes_max = 1'000;
  EXPECT_THAT(backlog.take(small), testing::SizeIs(1));
  EXPECT_THAT(inputs(backlog.take(small)), ElementsAre("b"));
}

// X1: after a worker's end each record runs alone, before the others of its program.
TEST(Backlog, ASuspectRunsAloneInAnIdleWorkerOnly) {
  Backlog backlog;
  backlog.add(job(1, "later"));
  backlog.put_back(list(job(1, "a", Care::kAlone), job(1, "b", Care::kAlone)));
  EXPECT_TRUE(backlog.wants_idle());
  EXPECT_THAT(inputs(backlog.take(kBusy)), ElementsAre());
  EXPECT_THAT(inputs(backlog.take(idle())), ElementsAre("a"));
  EXPECT_THAT(inputs(backlog.take(idle())), ElementsAre()) << "one of a program at a time";
  EXPECT_FALSE(backlog.wants_idle());
  backlog.alone_ended({1});
  EXPECT_THAT(inputs(backlog.take(idle())), ElementsAre("b"));
  backlog.alone_ended({1});
  EXPECT_THAT(inputs(backlog.take(kBusy)), ElementsAre("later"));
}

TEST(Backlog, AProgramWithSuspectsDoesNotHoldUpAnother) {
  Backlog backlog;
  backlog.put_back(list(job(1, "a", Care::kAlone)));
  backlog.add(job(1, "later"));
  backlog.add(job(2, "x"));
  EXPECT_THAT(inputs(backlog.take(kBusy)), ElementsAre("x"));
  Vacancy others_alone = idle();
  others_alone.alone_allowed = false;
  EXPECT_THAT(inputs(backlog.take(others_alone)), ElementsAre());
}

TEST(Backlog, AWorkerKeptForASuspectTakesNothingElse) {
  Backlog backlog;
  backlog.add(job(2, "x"));
  Vacancy kept = idle();
  kept.only_alone = true;
  EXPECT_THAT(inputs(backlog.take(kept)), ElementsAre());
  backlog.put_back(list(job(1, "a", Care::kAlone)));
  EXPECT_THAT(inputs(backlog.take(kept)), ElementsAre("a"));
}

TEST(Backlog, AnUnusedWorkerGoesToTheJobThatNeedsIt) {
  Backlog backlog;
  backlog.add(job(2, "x"));
  backlog.put_back(list(job(1, "a", Care::kFirst)));
  EXPECT_TRUE(backlog.wants_unused());
  EXPECT_THAT(inputs(backlog.take(idle())), ElementsAre("x"));
  backlog.add(job(2, "y"));
  EXPECT_THAT(inputs(backlog.take(unused())), ElementsAre("a"));
  EXPECT_FALSE(backlog.wants_unused());
  EXPECT_THAT(inputs(backlog.take(unused())), ElementsAre("y"));
}

TEST(Backlog, PutsBackInOrder) {
  Backlog backlog;
  backlog.add(job(1, "c"));
  backlog.put_back(list(job(1, "a"), job(1, "b")));
  EXPECT_THAT(inputs(backlog.take(kBusy)), ElementsAre("a", "b"));
  EXPECT_THAT(inputs(backlog.take_all()), ElementsAre("c"));
  EXPECT_TRUE(backlog.empty());
}

}  // namespace
}  // namespace hapax::transform
