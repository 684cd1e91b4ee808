#include "journal/verify.h"

#include <algorithm>
#include <optional>

#include "base/format.h"
#include "journal/file_window.h"
#include "journal/identity.h"
#include "journal/marks.h"
#include "journal/names.h"
#include "journal/segment.h"
#include "journal/snapshot_file.h"

namespace hapax::journal {
namespace {

std::string span_text(Lsn first, Lsn next) {
  return base::format("lsn {} to {}", first.value, next.value - 1);
}

class Verification {
 public:
  Verification(ports::Folder& folder, const BatchVisitor& visit) : folder_(folder), visit_(visit) {}

  Result<VerifyReport> run() {
    HAPAX_TRY(const std::vector<std::string> names, folder_.list());
    check_identity(names);
    for (const std::string& name : names) check_file(name);
    if (identity_) {
      check_marks();
      check_segments();
      check_end();
    }
    return std::move(report_);
  }

 private:
  void blame(const std::string& file, std::uint64_t offset, std::string text) {
    report_.problems.push_back({file, offset, std::move(text)});
  }

  void check_identity(const std::vector<std::string>& names) {
    const std::string name(kStoreName);
    auto identity = read_identity(folder_);
    if (!identity.ok()) {
      blame(name, 0, identity.error().detail);
      identity = salvage_identity(folder_);
    }
    if (identity.ok()) identity_ = *identity;
    if (!identity.ok() && names.empty()) report_.notes.emplace_back("the folder is empty");
  }

  // Every byte is read here, whatever the file is; what the bytes mean is checked afterwards.
  void check_file(const std::string& name) {
    const FileName parsed = parse_name(name);
    if (parsed.kind == FileName::Kind::kUnknown) {
      report_.notes.push_back(name + " is not a file of the store");
      return;
    }
    if (parsed.kind == FileName::Kind::kLock) return;
    ++report_.files;
    auto size = read_through(name);
    if (!size.ok()) return blame(name, 0, "it cannot be read: " + size.error().detail);
    report_.bytes += *size;
    if (parsed.kind == FileName::Kind::kQuarantine) report_.notes.push_back(name + " is kept");
    if (parsed.kind == FileName::Kind::kUnfinished) {
      report_.notes.push_back(name + " was never finished; the next start removes it");
    }
    if (parsed.kind == FileName::Kind::kRenewed) {
      report_.notes.push_back(name + " has not its name back; the next start gives it");
    }
    if (parsed.kind == FileName::Kind::kSnapshot) {
      if (check_container(SnapshotKind::kSnapshot, parsed.number)) {
        oldest_snapshot_ =
            std::min(oldest_snapshot_.value_or(Lsn{parsed.number}), Lsn{parsed.number});
        newest_snapshot_ = std::max(newest_snapshot_, Lsn{parsed.number});
      }
    }
    if (parsed.kind == FileName::Kind::kPart) check_container(SnapshotKind::kPart, parsed.number);
  }

  Result<std::uint64_t> read_through(const std::string& name) {
    HAPAX_TRY(std::unique_ptr<ports::File> file, folder_.open(name, ports::OpenMode::kRead));
    HAPAX_TRY(FileWindow window, FileWindow::open(std::move(file)));
    HAPAX_TRY(const std::uint64_t end, window.end_of_content(0));
    return std::max(end, window.size());
  }

  bool check_container(SnapshotKind kind, std::uint64_t number) {
    if (!identity_) return false;
    auto reader = SnapshotReader::open(folder_, *identity_, kind, number);
    if (!reader.ok()) blame(file_name(kind, number), 0, reader.error().detail);
    return reader.ok();
  }

  void check_marks() {
    auto marks = Marks::open(folder_);
    if (!marks.ok()) return blame(std::string(kMarksName), 0, marks.error().detail);
    mark_ = marks->newest();
    for (const std::size_t index : {std::size_t{0}, std::size_t{1}}) {
      if (!marks->block(index)) report_.notes.emplace_back("one of the two marks is torn");
    }
  }

  // Below this lsn segments may have been removed because nothing needs them.
  [[nodiscard]] Lsn needed_from() const { return oldest_snapshot_.value_or(Lsn{}).next(); }

  void check_segments() {
    auto segments = list_segments(folder_, *identity_);
    if (!segments.ok()) return blame("the journal", 0, segments.error().detail);
    Lsn next{1};
    for (std::size_t index = 0; index < segments->size(); ++index) {
      const Segment& segment = (*segments)[index];
      const std::string name = segment_name(segment.number);
      if (!segment.header.ok()) {
        blame(name, 0, "the header: " + segment.header.error().detail);
        continue;
      }
      check_join(*segment.header, next);
      const bool more = index + 1 < segments->size() && (*segments)[index + 1].header.ok();
      next = check_batches(segment.number, more ? &*(*segments)[index + 1].header : nullptr);
    }
  }

