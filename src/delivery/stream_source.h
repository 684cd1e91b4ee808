// A stream of a store as a source of single records: a consumer of the stream holds the place, so
// any number of processes share its work by leases. The store keeps the order of a key: it hands
// out one record of a group at a time, over all attempts.
//
// Z10: being handed out is not an attempt. An attempt counts when it is settled as one; how many
//     there were, and when the first one was, stands in a register of the store, in the commit that
//     gives the record back. A record that never failed has no register.
// Z11: a record that is given up becomes a dead letter in the commit that ends it for the consumer.
// Z12: one take is one commit: what is settled and what is handed out become true together. Only
//     records that block their keys (Z19) are settled by a commit before it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <hapax/store.h>

#include "delivery/attempt_claims.h"
#include "delivery/attempt_log.h"
#include "delivery/blocked_keys.h"
#include "delivery/doubts.h"
#include "delivery/source.h"
#include "delivery/source_keeping.h"
#include "delivery/stream_news.h"
#include "delivery/workflow_streams.h"
#include "ports/clock.h"

namespace hapax::delivery {

// A header of a record that names its type, as relays write it.
inline constexpr std::string_view kTypeHeader = "event_type";

struct StreamSourceSettings {
  std::string stream;
  std::optional<StreamSettings> own{};  // the stream is the workflow's own, and made so
  std::string consumer;
  std::string dead_letters;  // stream
  std::string attempts;      // how the names of the registers begin
  std::string blocked;       // how the names of the registers begin that say what blocks a key
  std::optional<Duration> hold{};  // of a key whose record was given up; see BlockTerms
  Keeping keeping{};
  std::string owner;
  // No attempt begins later than this after the record was handed out for the first one.
  Duration give_up_after{std::chrono::hours{1}};
  Duration attempts_kept{std::chrono::days{60}};  // of a register that nobody removes
  // The stream is the workflow's own: what was delivered longer ago is removed. What waits stays.
  std::optional<Duration> delivered_kept{};
  // Each attempt is a claim. Nothing: what was not settled is sent again, under its id.
  std::optional<AttemptTerms> claims{};
  std::optional<AttemptLogSettings> attempt_log{};  // nothing: none is kept
};

class StreamSource final : public Source {
 public:
  using Log = std::function<void(std::string_view)>;
  // What a record of the stream with that uid is called outside (Outgoing::id): the same on every
  // attempt and replay. An error: the record is a dead letter for that reason.
  using KeyOf = std::function<Result<std::string>(const Record&, std::uint64_t stream_uid)>;
  // Which of the engine's endpoints a record goes to; it may mend what was read. None: the record
  // is passed over.
  using Route = std::function<std::optional<std::uint32_t>(Outgoing&)>;

  StreamSource(Store& store, ports::Clock& clock, StreamSourceSettings settings, KeyOf key_of,
               Route route = {}, Log log = {});

  void note_attempts(std::vector<Attempt> attempts) override;
  // Z12. kNotFound while there is no such stream.
  [[nodiscard]] Result<Hand> take(const TakeCall& call) override;
  [[nodiscard]] Status give_back(std::span<const Settlement> settled) override;
  void wait(Duration most) override { news_.wait(most); }
  void nudge() override { news_.nudge(); }

  [[nodiscard]] std::uint64_t passed_over() const { return passed_over_; }

 private:
  struct Tries {
    std::uint32_t failed = 0;   // attempts that counted
    std::int64_t first_ms = 0;  // log time of the hand-out that the first of them came from
  };
  struct Held {
    Receipt receipt;
    Tries tries;
    std::int64_t handed_out_ms = 0;  // log time
    std::size_t bytes = 0;
    std::string group{};
    std::uint32_t retries = 0;  // that a person asked for after it was given up
    std::string key{};          // of the claim under which an attempt was begun
    [[nodiscard]] bool begun() const { return !key.empty(); }
  };
  // What the next commit says of a hand-out that the engine no longer has.
  struct Overruled {
    enum class To : std::uint8_t { kAck, kAgain, kDeadLetter };
    Held held;
    To to = To::kAck;
    Duration after{0};
    std::string reason{};
    std::optional<Resolution> resolution{};  // of its claim, in the same commit or not at all
  };
  // Of payloads that are held; beyond that nothing more is taken.
  static constexpr std::size_t kHeldBytesMax = std::size_t{64} << 20;
  static constexpr std::size_t kRememberedMax = 100'000;
  class Settling;

