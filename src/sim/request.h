// A commit of a simulated client, with the text its operations refer to. Shared between the client,
// the store while it works on it, and the history; never changed once it was sent.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hapax/ops.h>

namespace hapax::sim {

struct SimRequest {
  std::uint64_t number = 0;
  std::uint32_t client = 0;
  std::vector<Op> ops;
  Mode mode = Mode::kAtomic;
  std::optional<std::string_view> id;
  Window id_window = Window::forever();
  std::optional<TransactionRef> transaction;
  bool repeatable = true;  // sending it twice has one effect

  [[nodiscard]] std::string_view keep(std::string text) {
    return texts.emplace_back(std::move(text));
  }
  [[nodiscard]] Commit commit() const { return {ops, mode, id, id_window, transaction}; }

  std::deque<std::string> texts;
  std::deque<std::vector<Header>> headers;
};

using SharedSimRequest = std::shared_ptr<SimRequest>;

}  // namespace hapax::sim
