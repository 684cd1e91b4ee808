#include "workflows/undelivered.h"

#include <algorithm>
#include <charconv>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/format.h"
#include "delivery/workflow_streams.h"
#include "workflows/own_streams.h"
#include "workflows/plan.h"
#include "workflows/staging.h"

namespace hapax::workflows {

namespace {

using delivery::Workflow;

constexpr std::uint32_t kScannedAtOnce = 256;
// Of one page.
constexpr std::size_t kListLooksMax = 2'000;
constexpr std::size_t kCountLooksMax = 20'000;
constexpr std::uint64_t kUndeliveredBytesMax = std::uint64_t{16} << 20;

constexpr std::size_t kEmptyPageLooks = 64;  // the store has passed over many

enum class PlaceKind : std::uint8_t { kDead, kOutbox, kSource };

// Questions about one record to the store, beside what its consumer knows.
class Registers {
 public:
  Registers(const Workflow& workflow, Store& store)
      : id_(workflow.id.text()),
        blocked_(blocked_registers_of(workflow.id)),
        claims_(claims_of(workflow)),
        store_(store) {}

  // How many attempts failed, as delivery::StreamSource notes it: "3 1700000000000".
  Result<std::uint32_t> attempts(std::uint64_t stream_uid, Sequence sequence) {
    HAPAX_TRY(const auto noted, store_.find_register(base::format("{}.attempts/{}/{}", id_,
                                                                  stream_uid, sequence.value)));
    std::uint32_t failed = 0;
    if (noted) {
      const char* const end = noted->value.data() + noted->value.size();
      std::from_chars(noted->value.data(), end, failed);
    }
    return failed;
  }
  Result<std::optional<delivery::BlockedRecord>> blocked(std::uint64_t stream_uid,
                                                         Sequence sequence) {
    HAPAX_TRY(const auto noted,
              store_.find_register(base::format("{}/{}/{}", blocked_, stream_uid, sequence.value)));
    auto record = noted ? delivery::read_blocked(noted->value) : std::nullopt;
    if (record && !record->waits) record.reset();
    return record;
  }
  // Many wait behind one.
  Result<bool> is_blocked(std::uint64_t stream_uid, Sequence sequence) {
    const auto known = known_.find({stream_uid, sequence});
    if (known != known_.end()) return known->second;
    HAPAX_TRY(const auto record, blocked(stream_uid, sequence));
    known_.emplace(std::pair(stream_uid, sequence), record.has_value());
    return record.has_value();
  }
  // Nothing: attempts of the workflow are no claims, or there is none of that key.
  Result<std::optional<ClaimStatus>> claim(const std::string& key) {
    if (claims_.empty() || key.empty()) return std::optional<ClaimStatus>();
    return store_.find_claim(claims_, key);
  }

 private:
  static std::string claims_of(const Workflow& workflow) {
    const auto guarantee = workflow.delivery.guarantee;
    const bool claims = guarantee == delivery::Guarantee::kAtMostOnce ||
                        guarantee == delivery::Guarantee::kExactlyOnce;
    return claims ? workflow.id.text() + ".deliveries" : std::string();
  }

  const std::string id_;
  const std::string blocked_;
  const std::string claims_;
  Store& store_;
  std::map<std::pair<std::uint64_t, Sequence>, bool> known_;
};

struct FoundRecord {
  UnackedRecord unacked;
  std::optional<Record> record;  // none: nobody needs it
};

// What a record is, beside where it lies.
class Teller {
 public:
  Teller(const Workflow& workflow, Store& store)
      : staged_(is_staged(workflow)),
        outbox_(outbox_of(workflow).name),
        reads_stream_(source_stream(workflow).has_value()),
        registers_(workflow, store) {
    if (reads_stream_) {
      source_ = source_stream_of(workflow);
      key_for_ = key_maker(workflow, store.id());
    }
  }

