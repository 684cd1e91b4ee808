// claim, renew, settle, resolve, forget, status.
#include <memory>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "base/format.h"
#include "cli/op_options.h"
#include "cli/show.h"
#include "cli/store_commands.h"
#include "wire/json_text.h"

namespace hapax::cli {

namespace {

constexpr OpSubcommand kClaimCommands[] = {
    {"claim", "claim", "POST", "/claims/{scope}/{key}", "Claim the work behind a key",
     "hapax claim payments o-1 --lease 30s\n"
     "         hapax claim payments o-1 --lease 30s --on-lapse unknown"},
    {"renew", "renew", "POST", "/claims/{scope}/{key}/renew", "Renew the lease of a claim",
     "hapax renew payments o-1 1 --lease 30s"},
    {"settle", "settle", "POST", "/claims/{scope}/{key}/settle", "Finish a claim, with its result",
     "hapax settle payments o-1 1 --status 201 --body paid\n"
     "         hapax settle payments o-1 1 --outcome unknown --reason 'the bank did not answer'"},
    {"resolve", "resolve", "POST", "/claims/{scope}/{key}/resolve", "Decide an unknown outcome",
     "hapax resolve payments o-1 not_applied --reason 'asked the bank'"},
    {"forget", "forget", "DELETE", "/claims/{scope}/{key}", "Forget a key, as if it never was",
     "hapax forget payments o-1 --reason 'a test'"},
};

struct StatusOptions {
  Target target;
  std::string scope;
  std::string key;
  std::optional<std::string> group;
};

int show_status(Way& way, const Told& told, std::string_view what) {
  if (way.json()) {
    base::print("{}\n", told.reply.body);
  } else {
    base::print("{}\n{}", what, member_lines(told.json, 2));
  }
  return kExitOk;
}

// A claim first; where there is none, a message id of the stream of that name.
int run_status(Way& way, const StatusOptions& options) {
  const std::string scope = client::encoded(options.scope);
  const std::string key = client::encoded(options.key);
  const auto claim = way.ask({.method = "GET", .path = "/api/v1/claims/" + scope + "/" + key});
  if (!claim) return way.exit_code();
  const std::string name = printable(options.scope) + "/" + printable(options.key);
  if (claim->good()) return show_status(way, *claim, "claim " + name);
  if (claim->reply.status != 404) {
    way.fail(*claim);
    return way.exit_code();
  }
  const std::string group = options.group ? "?group=" + client::encoded(*options.group) : "";
  const auto id =
      way.ask({.method = "GET", .path = "/api/v1/streams/" + scope + "/ids/" + key + group});
  if (!id) return way.exit_code();
  if (id->good()) return show_status(way, *id, "message id " + name);
  if (id->reply.status != 404) {
    way.fail(*id);
    return way.exit_code();
  }
  if (way.json()) base::print("{}\n", claim->reply.body);
  return way.fail(kExitMissing, "no claim and no message id " + name + " is known");
}

}  // namespace

void declare_claims(CLI::App& app, int& exit_code) {
  for (const OpSubcommand& command : kClaimCommands) declare_op(app, command, exit_code);

  const auto options = std::make_shared<StatusOptions>();
  CLI::App* status =
      app.add_subcommand("status", "Show what is known of a claim, or of a message id");
  status->add_option("scope", options->scope, "Scope of the claim, or name of the stream")
      ->required();
  status->add_option("key", options->key, "Key of the claim, or message id")->required();
  status->add_option("--group", options->group, "Group key, where ids are unique per group");
  add_target(*status, options->target);
  status->footer("Example: hapax status payments o-1\n         hapax status orders o-1 --json");
  status->callback([options, &exit_code] {
    exit_code = on_way(options->target, [&](Way& way) { return run_status(way, *options); });
  });
}

}  // namespace hapax::cli
