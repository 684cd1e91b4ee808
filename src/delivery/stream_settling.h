// For stream_source.cc and stream_claims.cc only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hapax/limits.h>
#include <hapax/ops.h>

#include "base/format.h"
#include "delivery/stream_source.h"
#include "relay/headers.h"

namespace hapax::delivery {

// The operations of one commit, the texts they refer to, and what each was for.
class StreamSource::Settling {
 public:
  explicit Settling(const StreamSourceSettings& settings) : settings_(settings) {}

  void ack(Receipt receipt) { add(0, Ack{settings_.stream, settings_.consumer, receipt}); }
  void nack(Receipt receipt, Duration delay, std::string_view reason) {
    add(0, Nack{.stream = settings_.stream,
                .consumer = settings_.consumer,
                .receipt = receipt,
                .delay = std::clamp(delay, Duration{0}, limits::kDelayMax),
                .reason = keep(relay::stored_reason(reason))});
  }
  void give_up(Receipt receipt, const Tries& tries, std::string_view reason) {
    refusable_.push_back({ops_.size(), receipt.sequence, tries});
    add(0, Nack{.stream = settings_.stream,
                .consumer = settings_.consumer,
                .receipt = receipt,
                .reason = keep(relay::stored_reason(reason)),
                .last = true});
  }
  void extend(HandoutNumber number, Receipt receipt, Duration lease) {
    add(number, Extend{settings_.stream, settings_.consumer, receipt, lease});
  }
  void note_tries(Sequence sequence, const Tries& tries, std::string name) {
    refusable_.push_back({ops_.size(), sequence, tries});
    std::string value = base::format("{} {}", tries.failed, tries.first_ms);
    add(0, Set{.name = keep(std::move(name)),
               .value = keep(std::move(value)),
               .mode = SetMode::kAlways,
               .expiry = {.kind = Expiry::Kind::kAfter, .after = settings_.attempts_kept}});
  }
  void forget_tries(std::string name) { add(0, Unset{.name = keep(std::move(name))}); }
  // A receive would make a consumer that is not there with settings of its own: after the stream
  // was deleted and made again.
  void receive(std::uint32_t room, Duration lease) {
    add(0, CreateConsumer{settings_.stream, settings_.consumer,
                          workflow_consumer(settings_.dead_letters)});
    const auto max = std::min<std::uint32_t>(room, limits::kReceiveMax);
    add(0, Receive{settings_.stream, settings_.consumer, max, lease, settings_.owner});
  }

  // Of a claim.
  std::size_t say(Op op) {
    add(0, op);
    return ops_.size() - 1;
  }

  [[nodiscard]] const std::vector<Op>& ops() const { return ops_; }
  // Operations that a quota may refuse, and what must be known then.
  struct Refusable {
    std::size_t place;
    Sequence sequence;
    Tries tries;
  };
  [[nodiscard]] const std::vector<Refusable>& refusable() const { return refusable_; }
  // Which hand-out an extend is for; 0: something else.
  [[nodiscard]] HandoutNumber extended(std::size_t place) const { return extended_[place]; }

 private:
  void add(HandoutNumber extended, Op op) {
    ops_.push_back(op);
    extended_.push_back(extended);
  }
  std::string_view keep(std::string text) { return texts_.emplace_back(std::move(text)); }

  const StreamSourceSettings& settings_;
  std::vector<Op> ops_;
  std::vector<HandoutNumber> extended_;
  std::vector<Refusable> refusable_;
  std::deque<std::string> texts_;  // they lie still
};

}  // namespace hapax::delivery
