// workflows add, apply, test and remove: what a server runs, from a file.
#pragma once

namespace CLI {
class App;
}

namespace hapax::cli {

void declare_workflow_changes(CLI::App& workflows, int& exit_code);

}  // namespace hapax::cli
