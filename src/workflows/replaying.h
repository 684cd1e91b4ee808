// Sends again what a workflow has delivered, by its log of attempts.
//
// Z32: a replay has an id, and a record is put back once under it, however often the replay is
//     interrupted and repeated. How far it is stands in a register, which the commit changes that
//     puts records back.
// Z33: one replay of a workflow runs at a time. So it may forget that a record was delivered, under
//     at-most-once and exactly-once, without taking that from the attempt of another one.
// Z34: a record that cannot be sent again is told, never passed over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <hapax/store.h>

#include "delivery/workflow.h"

namespace hapax::workflows {

// Which deliveries; all of what is said must hold.
struct ReplayTerms {
  Time since = Time::min();  // confirmed then or later
  Time until = Time::max();  // confirmed then or earlier, and never after the replay began
  std::string endpoint{};    // empty: any
  friend bool operator==(const ReplayTerms&, const ReplayTerms&) = default;
};

// How far a replay is, in all.
struct ReplayState {
  ReplayTerms terms;
  std::uint64_t next = 0;      // position in the log
  std::uint64_t replayed = 0;  // deliveries whose records were put behind those that wait
  std::uint64_t gone = 0;      // and those whose payload is not there any more
  bool done = false;
};
// What a register holds.
[[nodiscard]] std::string text_of(const ReplayState& state);
[[nodiscard]] std::optional<ReplayState> read_replay(std::string_view text);

struct ReplayPage {
  ReplayState state;
  struct Gone {
    std::string key;
    std::uint64_t sequence = 0;
  };
  std::vector<Gone> gone{};  // of this page
  // Of this page: deliveries of records that were put back for another delivery of theirs.
  std::uint64_t repeated = 0;
};

// Begins the replay of that id, or goes on with it: with at most so many deliveries. Without terms
// it must have begun. kPreconditionFailed: another one is not done, this one began with other
// terms, or the workflow cannot be replayed, and the error says why.
[[nodiscard]] Result<ReplayPage> replay_delivered(const delivery::Workflow& workflow,
                                                  const std::string& id,
                                                  const std::optional<ReplayTerms>& terms,
                                                  std::size_t max, Store& store);
// What a replay would do, without doing it, from `state.next` on.
[[nodiscard]] Result<ReplayPage> count_delivered(const delivery::Workflow& workflow,
                                                 const ReplayState& state, std::size_t max,
                                                 Store& store);
// Ends a replay that is not to go on. What it has put back is sent.
[[nodiscard]] Result<ReplayState> cancel_replay(const delivery::Workflow& workflow,
                                                const std::string& id, Store& store);

}  // namespace hapax::workflows
