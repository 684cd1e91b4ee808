#include "serve/alert_watch.h"

#include <map>
#include <utility>

#include "base/format.h"
#include "base/tenant_frame.h"
#include "base/utf8.h"
#include "workflows/own_streams.h"

namespace hapax::serve {

namespace {

using alerts::Condition;
using alerts::Subject;

}  // namespace

std::vector<alerts::Observation> RuleSight::see(const Sights& sights) {
  seen_.clear();
  switch (rule_.when) {
    case Condition::kDeadLetters:
    case Condition::kLag:
      see_backlogs(sights);
      break;
    case Condition::kRetryRate:
    case Condition::kRepeatRate:
      see_rates(sights);
      break;
    case Condition::kEndpointDisabled:
      see_disabled(sights);
      break;
    case Condition::kDuplicateRate:
      see_queues(sights);
      break;
    case Condition::kQuota:
      see_quotas(sights);
      break;
  }
  return std::exchange(seen_, {});
}

void RuleSight::add(Subject subject, double value, bool known) {
  if (base::is_utf8(subject.name)) seen_.push_back({std::move(subject), value, known});
}

void RuleSight::see_backlogs(const Sights& sights) {
  for (const Backlog& one : sights.backlogs) {
    if (!rule_.watches(one.tenant, one.workflow)) continue;
    const double value = rule_.when == Condition::kLag
                             ? std::chrono::duration<double>(one.behind).count()
                             : static_cast<double>(one.dead_letters);
    add({.tenant = one.tenant, .name = one.workflow}, value, one.known);
  }
}

void RuleSight::see_rates(const Sights& sights) {
  std::map<Subject, workflows::DeliveryCounts> by_workflow;
  sights.each_endpoint([&](const workflows::EndpointFigures& one) {
    if (alerts::carries_alerts(one.workflow())) return;
    if (!rule_.watches(one.tenant(), one.workflow())) return;
    by_workflow[{.tenant = one.tenant(), .name = one.workflow()}].add(one);
  });
  const Time now = sights.survey.store.log_time;
  for (const auto& [subject, counts] : by_workflow) {
    const bool retries = rule_.when == Condition::kRetryRate;
    shares_.see(subject, retries ? counts.retried : counts.repeated, counts.attempts, now);
    if (const auto share = shares_.share_of(subject)) add(subject, *share);
  }
  shares_.keep_seen(now);
}

void RuleSight::see_disabled(const Sights& sights) {
  sights.each_endpoint([&](const workflows::EndpointFigures& one) {
    if (!one.is_disabled() || alerts::carries_alerts(one.workflow())) return;
    if (!rule_.watches(one.tenant(), one.workflow())) return;
    add({.tenant = one.tenant(), .name = one.workflow(), .part = one.endpoint()}, 1);
  });
}

void RuleSight::see_queues(const Sights& sights) {
  const Time now = sights.survey.store.log_time;
  sights.meter.each_queue([&](const metrics::Meter::Queue& queue) {
    const base::StoreName name = base::split_name(queue.name);
    if (!rule_.watches(name.tenant, name.name)) return;
    std::uint64_t checks = 0;
    for (const auto& [word, count] : queue.checks) checks += count;
    const Subject subject{.tenant = std::string(name.tenant), .name = std::string(name.name)};
    shares_.see(subject, queue.duplicates, checks, now);
    if (const auto share = shares_.share_of(subject)) add(subject, *share);
  });
  shares_.keep_seen(now);
}

void RuleSight::see_quotas(const Sights& sights) {
  for (const TenantUse& use : sights.survey.tenants) {
    if (!rule_.tenant.empty() && use.tenant != rule_.tenant) continue;
    const auto limit = [&](const char* name, std::uint64_t used, std::uint64_t max) {
      if (max == 0) return;
      add({.tenant = use.tenant, .name = name},
          static_cast<double>(used) / static_cast<double>(max));
    };
    limit("storage", use.storage_bytes, use.share.storage_max);
    limit("total", use.total_bytes, use.share.total_max);
    limit("memory", use.memory_bytes, use.share.memory_max);
    limit("streams", use.streams, use.share.streams_max);
  }
}

AlertWatch::AlertWatch(const std::vector<alerts::Rule>& rules, const Ports& ports) : ports_(ports) {
  for (const alerts::Rule& rule : rules) {
    alerts::Keeper::Ports keeper{.store = ports_.store_of(rule.tenant),
                                 .stream = {},
                                 .process = ports_.process,
                                 .told = {},
                                 .left_out = {}};
    if (rule.carrier) keeper.stream = workflows::events_stream_of(rule.carrier->id);
    keeper.told = [this, &rule](const alerts::Notice& notice) {
      if (rule.log) ports_.told(rule, notice);
    };
    keeper.left_out = [this, &rule](std::uint64_t count) {
      ports_.failed(rule, base::format("{} alerts are not told: {} have begun and not ended, which "
                                       "is as many as one rule keeps",
                                       count, alerts::kFiringsMax));
    };
    watched_.push_back(std::make_unique<Watched>(rule, std::move(keeper)));
  }
}

void AlertWatch::look(const Sights& sights) {
  const Time now = sights.survey.store.log_time;
  if (now == looked_) return;
  looked_ = now;
  for (const auto& one : watched_) {
    const Status looked = one->keeper.look(one->sight.see(sights), now);
    if (!looked) ports_.failed(one->keeper.rule(), looked.error().text());
  }
}

}  // namespace hapax::serve
