// A stream of a store in memory, whose rules are those of the real one, behind a connection that
// breaks.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "core/claims.h"
#include "core/consumers.h"
#include "core/registers.h"
#include "core/test_store.h"
#include "delivery/attempt_record.h"
#include "delivery/stream_source.h"
#include "delivery/world_test.h"

namespace hapax::delivery {

// The rules without a disk: every commit is durable at once.
class RuleStore final : public Store {
 public:
  explicit RuleStore(ports::Clock& clock) : clock_(clock) {}

  Result<Answer> commit(const Commit& commit) override {
    const Time now = kStart + Duration{clock_.steady_ms()};
    rules.begin(std::max(now - rules.now, Duration{0}));
    core::Executed executed = rules.commit(commit);
    rules.keep();
    HAPAX_ASSERT(std::holds_alternative<Answer>(executed), "no commit of these tests is refused");
    auto answer = std::get<Answer>(std::move(executed));
    for (std::size_t i = 0; i < answer.verdicts.size(); ++i) {
      if (const auto* appended = std::get_if<Appended>(&answer.verdicts[i])) {
        if (const auto* append = std::get_if<Append>(&commit.ops[i])) {
          times_[{std::string(append->stream), appended->sequence}] = answer.time;
        }
      }
      auto* received = std::get_if<Received>(&answer.verdicts[i]);
      if (received == nullptr) continue;
      const auto& stream = std::get<Receive>(commit.ops[i]).stream;
      for (Delivery& delivery : received->deliveries) {
        delivery.record = record(stream, delivery.record.sequence);
      }
    }
    return answer;
  }
  void submit(const Commit& one, Done done) override { done(commit(one)); }
  Result<Records> read(const ReadRange& range) override {
    const core::Stream* stream = rules.state.find_stream(range.stream);
    if (stream == nullptr) return Error{Errc::kNotFound, std::string(range.stream)};
    Records found{{}, stream->first, stream->last, stream->uid.value};
    for (Sequence at = std::max(range.from, stream->first);
         at <= stream->last && found.records.size() < range.max; at = at.next()) {
      if (stream->keeps(at)) found.records.push_back(record(range.stream, at));
    }
    return found;
  }
  Result<std::optional<RegisterValue>> find_register(std::string_view name) override {
    const auto hash = core::rig::hash_text(name, 5);
    const core::Register* found = core::find_register(rules.state, hash, rules.now);
    if (found == nullptr) return std::optional<RegisterValue>{};
    return std::optional<RegisterValue>{RegisterValue{
        .value = std::string(found->value()), .version = found->version, .at = found->at}};
  }

  Result<std::optional<IdStatus>> find_id(std::string_view, std::string_view,
                                          std::optional<std::string_view>) override {
    return std::optional<IdStatus>{};
  }
  Result<std::optional<ClaimStatus>> find_claim(std::string_view scope,
                                                std::string_view key) override {
    const auto hash = core::rig::hash_text(std::string(scope) + '/' + std::string(key), 4);
    const Time now = std::max(rules.now, kStart + Duration{clock_.steady_ms()});
    return core::claim_status(rules.state, hash, now);
  }
  Result<RegisterPage> scan_registers(const RegisterScan& scan) override {
    RegisterPage page;
    page.next = rules.state.registers.visit_slots(
        scan.cursor, scan.max,
        [&](base::Hash128, const std::shared_ptr<const core::Register>& each) {
          if (each->expires_at > rules.now && each->name().starts_with(scan.prefix)) {
            page.names.emplace_back(each->name());
          }
        });
    return page;
  }
  Result<std::optional<Position>> find_position(std::string_view) override {
    return std::optional<Position>{};
  }
  Result<std::optional<ProducerStatus>> find_producer(std::string_view, std::string_view) override {
    return std::optional<ProducerStatus>{};
  }
  Result<StreamStats> describe(std::string_view name) override {
    const core::Stream* stream = rules.state.find_stream(name);
    if (stream == nullptr) return Error{Errc::kNotFound, std::string(name)};
    StreamStats stats;
    stats.settings = stream->settings;
    stats.first = stream->first;
    stats.last = stream->last;
    for (const auto& [consumer, uid] : stream->consumers) {
      stats.consumers.push_back(core::consumer_stats(*stream, rules.state.consumers.at(uid)));
    }
    return stats;
  }
  Result<std::vector<std::string>> streams() override { return std::vector<std::string>{}; }
  Result<Statistics> statistics() override { return Statistics{}; }

