#include "journal/repair.h"

#include <algorithm>
#include <optional>

#include "base/format.h"
#include "journal/batch.h"
#include "journal/examine.h"
#include "journal/identity.h"
#include "journal/marks.h"
#include "journal/names.h"
#include "journal/new_file.h"
#include "journal/renew_names.h"
#include "journal/rewrite.h"
#include "journal/segment.h"
#include "journal/snapshot_file.h"

namespace hapax::journal {
namespace {

std::string range(Lsn first, Lsn last) {
  return base::format("lsn {} to {}", first.value, last.value);
}

// What is there, and what is wrong with it.
struct Diagnosis {
  Identity identity;
  bool identity_damaged = false;
  std::optional<Mark> mark;  // None: MARKS is damaged.
  Lsn snapshot;              // The newest intact one.
  Time log_time{};           // The latest seen.
  std::vector<std::string> damaged_snapshots;
  JournalFindings findings;
  bool end_damaged = false;  // Facts from findings.next on are lost.
  Lsn lost_first;            // Both 0 if nothing is lost.
  Lsn lost_last;
  PayloadLoss payloads;
  std::vector<std::string> names;
  std::uint32_t next_segment = 1;
};

Status diagnose_identity(ports::Folder& folder, Diagnosis& diagnosis) {
  auto identity = read_identity(folder);
  if (!identity.ok() && identity.error().code == Errc::kCorruption) {
    diagnosis.identity_damaged = true;
    identity = salvage_identity(folder);
  }
  if (!identity.ok()) return std::move(identity).error();
  diagnosis.identity = *identity;
  return Ok{};
}

Status diagnose_marks(ports::Folder& folder, Diagnosis& diagnosis) {
  auto marks = Marks::open(folder);
  if (!marks.ok() && marks.error().code != Errc::kCorruption) return std::move(marks).error();
  if (!marks.ok()) return Ok{};
  diagnosis.mark = marks->newest();
  diagnosis.log_time = marks->newest().log_time;
  return Ok{};
}

Result<Time> time_of_snapshot(ports::Folder& folder, const Identity& identity, Lsn lsn,
                              const SnapshotCheck& check) {
  HAPAX_TRY(const SnapshotReader reader,
            SnapshotReader::open(folder, identity, SnapshotKind::kSnapshot, lsn.value));
  if (check) HAPAX_CHECK(check(identity, lsn));
  return reader.header().log_time;
}

Status diagnose_snapshots(ports::Folder& folder, const SnapshotCheck& check, Diagnosis& diagnosis) {
  HAPAX_TRY(const SnapshotFiles files, list_snapshots(folder));
  for (const Lsn lsn : files.snapshots) {
    auto log_time = time_of_snapshot(folder, diagnosis.identity, lsn, check);
    if (log_time.ok()) {
      diagnosis.snapshot = std::max(diagnosis.snapshot, lsn);
      diagnosis.log_time = std::max(diagnosis.log_time, *log_time);
    } else if (log_time.error().code == Errc::kCorruption) {
      diagnosis.damaged_snapshots.push_back(snapshot_name(lsn.value));
    } else {
      return std::move(log_time).error();
    }
  }
  return Ok{};
}

// Numbers are never used twice, not even those of segments in quarantine.
Status find_next_segment(ports::Folder& folder, Diagnosis& diagnosis) {
  HAPAX_TRY(diagnosis.names, folder.list());
  for (const std::string& name : diagnosis.names) {
    const FileName parsed = parse_name(name);
    const bool numbered =
        parsed.kind == FileName::Kind::kSegment || parsed.kind == FileName::Kind::kQuarantine;
    if (!numbered) continue;
    diagnosis.next_segment =
        std::max(diagnosis.next_segment, static_cast<std::uint32_t>(parsed.number) + 1);
  }
  return Ok{};
}

bool is_dropped(const Diagnosis& diagnosis, const Segment& segment) {
  if (!segment.header.ok()) return true;
  return diagnosis.end_damaged && segment.number > diagnosis.findings.stop.segment;
}

// The highest lsn that any intact header in a file to be dropped tells of.
Result<Lsn> last_seen(ports::Folder& folder, const Diagnosis& diagnosis) {
  Lsn last;
  if (const auto& later = diagnosis.findings.rest.later) last = later->header.last();
  for (const Segment& segment : diagnosis.findings.segments) {
    if (!segment.header.ok() || !is_dropped(diagnosis, segment)) continue;
    HAPAX_TRY(SegmentReader reader,
              SegmentReader::open(folder, diagnosis.identity, segment.number));
    for (std::uint64_t from = kHeaderBytes;;) {
      HAPAX_TRY(const auto found, reader.find_header(from));
      if (!found) break;
      last = std::max(last, found->header.last());
      from = found->offset + kBatchAlignment;
    }
  }
  return last;
}

Status diagnose_journal(ports::Folder& folder, Diagnosis& diagnosis) {
  HAPAX_TRY(diagnosis.findings, examine(folder, diagnosis.identity, diagnosis.snapshot.next()));
  JournalFindings& findings = diagnosis.findings;
  diagnosis.log_time = std::max(diagnosis.log_time, findings.log_time);
  std::vector<Damage> damages = std::move(findings.unreadable);
  findings.unreadable.clear();
  if (const auto damage = judge(findings, {diagnosis.mark, diagnosis.snapshot})) {
    diagnosis.end_damaged = true;
    damages.push_back(*damage);
  }
  if (damages.empty()) return Ok{};
  HAPAX_TRY(diagnosis.lost_last, last_seen(folder, diagnosis));
  diagnosis.lost_first = damages.front().first;
  for (const Damage& damage : damages) {
    diagnosis.lost_first = std::min(diagnosis.lost_first, damage.first);
    diagnosis.lost_last = std::max(diagnosis.lost_last, damage.last);
  }
  return Ok{};
}

// Without a snapshot the journal must reach back to the first fact of all.
Status check_hopeful(const ports::Folder& folder, const Diagnosis& diagnosis) {
  const auto& segments = diagnosis.findings.segments;
  const bool from_the_start = std::any_of(segments.begin(), segments.end(), [](const Segment& s) {
    return s.header.ok() && s.header->first == Lsn{1};
  });
  if (diagnosis.snapshot > Lsn{} || from_the_start) return Ok{};
  return Error{Errc::kCorruption,
               folder_path(folder) +
                   ": no snapshot is intact, and the journal does not reach back to the first "
                   "fact, so nothing can be rebuilt. Nothing was changed. Restore the folder from "
                   "a backup."};
}

Status diagnose_payloads(const PayloadCheck& check, Diagnosis& diagnosis) {
  if (!check) return Ok{};
  Kept kept{diagnosis.identity, diagnosis.snapshot, diagnosis.findings.next, {}};
  for (const Segment& segment : diagnosis.findings.segments) {
    if (is_dropped(diagnosis, segment)) kept.dropped.insert(segment.number);
  }
  HAPAX_TRY(diagnosis.payloads, check(kept));
  return Ok{};
}

Result<Diagnosis> diagnose(ports::Folder& folder, const RepairHooks& hooks) {
  Diagnosis diagnosis;
  HAPAX_CHECK(diagnose_identity(folder, diagnosis));
  HAPAX_CHECK(diagnose_marks(folder, diagnosis));
  HAPAX_CHECK(diagnose_snapshots(folder, hooks.check_snapshot, diagnosis));
  HAPAX_CHECK(diagnose_journal(folder, diagnosis));
  HAPAX_CHECK(find_next_segment(folder, diagnosis));
  HAPAX_CHECK(check_hopeful(folder, diagnosis));
  HAPAX_CHECK(diagnose_payloads(hooks.check_payloads, diagnosis));
  return diagnosis;
}

// What the steps of a repair need to know, decided before the first of them.
struct RepairPlan {
  const Diagnosis& diagnosis;
  bool loses = false;
  struct Move {
    std::string from;
    std::string to;
  };
  std::vector<Move> to_quarantine;
  RepairReport report;
};

// L14: nothing in quarantine is replaced.
std::string free_quarantine_name(const Diagnosis& diagnosis, const std::string& name) {
  const auto is_taken = [&](const std::string& candidate) {
    const auto& names = diagnosis.names;
    return std::find(names.begin(), names.end(), candidate) != names.end();
  };
  const std::string wanted = quarantine_name(name);
  std::string free = wanted;
  for (int copy = 2; is_taken(free); ++copy) free = base::format("{}-{}", wanted, copy);
  return free;
}

RepairPlan make_plan(const Diagnosis& diagnosis) {
  const bool loses_facts = diagnosis.lost_last > Lsn{};
  RepairPlan plan{diagnosis, loses_facts || !diagnosis.payloads.facts.empty(), {}, {}};
  std::vector<std::string> dropped = diagnosis.damaged_snapshots;
  for (const Segment& segment : diagnosis.findings.segments) {
    if (is_dropped(diagnosis, segment)) dropped.push_back(segment_name(segment.number));
  }
  for (const std::string& name : dropped) {
    plan.to_quarantine.push_back({name, free_quarantine_name(diagnosis, name)});
  }
  RepairReport& report = plan.report;
  report.history = diagnosis.identity.history + (plan.loses ? 1 : 0);
  if (plan.loses) {
    report.lost_first = diagnosis.lost_first;
    report.lost_last = diagnosis.lost_last;
    if (loses_facts) {
      report.steps.push_back("give up the facts of " +
                             range(diagnosis.lost_first, diagnosis.lost_last));
    }
    const auto& payloads = diagnosis.payloads.steps;
    report.steps.insert(report.steps.end(), payloads.begin(), payloads.end());
    report.steps.push_back("say so in the new " + segment_name(diagnosis.next_segment));
    report.steps.push_back(base::format("write STORE with history {}", report.history));
  } else if (diagnosis.identity_damaged) {
    report.steps.emplace_back("write the damaged block of STORE again from the intact one");
  }
  for (const RepairPlan::Move& move : plan.to_quarantine) {
    report.steps.push_back("rename " + move.from + " to " + move.to);
  }
  if (!diagnosis.mark) {
    report.steps.emplace_back(
        "write MARKS again; whether the journal's last batch is there can "
        "no longer be proven");
  }
  report.needed = !report.steps.empty();
  return plan;
}

struct Begun {
  SegmentHeader header;
  Mark mark;  // Of its end.
};

// In as many batches as it takes. Nothing of the segment is durable before its first lsn.
void append_facts(const std::vector<std::string>& facts, Lsn first, Time log_time,
                  const SegmentHeader& header, Rewritten& content) {
  constexpr std::size_t kBatchFacts = 10'000;
  Batch batch;
  for (std::size_t begin = 0, at = 0; begin < facts.size(); begin = at) {
    batch.begin(Lsn{first.value + begin}, log_time);
    do {
      batch.add(facts[at++]);
    } while (at < facts.size() && at - begin < kBatchFacts && batch.has_room(facts[at].size()));
    const std::uint16_t flags = begin == 0 ? BatchHeader::kGap : std::uint16_t{0};
    content.bytes += batch.seal({flags, header.salt, Lsn{header.first.value - 1}, content.chain});
    content.chain = batch.checksum();
  }
}

// A segment that goes on behind what is kept, and begins with the fact that tells of the loss.
Result<Begun> begin_segment(ports::Folder& folder, ports::Entropy& entropy, const RepairPlan& plan,
                            const Identity& identity, const GapFact& gap) {
  const Diagnosis& diagnosis = plan.diagnosis;
  const JournalFindings& findings = diagnosis.findings;
  std::vector<TailBatch> unproven;
  if (!diagnosis.end_damaged) {
    unproven = unproven_batches(findings, {diagnosis.mark, diagnosis.snapshot});
  }
  // If the journal ends before the newest snapshot does, the snapshot is what is kept.
  const Lsn resumed = std::max(findings.next, diagnosis.snapshot.next());
  const bool joined = resumed == findings.next;
  Begun begun;
  begun.header.flags = SegmentHeader::kAfterLoss;
  begun.header.number = diagnosis.next_segment;
  begun.header.salt = ports::draw_u64(entropy);
  begun.header.first = unproven.empty() ? resumed : unproven.front().header.first;
  begun.header.history = identity.history;
  begun.header.store = identity.store();
  begun.header.chain = joined ? findings.chain : 0;
  if (!unproven.empty()) begun.header.chain = unproven.front().header.chain;
  HAPAX_TRY(Rewritten content, reseal(folder, identity, unproven, begun.header));

  std::vector<std::string> facts = {gap(diagnosis.lost_first, diagnosis.lost_last)};
  facts.insert(facts.end(), diagnosis.payloads.facts.begin(), diagnosis.payloads.facts.end());
  append_facts(facts, resumed, diagnosis.log_time, begun.header, content);
  HAPAX_TRY(const auto file, create_segment(folder, begun.header, content.bytes));

  const auto end = static_cast<std::uint32_t>(kHeaderBytes + content.bytes.size());
  const Lsn last{resumed.value + facts.size() - 1};
  begun.mark = {MarkKind::kClean,  0, last, begun.header.salt, {begun.header.number, end},
                diagnosis.log_time};
  return begun;
}

Status replace_marks(ports::Folder& folder, const Mark& mark) {
  HAPAX_TRY(const Marks marks, Marks::create(folder, mark));
  return sync_names(folder);
}

// Each step leaves a folder that a start refuses, until the last one.
Status carry_out_loss(ports::Folder& folder, ports::Entropy& entropy, const RepairPlan& plan,
                      const GapFact& gap) {
  const Diagnosis& diagnosis = plan.diagnosis;
  // First of all the evidence is made lasting: what proved the damage is about to move away. If
  // only old payloads are lost, this claims one fact too much, so that a start is refused all the
  // same.
  Mark proof;
  proof.durable = std::max(diagnosis.lost_last, diagnosis.findings.next);
  proof.log_time = diagnosis.log_time;
  HAPAX_CHECK(replace_marks(folder, proof));
  Identity identity = diagnosis.identity;
  identity.history = plan.report.history;
  HAPAX_CHECK(write_identity(folder, identity));
  HAPAX_CHECK(sync_names(folder));
  HAPAX_TRY(const Begun begun, begin_segment(folder, entropy, plan, identity, gap));
  for (const RepairPlan::Move& move : plan.to_quarantine) {
    HAPAX_CHECK(folder.rename(move.from, move.to));
  }
  HAPAX_CHECK(sync_names(folder));
  return replace_marks(folder, begun.mark);
}

Status carry_out_without_loss(ports::Folder& folder, const RepairPlan& plan) {
  const Diagnosis& diagnosis = plan.diagnosis;
  if (diagnosis.identity_damaged) HAPAX_CHECK(write_identity(folder, diagnosis.identity));
  for (const RepairPlan::Move& move : plan.to_quarantine) {
    HAPAX_CHECK(folder.rename(move.from, move.to));
  }
  if (!diagnosis.mark) {
    Mark mark;
    mark.durable = proven(diagnosis.findings, {std::nullopt, diagnosis.snapshot});
    mark.salt = diagnosis.findings.salt;
    mark.end = diagnosis.findings.stop;
    mark.log_time = diagnosis.log_time;
    HAPAX_CHECK(replace_marks(folder, mark));
  }
  return sync_names(folder);
}

}  // namespace

Result<RepairReport> plan_repair(ports::Folder& folder, const RepairHooks& hooks) {
  HAPAX_TRY(const Diagnosis diagnosis, diagnose(folder, hooks));
  return make_plan(diagnosis).report;
}

Result<RepairReport> repair(ports::Folder& folder, ports::Entropy& entropy, RepairMode mode,
                            const RepairHooks& hooks) {
  HAPAX_CHECK(finish_renewals(folder));
  HAPAX_TRY(const Diagnosis diagnosis, diagnose(folder, hooks));
  RepairPlan plan = make_plan(diagnosis);
  if (mode == RepairMode::kDryRun || !plan.report.needed) return std::move(plan.report);
  if (plan.loses) {
    HAPAX_CHECK(carry_out_loss(folder, entropy, plan, hooks.gap));
  } else {
    HAPAX_CHECK(carry_out_without_loss(folder, plan));
  }
  return std::move(plan.report);
}

}  // namespace hapax::journal
