// What became of the records: nothing acknowledged is lost, nothing refused is there, every id is
// stored once in its window.
#include <algorithm>
#include <set>
#include <tuple>

#include "base/format.h"
#include "sim/checks.h"

namespace hapax::sim {

namespace {

struct Item {
  std::string_view id;
  std::string_view group;
  bool may = false;                     // some attempt may have stored it
  bool must = false;                    // some attempt has
  std::optional<Window> repeats_after;  // when it may be stored again; none = never
  std::map<Sequence, Time> at;          // Time{} = not known when
  std::set<std::uint64_t> requests;
};

struct StreamWitness {
  Window shortest = Window::forever();
  Window longest{std::chrono::seconds{0}};
  StreamSettings settings;
  Sequence trimmed;                         // what somebody may have asked to remove, exclusive
  std::set<std::string_view> retired;       // producers that somebody may have retired
  std::map<std::string_view, Item> items;   // by payload
  std::map<Sequence, std::string_view> at;  // payloads
  Sequence newest;                          // of a fresh one

  [[nodiscard]] bool may_miss(Sequence sequence) const {
    const Retention& retention = settings.retention;
    return sequence < trimmed || retention.count || retention.bytes || retention.age ||
           retention.acked_by_all;
  }
};

Violation broken(std::string_view invariant, std::string_view stream, Sequence sequence,
                 std::string what) {
  return {std::string(invariant), base::format("{}/{}", stream, sequence.value), std::move(what)};
}

std::string shown(std::string_view payload) {
  return "'" + std::string(payload.substr(0, std::min<std::size_t>(payload.find(':'), 40))) + "'";
}

class StreamCheck {
 public:
  StreamCheck(const History& history, const std::vector<Effect>& effects, const Contents& contents)
      : history_(history), effects_(effects), contents_(contents) {}

  Judgement run() {
    for (const Effect& effect : effects_) note_settings(effect);
    for (const Attempt& attempt : history_.attempts()) note_sent(*attempt.request);
    for (const Effect& effect : effects_) {
      if (const auto* append = effect.as<Append>()) {
        if (auto found = note_append(effect, *append)) return found;
      }
    }
    for (const Sighting& seen : history_.sightings()) {
      if (auto found = place(streams_[seen.stream], seen.stream, seen.sequence, seen.payload,
                             Time{}, "I1")) {
        return found;
      }
    }
    for (auto& [name, witness] : streams_) {
      if (auto found = check_stream(name, witness)) return found;
    }
    return check_atomicity();
  }

 private:
  void note_settings(const Effect& effect) {
    const auto widen = [this](std::string_view name, const StreamSettings& settings) {
      StreamWitness& witness = streams_[std::string(name)];
      if (settings.window.raw() < witness.shortest.raw()) witness.shortest = settings.window;
      if (settings.window.raw() > witness.longest.raw()) witness.longest = settings.window;
      witness.settings = settings;
    };
    if (!effect.applied) return;
    if (const auto* retire = effect.as<RetireProducer>()) {
      streams_[std::string(retire->stream)].retired.insert(retire->producer);
    }
    if (const auto* made = effect.as<CreateStream>()) widen(made->stream, made->settings);
    if (const auto* changed = effect.as<ConfigureStream>()) {
      widen(changed->stream, changed->settings);
    }
    if (const auto* trim = effect.as<Trim>()) {
      StreamWitness& witness = streams_[std::string(trim->stream)];
      witness.trimmed = std::max(witness.trimmed, trim->before);
    }
  }

  // Also what was refused: it must not be there.
  void note_sent(const SimRequest& request) {
    for (const Op& op : request.ops) {
      const auto* append = std::get_if<Append>(&op);
      if (append == nullptr) continue;
      Item& item = streams_[std::string(append->stream)].items[append->payload];
      item.id = append->id.value_or("");
      item.group = append->group.value_or("");
      // What is staged belongs to the commit that ends its transaction.
      if (!request.transaction) item.requests.insert(request.number);
    }
  }

  Judgement note_append(const Effect& effect, const Append& op) {
    StreamWitness& witness = streams_[std::string(op.stream)];
    Item& item = witness.items[op.payload];
    item.requests.insert(effect.attempt->request->number);
    const SimRequest& request = *effect.attempt->request;
    const bool named = op.id || witness.settings.content_ids;
    if (named) {
      item.repeats_after = witness.shortest;
    } else if (!op.producer && request.id && !request.id_window.is_forever()) {
      item.repeats_after = request.id_window;
    } else if (op.producer && witness.retired.contains(op.producer->name)) {
      item.repeats_after = witness.shortest;  // P6: then the producer may be forgotten.
    }
    if (!effect.told()) {
      item.may = true;
      item.must = item.must || !effect.unknown();
      return std::nullopt;
    }
    return note_verdict(effect, op, witness, item);
  }

