#include "engine/losses.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/encoding.h"
#include "base/format.h"
#include "core/sequences.h"
#include "core/state.h"
#include "digest/crc32c.h"
#include "engine/frames.h"
#include "engine/replay.h"
#include "engine/snapshotter.h"
#include "journal/examine.h"
#include "journal/names.h"
#include "journal/segment_files.h"

namespace hapax::engine {

namespace {

constexpr std::size_t kSequencesPerFact = 100'000;

// Reads from segments, some of which are as good as gone.
class PayloadReader {
 public:
  PayloadReader(ports::Folder& folder, const journal::Kept& kept) : files_(folder), kept_(kept) {}

  // kCorruption or kNotFound: it is lost. Other errors say nothing about it.
  Result<std::string> read(base::Where where) {
    if (kept_.dropped.contains(where.segment)) {
      return Error{Errc::kNotFound, "its segment goes to quarantine"};
    }
    HAPAX_TRY(const auto file, files_.open(where.segment));
    return read_span(*file, where);
  }

 private:
  journal::SegmentFiles files_;
  const journal::Kept& kept_;
};

// Whether it is there; an error only if that cannot be told.
template <class Value>
Result<bool> is_there(const Result<Value>& read) {
  if (read) return true;
  const Errc code = read.error().code;
  if (code == Errc::kCorruption || code == Errc::kNotFound) return false;
  return read.error();
}

bool holds_record(std::string_view run, const core::Run& of, Sequence sequence) {
  const auto fact = record_in_run(run, sequence.value - of.first.value);
  if (!fact) return false;
  const auto record = to_record(*fact, of.time);
  return record && record->sequence == sequence;
}

Status add_lost(PayloadReader& reader, const core::Stream& stream, const core::Run& run,
                std::vector<Sequence>& lost) {
  if (run.at.length == 0) return Ok{};
  const auto bytes = reader.read(run.at);
  HAPAX_TRY(const bool there, is_there(bytes));
  for (Sequence at = std::max(run.first, stream.first); at <= run.last(); at = at.next()) {
    if (!stream.keeps(at)) continue;
    if (!there || !holds_record(*bytes, run, at)) lost.push_back(at);
  }
  return Ok{};
}

// Consumers go on without them.
void end_for_consumers(const core::State& state, const core::Stream& stream,
                       const std::vector<Sequence>& lost, journal::PayloadLoss& loss) {
  for (const auto& [name, uid] : stream.consumers) {
    const core::Consumer& consumer = state.consumers.at(uid);
    for (const Sequence sequence : lost) {
      if (!consumer.pending.contains(sequence)) continue;
      loss.facts.push_back(sealed_fact(core::Acked{uid, sequence, false}));
    }
  }
}

Status add_records(PayloadReader& reader, const core::State& state, const core::Stream& stream,
                   journal::PayloadLoss& loss) {
  std::vector<Sequence> lost;
  for (const core::Run& run : stream.runs) HAPAX_CHECK(add_lost(reader, stream, run, lost));
  if (lost.empty()) return Ok{};
  for (std::span<const Sequence> rest(lost); !rest.empty();) {
    const auto some = rest.first(std::min(rest.size(), kSequencesPerFact));
    std::string sequences;
    core::encode_sequences(some, sequences);
    loss.facts.push_back(sealed_fact(core::RecordsLost{stream.uid, sequences}));
    rest = rest.subspan(some.size());
  }
  end_for_consumers(state, stream, lost, loss);
  loss.steps.push_back(
      base::format("give up {} records of stream '{}' whose payloads cannot be read, between {} "
                   "and {}; their ids stay remembered",
                   lost.size(), stream.name, lost.front().value, lost.back().value));
  return Ok{};
}

Result<bool> holds_result(PayloadReader& reader, base::Where where) {
  const auto bytes = reader.read(where);
  HAPAX_TRY(const bool there, is_there(bytes));
  if (!there) return false;
  std::string_view rest = *bytes;
  const auto frame = take_frame(rest);
  if (!frame) return false;
  const auto fact = core::decode_fact(*frame);
  return fact && (std::holds_alternative<core::ClaimSettled>(*fact) ||
                  std::holds_alternative<core::CommitAnswered>(*fact));
}

std::vector<core::SettledEntry> needed_results(const core::State& state, Time now) {
  std::vector<core::SettledEntry> needed;
  state.settled.for_each(now, [&](const core::SettledEntry& entry) {
    const bool has_result = entry.forgotten == 0 && entry.where.length > 0;
    if (has_result && entry.result_until() > now) needed.push_back(entry);
  });
  return needed;
}

Status add_results(PayloadReader& reader, const core::State& state, Time now,
                   journal::PayloadLoss& loss) {
  const std::vector<core::SettledEntry> needed = needed_results(state, now);
  std::size_t lost = 0;
  for (const core::SettledEntry& entry : needed) {
    HAPAX_TRY(const bool there, holds_result(reader, entry.where));
    if (there) continue;
    ++lost;
    loss.facts.push_back(sealed_fact(core::ResultLost{entry.hash()}));
  }
  if (lost == 0) return Ok{};
  loss.steps.push_back(
      base::format("give up {} stored results and answers that cannot be read; that their claims "
                   "and commits are done stays known",
                   lost));
  return Ok{};
}

// What is needed of one segment.
struct Needed {
  std::uint64_t end = 0;  // behind the last byte
  std::uint64_t records = 0;
  std::uint64_t results = 0;
};

using NeededBySegment = std::map<std::uint32_t, Needed>;

void need(NeededBySegment& needed, base::Where where, std::uint64_t records,
          std::uint64_t results) {
  Needed& one = needed[where.segment];
  one.end = std::max(one.end, std::uint64_t{where.offset} + where.length);
  one.records += records;
  one.results += results;
}

NeededBySegment needed_segments(const core::State& state, Time now) {
  NeededBySegment needed;
  for (const auto& stream : state.streams) {
    if (stream == nullptr) continue;
    for (const core::Run& run : stream->runs) {
      const Sequence first = std::max(run.first, stream->first);
      if (run.at.length == 0 || stream->removed.first_missing(first) > run.last()) continue;
      need(needed, run.at, run.last().value - first.value + 1, 0);
    }
  }
  for (const core::SettledEntry& entry : needed_results(state, now)) {
    need(needed, entry.where, 0, 1);
  }
  return needed;
}

// None: it is missing.
Result<std::optional<std::uint64_t>> size_of(ports::Folder& folder, const std::string& name) {
  const auto file = folder.open(name, ports::OpenMode::kRead);
  if (!file && file.error().code == Errc::kNotFound) return std::optional<std::uint64_t>{};
  if (!file) return file.error();
  HAPAX_TRY(const std::uint64_t size, (*file)->size());
  return std::optional<std::uint64_t>{size};
}

}  // namespace

Result<std::optional<journal::FileProblem>> find_missing(ports::Folder& folder,
                                                         const core::State& state, Time now) {
  for (const auto& [segment, needed] : needed_segments(state, now)) {
    const std::string name = journal::segment_name(segment);
    HAPAX_TRY(const std::optional<std::uint64_t> size, size_of(folder, name));
    if (size && *size >= needed.end) continue;
    const std::string found =
        size ? base::format("it has {} bytes of at least {}", *size, needed.end)
             : std::string("the file is missing");
    return std::optional<journal::FileProblem>{
        {name, size.value_or(0),
         base::format("{}; up to {} records and {} stored results that are still needed lie in it",
                      found, needed.records, needed.results)}};
  }
  return std::optional<journal::FileProblem>{};
}

Result<std::optional<journal::FileProblem>> find_missing_after_replay(
    ports::Folder& folder, const journal::Identity& identity) {
  std::unique_ptr<core::State> state;
  std::vector<std::string> lines;
  HAPAX_TRY(const LoadedSnapshot loaded, load_snapshot(folder, identity, 12, state, lines));
  Replay replay(*state);
  const journal::Lsn from = loaded.lsn.next();
  const auto visit = [&](const journal::BatchView& batch) -> Status {
    return batch.header.first < from ? Ok{} : replay(batch);
  };
  HAPAX_TRY(const journal::JournalFindings findings,
            journal::examine(folder, identity, from, visit));
  return find_missing(folder, *state, std::max(loaded.log_time, findings.log_time));
}

Error refusal(const ports::Folder& folder, const journal::FileProblem& missing) {
  return Error{
      Errc::kCorruption,
      folder.describe(missing.file) + ": " + missing.text +
          ". Nothing was changed. Restore the folder from a backup, or give up what cannot "
          "be read: hapax repair --accept-loss " +
          journal::folder_path(folder)};
}

Status check_below_snapshot(ports::Folder& folder, const journal::Identity& identity,
                            const core::State& state, const LoadedSnapshot& loaded) {
  HAPAX_TRY(std::optional<journal::FileProblem> missing,
            find_missing(folder, state, loaded.log_time));
  if (!missing) return Ok{};
  // A repair may have given it up since: only what follows the snapshot says so.
  HAPAX_TRY(missing, find_missing_after_replay(folder, identity));
  if (missing) return refusal(folder, *missing);
  return Ok{};
}

std::string sealed_fact(const core::Fact& fact) {
  std::string bytes;
  core::encode(fact, bytes);
  const std::uint32_t crc = digest::crc32c(bytes);
  base::Encoder(bytes).u32(crc);
  return bytes;
}

Result<journal::PayloadLoss> find_losses(ports::Folder& folder, const journal::Kept& kept) {
  std::unique_ptr<core::State> state;
  std::vector<std::string> lines;
  HAPAX_TRY(const LoadedSnapshot loaded, load_snapshot(folder, kept.identity, 12, state, lines));
  if (loaded.lsn != kept.snapshot) {
    return Error{Errc::kCorruption,
                 base::format("snapshot {} cannot be loaded a second time. The disk or the memory "
                              "of this machine is not reliable.",
                              kept.snapshot.value)};
  }
  Replay replay(*state);
  const journal::Lsn from = loaded.lsn.next();
  const auto visit = [&](const journal::BatchView& batch) -> Status {
    return batch.header.first < from ? Ok{} : replay(batch);
  };
  HAPAX_TRY(const journal::JournalFindings findings,
            journal::examine(folder, kept.identity, from, visit));
  const Time now = std::max(loaded.log_time, findings.log_time);
  core::collect(*state, now, std::numeric_limits<std::size_t>::max());
  journal::PayloadLoss loss;
  PayloadReader reader(folder, kept);
  for (const auto& stream : state->streams) {
    if (stream != nullptr) HAPAX_CHECK(add_records(reader, *state, *stream, loss));
  }
  HAPAX_CHECK(add_results(reader, *state, now, loss));
  return loss;
}

}  // namespace hapax::engine
