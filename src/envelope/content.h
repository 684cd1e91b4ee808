// The body of a request, and the header fields that describe it. They are the same on every
// attempt.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <hapax/result.h>
#include <hapax/time.h>

namespace hapax::envelope {

enum class BodyShape : std::uint8_t {
  kEnvelope,              // {"idempotencyKey","eventType","timestamp","data"}
  kAsItCame,              // the payload alone: `includedInPayload: false`
  kCloudEventBinary,      // the payload; the attributes are header fields
  kCloudEventStructured,  // one JSON object, application/cloudevents+json
};

// What is told of a record. The texts must live as long as the content that is made of them.
struct RecordFacts {
  std::string_view key;   // of signing::DeliveryKey
  std::string_view type;  // eventType; CloudEvents want one
  Time time{};            // of the event, not of an attempt
  std::string_view payload;
  std::string_view content_type{};  // of the payload; empty: not told, it is looked at
  std::string_view source{};        // CloudEvents: where it comes from, a URI reference
  std::string_view subject{};       // CloudEvents: empty = none
};

struct HeaderField {
  std::string name;
  std::string value;
  friend bool operator==(const HeaderField&, const HeaderField&) = default;
};

// The payload is not copied into the body: it stands between two texts, if it is sent as it is.
struct RequestBody {
  std::string before;
  std::string_view payload;
  std::string after;

  [[nodiscard]] std::size_t size() const { return before.size() + payload.size() + after.size(); }
  [[nodiscard]] std::array<std::string_view, 3> pieces() const { return {before, payload, after}; }
  [[nodiscard]] std::string text() const;
};

struct RequestContent {
  BodyShape shape = BodyShape::kEnvelope;
  RequestBody body;
  std::vector<HeaderField> fields;  // Content-Type, and ce-* of a CloudEvent in binary mode
};

// V6: a payload that is JSON (wire::is_strict_json) stands in the body byte for byte as it came, so
// that no number loses digits on the way; any other payload is base64, under another name.
//
// kInvalidArgument for facts that cannot be told in this shape: a type that is not UTF-8, a
// CloudEvent without type or source, a time outside of the years 0 to 9999.
[[nodiscard]] Result<RequestContent> make_content(BodyShape shape, const RecordFacts& facts);

}  // namespace hapax::envelope
