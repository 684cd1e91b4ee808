#include "serve/workflow_removal.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/tenant_frame.h"
#include "serve/survey.h"
#include "serve/waiting_records.h"
#include "workflows/own_streams.h"

namespace hapax::serve {

namespace {

using delivery::Workflow;

// Registers of one scan, and of one commit.
constexpr std::uint32_t kRegistersOfOneCommit = 1'000;
constexpr std::string_view kOwnRegisters[] = {".attempts/", ".blocked/", ".replays/", ".began/",
                                              ".lost/"};

std::string dead_letters_of(const Workflow& workflow) { return workflow.id.text() + ".dead"; }

// The stream that it was told to read. Null: another source, or none.
const delivery::FromStream* given_stream_of(const Workflow& workflow) {
  return workflow.source ? std::get_if<delivery::FromStream>(&*workflow.source) : nullptr;
}

std::string counted(std::uint64_t number, std::string_view one, std::string_view many) {
  return base::format("{} {}", number, number == 1 ? one : many);
}

// The removal of one workflow by one process.
class Remover {
 public:
  Remover(Store& store, const Declaration& declaration, Version version)
      : store_(store),
        declarations_(store),
        declaration_(declaration),
        workflow_(declaration.workflow),
        version_(version) {}

  Result<Removal> run() {
    HAPAX_TRY(Removal went, remove_streams());
    if (went != Removal::kDone) return went;
    for (const std::string_view kind : kOwnRegisters) {
      HAPAX_TRY(went, remove_registers(kind));
      if (went != Removal::kDone) return went;
    }
    HAPAX_TRY(const bool gone, declarations_.forget(declaration_, version_));
    return gone ? Removal::kDone : Removal::kMoved;
  }

 private:
  [[nodiscard]] std::string framed(std::string_view name) const {
    return base::StoreName{workflow_.tenant, name}.text();
  }
  std::string_view keep(std::string text) { return kept_.emplace_back(std::move(text)); }

  // F5: what the workflow was told to read, or to write to, is not its own, whatever it is called.
  [[nodiscard]] bool is_of_others(std::string_view name) const {
    if (const auto* from = given_stream_of(workflow_); from != nullptr && from->stream == name) {
      return true;
    }
    const auto& endpoints = workflow_.endpoints;
    return std::any_of(endpoints.begin(), endpoints.end(), [&](const auto& each) {
      return each.stream() != nullptr && each.stream()->stream == name;
    });
  }

  // A commit that holds only while the declaration is what it was.
  Result<Removal> act(std::vector<Op> ops) {
    HAPAX_TRY(const auto next, declarations_.act(declaration_, version_, std::move(ops)));
    if (!next) return Removal::kMoved;
    version_ = *next;
    return Removal::kDone;
  }

  // F2: the append fails if a record came since the stream was looked at.
  Status remove_stream(std::vector<Op>& ops, std::string_view name, bool empty_only,
                       std::uint64_t& undelivered) {
    if (is_of_others(name)) return Ok{};
    const std::string_view stream = keep(framed(name));
    HAPAX_TRY(const auto found, find_stream(store_, stream));
    if (!found) return Ok{};
    WaitingRecords records;
    if (!empty_only) count_waiting(records, *found, workflow_.id.text());
    undelivered += empty_only ? records_of(*found) : records.waiting;
    if (!declaration_.drop_undelivered) {
      ops.emplace_back(
          Append{.stream = stream,
                 .payload = "removed",
                 .expect = ExpectLast{.of = ExpectLast::Of::kStream, .last = found->last}});
    }
    ops.emplace_back(DeleteStream{stream});
    return Ok{};
  }

  Result<Removal> remove_streams() {
    std::vector<Op> ops;
    std::uint64_t undelivered = 0;
    HAPAX_CHECK(remove_stream(ops, workflows::events_stream_of(workflow_.id), false, undelivered));
    HAPAX_CHECK(remove_stream(ops, workflows::rows_of(workflow_).name, false, undelivered));
    HAPAX_CHECK(remove_stream(ops, workflows::outbox_of(workflow_).name, false, undelivered));
    HAPAX_CHECK(remove_stream(ops, dead_letters_of(workflow_), true, undelivered));
    if (undelivered != 0 && !declaration_.drop_undelivered) return Removal::kUndelivered;
    const std::string log_name = workflows::attempts_stream_of(workflow_.id.text());
    const std::string_view attempts = keep(framed(log_name));
    HAPAX_TRY(const auto log, find_stream(store_, attempts));
    if (log && !is_of_others(log_name)) ops.emplace_back(DeleteStream{attempts});
    HAPAX_CHECK(leave_source(ops));
    for (const std::string_view name : {".paused", ".replays"}) {
      ops.emplace_back(Unset{.name = keep(framed(workflow_.id.text() + std::string(name)))});
    }
    return act(std::move(ops));
  }

  Status leave_source(std::vector<Op>& ops) {
    const auto* from = given_stream_of(workflow_);
    if (from == nullptr) return Ok{};
    const std::string_view stream = keep(framed(from->stream));
    HAPAX_TRY(const auto found, find_stream(store_, stream));
    if (!found) return Ok{};
    for (const ConsumerStats& one : found->consumers) {
      if (one.consumer != workflow_.id.text()) continue;
      ops.emplace_back(DeleteConsumer{stream, workflow_.id.text()});
    }
    return Ok{};
  }

  Result<Removal> remove_registers(std::string_view kind) {
    const std::string prefix = framed(workflow_.id.text()).append(kind);
    RegisterScan scan{.max = kRegistersOfOneCommit, .prefix = prefix};
    do {
      HAPAX_TRY(const RegisterPage page, store_.scan_registers(scan));
      std::vector<Op> ops;
      for (const std::string& name : page.names) ops.emplace_back(Unset{.name = name});
      scan.cursor = page.next;
      if (ops.empty()) continue;
      HAPAX_TRY(const Removal went, act(std::move(ops)));
      if (went != Removal::kDone) return went;
    } while (scan.cursor != 0);
    return Removal::kDone;
  }

  Store& store_;
  Declarations declarations_;
  const Declaration& declaration_;
  const Workflow& workflow_;
  Version version_;
  std::deque<std::string> kept_;  // names that operations refer to
};

}  // namespace

std::string Undelivered::text() const {
  return base::format("{}, and {}", counted(waiting, "record waits", "records wait"),
                      counted(dead_letters, "dead letter is kept", "dead letters are kept"));
}

Result<Undelivered> undelivered_of(Store& store, const Workflow& workflow) {
  WaitingRecords records;
  const auto source = consumed_stream(workflow);
  for (const std::string& name :
       {source.value_or(std::string()), workflows::outbox_of(workflow).name}) {
    if (name.empty()) continue;
    HAPAX_TRY(const auto stream, find_stream(store, name));
    if (stream) count_waiting(records, *stream, workflow.id.text());
  }
  HAPAX_TRY(const auto dead, find_stream(store, dead_letters_of(workflow)));
  return Undelivered{.waiting = records.waiting, .dead_letters = dead ? records_of(*dead) : 0};
}

Result<Removal> remove_names(Store& store, const Declaration& declaration, Version version) {
  return Remover(store, declaration, version).run();
}

}  // namespace hapax::serve
