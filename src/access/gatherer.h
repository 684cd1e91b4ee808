// Gathers the operations that arrive on one loop within one turn into one commit, each operation
// on its own: one hand-over to the store for all of them, and one back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <memory_resource>
#include <span>
#include <string_view>
#include <vector>

#include <hapax/store.h>

#include "access/entry.h"
#include "net/link.h"

namespace hapax::access {

// Who asked. Kept alive until the answer was told.
class Asker {
 public:
  Asker() = default;
  Asker(const Asker&) = delete;
  Asker& operator=(const Asker&) = delete;
  virtual ~Asker() = default;

  // On the loop's thread, in any order: what the loop led itself is told at once, and overtakes
  // what other threads have answered and the loop has still to take note of. Operation and verdict
  // have the names of the caller. The verdict is the asker's to change. What is large is left out
  // of it (Detail::kBrief).
  virtual void told(std::uint64_t ticket, const Op& op, Verdict& verdict, Time when) = 0;
  // The commit failed as a whole; for kOutcomeUnknown it may have happened all the same.
  virtual void failed(std::uint64_t ticket, const Error& error) = 0;
  // Behind all that was told at once.
  virtual void told_all() = 0;
  // Keeps it alive, and all that its operations refer to.
  [[nodiscard]] virtual std::shared_ptr<Asker> keep() = 0;
  // What the log calls its request; empty: it has no name.
  [[nodiscard]] virtual std::string_view reference() const { return {}; }
};

// Bytes that its brief answer may bring along; 0: few.
[[nodiscard]] std::size_t answer_bytes_max(const Op& op);

// Used on the thread of its loop only.
class Gatherer {
 public:
  Gatherer(Entry& entry, net::Loop& loop) : entry_(entry), loop_(loop) {}

  // What is kept from here on and added next is of about so many bytes. If they are too many for
  // those who share the commit, it gets one of its own. REQUIRES: nothing is kept for an operation
  // that is still to be added.
  void make_room(std::size_t bytes);
  // Copies bytes to where they stay until what is added in this turn is answered.
  [[nodiscard]] std::string_view keep(std::string_view bytes);
  // Instead of `views`, views of copies.
  void keep(std::span<std::string_view> views);
  // Where lists of headers live as long.
  [[nodiscard]] std::deque<std::vector<Header>>& headers() { return bundle().headers; }
  // So many bytes of what is added next are kept by its asker.
  void count(std::size_t bytes) { bundle().bytes += bytes; }
  // Admits one operation of the caller (admission.h), and adds it. An error: it was not admitted,
  // and nothing was added. The answer is told in the names of the caller, and as its rights allow.
  [[nodiscard]] Status add(const Caller& caller, const TenantNames& names, Op op, Asker& asker,
                           std::uint64_t ticket);
  // Hands over what was added in this turn, before anything else is.
  void send() { submit(When::kWhileAsked); }

 private:
  // Neighbours of one asker, who spoke for one caller.
  struct Run {
    std::shared_ptr<Asker> asker;
    TenantNames names;
    std::size_t ops = 0;
  };
  struct Bundle {
    Bundle(std::size_t ops_expected, std::size_t bytes_expected) : memory(bytes_expected) {
      ops.reserve(ops_expected);
      tickets.reserve(ops_expected);
    }
    std::pmr::monotonic_buffer_resource memory;
    std::size_t bytes = 0;         // that it may add to a batch of the journal
    std::size_t answer_bytes = 0;  // that its answer may have
    std::deque<std::vector<Header>> headers;
    std::vector<Op> ops;
    std::vector<std::uint64_t> tickets;  // one per operation
    std::vector<Run> runs;
  };

  Bundle& bundle();
  enum class When : std::uint8_t { kWhileAsked, kAtEndOfTurn };
  void submit(When when);
  void tell(Bundle& bundle, Result<Answer>& answer) const;
  char* room(std::size_t bytes);

  Entry& entry_;
  net::Loop& loop_;
  std::shared_ptr<Bundle> bundle_;
  std::size_t last_ops_ = 0;  // of the bundle before: the next will be much like it
  std::size_t last_bytes_ = 0;
};

}  // namespace hapax::access
