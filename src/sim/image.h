// What a simulated disk holds: for every file the durable bytes, the cached bytes a process sees,
// and the list of changes that still lie between them; the same for the names of the folder.
// A plain value that can be copied whole. It decides, from given odds, what a power loss leaves;
// it never decides whether or when one happens (see disk.h) and knows nothing of ports.
//
// Rules, and why they are no harsher than that:
//   S1  What a sync() that said Ok covered stays. Every store rests on that much.
//   S2  A sector of 512 bytes holds, after a power loss, its durable content or the content after
//       one of the pending writes that touched it; or garbage in the bytes such a write owned.
//       Bytes beside a write are never harmed (sector-atomic drives; SQLite's "powersafe
//       overwrite"), or no append could ever share a sector with what was synced before it.
//   S3  A size change is kept or lost apart from its data: a kept size with lost data reads zeros.
//   S4  A pending name change happened or did not, in any combination, but a rename is one step:
//       a file that was durable under a name has afterwards exactly one of its names.
//   S5  After a failed sync the changes are settled by odds and then forgotten, while the cache
//       goes on showing them: a later sync says Ok and stores nothing of them (Linux; Rebello et
//       al., "Can Applications Recover from fsync Failures?", ATC'20).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/random.h"

namespace hapax::sim {

inline constexpr std::uint64_t kSectorBytes = 512;

struct SectorOdds {
  std::uint32_t keep = 1;
  std::uint32_t drop = 1;
  std::uint32_t garbage = 0;
};

// How the un-synced changes of one file, or of the folder, end.
struct LossOdds {
  SectorOdds sectors;
  Rate all_dropped = kNever;  // Drawn per file before any sector is looked at. Independent odds
  Rate all_kept = kNever;     // alone would almost never keep or drop a large write whole.
  Rate name_kept = {1, 2};
};

// What really happened, for guards against tests that test nothing.
struct Losses {
  std::uint64_t sectors_kept = 0;
  std::uint64_t sectors_dropped = 0;
  std::uint64_t sectors_garbled = 0;
  std::uint64_t writes_torn = 0;  // Some sectors of one write kept, others not.
  std::uint64_t sizes_lost = 0;   // Truncations and extensions undone, wholly or in part.
  std::uint64_t names_kept = 0;
  std::uint64_t names_lost = 0;
};

// The circumstances of one loss, handed down.
struct Loss {
  Random& random;
  const LossOdds& odds;
  std::string_view stale;  // Bytes of files long removed: what a recycled block may show.
  Losses& tally;
};

class FileImage {
 public:
  [[nodiscard]] const std::string& cached() const { return cached_; }
  [[nodiscard]] const std::string& durable() const { return durable_; }
  [[nodiscard]] bool all_synced() const { return pending_.empty(); }

  void write(std::uint64_t offset, std::string_view bytes);
  void resize(std::uint64_t size);
  void sync();                        // S1
  void fail_sync(const Loss& loss);   // S5
  void lose_power(const Loss& loss);  // S2, S3; afterwards the cache shows what is durable.
  // The kernel forgets clean pages: what a failed sync or a bad drive did shows.
  void drop_cache();

  // Damage at rest, in the cache and below it. Whatever is pending reaches the disk first, so that
  // it cannot undo the damage.
  void damage(std::uint64_t offset, char mask);  // The byte is xored with the mask.
  void cut(std::uint64_t size);
  // The drive said Ok to the last write and never stored it: old bytes, new size.
  void lose_last_write();  // REQUIRES: can_lose_write()
  [[nodiscard]] bool can_lose_write() const { return all_synced() && last_write_.has_value(); }
  // The drive stores the next write at another sector; the cache does not know.
  void misdirect_next_write(std::uint64_t sector_offset);

 private:
  struct Change {
    enum class Kind : std::uint8_t { kWrite, kResize };
    Kind kind = Kind::kWrite;
    std::uint64_t size_after = 0;
    std::uint64_t lands_at = 0;   // Where `sectors` go: a multiple of kSectorBytes.
    std::string sectors;          // Whole sectors as they were in the cache after the write (S2).
    std::uint64_t own_begin = 0;  // The write's own bytes, counted from the start of `sectors`.
    std::uint64_t own_end = 0;
  };
  struct LastWrite {
    std::uint64_t offset = 0;
    std::string old_bytes;
  };

  void settle(const Loss& loss);
  void settle_size(const Change& change, const Loss& loss, const SectorOdds& odds);
  void settle_sectors(const Change& change, const Loss& loss, const SectorOdds& odds);
  void garble(std::uint64_t offset, std::string_view meant, const Loss& loss);
  void store(std::uint64_t offset, std::string_view bytes);

  std::string durable_;
  std::string cached_;
  std::vector<Change> pending_;
  // The cache shows something that no sync will ever store.
  bool diverged_ = false;
  std::optional<LastWrite> last_write_;
  std::optional<std::uint64_t> misdirected_to_;
};

using FileId = std::uint64_t;
using FileNames = std::map<std::string, FileId, std::less<>>;

class FolderImage {
 public:
  [[nodiscard]] const FileNames& cached() const { return cached_; }
  [[nodiscard]] const FileNames& durable() const { return durable_; }
  [[nodiscard]] std::optional<FileId> find(std::string_view name) const;
  // Whether the file could still be reached, now or after a power loss.
  [[nodiscard]] bool mentions(FileId id) const;

  void create(std::string_view name, FileId id);
  void rename(std::string_view from, std::string_view to);  // `from` exists.
  void remove(std::string_view name);                       // `name` exists.
  void sync();
  void fail_sync(const Loss& loss);
  void lose_power(const Loss& loss);
  void erase(std::string_view name);  // Damage: gone from the cache and below it.

 private:
  struct Change {
    enum class Kind : std::uint8_t { kCreate, kRename, kRemove };
    Kind kind = Kind::kCreate;
    std::string from;
    std::string to;  // The name it has afterwards; empty for kRemove.
    FileId id = 0;
  };

  void store(const Change& change);
  void settle(const Loss& loss);
  void keep_what_made_room(std::vector<bool>& kept) const;

  FileNames durable_;
  FileNames cached_;
  std::vector<Change> pending_;
};

struct DiskImage {
  std::map<FileId, FileImage> files;
  FolderImage names;
  FileId next_id = 1;
  std::string stale;  // See Loss.
};

}  // namespace hapax::sim
