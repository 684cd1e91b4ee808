// How often things happened, over many runs: a suite in which something never happened has not
// tested it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace hapax::sim {

class Tally {
 public:
  void add(std::string_view what, std::uint64_t count = 1) {
    const auto found = counts_.find(what);
    if (found != counts_.end()) {
      found->second += count;
    } else {
      counts_.emplace(what, count);
    }
  }
  void add(const Tally& other) {
    for (const auto& [what, count] : other.counts_) add(what, count);
  }
  [[nodiscard]] std::uint64_t operator[](std::string_view what) const {
    const auto found = counts_.find(what);
    return found == counts_.end() ? 0 : found->second;
  }
  [[nodiscard]] const std::map<std::string, std::uint64_t, std::less<>>& all() const {
    return counts_;
  }

 private:
  std::map<std::string, std::uint64_t, std::less<>> counts_;
};

}  // namespace hapax::sim
