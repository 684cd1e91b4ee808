// What holds where a request says nothing: put into an operation before its fields are read, and
// after it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include <hapax/ops.h>

namespace hapax::wire {

struct Usual {
  Window window = limits::kWindowDefault;  // of ids, results and tombstones
  Duration span_max = Duration::max();     // leases and timeouts are as usual, or so long
  std::string outbox{};                    // a stream with settings of its own; empty: none
  Retention outbox_retention{};
  std::uint32_t outbox_attempts_max = 0;  // of its consumers; 0: as of any other

  template <class AnyOp>
  void put(AnyOp& op) const {
    if constexpr (requires { op.tombstone; }) op.retention = op.tombstone = window;
    if constexpr (requires { op.settings.window; }) op.settings.window = window;
    if constexpr (requires { op.lease; }) op.lease = std::min(op.lease, span_max);
    if constexpr (requires { op.timeout; }) op.timeout = std::min(op.timeout, span_max);
    if constexpr (requires { op.settings.attempts_max; }) op.settings.attempts_max = kNotSaid;
  }
  // What depends on the fields. The names are as the caller knows them.
  template <class AnyOp>
  void finish(AnyOp& op) const {
    if constexpr (requires { op.settings.retention; }) {
      const bool is_outbox = !outbox.empty() && op.stream == outbox;
      if (is_outbox && op.settings.retention == Retention{}) {
        op.settings.retention = outbox_retention;
      }
    }
    if constexpr (requires { op.settings.attempts_max; }) {
      if (op.settings.attempts_max != kNotSaid) return;
      const bool is_outbox = outbox_attempts_max != 0 && op.stream == outbox;
      op.settings.attempts_max = is_outbox ? outbox_attempts_max : ConsumerSettings{}.attempts_max;
    }
  }

 private:
  // Beyond every limit, so that nobody can have meant it.
  static constexpr std::uint32_t kNotSaid = std::numeric_limits<std::uint32_t>::max();
};

}  // namespace hapax::wire
