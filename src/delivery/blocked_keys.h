// Keys whose later records wait because a record of theirs was given up: ordering.onFailure block
// and block-for.
//
// Z19: the record that blocks keeps its place in the source. It is held under a lease of up to a
//      day, which whoever is handed the record afterwards renews. Meanwhile the store hands out no
//      later record of its group, whichever process asks.
// Z20: a register says what blocks, in the commit that takes the lease, and has the receipt of that
//      lease. A decision uses up the receipt in the commit that changes the register. So of several
//      decisions one counts, and the record moves on at once.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hapax/store.h>

namespace hapax::delivery {

// Of a source stream that a workflow reads.
struct BlockTerms {
  std::string stream;
  std::string consumer;
  std::string registers;           // how the names of the registers begin
  std::optional<Duration> hold{};  // none: nobody waits; Duration::max(): until a person decides
};

struct BlockedRecord {
  Receipt receipt{};
  std::string key;  // of its group
  Time since{};
  Time until = Time::max();  // then it becomes a dead letter by itself
  std::uint32_t attempts = 0;
  std::uint32_t retries = 0;  // how often a person has decided to send it again
  std::string reason{};
  bool waits = true;  // for a decision; otherwise a person has decided to send it again
};

// What a register holds.
[[nodiscard]] std::string text_of(const BlockedRecord& record);
// Nothing: somebody else wrote it.
[[nodiscard]] std::optional<BlockedRecord> read_blocked(std::string_view text);

class KeyBlocks {
 public:
  KeyBlocks(Store& store, BlockTerms terms) : store_(store), terms_(std::move(terms)) {}

  // Whether a record of that group blocks it when it is given up. A record without a group has
  // nobody behind it.
  [[nodiscard]] bool blocks(std::string_view group) const { return terms_.hold && !group.empty(); }
  // What is known of a record that was handed out before.
  [[nodiscard]] Result<std::optional<BlockedRecord>> find(std::uint64_t stream_uid,
                                                          Sequence sequence) const;
  // Whether a record that is handed out while it blocks becomes a dead letter now.
  [[nodiscard]] bool is_over(const BlockedRecord& record, Time now) const;

  // Texts that operations refer to; they lie still.
  using Kept = std::deque<std::string>;
  // Z20: of one commit that holds for all of them or for none.
  [[nodiscard]] std::vector<Op> hold(BlockedRecord record, std::uint64_t stream_uid, Time now,
                                     Kept& kept) const;
  // It becomes a dead letter, and its key goes on.
  [[nodiscard]] std::vector<Op> end(const BlockedRecord& record, std::uint64_t stream_uid,
                                    Kept& kept) const;

  struct Given {  // a record that was given up
    BlockedRecord record;
    std::string attempts{};  // the register of its attempts, which goes; empty: there is none
  };
  struct NotTaken {
    std::size_t place;  // in what was given
    Error error;
  };
  // Holds them, or ends those that are over. One whose receipt is somebody else's by now is left
  // alone. Answers what the store did not take: those come again when their leases end. After an
  // error nobody knows what counts, and what does not count comes again, too.
  [[nodiscard]] Result<std::vector<NotTaken>> settle(std::span<const Given> given,
                                                     std::uint64_t stream_uid, Time now);

 private:
  [[nodiscard]] Result<Answer> commit(std::span<const Given> given, std::uint64_t stream_uid,
                                      Time now);
  [[nodiscard]] std::string register_of(std::uint64_t stream_uid, Sequence sequence) const;

  Store& store_;
  const BlockTerms terms_;
};

// --- what a person does about them

enum class BlockDecision : std::uint8_t {
  kRetry,  // it is sent again, before the later ones of its key
  kPark,   // it becomes a dead letter, and the later ones go on
  kDrop,   // it is gone, and the later ones go on
};
inline std::span<const std::string_view> words_of(BlockDecision) {
  static constexpr std::string_view kWords[] = {"retry", "park", "drop"};
  return kWords;
}

// Those of a stream that wait for a decision, at most so many, the oldest first. None if the stream
// is not there.
[[nodiscard]] Result<std::vector<BlockedRecord>> list_blocked(Store& store, const BlockTerms& terms,
                                                              std::size_t most);
// Whether the decision counts. It does not if the record has moved on since it was listed.
// `reason`: of a dead letter.
[[nodiscard]] Result<bool> decide_blocked(Store& store, const BlockTerms& terms,
                                          const BlockedRecord& record, BlockDecision decision,
                                          std::string_view reason);

}  // namespace hapax::delivery
