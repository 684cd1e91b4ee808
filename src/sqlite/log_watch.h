// How a relay of an SQLite file sleeps: naps that grow while nothing comes, until somebody writes
// to the file's log, or another thread wakes it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <hapax/time.h>

namespace hapax::sqlite {

class LogWatch {
 public:
  // The log of the file exists while a connection to it is open, so there must be one.
  explicit LogWatch(const std::string& path);
  LogWatch(const LogWatch&) = delete;
  LogWatch& operator=(const LogWatch&) = delete;
  ~LogWatch();

  // See relay::Source.
  [[nodiscard]] bool wait(Duration most);
  void nudge();
  void wake();

  void stay_up() { nap_ = Duration{0}; }                        // Something came.
  [[nodiscard]] std::uint64_t signs() const { return signs_; }  // that the log gave

 private:
  int wake_ = -1;   // eventfd
  int nudge_ = -1;  // eventfd
  int watch_ = -1;  // inotify of the file's log; -1 = there is none, and the file is looked at
  std::uint64_t signs_ = 0;
  Duration nap_{0};                                // the latest; grows while nothing comes
  std::optional<std::int64_t> asleep_since_ms_{};  // of a nap that nudges interrupted
};

}  // namespace hapax::sqlite
