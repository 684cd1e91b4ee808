// inspect, verify, repair.
#include "engine/offline.h"

#include <cstdio>

#include "base/format.h"
#include "cli/commands.h"
#include "cli/show.h"
#include "host/entropy.h"
#include "host/folder.h"
#include "wire/json_text.h"

namespace hapax::cli {

using wire::json_text;
using wire::JsonArray;
using wire::JsonObject;

namespace {

Result<std::unique_ptr<ports::Folder>> open_folder(const std::string& path) {
  return host::DiskFolder::open_folder(path, host::FolderMode::kMustExist);
}

std::string window_text(Window window) {
  return window.is_forever() ? "for ever" : base::format("{} s", window.raw());
}

std::string stream_json(const StreamStats& stream) {
  JsonArray consumers;
  for (const ConsumerStats& consumer : stream.consumers) {
    consumers.add(JsonObject()
                      .add("consumer", consumer.consumer)
                      .add("floor", consumer.floor.value)
                      .add("next", consumer.next.value)
                      .add("in_flight", consumer.in_flight)
                      .add("waiting", consumer.waiting)
                      .add("dead_lettered", consumer.dead_lettered)
                      .text());
  }
  return JsonObject()
      .add("stream", stream.stream)
      .add("first", stream.first.value)
      .add("last", stream.last.value)
      .add("bytes", stream.bytes)
      .add("ids", stream.ids)
      .add("window", window_text(stream.settings.window))
      .add("horizon_ms", to_ms(stream.horizon))
      .add("producers", stream.producers)
      .raw("consumers", consumers.text())
      .text();
}

void print_json(const engine::Inspection& found) {
  JsonArray streams;
  for (const StreamStats& stream : found.streams) streams.add(stream_json(stream));
  JsonObject out;
  out.add("store", found.store_id).add("history", found.history).add("last_lsn", found.last_lsn);
  out.add("snapshot_lsn", found.snapshot_lsn).add("clean", found.clean);
  out.add("starts", !found.refusal.has_value());
  if (found.refusal) out.add("refusal", *found.refusal);
  out.add("segments", found.figures.segments);
  out.add("journal_bytes", found.figures.journal_bytes);
  out.add("live_bytes", found.live_bytes).add("gaps", found.figures.gaps);
  out.add("records_lost", found.figures.records_lost);
  out.add("results_lost", found.figures.results_lost);
  out.add("ids", found.figures.ids).add("claims_open", found.figures.claims_open);
  out.add("claims_unknown", found.figures.claims_unknown);
  out.add("claims_settled", found.figures.claims_settled);
  out.add("registers", found.figures.registers).add("positions", found.figures.positions);
  out.add("transactions_open", found.figures.transactions_open);
  out.add("memory_bytes", found.figures.memory_bytes);
  out.add("log_time_ms", to_ms(found.figures.log_time)).raw("streams", streams.text());
  base::print("{}\n", out.text());
}

void print_text(const engine::Inspection& found) {
  const Statistics& figures = found.figures;
  base::print("store        {} (history {})\n", found.store_id, found.history);
  base::print("journal      {} facts, {} segments, {} bytes ({} still needed)\n", found.last_lsn,
              figures.segments, figures.journal_bytes, found.live_bytes);
  base::print("snapshot     {}\n", found.snapshot_lsn == 0
                                       ? std::string("none")
                                       : base::format("up to fact {}", found.snapshot_lsn));
  base::print("last end     {}\n", found.clean ? "clean" : "unclean; the next start recovers");
  base::print("remembered   {} ids, {} settled claims, {} open claims ({} unknown)\n", figures.ids,
              figures.claims_settled, figures.claims_open, figures.claims_unknown);
  base::print("             {} registers, {} positions, {} open transactions\n", figures.registers,
              figures.positions, figures.transactions_open);
  base::print("log time     {} ms\n", to_ms(figures.log_time));
  if (figures.gaps != 0) {
    base::print("losses       {} accepted by repair; {} records and {} results have no payload\n",
                figures.gaps, figures.records_lost, figures.results_lost);
  }
  if (!found.streams.empty()) {
    base::print("\n{:<24} {:>10} {:>10} {:>12} {:>10} {:>10} {:>15}\n", "stream", "first", "last",
                "bytes", "ids", "window", "horizon");
  }
  for (const StreamStats& stream : found.streams) {
    base::print("{:<24} {:>10} {:>10} {:>12} {:>10} {:>10} {:>15}\n", printable(stream.stream),
                stream.first.value, stream.last.value, stream.bytes, stream.ids,
                window_text(stream.settings.window), to_ms(stream.horizon));
    for (const ConsumerStats& consumer : stream.consumers) {
      base::print("  {:<22} acked to {}, next {}, {} in flight, {} waiting, {} dead letters\n",
                  printable(consumer.consumer), consumer.floor.value, consumer.next.value,
                  consumer.in_flight, consumer.waiting, consumer.dead_lettered);
    }
  }
  for (const std::string& line : found.lines) base::print("note: {}\n", printable(line));
  if (found.refusal) base::print("\nA start is refused: {}\n", *found.refusal);
}

std::string problems_json(const std::vector<journal::FileProblem>& problems) {
  JsonArray out;
  for (const journal::FileProblem& problem : problems) {
    out.add(JsonObject()
                .add("file", problem.file)
                .add("offset", problem.offset)
                .add("problem", problem.text)
                .text());
  }
  return out.text();
}

void print_text(const journal::VerifyReport& found) {
  const auto print = [](const journal::FileProblem& problem, std::string_view remark) {
    base::print("{} offset {}: {}{}\n", problem.file, problem.offset, problem.text, remark);
  };
  for (const journal::FileProblem& problem : found.problems) print(problem, "");
  for (const journal::FileProblem& problem : found.unneeded) print(problem, " (nothing needs it)");
  for (const std::string& note : found.notes) base::print("note: {}\n", printable(note));
  std::string_view word = found.unneeded.empty() ? "intact" : "intact, but for what nothing needs";
  if (!found.intact()) word = "DAMAGED";
  base::print("{}: {} files, {} bytes, {} batches, {} facts read\n", word, found.files, found.bytes,
              found.batches, found.facts);
}

}  // namespace

int report(const Error& error) {
  base::print(stderr, "hapax: {}\n", error.text());
  return exit_code_of(error);
}

int exit_code_of(const Error& error) {
  switch (error.code) {
    case Errc::kInvalidArgument:
      return kExitUsage;
    case Errc::kCorruption:
      return kExitDamaged;
    case Errc::kIo:
      return kExitIo;
    default:
      return kExitFailed;
  }
}

int run_inspect(const InspectOptions& options) {
  const auto folder = open_folder(options.folder);
  if (!folder) return report(folder.error());
  const auto found = engine::inspect(**folder);
  if (!found) return report(found.error());
  if (options.output == Output::kJson) {
    print_json(*found);
  } else {
    print_text(*found);
  }
  return found->refusal ? kExitDamaged : kExitOk;
}

int run_verify(const VerifyOptions& options) {
  const auto folder = open_folder(options.folder);
  if (!folder) return report(folder.error());
  const auto found = engine::verify(**folder);
  if (!found) return report(found.error());
  if (options.output == Output::kJson) {
    base::print("{}\n", JsonObject()
                            .add("intact", found->intact())
                            .add("files", found->files)
                            .add("bytes", found->bytes)
                            .add("batches", found->batches)
                            .add("facts", found->facts)
                            .add("last_lsn", found->last.value)
                            .raw("problems", problems_json(found->problems))
                            .raw("unneeded", problems_json(found->unneeded))
                            .text());
  } else {
    print_text(*found);
  }
  return found->intact() ? kExitOk : kExitDamaged;
}

int run_repair(const RepairOptions& options) {
  if (!options.accept_loss && !options.dry_run) {
    return report({Errc::kInvalidArgument,
                   "repair gives up what cannot be read. See what with --dry-run; do it with "
                   "--accept-loss. The old files are kept either way."});
  }
  const auto folder = open_folder(options.folder);
  if (!folder) return report(folder.error());
  host::HostEntropy entropy;
  const auto mode =
      options.dry_run ? journal::RepairMode::kDryRun : journal::RepairMode::kAcceptLoss;
  const auto done = engine::repair(**folder, entropy, mode);
  if (!done) return report(done.error());
  if (options.output == Output::kJson) {
    JsonArray steps;
    for (const std::string& step : done->steps) steps.add(json_text(step));
    base::print("{}\n", JsonObject()
                            .add("needed", done->needed)
                            .add("done", done->needed && !options.dry_run)
                            .add("lost_first_lsn", done->lost_first.value)
                            .add("lost_last_lsn", done->lost_last.value)
                            .add("history", done->history)
                            .raw("steps", steps.text())
                            .text());
    return kExitOk;
  }
  if (!done->needed) base::print("nothing to repair: the store starts as it is\n");
  for (const std::string& step : done->steps) {
    base::print("{}{}\n", options.dry_run ? "would: " : "", printable(step));
  }
  if (done->lost_last.value != 0) {
    base::print("facts {} to {} {} lost\n", done->lost_first.value, done->lost_last.value,
                options.dry_run ? "would be" : "are");
  }
  return kExitOk;
}

}  // namespace hapax::cli