  // Of the stream that dead letters came from, which their keys are made of.
  Status open(Store& store) {
    if (!reads_stream_) return Ok{};
    const auto found = store.read({.stream = source_, .max = 1});
    if (!found && found.error().code == Errc::kNotFound) return Ok{};
    if (!found) return found.error();
    source_uid_ = found->stream_uid;
    return Ok{};
  }

  Result<UndeliveredRecord> tell(PlaceKind kind, const std::string& stream,
                                 std::uint64_t stream_uid, const FoundRecord& found) {
    UndeliveredRecord out{.stream = stream, .sequence = found.unacked.sequence, .endpoint = {}};
    if (found.record) describe(kind, *found.record, stream_uid, out);
    if (kind == PlaceKind::kDead) {
      HAPAX_CHECK(tell_dead(*found.record, out));
    } else {
      HAPAX_CHECK(tell_state(found.unacked, stream_uid, out));
    }
    return out;
  }

 private:
  void describe(PlaceKind kind, const Record& record, std::uint64_t stream_uid,
                UndeliveredRecord& out) const {
    out.came = record.time;
    out.group = record.group;
    out.replay = record.lineage ? record.lineage->redrives : 0;
    const bool of_outbox =
        kind == PlaceKind::kOutbox ||
        (kind == PlaceKind::kDead && record.lineage && record.lineage->stream == outbox_);
    if (of_outbox) {
      out.key = record.id;
      const auto origin = staged_origin_of(record);
      if (!origin) return;
      out.endpoint = origin->endpoint;
      out.replay += origin->replay;
      const std::string prefix = origin->endpoint + '/';
      if (!origin->endpoint.empty() && out.group.starts_with(prefix)) {
        out.group.erase(0, prefix.size());
      }
      return;
    }
    out.id = record.id;
    if (staged_ || !reads_stream_) return;
    auto key = key_of_source(kind, record, stream_uid);
    if (key) out.key = *std::move(key);
  }
  // A dead letter has the key of the record that it was.
  [[nodiscard]] Result<std::string> key_of_source(PlaceKind kind, const Record& record,
                                                  std::uint64_t stream_uid) const {
    if (kind != PlaceKind::kDead || !record.lineage) {
      return key_for_(record, record.payload, stream_uid, {});
    }
    Record was = record;
    if (record.lineage->stream == source_) was.sequence = record.lineage->sequence;
    was.lineage.reset();
    return key_for_(was, was.payload, source_uid_, {});
  }

  Status tell_dead(const Record& record, UndeliveredRecord& out) {
    out.state = UndeliveredState::kDeadLetter;
    out.since = record.time;
    if (record.lineage) {
      out.attempts = record.lineage->attempts;
      out.error = record.lineage->reason;
    }
    HAPAX_TRY(const auto claim, registers_.claim(out.key));
    if (claim && claim->state == ClaimState::kUnknown) out.state = UndeliveredState::kUnknown;
    return Ok{};
  }

  Status tell_state(const UnackedRecord& unacked, std::uint64_t stream_uid,
                    UndeliveredRecord& out) {
    out.error = unacked.reason;
    switch (unacked.state) {
      case UnackedState::kNew:
        return Ok{};
      case UnackedState::kParked: {
        out.state = UndeliveredState::kBehind;
        out.behind = unacked.behind;
        HAPAX_TRY(out.behind_blocked, registers_.is_blocked(stream_uid, unacked.behind));
        return Ok{};
      }
      case UnackedState::kInFlight:
        out.state = UndeliveredState::kInFlight;
        break;
      case UnackedState::kWaiting:
        if (unacked.attempts > 0) out.state = UndeliveredState::kRetry;
        break;
      case UnackedState::kBlocked:
        out.state = UndeliveredState::kBlocked;
        break;
    }
    out.since = unacked.since;
    out.until = unacked.until;
    if (unacked.attempts == 0) return Ok{};
    return tell_handed_out(unacked, stream_uid, out);
  }
  Status tell_handed_out(const UnackedRecord& unacked, std::uint64_t stream_uid,
                         UndeliveredRecord& out) {
    HAPAX_TRY(out.attempts, registers_.attempts(stream_uid, unacked.sequence));
    HAPAX_TRY(auto blocked, registers_.blocked(stream_uid, unacked.sequence));
    if (blocked) {
      out.state = UndeliveredState::kBlocked;
      out.since = blocked->since;
      out.until = blocked->until;
      out.attempts = blocked->attempts;
      out.error = std::move(blocked->reason);
    }
    HAPAX_TRY(const auto claim, registers_.claim(out.key));
    if (!claim || claim->state != ClaimState::kUnknown) return Ok{};
    out.state = UndeliveredState::kUnknown;
    out.since = claim->since;
    if (!claim->reason.empty()) out.error = claim->reason;
    return Ok{};
  }

