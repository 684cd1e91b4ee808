// Failures as RFC 9457 problem documents.
#pragma once

#include <string_view>

#include <hapax/result.h>

#include "http/message.h"
#include "http/parser.h"

namespace hapax::http {

// A failure of HTTP itself, before any operation was understood.
[[nodiscard]] Response problem_response(const Problem& problem);
// An error of the store or of a request: its HX code, what was wrong, what to do.
[[nodiscard]] Response problem_response(const Error& error);
// The same as the answer to a request: a 401 says how to sign in.
[[nodiscard]] Response problem_response(const Error& error, const Request& request);

}  // namespace hapax::http
