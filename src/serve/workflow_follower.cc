#include "serve/workflow_follower.h"

#include <set>
#include <utility>

#include "base/format.h"
#include "delivery/workflow_runs.h"
#include "serve/workflow_removal.h"

namespace hapax::serve {

namespace {

using delivery::DeclaredIn;
using delivery::Workflow;

// What the store would know of a workflow of the file.
bool is_noted(const std::optional<StoredDeclaration>& stored, const Workflow& file) {
  if (!stored || !stored->declaration) return false;
  Declaration ours{.workflow = file};
  Declaration theirs = *stored->declaration;
  theirs.changed = ours.changed;
  theirs.changed_by = ours.changed_by;
  return text_of(ours) == text_of(theirs);
}

// Nothing of it can be read: it does not run, and can be removed.
Workflow unreadable_workflow(const WorkflowName& name) {
  Workflow workflow{.id = delivery::WorkflowId::parse(name.second).value()};
  workflow.tenant = name.first;
  workflow.declared_in = DeclaredIn::kApi;
  return workflow;
}

}  // namespace

WorkflowFollower::WorkflowFollower(FollowerPorts ports, WorkflowBoard& board)
    : ports_(std::move(ports)), board_(board), declarations_(ports_.store) {}

// F4
const Workflow* WorkflowFollower::Place::wanted() const {
  const Workflow* workflow = file ? &*file : nullptr;
  if (workflow == nullptr && stored && stored->declaration && !stored->is_removing() &&
      stored->declaration->workflow.declared_in == DeclaredIn::kApi) {
    workflow = &stored->declaration->workflow;
  }
  return workflow != nullptr && !delivery::why_not_run(*workflow) ? workflow : nullptr;
}

void WorkflowFollower::adopt(const std::vector<Workflow>& file) {
  set_file(file);
  for (auto& [name, place] : places_) {
    if (const Workflow* wanted = place.wanted()) place.running = *wanted;
  }
  publish();
}

void WorkflowFollower::set_file(const std::vector<Workflow>& file) {
  for (auto& [name, place] : places_) place.file.reset();
  for (const Workflow& workflow : file) {
    Place& place = places_[name_of(workflow)];
    place.file = workflow;
    place.noted = false;
    place.again_ms = 0;
  }
}

Duration WorkflowFollower::step() {
  ports_.runner.tend();
  const Status looked = look();
  if (!looked && !std::exchange(store_fails_, true)) {
    ports_.log("", base::format("declarations of workflows cannot be read, and are tried again: {}",
                                looked.error().text()));
  }
  if (looked) store_fails_ = false;
  bool soon = false;
  bool failed = !looked;
  for (auto& [name, place] : places_) {
    soon = tend(name, place) || soon;
    failed = failed || place.again_ms != 0;
  }
  std::erase_if(places_, [](const auto& each) { return each.second.empty(); });
  publish();
  if (soon || !ports_.runner.is_settled()) return kSoon;
  return failed ? kAgain : kAtLeast;
}

void WorkflowFollower::publish() {
  WorkflowBoard::All all;
  for (const auto& [name, place] : places_) {
    const bool readable = place.stored && place.stored->declaration;
    if (!place.file && !place.stored) continue;
    KnownWorkflow known{.workflow = place.file ? *place.file
                                    : readable ? place.stored->declaration->workflow
                                               : unreadable_workflow(name)};
    if (place.stored) known.version = place.stored->version;
    if (place.stored && place.stored->is_removing() && !place.file) {
      known.stage = WorkflowStage::kRemoving;
    } else if (!place.file && known.workflow.declared_in == DeclaredIn::kFile) {
      known.stage = WorkflowStage::kLeftFile;
    }
    known.runs = place.running.has_value();
    known.trouble = place.trouble;
    if (place.stored && !readable && !place.file) {
      known.runs = false;
      known.trouble = "its declaration cannot be read: " + place.stored->unreadable;
    }
    all.emplace(name, std::move(known));
  }
  board_.put(std::move(all));
}

// --- what the store says

Status WorkflowFollower::look() {
  for (;;) {
    if (!followed_) HAPAX_CHECK(look_at_all());
    Declarations::Place place = *followed_;
    HAPAX_TRY(const auto news, declarations_.news(place));
    if (!news) {
      followed_.reset();
      continue;
    }
    for (const WorkflowName& name : *news) HAPAX_CHECK(look_at(name));
    followed_ = place;  // Only now: what failed is looked at again.
    if (news->empty()) return Ok{};
  }
}

// The place in the news comes first: what changes meanwhile is told again.
Status WorkflowFollower::look_at_all() {
  HAPAX_TRY(const Declarations::Place newest, declarations_.newest());
  HAPAX_TRY(const auto names, declarations_.names());
  for (const WorkflowName& name : names) HAPAX_CHECK(look_at(name));
  const std::set<WorkflowName> there(names.begin(), names.end());
  for (auto& [name, place] : places_) {
    if (!there.contains(name)) HAPAX_CHECK(look_at(name));
  }
  followed_ = newest;
  return Ok{};
}

Status WorkflowFollower::look_at(const WorkflowName& name) {
  HAPAX_TRY(auto stored, declarations_.find(name));
  Place& place = places_[name];
  const bool was_removing = place.stored && place.stored->is_removing();
  if (!stored || !stored->is_removing()) place.removing_since_ms.reset();
  if (stored && stored->is_removing() && !was_removing) {
    place.removing_since_ms = ports_.clock.steady_ms();
  }
  if (!place.stored || !stored || place.stored->version != stored->version) place.again_ms = 0;
  place.stored = std::move(stored);
  return Ok{};
}

// --- what is done about it

bool WorkflowFollower::tend(const WorkflowName& name, Place& place) {
  if (ports_.clock.steady_ms() < place.again_ms) return false;
  place.again_ms = 0;
  run_wanted(name, place);
  if (!followed_) return false;  // Nobody knows what the store says.
  if (place.file && place.stored && place.stored->is_removing()) place.noted = false;  // F4
  if (place.stored && place.stored->is_removing() && !place.file) {
    const Status removed = remove(name, place);
    tell(name, place, place.store_trouble, removed);
    return place.stored.has_value() && place.again_ms == 0;
  }
  if (place.file && !place.noted) {
    const Status noted = note(name, place);
    tell(name, place, place.store_trouble, noted);
    return !place.noted && place.again_ms == 0;
  }
  return false;
}

void WorkflowFollower::run_wanted(const WorkflowName& name, Place& place) {
  const Workflow* const wanted = place.wanted();
  if (wanted == nullptr) {
    if (place.running) ports_.runner.remove(name);
    place.running.reset();
    place.trouble.clear();
    return;
  }
  if (place.running && *place.running == *wanted) return place.trouble.clear();
  const Status put = ports_.runner.put(*wanted);
  if (put) place.running = *wanted;
  tell(name, place, place.trouble, put);
}

void WorkflowFollower::tell(const WorkflowName& name, Place& place, std::string& told,
                            const Status& status) {
  if (status) return told.clear();
  place.again_ms = ports_.clock.steady_ms() + kAgain.count();
  std::string trouble = status.error().text();
  if (told != trouble) ports_.log(name.second, trouble);
  told = std::move(trouble);
}

// Written once for each change of the file, however others change it: processes whose files differ
// would write against each other without end.
Status WorkflowFollower::note(const WorkflowName& name, Place& place) {
  if (is_noted(place.stored, *place.file)) {
    place.noted = true;
    return Ok{};
  }
  const bool was_api = place.stored && place.stored->declaration &&
                       place.stored->declaration->workflow.declared_in == DeclaredIn::kApi;
  const Declaration declaration{.workflow = *place.file,
                                .changed = time_from_ms(ports_.clock.wall_ms()),
                                .changed_by = "the configuration"};
  const Version expected = place.stored ? place.stored->version : Version{};
  HAPAX_TRY(const auto version, declarations_.put(declaration, expected));
  if (!version) return look_at(name);
  if (was_api) {
    ports_.log(name.second, "it was declared over the API, and is the configuration's from now on");
  }
  place.stored = StoredDeclaration{.version = *version, .declaration = declaration};
  place.noted = true;
  return Ok{};
}

Status WorkflowFollower::remove(const WorkflowName& name, Place& place) {
  if (!ports_.runner.is_gone(name)) return Ok{};
  const std::int64_t since = place.removing_since_ms.value_or(0);
  if (ports_.clock.steady_ms() - since < ports_.others_end.count()) return Ok{};
  const Declaration& declaration = *place.stored->declaration;
  HAPAX_TRY(const Removal went, remove_names(ports_.store, declaration, place.stored->version));
  if (went == Removal::kUndelivered) {
    Declaration again = declaration;
    again.removing = false;
    HAPAX_TRY(const auto version, declarations_.put(again, place.stored->version));
    if (version) {
      ports_.log(name.second, "it is not removed: records came that are not delivered");
    }
  }
  return look_at(name);
}

}  // namespace hapax::serve
