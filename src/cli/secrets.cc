// secrets: store, list and remove those of a tenant.
#include <memory>
#include <string>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "base/format.h"
#include "cli/show.h"
#include "cli/store_commands.h"
#include "cli/way.h"
#include "wire/json_text.h"

namespace hapax::cli {

namespace {

std::string secret_path(const std::string& name) {
  return base::format("/api/v1/secrets/{}", client::encoded(name));
}

int list_secrets(Way& way) {
  const auto told = way.look("/api/v1/secrets");
  if (!told) return way.exit_code();
  if (way.json()) {
    base::print("{}\n", told->reply.body);
    return kExitOk;
  }
  Table table({"secret", "changed"});
  for (const wire::JsonValue& one : list_in(told->json, "secrets")) {
    table.add(
        {printable(text_in(one, "name")), shown("changed_ms", *one.find("changed_ms")).value});
  }
  base::print("{}", table.empty() ? "no secrets\n" : table.text());
  return kExitOk;
}

int say_done(Way& way, const std::optional<Told>& told, const std::string& line) {
  if (!told) return way.exit_code();
  if (way.json()) {
    base::print("{}\n", told->reply.body);
  } else {
    base::print("{}\n", line);
  }
  return kExitOk;
}

// A value in the arguments would be seen by every user of the machine, and stay in the history of
// the shell.
int set_secret(Way& way, const std::string& name, const std::string& file) {
  if (file == "-" && ::isatty(STDIN_FILENO) == 1) {
    base::print(stderr, "type the value, then Enter and Ctrl-D; it is shown while you type\n");
  }
  auto value = read_all(file);
  if (!value) return way.fail(kExitUsage, value.error().text());
  while (value->ends_with('\n') || value->ends_with('\r')) value->pop_back();
  const std::string body = wire::JsonObject().add("value", *value).text();
  const auto told = way.ask_good({.method = "PUT", .path = secret_path(name), .body = body});
  return say_done(way, told, base::format("{} is stored", printable(name)));
}

int remove_secret(Way& way, const std::string& name) {
  const auto told = way.ask_good({.method = "DELETE", .path = secret_path(name)});
  return say_done(way, told, base::format("{} is removed", printable(name)));
}

struct SecretState {
  Target target;
  std::string name;
  std::string file = "-";
};

}  // namespace

void declare_secrets(CLI::App& app, int& exit_code) {
  CLI::App* secrets = app.add_subcommand("secrets", "List, store and remove secrets of endpoints");
  secrets->require_subcommand(1);
  secrets->footer("Example: hapax secrets set ERP_TOKEN < erp-token");
  const auto listed = std::make_shared<SecretState>();
  CLI::App* list = secrets->add_subcommand("list", "Show their names; nobody can read a value");
  add_target(*list, listed->target);
  list->footer("Example: hapax secrets list");
  list->callback([listed, &exit_code] { exit_code = on_way(listed->target, list_secrets); });
  const auto one = [&](const std::string& name, const std::string& help) {
    const auto state = std::make_shared<SecretState>();
    CLI::App* sub = secrets->add_subcommand(name, help);
    sub->add_option("name", state->name, "Its name, as in ${secret:NAME}")->required();
    add_target(*sub, state->target);
    sub->footer("Example: hapax secrets " + name + " ERP_TOKEN" +
                (name == "set" ? " < erp-token" : ""));
    return std::pair(sub, state);
  };
  const auto [set, to_set] = one("set", "Store one, or replace its value");
  set->add_option("--file", to_set->file, "The value from a file; - for standard input");
  set->callback([state = to_set, &exit_code] {
    exit_code =
        on_way(state->target, [&](Way& way) { return set_secret(way, state->name, state->file); });
  });
  const auto [remove, to_remove] = one("remove", "Remove one; endpoints that need it wait");
  remove->callback([state = to_remove, &exit_code] {
    exit_code = on_way(state->target, [&](Way& way) { return remove_secret(way, state->name); });
  });
}

}  // namespace hapax::cli
