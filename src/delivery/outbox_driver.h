// Runs one engine over one outbox: opens it, steps, waits, cleans, and ends in order. A database
// that is away is waited for, also at the start.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <hapax/result.h>

#include "base/mutex.h"
#include "delivery/engine.h"
#include "delivery/lane_source.h"
#include "ports/clock.h"
#include "relay/source.h"

namespace hapax::delivery {

struct DriverSettings {
  EngineSettings engine{};
  LaneSettings lanes{};
  EndpointPolicy policy{};
  std::string owner{};        // who holds the lanes, as the outbox knows it
  bool once = false;          // end when nothing is left to send
  Duration patience{15'000};  // at the end, for the answers that are under way
};

class OutboxDriver {
 public:
  // kUnavailable: it is tried again, but not with `once`. kLocked: somebody holds what will be free
  // soon. Every other error will not mend itself.
  using Open = std::function<Result<std::unique_ptr<relay::Source>>()>;
  using Log = std::function<void(std::string_view)>;
  enum class Left : std::uint8_t {
    kNothing,  // as far as this driver could see
    kSome,     // records wait: for another attempt, for their endpoint, or in lanes of others
  };

  OutboxDriver(Open open, std::unique_ptr<Sink> sink, ports::Clock& clock,
               const DriverSettings& settings, Log log);

  [[nodiscard]] Status open();
  // Until stop(), or with `once` until nothing is left to do. The error that ended it, if one did.
  [[nodiscard]] Status run();
  // From any thread: begins nothing more, waits for what is under way, gives the rest back.
  void stop();

  [[nodiscard]] EngineCounts counts() const { return engine_ ? engine_->counts() : EngineCounts{}; }
  [[nodiscard]] Left left() const { return left_; }

  // One turn of run(): how long to wait before the next one, or that it was the last.
  struct Turn {
    Duration wait{0};
    bool last = false;
  };
  [[nodiscard]] Turn turn();
  // What run() does when the turns are over.
  void end();

 private:
  [[nodiscard]] Turn open_again();
  [[nodiscard]] Turn fail(const Error& error);
  [[nodiscard]] bool is_over(const Step& step);
  [[nodiscard]] bool nothing_is_left();
  void clean();
  void tell_idleness();
  void rest(Duration span);
  void say(std::string_view text) const { log_(text); }

  const Open open_;
  ports::Clock& clock_;
  const DriverSettings settings_;
  const Log log_;
  base::Mutex mutex_;  // over outbox_ as it is made and woken, and for rests
  std::condition_variable stopped_;
  std::unique_ptr<relay::Source> outbox_;
  std::optional<LaneSource> source_;
  std::optional<Engine> engine_;
  std::unique_ptr<Sink> sink_;  // ends before the engine: records under way are the engine's
  Status ended_{Ok{}};
  Left left_ = Left::kNothing;
  Duration trouble_{0};
  std::int64_t clean_at_ms_ = 0;
  std::optional<std::int64_t> idle_since_ms_{};  // without a lane
  bool told_idle_ = false;
  std::optional<std::int64_t> others_kept_ms_{};  // until then `once` waits for lanes of others
  std::atomic<bool> stop_ = false;
};

}  // namespace hapax::delivery
