#include "postgres/outbox_source.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <random>
#include <utility>

#include <libpq-fe.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/assert.h"
#include "database/migration.h"
#include "postgres/migrate.h"
#include "relay/headers.h"
#include "relay/pieces.h"

namespace hapax::postgres {

namespace {

using relay::Outcome;
using Kind = TakenRow::Kind;

constexpr std::uint32_t kNeedsVersion = 2;
constexpr Duration kNapFirst{5};
constexpr Duration kNapMax{2'000};       // with notifications
constexpr Duration kNapMaxPolling{250};  // without
constexpr Duration kAnnounced{10'000};   // so long publishers notify, once asked to
constexpr Duration kProbeTime{2'000};

std::int64_t steady_ms() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

std::int64_t number_of(std::string_view text) {
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::string_view word_of(Outcome::Kind kind) {
  switch (kind) {
    case Outcome::Kind::kAccepted:
      return "accepted";
    case Outcome::Kind::kRetry:
      return "retry";
    case Outcome::Kind::kDead:
      return "dead";
    case Outcome::Kind::kHeld:
      return "held";
    case Outcome::Kind::kNotSent:
      break;
  }
  return "back";
}

// {1,2,3} and {"a","b",NULL}, element by element.
class ArrayText {
 public:
  void add(std::int64_t number) { raw(std::to_string(number)); }
  void add_null() { raw("NULL"); }
  void add(std::string_view text) {
    std::string quoted = "\"";
    for (const char c : text) {
      if (c == '"' || c == '\\') quoted += '\\';
      quoted += c;
    }
    raw(quoted + '"');
  }
  [[nodiscard]] std::string text() const { return text_ + "}"; }

 private:
  void raw(std::string_view element) {
    if (text_.size() > 1) text_ += ',';
    text_ += element;
  }
  std::string text_ = "{";
};

// Lanes and where they stand, as the first values of settling and taking.
struct LaneArrays {
  ArrayText lanes, fences, positions, pendings, drainings, late_tos;

  void add(const relay::Lease& lease, const LaneProgress& progress) {
    lanes.add(std::int64_t{lease.lane});
    fences.add(lease.fence);
    positions.add(progress.pos);
    pendings.add(text_of(progress.pending));
    drainings.add(text_of(progress.draining));
    late_tos.add(progress.late_to);
  }
  void give(Values& values) const {
    for (const ArrayText* each : {&lanes, &fences, &positions, &pendings, &drainings, &late_tos}) {
      values.text(each->text());
    }
  }
};

struct OutcomeArrays {
  ArrayText lanes, kinds, ns, parts, seqs, keys, tries, after, reasons;

  void add(std::uint32_t lane, const TakenRow& row, const Outcome& outcome) {
    lanes.add(std::int64_t{lane});
    kinds.add(word_of(outcome.kind));
    row.kind == Kind::kRetry ? ns.add(row.n) : ns.add_null();
    parts.add(row.part);
    seqs.add(row.seq);
    row.key.empty() ? keys.add_null() : keys.add(row.key);
    tries.add(std::int64_t{row.attempt});
    after.add(outcome.after.count());
    reasons.add(relay::stored_reason(outcome.reason));
  }
  void give(Values& values) const {
    for (const ArrayText* each :
         {&lanes, &kinds, &ns, &parts, &seqs, &keys, &tries, &after, &reasons}) {
      values.text(each->text());
    }
  }
};

}  // namespace

OutboxSource::OutboxSource(OutboxSourceOptions options) : options_(std::move(options)) {
  wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  HAPAX_ASSERT(wake_ >= 0, "a file descriptor is left");
}

OutboxSource::~OutboxSource() { ::close(wake_); }

Result<std::unique_ptr<OutboxSource>> OutboxSource::open(OutboxSourceOptions options) {
  HAPAX_CHECK(database::check_name("schema", options.schema));
  std::unique_ptr<OutboxSource> source(new OutboxSource(std::move(options)));
  HAPAX_CHECK(source->connect());
  HAPAX_CHECK(check_version(*source->connection_, source->options_.schema, kNeedsVersion));
  if (source->options_.listen) source->test_notify();
  return source;
}

Status OutboxSource::connect() {
  HAPAX_TRY(connection_, Connection::open(options_.uri, {.application_name = "hapax relay"}));
  return Ok{};
}

std::string OutboxSource::named(std::string_view sql) const {
  return database::expanded(sql, "schema", options_.schema);
}

Result<Rows> OutboxSource::ask(const std::string& sql, const Values& values, Rowed rowed) {
  if (!connection_ || connection_->lost()) HAPAX_CHECK(connect());
  return connection_->ask(named(sql), values, rowed);
}

Result<relay::Leases> OutboxSource::lease(std::span<const relay::Lease> kept, Duration span) {
  ArrayText lanes;
  ArrayText fences;
  for (const relay::Lease& lease : kept) {
    lanes.add(std::int64_t{lease.lane});
    fences.add(lease.fence);
  }
  Values values;
  values.text(options_.owner).text(lanes.text()).text(fences.text());
  values.text(std::to_string(span.count()) + " milliseconds");
  HAPAX_TRY(const Rows rows, ask("SELECT * FROM \"{schema}\".relay_lease($1, $2, $3, $4)", values));
  relay::Leases told{.held = {}, .left = span, .share = 0};
  std::map<std::uint32_t, Lane> held;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    told.share = static_cast<std::uint32_t>(rows.number(i, 0));
    if (rows.is_null(i, 1)) continue;
    const relay::Lease lease{static_cast<std::uint32_t>(rows.number(i, 1)), rows.number(i, 2)};
    told.held.push_back(lease);
    // What this relay knows of a lane that it kept is newer than what is stored.
    Lane* known = find(lease);
    Lane lane;
    lane.fence = lease.fence;
    lane.progress = {rows.number(i, 3), xids_of(rows.at(i, 4)), xids_of(rows.at(i, 5)),
                     rows.number(i, 6)};
    lane.attempts = static_cast<std::uint32_t>(rows.number(i, 7));
    held.emplace(lease.lane, known == nullptr ? std::move(lane) : std::move(*known));
  }
  lanes_ = std::move(held);
  return told;
}

Result<relay::Taken> OutboxSource::next(std::span<const relay::Turn> turns,
                                        std::uint32_t attempts_max) {
  relay::Taken told;
  HAPAX_CHECK(settle(turns, told));
  HAPAX_CHECK(take(turns, attempts_max, told));
  if (!told.batches.empty()) nap_ = Duration{0};
  return told;
}

Status OutboxSource::settle(std::span<const relay::Turn> turns, relay::Taken& told) {
  LaneArrays lanes;
  OutcomeArrays rest;
  bool any = false;
  for (const relay::Turn& turn : turns) {
    Lane* lane = find(turn.lease);
    if (lane == nullptr || turn.outcomes.empty()) continue;
    HAPAX_ASSERT(turn.outcomes.size() == lane->taken.rows.size(), "each row has its outcome");
    const Advanced after = advance(lane->progress, lane->taken, turn.outcomes);
    for (std::size_t i = 0; i < turn.outcomes.size(); ++i) {
      const TakenRow& row = lane->taken.rows[i];
      const bool usual = turn.outcomes[i].kind == Outcome::Kind::kAccepted || i >= after.counted;
      if (row.kind == Kind::kRetry || !usual) rest.add(turn.lease.lane, row, turn.outcomes[i]);
    }
    lane->progress = after.progress;
    lane->attempts = 0;
    lane->taken = {};
    lanes.add(turn.lease, lane->progress);
    any = true;
  }
  if (!any) return Ok{};
  Values values;
  lanes.give(values);
  rest.give(values);
  HAPAX_TRY(const Rows rows, ask("SELECT * FROM \"{schema}\".relay_settle($1, $2, $3, $4, $5, $6, "
                                 "$7, $8, $9, $10, $11, $12, $13, $14, $15)",
                                 values));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    told.lost.push_back(static_cast<std::uint32_t>(rows.number(i, 0)));
    lanes_.erase(told.lost.back());
  }
  return Ok{};
}

Status OutboxSource::take(std::span<const relay::Turn> turns, std::uint32_t attempts_max,
                          relay::Taken& told) {
  LaneArrays lanes;
  ArrayText tries;
  ArrayText most;
  bool any = false;
  for (const relay::Turn& turn : turns) {
    Lane* lane = find(turn.lease);
    if (lane == nullptr || turn.take == 0) continue;
    lanes.add(turn.lease, lane->progress);
    tries.add(std::int64_t{lane->attempts});
    most.add(std::int64_t{relay::piece_to_take(turn.take, lane->attempts, attempts_max)});
    any = true;
  }
  if (!any) return Ok{};
  Values values;
  lanes.give(values);
  values.text(tries.text()).text(most.text());
  HAPAX_TRY(const Rows rows,
            ask("SELECT * FROM \"{schema}\".relay_take($1, $2, $3, $4, $5, $6, $7, $8)", values,
                Rowed::kBinary));
  std::vector<relay::Turn> taking;
  for (const relay::Turn& turn : turns) {
    const Lane* lane = find(turn.lease);
    if (lane == nullptr || turn.take == 0) continue;
    taking.push_back(
        {turn.lease, {}, relay::piece_to_take(turn.take, lane->attempts, attempts_max)});
  }
  read(rows, taking, told);
  return Ok{};
}

void OutboxSource::read(const Rows& rows, std::span<const relay::Turn> turns, relay::Taken& told) {
  enum Column {
    kKind,
    kLane,
    kN,
    kSeq,
    kPart,
    kAttempt,
    kBlocked,
    kId,
    kType,
    kKey,
    kPayload,
    kHeaders,
    kCorrelation,
    kCausation
  };
  Xids running;
  std::map<std::uint32_t, relay::Batch> batches;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string_view kind = rows.at(i, kKind);
    if (kind == "snapshot") {
      const auto xid = static_cast<std::uint64_t>(number_of(rows.at(i, kSeq)));
      running = running_in(rows.at(i, kId), xid);
      continue;
    }
    const auto number = static_cast<std::uint32_t>(number_of(rows.at(i, kLane)));
    Lane& lane = lanes_.at(number);
    relay::Batch& batch = batches[number];
    if (kind == "lane") {
      lane.taken = {{}, xids_of(rows.at(i, kId)), running, true};
      continue;
    }
    const std::int64_t seq = number_of(rows.at(i, kSeq));
    const auto attempt = static_cast<std::uint32_t>(number_of(rows.at(i, kAttempt)));
    const Kind row_kind = kind == "retry"  ? Kind::kRetry
                          : kind == "late" ? Kind::kLate
                                           : Kind::kFresh;
    lane.taken.rows.push_back({row_kind, number_of(rows.at(i, kN)), number_of(rows.at(i, kPart)),
                               seq, std::string(rows.at(i, kKey)), attempt});
    batch.records.push_back({.place = seq,
                             .id = std::string(rows.at(i, kId)),
                             .type = std::string(rows.at(i, kType)),
                             .key = std::string(rows.at(i, kKey)),
                             .payload = std::string(rows.at(i, kPayload)),
                             .headers = relay::headers_of(rows.at(i, kHeaders)),
                             .correlation_id = std::string(rows.at(i, kCorrelation)),
                             .causation_id = std::string(rows.at(i, kCausation)),
                             .attempt = attempt,
                             .blocked = rows.at(i, kBlocked).starts_with('t')});
  }
  for (const relay::Turn& turn : turns) {
    const auto found = batches.find(turn.lease.lane);
    if (found == batches.end()) {
      told.lost.push_back(turn.lease.lane);
      lanes_.erase(turn.lease.lane);
    } else {
      finish_taking(turn.lease.lane, turn, std::move(found->second), told);
    }
  }
}

void OutboxSource::finish_taking(std::uint32_t number, const relay::Turn& turn, relay::Batch batch,
                                 relay::Taken& told) {
  Lane& lane = lanes_.at(number);
  std::vector<TakenRow>& rows = lane.taken.rows;
  const auto late = std::count_if(rows.begin(), rows.end(),
                                  [](const TakenRow& row) { return row.kind == Kind::kLate; });
  lane.taken.all_late = late < static_cast<std::ptrdiff_t>(turn.take);
  if (!lane.taken.all_late) {  // Fresh rows come after all that are late.
    while (rows.back().kind == Kind::kFresh) {
      rows.pop_back();
      batch.records.pop_back();
    }
  }
  if (rows.empty()) {
    // While late rows were sent in parts, nothing else was looked for.
    if (!lane.progress.draining.empty()) told.more = true;
    lane.progress = advance(lane.progress, lane.taken, {}).progress;
    return;
  }
  if (rows.back().kind != Kind::kRetry) ++lane.attempts;
  batch.lane = number;
  told.batches.push_back(std::move(batch));
}

Status OutboxSource::release(std::span<const relay::Lease> leases) {
  ArrayText lanes;
  ArrayText fences;
  for (const relay::Lease& lease : leases) {
    lanes.add(std::int64_t{lease.lane});
    fences.add(lease.fence);
    if (find(lease) != nullptr) lanes_.erase(lease.lane);
  }
  Values values;
  values.text(options_.owner).text(lanes.text()).text(fences.text());
  values.text(lanes_.empty() ? "true" : "false");
  HAPAX_CHECK(ask("SELECT \"{schema}\".relay_release($1, $2, $3, $4)", values));
  return Ok{};
}

Result<bool> OutboxSource::clean() {
  HAPAX_TRY(const Rows rows, ask("SELECT \"{schema}\".relay_clean()", Values{}));
  return rows.size() == 1 && rows.number(0, 0) > 0;
}

Result<relay::Report> OutboxSource::report() {
  relay::Report report;
  HAPAX_TRY(const Rows lanes,
            ask("SELECT lane, owner, lease_ms, waiting, oldest_ms, attempts, retries, blocked_keys "
                "FROM \"{schema}\".relay_lanes()",
                Values{}));
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    relay::LaneReport& lane = report.lanes.emplace_back();
    lane.lane = static_cast<std::uint32_t>(lanes.number(i, 0));
    lane.owner = lanes.at(i, 1);
    lane.lease_left = Duration{lanes.number(i, 2)};
    lane.waiting = static_cast<std::uint64_t>(lanes.number(i, 3));
    if (!lanes.is_null(i, 4)) lane.oldest_waiting = Duration{lanes.number(i, 4)};
    lane.attempts = static_cast<std::uint32_t>(lanes.number(i, 5));
    lane.retries = static_cast<std::uint64_t>(lanes.number(i, 6));
    lane.blocked_keys = static_cast<std::uint64_t>(lanes.number(i, 7));
  }
  HAPAX_TRY(const Rows all, ask("SELECT * FROM \"{schema}\".relay_figures()", Values{}));
  if (all.size() != 1) return report;
  report.dead_letters = static_cast<std::uint64_t>(all.number(0, 0));
  report.outbox_bytes = static_cast<std::uint64_t>(all.number(0, 1));
  report.dead_rows = static_cast<std::uint64_t>(all.number(0, 2));
  if (!all.is_null(0, 3)) report.oldest_transaction = Duration{all.number(0, 3)};
  report.oldest_transaction_of = all.at(0, 4);
  return report;
}

// Behind a pooler LISTEN may seem to work and never tell anything; so it is tried.
void OutboxSource::test_notify() {
  auto listener = Connection::open(options_.uri, {.application_name = "hapax relay (listens)"});
  if (!listener) return;
  const std::string nonce = "hapax_probe_" + std::to_string(std::random_device{}());
  if (!listener->run("LISTEN " + nonce) || !connection_->run("NOTIFY " + nonce)) return;
  const auto told = listener->wait_notified(kProbeTime);
  if (!told || *told != Notified::kChannel) return;
  if (!listener->run("UNLISTEN *; LISTEN " + named("\"{schema}_outbox\""))) return;
  listener_ = std::move(*listener);
}

bool OutboxSource::announce() {
  const std::int64_t now = steady_ms();
  if (now + nap_.count() < asked_until_ms_) return true;
  Values values;
  values.number(kAnnounced.count());
  if (!ask("SELECT \"{schema}\".relay_announce($1)", values)) return true;
  asked_until_ms_ = now + kAnnounced.count();
  return false;
}

void OutboxSource::wait(Duration most) {
  const Duration nap_max = listener_ ? kNapMax : kNapMaxPolling;
  nap_ = std::clamp(nap_ * 2, kNapFirst, nap_max);
  // What was committed before publishers were asked to notify is looked for once more.
  if (listener_ && nap_ > 4 * kNapFirst && !announce()) return;
  pollfd watched[2] = {{wake_, POLLIN, 0}, {-1, POLLIN, 0}};
  if (listener_) watched[1].fd = ::PQsocket(listener_->raw());
  const int ready = ::poll(watched, 2, static_cast<int>(std::min(nap_, most).count()));
  if (ready <= 0) return;
  if (watched[0].revents != 0) {
    eventfd_t count = 0;
    ::eventfd_read(wake_, &count);
  }
  if (watched[1].revents == 0) return;
  nap_ = Duration{0};
  if (::PQconsumeInput(listener_->raw()) != 1) {
    listener_.reset();
    return;
  }
  while (PGnotify* told = ::PQnotifies(listener_->raw())) ::PQfreemem(told);
}

void OutboxSource::wake() { ::eventfd_write(wake_, 1); }

OutboxSource::Lane* OutboxSource::find(const relay::Lease& lease) {
  const auto found = lanes_.find(lease.lane);
  return found == lanes_.end() || found->second.fence != lease.fence ? nullptr : &found->second;
}

}  // namespace hapax::postgres
