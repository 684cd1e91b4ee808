#include "access/tenant_store.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <type_traits>
#include <utility>
#include <variant>

namespace hapax::access {

namespace {

// --- on the way back

void take_out(const TenantNames& names, Answer& answer) {
  for (Verdict& verdict : answer.verdicts) names.clean_names(verdict);
}
void take_out(const TenantNames& names, Records& records) {
  for (Record& record : records.records) {
    if (record.lineage) names.clean(record.lineage->stream);
  }
}
void take_out(const TenantNames& names, StreamStats& stats) {
  stats.stream = std::string(names.outside(stats.stream));
}
void take_out(const TenantNames& names, std::vector<std::string>& streams) {
  names.keep_own(streams);
}
void take_out(const TenantNames& names, RegisterPage& page) { names.keep_own(page.names); }
void take_out(const TenantNames& names, StreamPage& page) {
  std::erase_if(page.streams, [&](const StreamStats& one) { return !names.is_ours(one.stream); });
  for (StreamStats& one : page.streams) take_out(names, one);
}
void take_out(const TenantNames&, UnackedPage&) {}  // It has no names of the store.
template <class Value>
void take_out(const TenantNames&, std::optional<Value>&) {}  // It has no names of the store.

template <class Value>
Result<Value> told(const TenantNames& names, Result<Value> value) {
  if (value) {
    take_out(names, *value);
    return value;
  }
  Error error = std::move(value).error();
  names.clean(error.detail);
  return error;
}

// --- on the way in

bool is_from_outside(const Commit& commit) {
  bool good = !commit.id || from_outside(*commit.id);
  if (commit.transaction) good = good && from_outside(commit.transaction->name);
  for (const Op& op : commit.ops) good = good && all_from_outside(op);
  return good;
}

// A commit with names as the store knows them, and what it refers to.
class Scoped {
 public:
  Scoped(const Commit& commit, const TenantNames& names) : commit_(commit) {
    if (names.plain()) return;
    const auto keep = [&](std::string name) -> std::string_view {
      return bytes_.emplace_back(std::move(name));
    };
    ops_.assign(commit.ops.begin(), commit.ops.end());
    scope_commit(commit_, ops_, names, keep);
    commit_.ops = ops_;
  }
  Scoped(const Scoped&) = delete;
  Scoped& operator=(const Scoped&) = delete;

  [[nodiscard]] const Commit& commit() const { return commit_; }