  [[nodiscard]] Status open();
  void settle(Settling& settling, const Settlement& settlement);
  void retry(Settling& settling, const Held& held, const Settlement& settlement);
  void ask_later(Settling& settling, const Held& held, const Settlement& settlement);
  void give_up(Settling& settling, const Held& held, const Tries& tries, std::string_view reason);
  void give_up(Settling& settling, const Held& held, std::string_view reason) {
    give_up(settling, held, held.tries, reason);
  }
  [[nodiscard]] BlockedRecord blocking(const Held& held, const Tries& tries,
                                       std::string_view reason);
  [[nodiscard]] Status settle_blocks();
  [[nodiscard]] Result<bool> is_held_back(const Delivery& delivery, Held& held);
  [[nodiscard]] bool has_expired(const Delivery& delivery, const Held& held, Time now);
  [[nodiscard]] std::string unknown_outcome(std::string_view key, std::string_view reason) const;
  [[nodiscard]] Outcome outcome_of(const Settlement& settlement) const;
  void end_attempts(std::span<const Settlement> settled);
  void settle_leftovers(Settling& settling);
  void hear_claims(const TakeCall& call, Answer& answer, Hand& hand);
  void release_claims(const TakeCall& call);
  [[nodiscard]] Overruled overrule(const AttemptClaims::Refusal& refusal, Held held, Time now);
  [[nodiscard]] Overruled doubt(const UnknownOutcome& unknown, Held held, Time now);
  [[nodiscard]] Status resolve_doubts();
  void renew(Settling& settling, const TakeCall& call, bool renews);
  void tell_log(Settling& settling);
  [[nodiscard]] Result<Answer> commit(const Settling& settling);
  void read_answer(const Settling& settling, const Answer& answer, Hand& hand);
  [[nodiscard]] Status hand_out(Answer& answer, Hand& hand);
  [[nodiscard]] Status check_stream();
  [[nodiscard]] Outgoing outgoing_of(Delivery& delivery, const Tries& tries) const;
  [[nodiscard]] Result<Tries> find_tries(const Delivery& delivery);
  [[nodiscard]] std::string register_of(Sequence sequence) const;
  [[nodiscard]] std::int64_t log_now_ms() { return clock_.steady_ms() + log_ahead_ms_; }
  void release(HandoutNumber number);
  void remember(Sequence sequence, const Tries& tries);
  void forget();
  void tidy();

  Store& store_;
  ports::Clock& clock_;
  const StreamSourceSettings settings_;
  const KeyOf key_of_;
  const Route route_;
  const Log log_;

  std::optional<std::uint64_t> stream_uid_{};  // none: look whether stream and consumer are there
  std::unordered_map<HandoutNumber, Held> held_;
  std::size_t held_bytes_ = 0;
  std::vector<Receipt> unwanted_;  // to be acked with the next commit
  std::vector<Overruled> overruled_;
  KeyBlocks blocks_;
  SourceKeeping keeping_;
  std::vector<KeyBlocks::Given> given_up_;                   // of keys that wait
  std::unordered_map<std::uint64_t, BlockedRecord> unheld_;  // for which the store has no room
  std::optional<AttemptClaims> claims_;
  std::optional<Doubts> doubts_;
  std::optional<AttemptLog> attempt_log_;
  // What the store did not take: a full quota must not make attempts endless.
  std::unordered_map<std::uint64_t, Tries> remembered_;
  HandoutNumber numbers_ = 0;
  std::int64_t lease_end_ms_ = 0;  // of all that is held, by our steady clock
  std::int64_t log_ahead_ms_ = 0;  // of log time to our steady clock
  std::int64_t tidy_at_ms_ = 0;
  std::uint64_t passed_over_ = 0;

  StreamNews news_;
};

}  // namespace hapax::delivery
