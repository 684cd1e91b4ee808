// For the tests of claims: the claims of one store over a journal in memory, with the operations in
// short. No part of the product.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/claims.h"
#include "core/turn.h"

namespace hapax::core::claims_harness {

inline Fingerprint print_of(std::uint64_t content) { return {content, content}; }
inline base::Hash128 hash_of(std::string_view key) {
  return base::spread(std::hash<std::string_view>{}(key));
}

struct Terms {
  std::string_view owner = "w1";
  Duration lease = std::chrono::seconds{30};
  Window retention{std::chrono::seconds{10}};
  Window tombstone{std::chrono::seconds{10}};
  OnLapse on_lapse = OnLapse::kTakeOver;
};

class ClaimsHarness final : private StateOwner {
 public:
  struct Journaled {
    base::Where at;
    Time now;
  };
  struct Mark {
    Undo::Mark undo;
    std::size_t facts;
    std::size_t segments;
    std::size_t last_segment_bytes;
  };

  State state{4};
  Undo undo;
  Time now = time_from_ms(1'700'000'000'000);
  std::vector<std::string> segments{""};  // number i + 1
  std::vector<Journaled> journal;

  template <class Op>
  Verdict run(const Op& op, std::uint64_t content = 0) {
    Turn turn(state, now, undo, *this);
    return core::run(turn, op, ClaimHashes{hash_of(op.key), print_of(content)});
  }
  base::Where emit(const Fact& fact) { return Turn(state, now, undo, *this).emit(fact); }

  Verdict claim(std::string_view key, std::uint64_t content = 1, Terms terms = {}) {
    return run(Claim{.scope = "pay",
                     .key = key,
                     .owner = terms.owner,
                     .lease = terms.lease,
                     .retention = terms.retention,
                     .tombstone = terms.tombstone,
                     .on_lapse = terms.on_lapse},
               content);
  }
  Fence must_claim(std::string_view key, std::uint64_t content = 1, Terms terms = {}) {
    return std::get<Claimed>(claim(key, content, terms)).fence;
  }
  Verdict renew(std::string_view key, Fence fence, Duration lease = std::chrono::seconds{30}) {
    return run(Renew{.scope = "pay", .key = key, .fence = fence, .lease = lease});
  }
  Verdict settle(std::string_view key, Fence fence, Outcome outcome, std::string_view text = "") {
    return run(Settle{.scope = "pay",
                      .key = key,
                      .fence = fence,
                      .outcome = outcome,
                      .result = {200, "h", text},
                      .reason = text});
  }
  Verdict resolve(std::string_view key, Resolution resolution, std::string_view body = "",
                  std::string_view actor = "ann", std::string_view reason = "checked") {
    return run(Resolve{.scope = "pay",
                       .key = key,
                       .resolution = resolution,
                       .result = {200, "h", body},
                       .actor = actor,
                       .reason = reason});
  }
  Verdict forget(std::string_view key, std::string_view actor = "ann",
                 std::string_view reason = "asked to") {
    return run(Forget{.scope = "pay", .key = key, .actor = actor, .reason = reason});
  }
  // Copies the result of a key to a new segment, if it is worth it.
  bool move_result(std::string_view key) {
    const auto entry = find_settled(state, hash_of(key), now);
    if (!entry || !is_live_result(state, hash_of(key), entry->where, now)) return false;
    const std::string frame = read(entry->where);
    segments.emplace_back();
    emit(ResultMoved{hash_of(key), frame});
    return true;
  }

  [[nodiscard]] std::string read(base::Where at) const {
    return segments.at(at.segment - 1).substr(at.offset, at.length);
  }
  // The body of the stored result, as a duplicate would get it.
  [[nodiscard]] std::string body_of(std::string_view key) const {
    const auto entry = find_settled(state, hash_of(key), now);
    if (!entry || now >= entry->result_until()) return "gone";
    const std::string frame = read(entry->where);
    const auto fact = decode_fact(std::string_view(frame).substr(0, frame.size() - kFactTrailer));
    return std::string(std::get<ClaimSettled>(*fact).result.body);
  }
  [[nodiscard]] std::optional<ClaimStatus> status(std::string_view key) const {
    return claim_status(state, hash_of(key), now);
  }
  // Whether the latest record of a stream says this: acts of people are appended to one.
  [[nodiscard]] bool audited(std::string_view text) const {
    for (auto each = journal.rbegin(); each != journal.rend(); ++each) {
      const std::string bytes = read(each->at);
      const auto fact = decode_fact(std::string_view(bytes).substr(0, bytes.size() - kFactTrailer));
      if (const auto* record = std::get_if<RecordAppended>(&*fact)) {
        return record->payload.find(text) != std::string_view::npos;
      }
    }
    return false;
  }

  [[nodiscard]] Mark mark() const {
    return {undo.mark(), journal.size(), segments.size(), segments.back().size()};
  }
  void roll_back(const Mark& mark) {
    undo.roll_back(state, mark.undo);
    journal.resize(mark.facts);
    segments.resize(mark.segments);
    segments.back().resize(mark.last_segment_bytes);
  }

 private:
  base::Where write(const Fact& fact) override {
    std::string& segment = segments.back();
    const auto offset = static_cast<std::uint32_t>(segment.size());
    encode(fact, segment);
    segment.append(kFactTrailer, '\0');
    const base::Where at{static_cast<std::uint32_t>(segments.size()), offset,
                         static_cast<std::uint32_t>(segment.size()) - offset};
    journal.push_back({at, now});
    return at;
  }
  Result<std::string> read_record(const Stream&, Sequence) override {
    return Error{Errc::kNotFound, "claims read no records"};
  }
  ContentId content_id(std::string_view) override { return {}; }
  std::size_t batch_mark() override { return 0; }
  void cut_batch(std::size_t) override {}
};

}  // namespace hapax::core::claims_harness
