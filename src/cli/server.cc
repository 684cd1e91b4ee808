// The commands around a server: check a configuration, serve with it.
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/format.h"
#include "cli/commands.h"
#include "cli/configuration.h"
#include "cli/outboxes.h"
#include "cli/show.h"
#include "config/load.h"
#include "config/publish.h"
#include "config/unsupported.h"
#include "config/workflows.h"
#include "delivery/workflow.h"
#include "host/memory.h"
#include "serve/missing_here.h"
#include "serve/serve.h"
#include "serve/startable.h"
#include "wire/json_text.h"

namespace hapax::cli {

namespace {

using wire::JsonArray;
using wire::JsonObject;

std::string findings_json(const std::vector<config::ConfigFinding>& findings) {
  JsonArray all;
  for (const auto& [place, what] : findings) {
    JsonObject one;
    one.add("source", place.source);
    if (place.line != 0) one.add("line", place.line).add("column", place.column);
    all.add(one.add("problem", what).text());
  }
  return all.text();
}

// Nothing, if a server would start with it.
std::optional<Error> refusal(const config::Config& config) {
  const auto options = serve::options_from(config);
  if (!options) return options.error();
  Status good = serve::check(*options);
  if (good) good = serve::check_files(*options);
  return good ? std::nullopt : std::optional(good.error());
}

std::vector<std::string> loose_secrets(const config::Config& config) {
  const auto options = serve::options_from(config);
  return options ? serve::loose_secrets(*options) : std::vector<std::string>{};
}

void print_json(const config::Loaded& loaded, const std::optional<Error>& refused) {
  JsonArray ignored;
  for (const auto& line : config::unsupported(loaded.config).ignored) {
    ignored.add(wire::json_text(line));
  }
  JsonArray secrets;
  for (const auto& line : loose_secrets(loaded.config)) secrets.add(wire::json_text(line));
  JsonArray missing;
  for (const auto& line : serve::missing_here(loaded.config.workflows)) {
    missing.add(wire::json_text(line));
  }
  JsonObject out;
  out.add("valid", loaded.good()).add("starts", loaded.good() && !refused);
  out.raw("errors", findings_json(loaded.findings.errors));
  out.add("errors_more", loaded.findings.errors_more);
  out.raw("warnings", findings_json(loaded.findings.warnings));
  if (loaded.good()) {
    if (refused) out.add("refusal", refused->text());
    config::Config config = loaded.config;
    config.server.store = without_password(config.server.store);
    out.raw("ignored", ignored.text()).raw("loose_secrets", secrets.text());
    out.raw("missing_here", missing.text());
    JsonArray workflows;
    for (const delivery::Workflow& workflow : config.workflows) {
      workflows.add(config::to_json(workflow, config::Secrets::kHidden));
    }
    out.raw("config", config::to_json(config)).raw("workflows", workflows.text());
  }
  base::print("{}\n", out.text());
}

std::string door_text(const config::DoorConfig& door) {
  if (door.address.empty()) return "none";
  return door.address + (door.tls.used() ? ", encrypted" : "");
}

std::string names_of(const std::vector<config::Stream>& streams) {
  std::string names;
  for (const auto& stream : streams) names += (names.empty() ? "" : ", ") + stream.stream;
  return names.empty() ? "none are made" : names;
}

std::string names_of(const std::vector<delivery::Workflow>& workflows) {
  std::string names;
  for (const delivery::Workflow& workflow : workflows) {
    base::append_format(names, "{}{} ({}{})", names.empty() ? "" : ", ", workflow.id.text(),
                        delivery::word_for(workflow.delivery.guarantee),
                        workflow.draft() ? ", a draft" : "");
  }
  return names;
}

void print_summary(const config::Config& config) {
  const config::Server& server = config.server;
  if (server.store.empty()) {
    base::print("data       {}\n", server.data);
  } else {
    base::print("store      PostgreSQL, schema {}\n", server.store_schema);
  }
  base::print("HTTP       {}\n", door_text(server.http));
  base::print("RESP       {}\n", door_text(server.resp));
  base::print("threads    {} for connections, {} for reads\n", server.loops, server.readers);
  const std::uint64_t unset = host::find_memory_budget().bytes;
  base::print("memory     {} MiB at most\n", config.store.memory_max.value_or(unset) >> 20);
  base::print("streams    {}\n", names_of(config.streams));
  if (!config.workflows.empty()) {
    base::print("workflows  {}\n", names_of(config.workflows));
  }
  std::string alerts;
  for (const auto& alert : config.alerts) alerts += (alerts.empty() ? "" : ", ") + alert.id;
  if (!alerts.empty()) base::print("alerts     {}\n", alerts);
  base::print("tenants    {} with limits of their own\n", config.tenants.named.size());
  base::print("sign-in    {}\n", config.auth.configured() ? "required" : "nobody has to");
}

void print_ignored(const config::Config& config) {
  for (const auto& line : config::unsupported(config).ignored) {
    base::print(stderr, "hapax: {} (warning)\n", line);
  }
}

template <class To, class From>
void take(To& to, const std::optional<From>& from) {
  if (from) to = *from;
}

void take_flags(config::Server& server, const ServeOptions& options) {
  take(server.data, options.data);
  take(server.store, options.store);
  take(server.http.address, options.http);
  take(server.resp.address, options.resp);
  take(server.loops, options.loops);
  if (options.open_to_all) server.open_to_all = true;
}

// What a running server is told anew.
Result<config::Config> reread(const ServeOptions& options) {
  HAPAX_TRY(config::Loaded loaded, load_configuration(options.config));
  if (!loaded.good()) {
    std::string all;
    for (const config::ConfigFinding& finding : loaded.findings.errors) {
      all.append(all.empty() ? "" : "; ").append(finding.text());
    }
    return Error{Errc::kInvalidArgument, all};
  }
  take_flags(loaded.config.server, options);
  return std::move(loaded.config);
}

}  // namespace

Result<config::Loaded> load_configuration(const std::string& name) {
  std::optional<config::ConfigFile> file;
  if (!name.empty()) {
    HAPAX_TRY(file, config::read_file(name));
  }
  return config::load(file, config::environment());
}

void print_findings(const config::ConfigFindings& findings) {
  for (const auto& finding : findings.errors) base::print(stderr, "{}\n", finding.text());
  if (findings.errors_more != 0) base::print(stderr, "... and {} more\n", findings.errors_more);
  for (const auto& finding : findings.warnings) {
    base::print(stderr, "{} (warning)\n", finding.text());
  }
}

int run_check(const CheckOptions& options) {
  if (options.print == CheckPrint::kSchema) {
    base::print("{}", config::json_schema());
    return kExitOk;
  }
  if (options.print == CheckPrint::kKeys) {
    base::print("{}", config::reference_tables());
    return kExitOk;
  }
  if (options.file.empty()) return report({Errc::kInvalidArgument, "check needs a FILE"});
  const auto loaded = load_configuration(options.file);
  if (!loaded) return report(loaded.error());
  const auto refused = loaded->good() ? refusal(loaded->config) : std::nullopt;
  if (options.output == Output::kJson) {
    print_json(*loaded, refused);
  } else {
    print_findings(loaded->findings);
    if (loaded->good()) print_summary(loaded->config);
    if (loaded->good()) print_ignored(loaded->config);
    for (const auto& line : loose_secrets(loaded->config)) {
      base::print(stderr, "hapax: {} (warning)\n", line);
    }
    for (const auto& line : serve::missing_here(loaded->config.workflows)) {
      base::print(stderr, "hapax: {} (warning)\n", printable(line));
    }
    std::fflush(stdout);
    if (refused) base::print(stderr, "A start is refused: {}\n", refused->text());
  }
  if (!loaded->good()) return kExitUsage;
  return refused ? kExitFailed : kExitOk;
}

int run_serve(const ServeOptions& options) {
  auto loaded = load_configuration(options.config);
  if (!loaded) return report(loaded.error());
  print_findings(loaded->findings);
  if (!loaded->good()) return kExitUsage;
  take_flags(loaded->config.server, options);
  print_ignored(loaded->config);
  auto made = serve::options_from(loaded->config);
  if (!made) return report(made.error());
  made->version = options.version;
  made->open_outbox = open_outbox;
  made->reread = [options] { return reread(options); };
  const Status served = serve::run(*made);
  if (served) return kExitOk;
  const bool shared = !loaded->config.server.store.empty();
  return shared ? report_database(served.error()) : report(served.error());
}

}  // namespace hapax::cli