 private:
  std::deque<std::string> bytes_;
  std::vector<Op> ops_;
  Commit commit_;
};

// `submit(commit, done)` hands over; the store of the tenant may be gone when the answer comes.
template <class Submit>
void submit_scoped(const Commit& commit, const TenantNames& names, Store::Done done,
                   const Submit& submit) {
  if (!is_from_outside(commit)) return done(bad_name("a name"));
  const auto scoped = std::make_shared<const Scoped>(commit, names);
  submit(scoped->commit(), [scoped, names, done = std::move(done)](Result<Answer> answer) {
    done(told(names, std::move(answer)));
  });
}

}  // namespace

Result<Answer> TenantStore::commit(const Commit& commit) {
  if (!is_from_outside(commit)) return bad_name("a name");
  const Scoped scoped(commit, names_);
  return told(names_, store_.commit(scoped.commit()));
}

void TenantStore::submit(const Commit& commit, Done done) {
  submit_scoped(commit, names_, std::move(done), [this](const Commit& inside, Done then) {
    store_.submit(inside, std::move(then));
  });
}

void TenantStore::submit_here(const Commit& commit, Done done) {
  submit_scoped(commit, names_, std::move(done), [this](const Commit& inside, Done then) {
    store_.submit_here(inside, std::move(then));
  });
}

template <class Ask>
auto TenantStore::ask(std::string_view name, const Ask& ask) const
    -> decltype(ask(std::string_view())) {
  if (!from_outside(name)) return bad_name("a name");
  // No name is nobody's, also with a frame.
  const std::string inside = name.empty() ? std::string() : names_.inside(name);
  return told(names_, ask(std::string_view(inside)));
}

Result<Records> TenantStore::read(const ReadRange& range) {
  return ask(range.stream, [&](std::string_view stream) {
    ReadRange inside = range;
    inside.stream = stream;
    return store_.read(inside);
  });
}

Result<std::optional<IdStatus>> TenantStore::find_id(std::string_view stream, std::string_view id,
                                                     std::optional<std::string_view> group) {
  return ask(stream, [&](std::string_view inside) { return store_.find_id(inside, id, group); });
}

Result<std::optional<ClaimStatus>> TenantStore::find_claim(std::string_view scope,
                                                           std::string_view key) {
  return ask(scope, [&](std::string_view inside) { return store_.find_claim(inside, key); });
}

Result<std::optional<RegisterValue>> TenantStore::find_register(std::string_view name) {
  return ask(name, [&](std::string_view inside) { return store_.find_register(inside); });
}

Result<RegisterPage> TenantStore::scan_registers(const RegisterScan& scan) {
  if (!from_outside(scan.prefix)) return RegisterPage{};  // No name begins so.
  const std::string prefix = names_.inside(scan.prefix);
  return told(names_, store_.scan_registers({scan.cursor, scan.max, prefix}));
}

Result<std::optional<Position>> TenantStore::find_position(std::string_view source) {
  return ask(source, [&](std::string_view inside) { return store_.find_position(inside); });
}

Result<std::optional<ProducerStatus>> TenantStore::find_producer(std::string_view stream,
                                                                 std::string_view producer) {
  return ask(stream,
             [&](std::string_view inside) { return store_.find_producer(inside, producer); });
}

Result<StreamStats> TenantStore::describe(std::string_view stream) {
  return ask(stream, [&](std::string_view inside) { return store_.describe(inside); });
}

Result<UnackedPage> TenantStore::scan_unacked(const UnackedScan& scan) {
  return ask(scan.stream, [&](std::string_view stream) {
    UnackedScan inside = scan;
    inside.stream = stream;
    return store_.scan_unacked(inside);
  });
}

Result<std::vector<std::string>> TenantStore::streams() { return told(names_, store_.streams()); }

Result<StreamPage> TenantStore::scan_streams(const StreamScan& scan) {
  return told(names_, store_.scan_streams(scan));
}

Result<std::vector<TenantUse>> TenantStore::tenants() {
  HAPAX_TRY(std::vector<TenantUse> uses, store_.tenants());
  if (names_.plain()) return uses;
  std::erase_if(uses, [&](const TenantUse& use) { return use.tenant != tenant_; });
  return uses;
}

Result<Statistics> TenantStore::statistics() {
  if (names_.plain()) return store_.statistics();
  HAPAX_TRY(const Statistics all, store_.statistics());
  Statistics own;
  own.log_time = all.log_time;
  own.clock_lag = all.clock_lag;
  own.clock_jump_pending = all.clock_jump_pending;
  own.writes_refused = all.writes_refused;
  own.damaged = all.damaged;
  HAPAX_TRY(const std::vector<TenantUse> uses, tenants());
  for (const TenantUse& use : uses) {
    own.streams = use.streams;
    own.registers = use.registers;
    own.transactions_open = use.transactions_open;
    own.memory_bytes = use.memory_bytes;
  }
  return own;
}

std::uint64_t TenantStore::watch(const Watch& watch, Changed changed) {
  Watch inside = watch;
  std::string name;
  const auto put_in = [&](std::string_view& given) {
    name = names_.inside(given);
    const bool good = from_outside(given);
    given = name;
    return good;
  };
  const bool good = std::visit(
      [&](auto& what) {
        if constexpr (requires { what.stream; }) return put_in(what.stream);
        if constexpr (requires { what.scope; }) return put_in(what.scope);
      },
      inside);
  return good ? store_.watch(inside, std::move(changed)) : 0;
}

}  // namespace hapax::access
