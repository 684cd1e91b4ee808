#include "config/alerts.h"

#include <set>
#include <utility>

#include "base/format.h"
#include "config/key_for.h"
#include "config/workflow_keys.h"
#include "config/workflow_maker.h"
#include "delivery/workflow_check.h"
#include "delivery/workflow_runs.h"

namespace hapax::config {

namespace {

using alerts::Condition;

constexpr std::size_t kAlertsMax = 100;
constexpr std::uint64_t kReminderMs = 60'000;
constexpr std::uint64_t kYearMs = std::uint64_t{365} * 24 * 3'600'000;
constexpr Duration kLagDefault{300'000};
constexpr double kRateDefault = 0.1;
constexpr double kQuotaDefault = 0.8;

// A list of its own kind: the keys of workflows have theirs.
ConfigKey names_key(std::vector<std::string>& names) {
  ConfigKey key{"names", Kind::kText,
                "Which workflows, or queues of duplicate-rate; `orders*` is all that begin so; not "
                "set: all"};
  key.put_list = [&names](const std::vector<SettingValue>& settings) {
    names.clear();
    for (const SettingValue& setting : settings) names.push_back(std::get<std::string>(setting));
  };
  key.get_list = [&names] { return std::vector<SettingValue>(names.begin(), names.end()); };
  return key;
}

class AlertMaker {
 public:
  AlertMaker(const WrittenAlert& written, std::string path, const Given& given,
             ConfigFindings& findings)
      : written_(written), path_(std::move(path)), given_(given), findings_(findings) {}

  std::optional<alerts::Rule> make(const WrittenDelivery& defaults) {
    const std::string carrier_id = std::string(alerts::kWorkflowPrefix) + written_.id;
    if (const auto id = delivery::WorkflowId::parse(carrier_id); written_.id.empty() || !id) {
      error("id", id ? "must not be empty" : id.error().detail);
      return std::nullopt;
    }
    alerts::Rule rule{.id = written_.id, .when = *written_.when};
    rule.above = threshold();
    rule.hold = written_.hold.value_or(hold_default());
    rule.repeat = written_.repeat.value_or(Duration{0});
    rule.tenant = written_.tenant.value_or("");
    rule.names = written_.names;
    rule.log = written_.log.value_or(true);
    if (rule.when == Condition::kQuota && !rule.names.empty()) error("names", "is not of quota");
    if (has_endpoints()) {
      rule.carrier = carrier(carrier_id, defaults);
    } else if (!rule.log) {
      error("log", "is false and there is no endpoint: nobody would be told");
    }
    return failed_ ? std::nullopt : std::optional(std::move(rule));
  }

 private:
  void error(const std::string& key, const std::string& what) {
    failed_ = true;
    const std::string path = path_ + "." + key;
    findings_.error(place_of(given_, path), path + " " + what);
  }
  template <class Value>
  void only_of(const std::string& key, const std::optional<Value>& value, bool fits,
               std::string_view what) {
    if (value && !fits) error(key, base::format("is only of {}", what));
  }
  [[nodiscard]] bool has_endpoints() const {
    return written_.endpoint != WrittenEndpoint{} || !written_.endpoints.empty();
  }

  double threshold() {
    const alerts::Unit unit = alerts::unit_of(*written_.when);
    only_of("count", written_.count, unit == alerts::Unit::kRecords, "dead-letters");
    only_of("time", written_.time, unit == alerts::Unit::kSeconds, "lag");
    only_of("share", written_.share, unit == alerts::Unit::kShare,
            "retry-rate, repeat-rate, duplicate-rate and quota");
    switch (unit) {
      case alerts::Unit::kRecords:
        return static_cast<double>(written_.count.value_or(0));
      case alerts::Unit::kSeconds:
        return std::chrono::duration<double>(written_.time.value_or(kLagDefault)).count();
      case alerts::Unit::kShare:
        return share();
      case alerts::Unit::kNothing:
        break;
    }
    return 0;
  }
  double share() {
    if (!written_.share) return written_.when == Condition::kQuota ? kQuotaDefault : kRateDefault;
    const auto share = parse_share(*written_.share);
    if (!share) error("share", "must be a share such as 10% or 0.1");
    return share.value_or(0);
  }
  // What is a fact at once does not need to hold.
  [[nodiscard]] Duration hold_default() const {
    const alerts::Unit unit = alerts::unit_of(*written_.when);
    const bool at_once = unit == alerts::Unit::kNothing || unit == alerts::Unit::kRecords;
    return Duration{at_once ? 0 : 60'000};
  }

  // Alerts are posted to a workflow that has no other purpose, and it delivers them.
  std::optional<delivery::Workflow> carrier(const std::string& id,
                                            const WrittenDelivery& defaults) {
    WrittenWorkflow workflow{.id = id, .tenant = written_.tenant};
    workflow.source.type = delivery::SourceType::kHttp;
    workflow.endpoint = written_.endpoint;
    workflow.endpoints = written_.endpoints;
    auto made = make_workflow(workflow, defaults, path_, given_, findings_);
    if (!made) {
      failed_ = true;
      return std::nullopt;
    }
    for (const auto& finding : delivery::check_workflow(*made, {})) {
      const bool refused = finding.weight == delivery::WorkflowFinding::Weight::kRefuse;
      // What is warned of is for whoever declares a workflow.
      if (refused) error(finding.path, finding.sentence);
    }
    if (const auto why = delivery::why_not_run(*made)) {
      error(has_list() ? "endpoints" : "endpoint", "cannot be told: the workflow of it " + *why);
    }
    return made;
  }
  [[nodiscard]] bool has_list() const { return !written_.endpoints.empty(); }

  const WrittenAlert& written_;
  const std::string path_;
  const Given& given_;
  ConfigFindings& findings_;
  bool failed_ = false;
};

}  // namespace

void describe_alert(Keys& keys, WrittenAlert& it) {
  constexpr Bounds kSpan{0, kYearMs};
  ConfigKey id = key_for("id", Kind::kName, it.id, "Its name: letters, digits, '-', '_' and '.'");
  id.required = true;
  keys.key(id);
  ConfigKey when = key_for("when", Kind::kWord, it.when, "What is watched: [alerts](alerts.md)");
  when.words = alerts::words_of(Condition{});
  when.required = true;
  keys.key(when);
  keys.key(key_for("count", Kind::kNumber, it.count,
                   "Of dead-letters: more than so many are kept; not set: 0"));
  keys.key(key_for("time", Kind::kDuration, it.time,
                   "Of lag: the oldest record waits for longer; not set: 5m", kSpan));
  keys.key(key_for("share", Kind::kText, it.share,
                   "Of rates and quota: more than this share, such as 10%; not set: 10%, of quota "
                   "80%"));
  keys.key(key_for("for", Kind::kDuration, it.hold,
                   "So long it must be so before the alert begins, and not be so before it ends; "
                   "not set: 0s of dead-letters and endpoint-disabled, otherwise 1m",
                   kSpan));
  keys.key(key_for("repeat", Kind::kDuration, it.repeat,
                   "A reminder each time it has gone on for so long; not set: none",
                   {kReminderMs, kYearMs}));
  keys.key(key_for("tenant", Kind::kText, it.tenant,
                   "Watched alone, and its streams are meant; not set: all"));
  keys.key(names_key(it.names));
  keys.key(key_for("log", Kind::kFlag, it.log, "Whether the log has it, too; not set: true"));
  Section single{"endpoint", "Where it is told, with the keys of [endpoint](#endpoint)"};
  single.table = Section::Table::kNone;
  keys.section(single, [&](Keys& in) { describe_endpoint(in, it.endpoint); });
  Section several{"endpoints", "Several of `endpoint`, with the same keys, each with a name"};
  several.table = Section::Table::kNone;
  keys.list(several, it.endpoints.size(), [&](Keys& in, std::size_t index) {
    if (index >= it.endpoints.size()) it.endpoints.resize(index + 1);
    describe_endpoint(in, it.endpoints[index]);
  });
}

void apply_alerts(Config& config, const Given& given, ConfigFindings& findings) {
  if (!findings.understood("delivery")) return;
  if (config.written_alerts.size() > kAlertsMax) {
    return findings.error(place_of(given, "alerts"),
                          base::format("alerts has {} elements, at most {}",
                                       config.written_alerts.size(), kAlertsMax));
  }
  std::set<std::string> seen;
  for (std::size_t i = 0; i < config.written_alerts.size(); ++i) {
    const std::string path = base::format("alerts.{}", i);
    const WrittenAlert& written = config.written_alerts[i];
    if (!findings.understood(path) || !written.when) continue;
    if (!seen.insert(written.id).second) {
      findings.error(place_of(given, path + ".id"),
                     base::format("{}.id is there twice: '{}'", path, written.id));
      continue;
    }
    auto rule = AlertMaker(written, path, given, findings).make(config.delivery);
    if (rule) config.alerts.push_back(*std::move(rule));
  }
}

}  // namespace hapax::config
