// The commands that ask a server or a data folder: what each is called, and what it takes.
#pragma once

namespace CLI {
class App;
}

namespace hapax::cli {

// stream create, list, show, configure, trim, delete; producer open, show, retire.
void declare_streams(CLI::App& app, int& exit_code);
void declare_append(CLI::App& app, int& exit_code);
void declare_tail(CLI::App& app, int& exit_code);
// consumer create, list, seek, delete; receive, ack, nack, extend, redrive.
void declare_consumers(CLI::App& app, int& exit_code);
void declare_dead(CLI::App& app, int& exit_code);  // list, show, replay, drop
void declare_attempts(CLI::App& app, int& exit_code);
void declare_dead(CLI::App& app, int& exit_code);  // list, show, replay, drop
void declare_undelivered(CLI::App& app, int& exit_code);
void declare_replay(CLI::App& app, int& exit_code);     // of what was delivered
void declare_blocked(CLI::App& app, int& exit_code);    // list, retry, park, drop
void declare_workflows(CLI::App& app, int& exit_code);  // list, show, add, apply …
void declare_secrets(CLI::App& app, int& exit_code);    // list, set, remove
// claim, renew, settle, resolve, forget, status.
void declare_claims(CLI::App& app, int& exit_code);
void declare_trace(CLI::App& app, int& exit_code);
void declare_stats(CLI::App& app, int& exit_code);
void declare_doctor(CLI::App& app, int& exit_code);
// What workflows of a configuration promise.
void declare_explain(CLI::App& app, int& exit_code);
void declare_relay(CLI::App& app, int& exit_code);
void declare_bench(CLI::App& app, int& exit_code);
void declare_migrate(CLI::App& app, int& exit_code);
void declare_clean(CLI::App& app, int& exit_code);
void declare_copy(CLI::App& app, int& exit_code);
void declare_completion(CLI::App& app);

}  // namespace hapax::cli
