// Where front doors bring their commits: checks rights, keeps tenants apart, hands over to the
// store and rings for whoever waits. One for the process, used from every loop.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include <hapax/store.h>

#include "front/bell.h"
#include "front/caller.h"
#include "front/readers.h"
#include "net/link.h"
#include "wire/request.h"

namespace hapax::front {

class Desk {
 public:
  explicit Desk(Store& store, std::size_t readers) : store_(store), readers_(readers) {}

  using Then = std::function<void(Result<Answer>)>;

  // Answers on the loop. The request's names are rewritten to the caller's tenant; the answer's
  // are as the caller knows them.
  void commit(net::Loop& loop, const Caller& caller, wire::SharedRequest request, Then then);

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

  [[nodiscard]] Store& store() { return store_; }
  [[nodiscard]] Bell& bell() { return bell_; }

  // Rings for the records that a commit appended. From any thread.
  void ring(std::span<const Op> ops, const Answer& answer);

 private:
  Store& store_;
  Readers readers_;
  Bell bell_;
};

// Everything a caller may not ask for, before the store sees it.
[[nodiscard]] Status check(const Caller& caller, const Op& op);

}  // namespace hapax::front