  [[nodiscard]] Record record(std::string_view name, Sequence sequence) {
    const core::Stream& stream = *rules.state.find_stream(name);
    const std::string bytes = rules.turn().read_record(stream, sequence).value();
    const core::Fact fact = core::decode_fact(bytes).value();
    const auto& appended = std::get<core::RecordAppended>(fact);
    Record record;
    record.sequence = sequence;
    record.id = appended.id;
    record.group = appended.group;
    record.payload = appended.payload;
    record.headers = core::decode_headers(appended.headers).value();
    if (const auto at = times_.find({std::string(name), sequence}); at != times_.end()) {
      record.time = at->second;
    }
    record.lineage = appended.lineage;
    return record;
  }

  static constexpr Time kStart = time_from_ms(1'700'000'000'000);
  core::rig::MemoryStore rules;

 private:
  ports::Clock& clock_;
  std::map<std::pair<std::string, Sequence>, Time> times_;  // of records that were appended
};

// The same store as one process sees it.
class WorldStore final : public Store {
 public:
  WorldStore(const WorldTroubles& troubles, RuleStore& inner)
      : troubles_(troubles), inner_(inner) {}

  Result<Answer> commit(const Commit& commit) override {
    if (troubles_.error()) return away();
    auto answer = inner_.commit(commit);
    if (troubles_.answer_lost()) return Error{Errc::kOutcomeUnknown, "the connection is gone"};
    return answer;
  }
  void submit(const Commit& one, Done done) override { done(commit(one)); }
  Result<Records> read(const ReadRange& range) override {
    if (troubles_.error()) return away();
    return inner_.read(range);
  }
  Result<std::optional<RegisterValue>> find_register(std::string_view name) override {
    if (troubles_.error()) return away();
    return inner_.find_register(name);
  }
  Result<std::optional<IdStatus>> find_id(std::string_view, std::string_view,
                                          std::optional<std::string_view>) override {
    return away();
  }
  Result<std::optional<ClaimStatus>> find_claim(std::string_view scope,
                                                std::string_view key) override {
    if (troubles_.error()) return away();
    return inner_.find_claim(scope, key);
  }
  Result<RegisterPage> scan_registers(const RegisterScan&) override { return away(); }
  Result<std::optional<Position>> find_position(std::string_view) override { return away(); }
  Result<std::optional<ProducerStatus>> find_producer(std::string_view, std::string_view) override {
    return away();
  }
  Result<StreamStats> describe(std::string_view name) override {
    if (troubles_.error()) return away();
    return inner_.describe(name);
  }
  Result<std::vector<std::string>> streams() override { return away(); }
  Result<Statistics> statistics() override { return away(); }

 private:
  static Error away() { return {Errc::kUnavailable, "the store is away"}; }

  WorldTroubles troubles_;
  RuleStore& inner_;
};

inline StreamSourceSettings stream_of_world(std::string owner) {
  StreamSourceSettings settings;
  settings.stream = "orders";
  settings.consumer = "erp";
  settings.dead_letters = "erp.dead";
  settings.attempts = "erp.attempts";
  settings.blocked = "erp.blocked";
  settings.owner = std::move(owner);
  settings.give_up_after = std::chrono::days{300};
  settings.attempts_kept = std::chrono::days{400};
  settings.attempt_log = {
      .stream = "erp.attempts", .kept = std::chrono::days{400}, .bytes_max = 1 << 30};
  return settings;
}

class StreamStock final : public Stock {
 public:
  enum class Groups : std::uint8_t { kKeys, kNone };

  StreamStock(const WorldTroubles& troubles, Groups groups, std::optional<AttemptTerms> claims = {},
              std::optional<Duration> hold = {})
      : troubles_(troubles),
        groups_(groups),
        claims_(std::move(claims)),
        hold_(hold),
        store_(troubles.clock) {
    const Op create = CreateStream{"orders", {}};
    ignore(store_.commit({.ops = {&create, 1}}), "it cannot fail");
  }

