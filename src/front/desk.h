// Where front doors bring their commits: checks rights, keeps tenants apart, hands over to the
// store and rings for whoever waits. One for the process, used from every loop.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include <hapax/store.h>

#include "front/bell.h"
#include "front/caller.h"
#include "front/duplicates.h"
#include "front/readers.h"
#include "metrics/meter.h"
#include "net/link.h"
#include "wire/request.h"

namespace hapax::front {

class Desk {
 public:
  Desk(Store& store, std::size_t readers, metrics::Meter* meter = nullptr)
      : store_(store), meter_(meter), readers_(readers) {}

  using Steady = std::chrono::steady_clock::time_point;
  using Then = std::function<void(Result<Answer>)>;

  // Answers on the loop. The request's names are rewritten to the caller's tenant; the answer's
  // are as the caller knows them.
  void commit(net::Loop& loop, const Caller& caller, const wire::SharedRequest& request, Then then);

  // Writes a line to the tenant's audit that no operation of the tenant caused.
  void audit(const std::string& tenant, std::string line);

  // Reads on a thread that may wait, and answers on the loop.
  template <class Read, class Then>
  void ask(net::Loop& loop, Read read, Then then) {
    using Value = decltype(read(store_));
    auto shared = std::make_shared<Then>(std::move(then));
    const bool taken = readers_.ask(
        loop, [this, read = std::move(read)]() mutable { return read(store_); },
        [shared](Value value) { (*shared)(std::move(value)); });
    if (taken) return;
    loop.post([shared] {
      (*shared)(Value(Error{Errc::kUnavailable, "too many reads are waiting; try again"}));
    });
  }

  // Reads no more: the store may go before the desk does.
  void close() { readers_.stop(); }

  [[nodiscard]] Store& store() { return store_; }
  [[nodiscard]] Bell& bell() { return bell_; }
  [[nodiscard]] const Duplicates& duplicates() const { return duplicates_; }

  // A commit that was handed over at `since` has its answer: counts it, and rings for the records
  // that it appended. From any thread.
  void answered(std::span<const Op> ops, const Result<Answer>& answer, Steady since);

 private:
  using Next = std::function<void()>;
  // What is to be written about a commit.
  struct Minutes {
    std::string stream;              // inside
    std::vector<std::string> lines;  // by operation of the caller; empty: not audited
    std::size_t within = 0;          // so many operations of the commit itself write them
  };

  static std::shared_ptr<Minutes> minutes_of(const Caller& caller, const wire::Request& request);
  static bool prevented(const Minutes& minutes, const Result<Answer>& answer);
  static void write_within(Minutes& minutes, wire::Request& request);
  void submit(net::Loop& loop, const TenantNames& names, const wire::SharedRequest& request,
              const std::shared_ptr<Minutes>& minutes, Then then);
  void write_after(const std::shared_ptr<Minutes>& minutes, const Answer& answer, Next next);
  void with_stream(const std::string& stream, Next next);

  // Rings for the records that a commit appended, and counts its duplicates. From any thread.
  void ring(std::span<const Op> ops, const Answer& answer);

  Store& store_;
  metrics::Meter* const meter_;
  Readers readers_;
  Bell bell_;
  Duplicates duplicates_;
  std::mutex mutex_;
  std::unordered_set<std::string> audits_;  // guarded by mutex_; streams that are known to be there
};

// Everything a caller may not ask for, before the store sees it.
[[nodiscard]] Status check(const Caller& caller, const Op& op);

}  // namespace hapax::front
