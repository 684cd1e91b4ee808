#include "engine/snapshot_sections.h"

#include <cstddef>
#include <cstring>
#include <memory>
#include <set>
#include <span>
#include <type_traits>
#include <utility>

#include "base/format.h"
#include "core/fields.h"
#include "core/state_codec.h"

namespace hapax::core {

template <class Io, Is<GenerationKey> F>
void fields(Io& io, F& f) {
  std::uint16_t width = f.width_log2;
  io.all(width, f.slot);
  if constexpr (!std::is_const_v<F>) {
    if (width > GenerationKey::kForever) io.refuse();
    f.width_log2 = static_cast<std::uint8_t>(width);
  }
}
template <class Io, Is<OwnerCount> F>
void fields(Io& io, F& f) {
  io.all(f.owner, f.count);
}

}  // namespace hapax::core

namespace hapax::engine {

using core::FieldReader;
using core::FieldWriter;
using core::Is;

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

// A large state is several sections: a section is limited to 1 GiB.
constexpr std::size_t kStateSectionBytes = std::size_t{256} << 20;

Error nonsense(std::string_view what) {
  return Error{Errc::kCorruption, "a snapshot's " + std::string(what)};
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
  FieldReader get(bytes);
  get.all(chunk.generation, chunk.serial, count);
  get.last(raw);
  if (!get.finished() || raw.size() % sizeof(Entry) != 0 || raw.size() / sizeof(Entry) != count) {
    return nonsense("chunk does not parse");
  }
  chunk.memory = std::make_unique<std::byte[]>(raw.size());
  if (count > 0) std::memcpy(chunk.memory.get(), raw.data(), raw.size());
  chunk.count = count;
  return chunk;
}

std::string wrong_with(const core::IdEntry& entry, const core::State&, Time now) {
  return core::wrong_with(entry, now);
}
std::string wrong_with(const core::SettledEntry& entry, const core::State& state, Time now) {
  return core::wrong_with(entry, now, state.next_fence);
}

// Fills one of the two memories of a state, chunk by chunk. REQUIRES: the rest of the state is
// there.
template <class Entry>
class ChunkLoader {
 public:
  ChunkLoader(core::State& state, core::Remembered<Entry>& memory, Time now)
      : state_(state), memory_(memory), now_(now) {}

  Status add_part(std::string_view bytes, std::uint64_t serial) {
    HAPAX_TRY(const ChunkView<Entry> chunk, decode_chunk<Entry>(bytes));
    if (chunk.serial != serial) return nonsense("part: it holds another chunk than its name says");
    if (chunk.count != core::Remembered<Entry>::kEntriesPerChunk) {
      return nonsense("part: its chunk is not full");
    }
    return add(chunk);
  }
  Status add_section(std::string_view bytes) {
    HAPAX_TRY(const ChunkView<Entry> chunk, decode_chunk<Entry>(bytes));
    if (chunk.count == core::Remembered<Entry>::kEntriesPerChunk) {
      return nonsense("section: a full chunk belongs into a part");
    }
    return add(chunk);
  }
  Status finish(const std::vector<Counts>& counts, std::uint64_t next_serial) {
    for (const Counts& one : counts) {
      HAPAX_CHECK(memory_.restore_counts(one.generation, one.counts));
    }
    if (next_serial < memory_.next_serial() || next_serial >= kSerialEnd) {
      return nonsense("next serial is one that was given");
    }
    memory_.set_next_serial(next_serial);
    return Ok{};
  }

 private:
  static constexpr std::uint64_t kSerialEnd = std::uint64_t{1} << 62;

  Status add(const ChunkView<Entry>& chunk) {
    if (!serials_.insert(chunk.serial).second) return nonsense("chunks share a serial");
    const auto entries = chunk.entries();
    for (std::size_t place = 0; place < entries.size(); ++place) {
      const std::string wrong = wrong_with(entries[place], state_, now_);
      if (wrong.empty()) continue;
      return nonsense(base::format("chunk {}, entry {}, {}", chunk.serial, place, wrong));
    }
    return memory_.restore(chunk.generation, chunk.serial, entries, now_);
  }

