#include "sim/effects.h"

#include <map>
#include <utility>

namespace hapax::sim {

namespace {

using TransactionKey = std::pair<std::string, Epoch>;

class Flattening {
 public:
  std::vector<Effect> run(const History& history) {
    for (const Attempt* attempt : history.ended()) add(*attempt);
    return std::move(effects_);
  }

 private:
  struct Staging {
    std::vector<const Op*> sure;
    std::vector<const Op*> doubtful;
  };

  void add(const Attempt& attempt) {
    if (attempt.ending == Ending::kFail) return;
    const SimRequest& request = *attempt.request;
    if (request.transaction) return stage(attempt, *request.transaction);
    const bool unknown = attempt.unknown();
    const bool applied = unknown || request.mode == Mode::kEach || attempt.answer.committed;
    for (std::size_t i = 0; i < request.ops.size(); ++i) {
      if (!unknown && i >= attempt.answer.verdicts.size()) break;
      Effect effect{Effect::Certainty::kUnknown, &request.ops[i], nullptr, &attempt, applied,
                    attempt.answer.time};
      if (!unknown) {
        effect.certainty = Effect::Certainty::kTold;
        effect.verdict = &attempt.answer.verdicts[i];
      }
      effects_.push_back(effect);
      if (const auto* end = std::get_if<End>(&request.ops[i])) add_staged(attempt, *end);
    }
  }

  void stage(const Attempt& attempt, const TransactionRef& ref) {
    Staging& staging = staged_[{std::string(ref.name), ref.epoch}];
    for (std::size_t i = 0; i < attempt.request->ops.size(); ++i) {
      const Op* op = &attempt.request->ops[i];
      if (attempt.told<Staged>(i) != nullptr) staging.sure.push_back(op);
      if (attempt.unknown()) staging.doubtful.push_back(op);
    }
  }

  // What waited in a transaction happens when that ends.
  void add_staged(const Attempt& attempt, const End& end) {
    if (end.finish != Finish::kCommit) return;
    const auto found = staged_.find({std::string(end.transaction), end.epoch});
    if (found == staged_.end()) return;
    const Staging& staging = found->second;
    const std::vector<Verdict>& verdicts = attempt.answer.verdicts;
    const bool told = attempt.ending == Ending::kOk;
    if (told && attempt.told<Done>(0) == nullptr) return;
    const bool complete = told && verdicts.size() == staging.sure.size() + 1;
    for (std::size_t i = 0; i < staging.sure.size(); ++i) {
      Effect effect{Effect::Certainty::kUnknown, staging.sure[i], nullptr, &attempt, true,
                    attempt.answer.time};
      if (complete) {
        effect.certainty = Effect::Certainty::kTold;
        effect.verdict = &verdicts[i + 1];
      } else if (told) {
        effect.certainty = Effect::Certainty::kApplied;
      }
      effects_.push_back(effect);
    }
    for (const Op* op : staging.doubtful) {
      effects_.push_back(
          {Effect::Certainty::kUnknown, op, nullptr, &attempt, true, attempt.answer.time});
    }
  }

  std::map<TransactionKey, Staging> staged_;
  std::vector<Effect> effects_;
};

}  // namespace

std::vector<Effect> flatten(const History& history) { return Flattening().run(history); }

}  // namespace hapax::sim