  Judgement note_verdict(const Effect& effect, const Append& op, StreamWitness& witness,
                         Item& item) {
    if (const auto* fresh = effect.got<Appended>()) {
      item.may = item.must = true;
      if (!effect.repeated()) {
        if (fresh->sequence <= witness.newest) {
          return broken("I5", op.stream, fresh->sequence, "a fresh record got an old sequence");
        }
        witness.newest = fresh->sequence;
      }
      if (op.expect && op.expect->of == ExpectLast::Of::kStream &&
          fresh->sequence != op.expect->last.next()) {
        return broken(
            "I5", op.stream, fresh->sequence,
            base::format("stored although the last one was not {}", op.expect->last.value));
      }
      return place(witness, op.stream, fresh->sequence, op.payload, effect.time, "I5");
    }
    if (const auto* known = std::get_if<Duplicate>(effect.verdict)) {
      item.may = true;
      return note_duplicate(effect, op, witness, *known);
    }
    if (std::holds_alternative<Conflict>(*effect.verdict) && !op.producer) {
      conflicts_.push_back(&effect);
    }
    return std::nullopt;
  }

  Judgement note_duplicate(const Effect& effect, const Append& op, StreamWitness& witness,
                           const Duplicate& known) {
    const bool by_id = known.expires_at != Time::max() || witness.longest.is_forever();
    const bool fixed = witness.settings.window_start == WindowStart::kFirstSeen;
    if (by_id && fixed && !effect.repeated() && !witness.longest.is_forever() &&
        effect.time >= witness.longest.end(known.first_seen)) {
      return broken(
          "I12", op.stream, known.sequence,
          base::format("still a duplicate at {} although its window ended", to_ms(effect.time)));
    }
    // What a refused commit was told is true as well, unless it saw its own records.
    if (!effect.applied) return std::nullopt;
    return place(witness, op.stream, known.sequence, op.payload, known.first_seen, "I3");
  }

  // Somebody was told that this payload is at this place.
  Judgement place(StreamWitness& witness, std::string_view stream, Sequence sequence,
                  std::string_view payload, Time time, std::string_view invariant) {
    const auto [slot, added] = witness.at.try_emplace(sequence, payload);
    if (!added && slot->second != payload) {
      return broken(invariant, stream, sequence,
                    "is " + shown(slot->second) + " and " + shown(payload) + " at once");
    }
    const auto found = witness.items.find(payload);
    if (found == witness.items.end()) return std::nullopt;  // a copy with a lineage
    Time& known = found->second.at[sequence];
    const bool both = known != Time{} && time != Time{};
    if (both && known != time) {
      return broken("I4", stream, sequence, "has two times of acceptance");
    }
    if (known == Time{}) known = time;
    return std::nullopt;
  }

  Judgement check_stream(const std::string& name, StreamWitness& witness) {
    const auto found = contents_.streams.find(name);
    if (found == contents_.streams.end()) {
      const auto& lost = contents_.unreadable;
      if (witness.at.empty() || std::find(lost.begin(), lost.end(), name) != lost.end()) {
        return std::nullopt;
      }
      return broken("I1", name, Sequence{0}, "the stream is gone");
    }
    const Records& records = found->second;
    if (auto gap = check_range(name, witness, records)) return gap;
    for (const Record& record : records.records) {
      if (auto wrong = check_record(name, witness, record)) return wrong;
    }
    for (const auto& [sequence, payload] : witness.at) {
      if (sequence > records.last) {
        return broken("I1", name, sequence, shown(payload) + " was acknowledged and is not there");
      }
    }
    for (const auto& [payload, item] : witness.items) {
      if (auto wrong = check_item(name, witness, records, payload, item)) return wrong;
    }
    if (auto wrong = check_ids(name, witness)) return wrong;
    return check_conflicts(name, witness, records);
  }

  Judgement check_range(const std::string& name, const StreamWitness& witness,
                        const Records& records) {
    if (records.first > Sequence{1} && !witness.may_miss(Sequence{records.first.value - 1})) {
      return broken("I1", name, Sequence{records.first.value - 1}, "was removed by nobody");
    }
    Sequence expected = records.first;
    for (const Record& record : records.records) {
      if (record.sequence != expected) {
        return broken("I5", name, expected, "is missing between others");
      }
      expected = expected.next();
    }
    if (expected != records.last.next()) {
      return broken("I5", name, expected, "is missing at the end");
    }
    return std::nullopt;
  }

  Judgement check_record(const std::string& name, StreamWitness& witness, const Record& record) {
    const auto found = witness.items.find(record.payload);
    if (record.lineage) return std::nullopt;  // check_consumers looks at those.
    if (found == witness.items.end()) {
      return broken("I7", name, record.sequence, "has bytes that nobody sent");
    }
    Item& item = found->second;
    if (item.id != record.id && !(item.id.empty() && witness.settings.content_ids)) {
      return broken("I7", name, record.sequence, "has another message id than was sent");
    }
    if (item.group != record.group) {
      return broken("I7", name, record.sequence, "has another group key than was sent");
    }
    if (!item.may) {
      return broken("I15", name, record.sequence,
                    shown(record.payload) + " is there although every attempt was refused");
    }
    return place(witness, name, record.sequence, record.payload, record.time, "I1");
  }

