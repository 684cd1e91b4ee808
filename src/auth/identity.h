// Who a credential stands for: a tenant, a subject and its rights.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include <hapax/time.h>

namespace hapax::auth {

enum class Right : std::uint8_t {
  kProduce = 1,     // append, claim, settle, set, advance, transactions
  kConsume = 2,     // receive, ack, read
  kAdmin = 4,       // streams, consumers, resolve, forget, statistics
  kReadBodies = 8,  // stored results of claims, and of plain keys that stand for one
};

class Rights {
 public:
  constexpr Rights() = default;
  constexpr Rights(std::initializer_list<Right> rights) {
    for (const Right right : rights) bits_ |= static_cast<unsigned>(right);
  }
  static constexpr Rights all() {
    return {Right::kProduce, Right::kConsume, Right::kAdmin, Right::kReadBodies};
  }
  [[nodiscard]] constexpr bool has(Right right) const {
    return (bits_ & static_cast<unsigned>(right)) != 0;
  }
  void add(Right right) { bits_ |= static_cast<unsigned>(right); }
  friend constexpr bool operator==(const Rights&, const Rights&) = default;

 private:
  unsigned bits_ = 0;
};

[[nodiscard]] std::string_view word_of(Right right);

struct Identity {
  std::string tenant{};   // empty: the one tenant of a server without authentication
  std::string subject{};  // who, for the audit
  Rights rights{};
};

// What a credential gives. Whoever keeps the identity longer than a request (a session) must ask
// again when it is over.
struct Verified {
  Identity identity;
  Time until = Time::max();
};

}  // namespace hapax::auth
