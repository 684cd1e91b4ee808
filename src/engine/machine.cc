#include "engine/machine.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/format.h"
#include "base/mutant.h"
#include "base/place_failure.h"
#include "engine/frames.h"
#include "journal/names.h"

namespace hapax::engine {

namespace {

constexpr std::size_t kBatchBytesWanted = std::size_t{8} << 20;  // beyond it a batch is full

template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

std::string place(base::Where where) {
  return base::format("{} offset {}", journal::segment_name(where.segment), where.offset);
}

bool only_frees_space(const Commit& commit) {
  if (commit.transaction) return false;  // It is staged.
  return std::all_of(commit.ops.begin(), commit.ops.end(), [](const Op& op) {
    return std::holds_alternative<Trim>(op) || std::holds_alternative<DeleteStream>(op) ||
           std::holds_alternative<DeleteConsumer>(op);
  });
}

// As it is counted for a hand-out.
std::uint64_t record_bytes_max(const core::Run& run) {
  return std::min<std::uint64_t>(run.largest, run.at.length);
}

// M1, planted: ids of records that were never stored stay remembered.
void remember_unstored(core::State& state, const Prepared& request, Time now) {
  for (std::size_t i = 0; i < request.commit.ops.size(); ++i) {
    const auto* append = std::get_if<Append>(&request.commit.ops[i]);
    if (append == nullptr || !append->id) continue;
    const core::Stream* stream = state.find_stream(append->stream);
    if (stream == nullptr) continue;
    const auto hash = request.hashes[i].key.plus(base::spread(stream->uid.value));
    if (state.ids.find(hash, now) != nullptr) continue;
    const core::IdEntry entry(hash, request.hashes[i].content, stream->last.next(), now,
                              stream->settings.window);
    state.ids.add(entry, static_cast<std::uint32_t>(stream->uid.value), now);
  }
}

}  // namespace

Machine::Machine(std::unique_ptr<core::State> state, const LogEnd& end, const digest::HashKey& key,
                 LogClock& clock, journal::SegmentFiles& files, Log log)
    : state_(std::move(state)),
      segment_bytes_(end.segment_bytes),
      key_(key),
      clock_(clock),
      files_(files),
      next_lsn_(end.next),
      next_slot_(end.slot),
      log_(log),
      latest_(end.log_time) {
  begin_batch();
}

// --- in ------------------------------------------------------------------------------------------

void Machine::begin_batch() {
  building_.slot = next_slot_;
  building_.ordinary = false;
  building_.only_appends = true;
  building_.batch.begin(next_lsn_, clock_.now());
}

// A batch has one log time, fixed with its first fact.
void Machine::refresh_time() {
  if (building_.batch.empty()) building_.batch.begin(next_lsn_, clock_.now());
}

bool Machine::has_room(const Prepared& request) const {
  return building_.batch.empty() ||
         building_.batch.payload_bytes() + request.bytes <= kBatchBytesWanted;
}

void Machine::submit(Prepared request, OnFinished reply) {
  ++commits_;
  decide(WaitingCommit{std::move(request), std::move(reply), {}, false});
}

void Machine::look(Look look, Fail fail, Sees sees) {
  decide(WaitingLook{std::move(look), std::move(fail), {}, sees});
}

void Machine::act(Act act, Purpose purpose) { decide(WaitingAct{std::move(act), purpose}); }

void Machine::decide(Waiting waiting) {
  refresh_time();
  overflow_ = false;
  const std::uint32_t facts = building_.batch.count();
  const Time now = building_.batch.log_time();
  std::visit(Overloaded{
                 [&](WaitingCommit& commit) { commit.wrote = decide_commit(commit); },
                 [&](WaitingLook& look) { look.deliver = look.look(*state_, now); },
                 [&](WaitingAct& act) {
                   core::Turn acting = turn();
                   act.act(acting);
                   HAPAX_ASSERT(!overflow_, "the store's own acts fit a batch");
                 },
             },
             waiting);
  next_lsn_ = building_.batch.next();
  if (building_.batch.count() != facts && !frees_space(waiting)) building_.ordinary = true;
  wait_or_deliver(std::move(waiting));
}

bool Machine::frees_space(const Waiting& waiting) {
  if (const auto* act = std::get_if<WaitingAct>(&waiting)) {
    return act->purpose == Purpose::kFreesSpace;
  }
  const auto* commit = std::get_if<WaitingCommit>(&waiting);
  return commit != nullptr && only_frees_space(commit->request.commit);
}

bool Machine::decide_commit(WaitingCommit& waiting) {
  const std::uint32_t facts = building_.batch.count();
  core::Turn deciding = turn();
  const core::Turn::Mark mark = deciding.mark();
  core::Executed executed = core::execute(deciding, waiting.request.request());
  if (overflow_) {
    // Copies of large records (dead letters) are not known beforehand.
    deciding.roll_back(mark);
    executed = Error{Errc::kLimitExceeded,
                     base::format("the commit does not fit a batch of the journal ({} bytes); "
                                  "nothing happened. Use fewer operations.",
                                  journal::kBatchBytesMax)};
  }
  waiting.finished = finish(waiting.request, std::move(executed), deciding.now());
  return building_.batch.count() != facts;
}

// E1: only repeats of message ids that were stored before the oldest batch that is not durable was
// begun. Appends change nothing of what is said of them.
bool Machine::knew_before(const Waiting& waiting) const {
  const auto* commit = std::get_if<WaitingCommit>(&waiting);
  if (commit == nullptr || commit->wrote || !commit->finished.answer) return false;
  if (log_ == Log::kShared || !building_.only_appends) return false;
  if (in_flight() && !in_flight_.only_appends) return false;
  const Time oldest = (in_flight() ? in_flight_ : building_).batch.log_time();
  const std::vector<Verdict>& verdicts = commit->finished.answer->verdicts;
  return std::all_of(verdicts.begin(), verdicts.end(), [&](const Verdict& verdict) {
    const auto* repeat = std::get_if<Duplicate>(&verdict);
    if (repeat == nullptr || repeat->forgotten_after != 0) return false;
    return repeat->first_seen < oldest || base::mutant(base::Mutant::kRepeatBeforeDurable);
  });
}

// E1: whoever saw facts that are not durable yet waits for the newest batch that has any.
void Machine::wait_or_deliver(Waiting waiting) {
  const bool answers = !std::holds_alternative<WaitingAct>(waiting);
  if (knew_before(waiting)) return deliver(waiting);
  if (owes_time(waiting)) write_time();
  if (!building_.batch.empty() || (log_ == Log::kShared && answers)) {
    building_.waiting.push_back(std::move(waiting));
  } else if (in_flight()) {
    in_flight_.waiting.push_back(std::move(waiting));
  } else {
    if (auto* commit = std::get_if<WaitingCommit>(&waiting)) resolve_files(commit->finished);
    deliver(waiting);
  }
}

void Machine::deliver(Waiting& waiting) {
  std::visit(Overloaded{
                 [](WaitingCommit& commit) { commit.reply(std::move(commit.finished)); },
                 [](WaitingLook& look) { look.deliver(); },
                 [](WaitingAct&) {},
             },
             waiting);
}

void Machine::begin_segment() {
  HAPAX_ASSERT(quiescent(), "no fact has a place in the segment yet");
  if (next_slot_.offset == journal::kHeaderBytes) return;
  next_slot_ = {next_slot_.segment + 1, journal::kHeaderBytes};
  building_.slot = next_slot_;
}

// --- out -----------------------------------------------------------------------------------------

journal::Batch& Machine::seal() {
  HAPAX_ASSERT(!in_flight(), "one batch is in flight");
  HAPAX_ASSERT(has_facts(), "a batch has facts");
  building_.batch.set_frees_space(!building_.ordinary);
  building_.batch.set_begins_segment(building_.slot.offset == journal::kHeaderBytes);
  building_.batch.close();
  std::swap(in_flight_.batch, building_.batch);
  in_flight_.undo.swap(building_.undo);
  in_flight_.waiting.swap(building_.waiting);
  std::swap(in_flight_.wakes, building_.wakes);
  in_flight_.slot = building_.slot;
  in_flight_.ordinary = building_.ordinary;
  in_flight_.only_appends = building_.only_appends;
  in_flight_.sealed = true;
  next_slot_ = journal::slot_after(in_flight_.slot, in_flight_.batch.bytes(), segment_bytes_);
  begin_batch();
  return in_flight_.batch;
}

void Machine::retire(const journal::Durable& proof) {
  HAPAX_ASSERT(in_flight(), "a batch was in flight");
  HAPAX_ASSERT(proof.lsn().value + 1 == in_flight_.batch.next().value,
               "the proof covers the batch in flight");
  ++batches_;
  written_bytes_ += in_flight_.batch.bytes();
  // Of what others wrote in this round something may be owed yet.
  const std::size_t owed = std::size_t{2} * in_flight_.batch.count();
  owed_collect_ = owed + (log_ == Log::kShared ? owed_collect_ : 0);
  owed_expire_ = owed + (log_ == Log::kShared ? owed_expire_ : 0);
  check_suspect();
  if (in_flight_.ordinary) writes_refused_ = false;  // Else the reserve may have been used.
  time_refused_ = false;
  in_flight_.undo.forget();
  in_flight_.sealed = false;
  latest_ = in_flight_.batch.log_time();
  HAPAX_ASSERT(answerable_.empty(), "a batch is answered before the next one is retired");
  answerable_.swap(in_flight_.waiting);
  std::swap(durable_wakes_, in_flight_.wakes);
}

void Machine::answer() {
  for (Waiting& one : answerable_) {
    if (auto* commit = std::get_if<WaitingCommit>(&one)) resolve_files(commit->finished);
    deliver(one);
  }
  answerable_.clear();
  if (watches_ != nullptr) watches_->tell(durable_wakes_);
}

bool Machine::may_try_again(const WaitingCommit& commit, const Error& error) const {
  return error.code == Errc::kNoSpace && in_flight_.ordinary && !commit.again &&
         only_frees_space(commit.request.commit);
}

// Who only looked may have seen what is refused now: the retry of an append finds nothing, and is
// the first one. It must not spoil the batch of what frees space, nor overflow it.
void Machine::look_again(Waiting waiting, const Error& error, bool may_write) {
  auto* commit = std::get_if<WaitingCommit>(&waiting);
  if (commit == nullptr) return decide(std::move(waiting));
  refresh_time();
  overflow_ = false;
  core::Turn deciding = turn();
  const core::Turn::Mark mark = deciding.mark();
  commit->wrote = decide_commit(*commit);
  if (overflow_ || (commit->wrote && !may_write)) {
    deciding.roll_back(mark);
    Finished finished;
    finished.answer = error;
    commit->reply(std::move(finished));
    return;
  }
  next_lsn_ = building_.batch.next();
  if (commit->wrote && !frees_space(waiting)) building_.ordinary = true;
  wait_or_deliver(std::move(waiting));
}

// Everything that is not durable is as if it had never been decided; who waited, in their order.
std::vector<Machine::Waiting> Machine::roll_back() {
  building_.undo.roll_back(*state_, 0);
  in_flight_.undo.roll_back(*state_, 0);
  building_.wakes.clear();
  in_flight_.wakes.clear();
  std::vector<Waiting> waiting;
  waiting.swap(in_flight_.waiting);
  for (Waiting& one : building_.waiting) waiting.push_back(std::move(one));
  building_.waiting.clear();
  const Stage& oldest = in_flight_.sealed ? in_flight_ : building_;
  next_lsn_ = oldest.batch.first();
  next_slot_ = oldest.slot;
  in_flight_.sealed = false;
  return waiting;
}

// E2. The order of those who only looked is kept; they may now be answered at once.
void Machine::refused(const Error& error) {
  HAPAX_ASSERT(in_flight(), "a batch was in flight");
  const Time now = building_.batch.log_time();
  std::vector<Waiting> waiting = roll_back();
  if (log_ == Log::kOwn || error.code == Errc::kNoSpace) writes_refused_ = time_refused_ = true;
  begin_batch();
  const bool makes_room = std::any_of(waiting.begin(), waiting.end(), [&](const Waiting& one) {
    const auto* commit = std::get_if<WaitingCommit>(&one);
    return commit != nullptr && commit->wrote && may_try_again(*commit, error);
  });
  for (Waiting& one : waiting) {
    if (std::holds_alternative<WaitingAct>(one)) continue;
    auto* commit = std::get_if<WaitingCommit>(&one);
    if (commit == nullptr || !commit->wrote) {
      look_again(std::move(one), error, !makes_room);
      continue;
    }
    if (base::mutant(base::Mutant::kIdBeforePersist))
      remember_unstored(*state_, commit->request, now);
    if (may_try_again(*commit, error)) {
      commit->again = true;
      decide(std::move(one));
      continue;
    }
    Finished finished;
    finished.answer = error;
    commit->reply(std::move(finished));
  }
}

// E5: what the state needs although everything that others did was followed is damage.
void Machine::check_suspect() {
  const auto suspect = std::exchange(suspect_, std::nullopt);
  if (!suspect || !state_->live_bytes.contains(*suspect)) return;
  const auto opened = files_.open(*suspect);
  if (!opened && opened.error().code == Errc::kNotFound) {
    [[maybe_unused]] const Error noted = note_damage(opened.error());
  }
}

void Machine::proven() {
  HAPAX_ASSERT(!has_facts() && !in_flight(), "whoever wrote waits for what was written");
  check_suspect();
  std::vector<Waiting> waiting;
  waiting.swap(building_.waiting);
  for (Waiting& one : waiting) {
    if (auto* commit = std::get_if<WaitingCommit>(&one)) resolve_files(commit->finished);
    deliver(one);
  }
}

// Acts of the store itself are not worth repeating: they come again when they are due.
void Machine::overtaken(const Follow& follow) {
  std::vector<Waiting> waiting = roll_back();
  const LogEnd end = follow(*state_);
  next_lsn_ = end.next;
  next_slot_ = end.slot;
  written_bytes_ += end.bytes;
  latest_ = end.log_time;
  // E3: whoever only follows clears away as much as who writes.
  owed_collect_ += 2 * end.facts;
  owed_expire_ += 2 * end.facts;
  damage_.reset();  // What an old state needed may have been removed since; else it is met again.
  begin_batch();
  for (Waiting& one : waiting) {
    if (!std::holds_alternative<WaitingAct>(one)) decide(std::move(one));
  }
}

void Machine::fail(Waiting& waiting, const Error& error) {
  if (auto* commit = std::get_if<WaitingCommit>(&waiting)) {
    Finished finished;
    finished.answer = error;
    commit->reply(std::move(finished));
  } else if (auto* look = std::get_if<WaitingLook>(&waiting); look != nullptr && look->fail) {
    look->fail(error);
  }
}

void Machine::give_up(const Error& unknown, const Error& error) {
  const bool sent = in_flight();
  std::vector<Waiting> written;
  written.swap(in_flight_.waiting);
  if (!sent) HAPAX_ASSERT(written.empty(), "who waits for a batch in flight has one");
  for (Waiting& one : written) {
    const auto* commit = std::get_if<WaitingCommit>(&one);
    fail(one, commit != nullptr && commit->wrote ? unknown : error);
  }
  building_.undo.roll_back(*state_, 0);
  std::vector<Waiting> others;
  others.swap(building_.waiting);
  next_lsn_ = building_.batch.first();
  begin_batch();
  for (Waiting& one : others) fail(one, error);
}

core::Leftover Machine::collect(std::size_t work_min) {
  HAPAX_ASSERT(quiescent(), "nothing that could be rolled back is removed");
  return core::collect(*state_, over_until(), std::max(work_min, std::exchange(owed_collect_, 0)));
}

bool Machine::expire(std::size_t work_min) {
  return core::expire(*state_, over_until(), std::max(work_min, std::exchange(owed_expire_, 0)));
}

// --- answers -------------------------------------------------------------------------------------

Finished Machine::finish(const Prepared& request, core::Executed executed, Time now) {
  Finished finished;
  finished.moment = moment();
  if (auto* error = std::get_if<Error>(&executed)) {
    finished.answer = std::move(*error);
    return finished;
  }
  if (const auto* repeat = std::get_if<core::Repeat>(&executed)) {
    finished.answer = [&]() -> Result<Answer> {
      if (repeat->where.length == 0) {
        return Error{Errc::kOutcomeUnknown,
                     "the commit '" + std::string(request.commit.id.value_or("")) +
                         "' stands, but its first answer was lost with a damaged segment that a "
                         "repair gave up. Look up what it did."};
      }
      HAPAX_TRY(const std::string bytes, bytes_at(repeat->where));
      std::string_view rest = bytes;
      HAPAX_TRY(const std::string_view fact, take_frame(rest));
      HAPAX_TRY(const core::Fact decoded, core::decode_fact(fact));
      HAPAX_TRY(Answer first, core::decode_answer(std::get<core::CommitAnswered>(decoded).answer));
      first.repeated = true;
      return first;
    }();
    const bool lost = repeat->where.length == 0;
    if (!finished.answer && !lost) {
      Error error = finished.answer.error();
      finished.answer = note_damage(std::move(error).within("answer in " + place(repeat->where)));
    }
  } else {
    finished.answer = std::get<Answer>(std::move(executed));
  }
  if (finished.answer) plan(request, *finished.answer, finished, now);
  return finished;
}

// Finds out where records and results lie, while nothing can move.
void Machine::plan(const Prepared& request, Answer& answer, Finished& finished, Time now) const {
  const std::size_t count = std::min(answer.verdicts.size(), request.commit.ops.size());
  const bool brief = request.commit.detail == Detail::kBrief;
  for (std::size_t i = 0; i < count; ++i) {
    if (auto* received = std::get_if<Received>(&answer.verdicts[i])) {
      const auto& op = std::get<Receive>(request.commit.ops[i]);
      const core::Stream* stream = state_->find_stream(op.stream);
      const core::Run* run = nullptr;  // Neighbours are mostly in the same one.
      const bool alone = received->deliveries.size() == 1;
      finished.deliveries.reserve(finished.deliveries.size() + received->deliveries.size());
      for (std::size_t d = 0; d < received->deliveries.size(); ++d) {
        const Sequence sequence = received->deliveries[d].record.sequence;
        if (run == nullptr || !run->holds(sequence)) {
          run = stream == nullptr ? nullptr : stream->run_of(sequence);
        }
        // A repeated answer may name a record that was trimmed since, or a stream of which there is
        // another one now.
        if (run == nullptr || run->time > answer.time || !stream->keeps(sequence)) {
          received->deliveries[d].gone = true;
          continue;
        }
        received->left_out =
            brief && alone && record_bytes_max(*run) > limits::kBriefReceiveBytesMax;
        if (received->left_out) continue;
        finished.deliveries.push_back(
            {i, d, {run->at, run->first, sequence, run->time, nullptr}, op.stream});
      }
    } else if (auto* known = std::get_if<DuplicateClaim>(&answer.verdicts[i])) {
      const core::SettledEntry* entry = state_->settled.find(request.hashes[i].key, now);
      if (entry == nullptr || entry->forgotten != 0 || entry->result_until() <= now) continue;
      if (entry->fence() != known->fence) continue;  // Forgotten, and settled anew since.
      known->left_out = brief && entry->where.length > limits::kBriefResultBytesMax;
      if (known->left_out) continue;
      finished.results.push_back({i, entry->where, nullptr});
    }
  }
}

void Machine::resolve_files(Finished& finished) {
  std::uint32_t number = 0;
  std::shared_ptr<const ports::File> file;
  const auto open = [&](std::uint32_t segment) -> bool {
    if (segment == number && file != nullptr) return true;
    auto opened = files_.open(segment);
    if (!opened) {
      // Of a shared log, others may have removed it since this was decided.
      const bool may_go = log_ == Log::kShared && opened.error().code == Errc::kNotFound;
      if (may_go) suspect_ = segment;
      finished.answer = unreadable(may_go ? opened.error() : note_damage(opened.error()));
      return false;
    }
    number = segment;
    file = *std::move(opened);
    return true;
  };
  for (DeliveryFetch& fetch : finished.deliveries) {
    if (!open(fetch.place.run.segment)) return;
    fetch.place.file = file;
  }
  for (ResultFetch& fetch : finished.results) {
    if (!open(fetch.where.segment)) return;
    fetch.file = file;
  }
}

// --- the owner of the state ----------------------------------------------------------------------

core::Turn Machine::turn() {
  return core::Turn(*state_, building_.batch.log_time(), building_.undo, *this);
}

base::Where Machine::write(const core::Fact& fact) {
  const journal::Slot slot = building_.slot;
  if (overflow_ || !building_.batch.has_room(frame_bytes_max(fact))) {
    overflow_ = true;  // Whoever decides takes everything back.
    return {slot.segment, slot.offset, 0};
  }
  const bool appends = std::holds_alternative<core::RecordAppended>(fact);
  const bool notes = std::holds_alternative<core::TimeNoted>(fact);
  if (!appends && !notes) building_.only_appends = false;
  if (watches_ != nullptr && watches_->any()) {
    building_.wakes.note(core::wake_of(*state_, fact));
  }
  const FrameSpan span = write_frame(building_.batch, fact);
  return {slot.segment, slot.offset + span.offset, span.length};
}

Result<std::string> Machine::read_record(const core::Stream& stream, Sequence sequence) {
  // What was decided since lies nowhere, and everything will be taken back.
  if (overflow_) return Error{Errc::kLimitExceeded, "the batch is full"};
  const core::Run* run = stream.run_of(sequence);
  if (run == nullptr) {
    return Error{Errc::kNotFound, base::format("record {} of stream '{}' is no longer kept",
                                               sequence.value, stream.name)};
  }
  auto fact = [&]() -> Result<std::string> {
    HAPAX_TRY(const std::string bytes, bytes_at(run->at));
    HAPAX_TRY(const std::string_view found,
              record_in_run(bytes, sequence.value - run->first.value));
    return std::string(found);
  }();
  if (fact) return fact;
  return note_damage(std::move(fact).error().within(
      base::format("stream '{}', record {} in {}", stream.name, sequence.value, place(run->at))));
}

// E5: whoever drives the machine ends its service.
Error Machine::note_damage(Error error) {
  if (error.code == Errc::kNotFound) error.code = Errc::kCorruption;  // A segment is missing.
  if (error.code == Errc::kCorruption && !damage_) damage_ = error;
  return base::place_failure(std::move(error));
}

core::ContentId Machine::content_id(std::string_view payload) {
  core::ContentId content{digest::sha256(payload), {}};
  content.hash = id_hash(key_, content.id);
  return content;
}

std::size_t Machine::batch_mark() {
  const auto mark = building_.batch.mark();
  return (static_cast<std::size_t>(mark.count) << 32) | mark.end;
}

void Machine::cut_batch(std::size_t mark) {
  building_.batch.cut({static_cast<std::uint32_t>(mark >> 32), mark & 0xffffffff});
}

bool Machine::take_overflow() { return std::exchange(overflow_, false); }

Time Machine::wall(Time /*now*/) { return clock_.wall(); }

// Facts that are not on disk yet are read from their batch.
Result<std::string> Machine::bytes_at(base::Where where) const {
  for (const Stage* stage : {&building_, &in_flight_}) {
    const bool live = stage == &building_ || stage->sealed;
    if (live && where.segment == stage->slot.segment && where.offset >= stage->slot.offset) {
      return std::string(stage->batch.peek(where.offset - stage->slot.offset, where.length));
    }
  }
  HAPAX_TRY(const std::shared_ptr<const ports::File> file, files_.open(where.segment));
  return read_span(*file, where);
}

}  // namespace hapax::engine
