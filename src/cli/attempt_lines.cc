#include "cli/attempt_lines.h"

#include <algorithm>

#include "base/format.h"
#include "cli/show.h"
#include "client/escape.h"

namespace hapax::cli {

namespace {

constexpr std::size_t kWordsMax = 100;

std::int64_t time_in(const wire::JsonValue& attempt, std::string_view phase) {
  const wire::JsonValue* times = attempt.find("times_us");
  return times == nullptr ? 0 : number_in(*times, phase);
}

}  // namespace

std::string attempts_path(std::string_view workflow) {
  return "/api/v1/workflows/" + client::encoded(workflow) + "/attempts";
}

std::string attempt_status(const wire::JsonValue& attempt) {
  const std::int64_t status = number_in(attempt, "status");
  return status == 0 ? std::string() : std::to_string(status);
}

std::string attempt_time(const wire::JsonValue& attempt) {
  const std::int64_t tenths = time_in(attempt, "total") / 100;
  return base::format("{}.{}", tenths / 10, tenths % 10);
}

std::string attempt_words(const wire::JsonValue& attempt) {
  std::string words = text_in(attempt, "reason");
  if (words.empty()) words = bytes_in(attempt, "answer");
  if (words.size() > kWordsMax) words = words.substr(0, kWordsMax) + "…";
  return printable(words);
}

std::int64_t attempt_end_ms(const wire::JsonValue& attempt) {
  constexpr std::int64_t kMicroseconds = 1'000;
  const std::int64_t spent = time_in(attempt, "waited") + time_in(attempt, "total");
  return number_in(attempt, "began_ms") + spent / kMicroseconds;
}

}  // namespace hapax::cli
