// For tests of the core as a whole: every field of a state in words, those that follow from others
// included, so that a difference can be read. It shares nothing with the state's encoding, which
// could forget a field in both directions. Ids and settled claims are left out: canonical() has
// them. No part of the product.
#pragma once

#include <algorithm>
#include <concepts>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/format.h"
#include "core/state.h"

namespace hapax::core::rig {

template <class Map>
std::map<typename Map::key_type, typename Map::mapped_type> ordered(const Map& map) {
  return {map.begin(), map.end()};
}

template <class Value>
std::map<base::Hash128, Value> ordered(const SharedTable<Value>& table) {
  std::map<base::Hash128, Value> all;
  table.for_each([&](base::Hash128 hash, const Value& value) { all.emplace(hash, value); });
  return all;
}

class Telling {
 public:
  explicit Telling(const State& state) {
    say("next", state.next_fence, state.next_consumer, state.next_epoch, state.gaps);
    say("first token", state.first_token);
    say("lost", state.records_lost, state.results_lost);
    say("hybrid", state.hybrid);
    say("open transactions, unknown claims", state.transactions_open, state.claims_unknown);
    say("text, deleted, trimmed", state.text_bytes, state.graveyard.size(), state.trimmed.size());
    tell(state.tenants);
    for (const auto& [segment, bytes] : state.live_bytes) say("live", segment, bytes);
    for (const auto& [end, slice] : state.results_end) {
      for (const auto& [segment, bytes] : slice) say("results", end, segment, bytes);
    }
    for (const auto& [name, uid] : ordered(state.stream_names)) say("stream name", name, uid);
    for (const StreamUid uid : state.retaining) say("retaining", uid);
    for (const auto& stream : state.streams) {
      if (stream == nullptr) say("no stream");
      if (stream != nullptr) tell(*stream);
    }
    for (const auto& [uid, consumer] : state.consumers) tell(consumer);
    for (const auto& [hash, claim] : ordered(state.open_claims)) tell(hash, *claim);
    for (const auto& [end, hash] : state.open_claims_end) say("claim ends", end.first, hash);
    for (const auto& [end, fence] : state.guarded_claims) say("guarded until", end, fence);
    for (const auto& [name, position] : ordered(state.positions)) {
      say("position", name, position.value, position.epoch);
    }
    for (const auto& [hash, set] : ordered(state.registers)) {
      say("register", hash, set->name(), set->value(), set->version, set->at, set->expires_at);
    }
    for (const auto& [end, version, hash] : state.registers_end) {
      say("register ends", end, version, hash);
    }
    say("version floor", state.version_floor);
    for (const auto& [name, transaction] : ordered(state.transactions)) tell(name, transaction);
  }

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  // Without what goes with time, of which a snapshot tells only a part. One that has nothing counts
  // as one that was never here.
  void tell(const Tenants& tenants) {
    std::map<std::string, const Tenant*> all;
    tenants.for_each([&](const std::string& frame, const Tenant& one) { all[frame] = &one; });
    for (const auto& [frame, one] : all) {
      Load stays{one->memory, one->storage};
      for (const auto& [slice, load] : one->going) {
        stays.memory -= load.memory;
        stays.storage -= load.storage;
      }
      const bool empty = stays.memory == 0 && stays.storage == 0;
      if (empty && one->streams + one->registers + one->transactions_open == 0) continue;
      say("tenant", frame, stays.memory, stays.storage, one->streams, one->registers,
          one->transactions_open);
    }
  }

  template <class... Values>
  void say(std::string_view what, const Values&... values) {
    text_ += what;
    ((text_ += ' ', add(values)), ...);
    text_ += '\n';
  }
  template <class Plain>
  requires std::integral<Plain> || std::is_enum_v<Plain>
  void add(Plain number) { text_ += std::to_string(static_cast<std::uint64_t>(number)); }
  template <class Tag>
  void add(Number<Tag> number) {
    add(number.value);
  }
  void add(std::string_view text) { text_.append("'").append(text).append("'"); }
  void add(Time time) { add(to_ms(time)); }
  void add(Window window) { add(window.raw()); }
  void add(const Fingerprint& print) { text_ += print.hex(); }
  void add(const base::Hash128& hash) { add(base::to_fingerprint(hash)); }
  void add(const HybridTime& at) {
    base::append_format(text_, "{}.{}.{}", at.wall_ms, at.counter, at.node);
  }
  template <class Value>
  void add(const std::optional<Value>& value) {
    if (value) add(*value);
    if (!value) text_ += "none";
  }
  void add(Duration span) { add(span.count()); }
  void add(const Spans& spans) {
    spans.for_each([this](const Spans::Span& span) {
      add(span.first);
      text_ += '-';
      add(span.last);
      text_ += '@';
      add(span.label);
      text_ += ' ';
    });
  }

