// /metrics: everything that is counted, as Prometheus reads it.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "access/account.h"
#include "access/ledger.h"
#include "metrics/meter.h"
#include "net/server.h"
#include "serve/backlogs.h"
#include "serve/health.h"
#include "serve/outbox_survey.h"
#include "serve/survey.h"
#include "workflows/delivery_rows.h"

namespace hapax::serve {

struct MetricsSources {
  const metrics::Meter& meter;
  const access::Accounts& accounts;
  const SurveyBoard& survey;
  const Health& health;
  std::string version;
  std::string outbox;  // stream whose records are outbox events
  std::map<std::string, double> slos{};
  // Bytes of the keys of claims, and of plain keys that stand for a job, by queue.
  std::function<void(Time now, const access::Ledger::Visit& visit)> each_key_bytes{};
  // Endpoints of the workflows that run here.
  workflows::EachEndpoint each_endpoint{};
  const BacklogBoard* backlogs = nullptr;  // none: nobody looks how far behind workflows are
  std::function<std::vector<OutboxState>()> outboxes{};  // in databases; none: nobody asks them
  std::size_t endpoints_max = workflows::kEndpointRowsDefault;  // of a workflow, with series
};

// A6: With a tenant, its own figures only. Without, those of all and of the process.
[[nodiscard]] std::string metrics_page(const MetricsSources& sources,
                                       const net::ServerStatistics& connections,
                                       const std::optional<std::string>& tenant);

}  // namespace hapax::serve