  void publish(const std::string& id, const std::string& key) override {
    Append append{.stream = "orders", .payload = id, .id = id};
    if (!key.empty() && groups_ == Groups::kKeys) append.group = key;
    const Op op = append;
    const Answer answer = store_.commit({.ops = {&op, 1}}).value();
    sequences_.emplace(id, std::get<Appended>(answer.verdicts.front()).sequence);
  }
  std::unique_ptr<Source> open(const std::string& owner) override {
    StreamSourceSettings settings = stream_of_world(owner);
    settings.claims = claims_;
    settings.hold = hold_;
    const auto dead = std::make_shared<bool>(false);
    dead_[owner] = dead;
    WorldTroubles troubles = troubles_;
    troubles.error = [this, dead] { return *dead || troubles_.error(); };
    troubles.answer_lost = [this, dead] {
      if (troubles_.death && !*dead) *dead = troubles_.death();
      return *dead || troubles_.answer_lost();
    };
    return std::make_unique<Opened>(troubles, *this, std::move(settings));
  }
  bool died(const std::string& owner) override {
    const auto at = dead_.find(owner);
    return at != dead_.end() && *at->second;
  }
  std::set<std::string> blocking() override {
    std::set<std::string> all;
    if (!hold_) return all;
    for (const BlockedRecord& each : blocked()) {
      all.insert(store_.record("orders", each.receipt.sequence).id);
    }
    return all;
  }
  std::set<std::string> dropped() override { return dropped_; }
  void decide(bool in_the_end) override {
    for (const BlockedRecord& each : blocked()) {
      const std::string id = store_.record("orders", each.receipt.sequence).id;
      auto decision = static_cast<BlockDecision>(troubles_.random.below(3));
      if (in_the_end && decision == BlockDecision::kRetry) decision = BlockDecision::kPark;
      const std::string reason = "parked: " + each.reason;
      const bool counts = decide_blocked(store_, terms(), each, decision, reason).value();
      if (counts && decision == BlockDecision::kDrop) dropped_.insert(id);
    }
  }
  bool leased(const std::string& id) override {
    const auto* consumer = find_consumer();
    const auto at = consumer->pending.find(sequences_.at(id));
    const Time now = RuleStore::kStart + Duration{troubles_.clock.steady_ms()};
    const bool held = at != consumer->pending.end() &&
                      at->second.state == core::PendingState::kInFlight && at->second.due > now;
    return held && (!claims_ || claim_of(id) == ClaimState::kProcessing);  // Z15
  }
  std::map<std::string, ClaimState> claims() override {
    std::map<std::string, ClaimState> all;
    for (const auto& [id, sequence] : sequences_) {
      if (const auto state = claim_of(id)) all.emplace(id, *state);
    }
    return all;
  }
  std::map<std::string, std::string> dead() override {
    std::map<std::string, std::string> all;
    const core::Stream* stream = store_.rules.state.find_stream("erp.dead");
    if (stream == nullptr) return all;
    for (Sequence at = stream->first; at <= stream->last; ++at.value) {
      const Record record = store_.record("erp.dead", at);
      all.emplace(record.id, record.lineage->reason);
    }
    return all;
  }
  const std::map<std::string, int>* logged() override {
    const core::Stream* stream = store_.rules.state.find_stream("erp.attempts");
    for (; stream != nullptr && log_next_ <= stream->last; ++log_next_.value) {
      const Record record = store_.record("erp.attempts", log_next_);
      const auto attempts = read_attempts(record.payload, record.time).value();
      for (const LoggedAttempt& each : attempts) ++logged_[each.attempt.key];
      log_length_ += attempts.size();
    }
    return &logged_;
  }
  std::string log_fault() override { return log_fault_; }
  bool all_done() override {
    const auto* consumer = find_consumer();
    return consumer != nullptr && consumer->floor() == stream().last;
  }

