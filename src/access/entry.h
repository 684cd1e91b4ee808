// Where front doors bring their commits: checks rights, keeps tenants apart, hands over to the
// store and counts what came of them. One for the process, used from every loop.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <vector>

#include <hapax/store.h>

#include "access/caller.h"
#include "access/ledger.h"
#include "access/readers.h"
#include "access/redaction.h"
#include "access/tenant_names.h"
#include "access/tenant_store.h"
#include "base/mutex.h"
#include "metrics/meter.h"
#include "net/link.h"
#include "wire/request.h"

namespace hapax::access {

// Where a question comes from: the loop that is to be answered, and what the log calls the request.
struct From {
  // NOLINTNEXTLINE(google-explicit-constructor): most have nothing but a loop.
  From(net::Loop& on, std::string name = {}) : loop(on), reference(std::move(name)) {}

  net::Loop& loop;
  std::string reference;  // empty: it has no name
  bool follows = false;   // operations that its client asked for before may still be gathered
};

class Gatherer;

class Entry {
 public:
  // Without redaction callers are told everything: they are the owner of the store.
  Entry(Store& store, std::size_t readers, metrics::Meter* meter = nullptr,
        const Redaction* redaction = nullptr);
  ~Entry();
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

  using Steady = std::chrono::steady_clock::time_point;
  using Then = std::function<void(Result<Answer>)>;

  // One for each of these loops, on which operations may come from here on.
  void open(std::span<net::Loop* const> loops);
  // Takes operations that go to the store with those of others. REQUIRES: the loop was opened.
  [[nodiscard]] Gatherer& gatherer(const net::Loop& loop) { return *gatherers_[loop.number()]; }

  // Answers on the loop. The request's names are rewritten to the caller's tenant; the answer's
  // are as the caller knows them. So many of its operations were let in one by one (admission.h).
  void commit(const From& from, const Caller& caller, const wire::SharedRequest& request, Then then,
              std::size_t let_in = 1);

  // Writes a line to the tenant's audit that no operation of the tenant caused.
  void audit(const std::string& tenant, std::string line);

  // Reads on a thread that may wait, and answers on the loop. `read(store)` is given the store as
  // the caller's tenant sees it.
  template <class Read, class Then>
  void ask(const From& from, const Caller& caller, Read read, Then then) {
    ask_whole(
        from,
        [tenant = caller.tenant, read = std::move(read)](Store& store) mutable {
          TenantStore own(store, tenant);
          return read(static_cast<Store&>(own));
        },
        std::move(then));
  }
  // The same of the whole store, with names as the store knows them.
  template <class Read, class Then>
  void ask_whole(const From& from, Read read, Then then) {
    using Value = decltype(read(store_));
    send_gathered(from);
    auto shared = std::make_shared<Then>(std::move(then));
    const bool taken = readers_.ask(
        from.loop,
        [this, reference = from.reference, read = std::move(read)]() mutable {
          return redacted(read(store_), reference);
        },
        [shared](Value value) { (*shared)(std::move(value)); });
    if (taken) return;
    from.loop.post([shared] {
      (*shared)(Value(Error{Errc::kUnavailable, "too many reads are waiting; try again"}));
    });
  }

  // Reads no more: the store may go before the entry does.
  void close() { readers_.stop(); }

  // A12: what the store answered, as callers may know it.
  template <class Value>
  [[nodiscard]] Result<Value> redacted(Result<Value> value, std::string_view reference) const {
    if (redaction_ == nullptr) return value;
    if (!value) return redaction_->outside(std::move(value).error(), reference);
    if constexpr (std::is_same_v<Value, Answer>) {
      for (Verdict& verdict : value->verdicts) redaction_->clean(verdict, reference);
    }
    return value;
  }
  [[nodiscard]] Error redacted(Error error, std::string_view reference) const {
    return redaction_ == nullptr ? error : redaction_->outside(std::move(error), reference);
  }
  void redact(Verdict& verdict, std::string_view reference) const {
    if (redaction_ != nullptr) redaction_->clean(verdict, reference);
  }

  [[nodiscard]] Store& store() { return store_; }
  [[nodiscard]] Ledger& ledger() { return ledger_; }

  // A commit that was handed over at `since` has its answer: counts it. From any thread.
  void answered(std::span<const Op> ops, const Result<Answer>& answer, Steady since);

 private:
  using Next = std::function<void()>;
  // What is asked for in turn happens in turn.
  void send_gathered(const From& from);
  // What is to be written about a commit.
  struct AuditLines {
    std::string stream;              // inside
    std::vector<std::string> lines;  // by operation of the caller; empty: not audited
    std::size_t within = 0;          // so many operations of the commit itself write them
    bool made_again = false;         // the stream, because it was gone
  };

  static std::shared_ptr<AuditLines> audit_of(const Caller& caller, const wire::Request& request);
  static bool may_go_without(const AuditLines& audit, const wire::Request& request, Errc why);
  static bool prevented(const AuditLines& audit, const wire::Request& request,
                        const Result<Answer>& answer);
  static void write_within(AuditLines& audit, wire::Request& request);
  static void leave_out(AuditLines& audit, wire::Request& request);
  // With its audit.
  void submit_audited(const From& from, const TenantNames& names,
                      const wire::SharedRequest& request, const std::shared_ptr<AuditLines>& audit,
                      Then then);
  [[nodiscard]] bool worth_another_try(AuditLines& audit, const wire::Request& request,
                                       const Result<Answer>& answer);
  void submit(const From& from, const TenantNames& names, const wire::SharedRequest& request,
              const std::shared_ptr<AuditLines>& audit, Then then);
  void write_after(const std::shared_ptr<AuditLines>& audit, const Answer& answer,
                   const std::string& reference, Next next);
  void append_lines(const std::shared_ptr<AuditLines>& audit,
                    const std::shared_ptr<std::vector<Op>>& lines, const std::string& reference,
                    Next next);
  void tell_unwritten(std::span<const Op> lines, const Result<Answer>& answer,
                      const std::string& reference) const;
  // Makes the stream unless it is known to be there.
  void with_stream(const std::string& stream, std::function<void(const Status& there)> next);
  // Makes it again next time. False: it was made again for these audit before.
  [[nodiscard]] bool forget_stream(AuditLines& audit);

  Store& store_;
  metrics::Meter* const meter_;
  const Redaction* const redaction_;  // may be null
  Readers readers_;
  Ledger ledger_;
  std::vector<std::unique_ptr<Gatherer>> gatherers_;  // by the number of the loop
  base::Mutex mutex_;
  // Streams that are known to be there.
  std::unordered_set<std::string> audits_ HAPAX_GUARDED_BY(mutex_);
};

}  // namespace hapax::access
