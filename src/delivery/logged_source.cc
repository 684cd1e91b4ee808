#include "delivery/logged_source.h"

namespace hapax::delivery {

Result<Hand> LoggedSource::take(const TakeCall& call) {
  Result<Hand> hand = source_->take(call);
  if (clock_.steady_ms() >= write_at_ms_) write();
  return hand;
}

Status LoggedSource::give_back(std::span<const Settlement> settled) {
  Status given = source_->give_back(settled);
  write();
  return given;
}

// Whoever waits for longer has the time to write.
void LoggedSource::wait(Duration most) {
  if (most >= kWriteEvery) write();
  source_->wait(most);
}

void LoggedSource::write() {
  if (log_.empty()) return;
  log_.write();
  write_at_ms_ = clock_.steady_ms() + kWriteEvery.count();
}

}  // namespace hapax::delivery
