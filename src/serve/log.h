// The log: one line per event on standard error, as text or as JSON, made to be searched. Used from
// every thread; a line is written as a whole.
//
// A14: what callers cause has a bounded number of lines, however often they do it: an event of
// which there were kOftenMax within kOftenSpan is only counted from then on, and the number is told
// when the span is over.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <variant>

#include "base/mutex.h"
#include "config/config.h"
#include "ports/clock.h"

namespace hapax::serve {

using config::LogLevel;

class Log {
 public:
  struct Field {
    std::string_view name;
    std::variant<std::string, std::int64_t> value;
  };
  using Fields = std::initializer_list<Field>;

  Log(const config::Log& settings, ports::Clock& clock, std::FILE* to = stderr)
      : format_(settings.format), level_(settings.level), clock_(clock), to_(to) {}

  void set_level(LogLevel level) { level_ = level; }
  [[nodiscard]] bool wants(LogLevel level) const { return level >= level_.load(); }
  void write(LogLevel level, std::string_view event, Fields fields = {});
  // For what callers can cause. Events are few: they name no caller.
  static constexpr std::uint64_t kOftenMax = 20;
  static constexpr std::chrono::seconds kOftenSpan{10};
  void write_often(LogLevel level, std::string_view event, Fields fields = {});
  // Tells what was only counted, of events whose span is over; asked now and then, and at the end.
  enum class Spans : std::uint8_t { kOver, kAll };
  void tell_counted(Spans spans = Spans::kOver);
  // A line as it is written, with its newline. Nothing in it can begin another line.
  [[nodiscard]] std::string line(LogLevel level, std::string_view event, Fields fields);

 private:
  // Of an event, in the span that began when the first one was written.
  struct Often {
    LogLevel level;
    std::int64_t began_ms = 0;
    std::uint64_t count = 0;
  };

  const config::LogFormat format_;
  std::atomic<LogLevel> level_;
  ports::Clock& clock_;
  std::FILE* const to_;
  base::Mutex mutex_;
  std::map<std::string, Often, std::less<>> often_ HAPAX_GUARDED_BY(mutex_);  // those of a span
};

}  // namespace hapax::serve
