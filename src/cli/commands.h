// The commands of `hapax`. Each prints to standard output and answers the exit code; errors have
// been printed to standard error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <hapax/result.h>

namespace hapax::cli {

// Meaningful exit codes, the same for every command.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;         // it ran, and the answer is no
inline constexpr int kExitUsage = 64;         // wrong arguments
inline constexpr int kExitDamaged = 65;       // the data folder is damaged
inline constexpr int kExitMissing = 66;       // there is no such stream, key, consumer …
inline constexpr int kExitUnreachable = 69;   // nobody listens, or no answer came
inline constexpr int kExitContradicted = 73;  // conflict, fenced, stale … : it does not hold
inline constexpr int kExitIo = 74;            // the disk or the system failed
inline constexpr int kExitLater = 75;         // in progress, full, too fast, starting: try again
inline constexpr int kExitStranger = 76;      // what answered is no Hapax server
inline constexpr int kExitForbidden = 77;     // no or a wrong credential, or without the right
inline constexpr int kExitSignal = 128;       // plus the signal's number

enum class Output : std::uint8_t { kText, kJson };

// Prints the error the one way errors are shown, and answers the exit code that fits it.
[[nodiscard]] int report(const Error& error);
[[nodiscard]] int exit_code_of(const Error& error);
// The same words, and the exit codes of a command that talks to a database.
[[nodiscard]] int report_database(const Error& error);
[[nodiscard]] int database_exit_code_of(const Error& error);

struct InspectOptions {
  std::string folder;
  Output output = Output::kText;
};
[[nodiscard]] int run_inspect(const InspectOptions& options);

struct VerifyOptions {
  std::string folder;
  Output output = Output::kText;
};
[[nodiscard]] int run_verify(const VerifyOptions& options);

struct RepairOptions {
  std::string folder;
  bool accept_loss = false;
  bool dry_run = false;
  Output output = Output::kText;
};
[[nodiscard]] int run_repair(const RepairOptions& options);

struct DemoOptions {
  std::uint32_t orders = 10'000;
  std::uint32_t duplicates = 30;  // percent of the orders that are sent again
  std::uint32_t kills = 3;
  std::uint64_t seed = 1;
  std::string folder;   // empty = a temporary one, removed afterwards
  std::string program;  // this binary, started again as the store's process
  Output output = Output::kText;
};
[[nodiscard]] int run_demo(const DemoOptions& options);
// The store's process of the demo: orders come in on standard input, verdicts leave on standard
// output; it is killed without warning.
[[nodiscard]] int run_demo_store(const std::string& folder);

// What a flag does not say comes from the environment, the file or the defaults.
struct ServeOptions {
  std::string config;  // empty = no file
  std::optional<std::string> data;
  std::optional<std::string> store;
  std::optional<std::string> http;
  std::optional<std::string> resp;
  std::optional<std::uint32_t> loops;
  bool open_to_all = false;
  std::string version;
};
[[nodiscard]] int run_serve(const ServeOptions& options);

enum class CheckPrint : std::uint8_t { kFindings, kSchema, kKeys };
struct CheckOptions {
  std::string file;
  CheckPrint print = CheckPrint::kFindings;
  Output output = Output::kText;
};
[[nodiscard]] int run_check(const CheckOptions& options);

struct TokenMakeOptions {
  std::string file;
  std::string tenant;
  std::vector<std::string> roles;
  std::string subject;
  std::string expires;  // "90d"; empty: never
  std::string note;
  Output output = Output::kText;
};
[[nodiscard]] int run_token_make(const TokenMakeOptions& options);

struct TokenListOptions {
  std::string file;
  Output output = Output::kText;
};
[[nodiscard]] int run_token_list(const TokenListOptions& options);

struct TokenRevokeOptions {
  std::string file;
  std::string id;
  Output output = Output::kText;
};
[[nodiscard]] int run_token_revoke(const TokenRevokeOptions& options);

}  // namespace hapax::cli
