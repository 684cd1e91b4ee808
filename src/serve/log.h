// The log: one line per event on standard error, as text or as JSON, made to be searched. Used from
// every thread; a line is written as a whole.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>

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
  // A line as it is written, with its newline. Nothing in it can begin another line.
  [[nodiscard]] std::string line(LogLevel level, std::string_view event, Fields fields);

 private:
  const config::LogFormat format_;
  std::atomic<LogLevel> level_;
  ports::Clock& clock_;
  std::FILE* const to_;
};

}  // namespace hapax::serve
