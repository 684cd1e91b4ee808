// What `bench delivery` runs: a store on disk, streams that are filled or fed, and workflows over
// it as `hapax serve` runs them.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include <hapax/hapax.h>

#include "access/tenant_store.h"
#include "clients.h"
#include "delivery/workflow.h"
#include "folder.h"
#include "host/clock.h"
#include "host/entropy.h"
#include "measured.h"
#include "workflows/host.h"

namespace hapax::bench {

// A store that remembers when which record of some streams was acked durably, by its sequence.
class TimedStore final : public Store {
 public:
  explicit TimedStore(Store& store) : store_(store) {}

  // REQUIRES: before the first record is acked; at most so many are.
  void remember(const std::string& stream, std::size_t records) {
    acked_us_[stream].assign(records + 1, 0);
  }
  [[nodiscard]] std::int64_t acked_us(const std::string& stream, std::size_t sequence) const {
    return acked_us_.at(stream).at(sequence);
  }
  // Of the records that it remembers.
  [[nodiscard]] std::uint64_t acked() const { return acked_; }

  [[nodiscard]] std::string id() override { return store_.id(); }
  [[nodiscard]] Result<Answer> commit(const Commit& commit) override {
    Result<Answer> answer = store_.commit(commit);
    if (answer && !acked_us_.empty()) note(commit);
    return answer;
  }
  void submit(const Commit& commit, Done done) override { store_.submit(commit, std::move(done)); }
  [[nodiscard]] Result<Records> read(const ReadRange& range) override { return store_.read(range); }
  [[nodiscard]] Result<std::optional<IdStatus>> find_id(
      std::string_view stream, std::string_view id,
      std::optional<std::string_view> group) override {
    return store_.find_id(stream, id, group);
  }
  [[nodiscard]] Result<std::optional<ClaimStatus>> find_claim(std::string_view scope,
                                                              std::string_view key) override {
    return store_.find_claim(scope, key);
  }
  [[nodiscard]] Result<std::optional<RegisterValue>> find_register(std::string_view name) override {
    return store_.find_register(name);
  }
  [[nodiscard]] Result<RegisterPage> scan_registers(const RegisterScan& scan) override {
    return store_.scan_registers(scan);
  }
  [[nodiscard]] Result<std::optional<Position>> find_position(std::string_view source) override {
    return store_.find_position(source);
  }
  [[nodiscard]] Result<std::optional<ProducerStatus>> find_producer(
      std::string_view stream, std::string_view producer) override {
    return store_.find_producer(stream, producer);
  }
  [[nodiscard]] Result<StreamStats> describe(std::string_view stream) override {
    return store_.describe(stream);
  }
  [[nodiscard]] Result<std::vector<std::string>> streams() override { return store_.streams(); }
  [[nodiscard]] Result<Statistics> statistics() override { return store_.statistics(); }
  [[nodiscard]] std::uint64_t watch(const Watch& watch, Changed changed) override {
    return store_.watch(watch, std::move(changed));
  }
  void unwatch(std::uint64_t number) override { store_.unwatch(number); }

 private:
  void note(const Commit& commit) {
    const std::int64_t now = now_us();
    for (const Op& op : commit.ops) {
      const auto* ack = std::get_if<Ack>(&op);
      if (ack == nullptr) continue;
      const auto at = acked_us_.find(std::string(ack->stream));
      if (at == acked_us_.end()) continue;
      at->second.at(ack->receipt.sequence.value) = now;
      ++acked_;
    }
  }

  Store& store_;
  std::unordered_map<std::string, std::vector<std::int64_t>> acked_us_;
  std::atomic<std::uint64_t> acked_ = 0;
};

// Records of a stream, numbered from 0: their sequences count from 1. Each has an id of its own, a
// type, and one of 10,000 keys.
struct RecordMaker {
  static constexpr std::size_t kPayloadBytes = 300;
  static constexpr std::uint64_t kKeys = 10'000;

  std::string payload = R"({"id":"o-1234567","amount":129.95,"text":")";
  Header type{"event_type", "order.paid"};
  bool keyed = true;

