// What a tenant may take, and what it has taken. Shared by all threads.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <hapax/ops.h>
#include <hapax/result.h>

namespace hapax::front {

struct TenantLimits {  // 0: no limit
  std::uint64_t storage_max = 0;
  std::uint64_t rate = 0;   // operations a second
  std::uint64_t burst = 0;  // at once; 0: as many as the rate
  Duration ttl_max{0};
  std::uint64_t connections_max = 0;
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
  // A7: Nothing is kept longer than the tenant may, and nothing is added beyond its storage.
  [[nodiscard]] Status check(const Op& op, Steady now);
  [[nodiscard]] Status check_window(std::string_view what, Window window) const;

  // The records of its streams were counted: forgets what was added by guess.
  void count_records(std::uint64_t bytes) { records_ = bytes; }
  [[nodiscard]] std::uint64_t stored(Steady now);
  [[nodiscard]] std::uint64_t connections() const { return connections_; }
  [[nodiscard]] std::uint64_t refused() const { return refused_; }

 private:
  friend class Seat;

  static double capacity(const TenantLimits& limits) {
    return static_cast<double>(limits.burst != 0 ? limits.burst : limits.rate);
  }
  [[nodiscard]] std::uint64_t results(Steady now);  // REQUIRES: mutex_ is held.
  void add_result(std::uint64_t bytes, Steady now);
  [[nodiscard]] Status check_room(std::uint64_t more, Steady now);

  mutable std::mutex mutex_;
  TenantLimits limits_;                            // guarded by mutex_
  double credit_;                                  // guarded by mutex_; operations
  std::optional<Steady> credited_;                 // guarded by mutex_
  std::map<std::int64_t, std::uint64_t> results_;  // guarded by mutex_; bytes by hour of their end
  std::atomic<bool> limited_;
  std::atomic<std::uint64_t> records_ = 0;
  std::atomic<std::uint64_t> connections_ = 0;
  std::atomic<std::uint64_t> refused_ = 0;
};

// A connection of the tenant, while it lives.
class Seat {
 public:
  static Result<std::shared_ptr<Seat>> take(const std::shared_ptr<Account>& account);
  ~Seat() { --account_->connections_; }
  Seat(const Seat&) = delete;
  Seat& operator=(const Seat&) = delete;
  [[nodiscard]] const Account* account() const { return account_.get(); }

 private:
  explicit Seat(std::shared_ptr<Account> account) : account_(std::move(account)) {}
  std::shared_ptr<Account> account_;
};

// Keeps `seat` one of this account. REQUIRES: account is not null.
[[nodiscard]] Status keep_seat(std::shared_ptr<Seat>& seat,
                               const std::shared_ptr<Account>& account);
[[nodiscard]] Error rate_error(Duration wait);

// The accounts of all tenants that were seen.
class Accounts {
 public:
  using LimitsOf = std::function<TenantLimits(const std::string& tenant)>;

  explicit Accounts(LimitsOf limits_of) : limits_of_(std::move(limits_of)) {}

  [[nodiscard]] std::shared_ptr<Account> of(const std::string& tenant);
  void set(LimitsOf limits_of);
  [[nodiscard]] bool any_storage_max() const;
  // Bytes of records by tenant, of all there are.
  void count_records(std::unordered_map<std::string, std::uint64_t> bytes);
  [[nodiscard]] std::vector<std::pair<std::string, std::shared_ptr<Account>>> all() const;

 private:
  mutable std::mutex mutex_;
  LimitsOf limits_of_;                                                  // guarded by mutex_
  std::unordered_map<std::string, std::uint64_t> records_;              // guarded by mutex_
  std::unordered_map<std::string, std::shared_ptr<Account>> accounts_;  // guarded by mutex_
};

}  // namespace hapax::front
