// For the tests of consumers: a model that keeps one line per record and looks at all of them every
// time, written from the rules and not from the code. No part of the product.
#pragma once

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <hapax/ops.h>
#include <hapax/verdicts.h>

namespace hapax::core {

struct ModelRecord {
  std::string group;
  std::string payload;
  std::optional<Lineage> lineage;
  bool removed = false;
};
struct ModelStream {
  std::string name;
  std::vector<ModelRecord> records;
  std::uint64_t first = 1;

  [[nodiscard]] bool keeps(std::uint64_t at) const {
    return at >= first && at <= records.size() && !records[at - 1].removed;
  }
};

struct ModelLine {
  enum State { kAhead, kParked, kWaiting, kOut, kBlocked, kDone };
  State state = kAhead;
  std::uint32_t attempts = 0;
  std::uint64_t token = 0;
  std::uint64_t acked_with = 0;  // token of a receipt that may ack again
  Time due{};
  Time first{};
  Time last{};
  std::string owner;
  std::string reason;
  std::vector<PastAttempt> failed;
};

class ModelConsumer {
 public:
  std::vector<ModelLine> lines;
  Time now{};

  ModelConsumer(std::string name, ModelStream& stream, ModelStream& dead_letters,
                ConsumerSettings settings)
      : name_(std::move(name)),
        stream_(stream),
        dead_(dead_letters),
        settings_(settings),
        next_(settings.start.value) {}

  void keep_up() {
    while (lines.size() < stream_.records.size()) {
      const bool below = lines.size() + 1 < settings_.start.value;
      lines.emplace_back().state = below ? ModelLine::kDone : ModelLine::kAhead;
    }
  }

  Received receive(std::uint32_t max, Duration lease, const std::string& owner) {
    keep_up();
    const Leaving leaving = look_at_due(max);
    give_up(leaving.exhausted);
    std::vector<std::uint64_t> gone = leaving.gone;
    let_go(gone);
    std::size_t room = 0;
    std::vector<std::uint64_t> chosen = choose_due(max, room);
    // What left made room in flight and moved its group on, so that others are seen to be gone.
    while (chosen.empty() && !gone.empty()) {
      gone = look_at_due(max).gone;
      let_go(gone);
      chosen = choose_due(max, room);
    }
    for (const std::uint64_t at : chosen) hand_out(at, lease, owner);
    std::size_t wanted = std::min<std::size_t>(max - chosen.size(), room);
    for (; next_ < stream_.first; ++next_) line(next_).state = ModelLine::kDone;
    for (; next_ <= stream_.records.size() && wanted > 0; ++next_) {
      if (!stream_.keeps(next_) || !is_mine(next_)) {
        line(next_).state = ModelLine::kDone;
      } else if (is_busy(group(next_))) {
        line(next_).state = ModelLine::kParked;
      } else {
        hand_out(next_, lease, owner);
        chosen.push_back(next_);
        --wanted;
      }
    }
    Received received;
    if (chosen.empty()) received.next_due = next_due();
    for (const std::uint64_t at : chosen) {
      Delivery& delivery = received.deliveries.emplace_back();
      delivery.token = Token{line(at).token};
      delivery.attempt = line(at).attempts;
      delivery.lease_until = line(at).due;
      delivery.record.sequence = Sequence{at};
    }
    return received;
  }

  Verdict ack(Receipt receipt) {
    if (auto verdict = look(receipt)) {
      const bool before = receipt.sequence.value - 1 < lines.size() &&
                          line(receipt.sequence.value).acked_with == receipt.token.value;
      return before && receipt.token.value != 0 ? Verdict{Done{}} : *verdict;
    }
    if (line(receipt.sequence.value).state == ModelLine::kWaiting) return Stale{};
    finish(receipt.sequence.value, true);
    return Done{};
  }
  Verdict nack(Receipt receipt, Duration delay, const std::string& reason, bool last = false) {
    if (auto verdict = look(receipt)) return *verdict;
    const std::uint64_t at = receipt.sequence.value;
    ModelLine& held = line(at);
    if (held.state != ModelLine::kOut) return Stale{};
    if (!last && held.attempts < settings_.attempts_max) {
      held.state = ModelLine::kWaiting;
      held.due = now + delay;
      held.reason = reason;
      fail(held, AttemptEnding::kNacked, now, reason);
    } else if (!stream_.keeps(at)) {
      finish(at, true);
    } else {
      fail(held, AttemptEnding::kNacked, now, reason);
      give_up(at, reason);
    }
    return Done{};
  }
  Verdict extend(Receipt receipt, Duration lease) {
    if (auto verdict = look(receipt)) return *verdict;
    ModelLine& held = line(receipt.sequence.value);
    if (held.state != ModelLine::kOut) return Stale{};
    held.due = now + lease;
    return Renewed{held.due};
  }
  Verdict seek(std::uint64_t to) {
    keep_up();
    if (to > lines.size() + 1) return Refused{{Errc::kInvalidArgument, ""}};
    next_ = std::max(to, stream_.first);
    for (std::uint64_t at = 1; at <= lines.size(); ++at) {
      line(at) = ModelLine{};
      if (at < next_) line(at).state = ModelLine::kDone;
    }
    valid_from_ = next_token_;
    return Done{};
  }
  void removed(std::uint64_t at) {
    if (at <= lines.size() && line(at).state == ModelLine::kBlocked) finish(at, true);
  }

