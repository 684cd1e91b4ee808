// After the trouble: everything must come to rest, and then be judged.
#include <algorithm>

#include "base/filled.h"
#include "base/format.h"
#include "core/state_codec.h"
#include "engine/prepare.h"
#include "engine/queries.h"
#include "sim/journal_dump.h"
#include "sim/world.h"

namespace hapax::sim {

namespace {

constexpr int kRoundsMax = 60;
constexpr Duration kLongLease{std::chrono::hours{1}};
constexpr std::int64_t kLongerThanAnyLease = 5'000;

}  // namespace

Result<Answer> World::commit_now(const SharedSimRequest& request) {
  const Attempt& attempt = submit(request);
  for (int tries = 0; attempt.ending == Ending::kPending && engine_ != nullptr; ++tries) {
    if (tries == kRoundsMax) {
      fail("I16", "commit", "it is never answered");
      break;
    }
    if (sealed_ == nullptr) seal();
    if (sealed_ != nullptr) write();
  }
  if (attempt.ending == Ending::kOk) return attempt.answer;
  return attempt.error ? *attempt.error : Error{Errc::kOutcomeUnknown, "the process ended"};
}

void World::settle_down() {
  while (engine_ != nullptr && (machine().has_facts() || machine().in_flight())) {
    if (sealed_ == nullptr) seal();
    if (sealed_ != nullptr) write();
  }
}

void World::retry_unresolved() {
  for (std::uint32_t client = 0; client < workload_.clients(); ++client) {
    const SharedSimRequest request = workload_.take_unresolved(client);
    if (request == nullptr) continue;
    result_.tally.add("retries of unknown outcomes");
    ignore(commit_now(request), "whatever the answer is, the judges look at it");
  }
}

// I16: every record is handed out and acked, or is a dead letter.
void World::drain(const std::string& stream, const std::string& consumer) {
  for (int idle = 0; idle < kRoundsMax && !over();) {
    SharedSimRequest request = workload_.blank(workload_.clients());
    request->ops.emplace_back(Receive{stream, consumer, 50, kLongLease, "healer"});
    auto answer = commit_now(request);
    if (!answer) return fail("I16", stream, "a receive fails: " + answer.error().text());
    const auto* received = std::get_if<Received>(&answer->verdicts.front());
    if (received == nullptr) {
      return fail("I16", stream, "a receive is refused: " + describe(answer->verdicts.front()));
    }
    if (received->deliveries.empty()) {
      auto stats = engine::describe_stream(machine().state(), stream, machine().decided_at());
      for (const ConsumerStats& one : stats->consumers) {
        if (one.consumer != consumer) continue;
        if (one.in_flight == 0 && one.waiting == 0 && one.next > stats->last) return;
      }
      clock_.advance(kLongerThanAnyLease);
      ++idle;
      continue;
    }
    SharedSimRequest acks = workload_.blank(workload_.clients());
    acks->mode = Mode::kEach;
    for (const Delivery& delivery : received->deliveries) {
      acks->ops.emplace_back(Ack{stream, consumer, {delivery.record.sequence, delivery.token}});
    }
    ignore(commit_now(acks), "the judges look at it");
  }
  // A blocked record waits for a person, and its group with it.
  if (!over() && !swarm_.blocks) {
    fail("I16", stream + "/" + consumer, "its records never come to an end");
  }
}

void World::heal() {
  troubled_ = false;
  full_ = false;
  disk_.set_faults({});
  if (engine_ != nullptr && scheduler_.chance(1, 2)) {
    const Rate power = swarm_.faults.power_loss_share;
    die(scheduler_.chance(power) ? Exit::kPowerLoss : Exit::kKill);
  }
  if (engine_ == nullptr) start();
  if (over()) return;
  while (engine_ != nullptr && engine_->snapshotter().busy()) step_snapshot();
  if (engine_ == nullptr) start();
  if (over()) return;
  settle_down();
  retry_unresolved();
  check_claims_move();
  if (damaged_) return;  // What is damaged may refuse for ever.
  for (const std::size_t stream : Workload::consumed()) {
    for (const std::string& consumer : Workload::consumers()) {
      if (!over()) drain(workload_.streams()[stream].name, consumer);
    }
  }
  for (int round = 0; round < 20 && !over(); ++round) step_snapshot();
  settle_down();
}

// I16: nobody waits for a lease that is over.
void World::check_claims_move() {
  clock_.advance(kLongerThanAnyLease);
  if (swarm_.work[static_cast<std::size_t>(WorkKind::kClaim)] == 0) return;
  for (std::uint32_t key = 0; key < swarm_.keys && !over(); ++key) {
    SharedSimRequest request = workload_.blank(workload_.clients());
    const std::string_view name = request->keep(base::format("k{}", key));
    Claim op{"job", name, request->keep(base::format("content-k{}", key)), "healer"};
    op.lease = Duration{1};
    op.retention = Window{std::chrono::seconds{swarm_.window_seconds}};
    op.tombstone = Window{std::chrono::seconds{swarm_.window_seconds + 2}};
    request->ops.emplace_back(op);
    ignore(commit_now(request), "the judges look at it");
  }
}

Contents World::read_all() {
  Contents contents;
  const core::State& state = machine().state();
  contents.now = machine().decided_at();
  for (const std::string& name : engine::list_streams(state)) {
    contents.stats[name] = *engine::describe_stream(state, name, contents.now);
    auto plan = engine::plan_read(state, {name, Sequence{1}, 100'000, std::uint64_t{1} << 40});
    Result<std::vector<Record>> records = read_places(plan->places);
    if (records) {
      plan->range.records = *std::move(records);
      contents.streams[name] = std::move(plan->range);
      continue;
    }
    contents.unreadable.push_back(name);
    result_.tally.add("damage refused");
    if (!damaged_) fail("I7", name, "cannot be read: " + records.error().text());
  }
  for (const char* name : {"versioned", "latest", "lock", "brief", "count"}) {
    const base::Hash128 hash = engine::register_hash(engine_->key(), name);
    auto value = engine::look_up_register(state, hash, contents.now);
    if (value) contents.registers[name] = *std::move(value);
  }
  for (const std::string_view source : {std::string_view("source"), kTransformSource}) {
    auto position = engine::look_up_position(state, source);
    if (position) contents.positions[std::string(source)] = *position;
  }
  contents.find_id = [this, &state, now = contents.now](
                         std::string_view stream, std::string_view id, std::string_view group) {
    auto found =
        engine::look_up_id(state, engine_->key(), {stream, id, base::if_filled(group)}, now);
    return found ? *found : std::nullopt;
  };
  return contents;
}

void World::judge() {
  if (engine_ == nullptr) return;
  settle_down();
  const Contents contents = read_all();
  if (over()) return;
  if (auto found = check_all(history_, contents)) {
    return fail(found->invariant, found->key, found->what);
  }
  close_clean();
  if (over()) return;
  const std::map<std::string, Records, std::less<>> before = contents.streams;
  start();
  if (over()) return;
  const Contents again = read_all();
  if (over()) return;
  for (const auto& [name, records] : before) {
    const auto found = again.streams.find(name);
    const bool same = found != again.streams.end() && found->second.records == records.records;
    if (!same && !damaged_) return fail("I4", name, "reads differently after a clean restart");
  }
  if (damaged_) return;
  const JournalDump dump = dump_journal(disk_);
  result_.tally.add("copies to later segments", dump.moves);
  result_.tally.add("segments removed", dump.newest - dump.segments);
  if (auto found = check_dump(dump, contents)) fail(found->invariant, found->key, found->what);
}

void World::count_outcomes() {
  Tally& tally = result_.tally;
  for (const Effect& effect : flatten(history_)) {
    const auto* redriven = effect.as<Redrive>();
    if (redriven != nullptr && effect.got<Appended>() != nullptr)
      tally.add("dead letters redriven");
    const auto* opened = effect.got<Opened>();
    if (opened != nullptr && opened->former != Epoch{0}) tally.add("producers taken over");
  }
  for (const Attempt& attempt : history_.attempts()) {
    tally.add(attempt.ending == Ending::kOk     ? "answers"
              : attempt.ending == Ending::kFail ? "commits refused"
                                                : "unknown outcomes");
    if (attempt.ending != Ending::kOk) continue;
    if (attempt.answer.repeated) tally.add("commit ids repeated");
    if (!attempt.answer.committed) tally.add("atomic commits not applied");
    for (const Verdict& verdict : attempt.answer.verdicts) {
      tally.add("verdict " + std::string(hapax::word_of(verdict)));
    }
    const auto* end = std::get_if<End>(&attempt.request->ops.front());
    if (end != nullptr && attempt.answer.committed) tally.add("transactions ended");
  }
  for (std::size_t fault = 0; fault < kFaultKinds; ++fault) {
    tally.add("fault " + std::string(word_of(static_cast<InjectedFault>(fault))),
              disk_.stats()[static_cast<InjectedFault>(fault)]);
  }
  tally.add("sectors garbled", disk_.stats().losses.sectors_garbled);
  tally.add("writes torn", disk_.stats().losses.writes_torn);
  tally.add("names lost", disk_.stats().losses.names_lost);
}

}  // namespace hapax::sim
