// How long a snapshot holds up the state thread: the image of a state with many of one thing, and
// how much of the encoding is left to the background thread.
//   hapax_bench_snapshot [--json FILE]
#include <chrono>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "core/sequences.h"
#include "core/state_codec.h"
#include "table.h"

namespace hapax::bench {
namespace {

using namespace core;

constexpr Time kStart = time_from_ms(1'700'000'000'000);
constexpr std::uint64_t kMillion = 1'000'000;

double ms_of(const auto& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

class Case {
 public:
  Case() { add(StreamMade{StreamUid{1}, "s", {}}); }
  void add(const Fact& fact, Time now = kStart) {
    apply(state_, fact, {1, offset_, 40}, now, nullptr);
    offset_ += 40;
  }
  void append(std::uint64_t i, GroupHash group, Time now = kStart, std::string_view producer = {}) {
    RecordAppended fact{};
    fact.stream = StreamUid{1};
    fact.sequence = Sequence{i + 1};
    fact.group_hash = group;
    if (!producer.empty()) fact.producer = ProducerMark{producer, Epoch{1}, ProducerSequence{0}};
    add(fact, now);
  }
  // Hands `count` records to a consumer that has seen all `seen`.
  void hand_out(std::uint64_t count, std::uint64_t seen) {
    add(ConsumerMade{StreamUid{1}, ConsumerUid{1}, "c", {}});
    std::vector<Sequence> sequences;
    for (std::uint64_t i = 1; i <= count; ++i) sequences.push_back(Sequence{i});
    std::string bytes;
    encode_sequences(sequences, bytes);
    add(HandedOut{ConsumerUid{1}, "w", kStart + Duration{1'000}, Token{1}, Sequence{seen + 1},
                  bytes});
  }
  void measure(Table& table, const std::string& name, std::optional<double> bar) {
    StateImage image;
    const double held_up = ms_of([&] { image = image_of(state_); });
    std::string bytes;
    const double beside = ms_of([&] { encode_image(image, bytes); });
    if (bar) table.at_most(name + ", state thread", held_up, "ms", *bar);
    if (!bar) table.figure(name + ", state thread", held_up, "ms");
    table.figure(name + ", background", beside, "ms");
  }

 private:
  State state_{12};
  std::uint32_t offset_ = 64;
};

// What can be millions must not hold up commits.
void measure_shared(Table& table) {
  constexpr double kBar = 10;
  Case groups;
  for (std::uint64_t i = 0; i < 3 * kMillion; ++i) groups.append(i, base::spread(i).low | 1);
  groups.measure(table, "3 M groups", kBar);
  Case runs;
  for (std::uint64_t i = 0; i < kMillion; ++i) {
    runs.append(i, 0, kStart + Duration{static_cast<std::int64_t>(i)});
  }
  runs.measure(table, "1 M places of records", kBar);
  Case claims;
  Case positions;
  Case registers;
  for (std::uint64_t i = 0; i < kMillion; ++i) {
    const std::string name = "name-" + std::to_string(i);
    ClaimOpened opened{};
    opened.hash = base::spread(i);
    opened.key = name;
    opened.fence = Fence{i + 1};
    opened.retention = opened.tombstone = limits::kWindowDefault;
    opened.lease_until = kStart;
    claims.add(opened);
    positions.add(PositionMoved{name, "12345", Epoch{1}});
    registers.add(RegisterSet{base::spread(i), name, "value", Version{1},
                              HybridTime{to_ms(kStart), 0, 0}, Time::max()});
  }
  claims.measure(table, "1 M open claims", kBar);
  positions.measure(table, "1 M positions", kBar);
  registers.measure(table, "1 M registers", kBar);
}

// What is encoded on the state thread.
void measure_inline(Table& table) {
  Case pending;
  for (std::uint64_t i = 0; i < kMillion; ++i) pending.append(i, 0);
  pending.hand_out(kMillion, kMillion);
  pending.measure(table, "1 M pending records of consumers", {});
  Case parked;
  for (std::uint64_t i = 0; i < kMillion; ++i) parked.append(i, 7);
  parked.hand_out(1, kMillion);
  parked.measure(table, "1 M parked records of consumers", {});
  Case producers;
  for (std::uint64_t i = 0; i < kMillion / 10; ++i) {
    producers.append(i, 0, kStart, "producer-" + std::to_string(i));
  }
  producers.measure(table, "100 k producers", {});
  Case removed;
  for (std::uint64_t i = 0; i < 2 * kMillion; ++i) removed.append(i, 0);
  for (std::uint64_t i = 1; i < kMillion; ++i) {
    removed.add(RecordRemoved{StreamUid{1}, Sequence{2 * i}});
  }
  removed.measure(table, "1 M records removed from between others", {});
  Case streams;
  for (std::uint64_t i = 2; i <= kMillion / 10; ++i) {
    const std::string name = "stream-" + std::to_string(i);
    streams.add(StreamMade{StreamUid{i}, name, {}});
  }
  streams.measure(table, "100 k streams", {});
}

}  // namespace
}  // namespace hapax::bench

int main(int argc, char** argv) {
  hapax::bench::Table table;
  hapax::bench::measure_shared(table);
  hapax::bench::measure_inline(table);
  if (argc == 3 && std::strcmp(argv[1], "--json") == 0 && !table.write_json(argv[2])) return 1;
  return table.all_ok() ? 0 : 1;
}
