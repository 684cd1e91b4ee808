// Commit ids, producers, transactions, positions, and the worker that transforms one
// stream into another.
#include <algorithm>
#include <set>

#include "base/format.h"
#include "core/commit.h"
#include "sim/checks.h"
#include "sim/workload.h"

namespace hapax::sim {

namespace {

Violation broken(std::string_view invariant, std::string key, std::string what) {
  return {std::string(invariant), std::move(key), std::move(what)};
}

// What a repetition must show again. Records and results may be gone by then.
bool same(const Verdict& first, const Verdict& again) {
  if (const auto* one = std::get_if<Received>(&first)) {
    const auto* two = std::get_if<Received>(&again);
    if (two == nullptr || one->deliveries.size() != two->deliveries.size()) return false;
    for (std::size_t i = 0; i < one->deliveries.size(); ++i) {
      const Delivery& a = one->deliveries[i];
      const Delivery& b = two->deliveries[i];
      if (a.token != b.token || a.record.sequence != b.record.sequence) return false;
      if (!b.record.payload.empty() && a.record.payload != b.record.payload) return false;
    }
    return true;
  }
  if (const auto* one = std::get_if<DuplicateClaim>(&first)) {
    const auto* two = std::get_if<DuplicateClaim>(&again);
    if (two == nullptr || one->fence != two->fence) return false;
    return !one->result || !two->result || *one->result == *two->result;
  }
  return first == again;
}

bool is_for_later(const Verdict& verdict) {
  const auto* refused = std::get_if<Refused>(&verdict);
  return refused != nullptr && retry_of(refused->error.code) == Retry::kLater;
}

bool hands_out_nothing(const Verdict& verdict) {
  const auto* received = std::get_if<Received>(&verdict);
  return received != nullptr && received->deliveries.empty();
}

// I13: a commit id gives its first answer again, within its window. One with an operation that may
// succeed later is not remembered if the others changed nothing, nor is an empty hand-out.
Judgement check_commit_ids(const History& history) {
  std::map<std::string_view, const Attempt*> firsts;
  for (const Attempt* attempt : history.ended()) {
    const SimRequest& request = *attempt->request;
    if (!request.id || attempt->ending != Ending::kOk) continue;
    const std::string key = "commit " + std::string(*request.id);
    const Answer& answer = attempt->answer;
    const auto found = firsts.find(*request.id);
    if (!answer.repeated) {
      const bool early = found != firsts.end() && found->second->answer.committed &&
                         answer.time < request.id_window.end(found->second->answer.time);
      if (early) return broken("I13", key, "was carried out again within its window");
      const bool later = std::any_of(answer.verdicts.begin(), answer.verdicts.end(), is_for_later);
      const bool empty =
          std::all_of(answer.verdicts.begin(), answer.verdicts.end(), hands_out_nothing);
      if (answer.committed && !later && !empty) firsts[*request.id] = attempt;
      continue;
    }
    const bool lost =
        found == firsts.end() || answer.time >= request.id_window.end(found->second->answer.time);
    if (lost) {  // Nobody heard the answer that is repeated here.
      firsts[*request.id] = attempt;
      continue;
    }
    Answer first = found->second->answer;
    if (!first.repeated) core::to_wall_times(first, found->second->moment);  // W6
    bool equal = first.time == answer.time && first.verdicts.size() == answer.verdicts.size();
    for (std::size_t i = 0; equal && i < first.verdicts.size(); ++i) {
      equal = same(first.verdicts[i], answer.verdicts[i]);
    }
    if (!equal) return broken("I13", key, "its repetition got another answer");
  }
  return std::nullopt;
}

// I15: an atomic commit is refused only if one of its operations is.
Judgement check_refusals(const History& history) {
  for (const Attempt* attempt : history.ended()) {
    if (attempt->ending != Ending::kOk || attempt->answer.committed) continue;
    const std::vector<Verdict>& verdicts = attempt->answer.verdicts;
    const bool reason = std::any_of(verdicts.begin(), verdicts.end(), [](const Verdict& verdict) {
      return !holds(verdict) && !std::holds_alternative<NotApplied>(verdict);
    });
    if (!reason) {
      return broken("I15", base::format("#{}", attempt->request->number),
                    "was not applied although nothing in it was refused");
    }
  }
  return std::nullopt;
}

struct Incarnation {  // of a producer
  Epoch epoch;
  ProducerSequence next;
  Epoch stored;  // the latest epoch under which somebody was told that a record is stored …
  ProducerSequence stored_next;   // … and the first one after those
  std::optional<Time> retired{};  // since then, if nothing was stored under its name afterwards
};

// One that was retired is forgotten after the window of its stream, which has a second at least.
void forget_retired(Incarnation& known, Time now) {
  if (known.retired && now >= *known.retired + std::chrono::seconds{1}) known = {};
}

// I11, I1: whoever opens a producer gets an epoch of its own, and hears of all that was stored.
Judgement check_opened(const OpenProducer& op, const Opened& opened, Incarnation& known) {
  const std::string key = "producer " + std::string(op.producer);
  if (opened.epoch <= known.epoch) return broken("I11", key, "an epoch was given out twice");
  const bool behind = opened.former < known.stored ||
                      (opened.former == known.stored && opened.former_next < known.stored_next);
  if (behind) return broken("I1", key, "its new writer was not told of all that is stored");
  known.epoch = opened.epoch;
  known.next = ProducerSequence{0};
  return std::nullopt;
}

// I11: an older incarnation of a producer has no effect after a newer one had.
Judgement check_producers(const std::vector<Effect>& effects) {
  std::map<std::string_view, Incarnation> producers;
  for (const Effect& effect : effects) {
    const auto* retire = effect.as<RetireProducer>();
    if (retire != nullptr && (effect.got<Done>() != nullptr || !effect.told())) {
      auto& retired = producers[retire->producer].retired;
      if (!retired) retired = effect.time;
    }
    const auto* opened = effect.repeated() ? nullptr : effect.got<Opened>();
    if (opened != nullptr) {
      const auto& open = *effect.as<OpenProducer>();
      forget_retired(producers[open.producer], effect.time);
      if (auto found = check_opened(open, *opened, producers[open.producer])) return found;
    }
    const auto* op = effect.as<Append>();
    if (op == nullptr || !op->producer || effect.repeated()) continue;
    const bool fresh = effect.got<Appended>() != nullptr;
    if (!fresh) continue;
    const ProducerMark& mark = *op->producer;
    Incarnation& known = producers[mark.name];
    forget_retired(known, effect.time);
    const std::string key = "producer " + std::string(mark.name);
    if (mark.epoch < known.epoch) return broken("I11", key, "an older epoch was stored");
    if (mark.epoch == known.epoch && mark.sequence < known.next) {
      return broken("I2", key, base::format("its record {} was stored again", mark.sequence.value));
    }
    known = {mark.epoch, mark.sequence.next(), mark.epoch, mark.sequence.next(), {}};
  }
  return std::nullopt;
}

// I11: a delayed end, or a delayed part, of an older transaction of the same name has no effect.
Judgement check_transactions(const History& history) {
  struct Begun {
    Epoch epoch;
    std::uint64_t known_at = 0;
  };
  std::map<std::string_view, std::vector<Begun>> begun;
  const auto superseded = [&begun](std::string_view name, Epoch epoch, std::uint64_t invoked) {
    const auto& all = begun[name];
    return std::any_of(all.begin(), all.end(), [&](const Begun& other) {
      return other.epoch > epoch && other.known_at < invoked;
    });
  };
  for (const Attempt* attempt : history.ended()) {
    if (attempt->ending != Ending::kOk) continue;
    const SimRequest& request = *attempt->request;
    if (request.transaction && attempt->told<Staged>(0) != nullptr &&
        superseded(request.transaction->name, request.transaction->epoch, attempt->invoked)) {
      return broken("I11", std::string(request.transaction->name), "an old epoch staged something");
    }
    for (std::size_t i = 0; i < request.ops.size(); ++i) {
      if (const auto* begin = std::get_if<Begin>(&request.ops[i])) {
        const auto* began = attempt->told<Began>(i);
        if (began != nullptr) begun[begin->transaction].push_back({began->epoch, attempt->ended});
      }
      const auto* end = std::get_if<End>(&request.ops[i]);
      if (end != nullptr && attempt->told<Done>(i) != nullptr &&
          superseded(end->transaction, end->epoch, attempt->invoked)) {
        return broken(
            "I11", std::string(end->transaction),
            base::format("a delayed end of epoch {} was carried out although a newer one had begun",
                         end->epoch.value));
      }
    }
  }
  return std::nullopt;
}

Judgement check_positions(const std::vector<Effect>& effects, const Contents& contents) {
  struct Latest {
    std::string_view value;
    Epoch epoch;
    bool moved = false;
    std::set<std::string_view> candidates;  // of unknown outcome, since then
  };
  std::map<std::string, Latest> positions;
  for (const Effect& effect : effects) {
    const auto* op = effect.as<Advance>();
    if (op == nullptr || effect.repeated()) continue;
    Latest& latest = positions[std::string(op->source)];
    if (effect.unknown()) latest.candidates.insert(op->to);
    const bool done =
        effect.got<Done>() != nullptr || effect.certainty == Effect::Certainty::kApplied;
    if (!done) continue;
    const std::string key = "position " + std::string(op->source);
    if (op->epoch < latest.epoch) return broken("I11", key, "an older epoch moved it");
    const bool stayed = op->to == latest.value;
    const bool follows = op->expected == latest.value || latest.candidates.contains(op->expected) ||
                         latest.candidates.contains(op->to);
    if (!stayed && !follows) return broken("I9", key, "moved from where it was not");
    latest.value = op->to;
    latest.epoch = op->epoch;
    latest.moved = true;
    latest.candidates.clear();
  }
  for (const auto& [source, latest] : positions) {
    if (!latest.moved) continue;
    const auto found = contents.positions.find(source);
    const bool there = found != contents.positions.end();
    if (!there ||
        (found->second.value != latest.value && !latest.candidates.contains(found->second.value))) {
      return broken("I9", "position " + source, "is not where it was moved to");
    }
  }
  return std::nullopt;
}

// I2, I9: each record below the position was transformed once, none above it.
Judgement check_transform(const Contents& contents) {
  const auto position = contents.positions.find(kTransformSource);
  const auto out = contents.streams.find("out");
  if (out == contents.streams.end()) return std::nullopt;
  const std::uint64_t reached =
      position == contents.positions.end() ? 0 : std::stoull(position->second.value);
  std::set<std::uint64_t> done;
  for (const Record& record : out->second.records) {
    if (!record.payload.starts_with(kTransformedMark)) continue;
    const std::uint64_t from = std::stoull(record.payload.substr(kTransformedMark.size()));
    const std::string key = base::format("out/{}", record.sequence.value);
    if (!done.insert(from).second) return broken("I2", key, "a record was transformed twice");
    if (from > reached) return broken("I9", key, "an effect is ahead of its position");
  }
  const auto in = contents.streams.find("plain");
  if (in == contents.streams.end()) return std::nullopt;
  for (const Record& record : in->second.records) {
    const std::uint64_t number = record.sequence.value;
    if (number > reached || done.contains(number)) continue;
    return broken("I9", base::format("plain/{}", number), "was passed over by its position");
  }
  return std::nullopt;
}

}  // namespace

Judgement check_rest(const History& history, const std::vector<Effect>& effects,
                     const Contents& contents) {
  if (auto found = check_commit_ids(history)) return found;
  if (auto found = check_refusals(history)) return found;
  if (auto found = check_producers(effects)) return found;
  if (auto found = check_transactions(history)) return found;
  if (auto found = check_registers(effects, contents)) return found;
  if (auto found = check_positions(effects, contents)) return found;
  return check_transform(contents);
}

Judgement check_all(const History& history, const Contents& contents) {
  const std::vector<Effect> effects = flatten(history);
  if (auto found = check_streams(history, effects, contents)) return found;
  if (auto found = check_claims(effects)) return found;
  if (auto found = check_consumers(effects, contents)) return found;
  return check_rest(history, effects, contents);
}

}  // namespace hapax::sim
