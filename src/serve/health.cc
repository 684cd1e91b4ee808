#include "serve/health.h"

namespace hapax::serve {

void Health::look_at(const Result<Statistics>& figures) {
  if (!figures) return set("the store does not answer; the log of the server tells why");
  if (figures->damaged) return set("the store is damaged; see HX1021");
  if (figures->writes_refused) return set("writes are refused: the disk is full");
  if (figures->clock_jump_pending) {
    return set("the clock jumped while the server was off, and nobody said whether to believe it");
  }
  set(std::nullopt);
}

}  // namespace hapax::serve
