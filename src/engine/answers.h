// An answer that is true, and what must still be read from the journal before it is complete.
// Reading happens on the thread of whoever asked, never on the one that owns the state.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include <hapax/verdicts.h>

#include "base/where.h"
#include "core/moment.h"
#include "engine/frames.h"
#include "ports/files.h"

namespace hapax::engine {

// One record of a run.
struct RecordPlace {
  base::Where run;
  Sequence run_first;
  Sequence sequence;
  Time time{};
  std::shared_ptr<const ports::File> file;
};

struct DeliveryFetch {
  std::size_t verdict = 0;
  std::size_t delivery = 0;
  RecordPlace place;
  std::string_view stream;  // of the request, whose views live until it is answered
};
struct ResultFetch {
  std::size_t verdict = 0;
  base::Where where;
  std::shared_ptr<const ports::File> file;
};

struct Finished {
  Result<Answer> answer = Answer{};
  std::vector<DeliveryFetch> deliveries;
  std::vector<ResultFetch> results;
  core::Moment moment{};  // when it was decided
};
using OnFinished = std::function<void(Finished)>;

// A commit that is durable whose records or results cannot be read: kOutcomeUnknown, because
// every other error promises that nothing happened.
[[nodiscard]] Error unreadable(const Error& error);

// Reads what is missing. kCorruption names the place of what is not as it was written.
[[nodiscard]] Result<Answer> read_missing(Finished finished);
// The same, for a commit that is durable whatever can be read of it.
[[nodiscard]] Result<Answer> complete(Finished finished);

// W6: until when a register stays is told as a time of the wall clock.
void tell_wall_times(Answer& answer, const core::Moment& moment);

[[nodiscard]] Result<SettledResult> read_result(const ResultFetch& fetch);

// Records in the order of their places; neighbours of one run are read at once. The same of
// kCorruption.
[[nodiscard]] Result<std::vector<Record>> read_records(const std::vector<RecordPlace>& places);

}  // namespace hapax::engine
