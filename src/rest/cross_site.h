// Requests that a page of another site makes a browser send. On a server without authentication
// they would act with the rights of whoever sits in front of the browser.
#pragma once

#include <cstdint>

#include <hapax/result.h>

#include "http/message.h"

namespace hapax::rest {

// Under which names a server may be asked. One that listens on this machine only is asked under the
// names of this machine: another name that leads here is DNS rebinding.
enum class Hosts : std::uint8_t { kAny, kThisMachine };

// A9: kForbidden for what another site sent, by the fields that browsers set and pages cannot.
[[nodiscard]] Status check_site(const http::Request& request, Hosts hosts);

}  // namespace hapax::rest
