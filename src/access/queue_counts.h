// What was asked of one queue and what is remembered for it: numbers that can be added up, whoever
// counted them, and that a register of the store can hold.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <hapax/time.h>

namespace hapax::access {

class QueueCounts {
 public:
  struct Asked {
    std::uint64_t checks = 0;  // that were fresh or a duplicate
    std::uint64_t duplicates = 0;
    friend bool operator==(const Asked&, const Asked&) = default;
  };
  // Keys whose time ends within a slice of time: those that end together are counted together.
  struct Slice {
    std::int64_t start_ms = 0;
    std::int64_t width_ms = 0;
    [[nodiscard]] Time start() const { return time_from_ms(start_ms); }
    [[nodiscard]] bool is_over(Time now) const {
      return start() != Time::max() && start() + Duration{width_ms} <= now;
    }
    friend auto operator<=>(const Slice&, const Slice&) = default;
  };
  struct Keys {
    std::uint64_t count = 0;
    std::uint64_t bytes = 0;
    friend bool operator==(const Keys&, const Keys&) = default;
  };

  void asked(const Asked& more, Time when);
  // Remembered from `when` on until `end`.
  void remembered(const Keys& more, Time end, Time when);

  void add(const QueueCounts& other);
  void take(const QueueCounts& other);  // REQUIRES: it was added.
  // What is over goes: keys at their end, hours after a day.
  void forget(Time now);

  [[nodiscard]] bool empty() const { return in_all_.checks == 0 && slices_.empty(); }
  [[nodiscard]] const Asked& in_all() const { return in_all_; }
  [[nodiscard]] Asked last_24h(Time now) const;
  [[nodiscard]] Keys keys(Time now) const;
  [[nodiscard]] const std::map<Slice, Keys>& slices() const { return slices_; }
  [[nodiscard]] Time latest_end() const;

  [[nodiscard]] std::string text() const;
  // Nothing if it is none.
  [[nodiscard]] static std::optional<QueueCounts> parse(std::string_view text);

 private:
  Asked in_all_;
  std::map<std::int64_t, Asked> hours_;  // since 1970
  std::map<Slice, Keys> slices_;
};

}  // namespace hapax::access
