// What commands share that act on many things one after the other: how fast, since when, how far.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include <hapax/result.h>

namespace hapax::cli {

// "50/s" or "50".
[[nodiscard]] Result<std::uint32_t> rate_of(std::string_view text);
// A span before now ("2h"), or a time of RFC 3339: as milliseconds since 1970. `option` is how the
// error names it.
[[nodiscard]] Result<std::int64_t> moment_of(std::string_view option, const std::string& text);

class Pace {
 public:
  // `what` ends the line of progress: "published again". A rate of 0 has no pause.
  Pace(std::size_t all, std::uint32_t rate, std::string_view what);

  // How many to do in one step.
  [[nodiscard]] std::size_t step() const { return step_; }
  // Returns when the step that begins with that one is due.
  void wait_for(std::size_t at) const;
  // How far it is: a bar on a terminal, otherwise a line a second.
  void tell(std::uint64_t done);
  // Nothing more is told: ends the line of the bar.
  void end();

 private:
  const std::size_t all_;
  const std::uint32_t rate_;
  const std::size_t step_;
  const std::string what_;
  const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point told_ = begun_;
  bool drawn_ = false;  // a bar, whose line is not ended
};

}  // namespace hapax::cli