  core::State& state_;
  core::Remembered<Entry>& memory_;
  Time now_;
  std::set<std::uint64_t> serials_;
};

template <class Chunks>
std::vector<Counts> counts_of(const Chunks& chunks) {
  std::vector<Counts> counts;
  for (const auto& one : chunks.counts) counts.push_back({one.generation, one.counts});
  return counts;
}

Result<Meta> read_meta(const journal::SnapshotReader& reader) {
  if (reader.sections().empty() || reader.sections().front().tag != kTagMeta) {
    return nonsense("first section is not its description");
  }
  HAPAX_TRY(const std::string bytes, reader.read(reader.sections().front()));
  Meta meta;
  FieldReader get(bytes, reader.header().version);
  get(meta);
  if (!get.finished()) return nonsense("description does not parse");
  // 48 bits of log time, and room for what follows.
  const bool plausible = meta.log_time >= 0 && meta.log_time < std::int64_t{1} << 47;
  if (!plausible || time_from_ms(meta.log_time) != reader.header().log_time) {
    return nonsense("description has an impossible time");
  }
  return meta;
}

Status load_state(const journal::SnapshotReader& reader, core::State& state) {
  std::string bytes;
  for (const journal::SnapshotSection& section : reader.sections()) {
    if (section.tag != kTagState) continue;
    HAPAX_TRY(const std::string piece, reader.read(section));
    bytes += piece;
  }
  return core::decode_state(bytes, state);
}

// The one section of a part.
Result<std::string> read_part(ports::Folder& folder, const journal::Identity& identity,
                              std::uint64_t number) {
  HAPAX_TRY(const journal::SnapshotReader part,
            journal::SnapshotReader::open(folder, identity, journal::SnapshotKind::kPart, number));
  const auto& sections = part.sections();
  if (sections.size() != 1 || sections.front().tag != kTagChunk) {
    return nonsense("part is not one chunk");
  }
  return part.read(sections.front());
}

Result<Meta> load_one(ports::Folder& folder, const journal::Identity& identity, journal::Lsn lsn,
                      core::State& state) {
  HAPAX_TRY(
      journal::SnapshotReader reader,
      journal::SnapshotReader::open(folder, identity, journal::SnapshotKind::kSnapshot, lsn.value));
  HAPAX_TRY(Meta meta, read_meta(reader));
  const Time now = time_from_ms(meta.log_time);
  HAPAX_CHECK(load_state(reader, state));
  ChunkLoader<core::IdEntry> ids(state, state.ids, now);
  ChunkLoader<core::SettledEntry> settled(state, state.settled, now);
  for (const std::uint64_t number : meta.parts) {
    HAPAX_TRY(const std::string bytes, read_part(folder, identity, number));
    HAPAX_CHECK(number % 2 == 0 ? ids.add_part(bytes, number / 2)
                                : settled.add_part(bytes, number / 2));
  }
  for (const journal::SnapshotSection& section : reader.sections()) {
    if (&section == &reader.sections().front() || section.tag == kTagState) continue;
    HAPAX_TRY(const std::string bytes, reader.read(section));
    Status done = nonsense("section has an unknown tag");
    if (section.tag == kTagIds) done = ids.add_section(bytes);
    if (section.tag == kTagSettled) done = settled.add_section(bytes);
    HAPAX_CHECK(done);
  }
  HAPAX_CHECK(ids.finish(meta.id_counts, meta.next_id_serial));
  HAPAX_CHECK(settled.finish(meta.settled_counts, meta.next_settled_serial));
  for (const Counts& one : meta.id_counts) {
    core::charge_restored(state, one.generation, one.counts, now);
  }
  HAPAX_CHECK(core::check_restored(state, now));
  return meta;
}

}  // namespace

template <class Chunk>
std::string encode_chunk(const Chunk& chunk) {
  const auto entries = chunk.span();
  std::string bytes;
  bytes.reserve(64 + entries.size_bytes());
  FieldWriter put(bytes);
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
  FieldWriter{bytes}(meta);
  HAPAX_CHECK(writer.add(kTagMeta, bytes));
  std::string state;
  core::encode_image(image.state, state);
  for (std::string_view rest = state; !rest.empty();) {
    const std::string_view piece = rest.substr(0, kStateSectionBytes);
    HAPAX_CHECK(writer.add(kTagState, piece));
    rest.remove_prefix(piece.size());
  }
  for (const auto& chunk : image.ids.chunks) {
    if (!chunk.sealed) HAPAX_CHECK(writer.add(kTagIds, encode_chunk(chunk)));
  }
  for (const auto& chunk : image.settled.chunks) {
    if (!chunk.sealed) HAPAX_CHECK(writer.add(kTagSettled, encode_chunk(chunk)));
  }
  parts = std::move(meta.parts);
  return Ok{};
}

Status check_snapshot(ports::Folder& folder, const journal::Identity& identity,
                      journal::Lsn snapshot) {
  core::State state;
  HAPAX_TRY([[maybe_unused]] const Meta meta, load_one(folder, identity, snapshot, state));
  return Ok{};
}

Result<LoadedSnapshot> load_snapshot(ports::Folder& folder, const journal::Identity& identity,
                                     unsigned index_shards_log2,
                                     std::unique_ptr<core::State>& state,
                                     std::vector<std::string>& lines) {
  HAPAX_TRY(const journal::SnapshotFiles files, journal::list_snapshots(folder));
  LoadedSnapshot loaded;
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
    const Errc code = meta.error().code;
    if (code == Errc::kIo || code == Errc::kFormatVersion || code == Errc::kUnavailable) {
      return std::move(meta).error();
    }
    lines.push_back(base::format("snapshot {} is not usable, trying an older one: {}", lsn.value,
                                 meta.error().text()));
  }
  state = std::make_unique<core::State>(index_shards_log2);
  return loaded;
}

}  // namespace hapax::engine
