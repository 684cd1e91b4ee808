// The `hapax` command: arguments in, exit code out.
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/format.h"
#include "cli/commands.h"
#include "cli/store_commands.h"
#include "host/signals.h"
#include "wire/nearest.h"

// For jemalloc. Without it a thread gives back what it freed only while it allocates: after many
// slow readers have gone, the memory of their answers stayed.
extern "C" {
const char* malloc_conf = "background_thread:true";
}

namespace {

using namespace hapax::cli;

void add_json(CLI::App& command, Output& output) {
  command.add_flag_callback(
      "--json", [&output] { output = Output::kJson; }, "Print JSON");
}

struct Arguments {
  InspectOptions inspect;
  VerifyOptions verify;
  RepairOptions repair;
  DemoOptions demo;
  std::string demo_store;
  ServeOptions serve;
  CheckOptions check;
  TokenMakeOptions token_make;
  TokenListOptions token_list;
  TokenRevokeOptions token_revoke;
};

void declare_server(CLI::App& app, Arguments& arguments, int& exit_code) {
  ServeOptions& flags = arguments.serve;
  CLI::App* serve = app.add_subcommand("serve", "Serve a data folder over HTTP and RESP");
  serve->add_option("--config", flags.config, "Configuration file; the flags below win over it");
  serve->add_option("--data", flags.data, "Data folder")->default_str("./hapax-data");
  serve->add_option("--store", flags.store,
                    "postgres://… instead of a data folder: shared with other processes");
  serve->add_option("--http", flags.http, "Address of HTTP; empty for none")
      ->default_str("127.0.0.1:7171");
  serve->add_option("--resp", flags.resp, "Address of RESP; empty for none")
      ->default_str("127.0.0.1:7172");
  serve->add_option("--loops", flags.loops, "Threads for connections")
      ->check(CLI::Range(1, 64))
      ->default_str("1");
  serve->add_flag("--open-to-all", flags.open_to_all,
                  "Listen beyond this machine although nobody has to sign in");
  serve->footer(
      "Example: hapax serve\n"
      "         hapax serve --config hapax.yaml --data /var/lib/hapax\n"
      "         hapax serve --store postgres://hapax@db/hapax --resp ''");
  serve->callback([&] {
    flags.version = HAPAX_VERSION;
    exit_code = run_serve(flags);
  });

  CLI::App* check = app.add_subcommand("check", "Say what is wrong with a configuration file");
  check->add_option("file", arguments.check.file, "Configuration file");
  check->add_flag_callback(
      "--schema", [&] { arguments.check.print = CheckPrint::kSchema; },
      "Print the JSON Schema of the file instead");
  check->add_flag_callback(
      "--keys", [&] { arguments.check.print = CheckPrint::kKeys; },
      "Print tables of all keys instead, as Markdown");
  add_json(*check, arguments.check.output);
  check->footer(
      "Example: hapax check hapax.yaml\n"
      "         hapax check --schema > hapax.schema.json");
  check->callback([&] { exit_code = run_check(arguments.check); });
}

void declare_token(CLI::App& app, Arguments& arguments, int& exit_code) {
  CLI::App* token = app.add_subcommand("token", "Make, list and revoke API tokens");
  token->require_subcommand(1);
  token->footer(
      "Example: hapax token make --tenant acme --roles produce,consume --expires 90d --file "
      "tokens\n"
      "         hapax token list --file tokens\n"
      "         hapax token revoke 0123456789abcdef --file tokens");
  const auto add_file = [](CLI::App& command, std::string& file) {
    command.add_option("--file", file, "The server's file of tokens")->required();
  };

  CLI::App* make = token->add_subcommand("make", "Make a token and print it, once");
  TokenMakeOptions& wanted = arguments.token_make;
  add_file(*make, wanted.file);
  make->add_option("--tenant", wanted.tenant, "Whose streams and keys it is for")->required();
  make->add_option("--roles", wanted.roles, "Of produce, consume, admin, read-bodies")
      ->required()
      ->delimiter(',');
  make->add_option("--subject", wanted.subject, "Who will use it; the tenant's name if left out");
  make->add_option("--expires", wanted.expires, "After how long: 90d, 12h, 30m; never if left out");
  make->add_option("--note", wanted.note, "For people who read the list");
  add_json(*make, wanted.output);
  make->footer(
      "Example: hapax token make --tenant acme --roles produce --subject billing --file tokens\n"
      "         HAPAX_TOKEN=$(hapax token make --tenant acme --roles admin --file tokens)");
  make->callback([&] { exit_code = run_token_make(arguments.token_make); });

  CLI::App* list = token->add_subcommand("list", "Show the tokens of a file, without secrets");
  add_file(*list, arguments.token_list.file);
  add_json(*list, arguments.token_list.output);
  list->footer("Example: hapax token list --file tokens --json");
  list->callback([&] { exit_code = run_token_list(arguments.token_list); });

  CLI::App* revoke = token->add_subcommand("revoke", "Make a token worthless");
  revoke->add_option("id", arguments.token_revoke.id, "Its id, or the token itself")->required();
  add_file(*revoke, arguments.token_revoke.file);
  add_json(*revoke, arguments.token_revoke.output);
  revoke->footer("Example: hapax token revoke 0123456789abcdef --file tokens");
  revoke->callback([&] { exit_code = run_token_revoke(arguments.token_revoke); });
}

void declare(CLI::App& app, Arguments& arguments, int& exit_code) {
  app.set_version_flag("--version", HAPAX_VERSION, "Print the version");
  app.require_subcommand(1);
  CLI::App* help = app.add_subcommand("help", "Print this text");
  help->callback([&app] {  // App::help() would speak of this command.
    const auto formatter = app.get_formatter();
    hapax::base::print("{}",
                       formatter->make_help(&app, app.get_name(), CLI::AppFormatMode::Normal));
  });
  CLI::App* version = app.add_subcommand("version", "Print the version");
  version->callback([] { hapax::base::print("{}\n", HAPAX_VERSION); });
  app.footer(
      "Example: hapax demo --orders 1000\n         hapax append orders tea --id o-1\n"
      "Exit codes: 0 ok, 1 no, 64 wrong arguments, 65 data folder damaged, 66 not found,\n"
      "            69 nobody answers, 73 conflict, 74 disk failed, 75 try again, 77 not allowed");

  CLI::App* demo = app.add_subcommand(
      "demo", "Send orders with duplicates through a store that is killed while it works");
  demo->add_option("--orders", arguments.demo.orders, "Distinct orders")
      ->check(CLI::Range(10, 1'000'000))
      ->capture_default_str();
  demo->add_option("--duplicates", arguments.demo.duplicates, "Percent that are sent again")
      ->check(CLI::Range(0, 100))
      ->capture_default_str();
  demo->add_option("--kills", arguments.demo.kills, "How often the store's process is killed")
      ->check(CLI::Range(0, 100))
      ->capture_default_str();
  demo->add_option("--seed", arguments.demo.seed, "Of the order of things")->capture_default_str();
  demo->add_option("--data", arguments.demo.folder, "Keep the data folder here");
  add_json(*demo, arguments.demo.output);
  demo->footer("Example: hapax demo --orders 10000 --duplicates 30 --kills 5");
  demo->callback([&] { exit_code = run_demo(arguments.demo); });

  declare_server(app, arguments, exit_code);

  CLI::App* store = app.add_subcommand("demo-store", "");
  store->group("");  // Started by demo; not for people.
  store->add_option("folder", arguments.demo_store)->required();
  store->callback([&] { exit_code = run_demo_store(arguments.demo_store); });

  CLI::App* inspect = app.add_subcommand("inspect", "Show what is in a data folder");
  inspect->add_option("folder", arguments.inspect.folder, "Data folder")->required();
  add_json(*inspect, arguments.inspect.output);
  inspect->footer("Example: hapax inspect ./hapax-data --json");
  inspect->callback([&] { exit_code = run_inspect(arguments.inspect); });

  CLI::App* verify = app.add_subcommand("verify", "Read every byte of a data folder");
  verify->add_option("folder", arguments.verify.folder, "Data folder")->required();
  add_json(*verify, arguments.verify.output);
  verify->footer("Example: hapax verify ./hapax-data");
  verify->callback([&] { exit_code = run_verify(arguments.verify); });

  CLI::App* repair = app.add_subcommand(
      "repair", "Make a damaged data folder start again, giving up what cannot be read");
  repair->add_option("folder", arguments.repair.folder, "Data folder")->required();
  repair->add_flag("--accept-loss", arguments.repair.accept_loss, "Do it");
  repair->add_flag("--dry-run", arguments.repair.dry_run, "Only say what would be done");
  add_json(*repair, arguments.repair.output);
  repair->footer(
      "Example: hapax repair ./hapax-data --dry-run\n"
      "         hapax repair ./hapax-data --accept-loss");
  repair->callback([&] { exit_code = run_repair(arguments.repair); });
}

// The list of commands, in parts that belong together.
void arrange(CLI::App& app) {
  const auto arrange_as = [&](const char* group, std::initializer_list<const char*> names) {
    for (const char* name : names) app.get_subcommand(name)->group(group);
  };
  arrange_as("Server", {"serve", "relay", "check", "explain", "token", "doctor", "stats", "bench"});
  arrange_as("Workflows", {"workflows", "attempts", "dead", "blocked", "secrets"});
  arrange_as("Streams", {"stream", "append", "tail", "producer", "consumer", "receive", "ack",
                         "nack", "extend", "redrive"});
  arrange_as("Keys", {"claim", "renew", "settle", "resolve", "forget", "status", "trace"});
  arrange_as("Databases", {"migrate", "clean"});
  arrange_as("Data folder", {"inspect", "verify", "repair", "copy"});
  arrange_as("Other", {"demo", "completion", "help", "version"});
}

// What the library says of an unknown command is that one is missing. `called` is how `app` is
// called, and `words` what follows.
bool knows_command(const CLI::App& app, const std::string& called,
                   std::span<const char* const> words) {
  if (app.get_require_subcommand_min() == 0) return true;
  if (!words.empty() && words.front()[0] == '-') return true;
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) {
    const std::string name = command->get_name();
    if (!words.empty() && name == words.front()) {
      return knows_command(*command, called + " " + name, words.subspan(1));
    }
    if (!command->get_group().empty()) names.push_back(name);
  }
  const std::vector<std::string_view> known(names.begin(), names.end());
  const std::string all = hapax::base::joined(known, " ");
  if (words.empty()) {
    hapax::base::print(stderr, "hapax: '{}' needs one of: {} (see {} --help)\n", called, all,
                       called);
    return false;
  }
  const auto close = hapax::wire::nearest(words.front(), known);
  const std::string hint = close ? hapax::base::format("did you mean '{}'?", *close)
                                 : hapax::base::format("there are: {}", all);
  hapax::base::print(stderr, "hapax: there is no command '{} {}'; {} (see {} --help)\n", called,
                     words.front(), hint, called);
  return false;
}