  void tell(const Stream& stream) {
    say("stream", stream.uid, stream.name, stream.created_at, stream.horizon_floor, stream.first,
        stream.last, stream.bytes, stream.producers_active);
    const StreamSettings& set = stream.settings;
    say("settings", set.window, set.window_start, set.id_scope, set.content_ids, set.track_groups,
        set.record_bytes_max, set.quota_bytes, set.producer_memory, set.producers_max);
    say("retention", set.retention.age, set.retention.bytes, set.retention.count,
        set.retention.acked_by_all);
    say("removed", stream.removed);
    for (const auto& [sequence, consumer] : stream.addressed) say("for", sequence, consumer);
    if (stream.has_groups) say("has groups");
    for (const auto& [end, before] : stream.groups_end) say("groups end", end, before);
    for (const Run& run : stream.runs) {
      say("run", run.first, run.count, run.largest, run.at.segment, run.at.offset, run.at.length,
          run.time);
      for (const GroupHash group : run.groups) say("of", group);
    }
    for (const auto& [group, last] : ordered(stream.group_last)) say("group", group, last);
    for (const auto& [name, producer] : ordered(stream.producers)) {
      say("producer", name, producer.epoch, producer.next, producer.retired, producer.forgotten_at,
          producer.former.epoch, producer.former.next, producer.former.last);
      for (const Producer::Stored& stored : producer.stored) {
        say("stored", stored.at, stored.fingerprint, stored.time);
      }
    }
    for (const auto& [name, uid] : stream.consumers) say("consumer", name, uid);
  }
  void tell(const Consumer& consumer) {
    say("consumer", consumer.uid, consumer.stream, consumer.name, consumer.next,
        consumer.next_token, consumer.valid_from, consumer.in_flight, consumer.dead_lettered,
        consumer.past_bytes);
    const OwnedConsumerSettings& set = consumer.settings;
    say("settings", set.attempts_max, set.last_attempt, set.dead_letters, set.start,
        set.in_flight_max);
    say("acked", consumer.acked);
    say("tokens", consumer.acked_tokens);
    for (const auto& [sequence, pending] : consumer.pending) {
      say("pending", sequence, pending.state, pending.attempts, pending.group, pending.token,
          pending.due, pending.first_handed_out, pending.last_handed_out,
          pending.owner == nullptr ? "-" : *pending.owner);
      for (const PastAttempt& past : pending.past == nullptr ? PastAttempts{} : *pending.past) {
        say("past", past.attempt, past.redrives, past.handed_out, past.ended, past.ending,
            past.owner, past.reason);
      }
    }
    for (const auto& [due, sequence] : consumer.due) say("due", due, sequence);
    for (const auto& [due, sequence] : consumer.waiting) say("waiting", due, sequence);
    for (const auto& [group, sequence] : ordered(consumer.heads)) say("head", group, sequence);
    for (const auto& [group, sequence] : consumer.parked) say("parked", group, sequence);
  }
  void tell(const base::Hash128& hash, const OpenClaim& claim) {
    say("claim", hash, claim.state, claim.scope(), claim.key(), claim.fingerprint, claim.owner(),
        claim.reason(), claim.fence, claim.attempts, claim.since, claim.lease_until,
        claim.retention, claim.tombstone, claim.on_lapse, claim.former);
  }
  void tell(const std::string& name, const Transaction& transaction) {
    say("transaction", name, transaction.epoch, transaction.open, transaction.committed,
        transaction.ends_at, transaction.staged_bytes);
    for (const std::string& ops : transaction.staged) say("staged", ops);
  }

  std::string text_;
};

inline std::string told(const State& state) { return Telling(state).text(); }

// The first line in which two such texts differ; "" = none.
inline std::string difference(std::string_view one, std::string_view other) {
  if (one == other) return "";
  const auto lines = [](std::string_view text, std::size_t from) {
    return std::string(text.substr(from, text.find('\n', from) - from));
  };
  std::size_t line = 0;
  for (std::size_t at = 0; at < std::min(one.size(), other.size()); ++at) {
    if (one[at] != other[at]) break;
    if (one[at] == '\n') line = at + 1;
  }
  return "\"" + lines(one, line) + "\", but \"" + lines(other, line) + "\"";
}

}  // namespace hapax::core::rig
