// What Outbox, Inbox and JobClaims need of a database: a port, implemented by the rooms postgres
// and sqlite. Every method does all of what it says or nothing; it joins the open transaction if
// there is one.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hapax/inbox.h>
#include <hapax/job_claims.h>
#include <hapax/outbox.h>
#include <hapax/result.h>
#include <hapax/verdicts.h>

namespace hapax::tables {

inline constexpr std::uint32_t kNeeds = 3;  // the newest migration that these classes need

// Of a claim that failed: for so long its attempts are counted.
inline constexpr Window kFailedRetention{std::chrono::days{30}};

struct MessageRow {
  std::string_view subscriber;
  std::string_view id;
  std::string_view fingerprint;  // 16 bytes
};

// What the inbox said of a message.
struct Taken {
  Taking taking = Taking::kFresh;
  std::string outcome;
  std::string stored;  // fingerprint; empty = none was stored
  Time first_seen{};
};

struct ClaimKey {
  std::string_view scope;
  std::string_view key;
};

struct ClaimWish {
  std::string_view owner;
  Duration lease{};
  std::string_view fingerprint;  // empty = any content is the same
  OnLapse on_lapse = OnLapse::kTakeOver;
};

struct Settling {
  JobStatus status = JobStatus::kCompleted;  // or kFailed, kUnknown
  std::string_view outcome;
  std::string_view reason;
  Window retention = Window::forever();
};

struct Resolving {
  Resolution resolution = Resolution::kCompleted;
  std::string_view actor;
  std::string_view reason;
  std::string_view outcome;  // of kCompleted
  Window retention = Window::forever();
};

// Of which rows a retention is changed: those of a subscriber, or of a scope.
struct Retained {
  enum class Table : std::uint8_t { kInbox, kClaims };
  using enum Table;
  Table table = kInbox;
  std::string_view name;
};

class Tables {
 public:
  virtual ~Tables() = default;

  [[nodiscard]] virtual bool in_transaction() const = 0;
  [[nodiscard]] virtual Status begin() = 0;
  [[nodiscard]] virtual Status commit() = 0;  // has rolled back if it fails, unless HX1011
  [[nodiscard]] virtual Status run(const std::string& sql) = 0;  // ROLLBACK, SAVEPOINT …

  [[nodiscard]] virtual Status publish(std::span<const Event> events) = 0;  // with their ids

  [[nodiscard]] virtual Result<Taken> take(const MessageRow& message, Window retention) = 0;
  [[nodiscard]] virtual Result<std::optional<Taken>> find(const MessageRow& message) = 0;
  [[nodiscard]] virtual Status keep_outcome(const MessageRow& message,
                                            std::string_view outcome) = 0;
  // One answer per message.
  [[nodiscard]] virtual Result<std::vector<Taking>> accept(std::span<const MessageRow> messages,
                                                           Window retention) = 0;

  [[nodiscard]] virtual Result<Verdict> claim(ClaimKey key, const ClaimWish& wish) = 0;
  [[nodiscard]] virtual Result<Verdict> renew(ClaimKey key, Fence fence, Duration lease) = 0;
  [[nodiscard]] virtual Result<Verdict> settle(ClaimKey key, Fence fence,
                                               const Settling& settling) = 0;
  // Done, and the claim is gone; or Fenced.
  [[nodiscard]] virtual Result<Verdict> drop(ClaimKey key, Fence fence) = 0;
  // Done, or an error: see JobClaims.
  [[nodiscard]] virtual Status resolve(ClaimKey key, const Resolving& resolving) = 0;
  [[nodiscard]] virtual Status forget(ClaimKey key, std::string_view actor,
                                      std::string_view reason) = 0;
  [[nodiscard]] virtual Result<JobStatus> status(ClaimKey key) = 0;

  [[nodiscard]] virtual Result<std::uint64_t> forget_expired(std::uint32_t most) = 0;
  // The last id or key that was looked at; none: there are no more behind `behind`.
  [[nodiscard]] virtual Result<std::optional<std::string>> retain(const Retained& which,
                                                                  Window retention,
                                                                  std::string_view behind,
                                                                  std::uint32_t most) = 0;
};

// HX1001: what somebody forgot to fill in would turn the guarantee off.
[[nodiscard]] Status check_filled(std::string_view what, std::string_view text);
[[nodiscard]] Status check_lease(Duration lease);
// HX1001: acts of a person are audited.
[[nodiscard]] Status check_signed(ClaimKey key, std::string_view actor, std::string_view reason);

// "take_over", "unknown"; "completed", "not_applied", "release"; and what an audit calls it.
[[nodiscard]] std::string_view word_of(OnLapse on_lapse);
// Of a claim that is taken: `lapsed` = the lease of an earlier owner ran out.
[[nodiscard]] Former former_of(std::uint32_t attempt, bool lapsed);
[[nodiscard]] std::string_view word_of(Resolution resolution);
[[nodiscard]] std::string_view act_of(Resolution resolution);

// The first 16 bytes of the content's SHA-256: what SQL computes as substring(sha256(c) FOR 16).
[[nodiscard]] std::string fingerprint_of(std::string_view content);
[[nodiscard]] Fingerprint to_fingerprint(std::string_view bytes);

[[nodiscard]] inline std::string_view text_of(const std::optional<std::string>& text) {
  return text ? std::string_view(*text) : std::string_view{};
}

// [["name","value"],…]; empty for none.
[[nodiscard]] std::string headers_json(const Event& event);

[[nodiscard]] JobStatus status_of(std::string_view word);

}  // namespace hapax::tables
