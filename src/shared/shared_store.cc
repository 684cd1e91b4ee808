#include "shared/shared_store.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/format.h"
#include "base/mutex.h"
#include "base/place_failure.h"
#include "engine/frames.h"
#include "engine/queries.h"
#include "journal/names.h"
#include "journal/segment.h"

namespace hapax::shared {

namespace {

// Then callers wait, and loops of connections are refused: back-pressure.
constexpr std::size_t kTasksBytesMax = std::size_t{64} << 20;
constexpr std::size_t kTasksMax = 16'384;
constexpr std::size_t kSlice = 1'024;  // of clearing away, after each round

ports::LogPlace place_of(journal::Slot slot) { return {slot.segment, slot.offset}; }

// kNotFound, as if the tip were gone.
Error gap_before(const ports::LogBatch& batch) {
  return Error{Errc::kNotFound,
               base::format("what lay before the batch in segment {} at offset {} was removed",
                            batch.at.segment, batch.at.offset)};
}

}  // namespace

SharedStore::SharedStore(std::shared_ptr<void> owner, SharedPorts ports, SharedOptions options,
                         const journal::Identity& identity,
                         std::shared_ptr<journal::SegmentFiles> files, TellPeople tell)
    : MachineStore(identity, files, std::move(tell)),
      owner_(std::move(owner)),
      ports_(ports),
      options_(std::move(options)),
      identity_(identity),
      files_(std::move(files)) {}

SharedStore::~SharedStore() {
  {
    const base::MutexLock lock(mutex_);
    stop_ = true;
    wake_.notify_all();
  }
  if (driver_.joinable()) driver_.join();
  {
    const base::MutexLock lock(mutex_);
    background_stop_ = true;
    background_wake_.notify_all();
  }
  if (background_.joinable()) background_.join();
}

// The log is asked for its size now and then only: whoever looks at figures looks often.
Status SharedStore::add_disk_figures(Statistics& stats) {
  constexpr std::int64_t kCountEveryMs = 30'000;
  const std::int64_t now_ms = ports_.clock.steady_ms();
  base::MutexLock lock(mutex_);
  const bool due = !counted_ms_ || now_ms - *counted_ms_ >= kCountEveryMs;
  if (due) {
    counted_ms_ = now_ms;
    lock.unlock();
    HAPAX_TRY(const journal::SegmentUse use, journal::segments_on_disk(ports_.folder));
    lock.lock();
    use_ = use;
  }
  stats.journal_bytes = use_.bytes;
  stats.segments = use_.segments;
  return Ok{};
}

// --- callers
// ---------------------------------------------------------------------------------------

bool SharedStore::hand_over(Task& task, Lead /*lead*/, WhenFull when_full) {
  const auto* commit = std::get_if<CommitTask>(&task);
  const std::size_t bytes = commit == nullptr ? 0 : commit->request.bytes;
  base::MutexLock lock(mutex_);
  // E4: the driver, from whom `done` may submit, never waits for room that only it can make.
  const bool makes_room = driver_id_ == std::this_thread::get_id();
  const auto has_room = [&]() HAPAX_REQUIRES(mutex_) {
    const bool some = tasks_bytes_ < kTasksBytesMax && tasks_.size() < kTasksMax;
    return makes_room || tasks_.empty() || some;
  };
  if (when_full == WhenFull::kRefuse && !has_room()) return false;
  lock.wait(room_, has_room);
  tasks_bytes_ += bytes;
  tasks_.push_back(std::move(task));
  if (tasks_.size() == 1) wake_.notify_one();
  return true;
}

// --- rounds
// ----------------------------------------------------------------------------------------

void SharedStore::run() {
  {
    const base::MutexLock lock(mutex_);
    driver_id_ = std::this_thread::get_id();
  }
  std::deque<Task> tasks;
  while (next(tasks)) {
    if (failing_) try_again();
    serve_all(tasks);
    if (!failing_) tend();
  }
}

// Waits until there is something to do; false when the store is to stop and all is done.
bool SharedStore::next(std::deque<Task>& tasks) {
  const bool watched = watches().any();
  base::MutexLock lock(mutex_);
  lock.wait_for(wake_, watched ? options_.watch_every : options_.tend_every,
                [this]() HAPAX_REQUIRES(mutex_) { return stop_ || !tasks_.empty(); });
  tasks.swap(tasks_);
  tasks_bytes_ = 0;
  room_.notify_all();
  const bool stop = stop_ && tasks.empty();
  lock.unlock();
  if (!stop && watched && tasks.empty() && !failing_) ask_for_news();
  return !stop;
}

void SharedStore::serve_all(std::deque<Task>& tasks) {
  while (!tasks.empty() && !failing_) {
    if (const Status sound = check_sound(); !sound) return refuse(tasks, sound.error());
    take_in(tasks);
    end_round();
  }
  if (failing_) refuse(tasks, *failing_);
}

// As many as fit one batch.
void SharedStore::take_in(std::deque<Task>& tasks) {
  engine::Machine& machine = engine_->machine();
  for (; !tasks.empty(); tasks.pop_front()) {
    if (auto* commit = std::get_if<CommitTask>(&tasks.front())) {
      if (!machine.has_room(commit->request)) return;
      machine.submit(std::move(commit->request), std::move(commit->reply));
    } else if (auto* look = std::get_if<LookTask>(&tasks.front())) {
      machine.look(std::move(look->look), std::move(look->fail), look->sees);
    } else {
      take_shares(std::get<SharesTask>(tasks.front()));
    }
  }
}

// They outlive the state, which may be built anew.
void SharedStore::take_shares(SharesTask& task) {
  share_of_ = std::move(task.share_of);
  engine_->machine().set_shares(share_of_);
}

// E7: until everybody who waits is answered.
void SharedStore::end_round() {
  const std::int64_t began_ms = ports_.clock.steady_ms();
  while (!failing_) {
    engine::Machine& machine = engine_->machine();
    const bool decided = !machine.in_flight() && machine.has_facts();
    if (decided && decided_behind_) {
      ask_for_news();  // W8: it was decided by a time that is too late.
    } else if (decided && unsure_) {
      ask_for_time();
    } else if (decided || machine.in_flight()) {
      append();
    } else if (!machine.quiescent()) {
      ask_for_news();
    } else {
      break;
    }
    if (!failing_ && !sent_) bound_round(began_ms);
  }
  if (failing_) return;
  if (const auto& damage = engine_->machine().damage()) stop_serving(*damage);
  clear_away();
  watches().tell(news_);
}

// Nothing of the round was sent, or it was overtaken: nothing happened.
void SharedStore::bound_round(std::int64_t began_ms) {
  engine::Machine& machine = engine_->machine();
  if (machine.quiescent()) return;
  if (ports_.clock.steady_ms() - began_ms < options_.patience.count()) return;
  const Error error{
      Errc::kUnavailable,
      base::format("other processes of the store were first each time, for {} ms: is this one much "
                   "farther from the database? Nothing happened. Try again.",
                   options_.patience.count())};
  machine.give_up(error, error);
}

void SharedStore::clear_away() {
  engine_->machine().expire(kSlice);
  engine_->machine().collect(kSlice);
}

void SharedStore::append() {
  if (!sent_) {
    engine::Machine& machine = engine_->machine();
    batch_.at = place_of(machine.next_slot());
    journal::Batch& batch = machine.seal();
    // Checksums do not tell batches apart: a fact that ends with its own is as good as none.
    batch_.mark = ports::draw_u64(ports_.entropy);
    batch_.bytes = batch.seal({0, batch_.mark, durable_, chain_});
    batch_chain_ = batch.checksum();
    batch_.last = batch.next().value - 1;
    batch_time_ = batch.log_time();
    sent_ = true;
    may_be_there_ = false;
  }
  const auto put = ports_.log.append(tip_, batch_);
  if (!put) return append_failed(put.error());
  silent_since_ms_.reset();
  if (*put == ports::SharedLog::Put::kDone) return sent_is_there();
  see_what_is_there();
}

void SharedStore::sent_is_there() {
  stand_behind(batch_, batch_chain_, {durable_.next(), journal::Lsn{batch_.last}}, batch_time_);
  sent_ = false;
  engine_->machine().completed(journal::Durable::vouched(durable_));
}

// The log does not end where it was believed to: others were first, or it was us, and the answer
// was lost.
void SharedStore::see_what_is_there() {
  const auto news = read_news();
  if (!news) return no_news(news.error());
  // Whatever was there is gone again: the same batch is tried again.
  if (news->batches.empty()) return;
  if (is_ours(news->batches.front())) return sent_is_there();
  follow(*news);
}

// What follows the tip. Segments go in any order: if something else does, what lay between may have
// been anybody's, also ours.
Result<ports::LogPart> SharedStore::read_news() {
  followed_ms_ = ports_.clock.steady_ms();
  HAPAX_TRY(ports::LogPart news, ports_.log.read_behind(tip_));
  if (news.batches.empty()) return news;
  const ports::LogBatch& first = news.batches.front();
  const auto header =
      journal::decode_batch_header(std::string_view(first.bytes).substr(0, journal::kHeaderBytes));
  if (header && header->first > durable_.next()) return gap_before(first);
  return news;
}

void SharedStore::no_news(const Error& error) {
  error.code == Errc::kNotFound ? build_anew(error) : no_answer(error);
}

bool SharedStore::is_ours(const ports::LogBatch& batch) const {
  return sent_ && batch.at == batch_.at && batch.bytes == batch_.bytes;
}

// Also if nobody asked: what others did is followed.
void SharedStore::ask_for_news() {
  const auto news = read_news();
  if (!news) return no_news(news.error());
  silent_since_ms_.reset();
  // W8: a full part of the news may have been the last one. Only now this process knows it.
  const bool goes_back = news->all && decided_behind_;
  if (!news->batches.empty() || goes_back) follow(*news);
  if (failing_) return;
  // E7: whoever waits came before the question, and the state is that of its answer. To wait for an
  // answer without news would be to wait for as long as others write.
  engine::Machine& machine = engine_->machine();
  if (news->all && !machine.in_flight() && !machine.has_facts()) machine.proven();
  if (news->batches.empty() || !machine.quiescent()) return;
  clear_away();
  watches().tell(news_);
}

void SharedStore::follow(const ports::LogPart& news) {
  sent_ = false;
  Status followed = Ok{};
  engine_->machine().overtaken([&](core::State& state) {
    engine::Replay replay(state, watches().any() ? &news_ : nullptr);
    const std::uint64_t before = durable_.value;
    std::uint64_t bytes = 0;
    for (const ports::LogBatch& batch : news.batches) {
      followed = follow_one(replay, batch);
      if (!followed) break;
      bytes += batch.bytes.size();
    }
    if (followed) compare_time(news);
    return engine::Machine::LogEnd{
        options_.engine.segment_bytes, durable_.next(), end_of_log(), log_time_, bytes,
        durable_.value - before};
  });
  if (followed) return;
  if (followed.error().code == Errc::kNotFound) return build_anew(followed.error());
  // Nobody is answered from half of it, and asking again would find the same.
  stop_serving(followed.error());
  engine_->machine().give_up(followed.error(), followed.error());
}

Status SharedStore::follow_one(engine::Replay& replay, const ports::LogBatch& batch) {
  HAPAX_TRY(const journal::BatchView view,
            journal::view_batch(batch.bytes, {batch.at.segment, batch.at.offset}));
  if (view.header.first > durable_.next()) return gap_before(batch);
  if (view.header.first != durable_.next() || view.header.chain != chain_) {
    return Error{
        Errc::kCorruption,
        base::format("the batch in segment {} at offset {} does not follow the one before it",
                     batch.at.segment, batch.at.offset)};
  }
  HAPAX_CHECK(replay(view));
  stand_behind(batch, view.checksum, {view.header.first, view.header.last()}, view.header.log_time);
  return Ok{};
}

void SharedStore::stand_behind(const ports::LogBatch& batch, std::uint32_t checksum, Facts facts,
                               Time log_time) {
  tip_ = {batch.at, batch.mark, false};
  tip_bytes_ = static_cast<std::uint32_t>(batch.bytes.size());
  chain_ = checksum;
  durable_ = facts.last;
  log_time_ = log_time;
  known_.add({batch.at, batch.mark, facts.first, facts.last, log_time});
}

// --- trouble
// ---------------------------------------------------------------------------------------

void SharedStore::refuse(std::deque<Task>& tasks, const Error& error) {
  for (; !tasks.empty(); tasks.pop_front()) {
    if (auto* commit = std::get_if<CommitTask>(&tasks.front())) {
      engine::Finished finished;
      finished.answer = error;
      commit->reply(std::move(finished));
    } else if (auto* look = std::get_if<LookTask>(&tasks.front())) {
      look->fail(error);
    } else {
      take_shares(std::get<SharesTask>(tasks.front()));
    }
  }
}

void SharedStore::append_failed(const Error& error) {
  may_be_there_ = may_be_there_ || error.code == Errc::kOutcomeUnknown;
  if (error.code == Errc::kOutcomeUnknown || error.code == Errc::kUnavailable || may_be_there_) {
    return no_answer(error);
  }
  sent_ = false;
  engine_->machine().refused(base::place_failure(error));
}

// E8. The caller says it again.
void SharedStore::no_answer(const Error& error) {
  const std::int64_t now_ms = ports_.clock.steady_ms();
  if (!silent_since_ms_) silent_since_ms_ = now_ms;
  const std::int64_t silent_ms = now_ms - *silent_since_ms_;
  if (silent_ms >= options_.patience.count()) return out_of_patience(error);
  constexpr std::chrono::milliseconds kWaitMin{5};
  constexpr std::chrono::milliseconds kWaitMax{500};
  base::MutexLock lock(mutex_);
  lock.wait_for(wake_, std::clamp(std::chrono::milliseconds{silent_ms / 4}, kWaitMin, kWaitMax),
                [this]() HAPAX_REQUIRES(mutex_) { return stop_; });
  if (!stop_) return;
  lock.unlock();
  out_of_patience(error);
}

void SharedStore::out_of_patience(const Error& error) {
  engine::Machine& machine = engine_->machine();
  failing_ = Error{Errc::kUnavailable, "the log does not answer: " + error.detail};
  if (sent_ && !may_be_there_) {
    sent_ = false;
    machine.refused(*failing_);
  }
  const Error unknown{Errc::kOutcomeUnknown,
                      "the log did not answer whether the commit was written (" + error.detail +
                          "). Say it again with the same ids, or look what is there."};
  machine.give_up(unknown, *failing_);
}

void SharedStore::try_again() {
  if (!check_sound()) return;
  failing_.reset();
  if (half_read_) {
    read_anew();
  } else if (engine_->machine().in_flight()) {
    append();
  } else {
    ask_for_news();
  }
  if (!failing_) end_round();
}

// E9. What is in flight was not written if the log has lost its end, which it would have followed.
// But if the keeper has removed what lay before it, it may have been.
void SharedStore::build_anew(const Error& why) {
  tell("the log does not have what was there before (" + why.detail +
       "): everything is read anew.");
  const Error again{Errc::kUnavailable,
                    "the log changed under this process: nothing happened. Try again."};
  const Error unknown{Errc::kOutcomeUnknown,
                      "the log changed under this process, and may have the commit. Say it again "
                      "with the same ids, or look what is there."};
  if (sent_ && may_be_there_) engine_->machine().give_up(unknown, again);
  if (sent_) {
    sent_ = false;
    engine_->machine().refused(again);
  }
  engine_->machine().give_up(again, again);
  decided_behind_ = true;  // perhaps, by who wrote what is gone
  read_anew();
}

// Until it succeeds nothing else is done: the state and what is known of the log do not belong
// together. A place that cannot be reached now is tried again.
void SharedStore::read_anew() {
  const Status read = read_all();
  half_read_ = !read;
  if (read) {
    silent_since_ms_.reset();
    return compare_time({});
  }
  failing_ = Error{Errc::kUnavailable, "the log could not be read: " + read.error().detail};
  if (read.error().code == Errc::kCorruption || read.error().code == Errc::kNotFound) {
    stop_serving(read.error());
  }
}

// --- what is due
// -----------------------------------------------------------------------------------

void SharedStore::tend() {
  const std::int64_t now_ms = ports_.clock.steady_ms();
  if (now_ms - tended_ms_ < options_.tend_every.count()) return;
  tended_ms_ = now_ms;
  engine::Machine& machine = engine_->machine();
  if (machine.damage()) stop_serving(*machine.damage());
  if (!check_sound()) return;
  try_to_keep(now_ms);
  // W8, E10: what others write is followed, too, when nobody asks here.
  if (now_ms - followed_ms_ >= options_.keep_every.count()) ask_for_news();
  if (!failing_ && unsure_ && !decided_behind_) ask_for_time();
  if (failing_) return;
  if (keeper_ != nullptr) return tend_as_keeper();
  answer_with_time();
  end_round();
}

// E10
void SharedStore::try_to_keep(std::int64_t now_ms) {
  {
    const base::MutexLock lock(mutex_);
    if (std::exchange(keeper_lost_, false)) keeper_.reset();
  }
  if (keeper_ != nullptr || now_ms - keeper_tried_ms_ < options_.keep_every.count()) return;
  keeper_tried_ms_ = now_ms;
  auto keeper = ports_.folder.lock(kKeeperName);
  if (!keeper) return;
  const auto newest = newest_snapshot();
  if (!newest) return;
  if (*newest == engine_->snapshotter().newest()) {
    engine_->snapshotter().forget_unfinished();
  } else {
    read_anew();
  }
  if (half_read_) return;
  if (!clear_leftovers()) return;
  keeper_ = *std::move(keeper);
  // Before anything is written: the lock may be one of another server than the state is of.
  followed_ms_ = now_ms - options_.keep_every.count();
}

// Of keepers that died while they wrote.
Status SharedStore::clear_leftovers() {
  HAPAX_TRY(const std::vector<std::string> names, ports_.folder.list());
  for (const std::string& name : names) {
    if (journal::parse_name(name).kind != journal::FileName::Kind::kUnfinished) continue;
    HAPAX_CHECK(ports_.folder.remove(name));
  }
  return Ok{};
}

void SharedStore::tend_as_keeper() {
  engine::Machine& machine = engine_->machine();
  machine.act(
      [this](core::Turn& turn) {
        constexpr std::size_t kSweepStreams = 1'000;
        sweep_from_ = engine::sweep_retention(turn, sweep_from_, kSweepStreams);
        return true;
      },
      engine::Machine::Purpose::kFreesSpace);
  engine_->carry_out_moves();
  machine.note_time(options_.engine.mark_every);
  answer_with_time();
  end_round();
  if (failing_ || !engine_->snapshot_due()) return;
  engine_->make_way();
  end_round();
  if (failing_ || keeper_ == nullptr || !engine_->snapshot_due()) return;
  {
    const base::MutexLock lock(mutex_);
    // The one before is over, and is still being told of; or it was given up since try_to_keep(),
    // and what is known of its parts is forgotten before the next.
    if (to_write_ != nullptr || keeper_lost_) return;
  }
  engine_->begin_snapshot();
  if (!engine_->snapshotter().busy()) return;
  const base::MutexLock lock(mutex_);
  to_write_ = &engine_->snapshotter();
  background_wake_.notify_all();
}

// --- background
// ------------------------------------------------------------------------------------

bool SharedStore::background_stops() {
  const base::MutexLock lock(mutex_);
  return background_stop_;
}

void SharedStore::run_background() {
  base::MutexLock lock(mutex_);
  for (;;) {
    lock.wait(background_wake_,
              [this]() HAPAX_REQUIRES(mutex_) { return background_stop_ || to_write_ != nullptr; });
    if (to_write_ == nullptr) return;
    engine::Snapshotter& snapshotter = *to_write_;
    lock.unlock();
    Status stepped = Ok{};
    while (stepped && snapshotter.busy()) {
      if (background_stops()) return;  // A new keeper clears away what was begun.
      stepped = snapshotter.step();
    }
    if (!stepped) {
      tell("a snapshot was given up, the next one will be tried: " + stepped.error().text());
      if (stepped.error().code == Errc::kCorruption) stop_serving(stepped.error());
    }
    lock.lock();
    if (!stepped) keeper_lost_ = true;
    to_write_ = nullptr;
    background_wake_.notify_all();
  }
}

}  // namespace hapax::shared