  void check_join(const SegmentHeader& header, Lsn next) {
    if (header.first <= next) return;
    const std::string missing = span_text(next, header.first) + " are missing before it";
    if (header.first <= needed_from()) return;  // Cleaned away.
    if ((header.flags & SegmentHeader::kAfterLoss) != 0) {
      report_.notes.push_back(segment_name(header.number) + ": " + missing +
                              ": given up by repair");
      return;
    }
    blame(segment_name(header.number), 0, missing);
  }

  // Whether nothing is wrong with a segment that ends here: those that followed it are gone, and
  // the oldest snapshot has all that they said.
  [[nodiscard]] bool ends_before_cleaned(SegmentReader& reader, std::uint64_t offset,
                                         const SegmentHeader* following) const {
    if (following == nullptr || following->number == reader.header().number + 1) return false;
    const auto content = reader.end_of_content(offset);
    return content.ok() && *content == offset && following->first <= needed_from();
  }

  // The lsn behind the segment's last intact batch. `following`: the next segment's header.
  Lsn check_batches(std::uint32_t number, const SegmentHeader* following) {
    const std::string name = segment_name(number);
    auto reader = SegmentReader::open(folder_, *identity_, number);
    if (!reader.ok()) {
      blame(name, 0, reader.error().detail);
      return {};
    }
    SegmentReader::Expected expected{reader->header().first, reader->header().chain};
    std::uint64_t offset = kHeaderBytes;
    while (following == nullptr || expected.first < following->first) {
      auto batch = reader->read(offset, expected);
      if (batch.ok()) {
        count(*batch, name);
        expected = {batch->header.next(), batch->checksum};
        offset += batch->bytes;
        continue;
      }
      if (batch.error().code != Errc::kCorruption) {
        blame(name, offset, batch.error().detail);
        return following == nullptr ? expected.first : following->first;
      }
      if (ends_before_cleaned(*reader, offset, following)) break;
      const auto later = find_intact(*reader, offset, expected.first);
      // Without a later batch this may be the end of the journal, or a segment without a header
      // may follow: check_end() and check_segments() know.
      if (!later && following == nullptr) break;
      const Lsn resumed = later ? later->header.first : following->first;
      blame(name, offset,
            batch.error().detail + "; " + span_text(expected.first, resumed) + " cannot be read");
      if (!later) return resumed;
      expected = {resumed, later->header.chain};
      offset = later->slot.offset;
    }
    return expected.first;
  }

  static std::optional<BatchView> find_intact(SegmentReader& reader, std::uint64_t from,
                                              Lsn after) {
    for (;;) {
      from += kBatchAlignment;
      auto header = reader.find_header(from);
      if (!header.ok() || !header->has_value()) return std::nullopt;
      from = (*header)->offset;
      auto batch = reader.read_any(from);
      if (batch.ok() && batch->header.first > after) return *batch;
    }
  }

  void count(const BatchView& batch, const std::string& name) {
    ++report_.batches;
    report_.facts += batch.header.count;
    report_.last = std::max(report_.last, batch.header.last());
    const auto framed =
        for_each_fact(batch, [](Lsn, base::Where, std::string_view) -> Status { return Ok{}; });
    if (!framed.ok()) blame(name, batch.slot.offset, framed.error().detail);
    if (!visit_ || !framed.ok()) return;
    const auto visited = visit_(batch);
    if (!visited.ok()) blame(name, batch.slot.offset, visited.error().detail);
  }

  // What a start would say.
  void check_end() {
    auto findings = examine(folder_, *identity_, newest_snapshot_.next());
    if (!findings.ok()) return blame("the journal", 0, findings.error().detail);
    if (const auto damage = judge(*findings, {mark_, newest_snapshot_})) {
      const bool said = std::any_of(
          report_.problems.begin(), report_.problems.end(), [&](const FileProblem& problem) {
            return problem.file == damage->file && problem.offset == damage->offset;
          });
      if (!said) blame(damage->file, damage->offset, refusal(folder_, *damage).detail);
      return;
    }
    const Evidence evidence{mark_, newest_snapshot_};
    if (std::string cut = cut_text(*findings, evidence); !cut.empty()) {
      report_.notes.push_back(std::move(cut));
    }
    if (findings->rest.end > findings->stop.offset) {
      report_.notes.push_back(torn_text(*findings, evidence) +
                              ". The next start copies them to quarantine");
    }
  }

  ports::Folder& folder_;
  const BatchVisitor& visit_;
  VerifyReport report_;
  std::optional<Identity> identity_;
  std::optional<Mark> mark_;
  std::optional<Lsn> oldest_snapshot_;
  Lsn newest_snapshot_;
};

}  // namespace

Result<VerifyReport> verify(ports::Folder& folder, const BatchVisitor& visit) {
  return Verification(folder, visit).run();
}

}  // namespace hapax::journal
