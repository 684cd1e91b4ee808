// What makes other records of a record: the port behind which a transform is.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <hapax/result.h>
#include <hapax/time.h>

namespace hapax::delivery {

// One record that is made of another one. What it does not say is as it was.
struct Reshaped {
  std::string payload;
  std::optional<std::string> type{};
  std::optional<std::string> key{};
};

// The record is to blame: it would fail again.
struct NotReshaped {
  std::string reason;
};

using ReshapeOutcome = std::variant<std::vector<Reshaped>, NotReshaped>;

class Transforming {
 public:
  // An error: nobody knows what it would have become, and it may be tried again.
  using Done = std::function<void(Result<ReshapeOutcome>)>;

  Transforming() = default;
  Transforming(const Transforming&) = delete;
  Transforming& operator=(const Transforming&) = delete;
  virtual ~Transforming() = default;

  // Begins, and never blocks. `done` is called once, on any thread, maybe before this returns. An
  // error: nothing was begun, and `done` is not called.
  [[nodiscard]] virtual Status start(const std::string& payload, Time time, Done done) = 0;
};

}  // namespace hapax::delivery
