#include "engine/machine_store.h"

#include <condition_variable>
#include <utility>

#include "base/assert.h"
#include "base/hex.h"
#include "base/mutex.h"
#include "base/place_failure.h"
#include "engine/engine.h"
#include "engine/queries.h"

namespace hapax::engine {

namespace {

// Hands one value from the store's thread to the caller's.
template <class Value>
class Handover {
 public:
  void put(Value value) {
    // Notify under the lock: the waiter destroys this as soon as it has the value.
    const base::MutexLock lock(mutex_);
    value_.emplace(std::move(value));
    there_.notify_one();
  }
  Value take() {
    base::MutexLock lock(mutex_);
    lock.wait(there_, [this]() HAPAX_REQUIRES(mutex_) { return value_.has_value(); });
    return *std::move(value_);
  }

 private:
  base::Mutex mutex_;
  std::condition_variable there_;
  std::optional<Value> value_ HAPAX_GUARDED_BY(mutex_);
};

// Between the look and the read the segment may have been emptied and removed, or a log that
// several share may have lost its end and have something else there: then what was wanted lies
// elsewhere, or is gone, and a second look says so. If it says the same each time, it is missing or
// damaged.
template <class Value, class Read>
Result<Value> again_if_moved(const Read& read) {
  constexpr int kTries = 3;
  for (int tries = 1;; ++tries) {
    Result<Value> value = read();
    const bool moved = !value && (value.error().code == Errc::kNotFound ||
                                  value.error().code == Errc::kCorruption);
    if (!moved) return value;
    if (tries == kTries) return Error{Errc::kCorruption, value.error().detail};
  }
}

}  // namespace

MachineStore::MachineStore(const journal::Identity& identity,
                           std::shared_ptr<journal::SegmentFiles> files, TellPeople tell)
    : id_(base::hex({identity.store_id.data(), identity.store_id.size()})),
      key_(key_of(identity)),
      files_(std::move(files)),
      tell_(std::move(tell)) {}

Status MachineStore::check_sound() {
  const base::MutexLock lock(damage_mutex_);
  if (damage_) return *damage_;
  return Ok{};
}

void MachineStore::stop_serving(const Error& error) {
  {
    const base::MutexLock lock(damage_mutex_);
    if (damage_) return;
    damage_ = error;
  }
  tell_(error.text() + " The store serves nothing more. Stop it and run hapax verify.");
}

template <class Value>
Result<Value> MachineStore::serve(Result<Value> value) {
  if (!value && value.error().code == Errc::kCorruption) stop_serving(value.error());
  return value;
}

Result<Answer> MachineStore::finish(Finished finished) {
  if (!finished.answer) return std::move(finished.answer);
  tell_wall_times(*finished.answer, finished.moment);
  auto answer = serve(read_missing(std::move(finished)));
  if (!answer) return unreadable(answer.error());
  return answer;
}

Result<Answer> MachineStore::commit(const Commit& commit) {
  HAPAX_CHECK(check_sound());
  HAPAX_TRY(Prepared request, prepare(commit, key_));
  Handover<Finished> handover;
  hand_over_or_wait(
      CommitTask{std::move(request),
                 [&handover](Finished finished) { handover.put(std::move(finished)); }},
      Lead::kAlways);
  return finish(handover.take());
}

void MachineStore::submit(const Commit& commit, Done done) {
  submit(commit, std::move(done), Lead::kNever);
}

void MachineStore::submit_here(const Commit& commit, Done done) {
  submit(commit, std::move(done), Lead::kIfQuick);
}

void MachineStore::submit(const Commit& commit, Done done, Lead lead) {
  if (auto sound = check_sound(); !sound) {
    done(std::move(sound).error());
    return;
  }
  auto request = prepare(commit, key_);
  if (!request) {
    done(std::move(request).error());
    return;
  }
  Task task = CommitTask{*std::move(request), [this, done = std::move(done)](Finished finished) {
                           done(finish(std::move(finished)));
                         }};
  if (hand_over(task, lead, WhenFull::kRefuse)) return;
  Finished refused;
  refused.answer =
      Error{Errc::kUnavailable, "too much is waiting for the store; nothing happened. Try again."};
  std::get<CommitTask>(task).reply(std::move(refused));
}

void MachineStore::hand_over_or_wait(Task task, Lead lead) {
  const bool taken = hand_over(task, lead, WhenFull::kWait);
  HAPAX_ASSERT(taken, "whoever waits for room gets it");
}

template <class Value>
Result<Value> MachineStore::ask(std::function<Result<Value>(const core::State&, Time)> question,
                                Machine::Sees sees) {
  Handover<Result<Value>> handover;
  hand_over_or_wait(LookTask{[&handover, &question](const core::State& state, Time now) {
                               auto seen = std::make_shared<Result<Value>>(question(state, now));
                               return [&handover, seen] { handover.put(std::move(*seen)); };
                             },
                             [&handover](const Error& error) { handover.put(error); }, sees},
                    Lead::kAlways);
  return handover.take();
}

Result<Records> MachineStore::read(const ReadRange& range) {
  if (range.max == 0)
    return Error{Errc::kInvalidArgument, "a read of 0 records; ask for at least 1"};
  if (range.max > limits::kReadMax) {
    return core::limit_error("records of a read", range.max, limits::kReadMax);
  }
  HAPAX_CHECK(check_sound());
  Result<Records> records = Records{};
  const auto moved = again_if_moved<Ok>([&]() -> Status {
    auto plan =
        ask<ReadPlan>([&](const core::State& state, Time) { return plan_read(state, range); });
    if (!plan) {
      records = std::move(plan).error();
      return Ok{};
    }
    HAPAX_CHECK(open_places(plan->places, *files_));
    HAPAX_TRY(plan->range.records, read_records(plan->places));
    records = std::move(plan->range);
    return Ok{};
  });
  if (moved) return records;
  Error error = base::place_failure(moved.error());
  return serve<Records>(std::move(error).within("stream '" + std::string(range.stream) + "'"));
}

Result<std::optional<IdStatus>> MachineStore::find_id(std::string_view stream, std::string_view id,
                                                      std::optional<std::string_view> group) {
  HAPAX_CHECK(check_sound());
  return ask<std::optional<IdStatus>>(
      [&](const core::State& state, Time now) {
        return look_up_id(state, key_, {stream, id, group}, now);
      },
      Machine::Sees::kEnds);
}

Result<std::optional<ClaimStatus>> MachineStore::find_claim(std::string_view scope,
                                                            std::string_view key) {
  HAPAX_CHECK(check_sound());
  return serve(again_if_moved<std::optional<ClaimStatus>>([&] {
    auto found = ask<ClaimLook>(
        [&](const core::State& state, Time now) {
          return look_up_claim(state, claim_hash(key_, scope, key), now);
        },
        Machine::Sees::kEnds);
    if (!found) return Result<std::optional<ClaimStatus>>(std::move(found).error());
    auto status = complete(*std::move(found), *files_);
    if (status || status.error().code == Errc::kNotFound) return status;
    return Result<std::optional<ClaimStatus>>(base::place_failure(std::move(status).error()));
  }));
}

Result<std::optional<RegisterValue>> MachineStore::find_register(std::string_view name) {
  HAPAX_CHECK(check_sound());
  return ask<std::optional<RegisterValue>>(
      [&](const core::State& state, Time now) {
        auto found = look_up_register(state, register_hash(key_, name), now);
        if (found) found->expires_at = moment().wall_at(found->expires_at);  // W6
        return found;
      },
      Machine::Sees::kEnds);
}

Result<RegisterPage> MachineStore::scan_registers(const RegisterScan& scan) {
  if (scan.max == 0) {
    return Error{Errc::kInvalidArgument, "a scan of 0 registers; ask for at least 1"};
  }
  if (scan.max > limits::kReadMax) {
    return core::limit_error("registers of a scan", scan.max, limits::kReadMax);
  }
  HAPAX_CHECK(check_sound());
  return ask<RegisterPage>(
      [&](const core::State& state, Time now) { return list_registers(state, scan, now); },
      Machine::Sees::kEnds);
}

Result<std::optional<Position>> MachineStore::find_position(std::string_view source) {
  HAPAX_CHECK(check_sound());
  return ask<std::optional<Position>>(
      [&](const core::State& state, Time) { return look_up_position(state, source); });
}

Result<std::optional<ProducerStatus>> MachineStore::find_producer(std::string_view stream,
                                                                  std::string_view producer) {
  HAPAX_CHECK(check_sound());
  return ask<std::optional<ProducerStatus>>(
      [&](const core::State& state, Time now) {
        return look_up_producer(state, stream, producer, now);
      },
      Machine::Sees::kEnds);
}

Result<StreamStats> MachineStore::describe(std::string_view stream) {
  HAPAX_CHECK(check_sound());
  return ask<StreamStats>(
      [&](const core::State& state, Time now) { return describe_stream(state, stream, now); });
}

Result<UnackedPage> MachineStore::scan_unacked(const UnackedScan& scan) {
  if (scan.max == 0) {
    return Error{Errc::kInvalidArgument, "a scan of 0 records; ask for at least 1"};
  }
  if (scan.max > limits::kReadMax) {
    return core::limit_error("records of a scan", scan.max, limits::kReadMax);
  }
  HAPAX_CHECK(check_sound());
  return ask<UnackedPage>(
      [&](const core::State& state, Time) { return find_unacked(state, scan); });
}

Result<std::vector<std::string>> MachineStore::streams() {
  HAPAX_CHECK(check_sound());
  return ask<std::vector<std::string>>(
      [&](const core::State& state, Time) { return list_streams(state); });
}

Result<StreamPage> MachineStore::scan_streams(const StreamScan& scan) {
  if (scan.max == 0) {
    return Error{Errc::kInvalidArgument, "a scan of 0 streams; ask for at least 1"};
  }
  if (scan.max > limits::kReadMax) {
    return core::limit_error("streams of a scan", scan.max, limits::kReadMax);
  }
  HAPAX_CHECK(check_sound());
  return ask<StreamPage>(
      [&](const core::State& state, Time now) { return describe_streams(state, scan, now); });
}

std::uint64_t MachineStore::watch(const Watch& watch, Changed changed) {
  if (const auto* claim = std::get_if<ClaimWatch>(&watch)) {
    return watches_.watch_claim(claim_hash(key_, claim->scope, claim->key), std::move(changed));
  }
  const auto& stream = std::get<StreamWatch>(watch);
  return watches_.watch_stream(stream.stream, stream.consumer, std::move(changed));
}

void MachineStore::unwatch(std::uint64_t number) { watches_.end(number); }

Result<Statistics> MachineStore::statistics() {
  HAPAX_TRY(Statistics stats, ask<Statistics>([&](const core::State&, Time) { return figures(); }));
  HAPAX_CHECK(add_disk_figures(stats));
  stats.damaged = !check_sound().ok();
  return stats;
}

void MachineStore::set_shares(ShareOf share_of) {
  hand_over_or_wait(SharesTask{std::move(share_of)}, Lead::kNever);
}

Result<std::vector<TenantUse>> MachineStore::tenants() {
  return ask<std::vector<TenantUse>>(
      [](const core::State& state, Time) { return state.tenants.list(state); });
}

}  // namespace hapax::engine
