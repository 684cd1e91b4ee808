// For tests of the core as a whole: a store over a journal in memory, and what a restart makes of
// it. test_ops.h has random operations for it, test_tell.h compares states. No part of the product.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/format.h"
#include "core/claims.h"
#include "core/commit.h"
#include "core/state.h"
#include "core/turn.h"

namespace hapax::core::rig {

// --- chance and hashes ---------------------------------------------------------------------------

// The same seed always throws the same (splitmix64).
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15ULL;
    return base::spread(state_).low;
  }
  std::uint64_t below(std::uint64_t end) { return next() % end; }
  std::uint64_t between(std::uint64_t first, std::uint64_t last) {
    return first + below(last - first + 1);
  }
  bool one_in(std::uint64_t number) { return below(number) == 0; }
  template <class List>
  const auto& pick(const List& list) {
    return list[below(std::size(list))];
  }

 private:
  std::uint64_t state_;
};

inline base::Hash128 hash_text(std::string_view text, std::uint64_t salt) {
  base::Hash128 hash = base::spread(salt);
  for (const char c : text) {
    hash.low ^= static_cast<unsigned char>(c);
    const base::Hash128 mixed = base::spread(hash.low);
    hash = {hash.high * 0x100000001b3ULL + mixed.low, mixed.low ^ hash.high};
  }
  return {base::spread(hash.high).low, base::spread(hash.low).low};
}

inline Fingerprint print_text(std::string_view text) {
  return base::to_fingerprint(hash_text(text, 2));
}

struct TestHashes {
  OpHashes operator()(const Append& op) const {
    const std::string content = std::string(op.group.value_or("")) + '/' + std::string(op.payload);
    const GroupHash group = op.group ? hash_text(*op.group, 3).low : 0;
    return {hash_text(op.id.value_or(""), 1), print_text(content), group};
  }
  template <class Op>
  OpHashes operator()(const Op& op) const {
    OpHashes hashes;
    if constexpr (requires { op.scope; }) {
      hashes.key = hash_text(std::string(op.scope) + '/' + std::string(op.key), 4);
    }
    if constexpr (requires { op.name; }) hashes.key = hash_text(op.name, 5);
    if constexpr (requires { op.content; }) hashes.content = print_text(op.content);
    return hashes;
  }
};

// --- the journal ---------------------------------------------------------------------------------

// Batches of facts in small segments; the batch being built can be cut.
class MemoryJournal final : public StateOwner {
 public:
  struct Frame {
    base::Where at;
    std::string bytes;  // of the fact, without the trailer
  };
  struct Batch {
    Time time;
    std::vector<Frame> frames;
  };
  static constexpr std::uint32_t kSegmentBytes = 700;

  // Opens a batch, in a new segment if the last one is full.
  void begin(Time time) {
    if (segments_.empty() || segments_.rbegin()->second.size() >= kSegmentBytes) {
      segments_[segment() + 1].assign(16, 'h');  // A header, so that offset 0 is nobody's.
    }
    batches_.push_back({time, {}});
  }
  // The batch did not reach the disk.
  void drop() {
    cut_batch(0);
    batches_.pop_back();
  }

  ContentId content_id(std::string_view payload) override {
    return {"sha-" + std::string(payload.substr(0, 40)), hash_text(payload, 5)};
  }
  std::size_t batch_mark() override { return batches_.back().frames.size(); }

  [[nodiscard]] const std::vector<Batch>& batches() const { return batches_; }
  [[nodiscard]] std::uint32_t segment() const {
    return segments_.empty() ? 0 : segments_.rbegin()->first;
  }
  [[nodiscard]] std::string read(base::Where at) const {
    return segments_.at(at.segment).substr(at.offset, at.length);
  }

 private:
  base::Where write(const Fact& fact) override {
    std::string bytes;
    encode(fact, bytes);
    std::string& end = segments_.rbegin()->second;
    const base::Where at{segment(), static_cast<std::uint32_t>(end.size()),
                         static_cast<std::uint32_t>(bytes.size() + kFactTrailer)};
    end += bytes;
    end.append(kFactTrailer, 'c');
    if (const auto* record = std::get_if<RecordAppended>(&fact)) {
      records_[{record->stream, record->sequence}] = bytes;
    }
    batches_.back().frames.push_back({at, std::move(bytes)});
    return at;
  }
  void cut_batch(std::size_t mark) override {
    auto& frames = batches_.back().frames;
    if (mark == frames.size()) return;
    segments_.rbegin()->second.resize(frames[mark].at.offset);
    frames.resize(mark);
  }
  Result<std::string> read_record(const Stream& stream, Sequence sequence) override {
    HAPAX_ASSERT(stream.keeps(sequence), "only kept records are read");
    const auto found = records_.find({stream.uid, sequence});
    HAPAX_ASSERT(found != records_.end(), "a kept record was written");
    return found->second;
  }

  std::vector<Batch> batches_;
  std::map<std::uint32_t, std::string> segments_;
  std::map<std::pair<StreamUid, Sequence>, std::string> records_;  // newest under that place
};

// --- the store -----------------------------------------------------------------------------------

// One batch is open at a time: commits go into it, then it is kept or rolled back as a whole.
class MemoryStore {
 public:
  State state{4};
  Undo undo;
  MemoryJournal journal;
  Time now = time_from_ms(1'700'000'000'000);

  void begin(Duration later) {
    now += later;
    journal.begin(now);
  }
  void keep() { undo.forget(); }
  void roll_back() {
    undo.roll_back(state, 0);
    journal.drop();
  }

  [[nodiscard]] Turn turn() { return Turn(state, now, undo, journal); }
  void emit(const Fact& fact) { turn().emit(fact); }

  Executed commit(const Commit& commit) {
    std::vector<OpHashes> hashes;
    std::string content;
    for (const Op& op : commit.ops) {
      hashes.push_back(std::visit(TestHashes{}, op));
      base::append_format(content, "{}{}{};", op.index(), hashes.back().key.low,
                          hashes.back().content.low);
    }
    Turn carried = turn();
    return execute(carried,
                   {commit, hashes, hash_text(commit.id.value_or(""), 6), print_text(content)});
  }
};

// Follows the facts of a batch into another state, as a restart does.
inline void replay(const MemoryJournal::Batch& batch, State& state) {
  for (const MemoryJournal::Frame& frame : batch.frames) {
    const Result<Fact> fact = decode_fact(frame.bytes);
    HAPAX_ASSERT(fact.ok(), "what was written can be read");
    apply(state, *fact, frame.at, batch.time, nullptr);
  }
}

// The part of a snapshot that the engine writes itself. No undo may reach back behind this.
template <class Entry>
void copy_remembered(Remembered<Entry>& from, Remembered<Entry>& to, Time now) {
  const auto snapshot = from.snapshot();
  for (const auto& chunk : snapshot.chunks) {
    const Status restored = to.restore(chunk.generation, chunk.serial, chunk.span(), now);
    HAPAX_ASSERT(restored.ok(), "what a snapshot holds can be restored");
  }
  for (const auto& counts : snapshot.counts) {
    const Status restored = to.restore_counts(counts.generation, counts.counts);
    HAPAX_ASSERT(restored.ok(), "what a snapshot holds can be restored");
  }
  to.set_next_serial(snapshot.next_serial);
}

inline void collect_all(State& state, Time now) {
  collect(state, now, std::numeric_limits<std::size_t>::max());
}

}  // namespace hapax::core::rig
