// What is counted of the endpoints of workflows. Counted by the threads of workflows, read by any.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <hapax/time.h>

#include "base/mutex.h"
#include "delivery/endpoint_observer.h"
#include "delivery/workflow.h"
#include "metrics/histogram.h"

namespace hapax::workflows {

class EndpointFigures final : public delivery::EndpointObserver {
 public:
  EndpointFigures(std::string tenant, std::string workflow, std::string endpoint);

  void began(std::size_t records, std::size_t repeated) override {
    attempts_ += records;
    repeated_ += repeated;
  }
  void settled(delivery::Settlement::Kind kind, Duration age, std::string_view reason) override;
  void paused() override { ++pauses_; }
  void disabled(std::string_view reason) override;
  void enabled() override { disabled_ = false; }

  [[nodiscard]] const std::string& tenant() const { return tenant_; }
  [[nodiscard]] const std::string& workflow() const { return workflow_; }
  [[nodiscard]] const std::string& endpoint() const { return endpoint_; }

  [[nodiscard]] std::uint64_t attempts() const { return attempts_; }
  // Of these, attempts under a key that was sent before.
  [[nodiscard]] std::uint64_t repeated() const { return repeated_; }
  [[nodiscard]] std::uint64_t delivered() const { return delivered_; }
  [[nodiscard]] std::uint64_t retried() const { return retried_; }
  [[nodiscard]] std::uint64_t dead() const { return dead_; }
  [[nodiscard]] std::uint64_t unknown() const { return unknown_; }
  [[nodiscard]] std::uint64_t pauses() const { return pauses_; }
  // It wants nothing any more, so nothing is sent to it.
  [[nodiscard]] bool is_disabled() const { return disabled_; }
  // From the time of a record to the endpoint's confirmation.
  [[nodiscard]] const metrics::Histogram& delivery_seconds() const { return delivery_seconds_; }
  // Why the last attempt failed that did; empty: none has.
  [[nodiscard]] std::string last_error() const;

 private:
  const std::string tenant_;
  const std::string workflow_;
  const std::string endpoint_;  // its name; empty: the only one of its workflow
  std::atomic<std::uint64_t> attempts_ = 0;
  std::atomic<std::uint64_t> repeated_ = 0;
  std::atomic<std::uint64_t> delivered_ = 0;
  std::atomic<std::uint64_t> retried_ = 0;
  std::atomic<std::uint64_t> dead_ = 0;
  std::atomic<std::uint64_t> unknown_ = 0;
  std::atomic<std::uint64_t> pauses_ = 0;
  std::atomic<bool> disabled_ = false;
  metrics::Histogram delivery_seconds_;
  mutable base::Mutex mutex_;
  std::string last_error_ HAPAX_GUARDED_BY(mutex_);
};

// Of all endpoints of a process, for as long as somebody counts. From any thread.
class FiguresBoard {
 public:
  using Visit = std::function<void(const EndpointFigures&)>;

  // A workflow that is replaced goes on counting where it was.
  [[nodiscard]] std::shared_ptr<EndpointFigures> add(const delivery::Workflow& workflow,
                                                     const delivery::EndpointSettings& endpoint);
  // In the order in which they were added.
  void each(const Visit& visit) const;

 private:
  using Name = std::tuple<std::string, std::string, std::string>;  // tenant, workflow, endpoint

  mutable base::Mutex mutex_;
  // Those that nobody counts in any more go when somebody visits.
  mutable std::vector<std::weak_ptr<EndpointFigures>> all_ HAPAX_GUARDED_BY(mutex_);
  mutable std::map<Name, std::weak_ptr<EndpointFigures>> named_ HAPAX_GUARDED_BY(mutex_);
};

}  // namespace hapax::workflows
