// Failures as RFC 9457 problem documents.
#pragma once

#include <string_view>

#include <hapax/result.h>

#include "http/message.h"
#include "http/parser.h"

namespace hapax::rest {

// A failure of HTTP itself, before any operation was understood.
[[nodiscard]] http::Response problem_response(const http::Problem& problem);
// An error of the store or of a request: its HX code, what was wrong, what to do.
[[nodiscard]] http::Response problem_response(const Error& error);
// The same as the answer to a request: a 401 says how to sign in.
[[nodiscard]] http::Response problem_response(const Error& error, const http::Request& request);

}  // namespace hapax::rest
