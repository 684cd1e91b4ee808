#include "postgres/outbox_reports.h"

#include <optional>
#include <string_view>
#include <utility>

#include "base/format.h"

namespace hapax::postgres {

namespace {

Status add_figures(OutboxSession& session, relay::OutboxReport& report) {
  enum Column {
    kDeadLetters,
    kOutboxBytes,
    kDeadRows,
    kTransactionMs,
    kTransactionOf,
    kSeesTransactions,
    kColumns
  };
  HAPAX_TRY(const Rows all,
            session.ask("SELECT dead_letters, outbox_bytes, dead_rows, transaction_ms, "
                        "transaction_of, sees_transactions FROM \"{schema}\".relay_figures()",
                        Values{}));
  if (all.size() != 1) return Ok{};
  report.dead_letters = static_cast<std::uint64_t>(all.number(0, kDeadLetters));
  report.outbox_bytes = static_cast<std::uint64_t>(all.number(0, kOutboxBytes));
  report.dead_rows = static_cast<std::uint64_t>(all.number(0, kDeadRows));
  if (!all.is_null(0, kTransactionMs))
    report.oldest_transaction = Duration{all.number(0, kTransactionMs)};
  report.oldest_transaction_of = all.at(0, kTransactionOf);
  report.sees_transactions = all.is_true(0, kSeesTransactions);
  return Ok{};
}

}  // namespace

Result<relay::OutboxReport> report_outbox(OutboxSession& session) {
  relay::OutboxReport report;
  enum Column {
    kLane,
    kOwner,
    kLeaseMs,
    kWaiting,
    kOldestMs,
    kAttempts,
    kRetries,
    kBlockedKeys,
    kSent,
    kMore,
    kColumns
  };
  HAPAX_TRY(const Rows lanes,
            session.ask("SELECT lane, owner, lease_ms, waiting, oldest_ms, attempts, retries, "
                        "blocked_keys, sent, more FROM \"{schema}\".relay_lanes()",
                        Values{}));
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    relay::LaneReport& lane = report.lanes.emplace_back();
    lane.lane = static_cast<std::uint32_t>(lanes.number(i, kLane));
    lane.owner = lanes.at(i, kOwner);
    lane.lease_left = Duration{lanes.number(i, kLeaseMs)};
    lane.waiting = static_cast<std::uint64_t>(lanes.number(i, kWaiting));
    if (!lanes.is_null(i, kOldestMs)) lane.oldest_waiting = Duration{lanes.number(i, kOldestMs)};
    lane.attempts = static_cast<std::uint32_t>(lanes.number(i, kAttempts));
    lane.retries = static_cast<std::uint64_t>(lanes.number(i, kRetries));
    lane.blocked_keys = static_cast<std::uint64_t>(lanes.number(i, kBlockedKeys));
    lane.sent = static_cast<std::uint64_t>(lanes.number(i, kSent));
    lane.more_waiting = lanes.is_true(i, kMore);
  }
  HAPAX_CHECK(add_figures(session, report));
  return report;
}

Result<std::vector<relay::TracedEvent>> trace_event(OutboxSession& session, const std::string& id) {
  Values values;
  values.text(id);
  enum Column {
    kSeq,
    kLane,
    kType,
    kKey,
    kState,
    kAttempts,
    kLastError,
    kRelay,
    kCreatedMs,
    kNextMs,
    kDiedMs,
    kColumns
  };
  const auto ms = [](std::string_view column) {
    return base::format(
        "(pg_catalog.date_part('epoch', {}_at) * 1000::double precision)::bigint AS {}_ms", column,
        column);
  };
  HAPAX_TRY(const Rows rows,
            session.ask("SELECT seq, lane, type, key, state, attempts, last_error, relay, " +
                            ms("created") + ", " + ms("next") + ", " + ms("died") +
                            " FROM \"{schema}\".outbox_trace WHERE id = $1 ORDER BY seq",
                        values));
  std::vector<relay::TracedEvent> events;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    relay::TracedEvent event{.number = rows.number(i, kSeq),
                             .type = rows.text(i, kType),
                             .key = rows.text(i, kKey),
                             .state = rows.text(i, kState),
                             .attempts = static_cast<std::uint32_t>(rows.number(i, kAttempts)),
                             .last_error = rows.text(i, kLastError),
                             .relay = rows.text(i, kRelay),
                             .created_ms = rows.number(i, kCreatedMs)};
    if (!rows.is_null(i, kLane)) event.lane = static_cast<std::uint32_t>(rows.number(i, kLane));
    if (!rows.is_null(i, kNextMs)) event.next_ms = rows.number(i, kNextMs);
    if (!rows.is_null(i, kDiedMs)) event.died_ms = rows.number(i, kDiedMs);
    events.push_back(std::move(event));
  }
  return events;
}

Result<std::vector<relay::DeadLetter>> list_dead_letters(OutboxSession& session,
                                                         std::uint32_t most) {
  Values values;
  values.number(most);
  enum Column { kId, kType, kKey, kAttempts, kReason, kDeadMs, kColumns };
  HAPAX_TRY(
      const Rows rows,
      session.ask(
          "SELECT id, type, coalesce(key, '') AS key, attempts, reason, "
          "(pg_catalog.date_part('epoch', "
          "pg_catalog.clock_timestamp() - died_at) * 1000::double precision)::bigint AS dead_ms "
          "FROM \"{schema}\".outbox_dead ORDER BY seq LIMIT $1",
          values));
  std::vector<relay::DeadLetter> letters;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    letters.push_back({.id = rows.text(i, kId),
                       .type = rows.text(i, kType),
                       .key = rows.text(i, kKey),
                       .attempts = static_cast<std::uint32_t>(rows.number(i, kAttempts)),
                       .reason = rows.text(i, kReason),
                       .dead_for = Duration{rows.number(i, kDeadMs)}});
  }
  return letters;
}

Result<relay::Redriven> redrive_dead_letters(OutboxSession& session,
                                             std::span<const std::string> ids) {
  const std::vector<std::optional<std::string_view>> wanted(ids.begin(), ids.end());
  Values values;
  ids.empty() ? values.null() : values.text(array_of(wanted));
  enum Column { kRedriven, kId, kRefused, kColumns };
  HAPAX_TRY(
      const Rows rows,
      session.ask("SELECT redriven, id, refused FROM \"{schema}\".relay_redrive($1)", values));
  relay::Redriven told;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows.is_null(i, kRedriven)) {
      told.refused.push_back({rows.text(i, kId), rows.text(i, kRefused)});
    } else {
      told.count = static_cast<std::uint64_t>(rows.number(i, kRedriven));
    }
  }
  return told;
}

}  // namespace hapax::postgres
