// Workflows for tests.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "delivery/workflow.h"

namespace hapax::delivery {

inline SecretText secret(std::string_view text) { return SecretText::parse(text).value(); }

inline HttpTarget http_target(std::string_view url = "https://erp.example/orders",
                              EndpointNature nature = NatureIdempotent{}) {
  HttpTarget target{WebUrl::parse(url).value()};
  target.nature = std::move(nature);
  return target;
}

// From a stream to an endpoint, with nothing to complain about.
inline Workflow sound_workflow(std::string_view id = "orders") {
  Workflow workflow{WorkflowId::parse(id).value()};
  workflow.source = FromStream{"orders"};
  workflow.endpoints = {{"", http_target()}};
  return workflow;
}

}  // namespace hapax::delivery
