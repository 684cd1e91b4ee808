// What the store answers, as JSON. Times are milliseconds since 1970 and end in _ms; null stands
// for "for ever". Bytes that are not UTF-8 come as `<name>_base64`.
#pragma once

#include <string>
#include <string_view>

#include <hapax/store.h>
#include <hapax/verdicts.h>

namespace hapax::wire {

[[nodiscard]] std::string json_of(const Verdict& verdict);
[[nodiscard]] std::string json_of(const Answer& answer);
[[nodiscard]] std::string json_of(const Record& record);
[[nodiscard]] std::string json_of(const Records& records);
[[nodiscard]] std::string json_of(const StreamStats& stats);
[[nodiscard]] std::string json_of(const ConsumerStats& stats);
[[nodiscard]] std::string json_of(const Statistics& statistics);
[[nodiscard]] std::string json_of(const IdStatus& status);
[[nodiscard]] std::string json_of(const ProducerStatus& status);
[[nodiscard]] std::string json_of(const RegisterValue& value);
[[nodiscard]] std::string json_of(const RegisterPage& page);
[[nodiscard]] std::string json_of(const Position& position);

enum class Bodies : bool { kHidden, kShown };
[[nodiscard]] std::string json_of(const ClaimStatus& status, Bodies bodies);

[[nodiscard]] std::string_view word_of(ClaimState state);

}  // namespace hapax::wire
