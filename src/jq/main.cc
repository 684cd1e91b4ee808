// hapax-jq MEMORY_MAX OUTPUT_MAX OUTPUTS_MAX: a worker of a transform pool, which starts it with a
// socket as descriptors 0 and 1. It is not for people.
#include <cstdlib>
#include <ctime>
#include <new>
#include <optional>

#include <unistd.h>

#include "base/format.h"
#include "base/whole_number.h"
#include "jq/sandbox.h"
#include "jq/worker.h"
#include "transform/frames.h"

namespace {

// The limit on memory is the kernel's; whoever meets it first ends the process, and the pool knows
// by the exit code. _exit: nothing may run after it that would allocate.
void end_without_memory(void* /*unused*/) { ::_exit(hapax::transform::kExitMemory); }

std::optional<std::size_t> size_of(const char* text) {
  const auto number = hapax::base::whole_number(text);
  if (!number || *number <= 0) return std::nullopt;
  return static_cast<std::size_t>(*number);
}

[[noreturn]] void refuse(int code, const std::string& why) {
  hapax::base::print(stderr, "hapax-jq: {}\n", why);
  ::_exit(code);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace hapax;
  const auto memory_max = argc == 4 ? size_of(argv[1]) : std::nullopt;
  const auto output_max = argc == 4 ? size_of(argv[2]) : std::nullopt;
  const auto outputs_max = argc == 4 ? size_of(argv[3]) : std::nullopt;
  if (!memory_max || !output_max || !outputs_max) {
    refuse(transform::kExitUsage, "started by hapax only, for transforms");
  }
  std::set_new_handler([] { end_without_memory(nullptr); });
  // The zone's file is read now; later there are no files. What is asked for is UTC everywhere.
  ::setenv("TZ", "UTC", 1);
  ::tzset();
  if (const auto fit = jq::check_library(end_without_memory); !fit) {
    refuse(transform::kExitLibrary, fit.error().text());
  }
  // X3: a worker reads no request before it is locked in.
  jq::JqWorker worker({*output_max, *outputs_max}, end_without_memory);
  if (const auto locked = jq::lock_in(*memory_max); !locked) {
    refuse(transform::kExitSandbox, locked.error().text());
  }
  const bool good = worker.serve(STDIN_FILENO, STDOUT_FILENO);
  ::_exit(good ? 0 : transform::kExitUsage);
}
