// Reads logs of attempts, page by page, oldest first.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <hapax/store.h>

#include "delivery/attempt_record.h"

namespace hapax::delivery {

// Which attempts are wanted. All of what is said must hold.
struct AttemptQuery {
  std::optional<std::set<std::string>> keys{};  // one of them
  std::optional<AttemptOutcome> outcome{};
  std::optional<std::string> endpoint{};
  Time since = Time::min();  // settled then or later
  Time until = Time::max();  // settled then or earlier
  std::uint64_t from = 0;    // position
  std::size_t max = 100;
};

struct FoundAttempt {
  std::uint64_t position = 0;  // in the log; it grows
  LoggedAttempt logged{};
};

struct AttemptPage {
  std::vector<FoundAttempt> attempts{};
  // Where the next page begins; none: there are no more now. A page that found nothing can have a
  // next one: of a large log, one call looks at a part.
  std::optional<std::uint64_t> next{};
};

inline constexpr std::uint64_t kAttemptsLookedAtBytes = std::uint64_t{8} << 20;  // of a page

// kNotFound: there is no such stream; kPreconditionFailed: it is not a log of attempts.
[[nodiscard]] Result<AttemptPage> find_attempts(Store& store, std::string_view stream,
                                                const AttemptQuery& query,
                                                std::uint64_t bytes_max = kAttemptsLookedAtBytes);

}  // namespace hapax::delivery
