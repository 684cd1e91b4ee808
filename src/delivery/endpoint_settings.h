// Where a workflow delivers to, as data: addresses, secrets by reference, and what an endpoint
// promises about requests that arrive twice.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <hapax/result.h>
#include <hapax/time.h>

namespace hapax::delivery {

// The words of an enumeration in the order of its values, the same in YAML, JSON and sentences.
using WordList = std::span<const std::string_view>;
template <class Enum>
[[nodiscard]] std::string_view word_for(Enum value) {
  return words_of(value)[static_cast<std::size_t>(value)];
}

// Where the value of a secret is found when it is needed: ${env:NAME}, ${file:PATH},
// ${secret:NAME}.
struct SecretReference {
  enum class Place : std::uint8_t { kEnvironment, kFile, kStored };
  Place place = Place::kEnvironment;
  std::string name;
  friend bool operator==(const SecretReference&, const SecretReference&) = default;
};

// A text in which secrets may stand by reference: "Bearer ${env:ERP_TOKEN}". It holds what was
// written, never what a reference stands for. "$${" stands for "${".
class SecretText {
 public:
  using Piece = std::variant<std::string, SecretReference>;

  SecretText() = default;
  // kInvalidArgument; the sentence reads after the name of the key.
  [[nodiscard]] static Result<SecretText> parse(std::string_view text);

  [[nodiscard]] const std::vector<Piece>& pieces() const { return pieces_; }
  [[nodiscard]] bool empty() const { return pieces_.empty(); }
  // Whether something of it is not a reference. A word before a reference ("Bearer ") does not
  // count.
  [[nodiscard]] bool has_clear_text() const;
  // Whether a reference of it is looked up in that place.
  [[nodiscard]] bool refers_to(SecretReference::Place place) const;
  // As it was written. May hold a secret in clear text: for the store only.
  [[nodiscard]] std::string written() const;
  // For people: references as they were written, clear text hidden.
  [[nodiscard]] std::string hidden() const;

  friend bool operator==(const SecretText&, const SecretText&) = default;

 private:
  std::vector<Piece> pieces_;
};

// Whether the name of a header field says that its value is a secret.
[[nodiscard]] bool is_secret_header(std::string_view name);
// Whether a database address holds a password in clear text.
[[nodiscard]] bool has_clear_password(const SecretText& database);

// An absolute http or https URL. Only its scheme and host are judged here; whoever sends reads the
// rest by its own library.
class WebUrl {
 public:
  // kInvalidArgument; the sentence reads after the name of the key.
  [[nodiscard]] static Result<WebUrl> parse(std::string_view text);

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] const std::string& host() const { return host_; }  // in lower case, no brackets
  [[nodiscard]] bool encrypted() const { return encrypted_; }
  [[nodiscard]] bool loopback() const;
  friend bool operator==(const WebUrl&, const WebUrl&) = default;

 private:
  WebUrl() = default;
  std::string text_;
  std::string host_;
  bool encrypted_ = false;
};

// --- who we are to the endpoint

struct NoAuth {
  friend bool operator==(NoAuth, NoAuth) = default;
};
struct BasicAuth {
  SecretText user;
  SecretText password;
  friend bool operator==(const BasicAuth&, const BasicAuth&) = default;
};
struct BearerAuth {
  SecretText token;
  friend bool operator==(const BearerAuth&, const BearerAuth&) = default;
};
// OAuth 2.0 client credentials (RFC 6749 §4.4).
struct OAuth2Auth {
  WebUrl token_url;
  SecretText client_id;
  SecretText client_secret;
  std::string scope{};
  friend bool operator==(const OAuth2Auth&, const OAuth2Auth&) = default;
};
struct MutualTlsAuth {
  std::string certificate_file;
  std::string key_file;
  friend bool operator==(const MutualTlsAuth&, const MutualTlsAuth&) = default;
};
using EndpointAuth = std::variant<NoAuth, BasicAuth, BearerAuth, OAuth2Auth, MutualTlsAuth>;
enum class AuthType : std::uint8_t { kNone, kBasic, kBearer, kOAuth2, kMutualTls };
inline WordList words_of(AuthType) {
  static constexpr std::array<std::string_view, 5> kWords{"none", "basic", "bearer", "oauth2",
                                                          "mtls"};
  return kWords;
}

