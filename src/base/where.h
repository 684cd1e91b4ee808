// Where a fact lies in the journal.
#pragma once

#include <compare>
#include <cstdint>

namespace hapax::base {

struct Where {
  std::uint32_t segment = 0;  // 0 = nowhere; the first segment is 1
  std::uint32_t offset = 0;   // of the fact's first byte in the segment's file
  std::uint32_t length = 0;
  friend constexpr auto operator<=>(const Where&, const Where&) = default;
};

}  // namespace hapax::base
