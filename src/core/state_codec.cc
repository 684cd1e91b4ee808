#include "core/state_codec.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/format.h"
#include "core/claims.h"
#include "core/commit.h"
#include "core/registers.h"
#include "core/state_parts.h"
#include "core/text_bytes.h"
#include "core/transactions.h"

namespace hapax::core {

template <>
inline constexpr std::uint8_t kEnumMax<ClaimState> = 3;

template <class Io, Is<OpenClaim> F>
void fields(Io& io, F& f) {
  std::string_view scope = f.scope();
  std::string_view key = f.key();
  std::string_view owner = f.owner();
  std::string_view reason = f.reason();
  io.all(f.state, scope, key, f.fingerprint, owner, reason, f.fence, f.attempts, f.since,
         f.lease_until, f.retention, f.tombstone);
  io.since(2, f.on_lapse, f.former);
  if constexpr (!std::is_const_v<F>) f.words = Words<4>({scope, key, owner, reason});
}
template <class Io, Is<Position> F>
void fields(Io& io, F& f) {
  io.all(f.value, f.epoch);
}
template <class Io, Is<Register> F>
void fields(Io& io, F& f) {
  std::string_view name = f.name();
  std::string_view value = f.value();
  io.all(name, value, f.version, f.at, f.expires_at);
  if constexpr (!std::is_const_v<F>) f.words = Words<2>({name, value});
}
template <class Io, Is<Transaction> F>
void fields(Io& io, F& f) {
  io.all(f.epoch, f.open, f.committed, f.ends_at, f.staged);
}

namespace {

// --- claims --------------------------------------------------------------------------------------

void spell(const ClaimsImage& image, Spelling& out) {
  std::vector<std::pair<base::Hash128, const OpenClaim*>> staying;
  staying.reserve(image.claims.size());
  image.claims.for_each([&](base::Hash128 hash, const auto& claim) {
    if (claim->forgotten_at() > out.over_at) staying.emplace_back(hash, claim.get());
  });
  std::sort(staying.begin(), staying.end());  // Same state, same bytes.
  out.put(std::uint64_t{staying.size()});
  for (const auto& [hash, claim] : staying) out.put.all(hash, *claim);
}

Status decode_claims(Reading& in, State& into) {
  in.begin("list of open claims", 1);
  in.get(into.next_fence);
  if (into.next_fence == Fence{0} || into.next_fence.value >= kNumberEnd) in.get.refuse();
  const std::uint64_t count = in.count();
  base::Hash128 before;
  for (std::uint64_t i = 0; i < count; ++i) {
    in.begin("open claim", i + 1);
    base::Hash128 hash;
    OpenClaim claim;
    in.get.all(hash, claim);
    if (!in.get.ok() || (i > 0 && hash <= before)) return in.unreadable();
    if (claim.state == ClaimState::kCompleted) return in.broken("is completed, thus not open");
    if (claim.fence == Fence{0} || claim.fence >= into.next_fence) {
      return in.broken(base::format("has fence {}; the next one is {}", claim.fence.value,
                                    into.next_fence.value));
    }
    if (!is_plausible(claim.since) || !is_plausible(claim.lease_until)) {
      return in.broken("has a lease of an impossible time");
    }
    if (into.open_claims_end.contains({claim.forgotten_at(), claim.fence})) {
      return in.broken("has the fence of another one");
    }
    add_open_claim(into, hash, std::move(claim));
    before = hash;
  }
  if (!in.get.ok()) return in.unreadable();
  return Ok{};
}

// --- registers -----------------------------------------------------------------------------------

void spell(const RegistersImage& image, Spelling& out) {
  std::vector<std::pair<base::Hash128, const Register*>> staying;
  staying.reserve(image.registers.size());
  image.registers.for_each([&](base::Hash128 hash, const auto& set) {
    if (set->expires_at > out.over_at) staying.emplace_back(hash, set.get());
  });
  std::sort(staying.begin(), staying.end());  // Same state, same bytes.
  out.put(std::uint64_t{staying.size()});
  for (const auto& [hash, set] : staying) out.put.all(hash, *set);
}

std::string wrong_with(const Register& set, const State& state) {
  HybridTime at = set.at;
  at.node = 0;
  if (at > state.hybrid) return "was set in the future";
  if (set.version.value >= kNumberEnd) return "has an impossible version";
  if (set.stays()) return "";
  if (!is_plausible(set.expires_at)) return "goes at an impossible time";
  // H3
  return set.version > state.version_floor ? "may go, and its version could come again" : "";
}

Status decode_registers(Reading& in, State& into) {
  in.begin("list of registers", 1);
  in.get.all(into.hybrid, into.version_floor);
  if (into.hybrid.node != 0 || !is_plausible(time_from_ms(into.hybrid.wall_ms))) in.get.refuse();
  if (into.version_floor.value >= kNumberEnd) in.get.refuse();
  const std::uint64_t count = in.count();
  base::Hash128 before;
  for (std::uint64_t i = 0; i < count; ++i) {
    in.begin("register", i + 1);
    base::Hash128 hash;
    Register set;
    in.get.all(hash, set);
    if (!in.get.ok() || (i > 0 && hash <= before)) return in.unreadable();
    if (const std::string wrong = wrong_with(set, into); !wrong.empty()) {
      return in.broken("'" + std::string(set.name()) + "', " + wrong);
    }
    add_register(into, hash, std::move(set));
    before = hash;
  }
  if (!in.get.ok()) return in.unreadable();
  return Ok{};
}

void spell(const std::string& text, Spelling& out) { out.put.last(text); }

// --- by name -------------------------------------------------------------------------------------

void spell(const PositionsImage& image, Spelling& out) {
  out.put(std::uint64_t{image.positions.size()});
  image.positions.for_each(
      [&out](const std::string& name, const Position& at) { out.put.all(name, at); });
}

// `check(name, value)` answers what is wrong with it, or ""; then `keep(name, value)`.
template <class Value, class Check, class Keep>
Status decode_named(Reading& in, std::string_view kind, Check check, Keep keep) {
  const std::uint64_t count = in.count();
  std::string before;
  for (std::uint64_t i = 0; i < count; ++i) {
    in.begin(kind, i + 1);
    std::string name;
    Value value;
    in.get.all(name, value);
    if (!in.get.ok() || (i > 0 && name <= before)) return in.unreadable();
    if (const std::string wrong = check(name, value); !wrong.empty()) {
      return in.broken("'" + name + "', " + wrong);
    }
    before = name;
    keep(std::move(name), std::move(value));
  }
  if (!in.get.ok()) return in.unreadable();
  return Ok{};
}

// A transaction that nobody ended in time is written as what collect() makes of it, and a forgotten
// one not at all.
void encode_transactions(const State& state, Time over_at, FieldWriter& put) {
  auto transactions = sorted(state.transactions);
  std::erase_if(transactions, [over_at](const auto& element) {
    return element.second->forgotten_at() <= over_at;
  });
  put.all(state.next_epoch, std::uint64_t{transactions.size()});
  for (const auto& [name, transaction] : transactions) {
    put(name);
    if (transaction->open && transaction->ends_at <= over_at) {
      Transaction closed;
      closed.epoch = transaction->epoch;
      closed.ends_at = transaction->ends_at;
      put(closed);
    } else {
      put(*transaction);
    }
  }
}

std::string wrong_with(const Transaction& transaction, Epoch next) {
  if (transaction.epoch >= next) {
    return base::format("has epoch {}; the next one is {}", transaction.epoch.value, next.value);
  }
  if (!is_plausible(transaction.ends_at)) return "ends at an impossible time";
  if (transaction.open && transaction.committed) return "is open and committed";
  if (!transaction.open && !transaction.staged.empty()) return "is over and has operations";
  for (const std::string& ops : transaction.staged) {
    if (const auto staged = decode_staged(ops); !staged) return staged.error().detail;
  }
  return {};
}

void encode_rest(State& state, Time over_at, Writing& out) {
  out.share(PositionsImage{state.positions.snapshot()});
  out.put.all(state.hybrid, state.version_floor);
  out.share(RegistersImage{state.registers.snapshot()});
  encode_transactions(state, over_at, out.put);
  out.put.all(state.gaps, state.records_lost, state.results_lost);
}

Status decode_rest(Reading& in, State& into) {
  in.begin("list of positions", 1);
  HAPAX_CHECK(decode_named<Position>(
      in, "position",
      [&into](const std::string& name, const Position& position) {
        into.grow(into.tenants.of(name), kNodeBytes + name.size() + position.value.size());
        return std::string();
      },
      [&into](std::string name, Position at) {
        into.positions.set(std::move(name), std::move(at));
      }));
  HAPAX_CHECK(decode_registers(in, into));
  in.begin("list of transactions", 1);
  in.get(into.next_epoch);
  if (into.next_epoch.value >= kNumberEnd) in.get.refuse();
  HAPAX_CHECK(decode_named<Transaction>(
      in, "transaction",
      [&into](const std::string&, Transaction& transaction) {
        for (const auto& ops : transaction.staged) {
          transaction.staged_bytes += ops.size();
          transaction.staged_ops += staged_count(ops);
        }
        return wrong_with(transaction, into.next_epoch);
      },
      [&into](const std::string& name, Transaction transaction) {
        add_transaction(into, name, std::move(transaction));
      }));
  in.begin("number of gaps", 1);
  in.get.all(into.gaps, into.records_lost, into.results_lost);
  if (!in.get.ok()) return in.unreadable();
  return Ok{};
}

// --- bytes in segments ---------------------------------------------------------------------------

using BySegment = std::map<std::uint32_t, std::uint64_t>;

void encode_bytes(const BySegment& bytes, FieldWriter& put) {
  put(std::uint64_t{bytes.size()});
  std::uint32_t before = 0;
  for (const auto& [segment, number] : bytes) {
    put.all(segment - before, number);
    before = segment;
  }
}

Result<BySegment> decode_bytes(Reading& in) {
  BySegment bytes;
  const std::uint64_t count = in.count();
  std::uint32_t segment = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint32_t distance = 0;
    std::uint64_t number = 0;
    in.get.all(distance, number);
    segment += distance;
    // More than a segment's offsets can tell apart would overflow the sum.
    const bool fits = number > 0 && number < std::uint64_t{1} << 48;
    if (!in.get.ok() || distance == 0 || segment < distance || !fits) {
      return in.unreadable();
    }
    bytes.emplace_hint(bytes.end(), segment, number);
  }
  if (!in.get.ok()) return in.unreadable();
  return bytes;
}

void encode_results(const State& state, Time over_at, Writing& out) {
  const auto kept = state.results_end.upper_bound(over_at);
  for (auto slice = state.results_end.begin(); slice != kept; ++slice) {
    for (const auto& [segment, bytes] : slice->second) out.waiting.add(segment, bytes);
  }
  out.put(static_cast<std::uint64_t>(std::distance(kept, state.results_end.end())));
  for (auto slice = kept; slice != state.results_end.end(); ++slice) {
    out.put(slice->first);
    encode_bytes(slice->second, out.put);
    for (const auto& [segment, bytes] : slice->second) out.kept.add(segment, bytes);
  }
}

Status decode_results(Reading& in, State& into) {
  in.begin("list of results", 1);
  const std::uint64_t count = in.count();
  for (std::uint64_t i = 0; i < count; ++i) {
    in.begin("slice of results", i + 1);
    Time end{};
    in.get(end);
    HAPAX_TRY(BySegment bytes, decode_bytes(in));
    const bool ascends = into.results_end.empty() || end > into.results_end.rbegin()->first;
    if (!ascends || bytes.empty()) return in.unreadable();
    for (const auto& [segment, number] : bytes) in.live.add(segment, number);
    into.results_end.emplace_hint(into.results_end.end(), end, std::move(bytes));
  }
  if (!in.get.ok()) return in.unreadable();
  return Ok{};
}

void spell(const LiveImage& image, Spelling& out) {
  for (const auto& [segment, bytes] : image.kept) out.kept.add(segment, bytes);
  const BySegment& kept = out.kept.by_segment();
  BySegment all = kept;
  for (const auto& [segment, bytes] : image.waiting) all[segment] += bytes;
  HAPAX_ASSERT(all == image.live, "live bytes are those of the runs and results");
  encode_bytes(kept, out.put);
}

Status decode_live(Reading& in, State& into) {
  in.begin("list of live bytes", 1);
  HAPAX_TRY(const BySegment counted, decode_bytes(in));
  into.live_bytes = in.live.by_segment();
  if (counted == into.live_bytes) return Ok{};
  for (const auto& [segment, bytes] : into.live_bytes) {
    const auto found = counted.find(segment);
    const std::uint64_t number = found == counted.end() ? 0 : found->second;
    if (number == bytes) continue;
    return in.broken(base::format("counts {} bytes in segment {}; its runs and results have {}",
                                  number, segment, bytes));
  }
  return in.broken("counts bytes in a segment where no run and no result lies");
}

// --- the whole -----------------------------------------------------------------------------------

// What is over at `over_at` is left out.
StateImage image_at(State& state, Time over_at) {
  StateImage image;
  image.over_at = over_at;
  Writing writing{image};
  writing.put(kFieldsVersion);
  encode_streams(state, writing);
  encode_consumers(state, writing);
  writing.put(state.next_fence);
  writing.share(ClaimsImage{state.open_claims.snapshot()});
  encode_rest(state, over_at, writing);
  encode_results(state, over_at, writing);
  writing.share(
      LiveImage{writing.kept.by_segment(), writing.waiting.by_segment(), state.live_bytes});
  return image;
}

template <class Entry>
void append_living(const Remembered<Entry>& remembered, Time now, std::string& out) {
  std::vector<Entry> entries;
  remembered.for_each(now, [&entries](const Entry& entry) { entries.push_back(entry); });
  std::sort(entries.begin(), entries.end(),
            [](const Entry& one, const Entry& other) { return one.hash() < other.hash(); });
  FieldWriter{out}(std::uint64_t{entries.size()});
  for (const Entry& entry : entries) {
    out.append(reinterpret_cast<const char*>(&entry), sizeof entry);
  }
}

}  // namespace

