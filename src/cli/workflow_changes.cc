#include "cli/workflow_changes.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "base/format.h"
#include "cli/configuration.h"
#include "cli/show.h"
#include "cli/way.h"
#include "config/workflows.h"
#include "wire/json_text.h"

namespace hapax::cli {

namespace {

using wire::JsonValue;

constexpr std::chrono::milliseconds kLookAgain{100};
constexpr std::chrono::seconds kRemovalWait{60};

struct ApplyState {
  Target target;
  std::string file;
  bool dry_run = false;
  bool yes = false;
};

struct RemoveState {
  Target target;
  std::string id;
  bool drop_undelivered = false;
};

struct TestState {
  Target target;
  std::string id;
  std::string payload = "{}";
  std::string type;
  std::string key;
  std::string event_id;
  bool send = false;
};

std::string declared_path(const std::string& id, std::string_view query = {}) {
  return base::format("/api/v1/workflows/{}{}", client::encoded(id), query);
}

// Those of a file, as the server takes them. Nothing: the reason has been printed.
std::optional<std::vector<delivery::Workflow>> workflows_in(Way& way, const std::string& name) {
  const auto file = config::read_file(name);
  if (!file) {
    way.fail(kExitUsage, file.error().text());
    return std::nullopt;
  }
  const config::Loaded loaded = config::load(*file, {});
  if (!loaded.good()) {
    config::ConfigFindings errors = loaded.findings;
    errors.warnings.clear();  // The server judges by what it lets a tenant say.
    print_findings(errors);
    way.fail(kExitUsage, name + " is refused");
    return std::nullopt;
  }
  if (loaded.config.workflows.empty()) {
    way.fail(kExitUsage, name + " declares no workflow; it needs a block workflows:");
    return std::nullopt;
  }
  return loaded.config.workflows;
}

std::optional<Told> put(Way& way, const delivery::Workflow& workflow, const std::string& query) {
  return way.ask_good({.method = "PUT",
                       .path = declared_path(workflow.id.text(), query),
                       .body = config::to_json(workflow, config::Secrets::kWritten)});
}

std::string value_text(const JsonValue& difference, std::string_view name) {
  const JsonValue* value = difference.find(name);
  return value == nullptr ? "(not set)" : printable(json_of(*value));
}

void print_outcome(const JsonValue& told) {
  const std::string outcome = text_in(told, "outcome");
  const Tint tint = outcome == "unchanged" ? Tint::kFaint : Tint::kWarning;
  base::print("{}: {}\n", printable(text_in(told, "id")), tinted(tint, outcome));
  for (const JsonValue& one : list_in(told, "differences")) {
    base::print("  {}: {} -> {}\n", printable(text_in(one, "path")), value_text(one, "before"),
                value_text(one, "after"));
  }
  for (const JsonValue& one : list_in(told, "warnings")) {
    const auto* line = one.get<std::string>();
    if (line != nullptr) base::print(stderr, "  {} (warning)\n", printable(*line));
  }
}

int print_all(Way& way, const std::vector<Told>& all) {
  if (way.json()) {
    wire::JsonArray list;
    for (const Told& told : all) list.add(told.reply.body);
    base::print("{}\n", wire::JsonObject().raw("workflows", list.text()).text());
    return kExitOk;
  }
  for (const Told& told : all) print_outcome(told.json);
  return kExitOk;
}

// What would change. Nothing: one of them is refused, and nothing was changed.
std::optional<std::vector<Told>> preview(Way& way,
                                         const std::vector<delivery::Workflow>& workflows) {
  std::vector<Told> all;
  for (const delivery::Workflow& workflow : workflows) {
    auto told = put(way, workflow, "?dry_run=true");
    if (!told) return std::nullopt;
    all.push_back(*std::move(told));
  }
  return all;
}

bool asks_and_is_told_yes() {
  base::print(stderr, "apply? [y/N] ");
  const int answer = std::getchar();
  return answer == 'y' || answer == 'Y';
}

// Each is put only if it is still what the difference was shown of.
int apply_file(Way& way, const ApplyState& state) {
  const auto workflows = workflows_in(way, state.file);
  if (!workflows) return way.exit_code();
  const auto seen = preview(way, *workflows);
  if (!seen) return way.exit_code();
  if (state.dry_run) return print_all(way, *seen);
  if (!way.json()) print_all(way, *seen);
  const bool all_there = std::all_of(seen->begin(), seen->end(), [](const Told& told) {
    return text_in(told.json, "outcome") == "unchanged";
  });
  if (all_there) return way.json() ? print_all(way, *seen) : kExitOk;
  if (!state.yes) {
    if (way.json() || ::isatty(STDIN_FILENO) != 1) {
      return way.fail(kExitUsage, "nothing was changed: say --yes, or --dry-run to only look");
    }
    if (!asks_and_is_told_yes()) return way.fail(kExitFailed, "nothing was changed");
  }
  std::vector<Told> done;
  for (std::size_t i = 0; i < workflows->size(); ++i) {
    const std::string query = base::format("?version={}", number_in((*seen)[i].json, "version"));
    auto told = put(way, (*workflows)[i], query);
    if (!told) return way.exit_code();
    done.push_back(*std::move(told));
  }
  if (way.json()) return print_all(way, done);
  base::print("applied\n");
  return kExitOk;
}

int add_file(Way& way, const ApplyState& state) {
  const auto workflows = workflows_in(way, state.file);
  if (!workflows) return way.exit_code();
  std::vector<Told> done;
  for (const delivery::Workflow& workflow : *workflows) {
    auto told = put(way, workflow, "?version=0");
    if (!told) return way.exit_code();
    done.push_back(*std::move(told));
  }
  return print_all(way, done);
}

void print_request(const JsonValue& request) {
  const std::string endpoint = text_in(request, "endpoint");
  base::print("\n{}\n", endpoint.empty() ? "(the only endpoint)" : printable(endpoint));
  if (const std::string flaw = text_in(request, "flaw"); !flaw.empty()) {
    base::print("  nothing is sent: {}\n", printable(flaw));
  }
  if (const std::string stream = text_in(request, "stream"); !stream.empty()) {
    base::print("  into stream {}, as {}\n", printable(stream), text_in(request, "key"));
  } else if (request.find("method") != nullptr) {
    base::print("  {} {}\n", text_in(request, "method"), printable(text_in(request, "url")));
  }
  for (const JsonValue& header : list_in(request, "headers")) {
    const auto* pair = header.get<JsonValue::Array>();
    if (pair == nullptr || pair->size() != 2) continue;
    const auto* name = (*pair)[0].get<std::string>();
    const auto* value = (*pair)[1].get<std::string>();
    if (name != nullptr && value != nullptr) {
      base::print("  {}: {}\n", printable(*name), printable(*value));
    }
  }
  base::print("\n  {}\n", printable(bytes_in(request, "body")));
  const JsonValue* sent = request.find("sent");
  if (sent == nullptr) return;
  base::print("  sent: {}, status {}{}\n", text_in(*sent, "outcome"), number_in(*sent, "status"),
              text_in(*sent, "reason").empty() ? "" : ", " + printable(text_in(*sent, "reason")));
}

bool all_delivered(const JsonValue& told) {
  for (const JsonValue& request : list_in(told, "requests")) {
    const JsonValue* sent = request.find("sent");
    if (sent != nullptr && text_in(*sent, "outcome") != "delivered") return false;
    if (!text_in(request, "flaw").empty()) return false;
  }
  return text_in(told, "dead_letter").empty();
}

int test_workflow(Way& way, const TestState& state) {
  wire::JsonObject event;
  event.add("id", state.event_id.empty() ? "test-" + fresh_key() : state.event_id);
  event.add("payload", state.payload);
  if (!state.type.empty()) event.add("type", state.type);
  if (!state.key.empty()) event.add("key", state.key);
  const std::string path = declared_path(state.id, state.send ? "/test?send=true" : "/test");
  const auto told = way.ask_good({.method = "POST", .path = path, .body = event.text()});
  if (!told) return way.exit_code();
  if (way.json()) {
    base::print("{}\n", told->reply.body);
  } else {
    const std::string dead = text_in(told->json, "dead_letter");
    if (!dead.empty()) base::print("a dead letter: {}\n", printable(dead));
    for (const JsonValue& output : list_in(told->json, "outputs")) {
      base::print("output: {}\n", printable(bytes_in(output, "payload")));
    }
    if (dead.empty() && list_in(told->json, "outputs").empty()) base::print("filtered\n");
    for (const JsonValue& request : list_in(told->json, "requests")) print_request(request);
  }
  return all_delivered(told->json) ? kExitOk : kExitFailed;
}

void declare_test(CLI::App& workflows, int& exit_code) {
  const auto state = std::make_shared<TestState>();
  CLI::App* test = workflows.add_subcommand("test", "Show what becomes of a sample event");
  test->add_option("workflow", state->id, "Id of the workflow")->required();
  test->add_option("payload", state->payload, "Content of the event")->capture_default_str();
  test->add_option("--type", state->type, "Type of the event");
  test->add_option("--key", state->key, "Its key");
  test->add_option("--id", state->event_id, "Its id; a new one without it");
  test->add_flag("--send", state->send, "Really send it, once");
  add_target(*test, state->target);
  test->footer("Example: hapax workflows test orders-to-erp '{\"order\": 17}'");
  test->callback([state, &exit_code] {
    exit_code = on_way(state->target, [&](Way& way) { return test_workflow(way, *state); });
  });
}

int remove_workflow(Way& way, const RemoveState& state) {
  const std::string query = state.drop_undelivered ? "?drop_undelivered=true" : "";
  const auto told = way.ask_good({.method = "DELETE", .path = declared_path(state.id, query)});
  if (!told) return way.exit_code();
  const auto until = std::chrono::steady_clock::now() + kRemovalWait;
  std::string became = text_in(told->json, "state");
  while (became == "removing" && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(kLookAgain);
    const auto now = way.ask({.method = "GET", .path = declared_path(state.id)});
    if (!now) return way.exit_code();
    became = now->reply.status == 404 ? "removed" : text_in(now->json, "state");
  }
  if (way.json()) {
    base::print("{}\n", wire::JsonObject().add("id", state.id).add("state", became).text());
  } else {
    base::print("{}: {}\n", printable(state.id), became);
  }
  if (became == "removed") return kExitOk;
  if (became == "removing") return kExitLater;
  return way.fail(kExitFailed,
                  "it was not removed: records came meanwhile; look at the server's "
                  "log");
}

}  // namespace

void declare_workflow_changes(CLI::App& workflows, int& exit_code) {
  const auto of_file = [&](const std::string& name, const std::string& help,
                           int (*act)(Way&, const ApplyState&)) {
    const auto state = std::make_shared<ApplyState>();
    CLI::App* sub = workflows.add_subcommand(name, help);
    sub->add_option("file", state->file, "A configuration whose workflows: are taken")->required();
    add_target(*sub, state->target);
    sub->footer("Example: hapax workflows " + name + " workflows.yaml");
    sub->callback([state, act, &exit_code] {
      exit_code = on_way(state->target, [&](Way& way) { return act(way, *state); });
    });
    return std::pair(sub, state);
  };
  (void)of_file("add", "Declare the workflows of a file, which are new", add_file);
  const auto [apply, applied] =
      of_file("apply", "Declare or change the workflows of a file", apply_file);
  apply->add_flag("--dry-run", applied->dry_run, "Only show what would change");
  apply->add_flag("--yes", applied->yes, "Do not ask");
  declare_test(workflows, exit_code);
  const auto removed = std::make_shared<RemoveState>();
  CLI::App* remove = workflows.add_subcommand("remove", "Remove one, and what it keeps");
  remove->add_option("workflow", removed->id, "Id of the workflow")->required();
  remove->add_flag("--drop-undelivered", removed->drop_undelivered,
                   "Also while records wait or dead letters are kept, which are lost then");
  add_target(*remove, removed->target);
  remove->footer("Example: hapax workflows remove orders-to-erp");
  remove->callback([removed, &exit_code] {
    exit_code = on_way(removed->target, [&](Way& way) { return remove_workflow(way, *removed); });
  });
}

}  // namespace hapax::cli
