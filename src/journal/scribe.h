// For tests: a tiny user of the journal that remembers, outside of the disk, what was promised to
// it, and checks every recovery against that memory. It knows nothing of how the journal works.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/format.h"
#include "journal/names.h"
#include "journal/open_store.h"
#include "journal/recovery.h"

namespace hapax::journal {

// What must be found, and what may be found.
struct Witness {
  std::vector<std::string> acknowledged;  // By lsn, from 1.
  std::vector<std::string> in_doubt;      // Of the one batch whose answer was never heard.
};

inline constexpr std::uint64_t kReserve = 1024;
inline constexpr WriterOptions kTinySegments{.segment_bytes = 512, .reserve_step = 256};

class Scribe {
 public:
  Scribe(ports::Folder& folder, ports::Entropy& entropy, Witness& witness,
         WriterOptions options = kTinySegments)
      : folder_(folder), entropy_(entropy), witness_(witness), options_(options) {}

  // Recovers; an Error of kConflict says how what was found contradicts what was promised.
  Status open(Lsn snapshot = {}) {
    HAPAX_TRY(identity_, open_store(folder_, entropy_, 1'000));
    found_.clear();
    found_first_ = snapshot.next();
    const auto visit = [this](const BatchView& batch) { return remember(batch); };
    HAPAX_TRY(auto recovered,
              recover(folder_, entropy_, identity_, {snapshot, options_, kReserve}, visit));
    report_ = std::move(recovered.report);
    writer_ = std::move(recovered.writer);
    log_time_ = report_.log_time;
    return check_found();
  }

  // One batch of these facts.
  Status write(const std::vector<std::string>& facts) {
    log_time_ += Duration{1};
    batch_.begin(writer_->next(), log_time_);
    for (const std::string& fact : facts) batch_.add(fact);
    const Slot slot = writer_->slot();
    witness_.in_doubt = facts;
    auto durable = writer_->write(batch_);
    if (!durable.ok()) {
      // Only these say for certain that nothing happened.
      const Errc code = durable.error().code;
      if (code == Errc::kNoSpace || code == Errc::kUnavailable) witness_.in_doubt.clear();
      return std::move(durable).error();
    }
    witness_.in_doubt.clear();
    witness_.acknowledged.insert(witness_.acknowledged.end(), facts.begin(), facts.end());
    if (durable->lsn().value != witness_.acknowledged.size()) {
      return Error{Errc::kConflict, "the proof is of another lsn"};
    }
    if (writer_->slot() != slot_after(slot, batch_.bytes(), options_.segment_bytes)) {
      return Error{Errc::kConflict, "the slot is not a function of sizes"};
    }
    return Ok{};
  }
  Status write(std::size_t facts, std::size_t bytes_each) {
    std::vector<std::string> batch;
    for (std::size_t i = 0; i < facts; ++i) {
      const std::string name = base::format("fact {} ", writer_->next().value + i);
      batch.push_back(name + std::string(bytes_each, static_cast<char>('a' + i % 26)));
    }
    return write(batch);
  }

  Status mark(MarkKind kind) { return writer_->write_mark(kind); }

  [[nodiscard]] const RecoveryReport& report() const { return report_; }
  [[nodiscard]] const Identity& identity() const { return identity_; }
  [[nodiscard]] Writer& writer() { return *writer_; }
  [[nodiscard]] const std::vector<std::string>& found() const { return found_; }

 private:
  Status remember(const BatchView& batch) {
    return for_each_fact(batch, [&](Lsn lsn, base::Where where, std::string_view fact) -> Status {
      if (lsn < found_first_) return Ok{};
      if (lsn.value != found_first_.value + found_.size()) {
        return Error{Errc::kConflict, base::format("a hole before lsn {}", lsn.value)};
      }
      // The place must be where the bytes are, now and later.
      HAPAX_TRY(const auto file, folder_.open(segment_name(where.segment), ports::OpenMode::kRead));
      std::string bytes(where.length, '\0');
      HAPAX_TRY(const std::size_t got, file->read_at(where.offset, bytes));
      if (got != bytes.size() || bytes != fact) {
        return Error{Errc::kConflict,
                     base::format("other bytes at the place of lsn {}", lsn.value)};
      }
      found_.emplace_back(fact);
      return Ok{};
    });
  }

  Status check_found() {
    const std::size_t skipped = found_first_.value - 1;
    std::vector<std::string> expected = witness_.acknowledged;
    expected.erase(expected.begin(),
                   expected.begin() + static_cast<std::ptrdiff_t>(
                                          std::min(skipped, witness_.acknowledged.size())));
    if (found_ != expected) {
      expected.insert(expected.end(), witness_.in_doubt.begin(), witness_.in_doubt.end());
      if (found_ != expected) {
        return Error{Errc::kConflict,
                     base::format("found {} facts that are not the {} acknowledged ones",
                                  found_.size(), witness_.acknowledged.size())};
      }
      witness_.acknowledged.insert(witness_.acknowledged.end(), witness_.in_doubt.begin(),
                                   witness_.in_doubt.end());
    }
    witness_.in_doubt.clear();
    return Ok{};
  }

  ports::Folder& folder_;
  ports::Entropy& entropy_;
  Witness& witness_;
  const WriterOptions options_;
  Identity identity_;
  RecoveryReport report_;
  std::unique_ptr<Writer> writer_;
  Batch batch_;
  Time log_time_{};
  std::vector<std::string> found_;
  Lsn found_first_{1};
};

}  // namespace hapax::journal
