#include "workflows/figures.h"

#include <chrono>
#include <utility>

namespace hapax::workflows {

namespace {

using Kind = delivery::Settlement::Kind;

constexpr std::size_t kErrorBytesMax = 300;

}  // namespace

EndpointFigures::EndpointFigures(std::string tenant, std::string workflow, std::string endpoint)
    : tenant_(std::move(tenant)),
      workflow_(std::move(workflow)),
      endpoint_(std::move(endpoint)),
      delivery_seconds_({0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60,
                         300, 3'600}) {}

void EndpointFigures::settled(Kind kind, Duration age, std::string_view reason) {
  switch (kind) {
    case Kind::kDelivered:
      ++delivered_;
      return delivery_seconds_.observe(std::chrono::duration<double>(age).count());
    case Kind::kRetry:
      ++retried_;
      break;
    case Kind::kDead:
      ++dead_;
      break;
    case Kind::kUnknown:
      ++unknown_;
      break;
    case Kind::kDeferred:
    case Kind::kHeld:
    case Kind::kNotSent:
      break;
  }
  if (reason.empty()) return;
  const base::MutexLock lock(mutex_);
  last_error_ = reason.substr(0, kErrorBytesMax);
}

void EndpointFigures::disabled(std::string_view reason) {
  disabled_ = true;
  const base::MutexLock lock(mutex_);
  last_error_ = reason.substr(0, kErrorBytesMax);
}

std::string EndpointFigures::last_error() const {
  const base::MutexLock lock(mutex_);
  return last_error_;
}

std::shared_ptr<EndpointFigures> FiguresBoard::add(const delivery::Workflow& workflow,
                                                   const delivery::EndpointSettings& endpoint) {
  const base::MutexLock lock(mutex_);
  auto& named = named_[{workflow.tenant, workflow.id.text(), endpoint.name}];
  if (auto known = named.lock()) return known;
  auto made = std::make_shared<EndpointFigures>(workflow.tenant, workflow.id.text(), endpoint.name);
  named = made;
  all_.push_back(made);
  return made;
}

// Whoever visits may take its time: the lock is not held meanwhile.
void FiguresBoard::each(const Visit& visit) const {
  std::vector<std::shared_ptr<const EndpointFigures>> counted;
  {
    const base::MutexLock lock(mutex_);
    std::erase_if(all_, [](const auto& one) { return one.expired(); });
    std::erase_if(named_, [](const auto& one) { return one.second.expired(); });
    for (const auto& one : all_) {
      if (auto alive = one.lock()) counted.push_back(std::move(alive));
    }
  }
  for (const auto& one : counted) visit(*one);
}

}  // namespace hapax::workflows
