#include "sim/world.h"

#include <algorithm>

#include "engine/queries.h"

namespace hapax::sim {

namespace {

constexpr std::size_t kExpireWork = 3;

}  // namespace

RunResult run_seed(const RunOptions& options) { return World(options).run(); }

World::World(const RunOptions& options)
    : options_(options),
      random_(options.seed),
      swarm_(draw_swarm(random_.split("swarm"))),
      scheduler_(random_.split("scheduler")),
      damage_(random_.split("damage")),
      time_(random_.split("time")),
      entropy_(random_.split("entropy")),
      disk_(random_.split("disk")),
      workload_(swarm_, random_.split("workload")) {
  if (options_.line) disk_.watch([this](std::string_view line) { say(line); });
}

RunResult World::run() {
  put_strangers_file();
  if (swarm_.trouble_from_the_start && options_.mode == RunMode::kTrouble) {
    troubled_ = true;
    disk_.set_faults(swarm_.faults);
  }
  start();
  for (int tries = 0; !over() && !workload_.is_set_up(); ++tries) {
    if (engine_ == nullptr) start();
    if (tries > 20) disk_.set_faults({});
    if (!over()) guarded([this] { ignore(commit_now(workload_.set_up()), "it is tried again"); });
  }
  troubled_ = options_.mode == RunMode::kTrouble;
  if (troubled_) disk_.set_faults(swarm_.faults);
  for (std::uint64_t done = 0; done < options_.steps && !over(); ++done) {
    if (engine_ == nullptr) {
      start();
    } else {
      guarded([this] { step(); });
    }
  }
  if (!over()) heal();
  if (!over()) judge();
  count_outcomes();
  result_.virtual_ms = clock_.wall_ms();
  result_.hash = history_.hash() ^ (disk_.trace_hash() * 3);
  return std::move(result_);
}

void World::fail(std::string_view invariant, std::string key, std::string what) {
  if (result_.violation) return;
  say("VIOLATION " + std::string(invariant) + " " + key + ": " + what);
  result_.violation = Violation{std::string(invariant), std::move(key), std::move(what)};
}

void World::say(std::string_view line) const {
  if (options_.line) options_.line(line);
}

// --- the scheduler -------------------------------------------------------------------------------

void World::step() {
  const std::uint64_t draw = scheduler_.below(100);
  if (scheduler_.chance(swarm_.crash_between_steps)) {
    const Rate power = swarm_.faults.power_loss_share;
    die(scheduler_.chance(power) ? Exit::kPowerLoss : Exit::kKill);
  } else if (draw < swarm_.seal_eagerness) {
    drive();
  } else if (draw < swarm_.seal_eagerness + 2) {
    swarm_.has(Trouble::kClockJump) ? jump_clock() : pass_time();
  } else if (draw < swarm_.seal_eagerness + 4) {
    swarm_.has(Trouble::kDiskFull) ? change_space() : pass_time();
  } else if (draw < swarm_.seal_eagerness + 6) {
    read_some();
  } else if (draw < swarm_.seal_eagerness + 10) {
    pass_time();
  } else {
    submit_next();
  }
  if (options_.mode == RunMode::kDamage && engine_ != nullptr && scheduler_.chance(1, 25)) {
    do_damage();
  }
}

void World::submit_next() {
  const std::optional<std::uint32_t> client = workload_.idle_client();
  if (!client) return drive();
  workload_.see_wall(time_from_ms(std::max<std::int64_t>(clock_.wall_ms(), 0)));
  const Workload::Wish wish = workload_.next(*client);
  if (wish.look) return look_for(*client);
  submit(wish.request);
}

const Attempt& World::submit(const SharedSimRequest& request) {
  workload_.sent(*request);
  Attempt& attempt = history_.invoke(request);
  if (options_.line) say(describe(attempt));
  auto prepared = engine::prepare(request->commit(), engine_->key());
  if (!prepared) {
    engine::Finished refused;
    refused.answer = std::move(prepared).error();
    answered(attempt, std::move(refused));
    return attempt;
  }
  machine().submit(*std::move(prepared), [this, &attempt](engine::Finished finished) {
    answered(attempt, std::move(finished));
  });
  return attempt;
}

void World::answered(Attempt& attempt, engine::Finished finished) {
  const core::Moment moment = finished.moment;
  Result<Answer> answer = engine::complete(std::move(finished));
  if (answer && !answer->repeated) {
    check_log_time(*answer);
    check_dated(*attempt.request, *answer, moment);
  }
  attempt.moment = moment;
  history_.answer(attempt, std::move(answer));
  if (options_.line) say(describe(attempt));
  workload_.ended(attempt);
}

void World::look_for(std::uint32_t client) {
  struct Seen {
    TransformLook look;
    std::vector<engine::RecordPlace> places;
  };
  SimRequest busy;
  busy.client = client;
  workload_.sent(busy);
  machine().look([this, client](const core::State& state, Time) -> std::function<void()> {
    auto seen = std::make_shared<Seen>();
    if (auto position = engine::look_up_position(state, kTransformSource)) {
      seen->look.position = position->value;
    }
    const std::uint64_t reached =
        seen->look.position.empty() ? 0 : std::stoull(seen->look.position);
    auto plan = engine::plan_read(state, {"plain", Sequence{reached + 1}, 1, 1});
    if (plan) seen->places = std::move(plan->places);
    return [this, client, seen] {
      auto records = read_places(seen->places);
      if (records && !records->empty()) seen->look.record = std::move(records->front());
      workload_.looked(client, std::move(seen->look));
    };
  });
}

Result<std::vector<Record>> World::read_places(std::vector<engine::RecordPlace>& places) {
  HAPAX_CHECK(engine::open_places(places, *engine_->files()));
  return engine::read_records(places);
}

// E1: whatever a reader is shown stays.
void World::read_some() {
  const std::string& stream = workload_.streams()[scheduler_.below(kStreams)].name;
  machine().look([this, &stream](const core::State& state, Time) -> std::function<void()> {
    const core::Stream* known = state.find_stream(stream);
    const std::uint64_t last = known == nullptr ? 0 : known->last.value;
    const ReadRange range{stream, Sequence{last > 2 ? last - 2 : 1}, 3, 4096};
    auto plan = std::make_shared<Result<engine::ReadPlan>>(engine::plan_read(state, range));
    return [this, &stream, plan] {
      if (!*plan) return;
      auto records = read_places((*plan)->places);
      if (!records) return;
      for (Record& record : *records) {
        if (record.lineage) continue;  // A copy of what was sent only once.
        history_.saw({stream, record.sequence, std::move(record.payload)});
      }
    };
  });
}

// One step of one of the store's own threads.
void World::drive() {
  const std::uint64_t draw = scheduler_.below(20);
  if (draw < 11) {
    sealed_ == nullptr ? seal() : write();
  } else if (draw < 13) {
    mark(journal::MarkKind::kRunning);
  } else if (draw < 16) {
    step_snapshot();
  } else if (draw < 18) {
    tend();
  } else {
    machine().expire(kExpireWork);
  }
}

void World::seal() {
  if (machine().in_flight() || !machine().has_facts()) return;
  sealed_ = &machine().seal();
}

void World::write() {
  journal::Batch& batch = *std::exchange(sealed_, nullptr);
  auto written = engine_->writer().write(batch);
  time_refused_ = !written;
  if (written) {
    machine().completed(*written);
    result_.tally.add("batches");
    // I10: what was just confirmed must survive whatever comes next.
    if (troubled_ && swarm_.has(Trouble::kCrash) && scheduler_.chance(1, 16)) {
      result_.tally.add("power losses right after an answer");
      die(Exit::kPowerLoss);
    }
  } else if (written.error().code == Errc::kNoSpace) {
    result_.tally.add("batches refused");
    machine().refused(written.error());
    if (scheduler_.chance(1, 2)) check_rolled_back();
  } else {
    say(written.error().text());
    result_.tally.add("fatal errors");
    die(Exit::kKill);
  }
}

// E2: what was rolled back left no trace: the next process, which never saw it, finds the same.
void World::check_rolled_back() {
  if (machine().in_flight() || machine().has_facts() || !machine().quiescent()) return;
  mark(journal::MarkKind::kRunning);
  if (engine_ == nullptr) return;
  result_.tally.add("rollbacks checked");
  die(Exit::kKill);
}

void World::mark(journal::MarkKind kind) {
  const Status marked = engine_->writer().write_mark(kind);
  if (marked) marked_time_ = noted_time_;
  if (!marked && marked.error().code != Errc::kNoSpace) {
    result_.tally.add("fatal errors");
    die(Exit::kKill);
  }
}

void World::tend() {
  if (!machine().quiescent()) return;
  machine().collect(scheduler_.chance(1, 2) ? 2 : 1000);
  machine().act(
      [this](core::Turn& turn) {
        sweep_from_ = engine::sweep_retention(turn, sweep_from_, 3);
        return true;
      },
      engine::Machine::Purpose::kFreesSpace);
  note_time();
  engine_->carry_out_moves();
  if (!engine_->snapshot_due() || !machine().quiescent()) return;
  engine_->make_way();
  if (engine_->snapshot_due() && machine().quiescent()) engine_->begin_snapshot();
}

void World::step_snapshot() {
  engine::Snapshotter& snapshotter = engine_->snapshotter();
  if (!snapshotter.busy()) return tend();
  const std::uint64_t finished = snapshotter.finished();
  const Status stepped = snapshotter.step();
  result_.tally.add("snapshots written", snapshotter.finished() - finished);
  if (!stepped && stepped.error().code == Errc::kIo) {
    result_.tally.add("fatal errors");
    die(Exit::kKill);
  }
}

void World::change_space() {
  DiskFaults faults = disk_.faults();
  full_ = !full_;
  faults.space_limit = full_ ? disk_.used() + scheduler_.below(1500) : 0;
  if (full_) result_.tally.add("full disks");
  disk_.set_faults(faults);
}

}  // namespace hapax::sim
