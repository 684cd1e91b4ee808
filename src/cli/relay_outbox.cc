// What `hapax relay` asks of outboxes without relaying: status and dead letters.
#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>

#include "base/format.h"
#include "base/mutex.h"
#include "cli/outboxes.h"
#include "cli/relay.h"
#include "cli/show.h"
#include "cli/span.h"
#include "host/clock.h"
#include "serve/relay_door.h"
#include "wire/json_text.h"

namespace hapax::cli {

namespace {

constexpr Duration kSilenceMin{5'000};  // for a database to answer, or a third of the lease
constexpr std::string_view kBlind =
    "transactions of other roles are not seen: GRANT pg_read_all_stats to this one";

std::string json_of_lane(const relay::LaneReport& lane) {
  wire::JsonObject object;
  object.add("lane", lane.lane);
  lane.owner.empty() ? object.raw("owner", "null") : object.add("owner", lane.owner);
  object.add("lease_ms", lane.lease_left.count()).add("waiting", lane.waiting);
  object.raw("more_waiting", lane.more_waiting ? "true" : "false");
  lane.oldest_waiting ? object.add("oldest_waiting_ms", lane.oldest_waiting->count())
                      : object.raw("oldest_waiting_ms", "null");
  object.add("attempts", lane.attempts).add("retries", lane.retries);
  object.add("blocked_keys", lane.blocked_keys).add("delivered", lane.sent);
  return object.text();
}

struct Sums {
  std::uint64_t waiting = 0;
  bool more_waiting = false;
  std::uint64_t retries = 0;
  std::uint64_t blocked_keys = 0;
  std::uint64_t lanes_held = 0;
  std::uint64_t sent = 0;
  Duration oldest{0};
};

Sums sums_of(const relay::OutboxReport& report) {
  Sums sums;
  for (const relay::LaneReport& lane : report.lanes) {
    sums.waiting += lane.waiting;
    sums.more_waiting = sums.more_waiting || lane.more_waiting;
    sums.retries += lane.retries;
    sums.blocked_keys += lane.blocked_keys;
    sums.sent += lane.sent;
    if (!lane.owner.empty()) ++sums.lanes_held;
    sums.oldest = std::max(sums.oldest, lane.oldest_waiting.value_or(Duration{0}));
  }
  return sums;
}

void print_report_json(const std::string& from, const relay::OutboxReport& report) {
  const Sums sums = sums_of(report);
  wire::JsonArray lanes;
  for (const relay::LaneReport& lane : report.lanes) lanes.add(json_of_lane(lane));
  wire::JsonObject object;
  object.add("from", from).add("waiting", sums.waiting);
  object.raw("more_waiting", sums.more_waiting ? "true" : "false");
  object.add("lag_ms", sums.oldest.count()).add("delivered", sums.sent);
  object.add("retries", sums.retries).add("blocked_keys", sums.blocked_keys);
  object.add("dead_letters", report.dead_letters).add("outbox_bytes", report.outbox_bytes);
  object.add("dead_rows", report.dead_rows);
  report.oldest_transaction
      ? object.add("oldest_transaction_ms", report.oldest_transaction->count())
            .add("oldest_transaction_of", report.oldest_transaction_of)
      : object.raw("oldest_transaction_ms", "null").raw("oldest_transaction_of", "null");
  object.raw("sees_transactions", report.sees_transactions ? "true" : "false");
  base::print("{}\n", object.raw("lanes", lanes.text()).text());
}

void print_report(const std::string& from, const relay::OutboxReport& report) {
  const Sums sums = sums_of(report);
  base::print("{}\n", from);
  base::print("  waiting         {}{} (the oldest for {} ms)\n",
              sums.more_waiting ? "at least " : "", sums.waiting, sums.oldest.count());
  base::print("  delivered       {}\n", sums.sent);
  base::print("  to be retried   {}, {} keys wait\n", sums.retries, sums.blocked_keys);
  base::print("  dead letters    {}\n", report.dead_letters);
  base::print("  outbox          {} bytes, {} dead rows\n", report.outbox_bytes, report.dead_rows);
  if (report.oldest_transaction) {
    base::print("  oldest transaction open for {} ms: {}\n", report.oldest_transaction->count(),
                printable(report.oldest_transaction_of));
  }
  if (!report.sees_transactions) base::print("  {}\n", kBlind);
  base::print("  lanes           {} of {} are held\n", sums.lanes_held, report.lanes.size());
  for (const relay::LaneReport& lane : report.lanes) {
    base::print("  lane {:>2}  {:>7}{} waiting  {:>5} retries  {}\n", lane.lane, lane.waiting,
                lane.more_waiting ? "+" : "", lane.retries,
                lane.owner.empty()
                    ? "nobody"
                    : base::format("{} for {} ms", printable(lane.owner), lane.lease_left.count()));
  }
}

}  // namespace

namespace {

std::atomic<serve::RelayLog*> json_log = nullptr;

}  // namespace

void say_as_json() {
  static host::HostClock clock;
  static const std::unique_ptr<serve::RelayLog> log = serve::RelayLog::json(clock);
  json_log = log.get();
}

void say(std::string_view text) {
  if (serve::RelayLog* const log = json_log) return log->write(text);
  static base::Mutex mutex;
  const base::MutexLock lock(mutex);
  base::print(stderr, "hapax relay: {}\n", printable(text));
}

Result<std::unique_ptr<relay::Source>> open_source(const RelayOptions& options,
                                                   const std::string& from,
                                                   const std::string& owner) {
  relay::OutboxAddress address{.database = from,
                               .schema = options.schema,
                               .prefix = options.prefix,
                               .owner = owner,
                               .waits = options.sends() && !options.once};
  address.notice = [shown = without_password(from)](std::string_view text) {
    say(shown + ": " + std::string(text));
  };
  // Whoever only looks may ask for much.
  const Duration lease = span_of(options.lease).value_or(Duration{0});
  if (options.sends()) address.silence_max = std::max(kSilenceMin, lease / 3);
  if (const auto retention = span_of(options.retention)) {
    address.retention = *retention;
  } else if (!is_postgres(from)) {
    return Error{Errc::kInvalidArgument, "--retention " + options.retention + " is no span"};
  }
  HAPAX_TRY(relay::OpenedOutbox opened, open_outbox(address));
  return std::move(opened.source);
}

Result<int> show_status(const RelayOptions& options) {
  for (const std::string& from : options.from) {
    HAPAX_TRY(const auto source, open_source(options, from, options.name));
    HAPAX_TRY(const relay::OutboxReport report, source->report());
    if (options.output == Output::kJson) {
      print_report_json(without_password(from), report);
    } else {
      print_report(without_password(from), report);
    }
  }
  return kExitOk;
}

Result<int> list_dead_letters(const RelayOptions& options) {
  constexpr std::uint32_t kMost = 10'000;
  for (const std::string& from : options.from) {
    HAPAX_TRY(const auto source, open_source(options, from, options.name));
    HAPAX_TRY(const auto letters, source->dead_letters(kMost));
    for (const relay::DeadLetter& letter : letters) {
      if (options.output == Output::kJson) {
        base::print("{}\n", wire::JsonObject()
                                .add("from", without_password(from))
                                .add("id", letter.id)
                                .add("type", letter.type)
                                .add("key", letter.key)
                                .add("attempts", letter.attempts)
                                .add("dead_ms", letter.dead_for.count())
                                .add("reason", letter.reason)
                                .text());
      } else {
        base::print("{}  {}  {} attempts  {}\n", printable(letter.id), printable(letter.type),
                    letter.attempts, printable(letter.reason));
      }
    }
  }
  return kExitOk;
}

}  // namespace hapax::cli
