// Gathers the operations that arrive on one loop within one turn into one commit, each operation
// on its own: one hand-over to the store for all of them, and one back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <memory_resource>
#include <string_view>
#include <vector>

#include <hapax/store.h>

#include "front/desk.h"
#include "net/link.h"

namespace hapax::front {

// Who asked. Kept alive until the answer was told.
class Asker {
 public:
  Asker() = default;
  Asker(const Asker&) = delete;
  Asker& operator=(const Asker&) = delete;
  virtual ~Asker() = default;

  // On the loop's thread, in any order: what the loop led itself is told at once, and overtakes
  // what other threads have answered and the loop has still to take note of.
  virtual void told(std::uint64_t ticket, const Verdict& verdict, Time when) = 0;
  // The commit failed as a whole; for kOutcomeUnknown it may have happened all the same.
  virtual void failed(std::uint64_t ticket, const Error& error) = 0;
};

// Used on the thread of its loop only.
class Gatherer {
 public:
  Gatherer(Desk& desk, net::Loop& loop) : desk_(desk), loop_(loop) {}

  // Copies bytes to where they stay until what is added in this turn is answered.
  [[nodiscard]] std::string_view keep(std::string_view bytes);
  // Where lists of headers live as long.
  [[nodiscard]] std::deque<std::vector<Header>>& headers() { return bundle().headers; }
  void add(const Op& op, std::shared_ptr<Asker> asker, std::uint64_t ticket);

 private:
  struct Bundle {
    std::pmr::monotonic_buffer_resource memory{std::size_t{4} << 10};
    std::size_t bytes = 0;
    std::deque<std::vector<Header>> headers;
    std::vector<Op> ops;
    std::vector<std::pair<std::shared_ptr<Asker>, std::uint64_t>> askers;
  };

  Bundle& bundle();
  enum class When : std::uint8_t { kWhileAsked, kAtEndOfTurn };
  void submit(When when);
  void tell(const Bundle& bundle, const Result<Answer>& answer);

  Desk& desk_;
  net::Loop& loop_;
  std::shared_ptr<Bundle> bundle_;
};

}  // namespace hapax::front
