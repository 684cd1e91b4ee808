// Records of workflows, for the routes that ask for them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <hapax/result.h>
#include <hapax/store.h>

namespace hapax::rest {

// Which records that are not confirmed are asked for; all of what is said must hold.
struct UndeliveredWanted {
  std::optional<std::string> endpoint{};
  std::optional<std::int64_t> since_ms{};
  std::string from{};  // as the page before says; empty: from the beginning
  std::uint32_t max = 100;
  bool count = false;  // how many there are, and not which
};
inline constexpr std::uint32_t kUndeliveredMax = 1'000;  // of one answer

// Which dead letters are meant; all of what is said must hold.
struct DeadWanted {
  std::vector<std::uint64_t> sequences{};
  std::optional<std::int64_t> since_ms{};
  std::optional<std::int64_t> until_ms{};
  std::string type{};  // empty texts: any
  std::string group{};
  std::string id{};
  std::string reason{};    // contains it
  std::string endpoint{};  // name
  std::string status{};    // of the last answer: 422, 4xx
  std::string jq{};        // a program over the payload
  std::uint64_t from = 0;  // sequences
  std::uint64_t through = ~std::uint64_t{0};
  std::uint32_t max = 100;
  bool database = false;  // of a replay: those that are in the database of an outbox

  [[nodiscard]] bool chooses() const {
    const auto says = [](const std::string& text) { return !text.empty(); };
    return !sequences.empty() || since_ms || until_ms || says(type) || says(group) || says(id) ||
           says(reason) || says(endpoint) || says(status) || says(jq);
  }
};
inline constexpr std::uint32_t kDeadMax = 1'000;  // of one answer

enum class DeadAct : std::uint8_t { kCount, kReplay };

// A replay of what was delivered, or what one would do.
struct DeliveredWanted {
  enum class Act : std::uint8_t { kRun, kCount, kCancel };
  Act act = Act::kRun;
  std::string id{};  // of the replay; of kCount: none
  std::optional<std::int64_t> since_ms{};
  std::optional<std::int64_t> until_ms{};
  std::string endpoint{};
  std::uint64_t from = 0;   // of kCount: position in the log
  std::uint32_t max = 100;  // deliveries that one call looks at
};
inline constexpr std::uint32_t kReplayMax = 1'000;  // of one call
inline constexpr std::size_t kReplayIdBytesMax = 64;

// Answers are JSON. The calls wait for the store, which is given as the tenant sees it.
// kNotFound: there is no such workflow.
class RecordDirectory {
 public:
  RecordDirectory() = default;
  RecordDirectory(const RecordDirectory&) = delete;
  RecordDirectory& operator=(const RecordDirectory&) = delete;
  virtual ~RecordDirectory() = default;

  [[nodiscard]] virtual Result<std::string> undelivered(std::string_view tenant,
                                                        std::string_view workflow,
                                                        const UndeliveredWanted& wanted,
                                                        Store& store) const = 0;
  // A page of dead letters; those that a page has, counted or put back; and those up to a sequence
  // removed for good. Also of workflows that nobody declares any more.
  [[nodiscard]] virtual Result<std::string> dead(std::string_view tenant, std::string_view workflow,
                                                 const DeadWanted& wanted, Store& store) const = 0;
  [[nodiscard]] virtual Result<std::string> replay_dead(std::string_view tenant,
                                                        std::string_view workflow,
                                                        const DeadWanted& wanted, DeadAct act,
                                                        Store& store) const = 0;
  [[nodiscard]] virtual Result<std::string> drop_dead(std::string_view tenant,
                                                      std::string_view workflow,
                                                      std::uint64_t through,
                                                      Store& store) const = 0;
  // A piece of the replay; repeated until it is done.
  [[nodiscard]] virtual Result<std::string> replay_delivered(std::string_view tenant,
                                                             std::string_view workflow,
                                                             const DeliveredWanted& wanted,
                                                             Store& store) const = 0;
};

}  // namespace hapax::rest
