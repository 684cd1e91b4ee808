// Deliveries of unknown outcome that an endpoint is asked about. What it told is remembered until
// somebody looks.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <hapax/time.h>

#include "base/mutex.h"
#include "delivery/outcome_probe.h"

namespace hapax::delivery {

class Doubts {
 public:
  // An endpoint is asked when the outcome has been unknown for `patience`: until then the request
  // may still be on its way, and "it has not arrived" would say nothing.
  Doubts(std::shared_ptr<OutcomeProbe> probe, Duration patience)
      : probe_(std::move(probe)), patience_(patience), heard_(std::make_shared<Heard>()) {}

  [[nodiscard]] Duration patience() const { return patience_; }
  struct View {
    OutcomeProbe::Told told = OutcomeProbe::Told::kNothing;
    Duration look_again{0};  // of kNothing: not before
  };
  // Of an outcome that is unknown since then. What was told counts for this one only: the outcome
  // of a later attempt is unknown since another time.
  [[nodiscard]] View look(const std::string& key, Time since, Time now);

 private:
  static constexpr std::size_t kAskedMax = 1'000;
  static constexpr Duration kAnswerPause{250};   // for an answer
  static constexpr Duration kAskAgain{5'000};    // after one that said nothing
  static constexpr Duration kCrowdPause{1'000};  // while too many are asked

  struct Asked {
    Time since{};
    bool answered = false;
    OutcomeProbe::Told told = OutcomeProbe::Told::kNothing;
  };
  // The probe may still call when the source is gone.
  struct Heard {
    base::Mutex mutex;
    std::vector<std::pair<std::string, OutcomeProbe::Told>> answers HAPAX_GUARDED_BY(mutex);
  };
  void collect();

  const std::shared_ptr<OutcomeProbe> probe_;
  const Duration patience_;
  const std::shared_ptr<Heard> heard_;
  std::unordered_map<std::string, Asked> asked_;  // by key
};

}  // namespace hapax::delivery
