// Asks an endpoint what became of a delivery whose answer nobody has heard.
#pragma once

#include <functional>
#include <string>

namespace hapax::delivery {

class OutcomeProbe {
 public:
  enum class Told : std::uint8_t {
    kDelivered,
    kNotArrived,
    kNothing,  // there is no answer that says it
  };
  using Done = std::function<void(Told)>;

  OutcomeProbe() = default;
  OutcomeProbe(const OutcomeProbe&) = delete;
  OutcomeProbe& operator=(const OutcomeProbe&) = delete;
  virtual ~OutcomeProbe() = default;

  // Never blocks. `done` is called once, on any thread, maybe before this returns.
  virtual void ask(const std::string& key, Done done) = 0;
};

}  // namespace hapax::delivery
