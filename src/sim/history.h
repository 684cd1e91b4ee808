// What the clients asked for and what they were told, in order. It is the first witness of every
// run: the checkers know nothing of the store but this, what can be read in the end, and the bytes
// on the disk.
//
// An attempt ends as kOk (answered), kFail (certainly nothing happened) or kUnknown (its process
// died before the answer: it may have happened, wholly or not at all).
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <hapax/verdicts.h>

#include "core/moment.h"
#include "sim/request.h"
#include "sim/trace.h"

namespace hapax::sim {

enum class Ending : std::uint8_t { kPending, kOk, kFail, kUnknown };
[[nodiscard]] std::string_view word_of(Ending ending);

struct Attempt {
  std::uint64_t invoked = 0;  // event numbers
  std::uint64_t ended = 0;
  std::shared_ptr<const SimRequest> request;
  Ending ending = Ending::kPending;
  Answer answer;               // of kOk
  core::Moment moment{};       // when it was decided
  std::optional<Error> error;  // of kFail

  // Whether operation `index` was carried out with a verdict of this kind.
  template <class Kind>
  [[nodiscard]] const Kind* told(std::size_t index) const {
    if (ending != Ending::kOk || index >= answer.verdicts.size()) return nullptr;
    return std::get_if<Kind>(&answer.verdicts[index]);
  }
  // Whether operation `index` may have had its effect although nobody heard of it.
  [[nodiscard]] bool unknown() const {
    return ending == Ending::kUnknown || ending == Ending::kPending;
  }
};

// A record that a reader was shown: whatever leaves the store is durable.
struct Sighting {
  std::string stream;
  Sequence sequence;
  std::string payload;
};

class History {
 public:
  // The attempt stays where it is.
  Attempt& invoke(std::shared_ptr<const SimRequest> request);
  void answer(Attempt& attempt, Result<Answer> answer);
  // Ends all that are pending as unknown; answers which.
  std::vector<const Attempt*> crash();
  void saw(Sighting sighting) { sightings_.push_back(std::move(sighting)); }

  [[nodiscard]] const std::deque<Attempt>& attempts() const { return attempts_; }
  // In the order of their ends, which for answers is the order in which the store decided.
  [[nodiscard]] const std::vector<const Attempt*>& ended() const { return ended_; }
  [[nodiscard]] const std::vector<Sighting>& sightings() const { return sightings_; }
  [[nodiscard]] std::uint64_t events() const { return events_; }
  [[nodiscard]] std::uint64_t hash() const { return trace_.hash(); }

 private:
  std::deque<Attempt> attempts_;
  std::vector<const Attempt*> ended_;
  std::vector<Sighting> sightings_;
  std::vector<Attempt*> pending_;
  std::uint64_t events_ = 0;
  RunTrace trace_;
};

// For people: "append plain/id4 c0-12", "claim job/k1".
[[nodiscard]] std::string describe(const Op& op);
[[nodiscard]] std::string describe(const Verdict& verdict);
[[nodiscard]] std::string describe(const Attempt& attempt);

}  // namespace hapax::sim
