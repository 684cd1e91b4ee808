// Headers of outgoing records as the SQL of sources writes them: netstrings, name and value by
// turns, "4:name5:value".
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "relay/outgoing.h"

namespace hapax::relay {

// None: the row has something else in their place.
[[nodiscard]] std::optional<Headers> headers_of(std::string_view text);

inline constexpr std::string_view kBadHeaders = "its headers are not an array of pairs of strings";
// Other flaws of a record that was not stored by publish().
inline constexpr std::string_view kRowGone = "its row is gone from the outbox";
inline constexpr std::string_view kLongKey = "its key is longer than 255 bytes";
inline constexpr std::size_t kKeyBytesMax = 255;

// A header of a record of an outbox: how often it was redriven.
inline constexpr std::string_view kReplayHeader = "hapax-replay";
// Moves it to where the record tells that; what is not a number counts as none.
void take_replay_header(Outgoing& record);

// What can be stored of a reason that came from outside: one line of ASCII, not too long.
[[nodiscard]] std::string stored_reason(std::string_view reason);

}  // namespace hapax::relay
