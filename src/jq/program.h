// The programs of one transform, compiled by libjq, and what they make of an input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <hapax/result.h>

#include "transform/transform.h"

namespace hapax::jq {

// Called when libjq has no more memory. It must not return.
using NoMemory = void (*)(void*);

struct OutputLimits {
  std::size_t bytes_max = 0;    // of all outputs of one input
  std::size_t outputs_max = 0;  // of one input
};

// One text that libjq compiled. What it may call was checked in its bytecode, so neither a comment
// nor a string nor a definition of the same name deceives the check.
class CompiledPart {
 public:
  // Faults of the text go to `faults`, and there is no part then.
  static std::optional<CompiledPart> compile(transform::ProgramPart part, const std::string& text,
                                             NoMemory no_memory,
                                             std::vector<transform::ProgramFault>& faults);
  CompiledPart(CompiledPart&&) noexcept = default;
  CompiledPart& operator=(CompiledPart&&) noexcept = default;
  ~CompiledPart() = default;

 private:
  friend class CompiledTransform;
  struct Teardown {
    void operator()(void* state) const;
  };
  using State = std::unique_ptr<void, Teardown>;  // a jq_state; its header stays in program.cc
  explicit CompiledPart(State state) : state_(std::move(state)) {}

  State state_;
};

class CompiledTransform {
 public:
  static std::variant<CompiledTransform, std::vector<transform::ProgramFault>> compile(
      const transform::TransformText& text, NoMemory no_memory);

  [[nodiscard]] transform::TransformOutcome run(std::string_view input, std::int64_t time_ms,
                                                const OutputLimits& limits);

 private:
  CompiledTransform(CompiledPart main, std::optional<CompiledPart> event_type,
                    std::optional<CompiledPart> key, transform::TransformNumbers numbers)
      : main_(std::move(main)),
        event_type_(std::move(event_type)),
        key_(std::move(key)),
        numbers_(numbers) {}

  CompiledPart main_;
  std::optional<CompiledPart> event_type_;
  std::optional<CompiledPart> key_;
  transform::TransformNumbers numbers_;
};

// Whether the libjq of this machine shows its bytecode in the form that the check reads. Also makes
// libjq do what it does once per process (its hash seed comes from the kernel), before the filter.
[[nodiscard]] Status check_library(NoMemory no_memory);

}  // namespace hapax::jq
