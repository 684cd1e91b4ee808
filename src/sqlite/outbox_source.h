// The outbox of an SQLite file as a source of relays (migrations/sqlite/0002_relay.sql). Writers of
// a file go one by one, so the order of numbers is the order of commits and nothing comes late: one
// lane, one relay at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "relay/source.h"
#include "sqlite/connection.h"

namespace hapax::sqlite {

struct OutboxSourceOptions {
  std::string path;
  std::string prefix = "hapax_";
  std::string owner;                             // unique among all relays of this outbox
  Duration retention{30LL * 24 * 3600 * 1'000};  // of what was sent
};

class OutboxSource final : public relay::Source {
 public:
  [[nodiscard]] static Result<std::unique_ptr<OutboxSource>> open(OutboxSourceOptions options);
  ~OutboxSource() override;

  [[nodiscard]] Result<relay::Leases> lease(std::span<const relay::Lease> kept,
                                            Duration span) override;
  [[nodiscard]] Result<relay::TakenBatches> next(std::span<const relay::LaneTurn> turns,
                                                 std::uint32_t attempts_max) override;
  [[nodiscard]] Status release(std::span<const relay::Lease> leases) override;
  [[nodiscard]] Result<bool> clean() override;
  [[nodiscard]] Result<relay::OutboxReport> report() override;
  [[nodiscard]] Result<std::vector<relay::DeadLetter>> dead_letters(std::uint32_t most) override;
  [[nodiscard]] Result<relay::Redriven> redrive(std::span<const std::string> ids) override;
  void wait(Duration most) override;
  void wake() override;
  [[nodiscard]] std::uint64_t signs() const { return signs_; }  // that the file's log gave

 private:
  Result<bool> forget_expired();

  struct Taken {
    std::int64_t n = 0;  // of a retry; 0 = a new row
    std::int64_t seq = 0;
    std::string key{};
    std::uint32_t attempt = 1;
  };

  // Retries of one key, of which the first ones were taken.
  struct Queue {
    Value key;
    Value last;  // n of the latest that was taken
  };

  OutboxSource(OutboxSourceOptions options, Connection connection);
  [[nodiscard]] Result<std::vector<Row>> ask(std::string_view sql,
                                             const std::vector<Value>& values);
  // Runs `act` in a transaction that writes; an error undoes it.
  template <class Act>
  [[nodiscard]] Status in_write(const Act& act);
  [[nodiscard]] Status give_turns(std::int64_t now);
  [[nodiscard]] Result<bool> is_anything_there();
  [[nodiscard]] Status settle_and_take(const relay::LaneTurn& turn, std::uint32_t attempts_max,
                                       relay::TakenBatches& told);
  [[nodiscard]] Status settle(const std::vector<relay::SendOutcome>& outcomes);
  [[nodiscard]] Status settle_new(const Taken& row, const relay::SendOutcome& outcome);
  [[nodiscard]] Status settle_retry(const Taken& row, const relay::SendOutcome& outcome);
  [[nodiscard]] Status bury(const Taken& row, const relay::SendOutcome& outcome);
  [[nodiscard]] Status take(std::uint32_t most, std::uint32_t attempts_max,
                            relay::OutgoingBatch& batch);
  [[nodiscard]] Result<bool> take_retries(std::uint32_t most, relay::OutgoingBatch& batch);
  [[nodiscard]] Status take_behind(std::vector<Queue> queues, std::int64_t left, std::int64_t bytes,
                                   relay::OutgoingBatch& batch);
  [[nodiscard]] Status take_retry(const Value& n, relay::OutgoingBatch& batch);
  void add(const Row& row, std::int64_t n, std::uint32_t attempt, relay::OutgoingBatch& batch);

  const OutboxSourceOptions options_;
  Connection connection_;
  std::vector<Taken> taken_;
  int wake_ = -1;   // eventfd
  int watch_ = -1;  // inotify of the file's log; -1 = there is none, and the file is looked at
  std::uint64_t signs_ = 0;
  Duration nap_{0};  // the latest; grows while nothing comes
};

}  // namespace hapax::sqlite
