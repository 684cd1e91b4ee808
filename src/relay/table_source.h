// A table of an application as a source: one lane, in which a row is what is not marked yet. It has
// no place for leases. Whoever takes its rows must recognise one that comes again, by its id, so
// several may take them at once.
//
// Y20: every look asks for all rows that are not marked, so one whose transaction commits late is
//      found whatever its number.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ports/clock.h"
#include "relay/source.h"

namespace hapax::relay {

// A row was taken over, or cannot be.
struct RowMarking {
  std::string id;
  bool taken_over = false;
  std::string error{};
};

// What a database must know of such a table. One thread at a time, nudge() and wake() excepted.
class TableRows {
 public:
  TableRows() = default;
  TableRows(const TableRows&) = delete;
  TableRows& operator=(const TableRows&) = delete;
  virtual ~TableRows() = default;

  // Not marked, the oldest first, at most so many, without these.
  [[nodiscard]] virtual Result<std::vector<Outgoing>> read(
      std::uint32_t most, std::span<const std::string> without) = 0;
  // All or none. A row that is marked already stays as it is.
  [[nodiscard]] virtual Status mark(std::span<const RowMarking> rows) = 0;
  [[nodiscard]] virtual Result<LaneReport> report() = 0;
  virtual bool wait(Duration most) = 0;  // as of Source
  virtual void stay_up() = 0;            // something came
  virtual void nudge() = 0;
  virtual void wake() = 0;
};

class TableSource final : public Source {
 public:
  // So many rows that cannot be taken over are passed over; beyond that nothing is taken.
  static constexpr std::size_t kPassedOverMax = 1'000;
  // A row that cannot be taken over is tried again after that: somebody may have mended it.
  static constexpr Duration kPassedOver{600'000};

  // The clock outlives it.
  TableSource(std::unique_ptr<TableRows> rows, ports::Clock& clock)
      : rows_(std::move(rows)), clock_(clock) {}

  [[nodiscard]] Result<Leases> lease(std::span<const Lease> kept, Duration span) override;
  [[nodiscard]] Result<TakenBatches> next(std::span<const LaneTurn> turns) override;
  [[nodiscard]] Status release(std::span<const Lease> leases) override;
  [[nodiscard]] Result<bool> clean() override { return false; }
  [[nodiscard]] Result<OutboxReport> report() override;
  // A table like that keeps none of these.
  [[nodiscard]] Result<std::vector<TracedEvent>> trace(const std::string& id) override;
  [[nodiscard]] Result<std::vector<DeadLetter>> dead_letters(std::uint32_t most) override;
  [[nodiscard]] Result<Redriven> redrive(std::span<const std::string> ids) override;
  bool wait(Duration most) override { return rows_->wait(most); }
  void nudge() override { rows_->nudge(); }
  void wake() override { rows_->wake(); }

 private:
  [[nodiscard]] Status settle(const std::vector<SendOutcome>& outcomes);
  [[nodiscard]] Result<std::vector<Outgoing>> take(std::uint32_t most);

  const std::unique_ptr<TableRows> rows_;
  ports::Clock& clock_;
  std::int64_t fence_ = 0;
  std::vector<std::string> taken_;                   // ids
  std::map<std::string, std::int64_t> passed_over_;  // ids, and until when
  std::string last_error_;                           // of these
  std::string marked_first_;                         // of the rows that were marked last
  std::int64_t rest_until_ms_ = 0;
};

}  // namespace hapax::relay
