#include "workflows/delivery_rows.h"

#include <map>
#include <utility>

namespace hapax::workflows {

void DeliveryCounts::add(const EndpointFigures& one) {
  attempts += one.attempts();
  repeated += one.repeated();
  delivered += one.delivered();
  retried += one.retried();
  dead += one.dead();
  unknown += one.unknown();
  pauses += one.pauses();
  if (one.is_disabled()) ++disabled;
  delivery_seconds.add(one.delivery_seconds().values());
}

namespace {

class Rows {
 public:
  explicit Rows(const DeliveryRowsAsked& asked) : asked_(asked) {}

  void add(const EndpointFigures& one) {
    if (asked_.tenant && one.tenant() != *asked_.tenant) return;
    counts_of(one).add(one);
  }

  std::vector<DeliveryRow> all() && {
    for (auto& [name, sum] : sums_) rows_.push_back(std::move(sum));
    if (rest_) rows_.push_back(*std::move(rest_));
    return std::move(rows_);
  }

 private:
  using Name = std::pair<std::string, std::string>;  // tenant, workflow

  DeliveryCounts& counts_of(const EndpointFigures& one) {
    const Name name{one.tenant(), one.workflow()};
    std::size_t& own = own_rows_[name];
    if (own < asked_.endpoints_max && has_room()) {
      ++own;
      return rows_.emplace_back(DeliveryRow{one.tenant(), one.workflow(), one.endpoint()}).counts;
    }
    const auto sum = sums_.find(name);
    if (sum != sums_.end()) return sum->second.counts;
    const std::string others(kOtherEndpoints);
    if (has_room()) {
      const DeliveryRow row{one.tenant(), one.workflow(), others};
      return sums_.emplace(name, row).first->second.counts;
    }
    if (!rest_) rest_ = DeliveryRow{{}, others, others};
    return rest_->counts;
  }
  // One row is kept free for what has none.
  [[nodiscard]] bool has_room() const { return rows_.size() + sums_.size() + 1 < kDeliveryRowsMax; }

  const DeliveryRowsAsked& asked_;
  std::vector<DeliveryRow> rows_;
  std::map<Name, std::size_t> own_rows_;
  std::map<Name, DeliveryRow> sums_;
  std::optional<DeliveryRow> rest_;
};

}  // namespace

std::vector<DeliveryRow> delivery_rows(const EachEndpoint& each, const DeliveryRowsAsked& asked) {
  Rows rows(asked);
  each([&](const EndpointFigures& one) { rows.add(one); });
  return std::move(rows).all();
}

}  // namespace hapax::workflows
