// JSON Schemas made from what reads and writes the JSON, so that there is one description only.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace hapax::wire {

// Of an operation's body. Fields that are `elsewhere` (in the path) are left out. With `named`, it
// has the member "op", as in a commit.
enum class OpName : bool { kLeftOut, kMember };
[[nodiscard]] std::string op_schema(std::string_view op, std::span<const std::string> elsewhere,
                                    OpName named = OpName::kLeftOut);
// Of a commit: its members and a list of operations; `item` is the schema of one.
[[nodiscard]] std::string commit_schema(std::string_view list, std::string_view item);

// The optional fields of an operation as query parameters of OpenAPI, without those elsewhere.
// Whether it has fields that must be there and are not elsewhere.
[[nodiscard]] bool needs_body(std::string_view op, std::span<const std::string> elsewhere);
[[nodiscard]] std::string op_parameters(std::string_view op,
                                        std::span<const std::string> elsewhere);

// Of texts that were written as answers: what all of them have is required, nothing else is
// allowed.
[[nodiscard]] std::string schema_of(std::span<const std::string> samples);

}  // namespace hapax::wire