  RecordMaker() { payload += std::string(kPayloadBytes - payload.size() - 2, 'x') + "\"}"; }

  // One commit. The records of a call go to the streams by turns.
  void append(Store& store, const std::vector<std::string>& streams, std::uint64_t from,
              std::uint64_t count) const {
    std::vector<std::string> texts;
    texts.reserve(count * 2);
    std::vector<Op> ops;
    for (std::uint64_t i = from; i < from + count; ++i) {
      Append one{.stream = streams[i % streams.size()], .payload = payload};
      one.id = texts.emplace_back(id_of(i));
      if (keyed) one.group = texts.emplace_back("k" + std::to_string(i % kKeys));
      one.headers = {&type, 1};
      ops.push_back(one);
    }
    const Answer answer = must(store.commit({.ops = ops}));
    if (answer.verdicts.size() != count || !std::get_if<Appended>(&answer.verdicts.back())) {
      fail("the store did not take the records");
    }
  }
};

class DeliveryRig {
 public:
  // Empty streams.
  explicit DeliveryRig(std::vector<std::string> streams) : streams_(std::move(streams)) {
    std::vector<Op> ops;
    for (const std::string& stream : streams_) ops.push_back(CreateStream{stream, {}});
    must(store_->commit({.ops = ops}));
  }
  ~DeliveryRig() { stop(Duration{0}); }
  DeliveryRig(const DeliveryRig&) = delete;
  DeliveryRig& operator=(const DeliveryRig&) = delete;

