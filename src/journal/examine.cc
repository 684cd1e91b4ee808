#include "journal/examine.h"

#include <algorithm>

#include "base/assert.h"
#include "base/format.h"
#include "base/mutant.h"
#include "journal/names.h"

namespace hapax::journal {
namespace {

Lsn before(Lsn lsn) { return Lsn{lsn.value == 0 ? 0 : lsn.value - 1}; }
std::string text(Lsn lsn) { return std::to_string(lsn.value); }

// One walk over the segments; its product is the JournalFindings.
class Walk {
 public:
  Walk(ports::Folder& folder, const Identity& identity, Lsn from, const BatchVisitor& visit)
      : folder_(folder), identity_(identity), from_(from), visit_(visit) {}

  Result<JournalFindings> run() {
    HAPAX_TRY(found_.segments, list_segments(folder_, identity_));
    const auto start = first_needed();
    if (!start) {
      blame_beginning();
      return std::move(found_);
    }
    note_unreadable(*start);
    begin_at(found_.segments[*start]);
    HAPAX_CHECK(walk_segment(*start));
    for (std::size_t index = *start + 1; index < found_.segments.size(); ++index) {
      if (found_.damage || !joins(found_.segments[index])) break;
      HAPAX_CHECK(walk_segment(index));
    }
    return std::move(found_);
  }

 private:
  // The last readable segment that begins at or before the lsn from which the journal is needed.
  [[nodiscard]] std::optional<std::size_t> first_needed() const {
    std::optional<std::size_t> start;
    for (std::size_t index = 0; index < found_.segments.size(); ++index) {
      const auto& header = found_.segments[index].header;
      if (header.ok() && header->first <= from_) start = index;
    }
    return start;
  }

  void begin_at(const Segment& segment) {
    found_.first_segment = segment.number;
    found_.next = segment.header->first;
    found_.chain = segment.header->chain;
  }

  void note_unreadable(std::size_t end) {
    Lsn first;
    for (std::size_t index = 0; index < end; ++index) {
      const Segment& segment = found_.segments[index];
      if (segment.header.ok()) {
        first = segment.header->first;
        continue;
      }
      found_.unreadable.push_back(
          {segment_name(segment.number), 0, first, before(found_.segments[end].header->first),
           "the header: " + segment.header.error().detail, "later segments"});
    }
  }

  void blame(std::uint32_t segment, std::uint64_t offset, Lsn last, std::string why) {
    found_.damage = Damage{segment_name(segment),       offset,         found_.next,
                           std::max(found_.next, last), std::move(why), "a later segment"};
  }

  void blame_beginning() {
    found_.next = from_;
    if (found_.segments.empty()) return blame(1, 0, from_, "no segment is there");
    const Segment& first = found_.segments.front();
    if (!first.header.ok()) {
      return blame(first.number, 0, from_, "the header: " + first.header.error().detail);
    }
    blame(first.number, 0, before(first.header->first),
          "it is the oldest segment and begins with lsn " + text(first.header->first) +
              ", but the journal is needed from lsn " + text(from_));
  }

  // Whether the segment continues where the walk is; if not, the damage is noted.
  bool joins(const Segment& segment) {
    if (!segment.header.ok()) {
      blame(segment.number, 0, found_.next, "the header: " + segment.header.error().detail);
      return false;
    }
    const SegmentHeader& header = *segment.header;
    if (header.first != found_.next) {
      blame(segment.number, 0, before(header.first),
            "it begins with lsn " + text(header.first) +
                ", the segment before it ends before lsn " + text(found_.next));
      return false;
    }
    if (header.chain != found_.chain) {
      blame(segment.number, 0, found_.next, "the chain of checksums does not lead to it");
      return false;
    }
    return true;
  }

  // Where the segment logically ends: at the first lsn of the next one, if that can be read.
  [[nodiscard]] std::optional<Lsn> end_of(std::size_t index) const {
    if (index + 1 >= found_.segments.size()) return std::nullopt;
    const auto& next = found_.segments[index + 1].header;
    return next.ok() ? std::optional(next->first) : std::nullopt;
  }