  const bool staged_;
  const std::string outbox_;
  const bool reads_stream_;
  std::string source_;
  std::uint64_t source_uid_ = 0;
  KeyMaker key_for_;
  Registers registers_;
};

// One of the streams, from a sequence on. What it has found waits until it is taken.
class Place {
 public:
  // `all`: every record is read; otherwise those only whose state depends on their content.
  Place(Store& store, PlaceKind kind, std::string stream, std::string consumer, bool all)
      : store_(store),
        kind_(kind),
        stream_(std::move(stream)),
        consumer_(std::move(consumer)),
        all_(all) {}

  [[nodiscard]] PlaceKind kind() const { return kind_; }
  [[nodiscard]] const std::string& stream() const { return stream_; }
  [[nodiscard]] std::uint64_t stream_uid() const { return stream_uid_; }
  [[nodiscard]] bool is_done() const { return found_.empty() && scan_from_ == Sequence{0}; }
  // Where a later page goes on: if it is done, behind all that was there, for records may come to
  // it from another place meanwhile.
  [[nodiscard]] std::uint64_t next() const {
    if (is_done()) return end_;
    return found_.empty() ? scan_from_.value : found_.front().unacked.sequence.value;
  }
  [[nodiscard]] std::size_t looks() const { return looks_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

  // 0 is the beginning.
  Status begin(std::uint64_t from, Time since) {
    scan_from_ = Sequence{0};
    end_ = from;
    const auto stats = store_.describe(stream_);
    if (!stats && stats.error().code == Errc::kNotFound) return Ok{};
    if (!stats) return stats.error();
    HAPAX_TRY(const Records found, store_.read({.stream = stream_, .max = 1}));
    stream_uid_ = found.stream_uid;
    Sequence first = std::max(Sequence{from}, stats->first);
    if (since > Time::min()) {
      HAPAX_TRY(first, delivery::first_since(store_, stream_, first, stats->last.next(), since));
    }
    if (first <= stats->last) scan_from_ = first;
    end_ = std::max(from, stats->last.next().value);
    return Ok{};
  }

  // The first one that was not taken yet; null: there is none, or a page should end here.
  Result<const FoundRecord*> peek() {
    if (found_.empty() && scan_from_ != Sequence{0}) HAPAX_CHECK(fill());
    return found_.empty() ? nullptr : &found_.front();
  }
  FoundRecord take() {
    FoundRecord first = std::move(found_.front());
    found_.pop_front();
    return first;
  }

 private:
  Status fill() {
    if (kind_ == PlaceKind::kDead) return fill_dead();
    HAPAX_TRY(UnackedPage page,
              store_.scan_unacked({stream_, consumer_, scan_from_, kScannedAtOnce}));
    looks_ += std::max(page.records.size(), kEmptyPageLooks);
    scan_from_ = page.next;
    for (UnackedRecord& each : page.records) {
      end_ = std::max(end_, each.sequence.next().value);
      found_.push_back({std::move(each), {}});
    }
    return read_found();
  }
  Status fill_dead() {
    HAPAX_TRY(Records page,
              store_.read({.stream = stream_, .from = scan_from_, .max = kScannedAtOnce}));
    looks_ += std::max(page.records.size(), kEmptyPageLooks);
    for (Record& record : page.records) {
      bytes_ += record.payload.size();
      const UnackedRecord unacked{.sequence = record.sequence};
      scan_from_ = record.sequence.next();
      end_ = std::max(end_, scan_from_.value);
      found_.push_back({unacked, std::move(record)});
    }
    if (page.records.empty() || scan_from_ > page.last) scan_from_ = Sequence{0};
    return Ok{};
  }

  [[nodiscard]] bool needs(const UnackedRecord& unacked) const {
    return all_ || unacked.attempts > 0;
  }
  // Those that lie behind each other are read together. One that is gone by now is left out.
  Status read_found() {
    std::deque<FoundRecord> whole;
    for (std::size_t at = 0; at < found_.size();) {
      if (!needs(found_[at].unacked)) {
        whole.push_back(std::move(found_[at++]));
        continue;
      }
      std::size_t end = at + 1;
      while (end < found_.size() && needs(found_[end].unacked) &&
             found_[end].unacked.sequence == found_[end - 1].unacked.sequence.next()) {
        ++end;
      }
      HAPAX_TRY(at, read_run(at, end, whole));
    }
    found_ = std::move(whole);
    return Ok{};
  }
  // Answers how far it came: an answer of the store is bounded in bytes.
  Result<std::size_t> read_run(std::size_t at, std::size_t end, std::deque<FoundRecord>& whole) {
    HAPAX_TRY(Records page, store_.read({.stream = stream_,
                                         .from = found_[at].unacked.sequence,
                                         .max = static_cast<std::uint32_t>(end - at)}));
    if (page.records.empty()) return end;
    for (Record& record : page.records) {
      while (at < end && found_[at].unacked.sequence < record.sequence) ++at;
      if (at == end) break;
      bytes_ += record.payload.size();
      if (found_[at].unacked.sequence != record.sequence) continue;
      found_[at].record = std::move(record);
      whole.push_back(std::move(found_[at++]));
    }
    return at;
  }

  Store& store_;
  const PlaceKind kind_;
  const std::string stream_;
  const std::string consumer_;
  const bool all_;
  std::uint64_t stream_uid_ = 0;
  Sequence scan_from_{};   // 0: nothing is left
  std::uint64_t end_ = 0;  // behind the last record that it knows of
  std::deque<FoundRecord> found_;
  std::size_t looks_ = 0;
  std::uint64_t bytes_ = 0;
};

class Places {
 public:
  Places(const Workflow& workflow, Store& store, bool all) {
    const std::string& id = workflow.id.text();
    places_.emplace_back(store, PlaceKind::kDead, id + ".dead", "", all);
    places_.emplace_back(store, PlaceKind::kOutbox, outbox_of(workflow).name, id, all);
    if (!source_stream(workflow)) return;
    places_.emplace_back(store, PlaceKind::kSource, source_stream_of(workflow), id, all);
  }