int run(int argc, char** argv) {
  CLI::App app("Hapax: every effect, once.", "hapax");
  Arguments arguments;
  int exit_code = kExitOk;
  declare(app, arguments, exit_code);
  declare_token(app, arguments, exit_code);
  declare_streams(app, exit_code);
  declare_append(app, exit_code);
  declare_tail(app, exit_code);
  declare_consumers(app, exit_code);
  declare_dead(app, exit_code);
  declare_undelivered(app, exit_code);
  declare_replay(app, exit_code);
  declare_blocked(app, exit_code);
  declare_workflows(app, exit_code);
  declare_attempts(app, exit_code);
  declare_secrets(app, exit_code);
  declare_claims(app, exit_code);
  declare_trace(app, exit_code);
  declare_stats(app, exit_code);
  declare_doctor(app, exit_code);
  declare_explain(app, exit_code);
  declare_relay(app, exit_code);
  declare_bench(app, exit_code);
  declare_migrate(app, exit_code);
  declare_clean(app, exit_code);
  declare_copy(app, exit_code);
  declare_completion(app);
  arrange(app);
  const std::span<const char* const> words(argv, static_cast<std::size_t>(argc));
  if (argc > 1 && !knows_command(app, "hapax", words.subspan(1))) return kExitUsage;
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  return exit_code;
}

// Output that reached nobody is not a success.
int check_output(int exit_code) {
  const bool failed = std::fflush(stdout) != 0 || std::ferror(stdout) != 0;
  if (!failed || exit_code != kExitOk) return exit_code;
  std::fprintf(stderr, "hapax: the output could not be written: %s\n", std::strerror(errno));
  return kExitIo;
}

}  // namespace

int main(int argc, char** argv) {
  // A file that grows beyond its limit is an error, not the end.
  hapax::host::fail_writes_instead_of(SIGXFSZ);
  try {
    return check_output(run(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hapax: %s\n", error.what());
    return kExitFailed;
  }
}
