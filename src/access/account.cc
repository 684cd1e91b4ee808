#include "access/account.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "base/format.h"
#include "base/mutex.h"

namespace hapax::access {

namespace {

Status too_long(std::string_view what, Duration max) {
  return Error{
      Errc::kLimitExceeded,
      base::format("{} is longer than this tenant may keep anything, which is {} ms; ask for less",
                   what, max.count())};
}

Status check_span(std::string_view what, Duration span, Duration max) {
  return span > max ? too_long(what, max) : Status(Ok{});
}

Status check_span(std::string_view what, Window window, Duration max) {
  if (window.is_forever()) return too_long(what, max);
  return check_span(what, std::chrono::seconds{window.raw()}, max);
}

// What each operation wants to be kept.
struct Spans {
  const TenantLimits& limits;
  Duration max = limits.ttl_max;
  Status operator()(const CreateStream& op) const { return check_settings(op); }
  Status operator()(const ConfigureStream& op) const { return check_settings(op); }
  Status operator()(const Claim& op) const {
    HAPAX_CHECK(check_span("lease", op.lease, max));
    HAPAX_CHECK(check_span("retention", op.retention, max));
    return check_span("tombstone", op.tombstone, max);
  }
  Status operator()(const Renew& op) const { return check_span("lease", op.lease, max); }
  Status operator()(const Receive& op) const { return check_span("lease", op.lease, max); }
  Status operator()(const Extend& op) const { return check_span("lease", op.lease, max); }
  Status operator()(const Nack& op) const { return check_span("delay", op.delay, max); }
  Status operator()(const Begin& op) const { return check_span("timeout", op.timeout, max); }
  template <class Other>
  Status operator()(const Other&) const {
    return Ok{};
  }

 private:
  template <class StreamOp>
  [[nodiscard]] Status check_settings(const StreamOp& op) const {
    HAPAX_CHECK(check_span("window", op.settings.window, max));
    const Retention& retention = op.settings.retention;
    // The configuration says how long the outbox keeps its records.
    const bool is_outbox = op.stream == limits.outbox && retention == limits.outbox_retention;
    return !retention.age || is_outbox ? Status(Ok{})
                                       : check_span("retention", *retention.age, max);
  }
};

}  // namespace

TenantLimits Account::limits() const {
  const base::MutexLock lock(mutex_);
  return limits_;
}

void Account::set(const TenantLimits& limits) {
  const base::MutexLock lock(mutex_);
  if (limits == limits_) return;
  limits_ = limits;
  limited_ = limits != TenantLimits{};
  credit_ = std::min(credit_, capacity(limits_));
}

std::optional<Duration> Account::charge(Steady now) {
  if (!limited_) return std::nullopt;
  const base::MutexLock lock(mutex_);
  if (limits_.rate == 0) return std::nullopt;
  const auto rate = static_cast<double>(limits_.rate);
  if (credited_) {
    const std::chrono::duration<double> passed = now - *credited_;
    credit_ = std::min(capacity(limits_), credit_ + passed.count() * rate);
  }
  credited_ = now;
  if (credit_ >= 1.0) {
    credit_ -= 1.0;
    return std::nullopt;
  }
  ++refused_;
  return Duration{static_cast<std::int64_t>(std::ceil((1.0 - credit_) / rate * 1000))};
}

void Account::charge_more(std::uint64_t ops) {
  if (!limited_) return;
  const base::MutexLock lock(mutex_);
  if (limits_.rate != 0) credit_ -= static_cast<double>(ops);
}

// A7: nothing is kept longer than the tenant may.
Status Account::check(const Op& op) const {
  if (!limited_) return Ok{};
  const TenantLimits terms = limits();
  return terms.ttl_max.count() == 0 ? Status(Ok{}) : std::visit(Spans{terms}, op);
}

Result<Window> Account::id_window(std::optional<Window> asked) const {
  if (!asked) return usual().window;
  const Duration max = limits().ttl_max;
  if (max.count() != 0) HAPAX_CHECK(check_span("id_window", *asked, max));
  return *asked;
}

wire::Usual Account::usual() const {
  wire::Usual usual;
  if (!limited_) return usual;
  const TenantLimits terms = limits();
  Duration window = std::chrono::seconds{usual.window.raw()};
  if (terms.ttl_default.count() != 0) window = terms.ttl_default;
  if (terms.ttl_max.count() != 0) usual.span_max = terms.ttl_max;
  window = std::min(window, usual.span_max);
  usual.window =
      Window{std::max(std::chrono::floor<std::chrono::seconds>(window), limits::kWindowMin)};
  usual.outbox = terms.outbox;
  usual.outbox_retention = terms.outbox_retention;
  usual.outbox_attempts_max = terms.outbox_attempts_max;
  return usual;
}

Result<std::shared_ptr<ConnectionPermit>> ConnectionPermit::take(
    const std::shared_ptr<Account>& account) {
  const std::uint64_t max = account->limits().connections_max;
  std::shared_ptr<ConnectionPermit> permit(new ConnectionPermit(account));
  if (++account->connections_ <= max || max == 0) return permit;
  ++account->refused_;
  return Error{
      Errc::kRateLimited,
      base::format("this tenant has {} connections, as many as it may; close one, or wait", max)};
}

Status hold_permit(std::shared_ptr<ConnectionPermit>& permit,
                   const std::shared_ptr<Account>& account) {
  if (permit != nullptr && permit->account() == account.get()) return Ok{};
  permit.reset();
  HAPAX_TRY(permit, ConnectionPermit::take(account));
  return Ok{};
}

Error rate_error(Duration wait) {
  return {Errc::kRateLimited,
          base::format("the operations of this tenant come faster than they may; wait {} ms",
                       wait.count())};
}

std::shared_ptr<Account> Accounts::of(const std::string& tenant) {
  const base::MutexLock lock(mutex_);
  std::shared_ptr<Account>& account = accounts_[tenant];
  if (account == nullptr) account = std::make_shared<Account>(limits_of_(tenant));
  return account;
}

void Accounts::set(LimitsOf limits_of) {
  const base::MutexLock lock(mutex_);
  limits_of_ = std::move(limits_of);
  for (const auto& [tenant, account] : accounts_) account->set(limits_of_(tenant));
}

std::vector<std::pair<std::string, std::shared_ptr<Account>>> Accounts::all() const {
  const base::MutexLock lock(mutex_);
  return {accounts_.begin(), accounts_.end()};
}

}  // namespace hapax::access
