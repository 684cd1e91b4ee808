// workflows: how those of a server do; pause and resume; and what changes them.
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "base/format.h"
#include "cli/show.h"
#include "cli/store_commands.h"
#include "cli/way.h"
#include "cli/workflow_changes.h"

namespace hapax::cli {

namespace {

using wire::JsonValue;

constexpr std::string_view kWorkflows = "/api/v1/workflows";

std::string workflow_path(const std::string& id, std::string_view act = {}) {
  return base::format("{}/{}{}", kWorkflows, client::encoded(id), act);
}

std::string tinted_state(const std::string& state) {
  if (state == "running") return tinted(Tint::kGood, state);
  return tinted(state == "paused" || state == "waiting" ? Tint::kWarning : Tint::kFaint, state);
}

// Figures of a workflow that does not run would only be zeros.
std::string number_of(const JsonValue& object, std::string_view name) {
  return object.find(name) == nullptr ? "-" : std::to_string(number_in(object, name));
}

int list_workflows(Way& way) {
  const auto told = way.look(std::string(kWorkflows));
  if (!told) return way.exit_code();
  if (way.json()) {
    base::print("{}\n", told->reply.body);
    return kExitOk;
  }
  Table table({"workflow", "state", "waiting", "in flight", "dead letters", "why"});
  for (const JsonValue& one : list_in(told->json, "workflows")) {
    table.add({printable(text_in(one, "id")), text_in(one, "state"), number_of(one, "waiting"),
               number_of(one, "in_flight"), number_of(one, "dead_letters"),
               printable(text_in(one, "reason"))});
  }
  base::print("{}", table.empty() ? "no workflows\n" : table.text());
  return kExitOk;
}

std::string latency_of(const JsonValue& endpoint) {
  const JsonValue* const latency = endpoint.find("latency_ms");
  const JsonValue* const p99 = latency == nullptr ? nullptr : latency->find("p99");
  if (p99 == nullptr) return "-";
  const auto* real = p99->get<double>();
  return real != nullptr ? base::format("{:.1f}", *real)
                         : std::to_string(number_in(*latency, "p99"));
}

void print_endpoints(const JsonValue& workflow) {
  Table table({"endpoint", "attempts", "delivered", "retries", "dead letters", "unknown", "p99 ms",
               "last error"});
  for (const JsonValue& one : list_in(workflow, "endpoints")) {
    const std::string name = text_in(one, "name");
    table.add({name.empty() ? "(the only one)" : printable(name), number_of(one, "attempts"),
               number_of(one, "delivered"), number_of(one, "retries"),
               number_of(one, "dead_letters"), number_of(one, "unknown"), latency_of(one),
               printable(text_in(one, "last_error"))});
  }
  if (!table.empty()) base::print("\n{}", table.text());
}

int show_workflow(Way& way, const std::string& id) {
  const auto told = way.look(workflow_path(id));
  if (!told) return way.exit_code();
  if (way.json()) {
    base::print("{}\n", told->reply.body);
    return kExitOk;
  }
  base::print("{}", member_lines(told->json));
  print_endpoints(told->json);
  return kExitOk;
}

int set_paused(Way& way, const std::string& id, std::string_view act) {
  const auto told = way.ask_good({.method = "POST", .path = workflow_path(id, act)});
  if (!told) return way.exit_code();
  if (way.json()) {
    base::print("{}\n", told->reply.body);
  } else {
    base::print("{}: {}\n", printable(id), tinted_state(text_in(told->json, "state")));
  }
  return kExitOk;
}

using ActOnOne = int (*)(Way& way, const std::string& id);

void declare_one(CLI::App& workflows, int& exit_code, const std::string& name,
                 const std::string& help, ActOnOne act) {
  struct State {
    Target target;
    std::string id;
  };
  const auto state = std::make_shared<State>();
  CLI::App* sub = workflows.add_subcommand(name, help);
  sub->add_option("workflow", state->id, "Id of the workflow")->required();
  add_target(*sub, state->target);
  sub->footer("Example: hapax workflows " + name + " orders-to-erp");
  sub->callback([state, act, &exit_code] {
    exit_code = on_way(state->target, [&](Way& way) { return act(way, state->id); });
  });
}

}  // namespace

void declare_workflows(CLI::App& app, int& exit_code) {
  CLI::App* workflows =
      app.add_subcommand("workflows", "Declare, list, pause and remove workflows");
  workflows->require_subcommand(1);
  workflows->footer("Example: hapax workflows list\n         hapax workflows pause orders-to-erp");
  const auto listed = std::make_shared<Target>();
  CLI::App* list = workflows->add_subcommand("list", "Show all workflows, and how they do");
  add_target(*list, *listed);
  list->footer("Example: hapax workflows list");
  list->callback([listed, &exit_code] { exit_code = on_way(*listed, list_workflows); });
  declare_one(*workflows, exit_code, "show", "Show one, its declaration and its endpoints",
              show_workflow);
  declare_one(*workflows, exit_code, "pause", "Send nothing of it until it is resumed",
              [](Way& way, const std::string& id) { return set_paused(way, id, "/pause"); });
  declare_one(*workflows, exit_code, "resume", "Let it go on",
              [](Way& way, const std::string& id) { return set_paused(way, id, "/resume"); });
  declare_workflow_changes(*workflows, exit_code);
}

}  // namespace hapax::cli