// --- what happens when it is not known whether a request arrived

enum class NatureWord : std::uint8_t { kIdempotent, kProbe, kManual };
inline WordList words_of(NatureWord) {
  static constexpr std::array<std::string_view, 3> kWords{"idempotent", "probe", "manual"};
  return kWords;
}
struct NatureNotSaid {
  friend bool operator==(NatureNotSaid, NatureNotSaid) = default;
};
// The endpoint remembers keys: the same request is sent again under the same key.
struct NatureIdempotent {
  friend bool operator==(NatureIdempotent, NatureIdempotent) = default;
};
// The endpoint can be asked: {key} in the URL stands for the idempotency key.
struct NatureProbe {
  WebUrl status_url;
  friend bool operator==(const NatureProbe&, const NatureProbe&) = default;
};
// Neither: the record is parked until a person decides.
struct NatureManual {
  friend bool operator==(NatureManual, NatureManual) = default;
};
using EndpointNature = std::variant<NatureNotSaid, NatureIdempotent, NatureProbe, NatureManual>;

// --- what a request consists of

// A key that requests are signed with, and when: from `from` on, and before `until`.
struct SigningTerm {
  SecretText key;  // whsec_… or whsk_…
  std::optional<Time> from{};
  std::optional<Time> until{};
  friend bool operator==(const SigningTerm&, const SigningTerm&) = default;
};

enum class BodyWord : std::uint8_t {
  kEnvelope,
  kPayload,
  kCloudEventBinary,
  kCloudEventStructured,
};
inline WordList words_of(BodyWord) {
  static constexpr std::array<std::string_view, 4> kWords{
      "envelope", "payload", "cloudevents-binary", "cloudevents-structured"};
  return kWords;
}
// The guarantee and `includedInPayload` decide between the envelope and the payload.
struct BodyNotSaid {
  friend bool operator==(BodyNotSaid, BodyNotSaid) = default;
};
struct EnvelopeBody {
  friend bool operator==(EnvelopeBody, EnvelopeBody) = default;
};
struct PayloadBody {
  friend bool operator==(PayloadBody, PayloadBody) = default;
};
enum class EventSubject : std::uint8_t { kNone, kKey };
inline WordList words_of(EventSubject) {
  static constexpr std::array<std::string_view, 2> kWords{"none", "key"};
  return kWords;
}
// A CloudEvent 1.0.
struct CloudEventBody {
  bool structured = false;  // one JSON object; otherwise its attributes are header fields
  std::string source;       // a URI reference
  EventSubject subject = EventSubject::kNone;
  friend bool operator==(const CloudEventBody&, const CloudEventBody&) = default;
};
using EndpointBody = std::variant<BodyNotSaid, EnvelopeBody, PayloadBody, CloudEventBody>;

// --- what an answer means

enum class StatusWord : std::uint8_t {
  kDelivered,
  kRetry,       // the endpoint fails; an attempt of the record counts
  kReject,      // the endpoint refuses the record, and may take it later; an attempt counts
  kDeadLetter,  // the endpoint refuses the record for good
  kDisable,     // the endpoint wants no record any more
};
inline WordList words_of(StatusWord) {
  static constexpr std::array<std::string_view, 5> kWords{"delivered", "retry", "reject",
                                                          "dead-letter", "disable"};
  return kWords;
}
// Of one status, or of a hundred: 404 to 404, 400 to 499.
struct StatusRule {
  std::uint16_t first = 0;
  std::uint16_t last = 0;
  StatusWord becomes = StatusWord::kRetry;

