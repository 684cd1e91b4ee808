#include "workflows/preflight.h"

#include <memory>
#include <set>
#include <utility>

#include "base/format.h"
#include "delivery/workflow_runs.h"
#include "workflows/jq_transform.h"
#include "workflows/secrets.h"

namespace hapax::workflows {

namespace {

using delivery::SecretReference;
using delivery::SecretText;

std::vector<const SecretText*> all_secrets_of(const delivery::Workflow& workflow) {
  std::vector<const SecretText*> all;
  if (const auto* outbox = std::get_if<delivery::FromOutbox>(&*workflow.source)) {
    all.push_back(&outbox->database);
  }
  for (const SecretText& key : workflow.source_keys) all.push_back(&key);
  for (const delivery::EndpointSettings& endpoint : workflow.endpoints) {
    if (endpoint.http() == nullptr) continue;
    const auto texts = delivery::secret_texts_of(*endpoint.http());
    all.insert(all.end(), texts.begin(), texts.end());
  }
  return all;
}

class Preflight {
 public:
  std::vector<std::string> look_at(std::span<const delivery::Workflow> workflows) && {
    for (const delivery::Workflow& workflow : workflows) {
      if (delivery::why_not_run(workflow)) continue;
      look_at_secrets(workflow);
      if (workflow.transform) look_at_transform(workflow);
    }
    return std::move(lines_);
  }

 private:
  void tell(const delivery::Workflow& workflow, std::string_view what) {
    lines_.push_back(base::format("workflow '{}': {}", workflow.id.text(), what));
  }

  // Stored secrets are in the store of a server.
  void look_at_secrets(const delivery::Workflow& workflow) {
    std::set<std::string> seen;
    for (const SecretText* text : all_secrets_of(workflow)) {
      for (const SecretText::Piece& piece : text->pieces()) {
        const auto* reference = std::get_if<SecretReference>(&piece);
        if (reference == nullptr || reference->place == SecretReference::Place::kStored) continue;
        const bool file = reference->place == SecretReference::Place::kFile;
        const std::string written =
            base::format("${{{}:{}}}", file ? "file" : "env", reference->name);
        if (!seen.insert(written).second) continue;
        const auto alone = SecretText::parse(written);
        if (alone && reveal(*alone, {.declared_in = workflow.declared_in})) continue;
        tell(workflow, base::format("{} {}; a server without it does not start", written,
                                    file ? "cannot be read here" : "is not there"));
      }
    }
  }

  void look_at_transform(const delivery::Workflow& workflow) {
    if (!pool_) {
      auto pool = transform::TransformPool::start({});
      if (!pool) return tell(workflow, "transform.jq was not compiled: " + pool.error().detail);
      pool_ = *std::move(pool);
    }
    const auto made = JqTransform::make(*pool_, *workflow.transform);
    if (made) return;
    const bool ours = made.error().code != Errc::kInvalidArgument;
    tell(workflow, (ours ? "transform.jq was not compiled: " : "") + made.error().detail);
  }

  std::vector<std::string> lines_;
  std::unique_ptr<transform::TransformPool> pool_;
};

}  // namespace

std::vector<std::string> missing_here(std::span<const delivery::Workflow> workflows) {
  return Preflight().look_at(workflows);
}

}  // namespace hapax::workflows
