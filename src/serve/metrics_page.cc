#include "serve/metrics_page.h"

#include <chrono>

#include "base/tenant_frame.h"
#include "metrics/page.h"
#include "serve/delivery_metrics.h"

namespace hapax::serve {

namespace {

using metrics::Labels;
using metrics::Page;

constexpr std::uint64_t kIdBytes = 48;  // of a remembered id, see ARCHITECTURE.md

class Writer {
 public:
  Writer(const MetricsSources& sources, const std::optional<std::string>& tenant)
      : sources_(sources), survey_(sources.survey.latest()), tenant_(tenant) {}

  std::string write(const net::ServerStatistics& connections) {
    build();
    queues();
    streams();
    consumers();
    deliveries();
    tenants();
    if (!tenant_) {
      verdicts();
      store();
      disk();
      doors(connections);
    }
    return page_.text();
  }

 private:
  // Of a name of the store. Nothing: it is not for whoever asks.
  [[nodiscard]] std::optional<base::StoreName> shown(std::string_view name) const {
    const base::StoreName queue = base::split_name(name);
    return !tenant_ || queue.tenant == *tenant_ ? std::optional(queue) : std::nullopt;
  }
  // With the tenant if there is one.
  static Labels labels_of(base::StoreName queue) {
    if (queue.tenant.empty()) return {{"queue", queue.name}};
    return {{"tenant", queue.tenant}, {"queue", queue.name}};
  }
  static Labels with(Labels labels, std::string_view name, std::string_view value) {
    labels.emplace_back(name, value);
    return labels;
  }

  void build() {
    page_.gauge("hapax_build_info", "The version that runs.");
    page_.sample({{"version", sources_.version}}, std::uint64_t{1});
    if (!sources_.slos.empty()) {
      page_.gauge("hapax_slo_target", "What performance_slos says, in seconds and shares of 1.");
      for (const auto& [slo, target] : sources_.slos) page_.sample({{"slo", slo}}, target);
    }
    page_.gauge("hapax_ready", "1 while the server is ready, as /health/ready says.");
    page_.sample({}, sources_.health.trouble() ? std::uint64_t{0} : std::uint64_t{1});
  }

  void queues() {
    std::vector<metrics::Meter::Queue> all;
    sources_.meter.each_queue([&](const metrics::Meter::Queue& queue) {
      if (shown(queue.name)) all.push_back(queue);
    });
    page_.counter("idempotency_checks_total", "Total idempotency checks performed");
    for (const auto& queue : all) {
      for (const auto& [word, count] : queue.checks) {
        page_.sample(with(labels_of(*shown(queue.name)), "result", word), count);
      }
    }
    page_.counter("duplicate_jobs_blocked_total", "Number of duplicate jobs blocked");
    for (const auto& queue : all) page_.sample(labels_of(*shown(queue.name)), queue.duplicates);
  }

  template <class Value>
  void each_stream(const Value& value) {
    std::size_t left = metrics::kQueuesMax;
    for (const StreamStats& stream : survey_->streams) {
      const auto name = shown(stream.stream);
      if (!name || left == 0) continue;
      --left;
      page_.sample(labels_of(*name), value(stream));
    }
  }

  void dedup_storage() {
    page_.gauge("dedup_storage_size_bytes", "Size of deduplication storage in bytes");
    std::map<std::string, std::uint64_t> sizes;
    if (sources_.each_key_bytes) {
      sources_.each_key_bytes(survey_->store.log_time,
                              [&](const std::string& queue, std::uint64_t bytes) {
                                if (shown(queue)) sizes[queue] += bytes;
                              });
    }
    for (const StreamStats& stream : survey_->streams) {
      sizes[stream.stream] += stream.ids * kIdBytes;
    }
    std::size_t left = metrics::kQueuesMax;
    for (const auto& [queue, bytes] : sizes) {
      const auto name = shown(queue);
      if (!name || left == 0) continue;
      --left;
      page_.sample(labels_of(*name), bytes);
    }
  }

  void streams() {
    dedup_storage();
    page_.gauge("hapax_stream_records", "Records of a stream.");
    each_stream(records_of);
    page_.gauge("hapax_stream_bytes", "Bytes of the records of a stream.");
    each_stream([](const StreamStats& stream) { return stream.bytes; });
    page_.gauge("hapax_stream_horizon_age_seconds",
                "For how long back every id of a stream is known.");
    each_stream([&](const StreamStats& stream) {
      const auto age = std::max(survey_->store.log_time - stream.horizon, Duration{0});
      return std::chrono::duration<double>(age).count();
    });
    if (sources_.outboxes) outboxes_ = sources_.outboxes();
    if (tenant_) {
      std::erase_if(outboxes_, [this](const auto& one) { return one.tenant != *tenant_; });
    }
    page_.gauge("outbox_events_pending", "Number of pending outbox events");
    std::uint64_t pending = outbox_pending();
    for (const OutboxState& one : outboxes_) pending += one.pending;
    page_.sample({}, pending);
  }

