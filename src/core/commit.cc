#include "core/commit.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/format.h"
#include "base/mutant.h"
#include "base/only_frees.h"
#include "core/claims.h"
#include "core/show_text.h"
#include "core/text_bytes.h"
#include "core/transactions.h"

namespace hapax::core {

namespace {

using base::Mutant;
using base::mutant;

// --- one operation -----------------------------------------------------------------------------

struct RunOp {
  Turn& turn;
  const OpHashes& hashes;

  template <class PlainOp>
  Verdict operator()(const PlainOp& op) const {
    if constexpr (requires { run(turn, op, AppendHashes{}); }) {
      return run(turn, op, AppendHashes{hashes.key, hashes.content, hashes.group});
    } else if constexpr (requires { run(turn, op, ClaimHashes{}); }) {
      return run(turn, op, ClaimHashes{hashes.key, hashes.content});
    } else if constexpr (requires { run(turn, op, RegisterHash{}); }) {
      return run(turn, op, RegisterHash{hashes.key});
    } else {
      return run(turn, op);
    }
  }
  Verdict operator()(const End&) const {
    return Refused{{Errc::kInvalidArgument, "the end of a transaction stands alone in its commit"}};
  }
};

Verdict run_op(Turn& turn, const Op& op, const OpHashes& hashes) {
  if (auto error = check(op)) return Refused{*std::move(error)};
  return std::visit(RunOp{turn, hashes}, op);
}

bool is_register_op(const Op& op) {
  return std::visit(
      [](const auto& plain) {
        return requires { plain.name; };
      },
      op);
}

// Asks for the memory that the lookups of the next operations will need, so that they wait for it
// together and not one after the other. Not too far ahead: the cache would forget the first ones.
void warm_up(const State& state, std::span<const Op> ops, std::span<const OpHashes> hashes,
             std::size_t next) {
  constexpr std::size_t kWorthIt = 8;
  constexpr std::size_t kAtOnce = 32;
  if (ops.size() < kWorthIt || next % kAtOnce != 0) return;
  ops = ops.subspan(next);
  hashes = hashes.subspan(next);
  const std::size_t count = std::min(ops.size(), kAtOnce);
  const Stream* stream = nullptr;
  const auto each = [&](const auto& ask_ids, const auto& ask_claims, const auto& ask_registers) {
    for (std::size_t i = 0; i < count; ++i) {
      if (const auto* append = std::get_if<Append>(&ops[i])) {
        if (!append->id) continue;
        if (stream == nullptr || stream->name != append->stream) {
          stream = state.find_stream(append->stream);
        }
        if (stream == nullptr) continue;
        ask_ids(scoped_id(*stream, {hashes[i].key, hashes[i].content, hashes[i].group}));
      } else if (std::holds_alternative<Claim>(ops[i]) || std::holds_alternative<Settle>(ops[i])) {
        ask_claims(hashes[i].key);
      } else if (is_register_op(ops[i])) {
        ask_registers(hashes[i].key);
      }
    }
  };
  each([&](base::Hash128 hash) { state.ids.prefetch(hash); },
       [&](base::Hash128 hash) {
         state.settled.prefetch(hash);
         state.open_claims.prefetch(hash);
       },
       [&](base::Hash128 hash) { state.registers.prefetch(hash); });
  each([&](base::Hash128 hash) { state.ids.prefetch_entry(hash); },
       [&](base::Hash128 hash) {
         state.settled.prefetch_entry(hash);
         state.open_claims.prefetch_slot(hash);
       },
       [&](base::Hash128 hash) { state.registers.prefetch_slot(hash); });
}

// Beside it stand audit lines.
bool only_frees(const Commit& commit) {
  return std::all_of(commit.ops.begin(), commit.ops.end(), [](const Op& op) {
    const auto* append = std::get_if<Append>(&op);
    return append != nullptr ? is_the_stores(append->stream) : base::only_frees(op);
  });
}

// --- many --------------------------------------------------------------------------------------

// I15: all or nothing. The first verdict that does not hold undoes what came before it.
bool run_atomic(Turn& turn, std::span<const Op> ops, std::span<const OpHashes> hashes,
                std::vector<Verdict>& verdicts) {
  const Turn::Mark mark = turn.mark();
  const std::size_t first = verdicts.size();
  for (std::size_t i = 0; i < ops.size(); ++i) {
    warm_up(turn.state(), ops, hashes, i);
    verdicts.push_back(run_op(turn, ops[i], hashes[i]));
    if (turn.tells_too_much()) {
      verdicts.back() =
          Refused{{Errc::kLimitExceeded,
                   base::format("the commit answers with more than {} bytes; use fewer operations",
                                limits::kAnswerBytesMax)}};
    }
    const bool duplicate = std::holds_alternative<Duplicate>(verdicts.back());
    if (holds(verdicts.back()) && !(duplicate && mutant(Mutant::kDropBatchOnDuplicate))) continue;
    turn.roll_back(mark);
    // K6: what a claim found out stays found out.
    const auto* claim = std::get_if<Claim>(&ops[i]);
    const bool unknown = std::holds_alternative<UnknownOutcome>(verdicts.back());
    if (claim != nullptr && unknown) note_lapse(turn, *claim, hashes[i].key);
    for (std::size_t j = first; j + 1 < verdicts.size(); ++j) verdicts[j] = NotApplied{};
    verdicts.resize(first + ops.size(), NotApplied{});
    return false;
  }
  return true;
}

Refused no_place(const char* where) {
  return {{Errc::kUnavailable,
           std::string(where) + " is full with what came before this operation, of which nothing "
                                "happened; send it again"}};
}

Verdict run_alone(Turn& turn, const Op& op, const OpHashes& hashes) {
  const Turn::Mark mark = turn.mark();
  Verdict verdict = run_op(turn, op, hashes);
  // Copies of large records (dead letters) and stored results are not known beforehand. They must
  // not cost the others their place, who may be somebody else's.
  if (turn.take_overflow()) {
    verdict = no_place("the batch of the journal");
  } else if (turn.tells_too_much()) {
    verdict = no_place("the answer");
  }
  // An operation that is refused half way (a dead letter that cannot be read) leaves nothing.
  if (std::holds_alternative<Refused>(verdict)) turn.roll_back(mark);
  return verdict;
}

struct Noted {
  Verdict act;
  Verdict note = NotApplied{};
};

// A13: an act that is noted holds with its note or not at all. A7: what it freed is free for the
// note, and one that only frees has the reserve. The note's own verdict says which of the two was
// refused.
Noted run_noted(Turn& turn, const CommitRequest& request, std::size_t act, std::size_t note) {
  const std::span<const Op> ops = request.commit.ops;
  const Turn::Mark mark = turn.mark();
  const std::uint64_t reserve = turn.reserve();
  turn.use_reserve(base::only_frees(ops[act]) ? kAuditReserve : 0);
  Noted told{run_alone(turn, ops[act], request.hashes[act])};
  if (holds(told.act)) {
    told.note = run_alone(turn, ops[note], request.hashes[note]);
    if (!holds(told.note)) {
      turn.roll_back(mark);
      told.act = told.note;
    }
  }
  turn.use_reserve(reserve);
  return told;
}

void run_each(Turn& turn, const CommitRequest& request, std::vector<Verdict>& verdicts) {
  const std::span<const Op> ops = request.commit.ops;
  const std::span<const std::size_t> noted = request.commit.noted;
  const std::size_t own = ops.size() - noted.size();
  verdicts.resize(ops.size(), NotApplied{});
  std::size_t notes = 0;
  for (std::size_t i = 0; i < own; ++i) {
    warm_up(turn.state(), ops, request.hashes, i);
    if (notes == noted.size() || noted[notes] != i) {
      verdicts[i] = run_alone(turn, ops[i], request.hashes[i]);
      continue;
    }
    const std::size_t note = own + notes++;
    Noted told = run_noted(turn, request, i, note);
    verdicts[i] = std::move(told.act);
    verdicts[note] = std::move(told.note);
  }
}

// --- transactions ------------------------------------------------------------------------------

Error not_open(std::string_view name, const char* why) {
  return Error{Errc::kPreconditionFailed,
               "transaction '" + std::string(name) + "' " + why + "; begin a new one"};
}

// They end or time out: waiting helps.
std::optional<Error> check_number(const State& state, Tenant& tenant) {
  const std::uint64_t all = state.transactions_open;
  constexpr std::uint64_t kMax = limits::kTransactionsOpenMax;
  if (may_have_one_more(tenant.share.transactions_max, tenant.transactions_open, all, kMax)) {
    return std::nullopt;
  }
  const bool store = all >= kMax;
  if (!store) ++tenant.refused;
  return Error{Errc::kRateLimited, base::format("{} has {} open transactions, as many as it may{}; "
                                                "end one, or wait until one ends or times out",
                                                store ? "the store" : "this tenant",
                                                store ? all : tenant.transactions_open,
                                                store ? "" : " (transactions_max)")};
}

// A stream of the same name that was made later is another one: see DeleteStream.
std::optional<Error> check_stream_is_the_same(const State& state, const Op& op, StreamUid staged) {
  const auto* append = std::get_if<Append>(&op);
  if (append == nullptr || staged == StreamUid{0}) return std::nullopt;
  const Stream* stream = state.find_stream(append->stream);
  if (stream == nullptr || stream->uid == staged) return std::nullopt;
  return Error{Errc::kNotFound, "the stream '" + std::string(append->stream) +
                                    "' that this append was staged for was deleted; the one of "
                                    "that name is another one, made later"};
}

// T5: what is staged is done to the stream it was staged for, or not at all.
bool refuse_other_streams(Turn& turn, const StagedOps& all, std::vector<Verdict>& verdicts) {
  for (std::size_t i = 0; i < all.ops.size(); ++i) {
    auto error = check_stream_is_the_same(turn.state(), all.ops[i], all.streams[i]);
    if (!error) continue;
    const std::size_t first = verdicts.size();
    verdicts.resize(first + all.ops.size(), NotApplied{});
    verdicts[first + i] = Refused{*std::move(error)};
    return true;
  }
  return false;
}

bool commit_staged(Turn& turn, const Transaction& transaction, std::vector<Verdict>& verdicts) {
  std::vector<StagedOps> decoded;
  StagedOps all;
  for (const std::string& bytes : transaction.staged) {
    auto staged = decode_staged(bytes);
    HAPAX_ASSERT(staged.ok(), "staged operations were encoded by us");
    StagedOps& kept = decoded.emplace_back(*std::move(staged));  // Keeps the headers alive.
    all.ops.insert(all.ops.end(), kept.ops.begin(), kept.ops.end());
    all.hashes.insert(all.hashes.end(), kept.hashes.begin(), kept.hashes.end());
    all.streams.insert(all.streams.end(), kept.streams.begin(), kept.streams.end());
  }
  if (refuse_other_streams(turn, all, verdicts)) return false;
  return run_atomic(turn, all.ops, all.hashes, verdicts);
}

// T1: only the holder of the current epoch ends a transaction; a delayed end of an older one of
// the same name finds a higher epoch and changes nothing.
std::optional<Verdict> refuse_end(Turn& turn, const Transaction* transaction, const End& op) {
  const bool is_current = transaction != nullptr && transaction->epoch == op.epoch;
  if (!is_current && !(mutant(Mutant::kLateEndCommits) && transaction != nullptr)) {
    turn.count_fenced();
    return Fenced{transaction == nullptr ? 0 : transaction->epoch.value, op.epoch.value};
  }
  // T2: one that timed out is over, whether collect() has come by or not: a fact that ends it would
  // find it closed when it is replayed.
  if (transaction->open && transaction->ends_at > turn.now()) return std::nullopt;
  const bool wanted = op.finish == Finish::kCommit;
  if (transaction->committed == wanted) return Done{};  // A repeat whose answer was lost.
  return Refused{not_open(op.transaction, wanted ? "was aborted or timed out" : "was committed")};
}

Answer run_end(Turn& turn, const End& op) {
  Answer answer;
  answer.time = turn.now();
  const Transaction* transaction = find_transaction(turn.state(), op.transaction, turn.now());
  if (auto refusal = refuse_end(turn, transaction, op)) {
    answer.committed = holds(*refusal);
    answer.verdicts.push_back(*std::move(refusal));
    return answer;
  }
  answer.verdicts.emplace_back(Done{});
  if (op.finish == Finish::kCommit && !commit_staged(turn, *transaction, answer.verdicts)) {
    answer.verdicts.front() = NotApplied{};
    return answer;
  }
  turn.emit(TransactionEnded{op.transaction, op.finish == Finish::kCommit});
  answer.committed = true;
  return answer;
}

std::vector<StreamUid> streams_of(const State& state, std::span<const Op> ops) {
  std::vector<StreamUid> streams(ops.size(), StreamUid{0});
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const auto* append = std::get_if<Append>(&ops[i]);
    const Stream* stream = append == nullptr ? nullptr : state.find_stream(append->stream);
    if (stream != nullptr) streams[i] = stream->uid;
  }
  return streams;
}

Executed stage(Turn& turn, const CommitRequest& request) {
  const TransactionRef& ref = *request.commit.transaction;
  const Transaction* transaction = find_transaction(turn.state(), ref.name, turn.now());
  if (transaction == nullptr || transaction->epoch != ref.epoch) {
    turn.count_fenced();
    const std::uint64_t current = transaction == nullptr ? 0 : transaction->epoch.value;
    Answer fenced{false, false, turn.now(), {}};
    fenced.verdicts.assign(request.commit.ops.size(), Fenced{current, ref.epoch.value});
    return fenced;
  }
  if (!transaction->open) return not_open(ref.name, "is over");
  if (transaction->ends_at <= turn.now()) return not_open(ref.name, "timed out");
  for (const Op& op : request.commit.ops) {
    if (auto error = check(op)) return *std::move(error);
  }
  std::string bytes;
  const std::vector<StreamUid> streams = streams_of(turn.state(), request.commit.ops);
  if (auto error = encode_staged(request.commit.ops, request.hashes, streams, bytes))
    return *std::move(error);
  if (transaction->staged_bytes + bytes.size() > limits::kTransactionBytesMax) {
    return limit_error("transaction '" + std::string(ref.name) + "'",
                       transaction->staged_bytes + bytes.size(), limits::kTransactionBytesMax);
  }
  // T4: the end of a transaction is one step of the store, as a commit is.
  const std::uint64_t ops = transaction->staged_ops + request.commit.ops.size();
  if (ops > limits::kCommitOpsMax) {
    return limit_error("number of operations of transaction '" + std::string(ref.name) + "'", ops,
                       limits::kCommitOpsMax);
  }
  Tenant& tenant = turn.state().tenants.of(ref.name);
  if (auto error = check_memory(turn.state(), tenant, bytes.size())) return *std::move(error);
  turn.emit(TransactionStaged{ref.name, bytes});
  Answer answer{true, false, turn.now(), {}};
  answer.verdicts.assign(request.commit.ops.size(), Staged{});
  return answer;
}

// --- the whole -----------------------------------------------------------------------------------

Executed run_commit(Turn& turn, const CommitRequest& request) {
  const Commit& commit = request.commit;
  if (commit.transaction) return stage(turn, request);
  if (commit.ops.size() == 1) {
    if (const auto* end = std::get_if<End>(&commit.ops.front())) {
      if (auto error = check(commit.ops.front())) return *std::move(error);
      return run_end(turn, *end);
    }
  }
  Answer answer{true, false, turn.now(), {}};
  answer.verdicts.reserve(commit.ops.size());
  if (commit.mode == Mode::kEach) {
    run_each(turn, request, answer.verdicts);
  } else {
    answer.committed = run_atomic(turn, commit.ops, request.hashes, answer.verdicts);
  }
  return answer;
}

std::optional<Executed> find_repeat(const Turn& turn, const CommitRequest& request) {
  const SettledEntry* known = turn.state().settled.find(request.id, turn.now());
  if (known == nullptr || known->forgotten != 0) return std::nullopt;
  if (known->fingerprint != request.content) {
    return Error{Errc::kConflict, "the id " + shown(*request.commit.id) +
                                      " (Idempotency-Key, or id of a commit) was used for other "
                                      "operations (fingerprint " +
                                      known->fingerprint.hex() + ", now " + request.content.hex() +
                                      "); nothing happened. Use a new id."};
  }
  return Repeat{known->where};
}

bool is_for_later(const Verdict& verdict) {
  const auto* refused = std::get_if<Refused>(&verdict);
  return refused != nullptr && retry_of(refused->error.code) == Retry::kLater;
}

// A worker that finds nothing asks again, and may be handed something then. Were the empty answer
// remembered, idle workers would fill the memory with it.
bool tells_nothing(const Answer& answer) {
  const auto empty = [](const Verdict& verdict) {
    const auto* received = std::get_if<Received>(&verdict);
    return received != nullptr && received->deliveries.empty();
  };
  return !answer.verdicts.empty() &&
         std::all_of(answer.verdicts.begin(), answer.verdicts.end(), empty);
}

}  // namespace

