#include "engine/snapshot_sections.h"

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "core/fields.h"
#include "core/state_codec.h"

namespace hapax::core {

template <class Io, Is<GenerationKey> F>
void fields(Io& io, F& f) {
  std::uint16_t width = f.width_log2;
  io.all(width, f.slot);
  if constexpr (!std::is_const_v<F>) f.width_log2 = static_cast<std::uint8_t>(width);
}
template <class Io, Is<OwnerCount> F>
void fields(Io& io, F& f) {
  io.all(f.owner, f.count);
}

}  // namespace hapax::core

namespace hapax::engine {

using core::Get;
using core::Is;
using core::Put;

// Everything but entries and the state's own bytes.
struct Counts {
  core::GenerationKey generation;
  std::vector<core::OwnerCount> counts;
};
struct Meta {
  std::int64_t log_time = 0;
  std::uint64_t next_id_serial = 0;
  std::uint64_t next_settled_serial = 0;
  std::vector<Counts> id_counts;
  std::vector<Counts> settled_counts;
  std::vector<std::uint64_t> parts;  // in the order in which they are to be loaded
};

}  // namespace hapax::engine

namespace hapax::core {

template <class Io, Is<engine::Counts> F>
void fields(Io& io, F& f) {
  io.all(f.generation, f.counts);
}
template <class Io, Is<engine::Meta> F>
void fields(Io& io, F& f) {
  io.all(f.log_time, f.next_id_serial, f.next_settled_serial, f.id_counts, f.settled_counts,
         f.parts);
}

}  // namespace hapax::core

namespace hapax::engine {

namespace {

Error nonsense(std::string_view what) {
  return Error{Errc::kCorruption, "a snapshot's " + std::string(what) + " does not parse"};
}

template <class Entry>
struct ChunkView {
  core::GenerationKey generation;
  std::uint64_t serial = 0;
  std::unique_ptr<std::byte[]> memory;  // an aligned copy
  std::size_t count = 0;

