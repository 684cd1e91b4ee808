// An engine on a simulated disk, driven by hand: for tests of this room.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/filled.h"
#include "core/state_codec.h"
#include "engine/engine.h"
#include "engine/queries.h"
#include "engine/snapshot_sections.h"
#include "journal/names.h"
#include "sim/clock.h"
#include "sim/disk.h"
#include "sim/entropy.h"

namespace hapax::engine {

inline EngineOptions tiny() {
  EngineOptions options;
  options.segment_bytes = 4'096;
  options.reserve_step = 1'024;
  options.snapshot_every_bytes = 8'192;
  options.index_shards_log2 = 2;
  return options;
}

// A commit on its way, and what became of it.
struct Call {
  std::vector<Op> ops;  // The request refers to them.
  std::string id;
  std::optional<Finished> finished;

  [[nodiscard]] bool answered() const { return finished.has_value(); }
  [[nodiscard]] const Verdict& verdict() const { return finished->answer->verdicts.front(); }
};

class EngineRig : public testing::Test {
 protected:
  EngineRig() { open(); }
  ~EngineRig() override { engine_.reset(); }

  Result<std::unique_ptr<Engine>> try_open(const EngineOptions& options = tiny()) {
    folder_ = std::make_unique<sim::SimFolder>(disk_);
    return Engine::open(*folder_, clock_, entropy_, options);
  }
  void open() {
    auto opened = try_open();
    ASSERT_TRUE(opened.ok()) << opened.error().text();
    engine_ = *std::move(opened);
  }
  // The process ends between two calls, without a clean mark.
  void kill() {
    disk_.process_kill();
    engine_.reset();
    disk_.restart();
  }

  Machine& machine() { return engine_->machine(); }
  core::State& state() { return machine().state(); }

  Call& submit(std::vector<Op> ops, std::string id = {}, Mode mode = Mode::kAtomic) {
    Call& call = calls_.emplace_back(Call{std::move(ops), std::move(id), {}});
    Commit commit;
    commit.ops = call.ops;
    commit.mode = mode;
    commit.id = base::if_filled(call.id);
    auto request = prepare(commit, engine_->key());
    EXPECT_TRUE(request.ok());
    machine().submit(*std::move(request),
                     [&call](Finished finished) { call.finished = std::move(finished); });
    return call;
  }
  // What the owner's loop does with the batch being built.
  Status write() {
    journal::Batch& batch = machine().seal();
    auto written = engine_->writer().write(batch);
    if (written.ok()) {
      machine().completed(*written);
      return Ok{};
    }
    if (written.error().code == Errc::kNoSpace) machine().refused(written.error());
    return written.error();
  }
  Call& commit(std::vector<Op> ops, std::string id = {}, Mode mode = Mode::kAtomic) {
    Call& call = submit(std::move(ops), std::move(id), mode);
    if (machine().has_facts()) {
      EXPECT_TRUE(write().ok());
    }
    EXPECT_TRUE(call.answered());
    return call;
  }
  // A whole snapshot, and what it found worth moving.
  void snapshot() {
    engine_->begin_snapshot();
    while (engine_->snapshotter().busy()) {
      const Status stepped = engine_->snapshotter().step();
      ASSERT_TRUE(stepped.ok()) << stepped.error().text();
    }
    engine_->carry_out_moves();
    if (machine().has_facts()) {
      EXPECT_TRUE(write().ok());
    }
  }
  std::vector<std::uint64_t> files(journal::FileName::Kind kind) {
    std::vector<std::uint64_t> numbers;
    const std::vector<std::string> names = folder_->list().value();
    for (const std::string& name : names) {
      const journal::FileName parsed = journal::parse_name(name);
      if (parsed.kind == kind) numbers.push_back(parsed.number);
    }
    return numbers;
  }
  // The same snapshot with another content and right checksums.
  template <class Change>
  void rewrite_snapshot(std::uint64_t lsn, std::uint32_t tag, Change change) {
    sim::SimFolder folder(disk_);
    const auto identity = journal::read_identity(folder);
    const auto reader =
        journal::SnapshotReader::open(folder, *identity, journal::SnapshotKind::kSnapshot, lsn);
    ASSERT_TRUE(reader.ok());
    auto writer = journal::SnapshotWriter::create(folder, reader->header());
    for (const journal::SnapshotSection& section : reader->sections()) {
      std::string bytes = reader->read(section).value();
      if (section.tag == tag) change(bytes);
      ASSERT_TRUE(writer->add(section.tag, bytes).ok());
    }
    ASSERT_TRUE(writer->finish().ok());
  }
  std::string canonical(Time at) { return core::canonical(state(), at); }
  std::vector<Record> records(std::string_view stream) {
    ReadPlan plan = plan_read(state(), {.stream = stream, .max = 1'000}).value();
    EXPECT_TRUE(open_places(plan.places, *engine_->files()).ok());
    return read_records(plan.places).value();
  }
  void fill_disk() { disk_.set_faults({.no_space = sim::kAlways}); }
  void free_disk() { disk_.set_faults({}); }

  // Some of everything that lasts.
  void live_a_little(int rounds) {
    commit({CreateStream{"s", {}}, CreateConsumer{"s", "c", {.attempts_max = 2}}});
    for (int i = 0; i < rounds; ++i) {
      texts_.push_back("text " + std::to_string(i));
      const std::string_view text = texts_.back();
      clock_.advance(10);
      commit({Append{.stream = "s",
                     .payload = text,
                     .id = text,
                     .group = base::if_filled(i % 3 == 0 ? "g" : ""),
                     .producer = ProducerMark{"w", Epoch{1},
                                              ProducerSequence{static_cast<std::uint64_t>(i)}}},
              Claim{.scope = "c", .key = text, .owner = "o"}},
             "commit " + std::string(text));
      Call& received = commit({Receive{"s", "c", 1, Duration{1'000}, "o"}});
      const auto& got = std::get<Received>(received.verdict()).deliveries;
      if (got.empty()) continue;
      const Receipt receipt{got[0].record.sequence, got[0].token};
      if (i % 2 == 0) commit({Ack{"s", "c", receipt}});
      if (i % 4 == 1) commit({Nack{"s", "c", receipt, Duration{5}, "no"}});
      const auto* claim = state().open_claims.find(claim_hash(engine_->key(), "c", text));
      if (i % 3 == 0 && claim != nullptr) {
        commit({Settle{
            .scope = "c", .key = text, .fence = (*claim)->fence, .result = {200, "h", text}}});
      }
      commit({Set{.name = "r", .value = text, .mode = SetMode::kLastWriter}});
    }
    commit({Begin{"t"}, Advance{"source", "", "1", Epoch{1}}});
  }

  sim::SimDisk disk_{sim::Random(1)};
  sim::SimClock clock_;
  sim::SimEntropy entropy_{sim::Random(2)};
  std::unique_ptr<sim::SimFolder> folder_;
  std::unique_ptr<Engine> engine_;
  std::deque<Call> calls_;
  std::deque<std::string> texts_;
};

}  // namespace hapax::engine