 private:
  ModelLine& line(std::uint64_t at) { return lines.at(at - 1); }
  [[nodiscard]] const std::string& group(std::uint64_t at) const {
    return stream_.records.at(at - 1).group;
  }
  // C9
  [[nodiscard]] bool is_mine(std::uint64_t at) const {
    const std::optional<Lineage>& lineage = stream_.records.at(at - 1).lineage;
    return !lineage || lineage->to != RedriveTo::kConsumer || lineage->consumer == name_;
  }
  [[nodiscard]] std::size_t count(ModelLine::State state) const {
    return static_cast<std::size_t>(std::count_if(
        lines.begin(), lines.end(), [state](const ModelLine& l) { return l.state == state; }));
  }
  bool is_busy(const std::string& name) {
    if (name.empty()) return false;
    for (std::uint64_t at = 1; at <= lines.size(); ++at) {
      const auto state = line(at).state;
      if (group(at) == name && state != ModelLine::kAhead && state != ModelLine::kDone) return true;
    }
    return false;
  }
  std::vector<std::uint64_t> due() {
    std::set<std::pair<Time, std::uint64_t>> sorted;
    for (std::uint64_t at = 1; at <= lines.size(); ++at) {
      const ModelLine& l = line(at);
      const bool timed = l.state == ModelLine::kOut || l.state == ModelLine::kWaiting;
      if (timed && l.due <= now) sorted.emplace(l.due, at);
    }
    std::vector<std::uint64_t> all;
    for (const auto& [when, at] : sorted) all.push_back(at);
    return all;
  }

  [[nodiscard]] Time next_due() const {
    const bool room = count(ModelLine::kOut) < settings_.in_flight_max;
    Time next = Time::max();
    for (const ModelLine& l : lines) {
      const bool counts = l.state == ModelLine::kOut || (room && l.state == ModelLine::kWaiting);
      if (counts) next = std::min(next, l.due);
    }
    return next;
  }