void Turn::charge_commit(std::string_view id, base::Hash128 hash) {
  const std::optional<SettledEntry> entry = find_settled(state_, hash, now_);
  HAPAX_ASSERT(entry.has_value(), "an answered commit is remembered");
  charge_settled(state_, state_.tenants.of(id), *entry, now_, &undo_);
}

Verdict run(Turn& turn, const Begin& op) {
  const Transaction* known = find_transaction(turn.state(), op.transaction, turn.now());
  const bool opens = known == nullptr || !known->open;
  Tenant& tenant = turn.state().tenants.of(op.transaction);
  if (auto error = opens ? check_number(turn.state(), tenant) : std::nullopt) {
    return Refused{*std::move(error)};
  }
  const std::uint64_t more = known == nullptr ? kNodeBytes + op.transaction.size() : 0;
  if (auto error = check_growth(turn.state(), tenant, 0, more)) {
    return Refused{*std::move(error)};
  }
  const Epoch epoch = turn.state().next_epoch;
  const Time expires_at = turn.now() + op.timeout;
  turn.emit(TransactionBegun{op.transaction, epoch, expires_at});
  return Began{epoch, expires_at};
}

// Of an answer that is kept under the id of its commit.
constexpr std::size_t kFewWords = 4'096;

void to_wall_times(Answer& answer, const Moment& moment) {
  for (Verdict& verdict : answer.verdicts) {
    if (auto* held = std::get_if<Held>(&verdict))
      held->expires_at = moment.wall_at(held->expires_at);
  }
}

