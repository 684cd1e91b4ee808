// What an operation may look like, whatever the state. All limits are in hapax/limits.h.
#include "base/format.h"
#include "base/utf8.h"
#include "core/show_text.h"
#include "core/tenants.h"
#include "core/turn.h"

namespace hapax::core {

namespace {

using MaybeError = std::optional<Error>;

MaybeError invalid(std::string text) { return Error{Errc::kInvalidArgument, std::move(text)}; }

MaybeError check_text(std::string_view what, std::string_view text, std::size_t max) {
  if (text.empty()) return invalid(std::string(what) + " is missing");
  const std::size_t size = local_name(text).size();
  if (size > max) return limit_error(std::string(what) + " " + shown(text), size, max);
  return std::nullopt;
}

MaybeError check_size(std::string_view what, std::size_t size, std::size_t max) {
  if (size > max) return limit_error(what, size, max);
  return std::nullopt;
}

// Too short is a mistake of the caller (often a variable that was never filled in), too long is
// more than the store offers.
MaybeError check_span(std::string_view what, Duration span, Duration min, Duration max) {
  if (span >= min && span <= max) return std::nullopt;
  return Error{span < min ? Errc::kInvalidArgument : Errc::kLimitExceeded,
               base::format("{} is {} ms; it must be between {} and {} ms", what, span.count(),
                            min.count(), max.count())};
}

// An id or a group key: none, or at least a byte.
MaybeError check_given(std::string_view field, std::string_view what,
                       std::optional<std::string_view> text) {
  if (!text) return std::nullopt;
  if (text->empty()) return empty_error(field);
  return check_size(what, text->size(), limits::kMessageIdBytesMax);
}

// Names stand in lists and paths, where bytes that are no text could not be told from each other.
// What only tells things apart, such as ids, keys and scopes, is any bytes.
MaybeError check_name(std::string_view what, std::string_view name) {
  if (auto problem = check_text(what, name, limits::kNameBytesMax)) return problem;
  if (base::is_utf8(local_name(name))) return std::nullopt;
  return invalid(std::string(what) + " " + shown(name) + " is not UTF-8");
}

// Names with a leading $ belong to the store.
MaybeError check_new_name(std::string_view what, std::string_view name) {
  if (auto problem = check_name(what, name)) return problem;
  if (name.front() == '$') {
    return invalid(std::string(what) + " " + shown(name) + " begins with $, which is reserved");
  }
  return std::nullopt;
}

// The audit stream is the store's, but how long it is kept is not.
MaybeError check_kept_name(std::string_view name) {
  return name == kAuditStream ? std::nullopt : check_new_name("stream", name);
}

template <class... Problems>
MaybeError first_of(Problems&&... problems) {
  MaybeError found;
  const auto keep_first = [&found](MaybeError problem) {
    if (!found) found = std::move(problem);
  };
  (keep_first(std::forward<Problems>(problems)), ...);
  return found;
}

MaybeError check_settings(const StreamSettings& settings) {
  if (settings.producer_memory == 0) return invalid("producer_memory is 0; it must be at least 1");
  if (settings.retention.count && *settings.retention.count == 0) {
    return invalid("retention by count is 0; leave it out to keep all records");
  }
  if (settings.retention.bytes && *settings.retention.bytes == 0) {
    return invalid("retention by bytes is 0; leave it out to keep all records");
  }
  if (settings.retention.age && *settings.retention.age <= Duration{0}) {
    return invalid(base::format(
        "retention by age is {} ms; it must be at least 1, or left out to keep all records",
        settings.retention.age->count()));
  }
  if (settings.record_bytes_max == 0)
    return invalid("record_bytes_max is 0; it must be at least 1");
  return first_of(
      check_window("window", settings.window),
      check_size("record_bytes_max", settings.record_bytes_max, limits::kRecordBytesMax),
      check_size("producer_memory", settings.producer_memory, limits::kProducerMemoryMax),
      check_size("producers_max", settings.producers_max, limits::kProducersPerStreamMax));
}

MaybeError check_headers(std::span<const Header> headers) {
  std::size_t bytes = 0;
  for (const Header& header : headers) bytes += header.name.size() + header.value.size();
  return first_of(check_size("number of headers", headers.size(), limits::kHeadersMax),
                  check_size("headers of a record", bytes, limits::kHeaderBytesMax));
}

MaybeError check_person(std::string_view actor, std::string_view reason) {
  if (actor.empty() && reason.empty()) {
    return invalid("actor and reason are missing; the act is audited: say who decided it, and why");
  }
  return first_of(check_text("actor", actor, limits::kOwnerBytesMax),
                  check_text("reason", reason, limits::kReasonBytesMax));
}

MaybeError check_key(std::string_view scope, std::string_view key) {
  return first_of(check_text("scope", scope, limits::kNameBytesMax),
                  check_text("key", key, limits::kMessageIdBytesMax));
}

MaybeError check_result(const ResultView& result) {
  return check_size("result", result.headers.size() + result.body.size(), limits::kResultBytesMax);
}

MaybeError check_consumer(std::string_view stream, std::string_view consumer) {
  return first_of(check_name("stream", stream), check_name("consumer", consumer));
}

MaybeError check_lease(Duration lease) {
  return check_span("lease", lease, limits::kLeaseMin, limits::kLeaseMax);
}

MaybeError check_register(std::string_view name) {
  return check_text("register", name, limits::kRegisterNameBytesMax);
}

MaybeError check_expiry(const Expiry& expiry, Duration after_min) {
  if (expiry.kind == Expiry::Kind::kAt) {
    return check_span("expiry since 1970", expiry.at.time_since_epoch(), Duration{0},
                      limits::kExpiryMax);
  }
  if (expiry.kind != Expiry::Kind::kAfter) return std::nullopt;
  return check_span("expiry", expiry.after, after_min, limits::kExpiryMax);
}

struct Check {
  MaybeError operator()(const Append& op) const {
    MaybeError producer;
    if (op.producer) producer = check_name("producer", op.producer->name);
    if (op.expect && op.expect->of == ExpectLast::Of::kGroup && !op.group) {
      return invalid("the last record of a group is expected, but the record has no group key");
    }
    return first_of(check_new_name("stream", op.stream), std::move(producer),
                    check_given("id", "message id", op.id),
                    check_given("group", "group key", op.group),
                    check_size("record", op.payload.size(), limits::kRecordBytesMax),
                    op.headers.empty() ? std::nullopt : check_headers(op.headers));
  }
  MaybeError operator()(const Claim& op) const {
    return first_of(check_key(op.scope, op.key),
                    check_size("owner", op.owner.size(), limits::kOwnerBytesMax),
                    check_lease(op.lease), check_window("retention", op.retention),
                    check_window("tombstone", op.tombstone));
  }
  MaybeError operator()(const Renew& op) const {
    return first_of(check_key(op.scope, op.key), check_lease(op.lease));
  }
  MaybeError operator()(const Settle& op) const {
    return first_of(check_key(op.scope, op.key), check_result(op.result),
                    check_size("reason", op.reason.size(), limits::kReasonBytesMax));
  }
  MaybeError operator()(const Resolve& op) const {
    return first_of(check_key(op.scope, op.key), check_result(op.result),
                    check_person(op.actor, op.reason));
  }
  MaybeError operator()(const Forget& op) const {
    return first_of(check_key(op.scope, op.key), check_person(op.actor, op.reason));
  }
  MaybeError operator()(const Receive& op) const {
    if (op.max == 0) return invalid("a receive of 0 records; ask for at least 1");
    return first_of(check_consumer(op.stream, op.consumer), check_lease(op.lease),
                    check_size("records of a receive", op.max, limits::kReceiveMax),
                    check_size("owner", op.owner.size(), limits::kOwnerBytesMax));
  }
  MaybeError operator()(const Ack& op) const { return check_consumer(op.stream, op.consumer); }
  MaybeError operator()(const Nack& op) const {
    return first_of(check_consumer(op.stream, op.consumer),
                    check_span("delay", op.delay, Duration{0}, limits::kDelayMax),
                    check_size("reason", op.reason.size(), limits::kReasonBytesMax));
  }
  MaybeError operator()(const Extend& op) const {
    return first_of(check_consumer(op.stream, op.consumer), check_lease(op.lease));
  }
  MaybeError operator()(const Advance& op) const {
    return first_of(check_name("source", op.source),
                    check_size("expected position", op.expected.size(), limits::kPositionBytesMax),
                    check_text("position", op.to, limits::kPositionBytesMax));
  }
  MaybeError operator()(const Set& op) const {
    return first_of(check_register(op.name),
                    check_size("value of a register", op.value.size(), limits::kRegisterBytesMax),
                    check_expiry(op.expiry, Duration{1}));
  }
  MaybeError operator()(const hapax::Get& op) const { return check_register(op.name); }
  MaybeError operator()(const Unset& op) const { return check_register(op.name); }
  MaybeError operator()(const Expire& op) const {
    if (op.expiry.kind == Expiry::Kind::kKeep) return invalid("the expiry would stay as it is");
    return first_of(check_register(op.name), check_expiry(op.expiry, -limits::kExpiryMax));
  }
  MaybeError operator()(const Add& op) const { return check_register(op.name); }
  MaybeError operator()(const CreateStream& op) const {
    return first_of(check_new_name("stream", op.stream), check_settings(op.settings));
  }
  MaybeError operator()(const ConfigureStream& op) const {
    return first_of(check_kept_name(op.stream), check_settings(op.settings));
  }
  MaybeError operator()(const DeleteStream& op) const {
    return check_new_name("stream", op.stream);
  }
  MaybeError operator()(const Trim& op) const { return check_kept_name(op.stream); }
  MaybeError operator()(const RetireProducer& op) const {
    return first_of(check_name("stream", op.stream), check_name("producer", op.producer),
                    check_person(op.actor, op.reason));
  }
  MaybeError operator()(const OpenProducer& op) const {
    return first_of(check_new_name("stream", op.stream), check_name("producer", op.producer));
  }
  MaybeError operator()(const CreateConsumer& op) const {
    if (op.settings.attempts_max == 0) return invalid("attempts_max is 0; it must be at least 1");
    if (op.settings.in_flight_max == 0) return invalid("in_flight_max is 0; it must be at least 1");
    if (!op.settings.dead_letters.empty()) {
      if (auto problem = check_new_name("stream of dead letters", op.settings.dead_letters)) {
        return problem;
      }
    }
    return first_of(
        check_consumer(op.stream, op.consumer),
        check_size("attempts_max", op.settings.attempts_max, limits::kAttemptsMax),
        check_size("in_flight_max", op.settings.in_flight_max, limits::kInFlightPerConsumerMax),
        check_size("name of the dead letters", local_name(op.settings.dead_letters).size(),
                   limits::kNameBytesMax));
  }
  MaybeError operator()(const DeleteConsumer& op) const {
    return check_consumer(op.stream, op.consumer);
  }
  MaybeError operator()(const Seek& op) const { return check_consumer(op.stream, op.consumer); }
  MaybeError operator()(const Redrive& op) const {
    if (op.again_for.empty()) return check_name("stream", op.dead_letters);
    if (auto problem = check_name("replay", op.replay)) return problem;
    return check_consumer(op.dead_letters, op.again_for);
  }
  MaybeError operator()(const Begin& op) const {
    return first_of(check_name("transaction", op.transaction),
                    check_span("timeout", op.timeout, Duration{1}, limits::kTransactionTimeoutMax));
  }
  MaybeError operator()(const End& op) const { return check_name("transaction", op.transaction); }
};

}  // namespace

std::optional<Error> check_window(std::string_view what, Window window) {
  const std::chrono::seconds span{window.raw()};
  if (window.is_forever() || (span >= limits::kWindowMin && span <= limits::kWindowMax)) {
    return std::nullopt;
  }
  return Error{span < limits::kWindowMin ? Errc::kInvalidArgument : Errc::kLimitExceeded,
               base::format("{} is {} s; it must be between {} and {} s, or forever", what,
                            span.count(), limits::kWindowMin.count(), limits::kWindowMax.count())};
}

std::optional<Error> check(const Op& op) { return std::visit(Check{}, op); }

Error empty_error(std::string_view field) {
  return Error{Errc::kInvalidArgument,
               std::string(field) + " is empty; leave the field out for no " + std::string(field)};
}

Error limit_error(std::string_view what, std::uint64_t value, std::uint64_t max) {
  return Error{Errc::kLimitExceeded, base::format("{} has {}; the most is {}", what, value, max)};
}

std::optional<Error> check_budget(const State& state, const Tenant& tenant, std::uint64_t more) {
  const std::uint64_t used = state.memory_bytes() + more;
  if (used <= state.memory_max) return std::nullopt;
  if (tenant.named) {
    return Error{Errc::kMemoryBudget,
                 "the store has no memory left for it; nothing was stored and nothing is forgotten "
                 "early. Try again later, or ask whoever runs it."};
  }
  return Error{Errc::kMemoryBudget,
               base::format("the store remembers {} of {} bytes; nothing was stored and nothing is "
                            "forgotten early. Raise memory_max or shorten windows.",
                            used, state.memory_max)};
}

namespace {

bool fits_total(const Tenant& tenant, std::uint64_t more, std::uint64_t beyond = 0) {
  const std::uint64_t max = tenant.share.total_max;
  return max == 0 || tenant.total() + more <= max + beyond;
}

Error total_error(Tenant& tenant, std::uint64_t more) {
  ++tenant.refused;
  return Error{
      Errc::kQuotaExceeded,
      base::format("this tenant stores and has remembered {} bytes together, and may have {} "
                   "(total_max); this takes about {}. Nothing was stored and nothing is forgotten "
                   "early. Trim or delete streams, delete keys, shorten windows, or ask for more.",
                   tenant.total(), tenant.share.total_max, more)};
}

}  // namespace

std::optional<Error> check_memory(const State& state, Tenant& tenant, std::uint64_t more) {
  if (auto full = check_budget(state, tenant, more)) return full;
  if (!fits_total(tenant, more)) return total_error(tenant, more);
  const std::uint64_t share = tenant.share.memory_max;
  if (share == 0) return std::nullopt;
  const std::uint64_t max =
      share == TenantShare::kWhatIsFree ? state.memory_max - state.memory_bytes() - more : share;
  if (tenant.memory + more <= max) return std::nullopt;
  ++tenant.refused;
  return Error{Errc::kMemoryBudget,
               base::format("this tenant has about {} bytes remembered, and may have {} "
                            "(memory_max); nothing was stored and nothing is forgotten early. "
                            "Delete what is not needed, shorten windows, or ask for more.",
                            tenant.memory, max)};
}

std::optional<Error> check_growth(const State& state, Tenant& tenant, std::uint64_t before,
                                  std::uint64_t after) {
  return after <= before ? std::nullopt : check_memory(state, tenant, after - before);
}

bool may_store(const Tenant& tenant, std::uint64_t more, std::uint64_t beyond) {
  const std::uint64_t max = tenant.share.storage_max;
  if (more == 0) return true;
  return (max == 0 || tenant.storage + more <= max + beyond) && fits_total(tenant, more, beyond);
}

void free_storage(Turn& turn, const Tenant& tenant, const Stream* own,
                  const std::function<bool()>& enough) {
  // Beyond so many a look at all of them is the sweep's: one refusal must not cost that much.
  constexpr std::size_t kStreamsMax = 1'000;
  const Turn::Mark mark = turn.mark();
  const auto free = [&](const Stream& stream) {
    const auto target = retention_target(turn.state(), stream, turn.now());
    if (target) turn.emit(trimmed(stream, *target, turn.now()));
  };
  if (own != nullptr) free(*own);
  const auto& retaining = turn.state().retaining;
  const bool few = retaining.size() <= kStreamsMax;
  for (auto at = retaining.begin(); few && at != retaining.end() && !enough(); ++at) {
    const Stream& stream = turn.state().stream(*at);
    if (stream.tenant == &tenant) free(stream);
  }
  if (!enough()) turn.roll_back(mark);
}

void free_storage(Turn& turn, const Tenant& tenant, std::uint64_t more) {
  if (may_store(tenant, more)) return;
  free_storage(turn, tenant, nullptr, [&] { return may_store(tenant, more); });
}

std::optional<Error> check_storage(Tenant& tenant, std::uint64_t more, std::uint64_t beyond) {
  if (may_store(tenant, more, beyond)) return std::nullopt;
  if (!fits_total(tenant, more, beyond)) return total_error(tenant, more);
  const std::uint64_t max = tenant.share.storage_max;
  ++tenant.refused;
  return Error{Errc::kQuotaExceeded,
               base::format("this tenant stores {} bytes, and may store {} (storage_max); this "
                            "takes about {}. Trim or delete streams, delete keys, or ask for more.",
                            tenant.storage, max, more)};
}

bool may_have_one_more(std::uint64_t share, std::uint64_t has, std::uint64_t used,
                       std::uint64_t all) {
  if (used >= all) return false;
  if (share == 0) return true;
  return has + 1 <= (share == TenantShare::kWhatIsFree ? all - used - 1 : share);
}

Error no_stream(std::string_view name) {
  return Error{Errc::kNotFound, "there is no stream " + shown(name) + "; create it first"};
}

Error no_consumer(std::string_view stream, std::string_view name) {
  return Error{Errc::kNotFound, "stream " + shown(stream) + " has no consumer " + shown(name)};
}

}  // namespace hapax::core