  // Of "404" or "4xx"; nothing for any other text.
  [[nodiscard]] static std::optional<StatusRule> parse(std::string_view statuses,
                                                       StatusWord becomes);
  [[nodiscard]] std::string statuses() const;
  friend bool operator==(const StatusRule&, const StatusRule&) = default;
};
// What the declared rules say of a status, that of one status before that of a hundred; 410
// disables if they do not say otherwise. Nothing: what is usual.
[[nodiscard]] std::optional<StatusWord> word_for_status(std::span<const StatusRule> rules,
                                                        int status);

// --- targets

// A request that changes something; a key on a GET would protect nothing.
enum class SendMethod : std::uint8_t { kPost, kPut, kPatch };
inline WordList words_of(SendMethod) {
  static constexpr std::array<std::string_view, 3> kWords{"POST", "PUT", "PATCH"};
  return kWords;
}

struct EndpointHeader {
  std::string name;
  SecretText value;
  friend bool operator==(const EndpointHeader&, const EndpointHeader&) = default;
};
struct SendTimeouts {
  Duration connect{std::chrono::seconds{5}};
  Duration request{std::chrono::seconds{30}};  // from the start of the attempt to its last byte
  friend bool operator==(const SendTimeouts&, const SendTimeouts&) = default;
};
struct EndpointTls {
  bool verify = true;
  std::string ca_file{};
  std::string server_name{};
  friend bool operator==(const EndpointTls&, const EndpointTls&) = default;
};

struct HttpTarget {
  WebUrl url;
  SendMethod method = SendMethod::kPost;
  std::vector<EndpointHeader> headers{};  // in the order of their names, none twice
  EndpointAuth auth{};
  SendTimeouts timeouts{};
  EndpointTls tls{};
  EndpointNature nature{};
  std::vector<SigningTerm> signing{};  // none: requests are not signed
  EndpointBody body{};
  std::vector<StatusRule> on_status{};  // in the order of their texts, none twice
  friend bool operator==(const HttpTarget&, const HttpTarget&) = default;
};
// Every text of it in which a secret can stand.
[[nodiscard]] std::vector<const SecretText*> secret_texts_of(const HttpTarget& target);
// Whether one of them names a secret that is stored over the API.
[[nodiscard]] bool needs_stored_secret(const HttpTarget& target);

struct StreamTarget {
  std::string stream;
  friend bool operator==(const StreamTarget&, const StreamTarget&) = default;
};

inline constexpr std::uint32_t kConcurrencyDefault = 8;

// When an endpoint that fails is left alone, and for how long. What is not said is as in
// BreakerSettings, which has two values where an endpoint that does not answer at all is told from
// one that answers that it fails; what is said is for both.
struct BreakerTerms {
  std::optional<std::uint32_t> failures{};  // records of so many keys, and none passed
  std::optional<Duration> pause{};
  std::optional<Duration> pause_max{};
  std::optional<std::uint32_t> probes{};
  friend bool operator==(const BreakerTerms&, const BreakerTerms&) = default;
};

struct EndpointSettings {
  std::string name;
  std::variant<HttpTarget, StreamTarget> target;
  std::vector<std::string> event_types{};  // empty = all; an asterisk may stand at the end
  std::optional<std::uint32_t> concurrency{};
  std::uint64_t rate = 0;  // requests a second; 0 = no limit
  BreakerTerms breaker{};  // of a target over HTTP
  [[nodiscard]] const HttpTarget* http() const { return std::get_if<HttpTarget>(&target); }
  [[nodiscard]] const StreamTarget* stream() const { return std::get_if<StreamTarget>(&target); }
  // Whether a record of that type goes to it.
  [[nodiscard]] bool takes(std::string_view event_type) const;
  friend bool operator==(const EndpointSettings&, const EndpointSettings&) = default;
};

}  // namespace hapax::delivery
