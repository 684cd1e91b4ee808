#include "client/retry_after.h"

#include <string>

#include <gtest/gtest.h>

namespace hapax::client {
namespace {

Duration asked(const std::string& retry, const std::string& date = {}) {
  http::Fields fields;
  fields.add("Retry-After", retry);
  if (!date.empty()) fields.add("Date", date);
  return retry_after(fields);
}

TEST(RetryAfter, IsANumberOfSeconds) {
  EXPECT_EQ(asked("2"), Duration{2'000});
  EXPECT_EQ(asked("0"), Duration{0});
  EXPECT_EQ(retry_after({}), Duration{0});
}

TEST(RetryAfter, IsADateByTheClockOfTheServer) {
  const std::string now = "Wed, 21 Oct 2015 07:28:00 GMT";
  EXPECT_EQ(asked("Wed, 21 Oct 2015 07:28:30 GMT", now), Duration{30'000});
  EXPECT_EQ(asked("Wed, 21 Oct 2015 07:27:00 GMT", now), Duration{0});
  EXPECT_EQ(asked("Wed, 21 Oct 2015 07:28:30 GMT"), Duration{0}) << "nobody knows its time";
}

TEST(RetryAfter, IsNeitherBelievedWithoutLimitNorRefused) {
  EXPECT_EQ(asked("86400"), kRetryAfterMax);
  EXPECT_EQ(asked("99999999999999999999999"), kRetryAfterMax);
  for (const char* text : {"-1", "soon", "2.5", "2 s", "", "Wed, 21 Oct"}) {
    EXPECT_EQ(asked(text, "Wed, 21 Oct 2015 07:28:00 GMT"), Duration{0}) << text;
  }
}

}  // namespace
}  // namespace hapax::client
