// The jq program of one workflow, over the pool that all workflows share.
#pragma once

#include <memory>
#include <string>

#include <hapax/result.h>

#include "delivery/transforming.h"
#include "delivery/workflow.h"
#include "transform/pool.h"

namespace hapax::workflows {

class JqTransform final : public delivery::Transforming {
 public:
  // Waits until it is compiled. The pool outlives it. kInvalidArgument: the program has a fault,
  // with its place.
  [[nodiscard]] static Result<std::unique_ptr<JqTransform>> make(
      transform::TransformPool& pool, const delivery::TransformSettings& settings);
  ~JqTransform() override { pool_.forget(program_); }

  Status start(const std::string& payload, Time time, Done done) override;

 private:
  JqTransform(transform::TransformPool& pool, transform::ProgramId program)
      : pool_(pool), program_(program) {}

  transform::TransformPool& pool_;
  const transform::ProgramId program_;
};

}  // namespace hapax::workflows
