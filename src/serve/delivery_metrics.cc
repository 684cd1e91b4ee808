#include "serve/delivery_metrics.h"

#include <chrono>
#include <cstdint>
#include <string_view>

#include "metrics/meter.h"

namespace hapax::serve {

namespace {

using Counts = workflows::DeliveryCounts;

metrics::Labels workflow_labels(std::string_view tenant, std::string_view workflow) {
  metrics::Labels labels;
  if (!tenant.empty()) labels.emplace_back("tenant", tenant);
  labels.emplace_back("workflow", workflow);
  return labels;
}

template <class Value>
void each_row(metrics::Page& page, const std::vector<workflows::DeliveryRow>& rows,
              const Value& value) {
  for (const workflows::DeliveryRow& row : rows) {
    metrics::Labels labels = workflow_labels(row.tenant, row.workflow);
    labels.emplace_back("endpoint", row.endpoint);
    page.sample(labels, value(row.counts));
  }
}

struct Counter {
  std::string_view name;
  std::string_view help;
  std::uint64_t Counts::*of;
};
constexpr Counter kCounters[] = {
    {"hapax_delivery_attempts_total", "Attempts to send a record.", &Counts::attempts},
    {"hapax_delivery_repeats_total", "Of these, attempts under a key that was sent before.",
     &Counts::repeated},
    {"hapax_delivery_delivered_total", "Records that the endpoint confirmed.", &Counts::delivered},
    {"hapax_delivery_retries_total", "Attempts that failed and are repeated.", &Counts::retried},
    {"hapax_delivery_dead_letters_total", "Records that were given up.", &Counts::dead},
    {"hapax_delivery_unknown_total", "Records of which nobody knows whether they arrived.",
     &Counts::unknown},
    {"hapax_delivery_pauses_total", "Times that an endpoint was left alone because it failed.",
     &Counts::pauses},
};

}  // namespace

void add_deliveries(metrics::Page& page, const std::vector<workflows::DeliveryRow>& rows) {
  for (const Counter& counter : kCounters) {
    page.counter(counter.name, counter.help);
    each_row(page, rows, [&](const Counts& counts) { return counts.*counter.of; });
  }
  page.gauge("hapax_delivery_endpoints_disabled",
             "Endpoints to which nothing is sent because they want nothing any more.");
  each_row(page, rows, [](const Counts& counts) { return counts.disabled; });
  page.histogram("hapax_delivery_duration_seconds",
                 "From the time of a record to the confirmation of the endpoint.");
  each_row(page, rows, [](const Counts& counts) -> const metrics::HistogramValues& {
    return counts.delivery_seconds;
  });
}

void add_backlogs(metrics::Page& page, const BacklogBoard::All& backlogs,
                  const std::optional<std::string>& tenant) {
  const auto each = [&](const auto& value) {
    std::size_t left = metrics::kQueuesMax;
    for (const Backlog& one : backlogs) {
      if (!one.known || (tenant && one.tenant != *tenant) || left == 0) continue;
      --left;
      page.sample(workflow_labels(one.tenant, one.workflow), value(one));
    }
  };
  page.gauge("hapax_delivery_lag_records", "Records of a workflow that are not acknowledged.");
  each([](const Backlog& one) { return one.records; });
  page.gauge("hapax_delivery_lag_seconds", "For how long the oldest of them has waited.");
  each([](const Backlog& one) { return std::chrono::duration<double>(one.behind).count(); });
  page.gauge("hapax_delivery_dead_letters", "Dead letters of a workflow that are kept.");
  each([](const Backlog& one) { return one.dead_letters; });
}

void add_outboxes(metrics::Page& page, const std::vector<OutboxState>& outboxes) {
  if (outboxes.empty()) return;
  page.gauge("hapax_outbox_reachable",
             "1 while the database of an outbox answers; 0: its figures are the last ones.");
  std::size_t left = metrics::kQueuesMax;
  for (const OutboxState& one : outboxes) {
    if (left-- == 0) break;
    page.sample(workflow_labels(one.tenant, one.workflow),
                one.trouble.empty() ? std::uint64_t{1} : std::uint64_t{0});
  }
}

}  // namespace hapax::serve
