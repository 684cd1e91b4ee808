// Which functions and variables a compiled program uses, read from the listing of its bytecode, and
// which of them a transform must not use.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hapax::jq {

// One sentence for each thing that the listing uses and a transform must not. The listing is that
// of jq_dump_disassembly: the compiler has resolved every name, so this is what the program can
// call.
[[nodiscard]] std::vector<std::string> refusals(std::string_view listing);

}  // namespace hapax::jq
