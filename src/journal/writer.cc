#include "journal/writer.h"

#include <algorithm>

#include "base/assert.h"
#include "base/mutant.h"
#include "journal/block.h"
#include "journal/names.h"
#include "journal/new_file.h"
#include "journal/reserve_file.h"
#include "journal/segment.h"

namespace hapax::journal {
namespace {

// Mutants only: no sync at all, or about one for three batches.
bool skips_sync(Slot slot) {
  using base::Mutant;
  if (base::mutant(Mutant::kAckBeforeSync)) return true;
  const bool several = base::mutant(Mutant::kSeveralBatchesInFlight) ||
                       base::mutant(Mutant::kRefuseValidAfterInvalid);
  return several && slot.offset / kBatchAlignment % 3 != 0;
}

}  // namespace

Result<std::unique_ptr<Writer>> Writer::open(ports::Folder& folder, ports::Entropy& entropy,
                                             const Identity& identity, Marks marks,
                                             const Tail& tail, const WriterOptions& options) {
  HAPAX_ASSERT(options.segment_bytes >= kSegmentBytesMin, "a segment holds something");
  HAPAX_ASSERT(options.segment_bytes <= kSegmentBytesMax, "offsets stay within 32 bits");
  HAPAX_ASSERT(options.reserve_step > 0, "space is set aside in steps");
  std::unique_ptr<Writer> writer(
      new Writer(folder, entropy, identity, std::move(marks), tail, options));
  const std::string name = segment_name(tail.end.segment);
  HAPAX_TRY(writer->file_, folder.open(name, ports::OpenMode::kReadWrite));
  HAPAX_TRY(writer->reserved_, writer->file_->size());
  return writer;
}

Writer::Writer(ports::Folder& folder, ports::Entropy& entropy, const Identity& identity,
               Marks marks, const Tail& tail, const WriterOptions& options)
    : folder_(folder),
      entropy_(entropy),
      identity_(identity),
      options_(options),
      marks_(std::move(marks)),
      tail_(tail),
      slot_(slot_after(tail.end, 0, options.segment_bytes)),
      zeroed_(tail.end.offset),
      durable_(tail.next.value - 1) {}

Result<Durable> Writer::write(Batch& batch) {
  HAPAX_ASSERT(batch.first() == tail_.next, "facts are numbered without a hole");
  HAPAX_ASSERT(batch.log_time() >= tail_.log_time, "log time never goes back");
  if (poisoned_) return Error{Errc::kIo, "the journal is poisoned by an earlier failure"};
  const Room room = room_.load(std::memory_order_acquire);
  if (room == Room::kClosed) {
    return Error{Errc::kNoSpace, "the disk is full; what is not needed is being removed"};
  }
  // L21: a segment that nothing needs is ended early.
  if (batch.begins_segment() && slot_.offset != kHeaderBytes) {
    slot_ = {slot_.segment + 1, kHeaderBytes};
  }
  Status put_there = room == Room::kMayUseReserve
                         ? with_reserve(folder_, [&] { return put(batch, Ahead::kNothing); })
                         : put(batch, Ahead::kAStep);
  const bool full = !put_there.ok() && put_there.error().code == Errc::kNoSpace;
  if (full && batch.frees_space()) put_there = put_with_reserve(batch);
  HAPAX_CHECK(std::move(put_there));
  // L1: only what this sync covered is acknowledged.
  const Lsn last{batch.next().value - 1};
  HAPAX_CHECK(sync(last));

  tail_.next = batch.next();
  tail_.end = {slot_.segment, slot_.offset + batch.bytes()};
  tail_.chain = batch.checksum();
  tail_.log_time = batch.log_time();
  slot_ = slot_after(slot_, batch.bytes(), options_.segment_bytes);
  HAPAX_CHECK(prove_first());
  return Durable(last);
}

// L20: the first batch of a process, and the first of a segment, is acknowledged only when a mark
// proves it. Otherwise a file that was cut right behind its header would look like one that nothing
// was ever written to. The mark also says how long the file was, so that a later cut is noticed.
Status Writer::prove_first() {
  if (proven_) return Ok{};
  const Status marked = put_mark(MarkKind::kRunning);
  proven_ = marked.ok();
  // A full disk leaves the batch unproven, and the next one tries again.
  if (!proven_ && marked.error().code != Errc::kNoSpace) return marked;
  return Ok{};
}

Status Writer::write_mark(MarkKind kind) {
  if (poisoned_) return Error{Errc::kIo, "the journal is poisoned by an earlier failure"};
  if (kind != MarkKind::kClean) return put_mark(kind);
  file_bytes_ = tail_.end.offset;
  HAPAX_CHECK(put_mark(kind));
  return trim();
}

// L2: after a failed sync the kernel may have dropped the dirty pages and marked them clean, so a
// later sync can succeed without having stored them. After a failed write nobody knows what the
// file holds. The only safe answer is to stop and recover from what is really on disk.
Error Writer::poisoned(Error error) {
  if (error.code == Errc::kNoSpace) return error;
  poisoned_ = true;
  return Error{Errc::kIo, std::move(error.detail)};
}

// Into the segment it belongs to, if there is space in it.
Status Writer::put(Batch& batch, Ahead ahead) {
  HAPAX_CHECK(enter_segment());
  const std::uint64_t end = std::uint64_t{slot_.offset} + batch.bytes();
  HAPAX_CHECK(set_aside(end, ahead));
  if (ahead == Ahead::kAStep) HAPAX_CHECK(zero_ahead(end, batch.bytes()));
  return append(batch.seal({0, tail_.salt, durable_, tail_.chain}));
}

// L18: what frees space may take it from the reserve, which is made again at once, and half of
// which stays for the snapshot that gives the space back.
Status Writer::put_with_reserve(Batch& batch) {
  HAPAX_TRY(const std::uint64_t left, reserve_bytes(folder_));
  if (left <= options_.reserve_bytes / 2) {
    return Error{Errc::kNoSpace, "the disk is full, and so is what was kept back to free space"};
  }
  HAPAX_CHECK(release_reserve(folder_));
  Status put_there = put(batch, Ahead::kNothing);
  ignore(restore_reserve(folder_, left), "a start makes it again");
  return put_there;
}

Status Writer::enter_segment() {
  if (slot_.segment == tail_.end.segment) return Ok{};
  HAPAX_CHECK(seal_segment());
  SegmentHeader header;
  header.number = slot_.segment;
  header.salt = ports::draw_u64(entropy_);
  header.first = tail_.next;
  header.history = identity_.history;
  header.store = identity_.store();
  header.chain = tail_.chain;
  auto created = create_segment(folder_, header, {});
  // L16: no descriptor was free, so there is no file either.
  if (!created.ok() && created.error().code == Errc::kUnavailable) {
    return std::move(created).error().within("begin a segment");
  }
  if (!created.ok()) return poisoned(std::move(created).error().within("begin a segment"));
  file_ = *std::move(created);
  reserved_ = kHeaderBytes;
  zeroed_ = kHeaderBytes;
  measured_ = kHeaderBytes;
  file_bytes_ = kHeaderBytes;
  proven_ = false;
  tail_.end = slot_;
  tail_.salt = header.salt;
  return Ok{};
}

// The mark makes the segment's end provable; the next segment's header proves it once more.
Status Writer::seal_segment() {
  const Mark& newest = marks_.newest();
  if (newest.end == tail_.end && newest.salt == tail_.salt) return Ok{};
  file_bytes_ = tail_.end.offset;
  HAPAX_CHECK(put_mark(MarkKind::kRunning));
  return trim();
}

// A file system that cannot set aside as much as it is asked for may keep what it found, so on a
// full disk nothing is asked for ahead.
Status Writer::set_aside(std::uint64_t end, Ahead ahead) {
  if (end <= reserved_) return Ok{};
  const std::uint64_t step = options_.reserve_step;
  const std::uint64_t whole_steps = (end + step - 1) / step * step;
  const auto ample = std::min<std::uint64_t>(whole_steps, options_.segment_bytes);
  std::uint64_t wanted = ahead == Ahead::kNothing ? end : std::max(end, ample);
  auto reserved = file_->reserve(wanted);
  if (!reserved.ok() && reserved.error().code == Errc::kNoSpace && wanted > end) {
    wanted = end;
    reserved = file_->reserve(wanted);
  }
  if (reserved.ok()) {
    reserved_ = wanted;
    return Ok{};
  }
  if (reserved.error().code == Errc::kNoSpace) return std::move(reserved).error();
  ignore(reserved, "only a speed-up: if the disk is ill, the write or the sync will say so");
  return Ok{};
}

// The first sync of a block that was only set aside waits for the file system's own journal as
// well; that of a block that was written before does not. So where batches are small, one of them
// takes the blocks of the next ones along. Both kinds of block read as zeros until they are
// written.
Status Writer::zero_ahead(std::uint64_t end, std::uint32_t batch_bytes) {
  constexpr std::uint64_t kBatchesAhead = 8;  // for fewer, writing twice costs more than it saves
  if (end <= zeroed_) return Ok{};
  zeroed_ = end;
  const std::uint64_t to = std::min(end + options_.zero_step, reserved_);
  if (to <= end || batch_bytes * kBatchesAhead > options_.zero_step) return Ok{};
  auto written = write_all(*file_, end, std::string(to - end, '\0'));
  if (!written.ok() && written.error().code == Errc::kNoSpace) return Ok{};  // It goes without.
  if (!written.ok()) return poisoned(std::move(written).error().within("write zeros ahead"));
  zeroed_ = to;
  return Ok{};
}

Status Writer::append(std::string_view bytes) {
  auto written = write_all(*file_, slot_.offset, bytes);
  if (written.ok()) return written;
  if (written.error().code == Errc::kNoSpace) return roll_back(std::move(written).error());
  return poisoned(std::move(written).error().within("append a batch"));
}

// L5: a batch refused for lack of space leaves no bytes behind, and the next takes its place. The
// cut is synced: were it lost by a power loss, a batch that was said not to have happened could be
// found whole.
Status Writer::roll_back(Error refusal) {
  if (base::mutant(base::Mutant::kNoRollbackOfPartialWrite)) {
    HAPAX_TRY(const std::uint64_t size, file_->size());
    slot_.offset = static_cast<std::uint32_t>((size + 7) / 8 * 8);
    return refusal;
  }
  if (file_bytes_ > slot_.offset) {
    file_bytes_ = slot_.offset;
    ignore(put_mark(MarkKind::kRunning), "without it a start may say that the file was cut");
    if (poisoned_) return Error{Errc::kIo, "the journal is poisoned by an earlier failure"};
  }
  auto cut = file_->truncate(slot_.offset);
  if (cut.ok()) cut = sync_file(*file_);
  if (!cut.ok()) {
    return poisoned(Error{Errc::kIo, std::move(cut).error().detail}.within("take back a batch"));
  }
  reserved_ = slot_.offset;
  zeroed_ = slot_.offset;
  measured_ = slot_.offset;
  return refusal;
}

Status Writer::sync(Lsn last) {
  if (!skips_sync(slot_)) {
    auto synced = sync_file(*file_);
    if (!synced.ok()) return poisoned(std::move(synced).error().within("make a batch durable"));
    durable_ = last;
    HAPAX_CHECK(measure());
  }
  if (base::mutant(base::Mutant::kAckBeforeSync)) durable_ = last;
  return Ok{};
}

// Not every file system sets aside what it is asked for, so the file is asked how long it is.
Status Writer::measure() {
  if (measured_ == reserved_) return Ok{};
  auto size = file_->size();
  if (!size.ok()) return poisoned(std::move(size).error().within("measure a segment"));
  measured_ = reserved_;
  file_bytes_ = static_cast<std::uint32_t>(*size);
  return Ok{};
}

// Gives back what was set aside behind the last batch. Not synced: those bytes are zeros, whether
// they are there or not. The mark of the shorter file was written before.
Status Writer::trim() {
  if (reserved_ <= tail_.end.offset) return Ok{};
  auto cut = file_->truncate(tail_.end.offset);
  if (!cut.ok()) return poisoned(Error{Errc::kIo, std::move(cut).error().detail}.within("trim"));
  reserved_ = tail_.end.offset;
  zeroed_ = tail_.end.offset;
  measured_ = tail_.end.offset;
  return Ok{};
}

Status Writer::put_mark(MarkKind kind) {
  Mark mark;
  mark.kind = kind;
  mark.durable = durable_;
  mark.salt = tail_.salt;
  mark.end = tail_.end;
  mark.log_time = std::max(tail_.log_time, time_from_ms(noted_ms_.load(std::memory_order_acquire)));
  mark.file_bytes = file_bytes_;
  auto written = with_reserve(folder_, [&] { return marks_.write(mark); });
  if (!written.ok()) return poisoned(std::move(written).error().within("write a durable mark"));
  return Ok{};
}

}  // namespace hapax::journal
