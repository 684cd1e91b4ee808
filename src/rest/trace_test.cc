#include "rest/trace.h"

#include <gtest/gtest.h>

#include "host/entropy.h"

namespace hapax::rest {
namespace {

constexpr std::string_view kParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

class TraceTest : public testing::Test {
 protected:
  Trace trace(std::string_view name, std::string_view value) {
    http::Fields fields;
    fields.add(name, value);
    return tracer_.trace_of(fields);
  }
  host::HostEntropy entropy_;
  Tracer tracer_{entropy_};
};

TEST_F(TraceTest, TakesTheIdOfTheRequestOrMakesOne) {
  EXPECT_EQ(trace("x-request-id", "abc-1").request_id, "abc-1");
  const std::string made = trace("x", "").request_id;
  EXPECT_EQ(made.size(), 16U);
  EXPECT_NE(trace("x", "").request_id, made);
  for (const std::string bad : {"", "a b", "a\"b", "a\tb"}) {
    EXPECT_NE(trace("X-Request-Id", bad).request_id, bad);
  }
  EXPECT_EQ(trace("X-Request-Id", std::string(129, 'a')).request_id.size(), 16U);
}

TEST_F(TraceTest, PassesATraceOnWithASpanOfItsOwn) {
  const Trace good = trace("traceparent", kParent);
  EXPECT_EQ(good.trace_id, kParent.substr(3, 32));
  EXPECT_EQ(good.parent.size(), kParent.size());
  EXPECT_EQ(good.parent.substr(0, 36), kParent.substr(0, 36));
  EXPECT_EQ(good.parent.substr(52), kParent.substr(52));
  EXPECT_NE(good.parent, kParent);
  EXPECT_EQ(trace("traceparent", "cc" + std::string(kParent.substr(2)) + "-more").trace_id,
            good.trace_id);
}

TEST_F(TraceTest, LeavesOutWhatIsNoTrace) {
  std::string zero(kParent);
  zero.replace(3, 32, std::string(32, '0'));
  std::string upper(kParent);
  upper[3] = 'F';
  for (const std::string& bad :
       {std::string(), std::string(kParent.substr(1)), std::string(kParent) + "-more", zero, upper,
        "ff" + std::string(kParent.substr(2)), std::string(55, '-')}) {
    EXPECT_EQ(trace("traceparent", bad).parent, "") << bad;
  }
}

}  // namespace
}  // namespace hapax::rest
