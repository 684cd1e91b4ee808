// Answers read back from JSON.
#pragma once

#include <hapax/store.h>

#include "wire/strict_json.h"

namespace hapax::contract {

using Json = wire::JsonValue;

[[nodiscard]] Answer answer_from(const Json& json);
// Of one operation that was told alone; its log time if the reply has it.
[[nodiscard]] Answer one_answer_from(const Json& json);
[[nodiscard]] Verdict verdict_from(const Json& json);
[[nodiscard]] Records records_from(const Json& json);
[[nodiscard]] IdStatus id_from(const Json& json);
[[nodiscard]] ClaimStatus claim_from(const Json& json);
[[nodiscard]] RegisterValue register_from(const Json& json);
[[nodiscard]] RegisterPage register_page_from(const Json& json);
[[nodiscard]] Position position_from(const Json& json);
[[nodiscard]] ProducerStatus producer_from(const Json& json);
[[nodiscard]] StreamStats stream_from(const Json& json);
[[nodiscard]] Statistics statistics_from(const Json& json);
[[nodiscard]] std::vector<std::string> streams_from(const Json& json);
[[nodiscard]] Error error_from(const Json& json);

}  // namespace hapax::contract
