// The way of a command to the store: a server (HAPAX_URL, HAPAX_TOKEN), or a data folder that this
// process serves to itself. Both are spoken to over HTTP, so each command is written once.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "cli/commands.h"
#include "client/client.h"
#include "serve/private_server.h"
#include "wire/strict_json.h"

namespace CLI {
class App;
}

namespace hapax::cli {

inline constexpr std::string_view kDefaultUrl = "http://127.0.0.1:7171";

struct Target {
  std::string url;          // empty: HAPAX_URL, or the default
  std::string token_file;   // empty: HAPAX_TOKEN, or none
  std::string authorities;  // of https; empty: those of the system
  std::string data;         // not empty: this folder, and no server
  std::string tenant;       // of the folder; empty: that of a server without authentication
  bool make_folder = false;
  Output output = Output::kText;
};

// --url, --token-file, --ca-file, --data, --tenant, --json.
void add_target(CLI::App& command, Target& target);

// What the server said, read as JSON.
struct Told {
  client::Reply reply;
  wire::JsonValue json;

  [[nodiscard]] bool good() const { return reply.good(); }
};

// Exit code for an answer that came; of a list, that of its worst verdict.
[[nodiscard]] int exit_of(const Told& told);
[[nodiscard]] int exit_of_verdict(const wire::JsonValue& verdict);
// "HX1003 not_found: …", or "conflict: …", for people.
[[nodiscard]] std::string problem_text(const Told& told);

// HX1003 unless somebody has made a store there: a folder whose name has a slip of the pen must not
// become one.
[[nodiscard]] Status check_is_store(const std::string& folder);

class Way {
 public:
  explicit Way(Target target) : target_(std::move(target)) {}

  // False: the reason has been printed, and exit_code() is set. So with the functions below.
  [[nodiscard]] bool open();

  // Any answer of a Hapax server.
  [[nodiscard]] std::optional<Told> ask(const client::ApiCall& call);
  // One that holds; a problem is printed.
  [[nodiscard]] std::optional<Told> ask_good(const client::ApiCall& call);
  // The same for GET.
  [[nodiscard]] std::optional<Told> look(const std::string& path) {
    return ask_good({.method = "GET", .path = path});
  }
  // Whatever answers, as it came.
  [[nodiscard]] Result<client::Reply> ask_raw(const client::ApiCall& call);

  void fail(const Told& told);  // prints the problem
  int fail(int exit_code, const std::string& text);
  // Something was looked for in vain. In a folder it may be there, and be a tenant's: says so.
  void mention_tenants();
  [[nodiscard]] int exit_code() const { return exit_code_; }
  [[nodiscard]] const Target& target() const { return target_; }
  [[nodiscard]] bool json() const { return target_.output == Output::kJson; }
  [[nodiscard]] std::string where() const;  // the URL, or the folder
  [[nodiscard]] client::ClientOptions client_options() const { return client_->options(); }

 private:
  [[nodiscard]] bool open_folder();
  [[nodiscard]] bool open_server();

  Target target_;
  std::unique_ptr<serve::PrivateServer> inside_;
  std::unique_ptr<client::Client> client_;
  int exit_code_ = kExitOk;
};

// Opens a way and acts on it.
[[nodiscard]] int on_way(const Target& target, const std::function<int(Way&)>& act);

// The credential in the file; if none is named, in HAPAX_TOKEN; empty if there is none.
[[nodiscard]] Result<std::string> token_of(const std::string& file);
// An id for a call that has none of its own.
[[nodiscard]] std::string fresh_key();
// Who works: user@host.
[[nodiscard]] std::string who();
[[nodiscard]] Result<std::string> read_all(const std::string& file);  // "-": standard input

}  // namespace hapax::cli
