// Delivers records from a source to endpoints: order per key, attempts, pauses, fairness between
// endpoints. It has no thread, no clock and no randomness of its own. Its caller calls step() again
// and again, and waits in between for as long as step() says or until something arrives.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <hapax/result.h>
#include <hapax/time.h>

#include "delivery/completions.h"
#include "delivery/endpoint.h"
#include "delivery/source.h"
#include "ports/clock.h"

namespace hapax::delivery {

struct EngineSettings {
  Duration lease{15'000};
  Duration margin{2'000};        // so long before the end of the lease nothing begins any more
  std::uint32_t window = 8'000;  // records held at most
  // Z2: an attempt is noted durably by the source before its first byte leaves.
  bool announces = false;
  bool tells_attempts = false;  // the source keeps a log of them
  bool blocks = false;  // a record that is given up may block its key, and is no dead letter then
};

struct EngineCounts {
  std::uint64_t taken = 0;
  std::uint64_t attempts = 0;
  std::uint64_t delivered = 0;
  std::uint64_t retried = 0;
  std::uint64_t dead = 0;
  std::uint64_t unknown = 0;
  std::uint64_t deferred = 0;
  std::uint64_t lost = 0;  // held, and given to somebody else meanwhile
  std::uint64_t pauses = 0;
  std::uint64_t gone = 0;  // endpoints
};

struct Step {
  std::uint64_t taken = 0;    // records
  std::size_t under_way = 0;  // starts
  Duration idle_for{0};       // nothing to do by itself until then
  bool paused = false;        // an endpoint for which something waits takes nothing
};

class Engine {
 public:
  using Log = std::function<void(std::string_view)>;

  // `arrived` is called on the thread of a sink whenever a result waits for step().
  Engine(Source& source, ports::Clock& clock, const EngineSettings& settings, Log log = {},
         std::function<void()> arrived = {});
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Their numbers count from 0. REQUIRES: before the first step().
  std::uint32_t add_endpoint(Sink& sink, const EndpointPolicy& policy);

  // After an error nothing is held, and the next step starts over.
  [[nodiscard]] Result<Step> step();
  // From now on nothing begins; what is under way is waited for by step(). From any thread.
  void wind_down();
  // While it is paused nothing is taken and nothing begins. What waits is given back with the next
  // step; what is under way is waited for as ever.
  void set_paused(bool paused) { paused_ = paused; }
  // Settles what is known and gives the rest back.
  [[nodiscard]] Status stop();

  [[nodiscard]] const EngineCounts& counts() const { return counts_; }
  [[nodiscard]] std::size_t held() const { return entries_.size(); }
  [[nodiscard]] std::size_t under_way() const { return starts_.size(); }

 private:
  struct Entry {
    Handout handout;
    std::string key;             // of its queue: a record without a key has one of its own
    std::uint64_t ordinal = 0;   // in which order the source gave it
    std::uint32_t failures = 0;  // of this hand-out, that cost no attempt
    bool cut_off = false;        // its answer was not waited for, because the lease ended
    bool lost = false;           // somebody else has it; only its answer is awaited
  };
  struct Start {
    std::uint32_t endpoint = 0;
    std::vector<KeyQueues::Run> runs;
    std::vector<std::vector<std::size_t>> places;  // of each number of each run, in the call
    std::size_t count = 0;
    std::int64_t began_ms = 0;
  };
  // What a result means for the records behind it.
  enum class Then : std::uint8_t { kNext, kAgain, kKeyWaits };

  // --- take
  [[nodiscard]] Status take();
  [[nodiscard]] bool take_is_due() const;
  [[nodiscard]] bool rests(std::int64_t now) const;
  void give_back_waiting();
  [[nodiscard]] std::uint32_t room() const;
  [[nodiscard]] Duration renewal_after(Duration left) const;
  [[nodiscard]] std::size_t held_max_of(const Endpoint& endpoint) const;
  void admit(Handout handout);
  void lose(HandoutNumber number);
  void forget();

  // --- start
  void activate(std::uint32_t index);
  void choose();
  [[nodiscard]] bool may_begin() const;
  [[nodiscard]] Start choose_from(Endpoint& endpoint, std::uint32_t index);
  void begin_chosen();
  void begin(Start start);
  void drop_lost_of_chosen();
  void settle_unanswered(const Start& start);
  [[nodiscard]] std::vector<Beginning> beginning() const;

  // --- finish
  void collect();
  void finish(Start start, std::vector<SendResult>& results);
  void heed(Endpoint& endpoint, const Start& start, std::size_t run,
            const std::vector<SendResult>& results);
  void finish_run(Endpoint& endpoint, const Start& start, std::size_t run,
                  std::vector<SendResult>& results, std::int64_t rest_ms);
  [[nodiscard]] Then judge(Endpoint& endpoint, Entry& entry, SendResult& result);
  [[nodiscard]] Then judge_unknown(Endpoint& endpoint, Entry& entry, SendResult& result);
  [[nodiscard]] Then give_back_unsent(const Entry& entry, std::int64_t rest_ms);
  void settle_late(const Entry& entry, SendResult& result);
  [[nodiscard]] Then fail(Endpoint& endpoint, Entry& entry, SendResult& result);
  [[nodiscard]] Then refuse(Endpoint& endpoint, Entry& entry, const SendResult& result);
  [[nodiscard]] bool costs_an_attempt(const Endpoint& endpoint, const Suspect& suspect) const;
  [[nodiscard]] std::int64_t due_again_ms(Endpoint& endpoint, const Entry& entry,
                                          const SendResult& result) const;
  void disable(Endpoint& endpoint, const SendResult& result);
  void turn_away(const Endpoint& endpoint, const Entry& entry, Settlement::Kind if_alone);
  void turn_away_waiting(Endpoint& endpoint);
  void tell_breaker(Endpoint& endpoint, const Entry& entry, const SendResult& result);
  void hold_back(const std::vector<HandoutNumber>& numbers);
  void settle(const Entry& entry, Settlement::Kind kind, Duration after, std::string reason,
              bool may_have_arrived = false);
  void erase(HandoutNumber number);

  // --- attempts, for the log of the source
  void note_attempts(const Endpoint& endpoint, const Start& start, std::size_t run,
                     std::vector<SendResult>& results);
  void note_unanswered(const Endpoint& endpoint, const Start& start, const Entry& entry);
  [[nodiscard]] Attempt attempt_of(const Endpoint& endpoint, const Start& start,
                                   const Entry& entry) const;
  void tell_attempts();

  [[nodiscard]] Duration idle_for();
  void say(std::string_view text) const {
    if (log_) log_(text);
  }

  Source& source_;
  ports::Clock& clock_;
  const EngineSettings settings_;
  const Log log_;
  const std::shared_ptr<Completions> completions_;

  std::vector<std::unique_ptr<Endpoint>> endpoints_;
  std::uint64_t held_max_ = 0;                        // of all endpoints together
  std::unordered_map<HandoutNumber, Entry> entries_;  // records under way lie still
  std::unordered_map<std::uint64_t, Start> starts_;   // under way
  std::vector<Start> chosen_;                         // to begin once they are noted (Z2)
  std::vector<Settlement> settlements_;               // not told to the source yet
  std::vector<Attempt> attempts_;                     // likewise
  std::uint64_t start_count_ = 0;
  std::uint64_t ordinal_ = 0;
  std::vector<std::uint32_t> active_;  // endpoints for which something waits, and some others
  std::size_t first_ = 0;              // which of them begins: none is always last

  std::int64_t lease_end_ms_ = 0;
  std::int64_t renew_at_ms_ = 0;
  std::int64_t rest_until_ms_ = 0;  // while no endpoint needs more, nothing is taken before
  std::int64_t next_due_ms_ = 0;    // of the source
  std::int64_t look_at_ms_ = 0;     // not before, while the only endpoint is in doubt
  bool more_ = false;
  bool paused_ = false;
  std::atomic<bool> winding_down_ = false;
  EngineCounts counts_;
};

}  // namespace hapax::delivery
