// The attempts of a source as claims of its store, so that an attempt is durable before its first
// byte leaves, and nobody begins another one while its outcome is not known. The scope is one for
// all attempts of a workflow, the key is that of the delivery.
//
// Z13: an attempt that was noted is settled once, under the fence of its claim, whatever became of
//      its hand-out and however often the store did not answer.
// Z14: no attempt begins without a claim that was fresh: not while another one is under way, not
//      when one was delivered, and not while the outcome of one is unknown.
// Z15: the claim of an attempt is held for at least as long as bytes of it may leave (Z1), so what
//      begins after a claim lapsed cannot meet the first byte of the attempt before it.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <hapax/store.h>

#include "delivery/outcome_probe.h"
#include "delivery/source.h"

namespace hapax::delivery {

struct AttemptTerms {
  // What becomes of a record whose attempt has an unknown outcome.
  enum class InDoubt : std::uint8_t {
    kSendAgain,  // the endpoint recognises a repetition
    kPark,       // a dead letter, until somebody resolves the claim
    kAsk,        // the endpoint is asked; a dead letter if it does not tell in time
    kGiveUp,     // there is one attempt: a dead letter, which a person may replay
  };
  std::string scope;  // of the claims
  InDoubt in_doubt = InDoubt::kPark;
  std::shared_ptr<OutcomeProbe> probe{};  // of kAsk
  Duration ask_after{0};                  // that long after the outcome became unknown
  std::uint32_t attempts_max = 0;  // of an endpoint that is asked; 0: as many as there is time for
  Window kept = limits::kWindowDefault;  // so long a delivered record stays known
  // Whatever the outcome: what was begun is over.
  [[nodiscard]] bool one_attempt() const { return in_doubt == InDoubt::kGiveUp; }
};

class AttemptClaims {
 public:
  using AddOp = std::function<std::size_t(Op)>;  // to a commit; answers its place there

  // `owner` is that of this process and of no other one.
  AttemptClaims(AttemptTerms terms, std::string owner)
      : terms_(std::move(terms)), owner_(std::move(owner)) {}

  [[nodiscard]] const AttemptTerms& terms() const { return terms_; }
  // Nothing is under way.
  [[nodiscard]] bool idle() const { return open_.empty(); }

  // What became of it. Whoever has no open attempt has nothing to end.
  void end(HandoutNumber number, Outcome outcome, std::string_view reason);
  // Claims that a commit opened whose answer was lost. Nothing was begun under them, also if their
  // leases have ended since.
  [[nodiscard]] Status find_unheard(Store& store);
  // Adds to a commit what is to be said of claims. The operations refer to what is kept here and to
  // the records that begin.
  void speak(std::span<const Beginning> beginning, bool renews, Duration lease, const AddOp& add);
  // Of an attempt that must not be made: what its claim was answered.
  struct Refusal {
    HandoutNumber number = 0;
    std::string key;
    Verdict verdict;
  };
  // What became of the commit. Those that began and are not refused are under way now.
  [[nodiscard]] std::vector<Refusal> hear(Answer& answer);
  void hear_nothing(Errc why);

 private:
  struct Open {
    std::string key;
    Fence fence;
    std::uint32_t attempt = 1;
  };
  struct Ended {
    std::string key;
    Fence fence;
    Outcome outcome = Outcome::kReleased;
    std::string reason{};
  };
  // A released claim forgets the attempts before it, so only a first one is released.
  [[nodiscard]] static Ended unsent(std::string key, Fence fence, std::uint32_t attempt);
  struct Begun {
    std::size_t place = 0;
    HandoutNumber number = 0;
    std::string key;
    bool replayed = false;  // by a person
  };
  // A key for which a commit may have opened a claim, and the newest fence known before: that claim
  // has a newer one, because the fences of a store only grow.
  struct Unheard {
    std::string key;
    Fence before;
  };
  static constexpr std::size_t kEndedMax = 10'000;

  [[nodiscard]] Op claim_of(const Beginning& beginning, Duration lease) const;

  const AttemptTerms terms_;
  const std::string owner_;
  std::unordered_map<HandoutNumber, Open> open_;
  std::deque<Ended> ended_;  // to be told, until it was heard
  std::vector<Unheard> unheard_;
  Fence newest_{};  // of all claims that were heard of
  // Keys whose first attempt was not made, although its claim could not be released any more.
  std::unordered_set<std::string> never_sent_;
  // Of the commit that is not answered yet.
  std::size_t told_at_ = 0;  // the place of the first of ended_
  std::vector<Begun> begun_;
};

}  // namespace hapax::delivery
