#include "serve/log.h"

#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace hapax::serve {
namespace {

class Still final : public ports::Clock {
 public:
  [[nodiscard]] std::int64_t wall_ms() override { return 1'000; }
  [[nodiscard]] std::int64_t steady_ms() override { return now_ms; }
  std::int64_t now_ms = 0;
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

// A14
class OftenTest : public testing::Test {
 protected:
  OftenTest() : file_(std::tmpfile()) {}
  ~OftenTest() override { std::fclose(file_); }
  void fail(int times, std::string_view event = "sign-in refused") {
    for (int i = 0; i < times; ++i) log_.write_often(LogLevel::kWarning, event);
  }
  // Without their time, since the last question.
  std::vector<std::string> lines() {
    std::vector<std::string> all;
    std::fseek(file_, read_, SEEK_SET);
    std::array<char, 256> line{};
    while (std::fgets(line.data(), line.size(), file_) != nullptr) {
      const std::string text(line.data());
      all.push_back(text.substr(text.find(' ') + 1));
    }
    read_ = std::ftell(file_);
    return all;
  }

  Still clock_;
  std::FILE* file_;
  long read_ = 0;
  Log log_{{}, clock_, file_};
};

TEST_F(OftenTest, WhatCallersCauseHasABoundedNumberOfLines) {
  fail(10'000);
  EXPECT_EQ(lines().size(), Log::kOftenMax);
  fail(1, "the store failed");
  EXPECT_EQ(lines().size(), 1U) << "events do not hide one another";
  clock_.now_ms += 9'999;
  log_.tell_counted();
  EXPECT_TRUE(lines().empty());
  clock_.now_ms += 1;
  fail(1);
  EXPECT_EQ(lines(), (std::vector<std::string>{"warning sign-in refused more=9980\n",
                                               "warning sign-in refused\n"}));
}

TEST_F(OftenTest, WhatWasOnlyCountedIsToldWithoutAnother) {
  fail(25);
  lines();
  clock_.now_ms += 10'000;
  log_.tell_counted();
  EXPECT_EQ(lines(), std::vector<std::string>{"warning sign-in refused more=5\n"});
  log_.tell_counted();
  EXPECT_TRUE(lines().empty());
  fail(21);
  log_.tell_counted(Log::Spans::kAll);
  EXPECT_EQ(lines().back(), "warning sign-in refused more=1\n");
}

}  // namespace
}  // namespace hapax::serve
