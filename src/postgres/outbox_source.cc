#include "postgres/outbox_source.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <sys/eventfd.h>

#include "base/assert.h"
#include "base/format.h"
#include "ports/entropy.h"
#include "postgres/outbox_reports.h"
#include "relay/headers.h"
#include "relay/pieces.h"
#include "tables/migration.h"

namespace hapax::postgres {

namespace {

using relay::SendOutcome;
using Kind = TakenRow::Kind;

constexpr std::uint32_t kNeedsVersion = 6;
constexpr std::int64_t kForgottenAtOnce = 1'000;  // rows of the inbox, and claims
constexpr std::uint32_t kLanes = 16;
constexpr std::uint32_t kBusyRounds = 8;
// About so much is taken at once, however many lanes there are.
constexpr std::int64_t kTakenBytes = std::int64_t{32} << 20;
// So many numbers are looked through for late rows at once.
constexpr std::int64_t kLateSpan = 100'000;
// A transaction that runs while a lane goes on by so many numbers may be a bystander.
constexpr std::int64_t kBystander = 20'000;
constexpr std::int64_t kBystandersEveryMs = 1'000;

std::int64_t number_of(std::string_view text) {
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::string_view word_of(SendOutcome::Kind kind) {
  switch (kind) {
    case SendOutcome::Kind::kAccepted:
      return "accepted";
    case SendOutcome::Kind::kRetry:
      return "retry";
    case SendOutcome::Kind::kDead:
      return "dead";
    case SendOutcome::Kind::kHeld:
      return "held";
    case SendOutcome::Kind::kNotSent:
      break;
  }
  return "back";
}

std::string_view flaw_of(bool gone, std::string_view key, bool has_good_headers) {
  if (gone) return relay::kRowGone;
  if (key.size() > relay::kKeyBytesMax) return relay::kLongKey;
  return has_good_headers ? "" : relay::kBadHeaders;
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

// Lanes and where they stand, as the first values of settling and taking; with the marks of what is
// stored of them, and the mark of what will be.
struct LaneArrays {
  ArrayText lanes, fences, positions, pendings, sinces, drainings, late_tos, sents, marks;

  void add(const relay::Lease& lease, const LaneProgress& progress, std::int64_t mark) {
    lanes.add(std::int64_t{lease.lane});
    fences.add(lease.fence);
    positions.add(progress.pos);
    pendings.add(xids_text_of(progress.pending));
    sinces.add(since_text_of(progress.pending));
    drainings.add(text_of(progress.draining));
    late_tos.add(progress.late_to);
    sents.add(progress.sent);
    marks.add(mark);
  }
  void give(Values& values, std::int64_t mark) const {
    for (const ArrayText* each :
         {&lanes, &fences, &positions, &pendings, &sinces, &drainings, &late_tos, &sents, &marks}) {
      values.text(each->text());
    }
    values.number(mark);
  }
};

struct OutcomeArrays {
  ArrayText lanes, kinds, ns, parts, seqs, keys, tries, after, reasons;

  void add(std::uint32_t lane, const TakenRow& row, const SendOutcome& outcome) {
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

OutboxSource::OutboxSource(OutboxSourceOptions options)
    : options_(std::move(options)),
      session_(options_.uri, options_.schema,
               {.application_name = "hapax relay",
                .silence_max = options_.silence_max,
                .hurry_fd = signs_.end.get(),
                .notice = options_.notice},
               [this] {
                 lanes_.clear();
                 sleep_.forget_asked();
               }),
      sleep_(session_, signs_) {}

Result<std::unique_ptr<OutboxSource>> OutboxSource::open(OutboxSourceOptions options) {
  HAPAX_CHECK(tables::check_name("schema", options.schema));
  std::unique_ptr<OutboxSource> source(new OutboxSource(std::move(options)));
  HAPAX_CHECK(source->session_.connect());
  HAPAX_CHECK(source->session_.check_version(kNeedsVersion));
  if (source->options_.listen) source->sleep_.listen();
  return source;
}

namespace {

enum class LeaseColumn {
  kShare,
  kLane,
  kFence,
  kPos,
  kPending,
  kSince,
  kDraining,
  kLateTo,
  kSent,
  kAttempts,
  kMark,
  kColumns
};
constexpr std::string_view kLeaseSql =
    "SELECT share, lane, fence, pos, pending, since, draining, late_to, sent, attempts, mark "
    "FROM \"{schema}\".relay_lease($1, $2, $3, $4)";

enum class TakeColumn {
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
  kCorrelationId,
  kCausationId,
  kCreated,
  kTried,
  kColumns
};
constexpr std::string_view kTakeSql =
    "SELECT kind, lane, n, seq, part, attempt, blocked, id, type, key, payload, headers, "
    "correlation_id, causation_id, created, tried FROM \"{schema}\".relay_take($1, $2, $3, $4, $5, "
    "$6, $7, $8, $9, $10, $11, $12, $13, $14, $15)";

}  // namespace

Result<relay::Leases> OutboxSource::lease(std::span<const relay::Lease> kept, Duration span) {
  ArrayText lanes;
  ArrayText fences;
  for (const relay::Lease& lease : kept) {
    lanes.add(std::int64_t{lease.lane});
    fences.add(lease.fence);
  }
  Values values;
  values.text(options_.owner).text(lanes.text()).text(fences.text());
  values.text(base::format("{} milliseconds", span.count()));
  auto rows = session_.ask({.sql = session_.named(kLeaseSql), .values = values});
  const std::map<std::uint32_t, Lane> known = std::exchange(lanes_, {});
  if (!rows) return rows.error();
  using enum LeaseColumn;
  relay::Leases told{.held = {}, .left = span, .share = 0};
  for (std::size_t i = 0; i < rows->size(); ++i) {
    told.share = static_cast<std::uint32_t>(rows->number(i, kShare));
    if (rows->is_null(i, kLane)) continue;
    const relay::Lease lease{static_cast<std::uint32_t>(rows->number(i, kLane)),
                             rows->number(i, kFence)};
    const auto found = known.find(lease.lane);
    const bool keeps = std::find(kept.begin(), kept.end(), lease) != kept.end();
    // Y8: what this relay knows of a lane that it kept is newer than what is stored, if that is
    // what it stored. A lane that is not answered is lost, and taken anew the next time.
    const bool stands = found != known.end() && found->second.fence == lease.fence &&
                        found->second.mark == rows->number(i, kMark);
    if (keeps && !stands) continue;
    told.held.push_back(lease);
    lanes_.emplace(lease.lane, keeps ? found->second : stored_lane(*rows, i));
  }
  is_alone_ = told.share == kLanes;
  return told;
}

// Y9: what was pending in another cluster is drained; relay_lease() sees to it.
OutboxSource::Lane OutboxSource::stored_lane(const Rows& rows, std::size_t row) {
  using enum LeaseColumn;
  Lane lane;
  lane.fence = rows.number(row, kFence);
  lane.progress = {rows.number(row, kPos), pending_of(rows.at(row, kPending), rows.at(row, kSince)),
                   xids_of(rows.at(row, kDraining)), rows.number(row, kLateTo),
                   rows.number(row, kSent)};
  lane.attempts = static_cast<std::uint32_t>(rows.number(row, kAttempts));
  lane.mark = rows.number(row, kMark);
  return lane;
}

Result<relay::TakenBatches> OutboxSource::next(std::span<const relay::LaneTurn> turns) {
  auto told = settle_and_take(turns);
  if (!told) lanes_.clear();  // Nobody knows what is stored now.
  return told;
}

Result<relay::TakenBatches> OutboxSource::settle_and_take(std::span<const relay::LaneTurn> turns) {
  HAPAX_CHECK(session_.reconnect());
  HAPAX_CHECK(drop_bystanders());
  relay::TakenBatches told;
  for (const relay::LaneTurn& turn : turns) {
    if (find(turn.lease) == nullptr) told.lost.push_back(turn.lease.lane);
  }
  const std::optional<Query> settling = settling_of(turns);
  const std::vector<relay::LaneTurn> wanted = wanted_of(turns, told);
  if (settling && !wanted.empty()) {
    HAPAX_TRY(const auto answers, session_.ask_both(*settling, taking_of(wanted)));
    read_lost(answers.first, told);
    read(answers.second, wanted, told);
  } else if (settling) {
    HAPAX_TRY(const Rows rows, session_.ask(*settling));
    read_lost(rows, told);
  } else if (!wanted.empty()) {
    HAPAX_TRY(const Rows rows, session_.ask(taking_of(wanted)));
    read(rows, wanted, told);
  }
  busy_rounds_ = told.batches.empty() ? 0 : busy_rounds_ + 1;
  if (busy_rounds_ > 0) sleep_.stay_up();
  if (busy_rounds_ >= kBusyRounds && is_alone_) sleep_.renounce();
  return told;
}

// None if there is nothing to settle. From now on the lanes stand where they will stand.
std::optional<Query> OutboxSource::settling_of(std::span<const relay::LaneTurn> turns) {
  LaneArrays lanes;
  OutcomeArrays rest;
  const std::int64_t mark = fresh_mark();
  bool any = false;
  for (const relay::LaneTurn& turn : turns) {
    Lane* lane = find(turn.lease);
    if (lane == nullptr || turn.outcomes.empty()) continue;
    HAPAX_ASSERT(turn.outcomes.size() == lane->taken.rows.size(), "each row has its outcome");
    const Advanced after = advance(lane->progress, lane->taken, turn.outcomes);
    for (std::size_t i = 0; i < turn.outcomes.size(); ++i) {
      const TakenRow& row = lane->taken.rows[i];
      const bool usual =
          turn.outcomes[i].kind == SendOutcome::Kind::kAccepted || i >= after.counted;
      if (row.kind == Kind::kRetry || !usual) rest.add(turn.lease.lane, row, turn.outcomes[i]);
    }
    lane->progress = after.progress;
    // Y5: what is said of retries says nothing of what was taken with them, and never settled.
    if (lane->taken.rows.back().kind != Kind::kRetry) {
      lane->attempts = relay::unsettled_after(lane->attempts);
    }
    lane->taken = {};
    lanes.add(turn.lease, lane->progress, std::exchange(lane->mark, mark));
    any = true;
  }
  if (!any) return {};
  Query question{
      .sql = session_.named("SELECT lost FROM \"{schema}\".relay_settle($1, $2, $3, $4, $5, $6, "
                            "$7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, "
                            "$19)"),
      .values = {}};
  lanes.give(question.values, mark);
  rest.give(question.values);
  return question;
}

void OutboxSource::read_lost(const Rows& rows, relay::TakenBatches& told) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    told.lost.push_back(static_cast<std::uint32_t>(rows.number(i, kOnly)));
    lanes_.erase(told.lost.back());
  }
}

// The turns that take something, with how much.
std::vector<relay::LaneTurn> OutboxSource::wanted_of(std::span<const relay::LaneTurn> turns,
                                                     relay::TakenBatches& told) {
  std::vector<relay::LaneTurn> wanted;
  for (const relay::LaneTurn& turn : turns) {
    const Lane* lane = find(turn.lease);
    if (lane == nullptr || turn.take == 0) continue;
    if (relay::is_suspect(lane->attempts) && !turn.alone) {
      told.suspects.push_back({turn.lease.lane, lane->attempts});
      continue;
    }
    const std::uint32_t most = turn.alone ? 1 : turn.take;
    wanted.push_back({.lease = turn.lease,
                      .outcomes = {},
                      .take = relay::piece_to_take(most, lane->attempts),
                      .alone = turn.alone});
  }
  return wanted;
}

Query OutboxSource::taking_of(std::span<const relay::LaneTurn> wanted) {
  LaneArrays lanes;
  ArrayText tries;
  ArrayText most;
  const std::int64_t mark = fresh_mark();
  for (const relay::LaneTurn& turn : wanted) {
    Lane& lane = lanes_.at(turn.lease.lane);
    lanes.add(turn.lease, lane.progress, lane.mark);
    lane.mark_if_taken = mark;
    tries.add(std::int64_t{lane.attempts});
    most.add(std::int64_t{turn.take});
  }
  Query question{.sql = session_.named(kTakeSql), .values = {}, .rowed = Rowed::kBinary};
  lanes.give(question.values, mark);
  question.values.text(tries.text()).text(most.text()).number(kLateSpan);
  // Of all lanes together, whether they are asked at once or one by one.
  question.values.number(kTakenBytes / std::max<std::int64_t>(std::ssize(lanes_), 1));
  question.values.text(wanted.front().alone ? "true" : "false");
  return question;
}

void OutboxSource::read(const Rows& rows, std::span<const relay::LaneTurn> turns,
                        relay::TakenBatches& told) {
  using enum TakeColumn;
  Xids running;
  std::map<std::uint32_t, relay::OutgoingBatch> batches;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string_view kind = rows.at(i, kKind);
    if (kind == "snapshot") {
      const auto xid = static_cast<std::uint64_t>(number_of(rows.at(i, kSeq)));
      running = running_in(rows.at(i, kId), xid);
      if (!rows.is_null(i, kN)) sleep_.expect_retry_in(Duration{number_of(rows.at(i, kN))});
      continue;
    }
    const auto number = static_cast<std::uint32_t>(number_of(rows.at(i, kLane)));
    Lane& lane = lanes_.at(number);
    relay::OutgoingBatch& batch = batches[number];
    if (kind == "lane") {
      lane.taken = {{}, xids_of(rows.at(i, kId)), running, {}};
      if (!rows.is_null(i, kSeq)) lane.taken.late_end = number_of(rows.at(i, kSeq));
      if (!rows.is_null(i, kN)) {
        told.suspects.push_back({number, static_cast<std::uint32_t>(number_of(rows.at(i, kN)))});
      }
      continue;
    }
    const std::int64_t seq = number_of(rows.at(i, kSeq));
    const auto attempt = static_cast<std::uint32_t>(number_of(rows.at(i, kAttempt)));
    const Kind row_kind = kind == "retry"  ? Kind::kRetry
                          : kind == "late" ? Kind::kLate
                                           : Kind::kFresh;
    lane.taken.rows.push_back({row_kind, number_of(rows.at(i, kN)), number_of(rows.at(i, kPart)),
                               seq, rows.text(i, kKey), attempt});
    auto headers = relay::headers_of(rows.at(i, kHeaders));
    const bool gone = rows.is_null(i, kId);
    const std::string_view flaw = flaw_of(gone, rows.at(i, kKey), headers.has_value());
    batch.records.push_back(
        {.place = seq,
         .id = gone ? base::format("number {}", seq) : rows.text(i, kId),
         .type = rows.text(i, kType),
         .key = rows.text(i, kKey),
         .payload = rows.text(i, kPayload),
         .headers = headers ? *std::move(headers) : relay::Headers{},
         .correlation_id = rows.text(i, kCorrelationId),
         .causation_id = rows.text(i, kCausationId),
         .time = time_from_ms(number_of(rows.at(i, kCreated))),
         .attempt = attempt,
         .tried_for = Duration{std::max<std::int64_t>(number_of(rows.at(i, kTried)), 0)},
         .blocked = rows.at(i, kBlocked).starts_with('t'),
         .flaw = std::string(flaw)});
  }
  for (const relay::LaneTurn& turn : turns) {
    const auto found = batches.find(turn.lease.lane);
    if (found == batches.end()) {
      if (!lanes_.contains(turn.lease.lane)) continue;  // It is known as lost.
      told.lost.push_back(turn.lease.lane);
      lanes_.erase(turn.lease.lane);
    } else {
      finish_taking(turn.lease.lane, turn, std::move(found->second), told);
    }
  }
}

void OutboxSource::finish_taking(std::uint32_t number, const relay::LaneTurn& turn,
                                 relay::OutgoingBatch batch, relay::TakenBatches& told) {
  Lane& lane = lanes_.at(number);
  std::vector<TakenRow>& rows = lane.taken.rows;
  if (!rows.empty() && rows.back().kind != Kind::kRetry) lane.mark = lane.mark_if_taken;
  const auto late = std::count_if(rows.begin(), rows.end(),
                                  [](const TakenRow& row) { return row.kind == Kind::kLate; });
  if (late >= static_cast<std::ptrdiff_t>(turn.take)) {  // There may be more behind the last.
    const auto last = std::find_if(rows.rbegin(), rows.rend(),
                                   [](const TakenRow& row) { return row.kind == Kind::kLate; });
    lane.taken.late_end = last->seq;
  }
  const bool has_fresh = has_all_late(lane.progress, lane.taken) && (!turn.alone || late == 0);
  if (!has_fresh) {  // They come after all that are late.
    while (!rows.empty() && rows.back().kind == Kind::kFresh) {
      rows.pop_back();
      batch.records.pop_back();
    }
  }
  if (rows.empty()) {
    // While late rows are looked for in parts, nothing else is.
    const bool drained = lane.progress.draining.empty();
    lane.progress = advance(lane.progress, lane.taken, {}).progress;
    const bool drains = !drained || !lane.progress.draining.empty();
    if (drains) told.more = true;
    if (turn.alone && !drains) lane.attempts = 0;  // Somebody deleted it.
    return;
  }
  if (rows.back().kind != Kind::kRetry) {
    const std::uint32_t attempt = relay::attempt_of(lane.attempts++);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].kind == Kind::kRetry) continue;  // It has a count of its own.
      rows[i].attempt = attempt;
      batch.records[i].attempt = attempt;
    }
  }
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
  HAPAX_CHECK(session_.ask("SELECT \"{schema}\".relay_release($1, $2, $3, $4)", values));
  return Ok{};
}

