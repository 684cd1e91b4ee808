// Verdicts as HTTP responses.
#pragma once

#include <hapax/verdicts.h>

#include "http/message.h"

namespace hapax::rest {

// The verdict of a call with one operation. What holds is 2xx; what does not is a problem document
// whose members are the verdict's.
[[nodiscard]] http::Response verdict_response(const Verdict& verdict);
// The answer of a call with several: 200 if committed, 409 if not.
[[nodiscard]] http::Response answer_response(const Answer& answer);
[[nodiscard]] http::Response json_response(unsigned status, std::string json);

[[nodiscard]] unsigned status_of(const Verdict& verdict);

}  // namespace hapax::rest