  void hand_out(std::uint64_t at, Duration lease, const std::string& owner) {
    ModelLine& l = line(at);
    if (l.state == ModelLine::kOut) fail(l, AttemptEnding::kLeaseRanOut, l.due, "");
    l.state = ModelLine::kOut;
    if (l.attempts++ == 0) l.first = now;
    l.last = now;
    l.token = next_token_++;
    l.due = now + lease;
    l.owner = owner;
  }
  static void fail(ModelLine& l, AttemptEnding ending, Time ended, const std::string& reason) {
    l.failed.push_back({l.attempts, 0, l.last, ended, ending, l.owner, reason});
  }
  void finish(std::uint64_t at, bool by_receipt) {
    line(at).state = ModelLine::kDone;
    if (by_receipt) line(at).acked_with = line(at).token;
    if (group(at).empty()) return;
    for (std::uint64_t younger = at + 1; younger <= lines.size(); ++younger) {
      if (line(younger).state != ModelLine::kParked || group(younger) != group(at)) continue;
      line(younger).state = ModelLine::kWaiting;
      line(younger).due = now;
      return;
    }
  }
  void give_up(std::uint64_t at, const std::string& reason) {
    if (settings_.last_attempt == LastAttempt::kBlock) {
      line(at).state = ModelLine::kBlocked;
      return;
    }
    ModelRecord dead = stream_.records.at(at - 1);
    if (!dead.lineage) dead.lineage = Lineage{stream_.name, Sequence{at}, "", "", 0, {}, {}, 0, {}};
    if (!dead.lineage->is_dead_letter()) dead.lineage->consumer = name_;
    dead.lineage->to.reset();
    dead.lineage->reason = reason;
    dead.lineage->attempts = line(at).attempts;
    dead.lineage->first_handed_out = line(at).first;
    dead.lineage->last_handed_out = line(at).last;
    std::vector<PastAttempt>& history = dead.lineage->history;
    for (PastAttempt attempt : line(at).failed) {
      attempt.redrives = dead.lineage->redrives;
      history.push_back(attempt);
      if (history.size() > 16) history.erase(history.begin());
    }
    dead_.records.push_back(std::move(dead));
    finish(at, false);
  }
  // Pending records that are not handed out again: trimmed or removed, or without an attempt left.
  struct Leaving {
    std::vector<std::uint64_t> gone;
    std::vector<std::uint64_t> exhausted;
  };
  Leaving look_at_due(std::uint32_t max) {
    Leaving leaving;
    for (std::uint64_t at = 1; at < stream_.first; ++at) {
      if (line(at).state == ModelLine::kBlocked) leaving.gone.push_back(at);
    }
    std::size_t staying = 0;
    std::size_t room = settings_.in_flight_max - count(ModelLine::kOut);
    for (const std::uint64_t at : due()) {
      if (staying == max) break;
      const bool waits = line(at).state == ModelLine::kWaiting;
      if (waits && room == 0) continue;
      if (!stream_.keeps(at)) {
        leaving.gone.push_back(at);
      } else if (line(at).attempts >= settings_.attempts_max) {
        leaving.exhausted.push_back(at);
      } else {
        ++staying;
        if (waits) --room;
      }
    }
    return leaving;
  }
  // Ascending. `room` becomes what they leave of the room in flight.
  std::vector<std::uint64_t> choose_due(std::uint32_t max, std::size_t& room) {
    std::vector<std::uint64_t> chosen;
    room = settings_.in_flight_max - count(ModelLine::kOut);
    for (const std::uint64_t at : due()) {
      if (chosen.size() == max) break;
      if (!stream_.keeps(at) || line(at).attempts >= settings_.attempts_max) continue;
      if (line(at).state == ModelLine::kWaiting) {
        if (room == 0) continue;
        --room;
      }
      chosen.push_back(at);
    }
    std::sort(chosen.begin(), chosen.end());
    return chosen;
  }
  void give_up(const std::vector<std::uint64_t>& exhausted) {
    for (const std::uint64_t at : exhausted) {
      const std::string before = line(at).reason;
      fail(line(at), AttemptEnding::kLeaseRanOut, line(at).due, "");
      give_up(at, "lease ran out" + (before.empty() ? "" : "; last nack: " + before));
    }
  }
  void let_go(const std::vector<std::uint64_t>& gone) {
    for (const std::uint64_t at : gone) finish(at, line(at).state != ModelLine::kWaiting);
    for (const std::uint64_t at : gone) finish_gone_behind(at);
  }
  void finish_gone_behind(std::uint64_t at) {
    if (group(at).empty()) return;
    for (std::uint64_t younger = at + 1; younger <= lines.size(); ++younger) {
      const bool next = line(younger).state == ModelLine::kWaiting && line(younger).token == 0;
      if (group(younger) == group(at) && next && !stream_.keeps(younger)) finish(younger, false);
    }
  }
  // The verdict of whoever does not hold the record.
  std::optional<Verdict> look(Receipt receipt) {
    keep_up();
    const std::uint64_t at = receipt.sequence.value;
    if (at == 0 || at > lines.size()) return Refused{{Errc::kNotFound, ""}};
    const std::uint64_t token = receipt.token.value;
    const Verdict never = Refused{{Errc::kInvalidArgument, ""}};
    if (token == 0 || token >= next_token_) return never;
    const ModelLine& l = line(at);
    if (l.state == ModelLine::kDone) return Stale{"", true};
    if (token == l.token) return std::nullopt;
    if (token > l.token) return token < valid_from_ ? Verdict{Stale{}} : never;
    return Stale{l.state == ModelLine::kOut ? l.owner : "", false};
  }

  std::string name_;
  ModelStream& stream_;
  ModelStream& dead_;
  ConsumerSettings settings_;
  std::uint64_t next_ = 1;
  std::uint64_t next_token_ = 1;
  std::uint64_t valid_from_ = 1;
};

}  // namespace hapax::core
