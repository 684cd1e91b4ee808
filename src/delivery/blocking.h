// Sinks that block, for engines.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "delivery/sink.h"
#include "ports/clock.h"
#include "relay/sink.h"

namespace hapax::delivery {

// Delivers on this thread, and says of each record what became of it. Nothing more leaves once
// `withdrawn` is set.
[[nodiscard]] std::vector<SendResult> deliver_now(relay::Sink& sink, ports::Clock& clock,
                                                  std::span<const Outgoing* const> records,
                                                  std::int64_t not_after_ms,
                                                  const std::atomic<bool>* withdrawn = nullptr);

// Blocks whoever starts it.
class InlineSink final : public Sink {
 public:
  InlineSink(relay::Sink& sink, ports::Clock& clock, std::size_t batch_max)
      : sink_(sink), clock_(clock), batch_max_(batch_max) {}

  [[nodiscard]] std::size_t batch_max() const override { return batch_max_; }
  void start(std::span<const Outgoing* const> records, std::int64_t not_after_ms,
             Done done) override {
    done(deliver_now(sink_, clock_, records, not_after_ms));
  }

 private:
  relay::Sink& sink_;
  ports::Clock& clock_;
  const std::size_t batch_max_;
};

}  // namespace hapax::delivery
