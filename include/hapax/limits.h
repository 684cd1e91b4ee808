// Every limit of the store, in one place. docs/reference/limits.md is this table in prose;
// tools/tidy.py compares the two. Exceeding one is HX1002 with the name of the limit, the value and
// the maximum.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include <hapax/time.h>

namespace hapax::limits {

inline constexpr std::size_t kNameBytesMax = 255;  // stream, consumer, producer, scope …
inline constexpr std::size_t kMessageIdBytesMax =
    255;                                              // message id, claim key, commit id, group key
inline constexpr std::size_t kOwnerBytesMax = 255;    // owner of a claim or receive; actor
inline constexpr std::size_t kReasonBytesMax = 1024;  // reason of a settle, nack, resolve
inline constexpr std::size_t kRecordBytesMax = std::size_t{8}
                                               << 20;  // payload; a stream may set less
inline constexpr std::size_t kHeadersMax = 64;         // headers of a record
inline constexpr std::size_t kHeaderBytesMax = std::size_t{64} << 10;  // all headers of a record
inline constexpr std::size_t kResultBytesMax = std::size_t{8} << 20;   // stored result of a claim
inline constexpr std::size_t kRegisterNameBytesMax = 512;
inline constexpr std::size_t kRegisterBytesMax = std::size_t{64} << 10;
inline constexpr Duration kExpiryMax{std::int64_t{1} << 46};  // of a register, from now or 1970 on
inline constexpr std::size_t kPositionBytesMax = 1024;
inline constexpr std::size_t kCommitOpsMax = 100'000;
inline constexpr std::size_t kCommitBytesMax = std::size_t{32} << 20;
inline constexpr std::size_t kAnswerBytesMax =
    std::size_t{32} << 20;  // records and values of a commit's answer, and as many of results
inline constexpr std::size_t kStreamsMax = 100'000;
inline constexpr std::size_t kConsumersPerStreamMax = 1'000;
inline constexpr std::size_t kReceiveMax = 10'000;                     // records of one receive
inline constexpr std::size_t kReceiveBytesMax = std::size_t{8} << 20;  // of one receive
// Of one operation in a brief answer; see hapax::Detail.
inline constexpr std::size_t kBriefResultBytesMax = std::size_t{4} << 10;
inline constexpr std::size_t kBriefReceiveBytesMax = std::size_t{1} << 20;
inline constexpr std::size_t kReadMax = 10'000;  // records of one read
inline constexpr std::size_t kInFlightPerConsumerMax = 100'000;
inline constexpr std::size_t kParkedPerConsumerMax = 1'000'000;  // behind a busy group key
inline constexpr std::size_t kTransactionsOpenMax = 1'000;
inline constexpr std::size_t kTransactionBytesMax = std::size_t{32} << 20;
inline constexpr std::uint32_t kProducerMemoryDefault = 1'000;  // sequences remembered per producer
inline constexpr std::uint32_t kProducerMemoryMax = 100'000;
inline constexpr std::uint64_t kEpochMax = (std::uint64_t{1} << 62) - 1;  // that a producer chooses
inline constexpr std::size_t kProducersPerStreamMax = 100'000;  // when full, a new one is refused

inline constexpr std::chrono::seconds kWindowMin{1};
inline constexpr std::chrono::seconds kWindowMax{std::chrono::days{400}};
inline constexpr Window kWindowDefault{std::chrono::hours{24}};
inline constexpr Duration kLeaseMin{1};
inline constexpr Duration kLeaseMax{std::chrono::hours{24}};
inline constexpr Duration kLeaseDefault{std::chrono::seconds{30}};
inline constexpr Duration kDelayMax{std::chrono::days{30}};
inline constexpr Duration kTransactionTimeoutDefault{std::chrono::seconds{60}};
inline constexpr Duration kTransactionTimeoutMax{std::chrono::minutes{15}};
inline constexpr Duration kTransactionRetention{
    std::chrono::hours{24}};  // how long the name of one that is over is remembered
inline constexpr Duration kHybridAheadMax{
    std::chrono::minutes{1}};  // a register's time ahead of the store's
inline constexpr std::uint32_t kAttemptsMax = 1'000'000;
// What is kept of the failed attempts of a record, for its dead letter; the oldest ones go first.
inline constexpr std::size_t kHistoryAttemptsMax = 16;
inline constexpr std::size_t kHistoryBytesMax = std::size_t{8} << 10;  // owners and reasons

}  // namespace hapax::limits
