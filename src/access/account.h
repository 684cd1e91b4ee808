// What a tenant may take, and what it has taken. Shared by all threads.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <hapax/ops.h>
#include <hapax/result.h>

#include "base/mutex.h"
#include "wire/usual.h"

namespace hapax::access {

// Of requests, before the store sees them. What a tenant may take of the store is TenantShare.
struct TenantLimits {       // 0: no limit
  std::uint64_t rate = 0;   // operations a second
  std::uint64_t burst = 0;  // at once; 0: as many as the rate
  Duration ttl_max{0};
  std::uint64_t connections_max = 0;
  Duration ttl_default{0};       // where a request does not say; 0: as usual
  std::string outbox{};          // the stream with settings of its own; empty: none
  Retention outbox_retention{};  // where its maker says nothing
  std::uint32_t outbox_attempts_max = 0;
  friend bool operator==(const TenantLimits&, const TenantLimits&) = default;
};

class Account {
 public:
  using Steady = std::chrono::steady_clock::time_point;

  explicit Account(const TenantLimits& limits)
      : limits_(limits), credit_(capacity(limits)), limited_(limits != TenantLimits{}) {}

  [[nodiscard]] TenantLimits limits() const;
  void set(const TenantLimits& limits);

  [[nodiscard]] bool limited() const { return limited_; }

  // One request: nothing, or how long to wait. A request that is let in may take the credit below
  // nothing; those behind it wait.
  [[nodiscard]] std::optional<Duration> charge(Steady now);
  [[nodiscard]] std::optional<Duration> charge() {  // asks for the time only where it matters
    return limited_ ? charge(std::chrono::steady_clock::now()) : std::nullopt;
  }
  void charge_more(std::uint64_t ops);  // what a request turned out to be beyond its first
  // A7: Nothing is kept longer than the tenant may. When registers go is for the store to check,
  // which knows the time.
  [[nodiscard]] Status check(const Op& op) const;
  // What holds where a request of the tenant says nothing: never more than it may ask for.
  [[nodiscard]] wire::Usual usual() const;
  // How long a commit id is remembered: as asked for, or if nobody asked, as usual or less.
  [[nodiscard]] Result<Window> id_window(std::optional<Window> asked) const;

  [[nodiscard]] std::uint64_t connections() const { return connections_; }
  [[nodiscard]] std::uint64_t refused() const { return refused_; }

 private:
  friend class ConnectionPermit;

  static double capacity(const TenantLimits& limits) {
    return static_cast<double>(limits.burst != 0 ? limits.burst : limits.rate);
  }

  mutable base::Mutex mutex_;
  TenantLimits limits_ HAPAX_GUARDED_BY(mutex_);
  double credit_ HAPAX_GUARDED_BY(mutex_);  // operations
  std::optional<Steady> credited_ HAPAX_GUARDED_BY(mutex_);
  std::atomic<bool> limited_;
  std::atomic<std::uint64_t> connections_ = 0;
  std::atomic<std::uint64_t> refused_ = 0;
};

// A connection of the tenant, while it lives.
class ConnectionPermit {
 public:
  static Result<std::shared_ptr<ConnectionPermit>> take(const std::shared_ptr<Account>& account);
  ~ConnectionPermit() { --account_->connections_; }
  ConnectionPermit(const ConnectionPermit&) = delete;
  ConnectionPermit& operator=(const ConnectionPermit&) = delete;
  [[nodiscard]] const Account* account() const { return account_.get(); }

 private:
  explicit ConnectionPermit(std::shared_ptr<Account> account) : account_(std::move(account)) {}
  std::shared_ptr<Account> account_;
};

// Keeps `permit` one of this account. REQUIRES: account is not null.
[[nodiscard]] Status hold_permit(std::shared_ptr<ConnectionPermit>& permit,
                                 const std::shared_ptr<Account>& account);
[[nodiscard]] Error rate_error(Duration wait);

// The accounts of all tenants that were seen.
class Accounts {
 public:
  using LimitsOf = std::function<TenantLimits(const std::string& tenant)>;

  explicit Accounts(LimitsOf limits_of) : limits_of_(std::move(limits_of)) {}

  [[nodiscard]] std::shared_ptr<Account> of(const std::string& tenant);
  void set(LimitsOf limits_of);
  [[nodiscard]] std::vector<std::pair<std::string, std::shared_ptr<Account>>> all() const;

 private:
  mutable base::Mutex mutex_;
  LimitsOf limits_of_ HAPAX_GUARDED_BY(mutex_);
  std::unordered_map<std::string, std::shared_ptr<Account>> accounts_ HAPAX_GUARDED_BY(mutex_);
};

}  // namespace hapax::access
