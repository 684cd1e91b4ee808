// A running hash of everything that happened, in order. Two runs of one seed must end with the same
// one; if they do not, something in them came from outside the seed. Not for adversaries.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace hapax::sim {

class RunTrace {
 public:
  void add(std::uint64_t value) { hash_ = std::rotl(hash_ ^ value, 29) * 0x9e3779b97f4a7c15ULL; }
  void add(std::string_view bytes) {
    add(bytes.size());
    while (!bytes.empty()) {
      std::uint64_t word = 0;
      const std::size_t size = bytes.size() < sizeof word ? bytes.size() : sizeof word;
      std::memcpy(&word, bytes.data(), size);
      bytes.remove_prefix(size);
      add(word);
    }
  }
  [[nodiscard]] std::uint64_t hash() const { return hash_ ^ (hash_ >> 31); }

 private:
  std::uint64_t hash_ = 0x6a09e667f3bcc908ULL;
};

}  // namespace hapax::sim
