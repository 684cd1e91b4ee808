// The state as bytes, for snapshots. The entries of `ids` and `settled` are not among them: the
// engine writes those chunk by chunk. Neither is what follows from the rest (who waits for what,
// which names exist, how many bytes of a segment are needed): decoding rebuilds or checks it.
// docs/internals/snapshot-format.md gives the bytes.
//
// B1: equal states give equal bytes, whatever order their facts and collections came in.
// B2: a state that decodes keeps every rule that the code relies on; no input makes decoding fail
//     in another way than by an error that says what is wrong and where.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <hapax/result.h>

#include "core/state.h"

namespace hapax::core {

// Everything that will be written, at one instant: what is little as bytes, what can be millions
// (places of records, groups, claims, positions, registers) as it lies in memory, shared. Making it
// costs a pointer per some hundred elements; it may be read by another thread. A stream with few
// runs or groups has them among the bytes: so has each of a hundred thousand small streams.
struct RunsImage {
  StreamUid stream;
  Sequence kept_from;  // of the stream
  Time created_at{};
  RunList::Image runs;
};
struct GroupsImage {
  SharedMap<GroupHash, Sequence>::Image groups;
  Sequence floor;  // those whose last record lies below are forgotten
};
struct ClaimsImage {
  SharedTable<std::shared_ptr<const OpenClaim>>::Image claims;
};
struct PositionsImage {
  SharedMap<std::string, Position>::Image positions;
};
struct RegistersImage {
  SharedTable<std::shared_ptr<const Register>>::Image registers;
};
inline constexpr std::size_t kFewRuns = 64;
inline constexpr std::size_t kFewGroups = 256;
// Bytes needed of each segment.
struct LiveImage {
  std::map<std::uint32_t, std::uint64_t> kept;     // beside those of the shared runs
  std::map<std::uint32_t, std::uint64_t> waiting;  // for collect(), thus not written
  std::map<std::uint32_t, std::uint64_t> live;     // all of them: State::live_bytes
};
struct StateImage {
  using Part = std::variant<std::string, RunsImage, GroupsImage, ClaimsImage, PositionsImage,
                            RegistersImage, LiveImage>;
  std::vector<Part> parts;  // in the order of the bytes
  Time over_at = Time::min();
};

// What waits for collect() is left out: trimmed runs, deleted streams.
// REQUIRES: no change that can still be rolled back.
[[nodiscard]] StateImage image_of(State& state);
// Appends to `out`.
void encode_image(const StateImage& image, std::string& out);
void encode_state(State& state, std::string& out);  // both

// Fills a new State; after an error it must be thrown away. Log times are expected to lie between
// 1970 and the year 10889, as those of ids do.
[[nodiscard]] Status decode_state(std::string_view bytes, State& into);

// B2, for what the engine reads: what is wrong with an entry of a snapshot taken at `now`, or "".
[[nodiscard]] std::string wrong_with(const IdEntry& entry, Time now);
[[nodiscard]] std::string wrong_with(const SettledEntry& entry, Time now, Fence next);

// B2: whether the state and the entries of a snapshot taken at `now` fit together.
[[nodiscard]] Status check_restored(const State& state, Time now);

// Everything that an answer after `now` could depend on: two states are equal if and only if this
// is. Other than the snapshot it has the living ids and settled claims, and it does not have what
// is over at `now` (B1: collect() may or may not have come by). For tests and the simulation.
[[nodiscard]] std::string canonical(State& state, Time now);

}  // namespace hapax::core
