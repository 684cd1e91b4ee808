// How an attempt of a workflow, as the API tells it, is shown to people.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "wire/strict_json.h"

namespace hapax::cli {

[[nodiscard]] std::string attempts_path(std::string_view workflow);
// Empty: no answer came.
[[nodiscard]] std::string attempt_status(const wire::JsonValue& attempt);
// "12.3": milliseconds from its turn to its end.
[[nodiscard]] std::string attempt_time(const wire::JsonValue& attempt);
// Why it failed: the reason, or the beginning of the answer, in one line.
[[nodiscard]] std::string attempt_words(const wire::JsonValue& attempt);
[[nodiscard]] std::int64_t attempt_end_ms(const wire::JsonValue& attempt);

}  // namespace hapax::cli
