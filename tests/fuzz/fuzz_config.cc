// A configuration from anywhere ends in errors or in values; values that hold are printed in a form
// that gives the same values. So are workflows, one by one, as JSON.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "config/load.h"
#include "config/publish.h"
#include "config/workflows.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto loaded = hapax::config::load(hapax::config::ConfigFile{"f", text}, {});
  if (!loaded.good()) return 0;
  const std::string printed = hapax::config::to_json(loaded.config);
  const auto again = hapax::config::load(hapax::config::ConfigFile{"f", printed}, {});
  if (!again.good()) std::abort();
  if (hapax::config::to_json(again.config) != printed) std::abort();
  for (const auto& workflow : loaded.config.workflows) {
    using hapax::config::Secrets;
    const std::string json = hapax::config::to_json(workflow, Secrets::kWritten);
    const auto read = hapax::config::workflow_from_json(json);
    if (!read || !(*read == workflow)) std::abort();
  }
  return 0;
}
