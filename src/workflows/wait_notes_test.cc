#include "workflows/wait_notes.h"

#include <gtest/gtest.h>

namespace hapax::workflows {
namespace {

class WallClock final : public ports::Clock {
 public:
  std::int64_t wall_ms() override { return now_ms_; }
  std::int64_t steady_ms() override { return 0; }
  void set(std::int64_t now_ms) { now_ms_ = now_ms; }

 private:
  std::int64_t now_ms_ = 0;
};

delivery::Workflow workflow(std::string_view id, std::string tenant = {}) {
  return {.id = delivery::WorkflowId::parse(id).value(), .tenant = std::move(tenant)};
}

TEST(WaitNotes, TellTheReasonAndSinceWhen) {
  WallClock clock;
  WaitNotes notes(clock);
  const auto note = notes.add(workflow("erp"));
  EXPECT_FALSE(notes.of("", "erp"));
  clock.set(1'000);
  note->waits("there is no stream 'orders'");
  clock.set(2'000);
  note->waits("the database is away");
  ASSERT_TRUE(notes.of("", "erp"));
  EXPECT_EQ(notes.of("", "erp")->reason, "the database is away");
  EXPECT_EQ(to_ms(notes.of("", "erp")->since), 1'000) << "it has waited all the time";
  note->goes_on();
  EXPECT_FALSE(notes.of("", "erp"));
}

TEST(WaitNotes, TellWhatHasLastedLongest) {
  WallClock clock;
  WaitNotes notes(clock);
  const auto one = notes.add(workflow("erp"));
  auto two = notes.add(workflow("erp"));
  const auto other = notes.add(workflow("erp", "acme"));
  two->waits("no token");
  clock.set(5);
  one->waits(std::string(1'000, 'x'));
  EXPECT_EQ(notes.of("", "erp")->reason, "no token");
  two.reset();
  EXPECT_EQ(notes.of("", "erp")->reason.size(), WaitNote::kReasonBytesMax);
  EXPECT_FALSE(notes.of("acme", "erp"));
}

}  // namespace
}  // namespace hapax::workflows
