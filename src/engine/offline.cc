#include "engine/offline.h"

#include <algorithm>
#include <memory>

#include "base/hex.h"
#include "core/claims.h"
#include "core/state.h"
#include "engine/frames.h"
#include "engine/losses.h"
#include "engine/queries.h"
#include "engine/replay.h"
#include "engine/snapshotter.h"
#include "journal/examine.h"
#include "journal/marks.h"
#include "journal/moving.h"
#include "journal/names.h"
#include "journal/open_store.h"
#include "journal/renew_names.h"
#include "journal/segment_files.h"

namespace hapax::engine {

namespace {

void add_state(const core::State& state, Time now, Inspection& found) {
  found.figures.gaps = state.gaps;
  found.figures.records_lost = state.records_lost;
  found.figures.results_lost = state.results_lost;
  found.figures.streams = state.stream_names.size();
  found.figures.ids = state.ids.live();
  found.figures.claims_open = state.open_claims.size();
  found.figures.claims_unknown = core::claims_unknown(state, now);
  found.figures.claims_settled = core::claims_settled(state);
  found.figures.registers = state.registers.size() - state.tenants.own_registers();
  found.figures.positions = state.positions.size();
  found.figures.transactions_open = state.transactions_open;
  found.figures.memory_bytes = state.memory_bytes();
  found.figures.log_time = now;
  for (const auto& [segment, bytes] : state.live_bytes) found.live_bytes += bytes;
  for (const std::string& name : list_streams(state)) {
    auto stats = describe_stream(state, name, now);
    if (stats) found.streams.push_back(*std::move(stats));
  }
}

Status add_files(ports::Folder& folder, Inspection& found) {
  HAPAX_TRY(const std::vector<std::string> names, folder.list());
  for (const std::string& name : names) {
    const journal::FileName::Kind kind = journal::parse_name(name).kind;
    if (kind == journal::FileName::Kind::kUnknown) {
      found.lines.push_back("not a file of the store, left alone: " + name);
    }
  }
  HAPAX_TRY(const journal::SegmentUse use, journal::segments_on_disk(folder));
  found.figures.segments = use.segments;
  found.figures.journal_bytes = use.bytes;
  return Ok{};
}

Result<std::optional<journal::FileProblem>> missing_segment(ports::Folder& folder) {
  HAPAX_TRY(const journal::Identity identity, journal::read_identity(folder));
  return find_missing_after_replay(folder, identity);
}

journal::RepairHooks hooks_for(ports::Folder& folder) {
  journal::RepairHooks hooks;
  hooks.gap = [](journal::Lsn first, journal::Lsn last) {
    return sealed_fact(core::JournalGap{first.value, last.value});
  };
  hooks.check_snapshot = [&folder](const journal::Identity& identity, journal::Lsn snapshot) {
    return check_snapshot(folder, identity, snapshot);
  };
  hooks.check_payloads = [&folder](const journal::Kept& kept) { return find_losses(folder, kept); };
  return hooks;
}

// G3: what is damaged matters if a repair would do something about it, and only then.
void judge_need(ports::Folder& folder, journal::VerifyReport& report) {
  const auto plan = journal::plan_repair(folder, hooks_for(folder));
  if (plan && !plan->needed) report.unneeded.swap(report.problems);
  if (!report.problems.empty()) return;
  if (!plan) report.problems.push_back({"the store", 0, plan.error().detail});
  if (!plan || !plan->needed) return;
  for (const std::string& step : plan->steps) {
    report.problems.push_back({"the store", 0, "a repair would " + step});
  }
}

}  // namespace

Status demand_store(ports::Folder& folder) {
  HAPAX_TRY(const std::vector<std::string> names, folder.list());
  const auto ours = [](const std::string& name) {
    const journal::FileName::Kind kind = journal::parse_name(name).kind;
    return kind == journal::FileName::Kind::kStore || kind == journal::FileName::Kind::kSegment;
  };
  if (std::any_of(names.begin(), names.end(), ours)) return Ok{};
  return Error{Errc::kNotFound, "there is no Hapax store in " + journal::folder_path(folder) +
                                    ": it has neither a file STORE nor a journal"};
}

Result<Inspection> inspect(ports::Folder& folder) {
  HAPAX_CHECK(demand_store(folder));
  HAPAX_TRY(const auto lock, folder.lock(journal::kLockName));
  HAPAX_CHECK(journal::check_store_file(folder));
  HAPAX_CHECK(journal::finish_renewals(folder));
  HAPAX_TRY(const journal::Identity identity, journal::read_identity(folder));
  Inspection found;
  found.store_id = base::hex({identity.store_id.data(), identity.store_id.size()});
  found.history = identity.history;
  HAPAX_CHECK(add_files(folder, found));
  if (const Status here = journal::check_not_moved(folder); !here) {
    found.lines.push_back(here.error().detail);
  }

  std::unique_ptr<core::State> state;
  HAPAX_TRY(const LoadedSnapshot loaded, load_snapshot(folder, identity, 12, state, found.lines));
  Replay replay(*state);
  const journal::Lsn from{loaded.lsn.value + 1};
  const auto visit = [&](const journal::BatchView& batch) -> Status {
    if (batch.header.first < from) return Ok{};
    return replay(batch);
  };
  HAPAX_TRY(const journal::JournalFindings findings,
            journal::examine(folder, identity, from, visit));
  journal::Evidence evidence;
  evidence.snapshot = loaded.lsn;
  auto marks = journal::Marks::open(folder);
  if (marks) evidence.mark = marks->newest();
  if (!marks) found.refusal = marks.error().text();
  if (const auto damage = journal::judge(findings, evidence)) {
    found.refusal = journal::refusal(folder, *damage).text();
  }
  if (std::string cut = journal::cut_text(findings, evidence); !cut.empty()) {
    found.lines.push_back(std::move(cut));
  }
  const Time now = std::max(loaded.log_time, findings.log_time);
  HAPAX_TRY(const auto missing, find_missing(folder, *state, now));
  if (missing && !found.refusal) found.refusal = refusal(folder, *missing).text();
  found.clean = journal::ended_clean(findings, evidence);
  found.last_lsn = findings.next.value - 1;
  found.snapshot_lsn = loaded.lsn.value;
  add_state(*state, now, found);
  return found;
}

Result<journal::VerifyReport> verify(ports::Folder& folder) {
  HAPAX_CHECK(demand_store(folder));
  HAPAX_TRY(const auto lock, folder.lock(journal::kLockName));
  HAPAX_CHECK(journal::check_store_file(folder));
  // G3: a start and a repair finish these first, so they are no damage.
  HAPAX_CHECK(journal::finish_renewals(folder));
  const auto check_facts = [](const journal::BatchView& batch) {
    return journal::for_each_fact(
        batch, [](journal::Lsn, base::Where, std::string_view bytes) -> Status {
          HAPAX_TRY(const std::string_view fact, checked_fact(bytes));
          HAPAX_TRY([[maybe_unused]] const core::Fact decoded, core::decode_fact(fact));
          return Ok{};
        });
  };
  HAPAX_TRY(journal::VerifyReport report, journal::verify(folder, check_facts));
  // What cannot be loaded has its problem already.
  if (auto missing = missing_segment(folder); missing && *missing) {
    report.problems.push_back(**std::move(missing));
  }
  judge_need(folder, report);
  return report;
}

Result<journal::RepairReport> repair(ports::Folder& folder, ports::Entropy& entropy,
                                     journal::RepairMode mode) {
  HAPAX_CHECK(demand_store(folder));
  HAPAX_TRY(const auto lock, folder.lock(journal::kLockName));
  HAPAX_CHECK(journal::check_store_file(folder));
  return journal::repair(folder, entropy, mode, hooks_for(folder));
}

}  // namespace hapax::engine