  Judgement check_item(const std::string& name, const StreamWitness& witness,
                       const Records& records, std::string_view payload, const Item& item) {
    if (item.must && item.at.empty() && !witness.may_miss(Sequence{1})) {
      return broken("I1", name, records.last, shown(payload) + " was acknowledged, is not there");
    }
    if (item.repeats_after || item.at.size() < 2) return std::nullopt;
    return broken("I2", name, item.at.rbegin()->first, shown(payload) + " is stored twice");
  }

  // I2, I12: an id is accepted again only after its window, counted in log time.
  Judgement check_ids(const std::string& name, const StreamWitness& witness) {
    using Key = std::tuple<std::string_view, std::string_view>;
    struct Accepted {
      Sequence sequence;
      Time time;
      const Item* item;
      std::string_view payload;
    };
    std::map<Key, std::vector<Accepted>> ids;
    for (const auto& [payload, item] : witness.items) {
      if (item.id.empty() && !witness.settings.content_ids) continue;
      const bool grouped = witness.settings.id_scope == IdScope::kGroup;
      const std::string_view id = item.id.empty() ? payload : item.id;
      auto& accepted = ids[{id, grouped ? item.group : std::string_view{}}];
      for (const auto& [sequence, time] : item.at) {
        accepted.push_back({sequence, time, &item, payload});
      }
    }
    for (auto& [key, accepted] : ids) {
      std::sort(accepted.begin(), accepted.end(),
                [](const Accepted& a, const Accepted& b) { return a.sequence < b.sequence; });
      for (std::size_t i = 1; i < accepted.size(); ++i) {
        const Accepted& before = accepted[i - 1];
        const Accepted& after = accepted[i];
        if (before.time == Time{} || after.time == Time{}) continue;
        if (after.time >= witness.shortest.end(before.time)) continue;
        return broken("I2", name, after.sequence,
                      base::format("id {} is also at {}, within its window",
                                   std::get<0>(key).substr(0, 30), before.sequence.value));
      }
      if (accepted.empty()) continue;
      const Accepted& last = accepted.back();
      if (last.time == Time{} || contents_.now >= witness.shortest.end(last.time)) continue;
      if (last.item->id.empty() || !contents_.find_id) continue;
      const auto status = contents_.find_id(name, last.item->id, last.item->group);
      if (!status || status->sequence != last.sequence) {
        return broken("I12", name, last.sequence,
                      "its id is not remembered although its window is not over");
      }
    }
    return std::nullopt;
  }

  // I3: whoever is told of a conflict must have sent other bytes than the winner.
  Judgement check_conflicts(const std::string& name, const StreamWitness& witness,
                            const Records& records) {
    for (const Effect* effect : conflicts_) {
      const auto& op = *effect->as<Append>();
      if (op.stream != name || effect->repeated()) continue;
      const auto own = witness.items.find(op.payload);
      bool other = false;
      for (const auto& [payload, item] : witness.items) {
        if (payload == op.payload || item.id != op.id.value_or("")) continue;
        // A refused commit may have met its own records.
        other = other || item.may || item.requests.contains(effect->attempt->request->number);
      }
      if (other) continue;
      const bool certain = own != witness.items.end() && records.first == Sequence{1};
      if (certain) {
        return broken(
            "I3", name, Sequence{0},
            shown(op.payload) + " was refused as a conflict, but nobody else used its id");
      }
    }
    return std::nullopt;
  }

  // I15: of a commit whose outcome nobody knows, either all records are there or none.
  Judgement check_atomicity() {
    std::map<std::uint64_t, std::pair<std::size_t, std::size_t>> counts;  // there, not there
    std::set<std::uint64_t> skipped;
    for (const auto& [name, witness] : streams_) {
      for (const auto& [payload, item] : witness.items) {
        const bool single = item.requests.size() == 1;
        if (!single || item.must || witness.may_miss(Sequence{1})) {
          skipped.insert(item.requests.begin(), item.requests.end());
          continue;
        }
        auto& [there, absent] = counts[*item.requests.begin()];
        ++(item.at.empty() ? absent : there);
      }
    }
    for (const Effect& effect : effects_) {
      const SimRequest& request = *effect.attempt->request;
      const auto* append = effect.as<Append>();
      if (append == nullptr || request.mode != Mode::kAtomic || !effect.unknown()) continue;
      const auto found = counts.find(request.number);
      if (found == counts.end() || skipped.contains(request.number)) continue;
      const auto [there, absent] = found->second;
      if (there > 0 && absent > 0) {
        return Violation{"I15", base::format("#{}", request.number),
                         "a part of an atomic commit is there"};
      }
    }
    return std::nullopt;
  }

  const History& history_;
  const std::vector<Effect>& effects_;
  const Contents& contents_;
  std::map<std::string, StreamWitness, std::less<>> streams_;
  std::vector<const Effect*> conflicts_;
};

}  // namespace

Judgement check_streams(const History& history, const std::vector<Effect>& effects,
                        const Contents& contents) {
  return StreamCheck(history, effects, contents).run();
}

}  // namespace hapax::sim
