// The one who appends to the journal. Belongs to one thread. L3: a batch is written only when every
// batch before it is durable, so at most one is not.
//
//   write() answers  Durable   the batch is on stable storage
//                    kNoSpace, kUnavailable (no descriptor is free)
//                              nothing of it is there; the next batch takes the same slot
//                    kIo       L2: nobody knows; the writer is of no more use, end the process
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include <hapax/result.h>
#include <hapax/time.h>

#include "journal/batch.h"
#include "journal/format.h"
#include "journal/identity.h"
#include "journal/marks.h"
#include "journal/reserve_file.h"
#include "ports/entropy.h"
#include "ports/files.h"

namespace hapax::journal {

// Proof that everything up to lsn() is on stable storage. A Writer makes it.
class Durable {
 public:
  // Of a log elsewhere, which has said so.
  [[nodiscard]] static Durable vouched(Lsn lsn) { return Durable(lsn); }

  [[nodiscard]] Lsn lsn() const { return lsn_; }

 private:
  friend class Writer;
  explicit Durable(Lsn lsn) : lsn_(lsn) {}
  Lsn lsn_;
};

struct WriterOptions {
  std::uint32_t segment_bytes = std::uint32_t{256} << 20;  // A segment that reaches it is sealed.
  std::uint64_t reserve_step = std::uint64_t{16} << 20;    // Disk space is set aside in such steps.
  std::uint64_t reserve_bytes = 0;                         // Of RESERVE, when it is made again.
  std::uint64_t zero_step = std::uint64_t{256} << 10;      // Zeros are written ahead in such steps.
};

// The end of a journal; recovery finds it.
struct Tail {
  Lsn next{1};
  Slot end;                // Behind the last batch, in the last segment.
  std::uint64_t salt = 0;  // Of that segment.
  std::uint32_t chain = 0;
  Time log_time{};
};

class Writer {
 public:
  static Result<std::unique_ptr<Writer>> open(ports::Folder& folder, ports::Entropy& entropy,
                                              const Identity& identity, Marks marks,
                                              const Tail& tail, const WriterOptions& options);

  // Seals the batch, whose first lsn must be next(), writes and syncs it.
  Result<Durable> write(Batch& batch);

  // Makes it provable that everything so far is durable. Segments are marked when they are sealed;
  // when else is the caller's choice. kClean is for the very end. kNoSpace is harmless.
  Status write_mark(MarkKind kind);

  // W5: the next mark has this log time, if it is later than that of the last batch. From any
  // thread.
  void note_time(Time time) { noted_ms_.store(to_ms(time), std::memory_order_release); }

  // L18. From any thread; closed only while no batch is in flight.
  void set_room(Room room) { room_.store(room, std::memory_order_release); }

  [[nodiscard]] Lsn next() const { return tail_.next; }
  [[nodiscard]] Slot slot() const { return slot_; }  // of the next batch
  [[nodiscard]] std::uint32_t segment_bytes() const { return options_.segment_bytes; }

 private:
  Writer(ports::Folder& folder, ports::Entropy& entropy, const Identity& identity, Marks marks,
         const Tail& tail, const WriterOptions& options);

  enum class Ahead : std::uint8_t { kAStep, kNothing };  // what is set aside behind a batch
  Status put(Batch& batch, Ahead ahead);
  Status put_with_reserve(Batch& batch);
  Status enter_segment();
  Status seal_segment();
  Status set_aside(std::uint64_t end, Ahead ahead);
  Status zero_ahead(std::uint64_t end, std::uint32_t batch_bytes);
  Status append(std::string_view bytes);
  Status roll_back(Error refusal);
  Status sync(Lsn last);
  Status measure();
  Status prove_first();
  Status trim();
  Status put_mark(MarkKind kind);
  Error poisoned(Error error);

  ports::Folder& folder_;
  ports::Entropy& entropy_;
  const Identity identity_;
  const WriterOptions options_;
  Marks marks_;
  Tail tail_;
  Slot slot_;
  std::unique_ptr<ports::File> file_;  // of the segment tail_.end is in
  std::uint64_t reserved_ = 0;         // its size
  std::uint64_t zeroed_ = 0;           // up to here all of it was written, be it with zeros
  std::uint64_t measured_ = 0;         // `reserved_` when its size was last asked for
  std::uint32_t file_bytes_ = 0;       // its size at its last sync, or what it will be cut to
  bool proven_ = false;                // L20: of a batch of this process in this segment
  Lsn durable_;
  bool poisoned_ = false;
  std::atomic<Room> room_{Room::kOrdinary};
  std::atomic<std::int64_t> noted_ms_{0};
};

}  // namespace hapax::journal
