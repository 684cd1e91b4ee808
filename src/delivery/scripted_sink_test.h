// A sink that keeps what it was given until the test says what becomes of it.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "delivery/sink.h"

namespace hapax::delivery {

class ScriptedSink final : public Sink {
 public:
  struct Call {
    std::vector<const Outgoing*> records;
    std::vector<std::string> ids;
    std::int64_t not_after_ms = 0;
    Done done;
  };
  using Answer = std::function<SendResult(const Outgoing&)>;

  std::size_t batch = 1;
  Answer answers{};  // if set, start() answers at once
  std::vector<Call> calls;
  std::vector<std::string> sent;  // every id that was started, in order

  [[nodiscard]] std::size_t batch_max() const override { return batch; }
  void start(std::span<const Outgoing* const> records, std::int64_t not_after_ms,
             Done done) override {
    Call call{{records.begin(), records.end()}, {}, not_after_ms, std::move(done)};
    for (const Outgoing* record : records) {
      call.ids.push_back(record->id);
      sent.push_back(record->id);
    }
    calls.push_back(std::move(call));
    if (answers) answer(calls.size() - 1, answers);
  }

  // In order; nothing is said to have been sent behind what was not delivered, per key.
  void answer(std::size_t call, const Answer& each) {
    std::vector<SendResult> results;
    std::vector<std::string> stopped;
    for (const Outgoing* record : calls[call].records) {
      const bool behind = !record->key.empty() &&
                          std::find(stopped.begin(), stopped.end(), record->key) != stopped.end();
      results.push_back(behind ? SendResult{.outcome = SendResult::Outcome::kNotSent}
                               : each(*record));
      if (results.back().outcome != SendResult::Outcome::kDelivered) stopped.push_back(record->key);
    }
    Done done = std::move(calls[call].done);
    calls.erase(calls.begin() + static_cast<std::ptrdiff_t>(call));
    done(std::move(results));
  }
  void deliver(std::size_t call = 0) {
    answer(call, [](const Outgoing&) { return SendResult{}; });
  }
  void answer(std::size_t call, SendResult::Outcome outcome, Duration after = Duration{0}) {
    answer(call, [&](const Outgoing&) {
      return SendResult{.outcome = outcome, .answered = false, .after = after, .reason = "said so"};
    });
  }
};

}  // namespace hapax::delivery
