#include "webhook/origins.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/format.h"

namespace hapax::webhook {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

void wait(Origins& origins, const std::string& url) {
  WaitingRequest waiting;
  waiting.request.url = url;
  origins.wait(**origins.of(url), std::move(waiting));
}

// All that may begin now.
std::vector<Origins::Begun> turns(Origins& origins) {
  std::vector<Origins::Begun> out;
  while (auto turn = origins.next()) out.push_back(*std::move(turn));
  return out;
}

std::vector<std::string> urls(const std::vector<Origins::Begun>& turns) {
  std::vector<std::string> out;
  for (const Origins::Begun& turn : turns) out.push_back(turn.waiting.request.url);
  return out;
}

TEST(Origins, OneOriginHasManyUrls) {
  Origins origins({});
  EXPECT_EQ(*origins.of("http://a/1"), *origins.of("http://A:80/2"));
  EXPECT_NE(*origins.of("http://a/1"), *origins.of("https://a/1"));
  EXPECT_FALSE(origins.of("ftp://a/"));
}

TEST(Origins, TakeTurns) {
  Origins origins({});
  for (const char* url : {"http://a/1", "http://a/2", "http://a/3", "http://b/1", "http://c/1"}) {
    wait(origins, url);
  }
  EXPECT_THAT(urls(turns(origins)),
              ElementsAre("http://a/1", "http://b/1", "http://c/1", "http://a/2", "http://a/3"));
}

TEST(Origins, HaveABoundEach) {
  Origins origins({.per_origin = 2});
  for (const char* url : {"http://a/1", "http://a/2", "http://a/3", "http://b/1"}) {
    wait(origins, url);
  }
  const auto first = turns(origins);
  EXPECT_THAT(urls(first), ElementsAre("http://a/1", "http://b/1", "http://a/2"));
  origins.ended(*first[1].origin, Stage::kResolving, true);
  EXPECT_THAT(turns(origins), IsEmpty());
  origins.ended(*first[0].origin, Stage::kResolving, true);
  EXPECT_THAT(urls(turns(origins)), ElementsAre("http://a/3"));
}

TEST(Origins, HaveABoundTogether) {
  Origins origins({.under_way = 2});
  for (const char* url : {"http://a/1", "http://b/1", "http://c/1"}) wait(origins, url);
  const auto first = turns(origins);
  EXPECT_THAT(first, SizeIs(2));
  origins.ended(*first[1].origin, Stage::kResolving, false);
  EXPECT_THAT(urls(turns(origins)), ElementsAre("http://c/1"));
}

TEST(Origins, WaitForPlacesToConnectUnlessTheyHaveAnOpenConnection) {
  Origins origins({.lookups = 2, .connects = 1});
  wait(origins, "http://warm/1");
  const auto warm = turns(origins);
  EXPECT_FALSE(origins.moved(Stage::kResolving, Stage::kSent));
  origins.ended(*warm[0].origin, Stage::kSent, true);

  for (const char* url : {"http://a/1", "http://b/1", "http://c/1", "http://warm/2"}) {
    wait(origins, url);
  }
  const auto begun = turns(origins);
  EXPECT_THAT(urls(begun), ElementsAre("http://a/1", "http://b/1", "http://warm/2"));
  EXPECT_EQ(begun[2].stage, Stage::kPooled);

  EXPECT_FALSE(origins.moved(Stage::kResolving, Stage::kConnecting));  // a
  EXPECT_THAT(turns(origins), IsEmpty()) << "the one connect is under way";
  EXPECT_TRUE(origins.moved(Stage::kConnecting, Stage::kSent));
  EXPECT_THAT(urls(turns(origins)), ElementsAre("http://c/1"));
}

TEST(Origins, ThatGetAConnectionNeedNotWaitForAPlaceAnyMore) {
  Origins origins({.lookups = 1});
  wait(origins, "http://a/1");
  const auto first = turns(origins);
  EXPECT_FALSE(origins.moved(Stage::kResolving, Stage::kSent));
  wait(origins, "http://hangs/1");
  EXPECT_THAT(turns(origins), SizeIs(1));
  wait(origins, "http://a/2");
  EXPECT_THAT(turns(origins), IsEmpty());
  origins.ended(*first[0].origin, Stage::kSent, true);
  EXPECT_THAT(urls(turns(origins)), ElementsAre("http://a/2"));
}

TEST(Origins, HandOutAllThatWait) {
  Origins origins({.per_origin = 1});
  for (const char* url : {"http://a/1", "http://a/2", "http://b/1", "http://b/2"}) {
    wait(origins, url);
  }
  EXPECT_THAT(turns(origins), SizeIs(2));
  EXPECT_THAT(origins.take_waiting(), SizeIs(2));
  EXPECT_THAT(origins.take_waiting(), IsEmpty());
}

TEST(Origins, AreForgottenWhenTooManyUrlsAreRemembered) {
  Origins origins({});
  Origin* busy = *origins.of("http://busy/");
  wait(origins, "http://busy/");
  ASSERT_THAT(turns(origins), SizeIs(1));
  for (int i = 0; i < 70'000; ++i) {
    ASSERT_TRUE(origins.of(base::format("http://a/{}", i)));
  }
  EXPECT_EQ(*origins.of("http://busy/"), busy);
  origins.ended(*busy, Stage::kResolving, true);
}

}  // namespace
}  // namespace hapax::webhook