StateImage image_of(State& state) { return image_at(state, Time::min()); }

void encode_image(const StateImage& image, std::string& out) {
  Spelling spelling{FieldWriter(out), image.over_at};
  for (const StateImage::Part& part : image.parts) {
    std::visit([&spelling](const auto& shared) { spell(shared, spelling); }, part);
  }
}

void encode_state(State& state, std::string& out) { encode_image(image_of(state), out); }

namespace {

enum class FirstToken : std::uint8_t { kAbsent, kPresent };

Result<std::uint64_t> decode_version(Reading& in) {
  std::uint64_t version = 0;
  in.begin("version", 0);
  in.get(version);
  if (!in.get.ok()) return in.unreadable();
  if (version == 0 || version > kFieldsVersion) {
    return Error{Errc::kFormatVersion,
                 base::format("the state has format {}; this program knows formats 1 to {}",
                              version, kFieldsVersion)};
  }
  return version;
}

Status decode_parts(std::string_view bytes, FirstToken first_token, State& into) {
  HAPAX_ASSERT(into.streams.empty() && into.text_bytes == 0, "a new State is filled");
  Reading in(bytes);
  HAPAX_TRY(const std::uint64_t version, decode_version(in));
  in.get.set_version(version);
  in.has_first_token = first_token == FirstToken::kPresent;
  HAPAX_CHECK(decode_streams(in, into));
  HAPAX_CHECK(decode_consumers(in, into));
  HAPAX_CHECK(decode_claims(in, into));
  HAPAX_CHECK(decode_rest(in, into));
  HAPAX_CHECK(decode_results(in, into));
  HAPAX_CHECK(decode_live(in, into));
  if (!in.get.finished()) {
    return in.broken(base::format("is followed by {} bytes too many", in.get.left()));
  }
  return Ok{};
}

// The released version 1 has no first_token. Programs before version 2 wrote it and still called
// that version 1: such a state does not parse without it, because every count, order and reference
// is checked.
FirstToken first_token_of_version_1(std::string_view bytes) {
  State probe(4);
  return decode_parts(bytes, FirstToken::kAbsent, probe) ? FirstToken::kAbsent
                                                         : FirstToken::kPresent;
}

}  // namespace

Status decode_state(std::string_view bytes, State& into) {
  Reading in(bytes);
  HAPAX_TRY(const std::uint64_t version, decode_version(in));
  const FirstToken first_token =
      version == 1 ? first_token_of_version_1(bytes) : FirstToken::kPresent;
  return decode_parts(bytes, first_token, into);
}

std::string canonical(State& state, Time now) {
  std::string out;
  encode_image(image_at(state, now), out);
  append_living(state.ids, now, out);
  append_living(state.settled, now, out);
  return out;
}

}  // namespace hapax::core
