// Where records come from that are to be delivered. A source hands records out under a lease, and
// is told what became of each. One thread at a time, nudge() excepted.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <hapax/result.h>
#include <hapax/time.h>

#include "delivery/attempt.h"
#include "relay/outgoing.h"

namespace hapax::delivery {

using relay::Outgoing;

// Names one hand-out of a record. A record that is handed out again has another number.
using HandoutNumber = std::uint64_t;

struct Handout {
  HandoutNumber number = 0;
  Outgoing record;
  std::uint32_t endpoint = 0;  // which of the engine's endpoints it goes to
};

struct Settlement {
  enum class Kind : std::uint8_t {
    kDelivered,  // the endpoint has it
    kRetry,      // an attempt failed and counts: again after `after`
    kDead,       // given up: a dead letter with `reason`
    kUnknown,    // sent, and nobody knows whether it arrived: somebody must find out
    kHeld,       // not sent, because an earlier record of its key waits for another attempt
    kDeferred,   // its endpoint takes nothing, and no attempt counts: not before `after`
    kNotSent,    // nothing is known about it, and no attempt counts
  };
  HandoutNumber number = 0;
  Kind kind = Kind::kNotSent;
  Duration after{0};
  std::string reason{};
  // Of an attempt that failed or was the last one: bytes left, and no complete answer came.
  bool may_have_arrived = false;
};

// An attempt that is about to be made.
struct Beginning {
  HandoutNumber number = 0;
  const Outgoing* record = nullptr;  // for as long as the call takes
};

struct TakeCall {
  std::span<const Settlement> settled{};
  // Z2: these are about to be sent. The source has noted that durably when it answers, unless it
  // tells them as lost. A noted attempt is settled once, whatever became of its hand-out meanwhile.
  std::span<const Beginning> beginning{};
  std::uint32_t room = 0;  // hand out at most so many
  Duration lease{0};       // hold everything that is handed out for so long from now on
};

struct Hand {
  std::vector<Handout> records{};     // per key in the order in which they are to be sent
  std::vector<HandoutNumber> lost{};  // no longer held: what is said about them does not count
  Duration lease_left{0};             // of all that is held, by the source's clock when it answered
  std::optional<Duration> next_due{};  // then a record that waits may be handed out
  bool more = false;                   // there may be more at once
};

class Source {
 public:
  Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  virtual ~Source() = default;

  // Attempts that ended since the last time, in that order. A source that keeps a log writes them
  // with what the next call settles; another one forgets them.
  virtual void note_attempts(std::vector<Attempt> /*attempts*/) {}
  // Settles, renews the lease of what stays held, and hands out more. An error: what was said may
  // count or not, and nothing is held any longer.
  [[nodiscard]] virtual Result<Hand> take(const TakeCall& call) = 0;
  // Settles, and gives back all the rest as not sent.
  [[nodiscard]] virtual Status give_back(std::span<const Settlement> settled) = 0;
  // Returns when there may be something new, after `most`, or when nudged.
  virtual void wait(Duration most) = 0;
  // Lets wait() return, once. From any thread.
  virtual void nudge() = 0;
  // The end is near: from now until all is given back no call waits for long for whoever does not
  // answer. From any thread.
  virtual void hurry() {}
};

}  // namespace hapax::delivery
