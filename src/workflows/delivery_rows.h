// Figures of endpoints as rows for people and for Prometheus: never more than so many, however many
// endpoints there are. What has no row of its own is in a sum, so the rows add up to everything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/histogram.h"
#include "workflows/figures.h"

namespace hapax::workflows {

inline constexpr std::string_view kOtherEndpoints = "(others)";
inline constexpr std::size_t kEndpointRowsDefault = 100;  // of one workflow
inline constexpr std::size_t kDeliveryRowsMax = 1'000;    // of all, sums included

struct DeliveryCounts {
  std::uint64_t attempts = 0;
  std::uint64_t repeated = 0;
  std::uint64_t delivered = 0;
  std::uint64_t retried = 0;
  std::uint64_t dead = 0;
  std::uint64_t unknown = 0;
  std::uint64_t pauses = 0;
  std::uint64_t disabled = 0;  // endpoints, now
  metrics::HistogramValues delivery_seconds{};

  void add(const EndpointFigures& one);
  // Shares of the attempts; 0 without any.
  [[nodiscard]] double retry_rate() const { return share(retried); }
  [[nodiscard]] double duplicate_rate() const { return share(repeated); }

 private:
  [[nodiscard]] double share(std::uint64_t part) const {
    return attempts == 0 ? 0 : static_cast<double>(part) / static_cast<double>(attempts);
  }
};

struct DeliveryRow {
  std::string tenant;
  std::string workflow;
  std::string endpoint;
  DeliveryCounts counts{};
};

struct DeliveryRowsAsked {
  std::optional<std::string> tenant{};               // of that one only
  std::size_t endpoints_max = kEndpointRowsDefault;  // rows of one workflow beside its sum
};

using EachEndpoint = std::function<void(const FiguresBoard::Visit& visit)>;

// In the order in which endpoints came, each sum behind all of them. The endpoints of a workflow
// beyond its limit are summed as `(others)` of that workflow, and those for which there is no row
// at all as `(others)` of the workflow `(others)`.
[[nodiscard]] std::vector<DeliveryRow> delivery_rows(const EachEndpoint& each,
                                                     const DeliveryRowsAsked& asked);

}  // namespace hapax::workflows
