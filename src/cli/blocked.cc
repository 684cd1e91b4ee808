// blocked: keys of a workflow whose records wait because one of theirs was given up.
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/format.h"
#include "cli/show.h"
#include "cli/store_commands.h"
#include "cli/way.h"
#include "wire/json_text.h"

namespace hapax::cli {

namespace {

using wire::JsonValue;

struct BlockedOptions {
  Target target;
  std::string workflow;
  std::string key;
  std::string reason;
  bool all = false;
};

std::string blocked_path(const BlockedOptions& options) {
  return base::format("/api/v1/workflows/{}/blocked", client::encoded(options.workflow));
}

std::string moment_in(const JsonValue& record, const std::string& name) {
  const JsonValue* at = record.find(name);
  return at == nullptr || at->get<std::monostate>() != nullptr ? "" : shown(name, *at).value;
}

int list_blocked(Way& way, const BlockedOptions& options) {
  const auto told = way.look(blocked_path(options));
  if (!told) return way.exit_code();
  if (way.json()) {
    base::print("{}\n", told->reply.body);
    return kExitOk;
  }
  Table table({"key", "stream", "sequence", "since", "until", "attempts", "reason"});
  for (const JsonValue& one : list_in(told->json, "blocked")) {
    table.add({printable(bytes_in(one, "key")), text_in(one, "stream"),
               std::to_string(number_in(one, "sequence")), moment_in(one, "since_ms"),
               moment_in(one, "until_ms"), std::to_string(number_in(one, "attempts")),
               printable(text_in(one, "reason"))});
  }
  base::print("{}", table.empty() ? "no blocked keys\n" : table.text());
  return kExitOk;
}

bool decide_one(Way& way, const BlockedOptions& options, const std::string& word,
                const std::string& key) {
  wire::JsonObject body;
  body.bytes("key", key).add("decision", word);
  if (!options.reason.empty()) body.add("reason", options.reason);
  const auto told =
      way.ask_good({.method = "POST", .path = blocked_path(options), .body = body.text()});
  if (!told) return false;
  if (way.json()) {
    base::print("{}\n", told->reply.body);
    return true;
  }
  for (const JsonValue& one : list_in(told->json, "records")) {
    base::print("{}: {} record {} of stream '{}'\n", printable(key), word,
                number_in(one, "sequence"), text_in(one, "stream"));
  }
  return true;
}

// All that are there now: what blocks its key again meanwhile is left.
int decide_all(Way& way, const BlockedOptions& options, const std::string& word) {
  const auto told = way.look(blocked_path(options));
  if (!told) return way.exit_code();
  std::vector<std::string> keys;
  for (const JsonValue& one : list_in(told->json, "blocked")) keys.push_back(bytes_in(one, "key"));
  for (const std::string& key : keys) {
    if (!decide_one(way, options, word, key)) return way.exit_code();
  }
  if (!way.json() && keys.empty()) base::print("no blocked keys\n");
  return kExitOk;
}

int decide(Way& way, const BlockedOptions& options, const std::string& word) {
  if (options.all != options.key.empty()) {
    return way.fail(kExitUsage, "name one KEY, or all of them with --all");
  }
  if (options.all) return decide_all(way, options, word);
  return decide_one(way, options, word, options.key) ? kExitOk : way.exit_code();
}

CLI::App* add_command(CLI::App& blocked, const std::string& name, const std::string& help,
                      BlockedOptions& options) {
  CLI::App* sub = blocked.add_subcommand(name, help);
  sub->add_option("workflow", options.workflow, "Id of the workflow")->required();
  return sub;
}

void declare_decision(CLI::App& blocked, int& exit_code, const std::string& word,
                      const std::string& help) {
  const auto options = std::make_shared<BlockedOptions>();
  CLI::App* sub = add_command(blocked, word, help, *options);
  sub->add_option("key", options->key, "As list shows it");
  const bool drops = word == "drop";
  if (!drops) sub->add_flag("--all", options->all, "All keys that are blocked now");
  CLI::Option* reason = sub->add_option("--reason", options->reason, "Why, for the audit");
  if (drops) reason->required();
  add_target(*sub, options->target);
  sub->footer("Example: hapax blocked " + word + " orders-to-erp order-17" +
              (drops ? " --reason 'sent by hand'" : ""));
  sub->callback([options, word, &exit_code] {
    exit_code = on_way(options->target, [&](Way& way) { return decide(way, *options, word); });
  });
}

}  // namespace

void declare_blocked(CLI::App& app, int& exit_code) {
  CLI::App* blocked =
      app.add_subcommand("blocked", "List keys that wait for a decision, and decide");
  blocked->require_subcommand(1);
  blocked->footer(
      "Example: hapax blocked list orders-to-erp\n"
      "         hapax blocked retry orders-to-erp order-17");
  const auto options = std::make_shared<BlockedOptions>();
  CLI::App* list =
      add_command(*blocked, "list", "List the keys, and what blocks each, oldest first", *options);
  add_target(*list, options->target);
  list->footer("Example: hapax blocked list orders-to-erp");
  list->callback([options, &exit_code] {
    exit_code = on_way(options->target, [&](Way& way) { return list_blocked(way, *options); });
  });
  declare_decision(*blocked, exit_code, "retry", "Send the record again, before the later ones");
  declare_decision(*blocked, exit_code, "park", "Make it a dead letter; the later ones go on");
  declare_decision(*blocked, exit_code, "drop", "Remove it for good; the later ones go on");
}

}  // namespace hapax::cli
