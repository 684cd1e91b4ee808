#include "serve/log.h"

#include <gtest/gtest.h>

namespace hapax::serve {
namespace {

class Still final : public ports::Clock {
 public:
  [[nodiscard]] std::int64_t wall_ms() override { return 1'000; }
  [[nodiscard]] std::int64_t steady_ms() override { return 0; }
};

std::string line_as(config::LogFormat format) {
  Still clock;
  Log log({.format = format}, clock);
  return log.line(LogLevel::kInfo, "request", {{"peer", "a b"}, {"status", std::int64_t{200}}});
}

TEST(Log, NumbersAreNumbers) {
  EXPECT_EQ(line_as(config::LogFormat::kJson),
            R"({"time":"1970-01-01T00:00:01.000Z","level":"info","event":"request",)"
            R"("peer":"a b","status":200})"
            "\n");
  EXPECT_EQ(line_as(config::LogFormat::kText),
            "1970-01-01T00:00:01.000Z info request peer=\"a b\" status=200\n");
}

}  // namespace
}  // namespace hapax::serve
