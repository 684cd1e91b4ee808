// What a workflow has not confirmed yet: records of its source, of its outbox, and dead letters, as
// the store knows them. Each page is bounded in what it looks at, so that it holds up nobody.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <hapax/store.h>

#include "delivery/workflow.h"

namespace hapax::workflows {

enum class UndeliveredState : std::uint8_t {
  kWaiting,     // its turn has not come
  kInFlight,    // a process holds it under a lease: it is sent, or comes next
  kRetry,       // an attempt failed: again, not before `until`
  kBehind,      // an earlier record of its key is not done
  kBlocked,     // it was given up, and its key waits for a person
  kUnknown,     // sent, and nobody knows whether it arrived
  kDeadLetter,  // given up
};
inline constexpr std::array<std::string_view, 7> kUndeliveredStates{
    "waiting", "in_flight", "retry", "behind", "blocked", "unknown", "dead_letter"};
[[nodiscard]] inline std::string_view word_of(UndeliveredState state) {
  return kUndeliveredStates[static_cast<std::size_t>(state)];
}

struct UndeliveredRecord {
  UndeliveredState state = UndeliveredState::kWaiting;
  std::string stream;  // where it lies
  Sequence sequence{};
  Time came{};                 // to that stream
  std::string id{};            // message id; empty: none, or it is the key
  std::string group{};         // as the source has it
  std::string key{};           // of the delivery; empty: it has several, or none can be made
  std::string endpoint;        // empty: the workflow has one only, or it is not decided yet
  Time since{};                // of the state; the epoch: it is not known
  Time until{};                // likewise
  std::uint32_t attempts = 0;  // that failed
  std::uint32_t replay = 0;    // how often it was replayed
  Sequence behind{};           // of kBehind
  bool behind_blocked = false;
  std::string error{};  // of the latest attempt
};

// Where a page begins: a sequence in each of the streams.
struct UndeliveredCursor {
  std::array<std::uint64_t, 3> from{};
  [[nodiscard]] std::string text() const;
  [[nodiscard]] static std::optional<UndeliveredCursor> parse(std::string_view text);
};

// Which ones. All of what is said must hold.
struct UndeliveredQuery {
  std::optional<std::string> endpoint{};
  Time since = Time::min();  // came to their stream then or later
  UndeliveredCursor from{};
  std::size_t max = 100;
};

struct UndeliveredPage {
  std::vector<UndeliveredRecord> records;   // by when they came to their streams, oldest first
  std::optional<UndeliveredCursor> next{};  // none: that was all; also behind an empty page
};
[[nodiscard]] Result<UndeliveredPage> find_undelivered(const delivery::Workflow& workflow,
                                                       const UndeliveredQuery& query, Store& store);

using UndeliveredCounts = std::array<std::uint64_t, kUndeliveredStates.size()>;
struct UndeliveredCount {
  UndeliveredCounts counts{};               // of what this page looked at
  std::optional<UndeliveredCursor> next{};  // none: that was all
};
// As find_undelivered(), of more at once: `max` does not count.
[[nodiscard]] Result<UndeliveredCount> count_undelivered(const delivery::Workflow& workflow,
                                                         const UndeliveredQuery& query,
                                                         Store& store);

}  // namespace hapax::workflows
