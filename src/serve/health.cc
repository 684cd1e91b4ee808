#include "serve/health.h"

#include <cstdlib>

namespace hapax::serve {

namespace {

constexpr Duration kLagWarning{10'000};  // less is made up within two minutes

// It ends by itself, and until then everything is remembered longer rather than shorter.
std::string lag_warning(Duration lag) {
  if (std::abs(lag.count()) < kLagWarning.count()) return {};
  const std::string far = std::to_string(std::abs(lag.count()) / 1000) + " s ";
  if (lag < Duration{0}) {
    return "log time is " + far +
           "ahead of the wall clock and slows down by a tenth until it agrees";
  }
  return "log time is " + far +
         "behind the wall clock, as after a stop, and makes up a tenth of the time that passes; "
         "to end this at once start with accept_clock_jump";
}

}  // namespace

void Health::look_at(const Result<Statistics>& figures) {
  if (!figures) return set("the store does not answer; the log of the server tells why");
  if (figures->damaged) return set("the store is damaged; see HX1021");
  if (figures->writes_refused) return set("writes are refused: the disk is full");
  if (figures->clock_jump_pending) {
    return set("the wall clock jumped by more than clock_jump_max and is not believed");
  }
  set(std::nullopt, lag_warning(figures->clock_lag));
}

}  // namespace hapax::serve
