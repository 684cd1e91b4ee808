// The outbox of an SQLite file as a source of relays (migrations/sqlite/0002_relay.sql). Writers of
// a file go one by one, so the order of numbers is the order of commits and nothing comes late: one
// lane, one relay at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "relay/source.h"
#include "sqlite/connection.h"
#include "sqlite/log_watch.h"
#include "sqlite/outbox_file.h"

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

  [[nodiscard]] Result<relay::Leases> lease(std::span<const relay::Lease> kept,
                                            Duration span) override;
  [[nodiscard]] Result<relay::TakenBatches> next(std::span<const relay::LaneTurn> turns) override;
  [[nodiscard]] Status release(std::span<const relay::Lease> leases) override;
  [[nodiscard]] Result<bool> clean() override;
  [[nodiscard]] Result<relay::OutboxReport> report() override;
  [[nodiscard]] Result<std::vector<relay::TracedEvent>> trace(const std::string& id) override;
  [[nodiscard]] Result<std::vector<relay::DeadLetter>> dead_letters(std::uint32_t most) override;
  [[nodiscard]] Result<relay::Redriven> redrive(std::span<const std::string> ids) override;
  bool wait(Duration most) override { return watch_.wait(most); }
  void nudge() override { watch_.nudge(); }
  void wake() override { watch_.wake(); }
  // Of these tables; the same in a copy of the file.
  [[nodiscard]] Result<std::string> uid();
  [[nodiscard]] std::uint64_t signs() const { return watch_.signs(); }  // that the file's log gave

 private:
  Result<bool> forget_expired();

  // What outbox_retry has in `taken`; it stays there if the relay dies.
  enum class TakenAs : std::uint8_t { kNot = 0, kAmongOthers = 1, kAlone = 2 };
  struct Suspect {
    Value n;
    std::uint32_t attempts = 0;
  };
  struct Standing {  // of the lane
    std::int64_t pos = 0;
    std::uint32_t unsettled = 0;
  };
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

  OutboxSource(OutboxSourceOptions options, OutboxFile file);
  [[nodiscard]] Status forgive();
  [[nodiscard]] Status give_turns(std::int64_t now);
  [[nodiscard]] Result<bool> is_anything_there();
  [[nodiscard]] Status settle_and_take(const relay::LaneTurn& turn, relay::TakenBatches& told);
  [[nodiscard]] Status settle(const std::vector<relay::SendOutcome>& outcomes);
  [[nodiscard]] Status settle_new(const Taken& row, const relay::SendOutcome& outcome);
  [[nodiscard]] Status settle_retry(const Taken& row, const relay::SendOutcome& outcome);
  [[nodiscard]] Status bury(const Taken& row, const relay::SendOutcome& outcome);
  [[nodiscard]] Status take(const relay::LaneTurn& turn, relay::TakenBatches& told);
  // The retry that somebody died over, if there is one.
  [[nodiscard]] Result<std::optional<Suspect>> find_suspect();
  [[nodiscard]] Status take_retries(std::uint32_t most, relay::OutgoingBatch& batch);
  [[nodiscard]] Status take_new(std::uint32_t most, const Standing& standing,
                                relay::OutgoingBatch& batch);
  [[nodiscard]] Status take_behind(std::vector<Queue> queues, std::int64_t left, std::int64_t bytes,
                                   relay::OutgoingBatch& batch);
  [[nodiscard]] static Value stored(TakenAs as);
  [[nodiscard]] Status take_retry(const Value& n, TakenAs as, relay::OutgoingBatch& batch);
  void add(const Row& row, std::int64_t n, std::uint32_t attempt, relay::OutgoingBatch& batch);

  const OutboxSourceOptions options_;
  OutboxFile file_;
  LogWatch watch_;  // after file_: a file that nobody has opened has no log
  std::vector<Taken> taken_;
};

}  // namespace hapax::sqlite
