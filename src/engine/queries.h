// The read side: questions about the state. They run on the thread that owns it and copy out what
// they found; bytes of records and results are read later, by whoever asked.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <hapax/store.h>

#include "core/state.h"
#include "core/turn.h"
#include "digest/hash.h"
#include "engine/answers.h"
#include "journal/segment_files.h"

namespace hapax::engine {

struct ReadPlan {
  Records range;
  std::vector<RecordPlace> places;
};
// Places without files: they are opened when everything the plan has seen is durable.
[[nodiscard]] Result<ReadPlan> plan_read(const core::State& state, const ReadRange& range);
[[nodiscard]] Status open_places(std::vector<RecordPlace>& places, journal::SegmentFiles& files);

struct IdQuestion {
  std::string_view stream;
  std::string_view id;
  std::optional<std::string_view> group;
};
[[nodiscard]] Result<std::optional<IdStatus>> look_up_id(const core::State& state,
                                                         const digest::HashKey& key,
                                                         const IdQuestion& question, Time now);

struct ClaimLook {
  std::optional<ClaimStatus> status;
  std::optional<ResultFetch> result;
};
[[nodiscard]] ClaimLook look_up_claim(const core::State& state, base::Hash128 key, Time now);
[[nodiscard]] Result<std::optional<ClaimStatus>> complete(ClaimLook look,
                                                          journal::SegmentFiles& files);

[[nodiscard]] std::optional<RegisterValue> look_up_register(const core::State& state,
                                                            base::Hash128 name, Time now);
[[nodiscard]] RegisterPage list_registers(const core::State& state, const RegisterScan& scan,
                                          Time now);
[[nodiscard]] std::optional<Position> look_up_position(const core::State& state,
                                                       std::string_view source);
[[nodiscard]] Result<std::optional<ProducerStatus>> look_up_producer(const core::State& state,
                                                                     std::string_view stream,
                                                                     std::string_view producer,
                                                                     Time now);
[[nodiscard]] Result<StreamStats> describe_stream(const core::State& state, std::string_view name,
                                                  Time now);
[[nodiscard]] Result<UnackedPage> find_unacked(const core::State& state, const UnackedScan& scan);
[[nodiscard]] StreamPage describe_streams(const core::State& state, const StreamScan& scan,
                                          Time now);
[[nodiscard]] std::vector<std::string> list_streams(const core::State& state);

// Trims what retention no longer wants, in at most `count` streams from the given one on; answers
// where to go on. Looking at a stream that has nothing to trim costs little, so it looks at some
// more of those.
core::StreamUid sweep_retention(core::Turn& turn, core::StreamUid from, std::size_t count);

}  // namespace hapax::engine
