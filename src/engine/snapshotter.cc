#include "engine/snapshotter.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/mutant.h"
#include "core/claims.h"
#include "engine/frames.h"
#include "engine/snapshot_sections.h"
#include "journal/names.h"
#include "journal/reserve_file.h"
#include "journal/snapshot_file.h"

namespace hapax::engine {

namespace {

// E5: a copy must not make damage look intact: the new batch has a checksum of its own.
bool all_whole(std::string_view frames) {
  while (!frames.empty()) {
    if (!take_frame(frames)) return false;
  }
  return true;
}

constexpr std::size_t kMoveBytesMax = std::size_t{8} << 20;  // per snapshot, held in memory

}  // namespace

std::uint64_t id_part(std::uint64_t serial) { return serial * 2; }
std::uint64_t settled_part(std::uint64_t serial) { return serial * 2 + 1; }

Snapshotter::Snapshotter(ports::Folder& folder, const journal::Identity& identity,
                         journal::SegmentFiles& files, SetRoom set_room,
                         std::uint64_t reserve_bytes)
    : folder_(folder),
      identity_(identity),
      files_(files),
      set_room_(std::move(set_room)),
      reserve_bytes_(reserve_bytes) {}

void Snapshotter::adopt(journal::Lsn snapshot, const std::set<std::uint64_t>& parts) {
  parts_ = parts;
  kept_.push_back({snapshot, {parts.begin(), parts.end()}, {}});
}

void Snapshotter::forget_unfinished() {
  parts_.clear();
  for (const Kept& kept : kept_) parts_.insert(kept.parts.begin(), kept.parts.end());
}

void Snapshotter::begin(SnapshotImage image) {
  HAPAX_ASSERT(!busy(), "one snapshot is written at a time");
  image_ = std::move(image);
  phase_ = Phase::kParts;
  next_chunk_ = 0;
  moves_ = {};
  if (image_.pressed) set_room_(journal::Room::kClosed);
  busy_.store(true, std::memory_order_release);
}

Status Snapshotter::step() {
  Status done = Ok{};
  switch (phase_) {
    case Phase::kParts:
      done = write_next_part();
      break;
    case Phase::kFile:
      done = write_file();
      break;
    case Phase::kPrune:
      done = prune();
      break;
    case Phase::kGather:
      done = gather();
      break;
  }
  if (!done) {
    no_room_.store(done.error().code == Errc::kNoSpace, std::memory_order_relaxed);
    end();
  }
  return done;
}

// R4: the reserve is made again before anybody else may write.
void Snapshotter::end() {
  if (image_.pressed) {
    ignore(journal::restore_reserve(folder_, reserve_bytes_), "a start makes it again");
    set_room_(journal::Room::kOrdinary);
  }
  image_ = {};
  busy_.store(false, std::memory_order_release);
}

// On a full disk the reserve is room for what frees space.
template <class Call>
auto Snapshotter::in_room(const Call& call) -> decltype(call()) {
  return image_.pressed ? journal::with_reserve(folder_, call) : call();
}

// True if it was written now, false if it was there.
template <class Chunk>
Result<bool> Snapshotter::store_chunk(const Chunk& chunk, std::uint64_t number) {
  if (!chunk.sealed || parts_.contains(number)) return false;
  const journal::SnapshotHeader header{journal::SnapshotKind::kPart, identity_.store_id,
                                       identity_.history, number, image_.log_time};
  const auto write = [&]() -> Status {
    HAPAX_TRY(journal::SnapshotWriter writer, journal::SnapshotWriter::create(folder_, header));
    HAPAX_CHECK(writer.add(kTagChunk, encode_chunk(chunk)));
    return writer.finish();
  };
  HAPAX_CHECK(in_room(write));
  parts_.insert(number);
  return true;
}

Status Snapshotter::write_next_part() {
  const std::size_t ids = image_.ids.chunks.size();
  const std::size_t all = ids + image_.settled.chunks.size();
  while (next_chunk_ < all) {
    const std::size_t at = next_chunk_++;
    bool written = false;
    if (at < ids) {
      const auto& chunk = image_.ids.chunks[at];
      HAPAX_TRY(written, store_chunk(chunk, id_part(chunk.serial)));
    } else {
      const auto& chunk = image_.settled.chunks[at - ids];
      HAPAX_TRY(written, store_chunk(chunk, settled_part(chunk.serial)));
    }
    if (written) return Ok{};
  }
  phase_ = Phase::kFile;
  return Ok{};
}

Status Snapshotter::write_whole(std::vector<std::uint64_t>& parts) {
  const journal::SnapshotHeader header{journal::SnapshotKind::kSnapshot, identity_.store_id,
                                       identity_.history, image_.lsn.value, image_.log_time};
  HAPAX_TRY(journal::SnapshotWriter writer, journal::SnapshotWriter::create(folder_, header));
  parts.clear();
  HAPAX_CHECK(write_sections(writer, image_, parts));
  return writer.finish();
}

Status Snapshotter::write_file() {
  Kept kept{image_.lsn, {}, {}};
  HAPAX_CHECK(in_room([&] { return write_whole(kept.parts); }));
  finished_.fetch_add(1, std::memory_order_relaxed);
  no_room_.store(false, std::memory_order_relaxed);
  HAPAX_TRY(const std::vector<std::string> names, folder_.list());
  for (const std::string& name : names) {
    const journal::FileName parsed = journal::parse_name(name);
    const auto number = static_cast<std::uint32_t>(parsed.number);
    const bool segment = parsed.kind == journal::FileName::Kind::kSegment;
    if (segment && number < image_.segment && !image_.live.contains(number)) {
      kept.dead.insert(number);
    }
  }
  if (!kept_.empty() && kept_.back().lsn == kept.lsn) kept_.pop_back();
  kept_.push_back(std::move(kept));
  phase_ = Phase::kPrune;
  return Ok{};
}

// Removes one kind of thing per step; each is of no use to either kept snapshot.
Status Snapshotter::prune() {
  phase_ = Phase::kGather;
  if (kept_.size() < 2) return Ok{};
  while (kept_.size() > 2) kept_.pop_front();
  HAPAX_CHECK(journal::remove_snapshots_below(folder_, kept_.front().lsn));
  std::vector<std::uint64_t> referenced = kept_.front().parts;
  referenced.insert(referenced.end(), kept_.back().parts.begin(), kept_.back().parts.end());
  HAPAX_CHECK(journal::remove_parts_except(folder_, referenced));
  parts_ = {referenced.begin(), referenced.end()};
  for (const std::uint32_t number : kept_.front().dead) {
    if (image_.live.contains(number)) continue;
    HAPAX_CHECK(journal::remove_segment(folder_, files_, number));
    kept_.back().dead.erase(number);  // It was still listed when that snapshot was written.
  }
  kept_.front().dead.clear();
  return Ok{};
}

// The runs of large streams that keep a victim.
void Snapshotter::find_runs_to_move() {
  if (image_.victims.empty()) return;
  for (const auto& part : image_.state.parts) {
    const auto* shared = std::get_if<core::RunsImage>(&part);
    if (shared == nullptr) continue;
    for (const core::Run& run : shared->runs) {
      if (image_.runs_to_move.size() >= kMoveRunsMax) return;
      if (!image_.victims.contains(run.at.segment)) continue;
      image_.runs_to_move.push_back({shared->stream, run.first, run.count, run.at, {}});
    }
  }
}

Status Snapshotter::gather_run(RunMove move, std::size_t& bytes) {
  HAPAX_TRY(const auto file, files_.open(move.from.segment));
  HAPAX_TRY(move.frames, read_span(*file, move.from));
  bytes += move.frames.size();
  auto& into = all_whole(move.frames) ? moves_.runs : moves_.damaged_runs;
  into.push_back(std::move(move));
  return Ok{};
}

Status Snapshotter::gather_result(const core::SettledEntry& entry, std::size_t& bytes) {
  HAPAX_TRY(const auto file, files_.open(entry.where.segment));
  HAPAX_TRY(std::string frame, read_span(*file, entry.where));
  bytes += frame.size();
  auto& into = all_whole(frame) ? moves_.results : moves_.damaged_results;
  into.push_back({entry.hash(), entry.where, std::move(frame)});
  return Ok{};
}

// Entries whose result was moved before still name the old place, and only the owner of the state
// can tell them. So the search goes on where it ended last time and comes round: they cannot use up
// the bytes of every snapshot.
Status Snapshotter::gather_results(std::size_t& bytes) {
  auto& chunks = image_.settled.chunks;
  if (image_.victims.empty() || chunks.empty()) return Ok{};
  std::sort(chunks.begin(), chunks.end(),
            [](const auto& a, const auto& b) { return a.serial < b.serial; });
  const auto from = std::exchange(results_from_, {});
  const auto first = std::find_if(chunks.begin(), chunks.end(),
                                  [&](const auto& c) { return c.serial >= from.serial; });
  std::rotate(chunks.begin(), first, chunks.end());
  for (const auto& chunk : chunks) {
    const auto entries = chunk.span();
    for (std::size_t i = chunk.serial == from.serial ? from.place : 0; i < entries.size(); ++i) {
      const core::SettledEntry& entry = entries[i];
      if (!image_.victims.contains(entry.where.segment) || entry.forgotten != 0) continue;
      if (entry.where.length == 0 || entry.result_until() <= image_.log_time) continue;
      results_from_ = {chunk.serial, i};
      if (bytes >= kMoveBytesMax) return Ok{};
      HAPAX_CHECK(gather_result(entry, bytes));
    }
  }
  results_from_ = {};
  return Ok{};
}

// Reads what is still needed of the segments that are to be emptied.
Status Snapshotter::gather() {
  find_runs_to_move();
  std::size_t bytes = 0;
  for (RunMove& move : image_.runs_to_move) {
    if (bytes >= kMoveBytesMax) break;
    HAPAX_CHECK(gather_run(std::move(move), bytes));
  }
  HAPAX_CHECK(gather_results(bytes));
  end();
  return Ok{};
}

Moves Snapshotter::take_moves() { return std::exchange(moves_, {}); }

}  // namespace hapax::engine
