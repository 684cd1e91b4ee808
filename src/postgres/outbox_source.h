// The outbox of a PostgreSQL database as a source of relays (migrations/postgres/0002_relay.sql).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "postgres/connection.h"
#include "postgres/lane_progress.h"
#include "relay/source.h"

namespace hapax::postgres {

struct OutboxSourceOptions {
  std::string uri;
  std::string schema = "hapax";
  std::string owner;   // unique among all relays of this outbox
  bool listen = true;  // be woken by NOTIFY, if it gets through
};

class OutboxSource final : public relay::Source {
 public:
  // Checks the version of the tables, and whether notifications get through.
  [[nodiscard]] static Result<std::unique_ptr<OutboxSource>> open(OutboxSourceOptions options);
  ~OutboxSource() override;

  [[nodiscard]] Result<relay::Leases> lease(std::span<const relay::Lease> kept,
                                            Duration span) override;
  [[nodiscard]] Result<relay::Taken> next(std::span<const relay::Turn> turns,
                                          std::uint32_t attempts_max) override;
  [[nodiscard]] Status release(std::span<const relay::Lease> leases) override;
  [[nodiscard]] Result<bool> clean() override;  // one partition
  [[nodiscard]] Result<relay::Report> report() override;

  void wait(Duration most) override;
  void wake() override;

  [[nodiscard]] bool is_notified() const { return listener_.has_value(); }

 private:
  struct Lane {
    std::int64_t fence = 0;
    LaneProgress progress{};
    std::uint32_t attempts = 0;  // of what comes next, taken and not settled
    TakenLane taken{};
  };

  explicit OutboxSource(OutboxSourceOptions options);
  [[nodiscard]] Status connect();
  [[nodiscard]] Result<Rows> ask(const std::string& sql, const Values& values,
                                 Rowed rowed = Rowed::kText);
  [[nodiscard]] Status settle(std::span<const relay::Turn> turns, relay::Taken& told);
  [[nodiscard]] Status take(std::span<const relay::Turn> turns, std::uint32_t attempts_max,
                            relay::Taken& told);
  void read(const Rows& rows, std::span<const relay::Turn> turns, relay::Taken& told);
  void finish_taking(std::uint32_t number, const relay::Turn& turn, relay::Batch batch,
                     relay::Taken& told);
  [[nodiscard]] Lane* find(const relay::Lease& lease);
  void test_notify();
  // Whether publishers had been asked before to notify until the nap is over.
  [[nodiscard]] bool announce();
  [[nodiscard]] std::string named(std::string_view sql) const;  // with the schema in it

  const OutboxSourceOptions options_;
  std::optional<Connection> connection_;
  std::optional<Connection> listener_;
  std::map<std::uint32_t, Lane> lanes_;
  int wake_ = -1;                    // eventfd
  Duration nap_{0};                  // the latest; grows while nothing comes
  std::int64_t asked_until_ms_ = 0;  // steady; so long publishers notify
};

}  // namespace hapax::postgres