  Status begin(const UndeliveredQuery& query) {
    for (std::size_t i = 0; i < places_.size(); ++i) {
      HAPAX_CHECK(places_[i].begin(query.from.from[i], query.since));
    }
    return Ok{};
  }
  // From where each of them ended: while one was read, records may have come to those before it.
  Status look_again(Time since) {
    for (Place& place : places_) HAPAX_CHECK(place.begin(place.next(), since));
    return Ok{};
  }
  // The one whose next record came first; null: none has any.
  Result<Place*> oldest() {
    Place* first = nullptr;
    Time came{};
    // Records move on from the last place to the first, so what moves meanwhile is seen.
    for (auto at = places_.rbegin(); at != places_.rend(); ++at) {
      HAPAX_TRY(const FoundRecord* found, at->peek());
      if (found == nullptr) continue;
      const Time time = found->record ? found->record->time : Time::min();
      if (first != nullptr && came < time) continue;
      first = &*at;
      came = time;
    }
    return first;
  }
  [[nodiscard]] bool looked_enough(std::size_t most) const {
    std::size_t looks = 0;
    std::uint64_t bytes = 0;
    for (const Place& place : places_) {
      looks += place.looks();
      bytes += place.bytes();
    }
    return looks >= most || bytes >= kUndeliveredBytesMax;
  }
  [[nodiscard]] std::optional<UndeliveredCursor> next() const {
    UndeliveredCursor cursor;
    bool some = false;
    for (std::size_t i = 0; i < places_.size(); ++i) {
      cursor.from[i] = places_[i].next();
      some = some || !places_[i].is_done();
    }
    return some ? std::optional(cursor) : std::nullopt;
  }