  void fill(std::uint64_t records) {
    for (std::uint64_t i = 0; i < records; i += 1'000) {
      maker.append(*store_, streams_, i, std::min<std::uint64_t>(1'000, records - i));
    }
  }
  // One commit, a record for each type.
  void append_typed(const std::string& stream, const std::vector<std::string>& types) {
    if (types.empty()) return;
    std::vector<Header> headers;
    std::vector<std::string> ids;
    std::vector<Op> ops;
    headers.reserve(types.size());
    ids.reserve(types.size());
    for (const std::string& type : types) {
      headers.push_back({"event_type", type});
      ids.push_back(id_of(typed_++));
      Append one{.stream = stream, .payload = maker.payload};
      one.id = ids.back();
      one.headers = {&headers.back(), 1};
      ops.push_back(one);
    }
    must(store_->commit({.ops = ops}));
  }
  void start(const std::vector<delivery::Workflow>& workflows) {
    const auto log = [this](const std::string& workflow, std::string_view line) {
      const std::scoped_lock lock(mutex_);
      said_ = workflow + ": " + std::string(line);
    };
    const auto store_of = [this](std::string_view) -> Store& { return as_tenant_; };
    workflows_ = must(workflows::Host::make(workflows, {store_of, clock_, entropy_, log}));
    if (workflows_->size() != workflows.size()) fail("a workflow does not run");
    workflows_->start();
  }
  // Returns when the workflows' consumers of the stream, and of what each made of it for itself,
  // have acked everything.
  void await_drained(const std::string& stream, const delivery::Workflow& workflow) {
    const auto until = Clock::now() + std::chrono::minutes{2};
    while (!drained(stream, true) || !drained(workflow.id.text() + ".outbox", false)) {
      if (Clock::now() > until) fail("not everything was delivered in two minutes; " + said());
      pause_ms(2);
    }
    const auto dead = store_->describe(workflow.id.text() + ".dead");
    if (dead && dead->last.value != 0) fail("there are dead letters; " + said());
  }
  void stop(Duration patience) {
    if (!workflows_) return;
    workflows_->wind_down(patience);
    workflows_->wait();
    workflows_.reset();
  }

  [[nodiscard]] const workflows::FiguresBoard& figures() const { return workflows_->figures(); }
  [[nodiscard]] Store& store() { return *store_; }
  [[nodiscard]] TimedStore& timed() { return timed_; }
  [[nodiscard]] const std::vector<std::string>& streams() const { return streams_; }

  RecordMaker maker;

 private:
  static EmbeddedOptions quietly() {
    EmbeddedOptions options;
    options.log = [](const std::string&) {};
    return options;
  }
  [[nodiscard]] bool drained(const std::string& stream, bool must_be_there) {
    const auto stats = store_->describe(stream);
    if (!stats) return !must_be_there;
    return !stats->consumers.empty() &&
           std::all_of(stats->consumers.begin(), stats->consumers.end(),
                       [&](const ConsumerStats& one) { return one.floor == stats->last; });
  }
  [[nodiscard]] std::string said() {
    const std::scoped_lock lock(mutex_);
    return "the last that a workflow said: " + said_;
  }

  const std::vector<std::string> streams_;
  const Folder folder_;
  const std::unique_ptr<Store> store_ = must(open_embedded(folder_.path("data"), quietly()));
  TimedStore timed_{*store_};
  access::TenantStore as_tenant_{timed_, ""};
  host::HostClock clock_;
  host::HostEntropy entropy_;
  std::mutex mutex_;
  std::string said_ = "nothing";
  std::uint64_t typed_ = 0;
  std::unique_ptr<workflows::Host> workflows_;  // ends before all that it uses
};

// Appends to the streams of a rig, by turns, and knows when each record was durable.
class Feed {
 public:
  Feed(DeliveryRig& rig, std::uint64_t records)
      : rig_(rig), durable_us_(records - records % rig.streams().size()) {
    for (const std::string& stream : rig_.streams()) {
      rig_.timed().remember(stream, durable_us_.size() / rig_.streams().size());
    }
  }

  // Each record when it is due, or with those that are due two milliseconds later.
  void run_at(double per_second) {
    const auto from = Clock::now();
    while (done_ < durable_us_.size()) {
      const std::chrono::microseconds due(
          static_cast<std::int64_t>(1e6 * static_cast<double>(done_) / per_second));
      std::this_thread::sleep_until(std::max(from + due, last_ + kTick));
      const std::chrono::duration<double> gone = Clock::now() - from;
      append(static_cast<std::uint64_t>(gone.count() * per_second) + 1 - done_);
    }
  }
  // As fast as they are acked, some ahead of them.
  void run_ahead(std::uint64_t ahead) {
    while (done_ < durable_us_.size()) {
      std::this_thread::sleep_until(last_ + kTick);
      append(rig_.timed().acked() + ahead - done_);
    }
  }

  // Of the records of some streams, after the first half second. REQUIRES: all of those are acked,
  // and nothing is acked any more.
  [[nodiscard]] std::vector<std::int64_t> took_us(const std::vector<std::string>& streams) const {
    std::vector<std::int64_t> took;
    const std::size_t turns = rig_.streams().size();
    for (std::size_t i = 0; i < durable_us_.size(); ++i) {
      const std::string& stream = rig_.streams()[i % turns];
      if (std::find(streams.begin(), streams.end(), stream) == streams.end()) continue;
      if (durable_us_[i] < durable_us_.front() + 500'000) continue;
      const std::int64_t acked = rig_.timed().acked_us(stream, i / turns + 1);
      if (acked == 0) fail("a record was not acked");
      took.push_back(std::max<std::int64_t>(acked - durable_us_[i], 0));
    }
    return took;
  }

 private:
  // More often it would be the feed that is measured: a commit for each few records.
  static constexpr std::chrono::milliseconds kTick{2};

  void append(std::uint64_t most) {
    const std::uint64_t left = durable_us_.size() - done_;
    const std::uint64_t count = std::min<std::uint64_t>({most, left, 1'000});
    last_ = Clock::now();
    if (count == 0) return;
    rig_.maker.append(rig_.store(), rig_.streams(), done_, count);
    const std::int64_t now = now_us();
    for (const std::uint64_t end = done_ + count; done_ < end; ++done_) durable_us_[done_] = now;
  }

  DeliveryRig& rig_;
  std::vector<std::int64_t> durable_us_;
  std::uint64_t done_ = 0;
  Clock::time_point last_{};
};

}  // namespace hapax::bench