  static std::uint64_t lag_of(const StreamStats& stream, const ConsumerStats& consumer) {
    return stream.last.value - std::min(consumer.floor.value, stream.last.value);
  }

  // What the slowest consumer of the outbox has not acked; without a consumer, all of it.
  [[nodiscard]] std::uint64_t outbox_pending() const {
    std::uint64_t pending = 0;
    for (const StreamStats& stream : survey_->streams) {
      const auto name = shown(stream.stream);
      if (!name || name->name != sources_.outbox) continue;
      std::uint64_t most = stream.consumers.empty() ? records_of(stream) : 0;
      for (const auto& consumer : stream.consumers) most = std::max(most, lag_of(stream, consumer));
      pending += most;
    }
    return pending;
  }

  template <class Value>
  void each_consumer(const Value& value) {
    std::size_t left = metrics::kQueuesMax;
    for (const StreamStats& stream : survey_->streams) {
      const auto name = shown(stream.stream);
      if (!name) continue;
      for (const ConsumerStats& consumer : stream.consumers) {
        if (left == 0) return;
        --left;
        page_.sample(with(labels_of(*name), "consumer", consumer.consumer),
                     value(stream, consumer));
      }
    }
  }

  void consumers() {
    page_.gauge("hapax_consumer_lag", "Records that a consumer has not acked.");
    each_consumer(lag_of);
    page_.gauge("hapax_consumer_in_flight", "Records that a consumer has under a lease.");
    each_consumer([](const StreamStats&, const ConsumerStats& one) { return one.in_flight; });
    page_.counter("hapax_consumer_dead_lettered_total", "Records that a consumer gave up.");
    each_consumer([](const StreamStats&, const ConsumerStats& one) { return one.dead_lettered; });
  }

  void deliveries() {
    if (sources_.each_endpoint) {
      add_deliveries(page_, workflows::delivery_rows(sources_.each_endpoint,
                                                     {tenant_, sources_.endpoints_max}));
    }
    if (sources_.backlogs != nullptr) add_backlogs(page_, *sources_.backlogs->latest(), tenant_);
    add_outboxes(page_, outboxes_);
  }

  // Of the tenants that have called.
  template <class Value>
  void each_tenant(const Value& value) {
    std::size_t left = metrics::kQueuesMax;
    for (const auto& [tenant, account] : sources_.accounts.all()) {
      if ((tenant_ && tenant != *tenant_) || left == 0) continue;
      --left;
      page_.sample({{"tenant", tenant}}, value(*account, use_of(tenant)));
    }
  }
  [[nodiscard]] TenantUse use_of(const std::string& tenant) const {
    for (const TenantUse& use : survey_->tenants) {
      if (use.tenant == tenant) return use;
    }
    return {};
  }
  // How much of a share is taken, and how large it is.
  void share(const std::string& name, const std::string& unit, const std::string& what,
             std::uint64_t TenantUse::*taken, std::uint64_t TenantShare::*max) {
    page_.gauge("hapax_tenant_" + name + unit, what + ", as counted against the limit.");
    each_tenant([&](const access::Account&, const TenantUse& use) { return use.*taken; });
    page_.gauge("hapax_tenant_" + name + "_max" + unit, "The limit as things are; 0 = none.");
    each_tenant([&](const access::Account&, const TenantUse& use) { return use.share.*max; });
  }

  void tenants() {
    share("storage", "_bytes", "Stored bytes", &TenantUse::storage_bytes,
          &TenantShare::storage_max);
    share("total", "_bytes", "Stored bytes and memory of remembered state", &TenantUse::total_bytes,
          &TenantShare::total_max);
    share("memory", "_bytes", "Memory of remembered state", &TenantUse::memory_bytes,
          &TenantShare::memory_max);
    share("streams", "", "Streams", &TenantUse::streams, &TenantShare::streams_max);
    share("transactions_open", "", "Open transactions", &TenantUse::transactions_open,
          &TenantShare::transactions_max);
    page_.gauge("hapax_tenant_connections", "Connections at once.");
    each_tenant(
        [](const access::Account& account, const TenantUse&) { return account.connections(); });
    page_.counter("hapax_tenant_refused_total", "What was refused because of a limit.");
    each_tenant([](const access::Account& account, const TenantUse& use) {
      return account.refused() + use.refused;
    });
  }

