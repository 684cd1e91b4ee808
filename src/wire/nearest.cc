#include "wire/nearest.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace hapax::wire {

namespace {

constexpr std::size_t kWordMax = 64;  // the distance costs the product of the lengths

// Insertions, deletions and replacements that make one word of the other.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::optional<std::string_view> nearest(std::string_view word,
                                        std::span<const std::string_view> known) {
  if (word.size() > kWordMax) return std::nullopt;
  std::optional<std::string_view> best;
  std::size_t best_distance = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string_view candidate : known) {
    const std::size_t away = distance(word, candidate);
    if (away >= best_distance) continue;
    best_distance = away;
    best = candidate;
  }
  return best;
}

std::string suggestion(std::string_view word, std::span<const std::string_view> known) {
  if (const auto close = nearest(word, known)) {
    return "; did you mean '" + std::string(*close) + "'?";
  }
  std::string all;
  for (const std::string_view one : known) {
    all += (all.empty() ? "; known are '" : "', '") + std::string(one);
  }
  return all.empty() ? all : all + "'";
}

}  // namespace hapax::wire
