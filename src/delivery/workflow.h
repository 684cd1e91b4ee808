// What a workflow is, as data: a source, perhaps a transform, endpoints, and the terms of delivery.
// Whatever declares one (a file, the API, the store) ends here; nothing else is judged, explained
// or run.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <hapax/result.h>
#include <hapax/time.h>

#include "delivery/endpoint_settings.h"
#include "delivery/key_format.h"
#include "delivery/retry_policy.h"
#include "relay/outbox_table.h"

namespace hapax::delivery {

// 1 to 100 letters, digits, '-', '_' and '.', a letter or digit first: it is a part of the names of
// streams ({workflow}.outbox) and of paths.
class WorkflowId {
 public:
  static constexpr std::size_t kBytesMax = 100;
  // kInvalidArgument; the sentence reads after the name of the key.
  [[nodiscard]] static Result<WorkflowId> parse(std::string_view text);
  [[nodiscard]] const std::string& text() const { return text_; }
  friend bool operator==(const WorkflowId&, const WorkflowId&) = default;

 private:
  explicit WorkflowId(std::string_view text) : text_(text) {}
  std::string text_;
};

// --- sources

enum class SourceType : std::uint8_t { kOutbox, kStream, kHttp };
inline WordList words_of(SourceType) {
  static constexpr std::array<std::string_view, 3> kWords{"outbox", "stream", "http"};
  return kWords;
}

// The tables that `hapax migrate` made. Empty names are its defaults.
struct OwnOutboxTables {
  std::string schema;
  std::string prefix;
  friend bool operator==(const OwnOutboxTables&, const OwnOutboxTables&) = default;
};
using relay::OutboxColumns;
// A table that was there before.
using MappedOutboxTable = relay::OutboxTable;
struct FromOutbox {
  SecretText database;  // postgres://…, sqlite:FILE, or a reference to one
  std::variant<OwnOutboxTables, MappedOutboxTable> tables;
  friend bool operator==(const FromOutbox&, const FromOutbox&) = default;
};
struct FromStream {
  std::string stream;
  friend bool operator==(const FromStream&, const FromStream&) = default;
};
// POST /api/v1/workflows/{id}/events
struct FromHttp {
  friend bool operator==(FromHttp, FromHttp) = default;
};
using WorkflowSource = std::variant<FromOutbox, FromStream, FromHttp>;

// --- transform

// What becomes of a number that a double cannot hold: a dead letter, or the nearest double.
enum class TransformNumbers : std::uint8_t { kExact, kDouble };
inline WordList words_of(TransformNumbers) {
  static constexpr std::array<std::string_view, 2> kWords{"exact", "double"};
  return kWords;
}
struct TransformSettings {
  std::string jq;
  TransformNumbers numbers = TransformNumbers::kExact;
  friend bool operator==(const TransformSettings&, const TransformSettings&) = default;
};

// --- terms of delivery

enum class Guarantee : std::uint8_t {
  kAtMostOnce,
  kAtLeastOnce,
  kIdempotentKeys,
  kExactlyOnce,
};
inline WordList words_of(Guarantee) {
  static constexpr std::array<std::string_view, 4> kWords{"at-most-once", "at-least-once",
                                                          "idempotent-keys", "exactly-once"};
  return kWords;
}

enum class Mechanism : std::uint8_t {
  kTransactionalOutbox,
  kKafkaOffsets,
  kGeneratedKeys,
  kSourcePositions,  // what kafka-offsets is for sources that are not Kafka
};
inline WordList words_of(Mechanism) {
  static constexpr std::array<std::string_view, 4> kWords{"transactional-outbox", "kafka-offsets",
                                                          "generated-keys", "source-positions"};
  return kWords;
}
// Whether the mechanism is a way to keep the guarantee.
[[nodiscard]] bool keeps(Mechanism mechanism, Guarantee guarantee);

enum class KeyHash : std::uint8_t { kSha256 };
inline WordList words_of(KeyHash) {
  static constexpr std::array<std::string_view, 1> kWords{"SHA256"};
  return kWords;
}
// How much of the hash is in the key: all 256 bits, or 12 base64 characters, which are 72 bits.
enum class KeyForm : std::uint8_t { kFull, kShort };
inline WordList words_of(KeyForm) {
  static constexpr std::array<std::string_view, 2> kWords{"full", "short"};
  return kWords;
}
inline constexpr int kShortKeyBits = 72;

struct KeySettings {
  KeyFormat format{};
  KeyHash hash = KeyHash::kSha256;
  KeyForm form = KeyForm::kFull;
  bool in_payload = true;
  friend bool operator==(const KeySettings&, const KeySettings&) = default;
};

// What clients are told beside the guarantee.
struct ClientDocumentation {
  std::optional<bool> deduplication_required{};
  std::optional<bool> sdk_available{};
  std::string example_code{};
  friend bool operator==(const ClientDocumentation&, const ClientDocumentation&) = default;
};

struct DeliveryTerms {
  Guarantee guarantee = Guarantee::kIdempotentKeys;
  std::optional<Mechanism> mechanism{};  // as it was declared; the guarantee decides
  KeySettings key{};
  Duration dedup_ttl{std::chrono::days{30}};  // how long a key is remembered on our side
  RetryPolicy retries{};
  bool client_guidance = false;
  ClientDocumentation documentation{};
  friend bool operator==(const DeliveryTerms&, const DeliveryTerms&) = default;
};

// --- order, and what is kept

enum class OrderingKey : std::uint8_t { kRecord, kNone };
inline WordList words_of(OrderingKey) {
  static constexpr std::array<std::string_view, 2> kWords{"record", "none"};
  return kWords;
}
enum class FailureWord : std::uint8_t { kBlock, kPark, kBlockFor };
inline WordList words_of(FailureWord) {
  static constexpr std::array<std::string_view, 3> kWords{"block", "park", "block-for"};
  return kWords;
}
// Later records of the key wait until a person decides about the dead letter.
struct BlockKey {
  friend bool operator==(BlockKey, BlockKey) = default;
};
// Later records of the key go on.
struct ParkRecord {
  friend bool operator==(ParkRecord, ParkRecord) = default;
};
// They wait so long, and then go on.
struct BlockKeyFor {
  Duration time;
  friend bool operator==(const BlockKeyFor&, const BlockKeyFor&) = default;
};
using OnFailure = std::variant<ParkRecord, BlockKey, BlockKeyFor>;

struct Ordering {
  OrderingKey key = OrderingKey::kRecord;
  OnFailure on_failure{};
  friend bool operator==(const Ordering&, const Ordering&) = default;
};

inline constexpr std::uint64_t kAttemptBytes = std::uint64_t{1} << 30;

// How long later records of a key wait; none: they do not, Duration::max(): until a person decides.
[[nodiscard]] std::optional<Duration> hold_of(const Ordering& ordering);

struct KeepTimes {
  Duration delivered{std::chrono::days{30}};
  Duration attempts{std::chrono::days{30}};  // 0: no log of them is kept
  std::uint64_t attempt_bytes = kAttemptBytes;
  // Of the outbox of a database: somebody said `delivered`, so it holds there, too, where it is
  // shorter than what the database was told.
  bool shortens_outbox = false;
  friend bool operator==(const KeepTimes&, const KeepTimes&) = default;
};

inline constexpr Duration kDeadLetterKeep{std::chrono::days{30}};

// Who declared a workflow: what the operator's own file says is trusted with the environment, files
// and inner addresses; what came over the API is not.
enum class DeclaredIn : std::uint8_t { kFile, kApi };
inline WordList words_of(DeclaredIn) {
  static constexpr std::array<std::string_view, 2> kWords{"file", "api"};
  return kWords;
}

struct Workflow {
  WorkflowId id;
  DeclaredIn declared_in = DeclaredIn::kFile;
  std::string tenant{};  // empty: of a server without tenants
  bool enabled = true;
  std::optional<WorkflowSource> source{};  // nothing: a draft, which never runs
  // Of publishers; some: a record whose signature does not fit is a dead letter.
  std::vector<SecretText> source_keys{};
  std::optional<TransformSettings> transform{};
  std::vector<EndpointSettings> endpoints{};  // none: a draft, too
  DeliveryTerms delivery{};
  std::optional<Ordering> ordering{};  // nothing: nobody said; see order()
  Duration dead_letter_keep = kDeadLetterKeep;
  KeepTimes retention{};

  [[nodiscard]] bool draft() const { return !source || endpoints.empty(); }
  [[nodiscard]] Ordering order() const { return ordering.value_or(Ordering{}); }
  friend bool operator==(const Workflow&, const Workflow&) = default;
};

// Whether it has a step before the one that sends: something is made of its records, there are
// several endpoints, or a stream is one.
[[nodiscard]] bool is_staged(const Workflow& workflow);
// Whether rows of its outbox are stored in a stream of the workflow before anything becomes of
// them. A database settles a row and knows nothing of what comes of it: whoever makes several
// records of one, notes an attempt before it is made or holds back a key does that in the store.
[[nodiscard]] bool stores_rows(const Workflow& workflow);

}  // namespace hapax::delivery