namespace {

bool has_ends(const Answer& answer) {
  return std::any_of(answer.verdicts.begin(), answer.verdicts.end(), [](const Verdict& verdict) {
    const auto* held = std::get_if<Held>(&verdict);
    return held != nullptr && held->expires_at != Time::max();
  });
}

// W6: later the clocks are elsewhere, and would say other times.
std::string kept_answer(const Answer& answer, const Moment& moment) {
  std::string bytes;
  if (!has_ends(answer)) {
    encode_answer(answer, bytes);
    return bytes;
  }
  Answer told = answer;
  to_wall_times(told, moment);
  encode_answer(told, bytes);
  return bytes;
}

}  // namespace

Executed execute(Turn& turn, const CommitRequest& request) {
  const bool has_id = request.commit.id.has_value();
  if (has_id) {
    if (auto repeat = find_repeat(turn, request)) return *std::move(repeat);
    // Its answer would be remembered. Without an id the same operations may still fit.
    Tenant& tenant = turn.state().tenants.of(*request.commit.id);
    if (auto error = check_memory(turn.state(), tenant, sizeof(SettledEntry))) {
      return *std::move(error);
    }
  }
  turn.use(request.commit.detail);
  turn.use_reserve(only_frees(request.commit) ? kAuditReserve : 0);
  const Turn::Mark mark = turn.mark();
  Executed executed = run_commit(turn, request);
  const auto* answer = std::get_if<Answer>(&executed);
  if (has_id && answer != nullptr && answer->committed && !tells_nothing(*answer)) {
    // If nothing happened and something may later, the same commit is a new try. Else it would be
    // refused for as long as its id is remembered, however much room there is.
    const bool wrote = turn.mark().batch != mark.batch;
    const std::vector<Verdict>& all = answer->verdicts;
    if (!wrote && std::any_of(all.begin(), all.end(), is_for_later)) return executed;
    const std::string bytes = kept_answer(*answer, turn.moment());
    // A7. A few words are kept in any case: whoever has no room left must be able to make some.
    Tenant& tenant = turn.state().tenants.of(*request.commit.id);
    if (auto full = bytes.size() > kFewWords ? check_storage(tenant, bytes.size()) : std::nullopt) {
      turn.roll_back(mark);
      return *std::move(full);
    }
    turn.emit(CommitAnswered{request.id, request.content, turn.state().next_fence,
                             request.commit.id_window, bytes});
    turn.charge_commit(*request.commit.id, request.id);
  }
  return executed;
}

}  // namespace hapax::core
