// The outbox of a PostgreSQL database as a source of relays (migrations/postgres/0002_relay.sql).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/entropy.h"
#include "postgres/connection.h"
#include "postgres/lane_progress.h"
#include "postgres/outbox_session.h"
#include "postgres/outbox_sleep.h"
#include "relay/source.h"

namespace hapax::postgres {

struct OutboxSourceOptions {
  std::string uri;
  std::string schema = "hapax";
  std::string owner;   // unique among all relays of this outbox
  bool listen = true;  // be woken by NOTIFY, if it gets through
  // How long the server may be silent, after which the connection is opened again.
  Duration silence_max = Duration::max();
  // So long what was sent is kept, if that is shorter than what the outbox says. None: as that
  // says.
  std::optional<Duration> kept{};
  Notice notice{};  // is told the warnings of its server
};

class OutboxSource final : public relay::Source {
 public:
  // Checks the version of the tables, and whether notifications get through.
  [[nodiscard]] static Result<std::unique_ptr<OutboxSource>> open(OutboxSourceOptions options);

  [[nodiscard]] Result<relay::Leases> lease(std::span<const relay::Lease> kept,
                                            Duration span) override;
  [[nodiscard]] Result<relay::TakenBatches> next(std::span<const relay::LaneTurn> turns) override;
  [[nodiscard]] Status release(std::span<const relay::Lease> leases) override;
  [[nodiscard]] Result<bool> clean() override;  // one partition, some of what is over
  [[nodiscard]] Result<relay::OutboxReport> report() override;
  [[nodiscard]] Result<std::vector<relay::TracedEvent>> trace(const std::string& id) override;
  [[nodiscard]] Result<std::vector<relay::DeadLetter>> dead_letters(std::uint32_t most) override;
  [[nodiscard]] Result<relay::Redriven> redrive(std::span<const std::string> ids) override;

  bool wait(Duration most) override;
  void nudge() override;
  void wake() override;

  // What wait() does before it sleeps, and for how long it then does; 0 = look again first.
  // `now_ms` is steady time.
  [[nodiscard]] Duration ready_to_sleep(Duration most, std::int64_t now_ms) {
    return sleep_.prepare(most, now_ms);
  }

  // Of these tables; the same after a restore.
  [[nodiscard]] Result<std::string> uid();
  [[nodiscard]] bool is_notified() const { return sleep_.listener().hears(); }
  [[nodiscard]] std::uint64_t notifications() const { return sleep_.listener().notifications(); }
  [[nodiscard]] std::uint64_t questions() const { return session_.questions(); }

 private:
  struct Lane {
    std::int64_t fence = 0;
    LaneProgress progress{};
    std::uint32_t attempts = 0;  // of what comes next, taken and not settled
    TakenLane taken{};
    std::int64_t mark = 0;           // Y8: of what is stored of it
    std::int64_t mark_if_taken = 0;  // the same once late or new rows were taken
  };

  explicit OutboxSource(OutboxSourceOptions options);
  [[nodiscard]] static Lane stored_lane(const Rows& rows, std::size_t row);  // of leases
  [[nodiscard]] Result<relay::TakenBatches> settle_and_take(std::span<const relay::LaneTurn> turns);
  [[nodiscard]] std::int64_t fresh_mark();
  [[nodiscard]] std::optional<Query> settling_of(std::span<const relay::LaneTurn> turns);
  void read_lost(const Rows& rows, relay::TakenBatches& told);
  [[nodiscard]] std::vector<relay::LaneTurn> wanted_of(std::span<const relay::LaneTurn> turns,
                                                       relay::TakenBatches& told);
  [[nodiscard]] Query taking_of(std::span<const relay::LaneTurn> wanted);
  void read(const Rows& rows, std::span<const relay::LaneTurn> turns, relay::TakenBatches& told);
  void finish_taking(std::uint32_t number, const relay::LaneTurn& turn, relay::OutgoingBatch batch,
                     relay::TakenBatches& told);
  [[nodiscard]] Lane* find(const relay::Lease& lease);
  // Y6, O4: who runs for long and has not published has no rows up to here.
  [[nodiscard]] Status drop_bystanders();

  const OutboxSourceOptions options_;
  std::map<std::uint32_t, Lane> lanes_;
  host::HostEntropy entropy_;
  WakeSigns signs_;
  OutboxSession session_;
  OutboxSleep sleep_;
  std::uint32_t busy_rounds_ = 0;  // in a row in which something was taken
  bool is_alone_ = false;          // no other relay shares the lanes
  std::int64_t bystanders_at_ms_ = 0;
};

}  // namespace hapax::postgres
