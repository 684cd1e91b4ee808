#include "journal/marks.h"

#include <gtest/gtest.h>

#include "journal/names.h"
#include "sim/disk.h"

namespace hapax::journal {
namespace {

Mark mark_of(std::uint64_t lsn) {
  Mark mark;
  mark.durable = Lsn{lsn};
  return mark;
}

// L11: found by the simulation (seed 2544). A process dies in the middle of writing a mark, and the
// power fails while the next one settles what it found: one mark is left all the same.
TEST(Marks, ABrokenBlockIsNotAReasonToTouchTheOther) {
  sim::DiskFaults faults;
  faults.at_power_loss = {.sectors = {0, 0, 1}};  // Whatever was not synced is garbage.
  sim::SimDisk disk(sim::Random(1), faults);
  {
    sim::SimFolder folder(disk);
    auto marks = Marks::create(folder, mark_of(1));
    ASSERT_TRUE(marks.ok());
    ASSERT_TRUE(folder.sync().ok());
    ASSERT_TRUE(marks->write(mark_of(2)).ok());
    disk.crash_at_call(disk.calls(), sim::When::kMiddle, sim::Crash::Kind::kKill);
    EXPECT_THROW(ignore(marks->write(mark_of(3)), "it dies"), sim::Crash);
  }
  // The middle of a write may be all or nothing of it: make the block broken for certain.
  disk.flip_bit(kMarksName, 8 * (kMarkBlockBytes + 20));
  disk.restart();
  {
    sim::SimFolder folder(disk);
    auto marks = Marks::open(folder);
    ASSERT_TRUE(marks.ok());
    EXPECT_EQ(marks->newest().durable, Lsn{2});
    disk.crash_at_call(disk.calls() + 1, sim::When::kBefore, sim::Crash::Kind::kPowerLoss);
    EXPECT_THROW(ignore(marks->settle(), "it dies"), sim::Crash);
  }
  disk.restart();
  sim::SimFolder folder(disk);
  auto marks = Marks::open(folder);
  ASSERT_TRUE(marks.ok()) << marks.error().text();
  EXPECT_EQ(marks->newest().durable, Lsn{2});
}

}  // namespace
}  // namespace hapax::journal
