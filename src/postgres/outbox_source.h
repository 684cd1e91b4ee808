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
#include "relay/source.h"

namespace hapax::postgres {

struct OutboxSourceOptions {
  std::string uri;
  std::string schema = "hapax";
  std::string owner;   // unique among all relays of this outbox
  bool listen = true;  // be woken by NOTIFY, if it gets through
  // How long the server may be silent, after which the connection is made anew.
  Duration silence_max = Duration::max();
  Notice notice{};  // is told the warnings of its server
};

class OutboxSource final : public relay::Source {
 public:
  // Checks the version of the tables, and whether notifications get through.
  [[nodiscard]] static Result<std::unique_ptr<OutboxSource>> open(OutboxSourceOptions options);
  ~OutboxSource() override;

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
  [[nodiscard]] Duration ready_to_sleep(Duration most, std::int64_t now_ms);

  [[nodiscard]] bool is_notified() const { return listener_.has_value(); }
  [[nodiscard]] std::uint64_t notifications() const { return notifications_; }
  [[nodiscard]] std::uint64_t questions() const { return questions_; }  // asked of the database

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
  [[nodiscard]] static std::int64_t steady_ms();
  [[nodiscard]] Result<Connection> open_session(const std::string& name) const;
  [[nodiscard]] Status connect();
  [[nodiscard]] Status reconnect();  // if the connection is lost
  [[nodiscard]] Result<Rows> ask(const Query& question);
  [[nodiscard]] Result<Rows> ask(const std::string& sql, const Values& values);
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
  [[nodiscard]] Status add_figures(relay::OutboxReport& report);
  // Y6, O4: who runs for long and has not published has no rows up to here.
  [[nodiscard]] Status drop_bystanders();
  void test_notify();
  void keep_listening(std::int64_t now_ms);
  // Whether publishers had been asked before to notify until the nap is over.
  [[nodiscard]] bool announce(std::int64_t now_ms);
  // Under load nobody sleeps, and publishers need not notify.
  void renounce();
  void read_notifications();
  [[nodiscard]] bool look_again();
  void expect_retry_in(Duration span);
  [[nodiscard]] Duration until_due(std::int64_t now_ms) const;
  [[nodiscard]] std::string named(std::string_view sql) const;  // with the schema in it

  const OutboxSourceOptions options_;
  std::optional<Connection> connection_;
  std::optional<Connection> listener_;
  std::map<std::uint32_t, Lane> lanes_;
  host::HostEntropy entropy_;
  int wake_ = -1;   // eventfd; readable from wake() on
  int nudge_ = -1;  // eventfd; readable after nudge(), until wait() returns
  std::optional<std::int64_t> asleep_until_ms_{};  // of a nap that nudges interrupt
  Duration nap_{0};                                // the latest; grows while nothing comes
  std::optional<std::int64_t> due_at_ms_{};        // the next retry that a look has told of
  std::int64_t asked_until_ms_ = 0;                // steady; so long publishers notify
  std::uint32_t busy_rounds_ = 0;                  // in a row in which something was taken
  bool is_alone_ = false;                          // no other relay shares the lanes
  bool listens_ = false;                           // notifications got through at the start
  Duration listen_pause_{0};                       // between attempts to listen again
  std::int64_t listen_at_ms_ = 0;                  // steady; not before
  std::int64_t bystanders_at_ms_ = 0;
  std::uint64_t questions_ = 0;
  std::uint64_t notifications_ = 0;
};

}  // namespace hapax::postgres
