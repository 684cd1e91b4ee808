// Conditions in jq over payloads, run by worker processes as transforms are: no byte of libjq is in
// this process.
#pragma once

#include <memory>
#include <string>

#include <hapax/result.h>

#include "base/mutex.h"
#include "delivery/transforming.h"
#include "transform/pool.h"

namespace hapax::workflows {

class JqConditions {
 public:
  // Waits until it is compiled. The worker is started with the first one. It ends before this does.
  // kInvalidArgument: the program has a fault.
  [[nodiscard]] Result<std::unique_ptr<delivery::Transforming>> compile(const std::string& program);

 private:
  base::Mutex mutex_;
  std::unique_ptr<transform::TransformPool> pool_ HAPAX_GUARDED_BY(mutex_);
};

}  // namespace hapax::workflows
