// What every session of the process shares.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "access/authenticator.h"
#include "access/entry.h"
#include "resp/parser.h"

namespace hapax::resp {

struct SessionContext {
  access::Entry& entry;
  access::Authenticator& authenticator;
  std::string version;
  ParserLimits limits;
  std::size_t pending_max = 10'000;  // commands of one connection that wait for the store
  std::size_t unsent_max = std::size_t{4} << 20;  // bytes of answers that one has not taken
  // From the first byte of a command to its last, and to sign in where that is needed.
  std::chrono::milliseconds command_time{60'000};
  std::chrono::milliseconds idle_time{0};  // without a command; 0: for ever

  // Bytes of answers that one may have been promised. Most turn out to be far smaller.
  [[nodiscard]] std::size_t promised_max() const { return 4 * unsent_max; }
};

}  // namespace hapax::resp