  Status walk_segment(std::size_t index) {
    const std::uint32_t number = found_.segments[index].number;
    const std::optional<Lsn> end = end_of(index);
    HAPAX_TRY(SegmentReader reader, SegmentReader::open(folder_, identity_, number));
    found_.salt = reader.header().salt;
    found_.stop = {number, kHeaderBytes};
    found_.tail.clear();  // A segment is begun only when all before it is durable.
    while (!end || found_.next < *end) {
      auto batch = reader.read(found_.stop.offset, {found_.next, found_.chain});
      if (batch.ok()) {
        HAPAX_CHECK(accept(*batch));
        continue;
      }
      // L13: a disk that cannot be read says nothing about what is on it.
      if (batch.error().code != Errc::kCorruption) {
        return std::move(batch).error().within(folder_.describe(segment_name(number)));
      }
      return end_at(index, reader, batch.error().detail);
    }
    if (end && found_.next > *end) {
      blame(number, found_.stop.offset, before(found_.next),
            "the batch before it reaches over lsn " + text(*end) +
                ", with which the next segment begins");
    }
    return Ok{};
  }

  Status accept(const BatchView& batch) {
    if (visit_ && batch.header.last() >= from_) HAPAX_CHECK(visit_(batch));
    found_.next = batch.header.next();
    found_.chain = batch.checksum;
    found_.log_time = batch.header.log_time;
    found_.stop.offset += batch.bytes;
    // Every batch says what was durable before it was written.
    std::erase_if(found_.tail, [&](const TailBatch& earlier) {
      return earlier.header.last() <= batch.header.durable;
    });
    found_.tail.push_back({batch.header, batch.slot, batch.bytes});
    return Ok{};
  }

  // There is no valid batch at the stop.
  Status end_at(std::size_t index, SegmentReader& reader, const std::string& why) {
    if (index + 1 == found_.segments.size()) return look_behind(reader, why);
    // Behind a segment whose header is damaged, its lsn is unknown: joins() blames that one.
    if (const auto end = end_of(index)) {
      blame(found_.segments[index].number, found_.stop.offset, before(*end), why);
    }
    return Ok{};
  }

  Status look_behind(SegmentReader& reader, const std::string& why) {
    found_.rest.why = why;
    HAPAX_TRY(found_.rest.end, reader.end_of_content(found_.stop.offset));
    for (std::uint64_t from = found_.stop.offset; from < found_.rest.end;) {
      HAPAX_TRY(const auto later, reader.find_header(from));
      if (!later) break;
      const auto& best = found_.rest.later;
      if (!best || later->header.durable > best->header.durable) found_.rest.later = later;
      from = later->offset + kBatchAlignment;
    }
    return Ok{};
  }

