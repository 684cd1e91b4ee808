// Where records go. A sink sends what it is given, once, and says later what became of it. Whether
// and when to send again is the engine's to say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <hapax/time.h>

#include "delivery/attempt.h"
#include "relay/outgoing.h"

namespace hapax::delivery {

using relay::Outgoing;

// What became of one record that a sink was given.
struct SendResult {
  enum class Outcome : std::uint8_t {
    kDelivered,  // the endpoint confirmed it
    kRejected,   // the endpoint will not take this record
    kTryLater,   // certainly not taken, for a reason that may pass
    kUnknown,    // it may have arrived: bytes left, and no complete answer came
    kNotSent,    // not one byte left, for no fault of the endpoint or the record
    kGone,       // the endpoint wants neither this record nor any other
  };
  Outcome outcome = Outcome::kDelivered;
  // The endpoint is there: it said that it fails, or that it will not take the record. A record
  // that its sink rejects by itself says nothing of the endpoint.
  bool answered = false;
  bool cut_off = false;   // of kUnknown: it was not waited for any longer because the lease ends
  bool hopeless = false;  // of kRejected: no further attempt helps
  // The endpoint asks that nothing be sent to it before; of kNotSent: nothing can be.
  Duration after{0};
  std::string reason{};
  AttemptFacts facts{};  // of a sink that measures
};

class Sink {
 public:
  // One result per record, in their order.
  using Done = std::function<void(std::vector<SendResult>)>;

  Sink() = default;
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;
  virtual ~Sink() = default;

  // At most so many records in one start().
  [[nodiscard]] virtual std::size_t batch_max() const { return 1; }
  // Begins to send, and never blocks. `done` is called once, on any thread, maybe before this
  // returns; the records live until then. Several records of one key are sent in order, and none
  // behind one that was not delivered.
  // Z1: nothing leaves when the steady clock shows `not_after_ms` or more; asked right before bytes
  // leave, because the process may have stood still in between.
  virtual void start(std::span<const Outgoing* const> records, std::int64_t not_after_ms,
                     Done done) = 0;
  // From now on nothing more leaves; what has left is waited for. From any thread.
  virtual void wind_down() {}
};

}  // namespace hapax::delivery
