// A snapshot and its parts with arbitrary content: it is used only if it is whole and possible,
// else the journal alone tells everything. What is used can be used: nothing trips over it later.
//
// The first byte of an input says how the rest is meant:
//   'f'  a snapshot file, byte by byte; its checksums mostly end it
//   's'  pieces: kind (u8), length (u16, little-endian), bytes. They are framed with the right
//        checksums, so that everything behind those is reached. Kind 1 to 8: a section with this
//        tag. Kind 9, 10: a part of ids or settled claims whose chunk is filled by repeating the
//        last entry of the bytes under other hashes.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/encoding.h"
#include "base/hash128.h"
#include "core/state_codec.h"
#include "engine/snapshotter.h"
#include "journal/names.h"
#include "journal/snapshot_file.h"
#include "sim/disk.h"

namespace {

using hapax::Time;
using hapax::core::State;

constexpr std::uint64_t kLsn = 5;

void must(const hapax::Status& status) {
  if (!status) std::abort();  // The simulated disk has no faults here.
}

struct Piece {
  std::uint8_t kind = 0;
  std::string bytes;
};

std::vector<Piece> cut(std::string_view bytes) {
  std::vector<Piece> pieces;
  hapax::base::Decoder in(bytes);
  while (in.ok() && in.left() > 2 && pieces.size() < 32) {
    Piece piece;
    piece.kind = in.u8();
    const std::size_t low = in.u8();
    const std::size_t length = low | std::size_t{in.u8()} << 8;
    piece.bytes = in.raw(std::min(length, in.left()));
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

// The time of a description is that of its file's header, or nothing behind it would be reached.
Time time_of(const std::vector<Piece>& pieces) {
  for (const Piece& piece : pieces) {
    if (piece.kind != 1 || piece.bytes.size() < 8) continue;
    hapax::base::Decoder in(piece.bytes);
    return hapax::time_from_ms(in.i64());
  }
  return {};
}

// Behind generation, serial and count, which are the fuzzer's, come full chunk's worth of entries.
std::string filled(const Piece& piece) {
  const std::size_t size = piece.kind == 9 ? 48 : 72;
  if (piece.bytes.size() < size) return piece.bytes;
  const std::string last = piece.bytes.substr(piece.bytes.size() - size);
  std::string bytes = piece.bytes.substr(0, piece.bytes.size() - size);
  for (std::uint64_t i = 0; i < 65'536; ++i) {
    bytes += last;
    const std::uint64_t high = hapax::base::spread(i).high;  // Uniform, as the index relies on.
    std::memcpy(bytes.data() + bytes.size() - size, &high, sizeof high);
  }
  return bytes;
}

std::uint64_t part_number(const Piece& piece) {
  hapax::base::Decoder in(piece.bytes);
  in.varint();
  in.i64();
  const std::uint64_t serial = in.varint();
  return piece.kind == 9 ? hapax::engine::id_part(serial) : hapax::engine::settled_part(serial);
}

void write(hapax::ports::Folder& folder, const std::vector<Piece>& pieces) {
  hapax::journal::SnapshotHeader header;
  header.number = kLsn;
  header.log_time = time_of(pieces);
  auto file = hapax::journal::SnapshotWriter::create(folder, header);
  if (!file) std::abort();
  for (const Piece& piece : pieces) {
    if (piece.kind < 9) {
      must(file->add(piece.kind, piece.bytes));
      continue;
    }
    header.kind = hapax::journal::SnapshotKind::kPart;
    header.number = part_number(piece);
    auto part = hapax::journal::SnapshotWriter::create(folder, header);
    if (!part) std::abort();
    must(part->add(5, filled(piece)));
    must(part->finish());
  }
  must(file->finish());
}

void write_raw(hapax::ports::Folder& folder, std::string_view bytes) {
  const auto file =
      folder.open(hapax::journal::snapshot_name(kLsn), hapax::ports::OpenMode::kCreate);
  if (!file) std::abort();
  if (!(*file)->write_at(0, bytes)) std::abort();
}

// Time passes and another snapshot is taken; nothing of that may trip over what was read.
void use(State& state, Time now) {
  for (const std::int64_t later : {std::int64_t{0}, std::int64_t{90'000'000}}) {
    const Time then = now + hapax::Duration{later};
    std::string bytes;
    hapax::core::encode_state(state, bytes);
    State again(2);
    if (!hapax::core::decode_state(bytes, again)) std::abort();
    if (hapax::core::canonical(state, then).empty()) std::abort();
    hapax::core::collect(state, then, 1'000'000);
  }
  if (state.ids.snapshot().next_serial == 0 || state.settled.snapshot().next_serial == 0)
    std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  hapax::sim::SimDisk disk{hapax::sim::Random(1)};
  hapax::sim::SimFolder folder(disk);
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::vector<Piece> pieces = cut(bytes);
  if (data[0] == 'f') write_raw(folder, bytes);
  if (data[0] != 'f') write(folder, pieces);
  const hapax::journal::Identity identity;  // All zeros, as in the corpus.
  std::unique_ptr<State> state;
  std::vector<std::string> lines;
  const auto loaded = hapax::engine::load_snapshot(folder, identity, 2, state, lines);
  if (!loaded) return 0;
  if (loaded->lsn.value == 0 && lines.empty()) std::abort();  // Passed over in silence.
  if (loaded->lsn.value != 0) use(*state, loaded->log_time);
  return 0;
}
