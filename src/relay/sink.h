// Where outgoing records go.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <hapax/time.h>

#include "ports/clock.h"
#include "relay/outgoing.h"

namespace hapax::relay {

// The right to send, which ends before the lease does.
class Permit {
 public:
  Permit(ports::Clock& clock, std::int64_t until_ms, const std::atomic<bool>* withdrawn = nullptr)
      : clock_(clock), until_ms_(until_ms), withdrawn_(withdrawn) {}

  // To be asked right before bytes leave: the process may have stood still in between, or the relay
  // is to end.
  [[nodiscard]] bool good() const {
    return left() > Duration{0} && (withdrawn_ == nullptr || !*withdrawn_);
  }
  // For the answer to what was sent; a relay that is to end waits for it, too.
  [[nodiscard]] Duration left() const { return Duration{until_ms_ - clock_.steady_ms()}; }
  // Whether an answer did not come because nobody waits for it any longer. (A wait for the rest of
  // the permit may end a moment before it does.)
  [[nodiscard]] bool cuts_off() const { return left() <= Duration{10}; }

 private:
  ports::Clock& clock_;
  const std::int64_t until_ms_;
  const std::atomic<bool>* const withdrawn_;
};

struct SinkDelivery {
  enum class Ending : std::uint8_t {
    kAll,          // all were accepted
    kRefused,      // the record after the accepted ones will not be taken as it is
    kFailed,       // it answered that it failed: over this record, or over any
    kUnavailable,  // no fault of the record, as far as the sink can tell
    kOutOfTime,    // the permit ended; with a reason if the record was sent and not answered
  };
  std::size_t accepted = 0;  // so many from the front; those behind the ending were not sent
  Ending ending = Ending::kAll;
  std::string reason{};
  // The sink asks that nothing be sent before; with kRefused it means nothing.
  Duration after{0};
};

class Sink {
 public:
  Sink() = default;
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;
  virtual ~Sink() = default;

  // Y1: in order, and nothing behind a record that was not accepted. A record that the sink has
  // already (the same id) is accepted.
  [[nodiscard]] virtual SinkDelivery deliver(std::span<const Outgoing* const> records,
                                             const Permit& permit) = 0;
};

}  // namespace hapax::relay
