#include "engine/replay.h"

#include "engine/frames.h"

namespace hapax::engine {

namespace {

constexpr std::size_t kCollectEvery = 16'384;  // facts
constexpr std::size_t kWorkPerFact = 4;        // so that replay, too, clears faster than it adds

// The journal says where a fact's bytes are; we keep where its frame is.
base::Where frame_of(base::Where fact) {
  std::uint32_t length_bytes = 1;
  for (std::uint32_t rest = fact.length; rest >= 0x80; rest >>= 7) ++length_bytes;
  return {fact.segment, fact.offset - length_bytes, fact.length + length_bytes};
}

}  // namespace

Status Replay::operator()(const journal::BatchView& batch) {
  const Time now = batch.header.log_time;
  HAPAX_CHECK(journal::for_each_fact(
      batch, [&](journal::Lsn, base::Where where, std::string_view bytes) -> Status {
        HAPAX_TRY(const std::string_view fact, checked_fact(bytes));
        HAPAX_TRY(const core::Fact decoded, core::decode_fact(fact));
        if (wakes_ != nullptr) wakes_->note(core::wake_of(state_, decoded));
        core::apply(state_, decoded, frame_of(where), now, nullptr);
        return Ok{};
      }));
  facts_ += batch.header.count;
  if (facts_ < kCollectEvery) return Ok{};
  core::collect(state_, now, kWorkPerFact * facts_);
  facts_ = 0;
  return Ok{};
}

}  // namespace hapax::engine
