#include "delivery/outbox_driver.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/format.h"
#include "delivery/engine_end.h"

namespace hapax::delivery {

namespace {

constexpr Duration kTroubleFirst{500};  // after an error of the database, doubled …
constexpr Duration kTroubleMax{15'000};

bool mends_itself(const Error& error) {
  return error.code == Errc::kUnavailable || error.code == Errc::kLocked;
}

// What waits in lanes that somebody else holds, and who does.
struct OthersLanes {
  OthersLanes(const relay::OutboxReport& report, std::string_view own) {
    for (const relay::LaneReport& lane : report.lanes) {
      if (lane.waiting == 0 || lane.owner == own) continue;
      waiting += lane.waiting;
      if (!lane.owner.empty()) holders.insert(lane.owner);
    }
  }
  [[nodiscard]] std::string text() const {
    return base::format("records wait ({}) in lanes that others hold: {}", waiting,
                        base::joined(holders, ", "));
  }

  std::uint64_t waiting = 0;
  std::set<std::string> holders{};
};

}  // namespace

OutboxDriver::OutboxDriver(Open open, std::unique_ptr<Sink> sink, ports::Clock& clock,
                           const DriverSettings& settings, Log log)
    : open_(std::move(open)),
      clock_(clock),
      settings_(settings),
      log_(std::move(log)),
      sink_(std::move(sink)) {}

Status OutboxDriver::open() {
  auto opened = open_();
  if (!opened && mends_itself(opened.error())) {
    const bool told = !ended_ && ended_.error().code == Errc::kLocked;
    if (!told || opened.error().code != Errc::kLocked) say(opened.error().text());
    ended_ = std::move(opened).error();
    return Ok{};
  }
  HAPAX_TRY(auto outbox, std::move(opened));
  const base::MutexLock lock(mutex_);
  ended_ = Ok{};
  outbox_ = std::move(outbox);
  source_.emplace(*outbox_, clock_, settings_.lanes, log_);
  engine_.emplace(*source_, clock_, settings_.engine, log_, [this] { source_->nudge(); });
  engine_->add_endpoint(*sink_, settings_.policy);
  if (stop_) outbox_->wake();
  return Ok{};
}

void OutboxDriver::stop() {
  const base::MutexLock lock(mutex_);
  stop_ = true;
  if (engine_) engine_->wind_down();
  if (outbox_) outbox_->wake();
  stopped_.notify_all();
}

Status OutboxDriver::run() {
  for (;;) {
    const Turn turn = this->turn();
    if (turn.last) break;
    if (turn.wait == Duration{0}) continue;
    engine_&& trouble_ == Duration{0} ? source_->wait(turn.wait) : rest(turn.wait);
  }
  end();
  return ended_;
}

OutboxDriver::Turn OutboxDriver::turn() {
  if (stop_) return {.last = true};
  if (!engine_) return open_again();
  const auto step = engine_->step();
  if (!step) return fail(step.error());
  trouble_ = Duration{0};
  ended_ = Ok{};
  if (!settings_.once) {  // Also while there is always something to send.
    clean();
    tell_idleness();
  }
  if (step->idle_for == Duration{0}) return {};
  return {.wait = step->idle_for, .last = settings_.once && is_over(*step)};
}

OutboxDriver::Turn OutboxDriver::open_again() {
  const bool held = !ended_ && ended_.error().code == Errc::kLocked;
  if (settings_.once && !ended_ && !held) return {.last = true};
  if (const Status opened = open(); !opened) {
    ended_ = opened.error();
    // A table or a right that is missing may come: whoever starts databases and relays together is
    // not told to start the relay again.
    if (settings_.once || ended_.error().code == Errc::kConflict) return {.last = true};
    say(ended_.error().text());
  }
  if (engine_) return {};
  trouble_ = trouble_ == Duration{0} || held ? kTroubleFirst : std::min(trouble_ * 2, kTroubleMax);
  return {.wait = trouble_};
}

OutboxDriver::Turn OutboxDriver::fail(const Error& error) {
  trouble_ = trouble_ == Duration{0} ? kTroubleFirst : std::min(trouble_ * 2, kTroubleMax);
  say(error.text());
  ended_ = error;
  return {.wait = trouble_, .last = settings_.once};
}

void OutboxDriver::end() {
  if (!engine_) return;
  const Status ended =
      end_engine(*engine_, clock_, settings_.patience, [this](Duration span) { rest(span); });
  if (!ended) say(ended.error().text());
}

bool OutboxDriver::is_over(const Step& step) {
  if (step.under_way != 0) return false;
  if (step.paused) {
    left_ = Left::kSome;
    return true;
  }
  return engine_->held() == 0 && nothing_is_left();
}

bool OutboxDriver::nothing_is_left() {
  const std::int64_t now = clock_.steady_ms();  // A lease may end while the report is made.
  const auto report = outbox_->report();
  if (!report) {
    ended_ = report.error();
    say(report.error().text());
    return true;
  }
  const OthersLanes others(*report, settings_.owner);
  if (others.waiting == 0) {
    std::uint64_t retries = 0;
    for (const relay::LaneReport& lane : report->lanes) retries += lane.retries;
    if (retries == 0) return true;
    say(base::format("records wait ({}) for another attempt, or behind one that does", retries));
    left_ = Left::kSome;
    return true;
  }
  // A sender that died cannot be told from one that lives before its lease ends. Then its lanes are
  // free, and soon taken; whoever holds them for longer than that renews them, and sends.
  if (!others_kept_ms_) others_kept_ms_ = now + settings_.engine.lease.count();
  if (now <= *others_kept_ms_ || others.holders.empty()) return false;
  say(others.text());
  left_ = Left::kSome;
  return true;
}

void OutboxDriver::clean() {
  const std::int64_t now = clock_.steady_ms();
  if (now < clean_at_ms_) return;
  const auto more = outbox_->clean();
  if (!more) say("cleaning: " + more.error().text());
  clean_at_ms_ = more && *more ? now : now + kCleanEvery.count();
}

// Once, if others hold all lanes for longer than a lease, and leave records waiting.
void OutboxDriver::tell_idleness() {
  const std::int64_t now = clock_.steady_ms();
  if (source_->lanes() != 0) idle_since_ms_.reset();
  if (source_->lanes() != 0 || told_idle_) return;
  if (!idle_since_ms_) idle_since_ms_ = now;
  if (now - *idle_since_ms_ <= settings_.engine.lease.count()) return;
  idle_since_ms_ = now;
  const auto report = outbox_->report();
  if (!report) return;
  const OthersLanes others(*report, settings_.owner);
  if (others.waiting == 0 || others.holders.empty()) return;
  told_idle_ = true;
  say("this relay holds no lane, and " + others.text());
}

// While the database is away there is nothing else to wait on.
void OutboxDriver::rest(Duration span) {
  base::MutexLock lock(mutex_);
  const bool ends = stop_;
  lock.wait_for(stopped_, span, [&] { return !ends && stop_; });
}

}  // namespace hapax::delivery
