// Moves records from a source to a sink, round by round, on the caller's thread. Knows no database
// and no network; time comes from the clock it is given.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <hapax/result.h>
#include <hapax/time.h>

#include "ports/clock.h"
#include "relay/sink.h"
#include "relay/source.h"

namespace hapax::relay {

struct RelaySettings {
  Duration lease{15'000};
  Duration margin{2'000};     // so long before the end of a lease nothing is sent any more
  Duration lease_again{500};  // after lanes were leased, if one of them was lost
  std::uint32_t batch = 500;
  std::uint32_t attempts_max = 10;
  Duration retry_first{1'000};        // doubled with each attempt of a record …
  Duration retry_max{300'000};        // … up to this
  Duration pause_first{250};          // doubled while the sink stays unavailable …
  Duration pause_max{30'000};         // … up to this,
  Duration failing_pause_max{2'000};  // or this, if it answers that it fails, whatever the record
  Duration look_every{500};           // while one record alone fails, for records of other keys
  std::uint32_t lone_failures_max =
      100;  // of a record with none to compare; then they are refusals
};

struct RelayCounts {
  std::uint64_t accepted = 0;
  std::uint64_t retried = 0;  // refusals that get another attempt
  std::uint64_t dead = 0;
  std::uint64_t pauses = 0;
  std::uint64_t lanes_lost = 0;
};

struct Round {
  std::uint64_t taken = 0;  // records
  bool paused = false;      // the sink is unavailable
  Duration idle_for{0};     // nothing to do by itself until then
  std::string reason{};     // of the pause
};

class Relay {
 public:
  using Log = std::function<void(std::string_view)>;

  Relay(Source& source, Sink& sink, ports::Clock& clock, const RelaySettings& settings,
        Log log = {})
      : source_(source), sink_(sink), clock_(clock), settings_(settings), log_(std::move(log)) {}

  // Leases what is due, settles and takes in one round trip, and sends what was taken. After an
  // error the engine holds nothing, and the next round starts over.
  [[nodiscard]] Result<Round> round();
  // Settles what was sent and gives the lanes back.
  [[nodiscard]] Status stop();

  [[nodiscard]] const RelayCounts& counts() const { return counts_; }
  [[nodiscard]] std::size_t lanes() const { return lanes_.size(); }
  [[nodiscard]] std::uint32_t share() const { return share_; }

 private:
  struct Lane {
    Lease lease;
    std::vector<SendOutcome> outcomes;  // of the batch that was sent and is not settled yet
    std::vector<std::int64_t> flawed;   // places of the latest batch that were told as dead letters
  };
  // A batch being sent.
  struct Sending {
    Lease lease;
    OutgoingBatch batch;
    std::vector<SendOutcome> outcomes;
  };
  // One record of a batch being sent.
  struct Place {
    Sending* sending;
    std::size_t at;
    [[nodiscard]] const Outgoing& record() const { return sending->batch.records[at]; }
    [[nodiscard]] SendOutcome& outcome() const { return sending->outcomes[at]; }
  };

  [[nodiscard]] Result<Round> run_round();
  [[nodiscard]] Status keep_leases();
  [[nodiscard]] Status take(std::vector<Sending>& sendings);
  [[nodiscard]] Status give_back_surplus();
  [[nodiscard]] Status send_all(std::vector<Sending>& sendings);
  // Whether there may be more to send in this round.
  [[nodiscard]] Result<bool> send(const std::vector<Place>& chunk);
  // The records that may be sent next and together, of all lanes: a sink that syncs a disk does so
  // once for all of them.
  std::vector<Place> sendable(std::vector<Sending>& sendings);
  void add_sendable(Sending& sending, std::vector<Place>& chunk) const;
  SinkDelivery deliver(const std::vector<Place>& chunk);
  void apply(const std::vector<Place>& chunk, const SinkDelivery& delivery);
  void refuse(const Place& place, std::string_view reason);
  void bury(const Place& place, std::string_view reason);
  static void set_dead(const Place& place, std::string_view reason);
  void bury_flawed(Sending& sending);
  // One of each key but that of the one that failed, as far as their lanes are held, those first
  // that nothing is known against.
  [[nodiscard]] std::vector<Place> others_than(const std::vector<Place>& chunk, std::size_t failed);
  // Whether the sink takes one of these, right after it did not take another.
  bool takes_one_of(const std::vector<Place>& others, SinkDelivery::Ending ending);
  // Whether others passed since this record failed before, or it failed alone for too long.
  bool is_to_blame(const Outgoing& record, bool alone);
  void pause(const SinkDelivery& delivery, const Outgoing& record, bool alone);
  void end_pause();
  [[nodiscard]] bool paused() const { return clock_.steady_ms() < paused_until_ms_; }
  // Whether this record waits while others may be sent.
  [[nodiscard]] bool is_paused(const Outgoing& record) const;
  [[nodiscard]] bool may_send() const;
  [[nodiscard]] Lane* find(std::uint32_t lane);
  [[nodiscard]] bool holds(const Lease& lease);
  void lose(std::uint32_t lane);
  void forget();
  [[nodiscard]] Duration retry_after(std::uint32_t attempt) const;
  void say(std::string_view text) const {
    if (log_) log_(text);
  }

  Source& source_;
  Sink& sink_;
  ports::Clock& clock_;
  const RelaySettings settings_;
  const Log log_;

  std::vector<Lane> lanes_;
  std::uint32_t share_ = 0;
  std::int64_t leases_end_ms_ = 0;  // steady time; no lane is held from then on
  std::int64_t leased_at_ms_ = 0;
  std::int64_t renew_at_ms_ = 0;
  std::int64_t paused_until_ms_ = 0;
  Duration pause_{0};  // the latest; 0 = the sink is available
  std::string pause_reason_;
  std::string lone_;             // whose key alone pauses; empty = all do
  std::int64_t look_at_ms_ = 0;  // then records of other keys are looked for
  std::uint64_t signs_ = 0;      // that the sink takes or refuses records
  struct Suspect {
    std::string id{};
    std::uint64_t signs = 0;  // when it failed
    std::uint32_t lone_failures = 0;
  };
  Suspect suspect_;        // the latest that failed
  bool more_ = false;      // to take: as the source said, or of a lane that was leased since
  bool cut_off_ = false;   // in this round the leases ended before an answer came
  std::size_t first_ = 0;  // which lane begins: no lane is always last
  RelayCounts counts_;
};

}  // namespace hapax::relay
