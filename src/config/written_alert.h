// An alert as a file writes it: flat, everything optional. alerts.h makes alerts::Rule of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <hapax/time.h>

#include "alerts/rule.h"
#include "config/written_workflow.h"

namespace hapax::config {

struct WrittenAlert {
  std::string id;
  std::optional<alerts::Condition> when;
  std::optional<std::uint64_t> count;
  std::optional<Duration> time;
  std::optional<std::string> share;  // "10%"
  std::optional<Duration> hold;
  std::optional<Duration> repeat;
  std::optional<std::string> tenant;
  std::vector<std::string> names;
  std::optional<bool> log;
  WrittenEndpoint endpoint;                // one without a name of its own
  std::vector<WrittenEndpoint> endpoints;  // or several, each with its name
};

}  // namespace hapax::config
