#include "cli/pace.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <thread>
#include <utility>

#include <unistd.h>

#include "base/format.h"
#include "base/time_text.h"
#include "cli/span.h"
#include "host/clock.h"

namespace hapax::cli {

namespace {

constexpr std::uint32_t kRateMax = 1'000'000;
constexpr std::uint32_t kStepsPerSecond = 10;
constexpr std::chrono::milliseconds kBarEvery{100};
constexpr std::chrono::milliseconds kLineEvery{1'000};
constexpr std::size_t kBarWidth = 40;
constexpr std::size_t kStepMax = 100;  // of whatever has no pause: progress is told in between

}  // namespace

Result<std::uint32_t> rate_of(std::string_view text) {
  std::string_view digits = text;
  if (digits.ends_with("/s")) digits.remove_suffix(2);
  std::uint32_t rate = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), rate);
  const bool whole = problem == std::errc{} && end == digits.data() + digits.size();
  if (whole && rate >= 1 && rate <= kRateMax) return rate;
  return Error{
      Errc::kInvalidArgument,
      base::format("--rate {} is not a rate; expected 1/s to {}/s, such as 50/s", text, kRateMax)};
}

Result<std::int64_t> moment_of(std::string_view option, const std::string& text) {
  host::HostClock clock;
  if (const auto span = span_of(text)) return clock.wall_ms() - span->count();
  if (const auto time = base::parse_rfc3339(text)) return to_ms(*time);
  return Error{Errc::kInvalidArgument,
               base::format("{} {} is neither a span, as 2h, nor a time, as {}", option, text,
                            base::rfc3339_seconds(time_from_ms(clock.wall_ms())))};
}

Pace::Pace(std::size_t all, std::uint32_t rate, std::string_view what)
    : all_(all),
      rate_(rate),
      step_(rate == 0 ? kStepMax : std::clamp<std::size_t>(rate / kStepsPerSecond, 1, kStepMax)),
      what_(what) {}

void Pace::wait_for(std::size_t at) const {
  if (rate_ == 0) return;
  std::this_thread::sleep_until(begun_ + std::chrono::microseconds{at * 1'000'000 / rate_});
}

void Pace::tell(std::uint64_t done) {
  const auto now = std::chrono::steady_clock::now();
  const bool terminal = ::isatty(STDERR_FILENO) == 1;
  if (now - told_ < (terminal ? kBarEvery : kLineEvery)) return;
  told_ = now;
  if (!terminal) {
    base::print(stderr, "{} of {} {}\n", done, all_, what_);
    return;
  }
  const std::size_t full = all_ == 0 ? 0 : std::min<std::uint64_t>(done, all_) * kBarWidth / all_;
  base::print(stderr, "\r[{}{}] {} of {} {}", std::string(full, '#'),
              std::string(kBarWidth - full, ' '), done, all_, what_);
  drawn_ = true;
}

void Pace::end() {
  if (std::exchange(drawn_, false)) base::print(stderr, "\n");
}

}  // namespace hapax::cli
