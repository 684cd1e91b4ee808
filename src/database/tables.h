// What Outbox, Inbox and JobClaims need of a database: a port, implemented by the rooms postgres
// and sqlite. Every method does all of what it says or nothing; it joins the open transaction if
// there is one.
#pragma once

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

namespace hapax::database {

inline constexpr std::uint32_t kNeeds = 1;  // the newest migration that these classes need

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
};

struct Settling {
  JobStatus status = JobStatus::kCompleted;  // or kFailed
  std::string_view outcome;
  std::string_view reason;
  Window retention = Window::forever();
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
  [[nodiscard]] virtual Result<JobStatus> status(ClaimKey key) = 0;

  [[nodiscard]] virtual Result<std::uint64_t> forget_expired(std::uint32_t most) = 0;
};

// The first 16 bytes of the content's SHA-256: what SQL computes as substring(sha256(c) FOR 16).
[[nodiscard]] std::string fingerprint_of(std::string_view content);
[[nodiscard]] Fingerprint to_fingerprint(std::string_view bytes);

// [["name","value"],…]; empty for none.
[[nodiscard]] std::string headers_json(const Event& event);

[[nodiscard]] JobStatus status_of(std::string_view word);

}  // namespace hapax::database
