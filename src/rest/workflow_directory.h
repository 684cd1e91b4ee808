// What the server knows of workflows, for the routes that ask.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <hapax/result.h>
#include <hapax/store.h>

namespace hapax::rest {

// Which attempts are asked for; all of what is said must hold.
struct AttemptsWanted {
  std::optional<std::string> key{};      // of the delivery, or the message id it was made of
  std::optional<std::string> outcome{};  // a word
  std::optional<std::string> endpoint{};
  std::optional<std::int64_t> since_ms{};
  std::optional<std::int64_t> until_ms{};
  std::uint64_t from = 0;  // position
  std::uint32_t max = 100;
};
inline constexpr std::uint32_t kAttemptsMax = 1'000;  // of one answer

// What somebody wants done about the record that blocks a key.
struct BlockedDecision {
  std::string key;
  std::string word;    // retry, park, drop
  std::string reason;  // of the person; drop needs one
  std::string actor;   // empty: nobody knows
};

class WorkflowDirectory {
 public:
  WorkflowDirectory() = default;
  WorkflowDirectory(const WorkflowDirectory&) = delete;
  WorkflowDirectory& operator=(const WorkflowDirectory&) = delete;
  virtual ~WorkflowDirectory() = default;

  // The stream that keeps the events which are posted to the workflow. kNotFound: there is no such
  // workflow; kPreconditionFailed: it takes none, and the error says why. Never waits.
  [[nodiscard]] virtual Result<std::string> stream_of_events(std::string_view tenant,
                                                             std::string_view workflow) const = 0;

  // The following wait for the store, which is given as the tenant sees it. All of the tenant as
  // JSON, and one with its declaration, without values of secrets.
  [[nodiscard]] virtual Result<std::string> list(std::string_view tenant, Store& store) const = 0;
  [[nodiscard]] virtual Result<std::string> show(std::string_view tenant, std::string_view workflow,
                                                 Store& store) const = 0;
  // A page of its log of attempts as JSON. kInvalidArgument: a word that there is not.
  [[nodiscard]] virtual Result<std::string> attempts(std::string_view tenant,
                                                     std::string_view workflow,
                                                     const AttemptsWanted& wanted,
                                                     Store& store) const = 0;
  // Durable, and for every process that shares the store. kPreconditionFailed: the workflow does
  // not run, and the error says why.
  [[nodiscard]] virtual Status set_paused(std::string_view tenant, std::string_view workflow,
                                          bool paused, Store& store) const = 0;
  // Keys whose later records wait, and what blocks each; and what is decided about one. Both answer
  // JSON. kNotFound: nothing blocks that key.
  [[nodiscard]] virtual Result<std::string> blocked(std::string_view tenant,
                                                    std::string_view workflow,
                                                    Store& store) const = 0;
  [[nodiscard]] virtual Result<std::string> decide_blocked(std::string_view tenant,
                                                           std::string_view workflow,
                                                           const BlockedDecision& decision,
                                                           Store& store) const = 0;
};

}  // namespace hapax::rest