  void verdicts() {
    page_.counter("hapax_verdicts_total", "Verdicts by operation.");
    for (const auto& [names, count] : sources_.meter.verdicts()) {
      page_.sample({{"op", names.first}, {"verdict", names.second}}, count);
    }
    page_.counter("hapax_commit_failures_total", "Commits that failed as a whole.");
    page_.sample({}, sources_.meter.failures());
    page_.histogram("hapax_commit_duration_seconds",
                    "From the hand-over of a commit to its durable answer.",
                    sources_.meter.commit_seconds());
    page_.histogram("hapax_commit_operations", "Operations that travelled in one commit.",
                    sources_.meter.commit_ops());
    page_.histogram("hapax_duplicate_age_seconds", "How long after the first a duplicate came.",
                    sources_.meter.duplicate_age_seconds());
    one("hapax_near_misses_total",
        "Message ids that came again within a window after they were forgotten.",
        sources_.meter.near_misses());
  }

  void one(std::string_view name, std::string_view help, std::uint64_t value) {
    const bool total = name.ends_with("_total");
    total ? page_.counter(name, help) : page_.gauge(name, help);
    page_.sample({}, value);
  }

  void store() {
    const Statistics& now = survey_->store;
    page_.gauge("hapax_claims", "Claims by state.");
    page_.sample({{"state", "processing"}}, now.claims_open);
    page_.sample({{"state", "unknown"}}, now.claims_unknown);
    page_.sample({{"state", "settled"}}, now.claims_settled);
    one("hapax_fenced_total", "Acts refused for an old epoch, fence or receipt.", now.fenced);
    one("hapax_ids", "Message ids that are remembered.", now.ids);
    one("hapax_registers", "Registers.", now.registers);
    one("hapax_positions", "Positions of outside sources.", now.positions);
    one("hapax_transactions_open", "Transactions that are open.", now.transactions_open);
    one("hapax_streams", "Streams.", now.streams);
    page_.gauge("hapax_clock_lag_seconds",
                "How far log time is behind the wall clock; negative: ahead of it.");
    page_.sample({}, std::chrono::duration<double>(now.clock_lag).count());
    one("hapax_memory_bytes", "Memory of remembered state, as counted against the budget.",
        now.memory_bytes);
  }

  void disk() {
    const Statistics& now = survey_->store;
    one("hapax_journal_bytes", "Bytes of all segments, reserved space included.",
        now.journal_bytes);
    one("hapax_journal_segments", "Segments on disk.", now.segments);
    one("hapax_commits_total", "Commits since the start.", now.commits);
    one("hapax_batches_total", "Batches that were written and synced since the start.",
        now.batches);
    page_.histogram("hapax_fsync_duration_seconds", "How long a sync of the journal took.",
                    sources_.meter.sync_seconds());
    page_.histogram("hapax_batch_bytes", "Bytes that one sync of the journal made durable.",
                    sources_.meter.sync_bytes());
    one("hapax_snapshots_total", "Snapshots since the start.", now.snapshots);
    one("hapax_repairs", "Repairs that accepted a loss.", now.gaps);
    one("hapax_records_lost", "Payloads of records that repairs gave up.", now.records_lost);
    one("hapax_results_lost", "Results of claims and commits that repairs gave up.",
        now.results_lost);
  }

  void doors(const net::ServerStatistics& now) {
    one("hapax_connections", "Connections at once.", now.open);
    one("hapax_connections_accepted_total", "Connections since the start.", now.accepted);
    one("hapax_connections_refused_total", "Connections beyond the limit.", now.refused);
    one("hapax_connections_paused_total",
        "Times that no connection was accepted for want of file descriptors.", now.paused);
    one("hapax_received_bytes_total", "Bytes that came in.", now.bytes_in);
    one("hapax_sent_bytes_total", "Bytes that went out.", now.bytes_out);
    page_.counter("hapax_http_responses_total", "Responses over HTTP, by class of the status.");
    for (const unsigned hundred : {2U, 3U, 4U, 5U}) {
      const std::string code = std::to_string(hundred) + "xx";
      page_.sample({{"code", code}}, sources_.meter.responses(hundred));
    }
  }

  const MetricsSources& sources_;
  const std::shared_ptr<const Survey> survey_;
  const std::optional<std::string>& tenant_;
  std::vector<OutboxState> outboxes_;
  Page page_;
};

}  // namespace

std::string metrics_page(const MetricsSources& sources, const net::ServerStatistics& connections,
                         const std::optional<std::string>& tenant) {
  return Writer(sources, tenant).write(connections);
}

}  // namespace hapax::serve
