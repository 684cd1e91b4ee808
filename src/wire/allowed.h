// What the store takes for a field, for those who describe fields. The store's own checks decide.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <hapax/limits.h>

namespace hapax::wire {

// What the first byte of a text may be. The byte 0x01 begins the names that keep tenants apart, a $
// those of the store.
enum class FirstByte : std::uint8_t { kAny, kNoFrame, kNew, kNewOrNone, kKept };

// Whether a field that stands by name in RESP must be there.
enum class Need : std::uint8_t { kNone, kAlways, kUnlessSignedIn };

// The bytes of a text, the value of a number, the items of a list.
struct Allowed {
  std::optional<std::int64_t> least{};
  std::optional<std::uint64_t> most{};
  FirstByte first = FirstByte::kAny;
  Need need = Need::kNone;

  [[nodiscard]] constexpr Allowed from(std::int64_t other) const {
    return {other, most, first, need};
  }
};

// What is said of a field, beside its name and its type.
struct About {
  // NOLINTNEXTLINE(google-explicit-constructor): most fields have nothing but a help.
  constexpr About(const char* text, const Allowed& range = {}) : help(text), allowed(range) {}
  // NOLINTNEXTLINE(google-explicit-constructor): most who listen want nothing but the help.
  constexpr operator std::string_view() const { return help; }

  std::string_view help;
  Allowed allowed;
};

namespace allowed {

inline constexpr Allowed kName{1, limits::kNameBytesMax, FirstByte::kNoFrame};
inline constexpr Allowed kNewName{1, limits::kNameBytesMax, FirstByte::kNew};
inline constexpr Allowed kKeptName{1, limits::kNameBytesMax, FirstByte::kKept};
inline constexpr Allowed kDeadLetters{0, limits::kNameBytesMax, FirstByte::kNewOrNone};
// Of a consumer or a producer, which is known below its stream only.
inline constexpr Allowed kNameBelow{1, limits::kNameBytesMax};
inline constexpr Allowed kKey{1, limits::kMessageIdBytesMax};
inline constexpr Allowed kCommitId{1, limits::kMessageIdBytesMax, FirstByte::kNoFrame};
inline constexpr Allowed kRegister{1, limits::kRegisterNameBytesMax, FirstByte::kNoFrame};

inline constexpr Allowed kPayload{0, limits::kRecordBytesMax};
inline constexpr Allowed kHeaders{0, limits::kHeadersMax};
inline constexpr Allowed kResult{0, limits::kResultBytesMax};
inline constexpr Allowed kValue{0, limits::kRegisterBytesMax};
inline constexpr Allowed kPosition{1, limits::kPositionBytesMax};
inline constexpr Allowed kExpected{0, limits::kPositionBytesMax};

inline constexpr Allowed kOwner{0, limits::kOwnerBytesMax};
inline constexpr Allowed kReason{0, limits::kReasonBytesMax};
// Of acts of a person, which are audited.
inline constexpr Allowed kActor{1, limits::kOwnerBytesMax, FirstByte::kAny, Need::kUnlessSignedIn};
inline constexpr Allowed kWhy{1, limits::kReasonBytesMax, FirstByte::kAny, Need::kAlways};

inline constexpr Allowed kSome{1};
inline constexpr Allowed kRecordBytes{1, limits::kRecordBytesMax};
inline constexpr Allowed kProducerMemory{1, limits::kProducerMemoryMax};
inline constexpr Allowed kProducers{0, limits::kProducersPerStreamMax};
inline constexpr Allowed kEpoch{0, limits::kEpochMax};
inline constexpr Allowed kAttempts{1, limits::kAttemptsMax};
inline constexpr Allowed kInFlight{1, limits::kInFlightPerConsumerMax};
inline constexpr Allowed kReceive{1, limits::kReceiveMax};
inline constexpr Allowed kRead{1, limits::kReadMax};
inline constexpr Allowed kWindow{limits::kWindowMin.count(), limits::kWindowMax.count()};
inline constexpr Allowed kLease{limits::kLeaseMin.count(), limits::kLeaseMax.count()};
inline constexpr Allowed kDelay{0, limits::kDelayMax.count()};
inline constexpr Allowed kTimeout{1, limits::kTransactionTimeoutMax.count()};
inline constexpr Allowed kExpiry{0, limits::kExpiryMax.count()};

}  // namespace allowed

}  // namespace hapax::wire
