#include "journal/recovery.h"

#include <algorithm>

#include "base/assert.h"
#include "base/format.h"
#include "base/mutant.h"
#include "journal/names.h"
#include "journal/new_file.h"
#include "journal/reserve_file.h"
#include "journal/rewrite.h"

namespace hapax::journal {
namespace {

using base::Mutant;

// The parts of one recovery share these; the steps are in recover(), in their order.
struct Start {
  ports::Folder& folder;
  ports::Entropy& entropy;
  const Identity& identity;
  const RecoverOptions& options;
  RecoveryReport report;
};

// L19: before anything of a newer format is written, STORE says so: an older program refuses the
// folder at its first look, before it changes anything.
Status raise_format(Start& start) {
  const std::uint16_t found = start.identity.version;
  if (found == kFormatVersion) return Ok{};
  HAPAX_CHECK(
      with_reserve(start.folder, [&] { return write_identity(start.folder, start.identity); }));
  HAPAX_CHECK(sync_names(start.folder));
  start.report.warnings.push_back(
      base::format("the data folder had format {} and now has format {}: older versions of Hapax "
                   "refuse to open it from now on",
                   found, kFormatVersion));
  return Ok{};
}

// L10: what we do not understand we leave alone, and say so.
Status clear_leftovers(Start& start) {
  HAPAX_TRY(const std::vector<std::string> names, start.folder.list());
  for (const std::string& name : names) {
    const FileName::Kind kind = parse_name(name).kind;
    const bool unknown = kind == FileName::Kind::kUnknown;
    if (unknown) start.report.warnings.push_back(name + " is not a file of the store: left alone");
    if (kind == FileName::Kind::kUnfinished ||
        (unknown && base::mutant(Mutant::kDeleteNotUnderstood))) {
      HAPAX_CHECK(start.folder.remove(name));
    }
  }
  return Ok{};
}

Status remove_orphans(Start& start) {
  HAPAX_TRY(const auto segments, list_segments(start.folder, start.identity));
  for (const Segment& segment : segments) {
    if (!segment.header.ok()) HAPAX_CHECK(start.folder.remove(segment_name(segment.number)));
  }
  return Ok{};
}

// L8: bytes that look like a batch nobody was told about are kept: as a copy, and in the segment,
// which is never cut where it could hold a proof.
Status quarantine_torn_tail(Start& start, const JournalFindings& findings,
                            const Evidence& evidence) {
  const std::uint64_t begin = findings.stop.offset;
  const std::uint64_t end = findings.rest.end;
  if (end == begin) return Ok{};
  const std::string name = segment_name(findings.stop.segment);
  const std::string copy_name = torn_tail_name(findings.stop.segment, begin);
  HAPAX_TRY(std::unique_ptr<ports::File> file, start.folder.open(name, ports::OpenMode::kRead));
  HAPAX_TRY(FileWindow window, FileWindow::open(std::move(file)));
  HAPAX_TRY(NewFile copy, NewFile::create(start.folder, copy_name));
  for (std::uint64_t offset = begin; offset < end;) {
    const auto wanted = std::min<std::uint64_t>(end - offset, std::uint64_t{256} << 10);
    HAPAX_TRY(const auto bytes, window.view(offset, static_cast<std::size_t>(wanted)));
    HAPAX_CHECK(copy.append(bytes));
    offset += bytes.size();
  }
  HAPAX_TRY(const auto published, copy.publish());
  HAPAX_CHECK(sync_names(start.folder));
  start.report.torn_bytes = end - begin;
  start.report.warnings.push_back(torn_text(findings, evidence) + ". They are kept in " +
                                  copy_name);
  return Ok{};
}

// The old segment's reserved space, all zeros, is of no more use.
Status give_back_space(Start& start, const JournalFindings& findings) {
  const std::string name = segment_name(findings.stop.segment);
  HAPAX_TRY(const auto file, start.folder.open(name, ports::OpenMode::kReadWrite));
  HAPAX_TRY(const std::uint64_t size, file->size());
  if (size > findings.rest.end) {
    ignore(file->truncate(findings.rest.end), "superseded zeros: they may as well stay");
  }
  return Ok{};
}

// L9: after an unclean end, a batch that nothing proves durable may exist in memory only: its sync
// may have failed, with its pages now marked clean, so syncing it again would prove nothing. It is
// written anew, into a segment of its own; the old bytes are superseded.
Result<Tail> begin_segment(Start& start, const JournalFindings& findings,
                           const Evidence& evidence) {
  std::vector<TailBatch> unproven = unproven_batches(findings, evidence);
  if (base::mutant(Mutant::kTailNotResynced)) unproven.clear();
  if (base::mutant(Mutant::kTailOnlySynced)) {
    const std::string name = segment_name(findings.stop.segment);
    HAPAX_TRY(const auto file, start.folder.open(name, ports::OpenMode::kReadWrite));
    HAPAX_CHECK(sync_file(*file));
    unproven.clear();
  }
  SegmentHeader header;
  header.number = findings.stop.segment + 1;
  header.salt = ports::draw_u64(start.entropy);
  header.first = unproven.empty() ? findings.next : unproven.front().header.first;
  header.history = start.identity.history;
  header.store = start.identity.store();
  header.chain = unproven.empty() ? findings.chain : unproven.front().header.chain;
  HAPAX_TRY(const Rewritten rewritten, reseal(start.folder, start.identity, unproven, header));
  HAPAX_TRY(const auto file, with_reserve(start.folder, [&] {
              return create_segment(start.folder, header, rewritten.bytes);
            }));
  HAPAX_CHECK(give_back_space(start, findings));
  if (!unproven.empty()) {
    start.report.rewritten_first = unproven.front().header.first;
    start.report.rewritten_last = unproven.back().header.last();
  }
  const auto end = static_cast<std::uint32_t>(kHeaderBytes + rewritten.bytes.size());
  return Tail{
      findings.next, {header.number, end}, header.salt, rewritten.chain, start.report.log_time};
}

Result<Tail> find_tail(Start& start, const JournalFindings& findings, const Evidence& evidence) {
  // L17: a start that wrote nothing leaves nothing behind: its segment is used again.
  if (start.report.clean || is_empty_and_proven(findings, evidence)) {
    return Tail{findings.next, findings.stop, findings.salt, findings.chain, start.report.log_time};
  }
  HAPAX_CHECK(
      with_reserve(start.folder, [&] { return quarantine_torn_tail(start, findings, evidence); }));
  return begin_segment(start, findings, evidence);
}

// Reads everything once more, now that each batch is where it stays.
Status replay(Start& start, const Tail& tail, const BatchVisitor& visit) {
  RecoveryReport& report = start.report;
  const auto counted = [&](const BatchView& batch) -> Status {
    ++report.batches;
    report.facts += batch.header.count;
    report.bytes += batch.bytes;
    return visit ? visit(batch) : Ok{};
  };
  HAPAX_TRY(const JournalFindings again,
            examine(start.folder, start.identity, start.options.snapshot.next(), counted));
  if (const auto damage = judge(again, {std::nullopt, start.options.snapshot})) {
    return refusal(start.folder, *damage);
  }
  if (again.next != tail.next || again.stop != tail.end || again.chain != tail.chain) {
    return Error{Errc::kCorruption, folder_path(start.folder) +
                                        ": the journal reads differently the second time. The "
                                        "disk or the memory of this machine is not reliable."};
  }
  for (std::size_t index = 0; index < again.segments.size(); ++index) {
    const Segment& segment = again.segments[index];
    const bool is_last = index + 1 == again.segments.size();
    const Lsn end = is_last ? tail.next : again.segments[index + 1].header->first;
    report.segments.push_back({segment.number, segment.header->first, end, segment.size});
  }
  return Ok{};
}

Status note_if_full(Start& start, Status status, const std::string& what) {
  if (status.ok() || status.error().code != Errc::kNoSpace) return status;
  start.report.warnings.push_back(what + ": the disk is full");
  return Ok{};
}

Result<std::unique_ptr<Writer>> open_writer(Start& start, Marks marks, const Tail& tail) {
  HAPAX_TRY(auto writer, Writer::open(start.folder, start.entropy, start.identity, std::move(marks),
                                      tail, start.options.writer));
  if (!start.report.clean) {
    auto marked = writer->write_mark(MarkKind::kRunning);
    HAPAX_CHECK(note_if_full(start, std::move(marked), "no durable mark was written"));
  }
  return writer;
}

}  // namespace

Result<Recovered> recover(ports::Folder& folder, ports::Entropy& entropy, const Identity& identity,
                          const RecoverOptions& options, const BatchVisitor& visit) {
  Start start{folder, entropy, identity, options, {}};
  if (base::mutant(Mutant::kDeleteNotUnderstood)) HAPAX_CHECK(remove_orphans(start));
  HAPAX_TRY(Marks marks, Marks::open(folder));
  HAPAX_TRY(const JournalFindings findings, examine(folder, identity, options.snapshot.next()));
  const Evidence evidence{marks.newest(), options.snapshot};
  if (const auto damage = judge(findings, evidence)) return refusal(folder, *damage);

  // Only from here on is anything changed.
  start.report.clean = ended_clean(findings, evidence);
  start.report.log_time = std::max(findings.log_time, marks.newest().log_time);
  start.report.next = findings.next;
  if (std::string cut = cut_text(findings, evidence); !cut.empty()) {
    start.report.warnings.push_back(std::move(cut));
  }
  HAPAX_CHECK(raise_format(start));
  HAPAX_CHECK(clear_leftovers(start));
  // Names that a process made and did not live to sync must not vanish under what comes next.
  HAPAX_CHECK(sync_names(folder));
  HAPAX_CHECK(with_reserve(folder, [&] { return marks.settle(); }));
  HAPAX_TRY(const Tail tail, find_tail(start, findings, evidence));
  HAPAX_CHECK(replay(start, tail, visit));
  auto kept_back = ensure_reserve(folder, options.reserve_bytes);
  HAPAX_CHECK(note_if_full(start, std::move(kept_back), "no space is kept in reserve"));
  HAPAX_TRY(auto writer, open_writer(start, std::move(marks), tail));
  start.report.slot = writer->slot();
  return Recovered{std::move(start.report), std::move(writer)};
}

}  // namespace hapax::journal
