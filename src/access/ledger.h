// How often each queue was asked for a job, how often that was a duplicate, and which keys of
// claims and plain keys are remembered for it. Counted in memory and kept in the store from time to
// time, so that a restart forgets the latest counts at most. The processes of a shared store add to
// the same numbers.
//
// Keys are counted when they are made, until the end they had then: one that is forgotten by hand,
// or gets another end, is counted until its first one.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hapax/store.h>

#include "access/queue_counts.h"
#include "base/mutex.h"
#include "base/tenant_frame.h"

namespace hapax::access {

class Ledger {
 public:
  // Scopes are the callers' to invent. A name is counted if it is known, or if its tenant has fewer
  // than are left of so many: half of them for one tenant alone, and some for each that comes
  // later.
  static constexpr std::size_t kNamesMax = 20'000;

  // Here `store` is always the whole one, and operations have names as it knows them.

  // From any thread.
  void count(std::span<const Op> ops, const Answer& answer);

  // All that was counted for a queue, also before this process and by others. May wait.
  [[nodiscard]] Result<QueueCounts> of(Store& store, base::StoreName queue) const;

  // Adds what was counted since to what the store keeps, of some queues at a time. What cannot be
  // written stays counted and is tried the next time. False: nothing was written. May wait; from
  // one thread at a time.
  bool keep(Store& store);

  // Bytes of the keys of each queue that this process has met. Whoever visits may take its time:
  // commits are counted meanwhile.
  using Visit = std::function<void(const std::string& queue, std::uint64_t bytes)>;
  void each_key_bytes(Time now, const Visit& visit) const;

 private:
  struct Book {
    QueueCounts fresh;  // not in the store yet
    QueueCounts kept;   // in the store, as far as this process knows
  };
  struct Page {
    std::string queue;
    QueueCounts fresh;
    QueueCounts sum;
    std::string name;  // of its register
    std::string text;
  };

  // Null: there is no room.
  QueueCounts* find(base::StoreName queue) HAPAX_REQUIRES(mutex_);
  [[nodiscard]] std::size_t names() const;
  [[nodiscard]] std::vector<Page> pages();
  // While look(queue, book) says so, and not at many. Answers where to go on; empty: at the front.
  template <class Look>
  [[nodiscard]] std::string look_at_some(const std::string& from, const Look& look) const;
  // The operation refers to the page.
  [[nodiscard]] static Op write(Page& page, const Held& held, Time now);
  bool settle(const std::vector<Page>& pages, const Answer& answer);  // False: nothing was written.
  void settle(const Page& page);
  void set_keeping(bool keeping);

  mutable base::Mutex mutex_;
  // By name of the store.
  std::map<std::string, Book, std::less<>> books_ HAPAX_GUARDED_BY(mutex_);
  std::map<std::string, std::size_t, std::less<>> names_by_tenant_ HAPAX_GUARDED_BY(mutex_);
  std::uint64_t edition_ HAPAX_GUARDED_BY(mutex_) = 0;  // changes with each keep
  bool keeping_ HAPAX_GUARDED_BY(mutex_) = false;       // pages are being written
  mutable std::condition_variable kept_;                // with mutex_: they are no longer
  std::string next_;                                    // where pages() goes on; of who keeps
};

}  // namespace hapax::access
