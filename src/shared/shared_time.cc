// W8: how the processes of a shared store agree about log time. docs/internals/time.md.
//
// While nothing is written, each counts log time for itself, and nothing says how far it came. Two
// things make that safe. Nobody tells that something is over by a time more than 2 s after the
// newest batch, except while the log is full (W5), so a process may go back to that time. And a
// batch only goes behind the newest one, so whoever answers a question knows that nobody has
// decided anything since.
#include <algorithm>
#include <thread>

#include "engine/frames.h"
#include "journal/segment.h"
#include "shared/shared_store.h"

namespace hapax::shared {

namespace {

// Questions and their answers; nothing was decided with them.
bool only_notes_time(const ports::LogBatch& batch) {
  const auto view = journal::view_batch(batch.bytes, {batch.at.segment, batch.at.offset});
  if (!view) return false;
  bool only = true;
  const Status read = journal::for_each_fact(
      *view, [&](journal::Lsn, base::Where, std::string_view bytes) -> Status {
        HAPAX_TRY(const std::string_view fact, engine::checked_fact(bytes));
        HAPAX_TRY(const core::Fact decoded, core::decode_fact(fact));
        only = only && std::holds_alternative<core::TimeNoted>(decoded);
        return Ok{};
      });
  return read && only;
}

// W1 sets log time to the wall clock at once, as it does in every other process: no question is
// needed.
bool near_wall(Duration lag) { return lag >= Duration{0} && lag <= core::kStepMax; }

}  // namespace

// A log whose newest time is that of the wall clock needs no question. Who becomes the keeper as it
// starts is alone, as a rule: it does not wait for an answer, and has the 2 s of W5 already. If it
// decides something before there is one, the others go back.
void SharedStore::start_time() {
  const Time asked = engine_->machine().read_clock();
  const Duration lag = engine_->machine().moment().lag();
  const bool empty = durable_ == journal::Lsn{0};
  if (empty || near_wall(lag)) return;
  if (keeper_ == nullptr) return ask_for_time();
  if (lag < Duration{0}) return;
  put_question(asked);
}

// The newest batch is far behind the clock of this process: it is a question, or somebody decides
// by an older time, or it was written while this process did not look. Of the latter two nobody can
// tell which it is. A part of the news that is not the last one does not say how far to go back:
// until the last one is read, nothing that was decided here is written.
void SharedStore::compare_time(const ports::LogPart& news) {
  engine::LogClock& clock = engine_->clock();
  clock.follow(log_time_);
  const bool behind = clock.now() - log_time_ > core::kStepMax;
  const bool noted =
      behind && std::all_of(news.batches.begin(), news.batches.end(), only_notes_time);
  decided_behind_ = behind && (decided_behind_ || !noted);
  others_behind_ = behind && !decided_behind_;
  if (!news.all || !decided_behind_) return;
  decided_behind_ = false;
  const Time back = log_time_ + core::kStepMax;
  clock.go_back(back);
  unsure_ = !near_wall(clock.wall() - back);
}

// Everybody looks at the log every second, so an answer comes soon. If there is none, nobody is
// there, or stands still and will go back (compare_time()), or is hardly ahead. Whoever is gone may
// have told that something is over by a time that is not durable (W5).
void SharedStore::ask_for_time() {
  const Time asked = engine_->clock().now();
  unsure_ = !put_question(asked);
  if (unsure_ || failing_) return;
  const std::int64_t until_ms = ports_.clock.steady_ms() + options_.answer_within.count();
  const auto waits = [&] {
    if (failing_ || ports_.clock.steady_ms() >= until_ms) return false;
    base::MutexLock lock(mutex_);
    return !lock.wait_for(wake_, options_.watch_every,
                          [this]() HAPAX_REQUIRES(mutex_) { return stop_; });
  };
  while (log_time_ <= asked + core::kStepMax && waits()) ask_for_news();
  engine_->clock().follow(asked + core::kStepMax);
}

// Whether there is a question now, or nothing can be written at all. Not by way of the machine,
// which has decided already what is to wait for the answer.
bool SharedStore::put_question(Time asked) {
  const journal::Slot slot = end_of_log();
  journal::Batch batch;
  batch.begin(durable_.next(), asked);
  engine::write_frame(batch, core::TimeNoted{});
  batch.set_begins_segment(slot.offset == journal::kHeaderBytes);
  batch.close();
  ports::LogBatch question{{slot.segment, slot.offset}, durable_.next().value, 0, {}};
  question.mark = ports::draw_u64(ports_.entropy);
  question.bytes = batch.seal({0, question.mark, durable_, chain_});
  const auto put = ports_.log.append(tip_, question);
  if (!put) {
    const Errc code = put.error().code;
    const bool later = code == Errc::kUnavailable || code == Errc::kOutcomeUnknown;
    if (later) no_answer(put.error());
    return !later;
  }
  silent_since_ms_.reset();
  const bool done = *put == ports::SharedLog::Put::kDone;
  done ? follow({{std::move(question)}, true}) : ask_for_news();
  return done;
}

// Behind the question, and only if it is still the newest batch.
void SharedStore::answer_with_time() {
  if (!std::exchange(others_behind_, false)) return;
  engine_->machine().note_time(core::kStepMax);
}

}  // namespace hapax::shared
