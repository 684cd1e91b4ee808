#include "cli/way.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include <CLI/CLI.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "base/format.h"
#include "cli/show.h"
#include "host/entropy.h"
#include "host/whole_file.h"

namespace hapax::cli {

namespace {

constexpr std::string_view kStoreFile = "STORE";

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string trimmed(std::string text) {
  text.erase(text.find_last_not_of(" \t\r\n") + 1);
  text.erase(0, text.find_first_not_of(" \t\r\n"));
  return text;
}

// Only a Hapax server says all of this.
bool is_hapax(const client::Reply& reply) {
  const std::string_view type = reply.fields.get("Content-Type");
  if (type.starts_with("application/problem+json")) return true;
  return type.starts_with("application/json") && reply.fields.has("X-Request-Id");
}

// By the number of the error (docs/errors).
int exit_of_code(std::string_view code) {
  constexpr std::pair<std::string_view, int> kCodes[] = {
      {"HX1001", kExitUsage},     {"HX1002", kExitUsage},     {"HX1003", kExitMissing},
      {"HX1006", kExitLater},     {"HX1007", kExitLater},     {"HX1008", kExitLater},
      {"HX1009", kExitLater},     {"HX1010", kExitLater},     {"HX1011", kExitLater},
      {"HX1013", kExitForbidden}, {"HX1014", kExitForbidden}, {"HX1015", kExitLater},
      {"HX1016", kExitUsage},     {"HX1020", kExitIo},        {"HX1021", kExitDamaged},
      {"HX1022", kExitFailed},    {"HX1023", kExitLater},
  };
  for (const auto& [known, exit_code] : kCodes) {
    if (known == code) return exit_code;
  }
  return kExitContradicted;
}

}  // namespace

void add_target(CLI::App& command, Target& target) {
  CLI::Option* url =
      command.add_option("--url", target.url, "Server; HAPAX_URL, or " + std::string(kDefaultUrl));
  command.add_option("--token-file", target.token_file, "File with the token; or HAPAX_TOKEN");
  command.add_option("--ca-file", target.authorities, "PEM file of who may sign for https");
  CLI::Option* data =
      command.add_option("--data", target.data, "Data folder that no server uses")->excludes(url);
  command.add_option("--tenant", target.tenant, "Whose part of the folder")->needs(data);
  command.add_flag_callback(
      "--json", [&target] { target.output = Output::kJson; }, "Print JSON");
}

int exit_of_verdict(const wire::JsonValue& verdict) {
  const std::string word = text_in(verdict, "verdict");
  if (is_holding(word)) return kExitOk;
  if (word == "in_progress") return kExitLater;
  return exit_of_code(text_in(verdict, "code"));
}

int exit_of(const Told& told) {
  int worst = kExitOk;
  for (const wire::JsonValue& verdict : list_in(told.json, "verdicts")) {
    worst = std::max(worst, exit_of_verdict(verdict));
  }
  if (told.good() || worst != kExitOk) return worst;
  if (told.json.find("verdict") != nullptr) return exit_of_verdict(told.json);
  if (told.json.find("code") != nullptr) return exit_of_code(text_in(told.json, "code"));
  switch (told.reply.status) {  // Problems of HTTP itself, and commits that were not applied.
    case 404:
      return kExitMissing;
    case 408:
    case 503:
      return kExitLater;
    case 409:
      return kExitContradicted;
    default:
      return told.reply.status < 500 ? kExitUsage : kExitFailed;
  }
}

std::string problem_text(const Told& told) {
  const std::string code = text_in(told.json, "code");
  std::string text = code.empty() ? "" : code + " ";
  text += text_in(told.json, "title") + ": " + printable(text_in(told.json, "detail"));
  if (told.reply.status == 401) text += "; set HAPAX_TOKEN or --token-file";
  if (text_in(told.json, "verdict").empty()) return text;
  const std::string line = verdict_line(told.json);
  const std::size_t members = line.find("  ");
  return members == std::string::npos ? text : text + " (" + line.substr(members + 2) + ")";
}

bool Way::open() { return target_.data.empty() ? open_server() : open_folder(); }

std::string Way::where() const {
  return target_.data.empty() ? client_->options().url.text() : target_.data;
}

Status check_is_store(const std::string& folder) {
  std::error_code ignored;
  if (std::filesystem::exists(std::filesystem::path(folder) / kStoreFile, ignored)) return Ok{};
  return Error{Errc::kNotFound, "there is no store in " + folder +
                                    "; `hapax stream create NAME --data FOLDER` makes one"};
}

bool Way::open_folder() {
  if (!target_.make_folder) {
    if (const Status there = check_is_store(target_.data); !there) {
      fail(kExitMissing, there.error().detail);
      return false;
    }
  }
  auto inside = serve::PrivateServer::open(target_.data, HAPAX_VERSION, target_.tenant);
  if (!inside) {
    exit_code_ = report(inside.error());
    if (inside.error().code == Errc::kLocked) {
      fail(kExitLater, "a process uses " + target_.data +
                           ". If it is a server, leave --data out and set HAPAX_URL to its "
                           "address, such as " +
                           std::string(kDefaultUrl));
    }
    return false;
  }
  inside_ = *std::move(inside);
  client::ClientOptions options;
  options.url = *client::parse_url(inside_->url());
  options.token = inside_->token();
  client_ = std::make_unique<client::Client>(std::move(options));
  return true;
}

bool Way::open_server() {
  std::string text = target_.url.empty() ? variable("HAPAX_URL") : target_.url;
  if (text.empty()) text = kDefaultUrl;
  const auto url = client::parse_url(text);
  if (!url) {
    exit_code_ = report(url.error());
    return false;
  }
  client::ClientOptions options;
  options.url = *url;
  options.authorities = target_.authorities;
  auto token = token_of(target_.token_file);
  if (!token) {
    exit_code_ = report(token.error());
    return false;
  }
  options.token = *std::move(token);
  client_ = std::make_unique<client::Client>(std::move(options));
  return true;
}

void Way::mention_tenants() {
  if (inside_ == nullptr || !target_.tenant.empty()) return;
  std::string names;
  for (const std::string& tenant : inside_->tenants()) {
    names += (names.empty() ? "" : ", ") + printable(tenant);
  }
  if (names.empty()) return;
  base::print(stderr, "hapax: this folder has data of tenants, which --tenant NAME shows: {}\n",
              names);
}

int Way::fail(int exit_code, const std::string& text) {
  base::print(stderr, "hapax: {}\n", text);
  exit_code_ = exit_code;
  return exit_code;
}

void Way::fail(const Told& told) {
  if (json()) base::print("{}\n", told.reply.body);
  fail(exit_of(told), problem_text(told));
}

Result<client::Reply> Way::ask_raw(const client::ApiCall& call) { return client_->call(call); }

std::optional<Told> Way::ask(const client::ApiCall& call) {
  auto reply = client_->call(call);
  if (!reply && reply.error().code == Errc::kUnavailable) {
    fail(kExitUnreachable,
         reply.error().detail + "; is `hapax serve` running, and is HAPAX_URL right?");
    return std::nullopt;
  }
  if (!reply && reply.error().code == Errc::kUnsupportedMedia) {
    fail(kExitStranger, where() + ": " + reply.error().detail + "; check HAPAX_URL");
    return std::nullopt;
  }
  if (!reply) {
    exit_code_ = report(reply.error());
    return std::nullopt;
  }
  auto json = wire::read_strict_json(reply->body);
  if (!json || !is_hapax(*reply)) {
    fail(kExitStranger,
         base::format("what answers at {} is no Hapax server (status {}, {}); check "
                      "HAPAX_URL",
                      where(), reply->status, printable(reply->fields.get("Content-Type"))));
    return std::nullopt;
  }
  return Told{*std::move(reply), *std::move(json)};
}

std::optional<Told> Way::ask_good(const client::ApiCall& call) {
  auto told = ask(call);
  if (!told || told->good()) return told;
  fail(*told);
  return std::nullopt;
}

int on_way(const Target& target, const std::function<int(Way&)>& act) {
  Way way(target);
  if (!way.open()) return way.exit_code();
  const int exit_code = act(way);
  if (exit_code == kExitMissing) way.mention_tenants();
  return exit_code;
}

Result<std::string> token_of(const std::string& file) {
  std::string token = variable("HAPAX_TOKEN");
  if (!file.empty()) {
    HAPAX_TRY(token, host::read_file(file));
  }
  token = trimmed(std::move(token));
  if (!token.empty() && !client::is_word(token)) {
    return Error{Errc::kInvalidArgument,
                 "the token has spaces or lines in it; a file of tokens is for the server"};
  }
  return token;
}

std::string fresh_key() {
  std::array<std::byte, 16> bytes{};
  host::HostEntropy().fill(bytes);
  std::string key = "cli-";
  for (const std::byte byte : bytes) key += base::format("{:02x}", static_cast<unsigned>(byte));
  return key;
}

std::string who() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  const std::string user = variable("USER");
  return (user.empty() ? std::to_string(::getuid()) : user) + "@" + host.data();
}

Result<std::string> read_all(const std::string& file) {
  if (file != "-") return host::read_file(file);
  std::string all;
  std::array<char, std::size_t{64} << 10> bytes{};
  while (const std::size_t count = std::fread(bytes.data(), 1, bytes.size(), stdin)) {
    all.append(bytes.data(), count);
  }
  if (std::ferror(stdin) != 0) return Error{Errc::kIo, "standard input cannot be read"};
  return all;
}

}  // namespace hapax::cli