// In a transaction of the level that relay_clean() needs, whatever the role's or the database's is.
Result<bool> OutboxSource::clean() {
  HAPAX_CHECK(session_.ask("BEGIN ISOLATION LEVEL READ COMMITTED", Values{}));
  if (options_.kept) {
    Values kept;
    // In seconds: before version 15 an interval holds no more than 24 days of milliseconds.
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(*options_.kept);
    kept.text(std::to_string(seconds.count()) + " seconds");
    const auto told = session_.ask("SELECT set_config('hapax.delivered_kept', $1, true)", kept);
    if (!told) {
      ignore(session_.ask("ROLLBACK", Values{}), "the session begins again");
      return told.error();
    }
  }
  // What is over in the inbox and among claims goes, too: whoever uses them may never think of it.
  enum Column { kCleaned, kForgotten, kColumns };
  const auto rows =
      session_.ask("SELECT \"{schema}\".relay_clean() AS cleaned, \"{schema}\".forget_expired(" +
                       std::to_string(kForgottenAtOnce) + ") AS forgotten",
                   Values{});
  auto ended = session_.ask(rows ? "COMMIT" : "ROLLBACK", Values{});
  if (!rows) return rows.error();
  HAPAX_CHECK(std::move(ended));
  return rows->number(0, kCleaned) > 0 || rows->number(0, kForgotten) >= kForgottenAtOnce;
}

