// Ids that came again soon after they were forgotten: the window was too short for them.
//
// The store forgets without a trace, so some ids are followed here. Which ones depends on the hash
// of the id alone: one that is followed is followed each time it comes. There is room for
// kFollowedMax; when it is full, what came too long ago is dropped, and if that is not enough only
// half of the hashes are followed from then on, and each counts twice as much. The count is exact
// while fewer ids than that come within two windows, and an estimate afterwards. Nothing the store
// decides depends on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

#include <hapax/ops.h>
#include <hapax/time.h>
#include <hapax/verdicts.h>

namespace hapax::metrics {

// For one thread at a time.
class NearMisses {
 public:
  static constexpr std::size_t kFollowedMax = 16'384;  // about 1 MiB

  struct Window {
    Duration span{};  // how long an id is remembered
    IdScope scope = IdScope::kStream;
  };
  using Windows = std::map<std::string, Window, std::less<>>;  // by stream
  // Those of all streams that forget; ids of others are not followed.
  void know(Windows windows) { windows_ = std::move(windows); }

  void told(const Append& append, const Verdict& verdict, Time now);
  [[nodiscard]] std::uint64_t count() const { return count_; }

 private:
  struct Followed {
    Time forgotten{};  // when the store forgets it
    Time over{};       // when it is no near miss any more
  };

  void thin_out(Time now);
  [[nodiscard]] bool is_followed(std::uint64_t hash) const {
    return halvings_ == 0 || hash >> (64 - halvings_) == 0;
  }

  Windows windows_;
  std::unordered_map<std::uint64_t, Followed> followed_;
  unsigned halvings_ = 0;
  std::uint64_t count_ = 0;
};

}  // namespace hapax::metrics
