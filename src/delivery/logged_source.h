// A source that settles in a database, with the log of its attempts in the store. The two are not
// one commit: the log follows what was settled, and a process that is killed takes with it what it
// had not written yet.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "delivery/attempt_log.h"
#include "delivery/source.h"
#include "ports/clock.h"

namespace hapax::delivery {

class LoggedSource final : public Source {
 public:
  // A commit of the store is a wait for its disk, which many attempts share.
  static constexpr Duration kWriteEvery{200};

  // The clock outlives it.
  LoggedSource(std::unique_ptr<Source> source, ports::Clock& clock, AttemptLog log)
      : source_(std::move(source)), clock_(clock), log_(std::move(log)) {}

  void note_attempts(std::vector<Attempt> attempts) override { log_.note(std::move(attempts)); }
  [[nodiscard]] Result<Hand> take(const TakeCall& call) override;
  [[nodiscard]] Status give_back(std::span<const Settlement> settled) override;
  void wait(Duration most) override;
  void nudge() override { source_->nudge(); }
  void hurry() override { source_->hurry(); }

 private:
  void write();

  const std::unique_ptr<Source> source_;
  ports::Clock& clock_;
  AttemptLog log_;
  std::int64_t write_at_ms_ = 0;
};

}  // namespace hapax::delivery
