// explain: what workflows of a configuration promise, in words.
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/format.h"
#include "cli/commands.h"
#include "cli/configuration.h"
#include "cli/show.h"
#include "cli/store_commands.h"
#include "delivery/workflow_explain.h"
#include "wire/json_text.h"
#include "wire/nearest.h"

namespace hapax::cli {

namespace {

struct ExplainOptions {
  std::string workflow;  // empty: all
  std::string file = "hapax.yaml";
  Output output = Output::kText;
};

// A heading and a paragraph below it, in lines for a terminal.
void print_paragraph(std::string_view heading, std::string_view text) {
  constexpr std::size_t kColumns = 96;
  base::print("\n{}\n", heading);
  std::string line = " ";
  while (!text.empty()) {
    const std::size_t space = text.find(' ');
    const std::string_view word = text.substr(0, space);
    if (line.size() + 1 + word.size() > kColumns && line.size() > 1) {
      base::print("{}\n", line);
      line = " ";
    }
    base::append_format(line, " {}", word);
    text.remove_prefix(space == std::string_view::npos ? text.size() : space + 1);
  }
  base::print("{}\n", line);
}

void print_text(const delivery::WorkflowExplanation& told) {
  base::print("{}: {}\n", told.id, printable(told.route));
  if (!told.not_run.empty()) print_paragraph("Does not run", "It " + printable(told.not_run));
  print_paragraph("Source", printable(told.source));
  for (const delivery::ExplainedEndpoint& endpoint : told.endpoints) {
    const std::string of =
        endpoint.name.empty() ? "" : base::format(", {}", printable(endpoint.name));
    print_paragraph("What is guaranteed" + of, printable(endpoint.guarantee));
    print_paragraph("Which crash windows remain" + of, printable(endpoint.crash_windows));
    print_paragraph("What the client must do" + of, printable(endpoint.client));
    if (!endpoint.pauses.empty()) print_paragraph("When it is left alone" + of, endpoint.pauses);
  }
  print_paragraph("Retries", told.retries);
  print_paragraph("Order", told.order);
  print_paragraph("Key", printable(told.key));
  print_paragraph("Latency", told.latency);
  if (!told.guidance.empty()) print_paragraph("What to tell clients", printable(told.guidance));
}

std::string json_of_explanation(const delivery::WorkflowExplanation& told) {
  wire::JsonObject out;
  out.add("id", told.id).add("route", told.route).add("runs", told.not_run.empty());
  if (!told.not_run.empty()) out.add("reason", told.not_run);
  out.add("source", told.source);
  out.list("endpoints", told.endpoints,
           [](wire::JsonObject& one, const delivery::ExplainedEndpoint& endpoint) {
             one.add("endpoint", endpoint.name).add("guarantee", endpoint.guarantee);
             one.add("crash_windows", endpoint.crash_windows).add("client", endpoint.client);
             if (!endpoint.pauses.empty()) one.add("pauses", endpoint.pauses);
           });
  out.add("retries", told.retries).add("order", told.order).add("key", told.key);
  out.add("latency", told.latency);
  if (!told.guidance.empty()) out.add("client_guidance", told.guidance);
  return std::move(out).text();
}

int report_missing(const ExplainOptions& options, const config::Config& config) {
  std::vector<std::string_view> known;
  for (const delivery::Workflow& workflow : config.workflows) known.push_back(workflow.id.text());
  const std::string hint = wire::suggestion(options.workflow, known);
  (void)report({Errc::kNotFound, base::format("{} declares no workflow '{}'{}", options.file,
                                              printable(options.workflow), hint)});
  return kExitMissing;
}

int run_explain(const ExplainOptions& options) {
  const auto loaded = load_configuration(options.file);
  if (!loaded) return report(loaded.error());
  // What was refused is explained, too: it says what would hold.
  print_findings(loaded->findings);
  std::vector<delivery::WorkflowExplanation> all;
  for (const delivery::Workflow& workflow : loaded->config.workflows) {
    const bool asked = options.workflow.empty() || workflow.id.text() == options.workflow;
    if (asked) all.push_back(delivery::explain_workflow(workflow));
  }
  if (all.empty() && loaded->good() && !options.workflow.empty()) {
    return report_missing(options, loaded->config);
  }
  if (options.output == Output::kJson) {
    wire::JsonArray list;
    for (const auto& one : all) list.add(json_of_explanation(one));
    base::print("{}\n", wire::JsonObject().raw("workflows", list.text()).text());
  } else {
    for (const auto& one : all) {
      if (&one != &all.front()) base::print("\n");
      print_text(one);
    }
  }
  return loaded->good() ? kExitOk : kExitUsage;
}

}  // namespace

void declare_explain(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("explain", "Say what a workflow promises, and what not");
  const auto options = std::make_shared<ExplainOptions>();
  command->add_option("workflow", options->workflow, "Its id; all of the file if left out");
  command->add_option("--file", options->file, "Configuration file")->capture_default_str();
  command->add_flag_callback(
      "--json", [options] { options->output = Output::kJson; }, "Print JSON");
  command->footer(
      "Example: hapax explain sales-orders-to-erp\n"
      "         hapax explain --file hapax.yaml --json");
  command->callback([options, &exit_code] { exit_code = run_explain(*options); });
}

}  // namespace hapax::cli
