// Sends requests to endpoints, thousands at once, from one thread of its own.
//
// Q1: one start() is at most one request on the wire. Q2: "not sent" is said only if not one byte
// of the request left. Q3: `done` runs exactly once for each start() that was taken, on the
// sender's thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include <hapax/result.h>

#include "webhook/exchange.h"
#include "webhook/guard.h"
#include "webhook/origins.h"

namespace hapax::webhook {

struct SenderSettings {
  Guard guard;
  SendLimits limits;
  // Open connections, busy or idle, beyond which the sender closes the idle one that rests longest.
  // Finding that one costs a walk through all, so leave room above limits.under_way.
  long connections_kept = 16'384;
  // Called on the sender's thread after the `done` of all requests that ended in one turn: whoever
  // collects replies in `done` hands them on here, many at once.
  std::function<void()> after_turn;
};

class Sender {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Sender>> open(SenderSettings settings);
  // stop() without patience.
  ~Sender();
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  // From any thread, `done` included; never blocks. A request that check_request() refuses ends as
  // kNotSent, kInvalid. False: the sender has been told to stop; `done` will not run.
  [[nodiscard]] bool start(SendRequest request, OnReply done);

  // Begins nothing more and waits for the requests under way, at most as long as `patience`. Those
  // that are left end as kUnknown or kNotSent, as each truly is. Returns when every `done` has run.
  // Not from the sender's thread.
  void stop(std::chrono::milliseconds patience);

 private:
  class Thread;
  explicit Sender(std::unique_ptr<Thread> thread);

  std::unique_ptr<Thread> thread_;
};

}  // namespace hapax::webhook
