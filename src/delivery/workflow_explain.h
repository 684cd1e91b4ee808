// What a workflow promises, in words: for the people who run it and for the clients it delivers to.
// It says no more than is true: over HTTP a lost answer is possible under every guarantee, and
// nobody but the client can make that harmless.
#pragma once

#include <string>
#include <vector>

#include "delivery/workflow.h"

namespace hapax::delivery {

struct ExplainedEndpoint {
  std::string name;
  std::string guarantee;      // what is kept
  std::string crash_windows;  // where a crash may fall, and what happens then
  std::string client;         // what the client must do
  std::string pauses{};       // when it is left alone; empty: it is a stream
};

struct WorkflowExplanation {
  std::string id;
  std::string route;  // from where to where
  std::string source;
  std::vector<ExplainedEndpoint> endpoints;
  std::string retries;
  std::string order;
  std::string key;
  std::string latency;
  std::string not_run{};   // why this version does not run it; empty: it does
  std::string guidance{};  // for its clients, if it says clientGuidance
};

[[nodiscard]] WorkflowExplanation explain_workflow(const Workflow& workflow);

}  // namespace hapax::delivery