  ports::Folder& folder_;
  const Identity& identity_;
  const Lsn from_;
  const BatchVisitor& visit_;
  JournalFindings found_;
};

struct Proof {
  Lsn lsn;
  std::string text;
};

// What shows that facts behind the valid part were durable, as far as possible.
Proof strongest_proof(const JournalFindings& findings, const Evidence& evidence) {
  Proof proof;
  const auto strengthen = [&proof](Lsn lsn, std::string text) {
    if (lsn > proof.lsn) proof = {lsn, std::move(text)};
  };
  if (evidence.mark) {
    const bool clean = evidence.mark->kind == MarkKind::kClean;
    strengthen(evidence.mark->durable, clean ? "the mark of a clean end" : "a durable mark");
  }
  strengthen(evidence.snapshot, "a snapshot");
  if (const auto& later = findings.rest.later) {
    strengthen(later->header.durable, base::format("a later batch at offset {}", later->offset));
  }
  return proof;
}

// Whether the newest mark names the very end of the journal, and nothing lies behind it.
bool ends_at_mark(const JournalFindings& findings, const Evidence& evidence) {
  if (!evidence.mark) return false;
  const Mark& mark = *evidence.mark;
  return mark.end == findings.stop && mark.salt == findings.salt &&
         mark.durable == before(findings.next) && findings.rest.end == findings.stop.offset;
}

}  // namespace

Result<JournalFindings> examine(ports::Folder& folder, const Identity& identity, Lsn from,
                                const BatchVisitor& visit) {
  return Walk(folder, identity, from, visit).run();
}

std::optional<Damage> judge(const JournalFindings& findings, const Evidence& evidence) {
  const Proof proof = strongest_proof(findings, evidence);
  if (findings.damage) {
    Damage damage = *findings.damage;
    damage.last = std::max(damage.last, proof.lsn);
    return damage;
  }
  if (!findings.unreadable.empty()) return findings.unreadable.front();
  if (base::mutant(base::Mutant::kTruncateAtFirstBad)) return std::nullopt;
  const Damage damage{segment_name(findings.stop.segment), findings.stop.offset, findings.next,
                      std::max(proof.lsn, findings.next),  findings.rest.why,    proof.text};
  if (base::mutant(base::Mutant::kRefuseValidAfterInvalid) && findings.rest.later) return damage;
  if (proof.lsn < findings.next) return std::nullopt;
  return damage;
}

Lsn proven(const JournalFindings& findings, const Evidence& evidence) {
  const Lsn by_batches =
      findings.tail.empty() ? before(findings.next) : findings.tail.back().header.durable;
  const Lsn by_mark = evidence.mark ? evidence.mark->durable : Lsn{};
  return std::max({by_batches, by_mark, evidence.snapshot});
}

bool ended_clean(const JournalFindings& findings, const Evidence& evidence) {
  return ends_at_mark(findings, evidence) && evidence.mark->kind == MarkKind::kClean;
}

bool is_empty_and_proven(const JournalFindings& findings, const Evidence& evidence) {
  return ends_at_mark(findings, evidence) && findings.stop.offset == kHeaderBytes;
}

std::string cut_text(const JournalFindings& findings, const Evidence& evidence) {
  if (!evidence.mark || findings.segments.empty()) return {};
  const Mark& mark = *evidence.mark;
  const std::uint64_t size = findings.segments.back().size;
  const bool same_file = mark.end.segment == findings.stop.segment && mark.salt == findings.salt;
  // Behind the last batch there is space that was set aside: if any is left, only zeros were cut.
  const bool torn = findings.rest.end > findings.stop.offset;
  const bool space_left = !torn && size >= findings.stop.offset + kBatchAlignment;
  if (!same_file || size >= mark.file_bytes || space_left) return {};
  return base::format(
      "{} has {} bytes and had at least {} when the newest mark was written: it was cut. Facts "
      "behind lsn {} may have been acknowledged and be lost; a backup may have them",
      segment_name(findings.stop.segment), size, mark.file_bytes, text(mark.durable));
}

std::string torn_text(const JournalFindings& findings, const Evidence& evidence) {
  return base::format(
      "{} offset {}: {} bytes that are not a whole batch ({}). A crash in the middle of a write "
      "leaves such bytes, and nobody was told of them. If the file was damaged since, facts behind "
      "lsn {} may have been acknowledged and be lost",
      segment_name(findings.stop.segment), findings.stop.offset,
      findings.rest.end - findings.stop.offset, findings.rest.why,
      text(proven(findings, evidence)));
}

Error refusal(const ports::Folder& folder, const Damage& damage) {
  return Error{
      Errc::kCorruption,
      base::format(
          "{} offset {}: {}. The facts from lsn {} to at least {} were durable (proof: {}) and "
          "cannot be read; those before lsn {} are intact. Nothing was changed. Restore the folder "
          "from a backup, or give up what cannot be read: hapax repair --accept-loss {}",
          folder.describe(damage.file), damage.offset, damage.why, text(damage.first),
          text(damage.last), damage.proof, text(damage.first), folder_path(folder))};
}

}  // namespace hapax::journal
