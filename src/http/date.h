// The time of an answer, as RFC 9110 writes it.
#pragma once

#include <ctime>
#include <string>

namespace hapax::http {

// "Tue, 17 Nov 2026 21:15:30 GMT", whatever the locale.
[[nodiscard]] std::string date_text(std::time_t when);
// Of now; made once a second.
[[nodiscard]] const std::string& date_now();

}  // namespace hapax::http
