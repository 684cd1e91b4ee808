// The batches that this process last knew to be in the log; and, when the log is read anew, which
// of them it has no more (E9).
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>

#include <hapax/time.h>

#include "journal/format.h"
#include "ports/shared_log.h"

namespace hapax::shared {

struct KnownBatch {
  ports::LogPlace at;
  std::uint64_t mark = 0;
  journal::Lsn first;  // of its facts
  journal::Lsn last;
  Time log_time{};
};

// Facts that were in the log, and are not: all that this process knew behind the newest batch that
// is still there.
struct LostFacts {
  journal::Lsn first;
  journal::Lsn last;
  Time since{};  // log time of the first batch that is lost
};

class KnownBatches {
 public:
  // In the order of the log.
  void add(const KnownBatch& batch);

  // From here on batches of a log that is read anew are added. A reading that was given up halfway
  // changes nothing about what was known before it.
  void begin_anew();
  // It was read to its end. Nothing: all is there, or what is not was removed by the keeper.
  [[nodiscard]] std::optional<LostFacts> end_anew();

 private:
  static constexpr std::size_t kMax = 4'096;

  [[nodiscard]] std::size_t first_lost() const;

  std::deque<KnownBatch> known_;
  bool anew_ = false;
  std::deque<KnownBatch> before_;             // what was known when the reading began
  std::size_t still_there_ = 0;               // of before_, up to the newest one that was found
  std::optional<ports::LogPlace> read_from_;  // the first batch that was read
};

[[nodiscard]] std::string text_of(const LostFacts& lost);

}  // namespace hapax::shared
