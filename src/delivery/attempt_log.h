// The log of the attempts of a workflow: a stream of its own, of which each commit that settles
// appends one record with all attempts that ended since the one before.
//
// Z21: an attempt is in the log once at most; exactly once if the commit that settled it was
//      answered and took the log's record.
// Z22: the log never costs a delivery its settlement: what the store does not take is given up,
//      counted and told, and no attempt is kept back for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <hapax/store.h>

#include "delivery/attempt.h"
#include "delivery/attempt_record.h"
#include "ports/clock.h"

namespace hapax::delivery {

struct AttemptLogSettings {
  std::string stream;
  Duration kept{0};
  std::uint64_t bytes_max = 0;  // the oldest attempts go before their time
};

class AttemptLog {
 public:
  static constexpr std::size_t kAnswerMax = std::size_t{16} << 10;          // of one attempt
  static constexpr std::size_t kAnswersPerCommit = std::size_t{256} << 10;  // beyond that, none
  static constexpr std::size_t kReasonMax = 300;
  static constexpr std::size_t kWaitingMax = 16'000;  // attempts

  using AddOp = std::function<std::size_t(Op)>;  // to a commit; answers its place there
  using Log = std::function<void(std::string_view)>;

  // The store and the clock outlive it.
  AttemptLog(Store& store, ports::Clock& clock, AttemptLogSettings settings, Log log)
      : store_(store), clock_(clock), settings_(std::move(settings)), log_(std::move(log)) {}

  // Whether the stream is there, and a log. REQUIRES: before the first speak().
  [[nodiscard]] Status look();
  void note(std::vector<Attempt> attempts);
  // Adds what waits to a commit of the mode kEach. The operations refer to what is kept here.
  void speak(const AddOp& add);
  // What became of that commit.
  void hear(const Answer& answer);
  void hear_nothing(Errc why);
  // Whether that operation of the latest commit was the log's.
  [[nodiscard]] bool said(std::size_t place) const { return place >= first_ && place < end_; }
  // In a commit of its own: of a source that settles elsewhere.
  void write();

  [[nodiscard]] bool empty() const { return waiting_.empty(); }
  // Attempts that are not in the log, and never will be.
  [[nodiscard]] std::uint64_t given_up() const { return given_up_; }

 private:
  struct Spoken {
    std::size_t place = 0;
    std::size_t attempts = 0;
    std::string payload;
  };
  // What is said of the stream before something is appended to it.
  enum class Setup : std::uint8_t { kCreate, kConfigure, kNothing, kNotOurs };

  void hear_setup(const Verdict& verdict);
  void forget(std::string_view why);
  void drop(std::size_t attempts, std::string_view why);

  Store& store_;
  ports::Clock& clock_;
  const AttemptLogSettings settings_;
  const Log log_;
  std::vector<Attempt> waiting_;
  std::size_t answer_bytes_ = 0;  // of those
  Setup setup_ = Setup::kCreate;
  bool looked_ = false;  // of write()
  // Of the commit that is not answered yet, or the latest one.
  std::vector<Spoken> spoken_;
  std::size_t first_ = 0;
  std::size_t end_ = 0;
  std::int64_t say_at_ms_ = 0;
  std::uint64_t unsaid_ = 0;  // of those given up
  std::uint64_t given_up_ = 0;
};

}  // namespace hapax::delivery
