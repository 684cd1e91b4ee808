// Operations that nothing that is full may keep from being done.
#pragma once

#include <variant>

#include <hapax/ops.h>

namespace hapax::base {

// What only frees something: storage, memory, or what somebody waits for.
[[nodiscard]] inline bool only_frees(const Op& op) {
  return std::holds_alternative<Trim>(op) || std::holds_alternative<DeleteStream>(op) ||
         std::holds_alternative<DeleteConsumer>(op) ||
         std::holds_alternative<ConfigureStream>(op) ||
         std::holds_alternative<RetireProducer>(op) || std::holds_alternative<Forget>(op) ||
         std::holds_alternative<Resolve>(op) || std::holds_alternative<Unset>(op);
}

}  // namespace hapax::base
