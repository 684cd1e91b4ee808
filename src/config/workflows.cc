#include "config/workflows.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/format.h"
#include "config/load.h"
#include "config/node_of_json.h"
#include "config/publish.h"
#include "config/workflow_keys.h"
#include "config/workflow_maker.h"
#include "delivery/workflow_check.h"
#include "wire/strict_json.h"

namespace hapax::config {

namespace {

constexpr std::size_t kWorkflowsMax = 10'000;
const std::string kOfAlerts = "begins with 'alerts.', as only the workflows of alerts do";

// A term of delivery may have been written with the defaults.
Place place_of_term(const Given& given, const std::string& workflow, const std::string& path) {
  const std::string whole = workflow + "." + path;
  if (!given.contains(whole) && given.contains(path)) return given.find(path)->second;
  // An element of a list has no place of its own, but its id does.
  return place_of(given, given.contains(whole.substr(0, whole.find('.', workflow.size() + 1)))
                             ? whole
                             : workflow + ".id");
}

std::map<std::string, ShownValue> shown_values(const delivery::Workflow& workflow) {
  WrittenWorkflow written = write_workflow(workflow);
  return values_by_path([&](Keys& keys) { describe_workflow(keys, written); });
}

struct MadeWorkflow {
  std::string path;
  std::size_t index;  // among the workflows that were made
};

std::vector<MadeWorkflow> make_all(Config& config, const Given& given, ConfigFindings& findings) {
  std::vector<MadeWorkflow> made;
  for (std::size_t i = 0; i < config.written_workflows.size(); ++i) {
    const std::string path = base::format("workflows.{}", i);
    if (!findings.understood(path)) continue;
    auto workflow =
        make_workflow(config.written_workflows[i], config.delivery, path, given, findings);
    if (!workflow) continue;
    if (alerts::carries_alerts(workflow->id.text())) {
      findings.error(place_of(given, path + ".id"), path + ".id " + kOfAlerts);
      continue;
    }
    made.push_back({path, config.workflows.size()});
    config.workflows.push_back(*std::move(workflow));
  }
  return made;
}

}  // namespace

void apply_workflows(Config& config, const Given& given, ConfigFindings& findings) {
  // Terms that were not understood would make other workflows than those that were meant.
  if (!findings.understood("delivery")) return;
  if (config.written_workflows.size() > kWorkflowsMax) {
    return findings.error(place_of(given, "workflows"),
                          base::format("workflows has {} elements, at most {}",
                                       config.written_workflows.size(), kWorkflowsMax));
  }
  const std::vector<MadeWorkflow> made = make_all(config, given, findings);
  std::vector<delivery::StreamWindow> streams;
  for (const Stream& stream : config.streams) {
    streams.push_back({stream.tenant, stream.stream, stream.settings.window});
  }
  const std::span<const delivery::Workflow> all(config.workflows);
  const delivery::WorkflowIndex index(all);
  for (const MadeWorkflow& one : made) {
    const delivery::WorkflowSurroundings around{&index, streams};
    for (const auto& finding : delivery::check_workflow(all[one.index], around)) {
      const Place place = place_of_term(given, one.path, finding.path);
      std::string what = one.path + "." + finding.path + " " + finding.sentence;
      if (finding.weight == delivery::WorkflowFinding::Weight::kRefuse) {
        findings.error(place, std::move(what));
      } else {
        findings.warning(place, std::move(what));
      }
    }
  }
}

std::string to_json(const delivery::Workflow& workflow, Secrets secrets) {
  WrittenWorkflow written = write_workflow(workflow);
  const auto describe = [&](Keys& keys) { describe_workflow(keys, written); };
  return values_as_json(describe, secrets);
}

std::vector<WorkflowDifference> differences(const delivery::Workflow& before,
                                            const delivery::Workflow& after) {
  auto left = shown_values(before);
  const auto right = shown_values(after);
  std::vector<WorkflowDifference> found;
  for (const auto& [path, value] : right) {
    const ShownValue old = std::exchange(left[path], value);
    if (old.written != value.written) found.push_back({path, old.shown, value.shown});
  }
  for (const auto& [path, value] : left) {
    if (!right.contains(path)) found.push_back({path, value.shown, ""});
  }
  std::sort(found.begin(), found.end(),
            [](const auto& one, const auto& other) { return one.path < other.path; });
  return found;
}

Result<delivery::Workflow> workflow_from_json(std::string_view text) {
  HAPAX_TRY(const wire::JsonValue json, wire::read_strict_json(text));
  const Node root = node_of_json(json);
  Loaded loaded;
  WrittenWorkflow written;
  read_node(root, loaded, [&](Keys& keys) { describe_workflow(keys, written); });
  std::optional<delivery::Workflow> made;
  if (loaded.good()) made = make_workflow(written, {}, "", loaded.given, loaded.findings);
  if (made && alerts::carries_alerts(made->id.text())) {
    loaded.findings.error({}, "id " + kOfAlerts);
  }
  loaded.findings.finish();
  if (made && loaded.good()) return *std::move(made);
  std::string all;
  for (const ConfigFinding& finding : loaded.findings.errors) {
    base::append_format(all, "{}{}", all.empty() ? "" : "\n", finding.what);
  }
  return Error{Errc::kInvalidArgument, all};
}

}  // namespace hapax::config
