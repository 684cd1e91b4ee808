// The arguments of a command as COMMAND DOCS tells them, from which redis-cli makes its hints.
#pragma once

#include <string_view>

#include "resp/replies.h"

namespace hapax::resp {

// `usage` is what people read: words are required, [word] may be left out, [TOKEN word] has a name
// in front of it, [TOKEN] stands alone, and behind … there may be more of the same.
void tell_arguments(Replies& replies, std::string_view usage);

}  // namespace hapax::resp