Result<std::string> OutboxSource::uid() {
  HAPAX_TRY(const Rows rows, session_.ask("SELECT uid FROM \"{schema}\".outbox_uid", Values{}));
  if (rows.size() == 1) return rows.text(0, kOnly);
  return Error{Errc::kPreconditionFailed, "the outbox has no uid: its row was deleted"};
}

Result<relay::OutboxReport> OutboxSource::report() { return report_outbox(session_); }

Result<std::vector<relay::TracedEvent>> OutboxSource::trace(const std::string& id) {
  return trace_event(session_, id);
}

Result<std::vector<relay::DeadLetter>> OutboxSource::dead_letters(std::uint32_t most) {
  return list_dead_letters(session_, most);
}

Result<relay::Redriven> OutboxSource::redrive(std::span<const std::string> ids) {
  return redrive_dead_letters(session_, ids);
}

bool OutboxSource::wait(Duration most) { return sleep_.wait(most); }

void OutboxSource::wake() { ::eventfd_write(signs_.end.get(), 1); }

void OutboxSource::nudge() { ::eventfd_write(signs_.nudge.get(), 1); }

// They are pending, because a snapshot saw them run; when they end, everything since then would be
// looked through for rows of theirs.
Status OutboxSource::drop_bystanders() {
  Xids old;
  for (const auto& [number, lane] : lanes_) {
    for (const PendingTransaction& each : lane.progress.pending) {
      if (lane.progress.pos - each.since > kBystander) old.push_back(each.xid);
    }
  }
  if (old.empty() || steady_ms() < bystanders_at_ms_) return Ok{};
  std::sort(old.begin(), old.end());
  old.erase(std::unique(old.begin(), old.end()), old.end());
  Values values;
  values.text(text_of(old));
  HAPAX_TRY(const Rows rows, session_.ask("SELECT \"{schema}\".relay_bystanders($1)", values));
  if (rows.size() != 1) return Ok{};
  const Xids bystanders = xids_of(rows.at(0, kOnly));
  for (auto& [number, lane] : lanes_) {
    lane.progress.pending = without(std::move(lane.progress.pending), bystanders);
  }
  bystanders_at_ms_ = steady_ms() + kBystandersEveryMs;
  return Ok{};
}

std::int64_t OutboxSource::fresh_mark() {
  return static_cast<std::int64_t>(ports::draw_u64(entropy_) >> 1U) | 1;
}

OutboxSource::Lane* OutboxSource::find(const relay::Lease& lease) {
  const auto found = lanes_.find(lease.lane);
  return found == lanes_.end() || found->second.fence != lease.fence ? nullptr : &found->second;
}

}  // namespace hapax::postgres
