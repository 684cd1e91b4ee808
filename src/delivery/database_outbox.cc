#include "delivery/database_outbox.h"

#include <limits>
#include <utility>

#include "base/format.h"

namespace hapax::delivery {

namespace {

constexpr std::int64_t kLookEveryMs = 15'000;  // for others, while lanes are held by somebody else

}  // namespace

DatabaseOutbox::DatabaseOutbox(Open open, ports::Clock& clock, DatabaseOutboxSettings settings,
                               Hooks hooks, Log log)
    : open_(std::move(open)),
      clock_(clock),
      settings_(std::move(settings)),
      hooks_(std::move(hooks)),
      log_(std::move(log)) {}

DatabaseOutbox::~DatabaseOutbox() = default;

Result<Hand> DatabaseOutbox::take(const TakeCall& call) {
  Result<Hand> hand = open_and_take(call);
  const base::MutexLock lock(mutex_);
  troubled_ = !hand;
  return hand;
}

Result<Hand> DatabaseOutbox::open_and_take(const TakeCall& call) {
  if (!outbox_) HAPAX_CHECK(open());
  if (const Status alone = look_for_others(); !alone) {
    ignore(give_back(call.settled), "what is not settled is sent again under its key");
    return alone.error();
  }
  HAPAX_TRY(Hand hand, lanes_->take(call));
  clean();
  return hand;
}

Status DatabaseOutbox::open() {
  HAPAX_TRY(relay::OpenedOutbox opened, open_());
  const base::MutexLock lock(mutex_);
  LaneHooks hooks = hooks_(opened);
  outbox_ = std::move(opened.source);
  lanes_.emplace(*outbox_, clock_, settings_.lanes, log_, std::move(hooks));
  lanes_there_ = std::numeric_limits<std::size_t>::max();
  look_at_ms_ = 0;
  if (hurries_) outbox_->wake();
  return Ok{};
}

// Before the first lane is leased, and while lanes are somebody else's.
Status DatabaseOutbox::look_for_others() {
  const std::int64_t now = clock_.steady_ms();
  if (now < look_at_ms_ || lanes_->lanes() >= lanes_there_) return Ok{};
  look_at_ms_ = now + kLookEveryMs;
  HAPAX_TRY(const relay::OutboxReport report, outbox_->report());
  lanes_there_ = report.lanes.size();
  for (const relay::LaneReport& lane : report.lanes) {
    const bool runs = !lane.owner.empty() && lane.lease_left > Duration{0};
    if (!runs || label_of(lane.owner) == label_of(settings_.owner)) continue;
    return Error{Errc::kLocked,
                 base::format("'{}' sends from this outbox, so nothing is sent from here: each "
                              "record would go to one of the two; end it, or disable this workflow",
                              label_of(lane.owner))};
  }
  return Ok{};
}

void DatabaseOutbox::clean() {
  const std::int64_t now = clock_.steady_ms();
  if (now < clean_at_ms_) return;
  const auto more = outbox_->clean();
  if (!more) say("cleaning: " + more.error().text());
  clean_at_ms_ = more && *more ? now : now + kCleanEvery.count();
}

// Whoever gives back has ended, or rests for long: the connection ends, too.
Status DatabaseOutbox::give_back(std::span<const Settlement> settled) {
  if (!outbox_) return Ok{};
  Status given = lanes_->give_back(settled);
  const base::MutexLock lock(mutex_);
  lanes_.reset();
  outbox_.reset();
  hurries_ = false;
  return given;
}

// --- wait ------------------------------------------------------------------------------------

// An outbox that does not answer would not wait, but connect again and again.
void DatabaseOutbox::wait(Duration most) {
  base::MutexLock lock(mutex_);
  if (outbox_ && !troubled_ && !hurries_) {
    lock.unlock();
    return lanes_->wait(most);
  }
  lock.wait_for(woken_, most, [this]() HAPAX_REQUIRES(mutex_) { return nudged_; });
  nudged_ = false;
}

void DatabaseOutbox::nudge() {
  const base::MutexLock lock(mutex_);
  nudged_ = true;
  woken_.notify_all();
  if (outbox_) outbox_->nudge();
}

void DatabaseOutbox::hurry() {
  const base::MutexLock lock(mutex_);
  hurries_ = true;
  woken_.notify_all();
  if (outbox_) outbox_->wake();
}

}  // namespace hapax::delivery