  [[nodiscard]] std::span<const Entry> entries() const {
    return {reinterpret_cast<const Entry*>(memory.get()), count};
  }
};

template <class Entry>
Result<ChunkView<Entry>> decode_chunk(std::string_view bytes) {
  static_assert(std::is_trivially_copyable_v<Entry>);
  ChunkView<Entry> chunk;
  std::uint64_t count = 0;
  std::string_view raw;
  Get get(bytes);
  get.all(chunk.generation, chunk.serial, count);
  get.last(raw);
  if (!get.finished() || raw.size() % sizeof(Entry) != 0 || raw.size() / sizeof(Entry) != count) {
    return nonsense("chunk");
  }
  chunk.memory = std::make_unique<std::byte[]>(raw.size());
  if (count > 0) std::memcpy(chunk.memory.get(), raw.data(), raw.size());
  chunk.count = count;
  return chunk;
}

template <class Memory, class Entry>
Status restore_chunk(Memory& memory, std::string_view bytes, Time now) {
  HAPAX_TRY(const ChunkView<Entry> chunk, decode_chunk<Entry>(bytes));
  memory.restore(chunk.generation, chunk.serial, chunk.entries(), now);
  return Ok{};
}

template <class Chunks>
std::vector<Counts> counts_of(const Chunks& chunks) {
  std::vector<Counts> counts;
  for (const auto& one : chunks.counts) counts.push_back({one.generation, one.counts});
  return counts;
}

Status restore_part(journal::SnapshotReader& part, std::uint64_t number, core::State& state,
                    Time now) {
  for (const journal::Section& section : part.sections()) {
    HAPAX_TRY(const std::string bytes, part.read(section));
    const Status restored =
        number % 2 == 0
            ? restore_chunk<decltype(state.ids), core::IdEntry>(state.ids, bytes, now)
            : restore_chunk<decltype(state.settled), core::SettledEntry>(state.settled, bytes, now);
    HAPAX_CHECK(restored);
  }
  return Ok{};
}

Result<Meta> read_meta(const journal::SnapshotReader& reader) {
  if (reader.sections().empty() || reader.sections().front().tag != kTagMeta) {
    return nonsense("first section");
  }
  HAPAX_TRY(const std::string bytes, reader.read(reader.sections().front()));
  Meta meta;
  Get get(bytes);
  get(meta);
  if (!get.finished()) return nonsense("description");
  return meta;
}

Result<Meta> load_one(ports::Folder& folder, const journal::Identity& identity, journal::Lsn lsn,
                      core::State& state) {
  HAPAX_TRY(
      journal::SnapshotReader reader,
      journal::SnapshotReader::open(folder, identity, journal::SnapshotKind::kSnapshot, lsn.value));
  HAPAX_TRY(Meta meta, read_meta(reader));
  const Time now = time_from_ms(meta.log_time);
  for (const std::uint64_t number : meta.parts) {
    HAPAX_TRY(
        journal::SnapshotReader part,
        journal::SnapshotReader::open(folder, identity, journal::SnapshotKind::kPart, number));
    HAPAX_CHECK(restore_part(part, number, state, now));
  }
  for (const journal::Section& section : reader.sections()) {
    if (section.tag == kTagMeta) continue;
    HAPAX_TRY(const std::string bytes, reader.read(section));
    Status done = nonsense("section tag");
    if (section.tag == kTagState) done = core::decode_state(bytes, state);
    if (section.tag == kTagIds) {
      done = restore_chunk<decltype(state.ids), core::IdEntry>(state.ids, bytes, now);
    }
    if (section.tag == kTagSettled) {
      done = restore_chunk<decltype(state.settled), core::SettledEntry>(state.settled, bytes, now);
    }
    HAPAX_CHECK(done);
  }
  for (const Counts& one : meta.id_counts) state.ids.restore_counts(one.generation, one.counts);
  for (const Counts& one : meta.settled_counts) {
    state.settled.restore_counts(one.generation, one.counts);
  }
  state.ids.set_next_serial(meta.next_id_serial);
  state.settled.set_next_serial(meta.next_settled_serial);
  return meta;
}

}  // namespace

template <class Chunk>
std::string encode_chunk(const Chunk& chunk) {
  const auto entries = chunk.span();
  std::string bytes;
  bytes.reserve(64 + entries.size_bytes());
  Put put(bytes);
  put.all(chunk.generation, chunk.serial, std::uint64_t{entries.size()});
  put.last({reinterpret_cast<const char*>(entries.data()), entries.size_bytes()});
  return bytes;
}
template std::string encode_chunk(const core::Remembered<core::IdEntry>::ChunkImage& chunk);
template std::string encode_chunk(const core::Remembered<core::SettledEntry>::ChunkImage& chunk);

Status write_sections(journal::SnapshotWriter& writer, const SnapshotImage& image,
                      std::vector<std::uint64_t>& parts) {
  Meta meta;
  meta.log_time = to_ms(image.log_time);
  meta.next_id_serial = image.ids.next_serial;
  meta.next_settled_serial = image.settled.next_serial;
  meta.id_counts = counts_of(image.ids);
  meta.settled_counts = counts_of(image.settled);
  for (const auto& chunk : image.ids.chunks) {
    if (chunk.sealed) meta.parts.push_back(id_part(chunk.serial));
  }
  for (const auto& chunk : image.settled.chunks) {
    if (chunk.sealed) meta.parts.push_back(settled_part(chunk.serial));
  }
  std::string bytes;
  Put{bytes}(meta);
  HAPAX_CHECK(writer.add(kTagMeta, bytes));
  HAPAX_CHECK(writer.add(kTagState, image.state));
  for (const auto& chunk : image.ids.chunks) {
    if (!chunk.sealed) HAPAX_CHECK(writer.add(kTagIds, encode_chunk(chunk)));
  }
  for (const auto& chunk : image.settled.chunks) {
    if (!chunk.sealed) HAPAX_CHECK(writer.add(kTagSettled, encode_chunk(chunk)));
  }
  parts = std::move(meta.parts);
  return Ok{};
}

Result<Loaded> load_snapshot(ports::Folder& folder, const journal::Identity& identity,
                             unsigned index_shards_log2, std::unique_ptr<core::State>& state,
                             std::vector<std::string>& lines) {
  HAPAX_TRY(const journal::SnapshotFiles files, journal::list_snapshots(folder));
  Loaded loaded;
  for (const journal::Lsn lsn : files.snapshots) {
    state = std::make_unique<core::State>(index_shards_log2);
    auto meta = load_one(folder, identity, lsn, *state);
    if (meta) {
      loaded.lsn = lsn;
      loaded.log_time = time_from_ms(meta->log_time);
      // Parts are only trusted for what was verified by loading them; others are written again.
      loaded.parts = {meta->parts.begin(), meta->parts.end()};
      return loaded;
    }
    if (meta.error().code == Errc::kIo || meta.error().code == Errc::kFormatVersion) {
      return std::move(meta).error();
    }
    lines.push_back("snapshot " + std::to_string(lsn.value) +
                    " is not usable, trying an older one: " + meta.error().text());
  }
  state = std::make_unique<core::State>(index_shards_log2);
  return loaded;
}

}  // namespace hapax::engine
