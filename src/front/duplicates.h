// How often each stream and scope met a duplicate, since the process started: in all, and within
// the last 24 hours.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include <hapax/ops.h>
#include <hapax/verdicts.h>

namespace hapax::front {

struct DuplicateCount {
  std::uint64_t in_all = 0;
  std::uint64_t last_24h = 0;
};

class Duplicates {
 public:
  // From any thread. Takes the lock only for commits with duplicates, once per run of one name.
  void count(std::span<const Op> ops, const Answer& answer);
  [[nodiscard]] DuplicateCount of(std::string_view name, Time now) const;

 private:
  struct Hours {
    std::uint64_t in_all = 0;
    std::array<std::uint64_t, 24> counts{};
    std::array<std::int64_t, 24> hours{};  // which hour since 1970 each of them counts
  };

  void add(std::string_view name, std::uint64_t count, Time when);

  mutable std::mutex mutex_;
  std::unordered_map<std::string, Hours> names_;  // guarded by mutex_
};

}  // namespace hapax::front
