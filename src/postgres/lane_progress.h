// How far one lane of an outbox was sent, and what a batch does to that. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "relay/source.h"

namespace hapax::postgres {

using Xids = std::vector<std::uint64_t>;  // sorted

struct PendingTransaction {
  std::uint64_t xid = 0;
  std::int64_t since =
      0;  // where the lane stood when it was first seen running: its rows are behind
  friend bool operator==(const PendingTransaction&, const PendingTransaction&) = default;
};

// Y6: sent is every row with seq <= pos, but for those of the transactions in `pending`, which were
// running when a row up to pos was first seen. Of these, `draining` have finished, and their rows
// are sent up to late_to.
struct LaneProgress {
  std::int64_t pos = 0;
  std::vector<PendingTransaction> pending{};  // by xid
  Xids draining{};
  std::int64_t late_to = 0;
  std::int64_t sent = 0;  // so many were accepted since the lane exists
  friend bool operator==(const LaneProgress&, const LaneProgress&) = default;
};

struct TakenRow {
  enum class Kind : std::uint8_t { kRetry, kLate, kFresh };
  Kind kind = Kind::kFresh;
  std::int64_t n = 0;  // of kRetry
  std::int64_t part = 0;
  std::int64_t seq = 0;
  std::string key{};
  std::uint32_t attempt = 1;
};

struct TakenLane {
  std::vector<TakenRow> rows{};  // retries, then late ones, then fresh ones; each by seq
  Xids finished{};               // of `pending`, as the snapshot saw it
  Xids running{};                // transactions that the snapshot saw running
  // Up to which seq all late rows are among `rows`; none if they were not looked for.
  std::optional<std::int64_t> late_end{};
};

// Whether all late rows were taken, so that fresh ones may follow.
[[nodiscard]] bool has_all_late(const LaneProgress& before, const TakenLane& taken);

// Where the lane stands after these outcomes, one per row. What comes behind the first late or
// fresh row that was not sent does not count; `counted` is how many rows do, apart from that all
// retries do.
struct Advanced {
  LaneProgress progress;
  std::size_t counted = 0;
};
[[nodiscard]] Advanced advance(const LaneProgress& before, const TakenLane& taken,
                               const std::vector<relay::SendOutcome>& outcomes);

// "10:20:10,14,15" and the xid given out after the snapshot: all that were running.
[[nodiscard]] Xids running_in(std::string_view snapshot, std::uint64_t below);

[[nodiscard]] Xids xids_of(std::string_view array);  // "{10,14}"
[[nodiscard]] std::string text_of(const Xids& xids);
[[nodiscard]] std::vector<PendingTransaction> pending_of(std::string_view xids,
                                                         std::string_view since);
[[nodiscard]] std::string xids_text_of(const std::vector<PendingTransaction>& pending);
[[nodiscard]] std::string since_text_of(const std::vector<PendingTransaction>& pending);
[[nodiscard]] std::vector<PendingTransaction> without(std::vector<PendingTransaction> pending,
                                                      const Xids& others);

}  // namespace hapax::postgres
