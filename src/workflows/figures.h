// What is counted of the endpoints of workflows. Counted by the threads of workflows, read by any.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>

#include <hapax/time.h>

#include "base/mutex.h"
#include "delivery/endpoint_observer.h"
#include "delivery/workflow.h"
#include "metrics/histogram.h"

namespace hapax::workflows {

class EndpointFigures final : public delivery::EndpointObserver {
 public:
  EndpointFigures(std::string tenant, std::string workflow, std::string endpoint);

  void began(std::size_t records) override { attempts_ += records; }
  void settled(delivery::Settlement::Kind kind, Duration age, std::string_view reason) override;
  void paused() override { ++pauses_; }

  [[nodiscard]] const std::string& tenant() const { return tenant_; }
  [[nodiscard]] const std::string& workflow() const { return workflow_; }
  [[nodiscard]] const std::string& endpoint() const { return endpoint_; }

  [[nodiscard]] std::uint64_t attempts() const { return attempts_; }
  [[nodiscard]] std::uint64_t delivered() const { return delivered_; }
  [[nodiscard]] std::uint64_t retried() const { return retried_; }
  [[nodiscard]] std::uint64_t dead() const { return dead_; }
  [[nodiscard]] std::uint64_t unknown() const { return unknown_; }
  [[nodiscard]] std::uint64_t pauses() const { return pauses_; }
  // From the time of a record to the endpoint's confirmation.
  [[nodiscard]] const metrics::Histogram& delivery_seconds() const { return delivery_seconds_; }
  // Why the last attempt failed that did; empty: none has.
  [[nodiscard]] std::string last_error() const;

 private:
  const std::string tenant_;
  const std::string workflow_;
  const std::string endpoint_;  // its name; empty: the only one of its workflow
  std::atomic<std::uint64_t> attempts_ = 0;
  std::atomic<std::uint64_t> delivered_ = 0;
  std::atomic<std::uint64_t> retried_ = 0;
  std::atomic<std::uint64_t> dead_ = 0;
  std::atomic<std::uint64_t> unknown_ = 0;
  std::atomic<std::uint64_t> pauses_ = 0;
  metrics::Histogram delivery_seconds_;
  mutable base::Mutex mutex_;
  std::string last_error_ HAPAX_GUARDED_BY(mutex_);
};

// Of all endpoints of a process; they lie still. Filled before the workflows start.
class FiguresBoard {
 public:
  using Visit = std::function<void(const EndpointFigures&)>;

  [[nodiscard]] EndpointFigures& add(const delivery::Workflow& workflow,
                                     const delivery::EndpointSettings& endpoint) {
    return all_.emplace_back(workflow.tenant, workflow.id.text(), endpoint.name);
  }
  void each(const Visit& visit) const {
    for (const EndpointFigures& one : all_) visit(one);
  }

 private:
  std::deque<EndpointFigures> all_;
};

}  // namespace hapax::workflows
