// The key of a record that is sent: the same on every attempt, every replay and in every process,
// because it is made of where the record comes from and of nothing else. It is `webhook-id`,
// `Idempotency-Key` and `idempotencyKey` of a request.
//
// The key is SHA-256 over components, each as a netstring (length, colon, bytes, comma), so that no
// two lists of components are one text. docs/reference/delivery-keys.md is the table of components.
// Receivers remember keys for years: a row of it can be added, and none can ever change.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <hapax/ids.h>
#include <hapax/result.h>

namespace hapax::signing {

// A record of an outbox of the application's database.
struct OutboxOrigin {
  std::string_view database;  // uid of the database
  std::string_view outbox;    // name of the outbox
  std::string_view id;        // id of the record
};

// A record of a stream, by its message id; or by its sequence, if it has no message id.
struct StreamOrigin {
  std::string_view store;   // id of the store
  std::string_view stream;  // uid of the stream: another stream of the same name is another one
  std::variant<std::string_view, Sequence> record;
};

// A record that came over HTTP into a workflow.
struct IngestOrigin {
  std::string_view tenant;  // may be empty: the store has no tenants
  std::string_view workflow;
  std::string_view event;  // the id that its sender gave it
};

// A change of a row of any table. Without the change version the later changes of a row would be
// taken for repetitions of the first.
struct RowOrigin {
  std::string_view database;
  std::string_view table;
  std::vector<std::string_view> primary_key;  // a value for each column, in the order of the key
  std::string_view change_version;
};

// A record under a key of the format that its workflow declares. The user says with it which
// records are one effect.
struct FormatOrigin {
  std::string_view format;          // as it was declared
  std::vector<std::string> values;  // one for each of its fields, in their order
};

using KeyOrigin = std::variant<OutboxOrigin, StreamOrigin, IngestOrigin, RowOrigin, FormatOrigin>;

// What one record becomes when a workflow sends several. The first output of a workflow with one
// endpoint has the key of the record itself.
struct FanOut {
  std::uint32_t output = 0;     // index among the outputs of the transform
  std::string_view endpoint{};  // its name among `endpoints:`; empty for the only one
};

enum class KeyForm : std::uint8_t {
  kWhole,  // 64 hexadecimal digits: 256 bits
  // 12 characters of base64url: 72 bits. Among 2^33 keys (eight billion) two are equal with a
  // chance of about 1 in 128, and a database that ignores case leaves only about 62 bits.
  kShort,
};

class DeliveryKey {
 public:
  // kInvalidArgument if a component is empty that tells records apart.
  [[nodiscard]] static Result<DeliveryKey> make(const KeyOrigin& origin,
                                                const FanOut& fan_out = {});

  // Letters, digits, '-' and '_' only.
  [[nodiscard]] std::string text(KeyForm form = KeyForm::kWhole) const;

 private:
  explicit DeliveryKey(std::string hash) : hash_(std::move(hash)) {}

  std::string hash_;  // 32 raw bytes
};

// What the hash is made of, for programs that compute a key by other means.
[[nodiscard]] Result<std::string> key_components(const KeyOrigin& origin,
                                                 const FanOut& fan_out = {});

// The value of `idempotencyKey.hashAlgorithm`: kInvalidArgument unless it is SHA-256, in any
// spelling that people use.
[[nodiscard]] Status check_hash_algorithm(std::string_view name);

}  // namespace hapax::signing