 private:
  std::deque<Place> places_;
};

// Calls visit(record) of each, the oldest first, until it answers false. Answers where to go on.
template <class Visit>
Result<std::optional<UndeliveredCursor>> visit_undelivered(const Workflow& workflow,
                                                           const UndeliveredQuery& query,
                                                           Store& store, bool all, std::size_t most,
                                                           const Visit& visit) {
  if (workflow.draft()) return std::optional<UndeliveredCursor>();
  Places places(workflow, store, all || query.endpoint);
  HAPAX_CHECK(places.begin(query));
  Teller teller(workflow, store);
  HAPAX_CHECK(teller.open(store));
  const bool several = workflow.endpoints.size() > 1;
  bool looked_again = false;
  while (true) {
    HAPAX_TRY(auto* const place, places.oldest());
    if (place == nullptr) {
      if (!places.next() && !std::exchange(looked_again, true)) {
        HAPAX_CHECK(places.look_again(query.since));
        continue;
      }
      // A store that has passed over many without finding one is asked again by the next page.
      if (!places.next() || places.looked_enough(most)) return places.next();
      continue;
    }
    const FoundRecord found = place->take();
    HAPAX_TRY(UndeliveredRecord record,
              teller.tell(place->kind(), place->stream(), place->stream_uid(), found));
    const bool decided = !several || !record.endpoint.empty();
    if (decided && record.endpoint.empty()) record.endpoint = workflow.endpoints.front().name;
    const bool wanted = !query.endpoint || (decided && record.endpoint == *query.endpoint);
    const bool goes_on = !wanted || visit(std::move(record));
    if (!goes_on || places.looked_enough(most)) return places.next();
  }
}

}  // namespace

std::string UndeliveredCursor::text() const {
  return base::format("{}.{}.{}", from[0], from[1], from[2]);
}

std::optional<UndeliveredCursor> UndeliveredCursor::parse(std::string_view text) {
  UndeliveredCursor cursor;
  for (std::size_t i = 0; i < cursor.from.size(); ++i) {
    if (i > 0) {
      if (!text.starts_with('.')) return std::nullopt;
      text.remove_prefix(1);
    }
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), cursor.from[i]);
    if (error != std::errc{}) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  }
  return text.empty() ? std::optional(cursor) : std::nullopt;
}

Result<UndeliveredPage> find_undelivered(const Workflow& workflow, const UndeliveredQuery& query,
                                         Store& store) {
  UndeliveredPage page;
  const auto keep = [&](UndeliveredRecord record) {
    page.records.push_back(std::move(record));
    return page.records.size() < query.max;
  };
  HAPAX_TRY(page.next, visit_undelivered(workflow, query, store, true, kListLooksMax, keep));
  return page;
}

Result<UndeliveredCount> count_undelivered(const Workflow& workflow, const UndeliveredQuery& query,
                                           Store& store) {
  UndeliveredCount count;
  const auto add = [&](const UndeliveredRecord& record) {
    ++count.counts[static_cast<std::size_t>(record.state)];
    return true;
  };
  HAPAX_TRY(count.next, visit_undelivered(workflow, query, store, false, kCountLooksMax, add));
  return count;
}

}  // namespace hapax::workflows
