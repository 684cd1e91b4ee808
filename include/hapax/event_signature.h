// Events that are signed when they are published. A workflow with `source.signature` sends only
// what is as it was signed: whoever changes a row of the outbox in between makes a dead letter of
// it.
//
//   const auto signature = hapax::sign_event({id, type, key, payload}, "whsec_…");
//   event.headers.emplace_back(hapax::kEventSignatureHeader, *signature);
//
// docs/reference/event-signatures.md says what is signed, byte by byte.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hapax/result.h>

namespace hapax {

// A header of the event. It is never sent to an endpoint.
inline constexpr std::string_view kEventSignatureHeader = "hapax-signature";

// What is signed of an event: all but its other headers.
struct SignedEvent {
  std::string_view id;
  std::string_view type{};
  std::string_view key{};  // of its group; empty: none
  std::string_view payload{};
};

// HX1001: the key is not `whsec_` and base64 of 24 to 64 bytes, or the event has no id: a signature
// without one would fit every event of that content. No error tells a byte of the key.
[[nodiscard]] Result<std::string> sign_event(const SignedEvent& event, std::string_view key);

class EventVerifier {
 public:
  // One match is enough, so during a change of keys both are given. Errors as of sign_event(); a
  // key is told by its place, counted from 1.
  [[nodiscard]] static Result<EventVerifier> make(std::span<const std::string> keys);

  // `signatures` is the value of the header: one or several, with spaces between them. Nothing: the
  // event is as it was signed. Otherwise why it does not count, in words.
  [[nodiscard]] std::optional<std::string_view> fault_of(const SignedEvent& event,
                                                         std::string_view signatures) const;

 private:
  EventVerifier() = default;
  std::vector<std::string> secrets_;
};

}  // namespace hapax
