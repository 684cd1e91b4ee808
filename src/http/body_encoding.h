// Content-Encoding of requests.
#pragma once

#include <hapax/result.h>

#include "http/message.h"

namespace hapax::http {

// Inflates the body in place. kUnsupportedMedia names what is understood.
[[nodiscard]] Status decode_body(Request& request, std::size_t bytes_max);

}  // namespace hapax::http
