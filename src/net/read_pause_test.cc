#include "net/read_pause.h"

#include <gtest/gtest.h>

namespace hapax::net {
namespace {

TEST(ReadPause, ReadingGoesOnAtTheEndOfTheTurn) {
  ReadPause reads;
  EXPECT_FALSE(reads.holds_reads());
  reads.pause();
  EXPECT_TRUE(reads.paused());
  EXPECT_TRUE(reads.resume());
  EXPECT_FALSE(reads.paused());
  EXPECT_TRUE(reads.holds_reads());
  reads.offer_begins();
  EXPECT_FALSE(reads.holds_reads());
}

TEST(ReadPause, AResumeWithoutAPauseIsNothing) {
  ReadPause reads;
  EXPECT_FALSE(reads.resume());
  EXPECT_FALSE(reads.holds_reads());
}

TEST(ReadPause, OneOfferFollowsHoweverOftenATurnPausesAndResumes) {
  ReadPause reads;
  reads.pause();
  EXPECT_TRUE(reads.resume());
  reads.pause();
  EXPECT_FALSE(reads.resume());
  reads.offer_begins();
  EXPECT_FALSE(reads.holds_reads());
}

TEST(ReadPause, APauseAfterAResumeHolds) {
  ReadPause reads;
  reads.pause();
  EXPECT_TRUE(reads.resume());
  reads.pause();
  reads.offer_begins();
  EXPECT_TRUE(reads.paused());
}

TEST(ReadPauseDeathTest, AnOfferFollowsAResume) {
  ReadPause reads;
  reads.pause();
  EXPECT_DEATH(reads.offer_begins(), "follows a resume");
}

}  // namespace
}  // namespace hapax::net
