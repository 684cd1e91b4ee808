// The worker's loop: requests in, answers out, in order.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>

#include "jq/program.h"
#include "transform/frames.h"

namespace hapax::jq {

class JqWorker {
 public:
  JqWorker(OutputLimits limits, NoMemory no_memory) : limits_(limits), no_memory_(no_memory) {}

  // Until the pool closes its end (true), or a request makes no sense (false).
  bool serve(int from, int to);

 private:
  bool answer_all(int to);
  void answer(const transform::WorkerRequest& request);
  transform::WorkerAnswer define(const transform::DefineRequest& request);
  transform::WorkerAnswer run(const transform::RunRequest& request);
  bool flush(int to);

  OutputLimits limits_;
  NoMemory no_memory_;
  std::unordered_map<std::uint64_t, CompiledTransform> programs_;
  transform::FrameBuffer requests_;
  std::string answers_;
};

}  // namespace hapax::jq