 private:
  class Opened final : public Source {
   public:
    Opened(const WorldTroubles& troubles, StreamStock& stock, StreamSourceSettings settings)
        : stock_(stock),
          store_(troubles, stock.store_),
          source_(store_, troubles.clock, std::move(settings),
                  [](const Record& record, std::uint64_t) { return record.id; }) {}
    void note_attempts(std::vector<Attempt> attempts) override {
      noted_ += attempts.size();
      source_.note_attempts(std::move(attempts));
    }
    Result<Hand> take(const TakeCall& call) override {
      const std::uint64_t before = stock_.log_length();
      Result<Hand> hand = source_.take(call);
      check_log(before, hand.ok());
      return hand;
    }
    Status give_back(std::span<const Settlement> settled) override {
      const std::uint64_t before = stock_.log_length();
      Status given = source_.give_back(settled);
      check_log(before, given.ok());
      return given;
    }
    void wait(Duration most) override { source_.wait(most); }
    void nudge() override { source_.nudge(); }

   private:
    // Z21: what an answered commit settled is in the log.
    void check_log(std::uint64_t before, bool answered) {
      const std::uint64_t written = stock_.log_length() - before;
      if (written > noted_ || (answered && written < noted_)) {
        stock_.log_fault_ =
            base::format("{} attempts were noted, and {} were logged", noted_, written);
      }
      // After an error they may come with the next commit.
      noted_ = answered ? 0 : noted_ - std::min(noted_, written);
    }

    StreamStock& stock_;
    WorldStore store_;
    StreamSource source_;
    std::uint64_t noted_ = 0;
  };

  [[nodiscard]] std::optional<ClaimState> claim_of(const std::string& id) {
    const auto found = store_.find_claim("erp.deliveries", id).value();
    return found ? std::optional(found->state) : std::nullopt;
  }
  [[nodiscard]] static BlockTerms terms() { return {"orders", "erp", "erp.blocked"}; }
  [[nodiscard]] std::vector<BlockedRecord> blocked() {
    return list_blocked(store_, terms(), 1'000'000).value();
  }
  [[nodiscard]] core::Stream& stream() { return *store_.rules.state.find_stream("orders"); }
  [[nodiscard]] const core::Consumer* find_consumer() {
    return store_.rules.state.find_consumer(stream(), "erp");
  }

  [[nodiscard]] std::uint64_t log_length() { return logged() == nullptr ? 0 : log_length_; }

  WorldTroubles troubles_;
  const Groups groups_;
  const std::optional<AttemptTerms> claims_;
  const std::optional<Duration> hold_;
  RuleStore store_;
  std::map<std::string, int> logged_{};  // of the log up to log_next_
  std::uint64_t log_length_ = 0;
  Sequence log_next_{1};
  std::string log_fault_{};
  std::map<std::string, std::shared_ptr<bool>> dead_;  // processes
  std::set<std::string> dropped_;
  std::map<std::string, Sequence> sequences_;
};

inline std::unique_ptr<Stock> make_stream_stock(const WorldTroubles& troubles) {
  return std::make_unique<StreamStock>(troubles, StreamStock::Groups::kKeys);
}
inline std::unique_ptr<Stock> make_stream_stock_without_groups(const WorldTroubles& troubles) {
  return std::make_unique<StreamStock>(troubles, StreamStock::Groups::kNone);
}
inline MakeStock make_blocking_stock(std::optional<Duration> hold,
                                     std::optional<AttemptTerms> claims = {}) {
  return [hold, claims = std::move(claims)](const WorldTroubles& troubles) {
    return std::make_unique<StreamStock>(troubles, StreamStock::Groups::kKeys, claims, hold);
  };
}
inline AttemptTerms attempts_of_world(AttemptTerms::InDoubt in_doubt) {
  return {.scope = "erp.deliveries", .in_doubt = in_doubt, .kept = Window{limits::kWindowMax}};
}
inline std::unique_ptr<Stock> make_claiming_stock(const WorldTroubles& troubles,
                                                  AttemptTerms terms) {
  return std::make_unique<StreamStock>(troubles, StreamStock::Groups::kKeys, std::move(terms));
}

}  // namespace hapax::delivery
