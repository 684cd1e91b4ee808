#include "sim/image.h"

#include <algorithm>

#include "base/assert.h"

namespace hapax::sim {
namespace {

enum class Fate : std::uint8_t { kKeep, kDrop, kGarbage };

constexpr SectorOdds kKeepAll{1, 0, 0};
constexpr SectorOdds kDropAll{0, 1, 0};

Fate draw(Random& random, const SectorOdds& odds) {
  const std::uint64_t drawn = random.below(std::uint64_t{odds.keep} + odds.drop + odds.garbage);
  if (drawn < odds.keep) return Fate::kKeep;
  return drawn < std::uint64_t{odds.keep} + odds.drop ? Fate::kDrop : Fate::kGarbage;
}

SectorOdds odds_of_one_file(const Loss& loss) {
  if (loss.random.chance(loss.odds.all_dropped)) return kDropAll;
  if (loss.random.chance(loss.odds.all_kept)) return kKeepAll;
  return loss.odds.sectors;
}

std::uint64_t sector_begin(std::uint64_t offset) { return offset - offset % kSectorBytes; }

std::uint64_t sector_end(std::uint64_t offset) { return sector_begin(offset + kSectorBytes - 1); }

void overwrite(std::string& bytes, std::uint64_t offset, std::string_view with) {
  if (offset >= bytes.size()) return;
  const std::size_t fits = std::min<std::size_t>(with.size(), bytes.size() - offset);
  with.copy(bytes.data() + offset, fits);
}

}  // namespace

void FileImage::write(std::uint64_t offset, std::string_view bytes) {
  if (bytes.empty()) return;
  const std::uint64_t end = offset + bytes.size();
  LastWrite last{offset, offset < cached_.size() ? cached_.substr(offset, bytes.size()) : ""};
  last.old_bytes.resize(bytes.size(), '\0');
  last_write_ = std::move(last);
  if (end > cached_.size()) cached_.resize(end, '\0');
  overwrite(cached_, offset, bytes);

  const std::uint64_t begin = sector_begin(offset);
  Change change;
  change.size_after = cached_.size();
  change.lands_at = begin;
  change.sectors = cached_.substr(begin, sector_end(end) - begin);
  change.own_begin = offset - begin;
  change.own_end = end - begin;
  if (misdirected_to_) {
    change.lands_at = *misdirected_to_;
    misdirected_to_.reset();
    diverged_ = true;
  }
  pending_.push_back(std::move(change));
}

void FileImage::resize(std::uint64_t size) {
  if (size == cached_.size()) return;
  cached_.resize(size, '\0');
  Change change;
  change.kind = Change::Kind::kResize;
  change.size_after = size;
  pending_.push_back(std::move(change));
}

void FileImage::sync() {
  for (const Change& change : pending_) {
    const bool resizes = change.kind == Change::Kind::kResize;
    if (resizes || change.size_after > durable_.size()) durable_.resize(change.size_after, '\0');
    store(change.lands_at, change.sectors);
  }
  pending_.clear();
}

void FileImage::fail_sync(const Loss& loss) {
  if (!pending_.empty()) diverged_ = true;
  settle(loss);
}

void FileImage::lose_power(const Loss& loss) {
  if (pending_.empty() && !diverged_) return;
  settle(loss);
  cached_ = durable_;
  diverged_ = false;
}

void FileImage::drop_cache() {
  if (!pending_.empty() || !diverged_) return;  // Dirty pages are not dropped.
  cached_ = durable_;
  diverged_ = false;
}

void FileImage::settle(const Loss& loss) {
  if (pending_.empty()) return;
  const SectorOdds odds = odds_of_one_file(loss);
  for (const Change& change : pending_) {
    settle_size(change, loss, odds);
    if (change.kind == Change::Kind::kWrite) settle_sectors(change, loss, odds);
  }
  pending_.clear();
}

void FileImage::settle_size(const Change& change, const Loss& loss, const SectorOdds& odds) {
  const std::uint64_t now = durable_.size();
  const bool grows = change.size_after > now;
  if (!grows && change.kind == Change::Kind::kWrite) return;
  const Fate fate = draw(loss.random, odds);
  if (fate == Fate::kKeep) {
    durable_.resize(change.size_after, '\0');
    return;
  }
  ++loss.tally.sizes_lost;
  // An extension may be stored in steps, as the pages behind it are; a truncation is one step.
  if (fate == Fate::kGarbage && grows) {
    const std::uint64_t part = sector_end(now + loss.random.below(change.size_after - now));
    durable_.resize(std::min(part, change.size_after), '\0');
  }
}

void FileImage::settle_sectors(const Change& change, const Loss& loss, const SectorOdds& odds) {
  std::uint64_t kept = 0;
  std::uint64_t all = 0;
  const std::string_view sectors = change.sectors;
  for (std::uint64_t at = 0; at < sectors.size(); at += kSectorBytes, ++all) {
    const Fate fate = draw(loss.random, odds);
    if (fate == Fate::kKeep) {
      store(change.lands_at + at, sectors.substr(at, kSectorBytes));
      ++kept;
      ++loss.tally.sectors_kept;
    } else if (fate == Fate::kDrop) {
      ++loss.tally.sectors_dropped;
    } else {
      const std::uint64_t begin = std::max(at, change.own_begin);
      const std::uint64_t end = std::min(at + kSectorBytes, change.own_end);
      garble(change.lands_at + begin, sectors.substr(begin, end - begin), loss);
      ++loss.tally.sectors_garbled;
    }
  }
  if (kept > 0 && kept < all) ++loss.tally.writes_torn;
}

// `meant` lies within one sector and within the bytes its write owned (S2).
void FileImage::garble(std::uint64_t offset, std::string_view meant, const Loss& loss) {
  std::string garbage(meant.size(), '\0');
  switch (loss.random.below(4)) {
    case 0:  // Zeros.
      break;
    case 1:  // Torn within the sector: the new bytes end somewhere.
      if (offset < durable_.size()) garbage = durable_.substr(offset, meant.size());
      overwrite(garbage, 0, meant.substr(0, loss.random.below(meant.size())));
      break;
    case 2:  // A recycled block: bytes that once were right, elsewhere.
      if (!loss.stale.empty()) {
        const std::uint64_t from = sector_begin(loss.random.below(loss.stale.size()));
        overwrite(garbage, 0, loss.stale.substr(from, meant.size()));
        break;
      }
      [[fallthrough]];
    default:
      for (char& byte : garbage) byte = static_cast<char>(loss.random.below(256));
  }
  store(offset, garbage);
}

// A size that was lost hides the bytes beyond it.
void FileImage::store(std::uint64_t offset, std::string_view bytes) {
  overwrite(durable_, offset, bytes);
}

void FileImage::damage(std::uint64_t offset, char mask) {
  HAPAX_ASSERT(offset < cached_.size(), "damage lies inside the file");
  sync();
  cached_[offset] = static_cast<char>(cached_[offset] ^ mask);
  if (offset < durable_.size()) durable_[offset] = static_cast<char>(durable_[offset] ^ mask);
}

void FileImage::cut(std::uint64_t size) {
  HAPAX_ASSERT(size <= cached_.size(), "a cut makes a file shorter");
  sync();
  cached_.resize(size);
  durable_.resize(std::min<std::uint64_t>(size, durable_.size()));
}

void FileImage::lose_last_write() {
  HAPAX_ASSERT(last_write_.has_value(), "a write happened");
  HAPAX_ASSERT(pending_.empty(), "the write to lose was synced, or its loss would be legal");
  overwrite(cached_, last_write_->offset, last_write_->old_bytes);
  overwrite(durable_, last_write_->offset, last_write_->old_bytes);
  last_write_.reset();
}

void FileImage::misdirect_next_write(std::uint64_t sector_offset) {
  HAPAX_ASSERT(sector_offset % kSectorBytes == 0, "drives write whole sectors");
  misdirected_to_ = sector_offset;
}

std::optional<FileId> FolderImage::find(std::string_view name) const {
  const auto found = cached_.find(name);
  if (found == cached_.end()) return std::nullopt;
  return found->second;
}

bool FolderImage::mentions(FileId id) const {
  const auto names_it = [id](const auto& entry) { return entry.second == id; };
  return std::any_of(cached_.begin(), cached_.end(), names_it) ||
         std::any_of(durable_.begin(), durable_.end(), names_it) ||
         std::any_of(pending_.begin(), pending_.end(),
                     [id](const Change& change) { return change.id == id; });
}

void FolderImage::create(std::string_view name, FileId id) {
  HAPAX_ASSERT(!find(name), "a created name is new");
  cached_.emplace(name, id);
  pending_.push_back({Change::Kind::kCreate, "", std::string(name), id});
}

void FolderImage::rename(std::string_view from, std::string_view to) {
  const std::optional<FileId> id = find(from);
  HAPAX_ASSERT(id.has_value(), "a renamed file exists");
  if (from == to) return;
  cached_.insert_or_assign(std::string(to), *id);
  cached_.erase(cached_.find(from));
  pending_.push_back({Change::Kind::kRename, std::string(from), std::string(to), *id});
}

void FolderImage::remove(std::string_view name) {
  const auto found = cached_.find(name);
  HAPAX_ASSERT(found != cached_.end(), "a removed file exists");
  pending_.push_back({Change::Kind::kRemove, std::string(name), "", found->second});
  cached_.erase(found);
}

void FolderImage::sync() {
  for (const Change& change : pending_) store(change);
  pending_.clear();
}

void FolderImage::fail_sync(const Loss& loss) { settle(loss); }

void FolderImage::lose_power(const Loss& loss) {
  settle(loss);
  cached_ = durable_;
}

void FolderImage::erase(std::string_view name) {
  sync();
  cached_.erase(cached_.find(name));
  if (const auto found = durable_.find(name); found != durable_.end()) durable_.erase(found);
}

// Changes may come without those before them (S4), so nothing about the old state is assumed
// except that a file has one name.
void FolderImage::store(const Change& change) {
  if (change.kind == Change::Kind::kRemove) {
    const auto found = durable_.find(change.from);
    if (found != durable_.end() && found->second == change.id) durable_.erase(found);
    return;
  }
  std::erase_if(durable_, [&](const auto& entry) { return entry.second == change.id; });
  durable_.insert_or_assign(change.to, change.id);
}

void FolderImage::settle(const Loss& loss) {
  // A journaling file system keeps the first so many changes; others any of them.
  const bool in_order = loss.random.chance(1, 2);
  bool order_ended = false;
  std::vector<bool> kept;
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    kept.push_back(!order_ended && loss.random.chance(loss.odds.name_kept));
    if (!kept.back()) order_ended = in_order;
  }
  keep_what_made_room(kept);
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    if (kept[i]) store(pending_[i]);
    ++(kept[i] ? loss.tally.names_kept : loss.tally.names_lost);
  }
  pending_.clear();
}

// S4: a name is taken only after its former file has left it. Without this, losing "a becomes b"
// and keeping "a is created" would leave the former file without any name.
void FolderImage::keep_what_made_room(std::vector<bool>& kept) const {
  for (std::size_t i = pending_.size(); i-- > 0;) {
    if (!kept[i] || pending_[i].kind == Change::Kind::kRemove) continue;
    for (std::size_t before = i; before-- > 0;) {
      if (pending_[before].from != pending_[i].to) continue;
      kept[before] = true;
      break;
    }
  }
}

}  // namespace hapax::sim
