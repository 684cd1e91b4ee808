// JSON Schemas made from what reads and writes the JSON, so that there is one description only.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "wire/allowed.h"

namespace hapax::wire {

// Whom a server admits: anybody without a name, or only those who sign in.
enum class Callers : bool { kAnybody, kSignedIn };

// Where an operation is described. Fields that are `elsewhere` (in the path) are left out.
struct Setting {
  std::span<const std::string> elsewhere{};
  Callers callers = Callers::kAnybody;
};

// Of a text, of bytes in base64, and of a whole number from 0 on.
[[nodiscard]] std::string text_schema_of(const Allowed& allowed);
[[nodiscard]] std::string base64_schema_of(const Allowed& allowed);
[[nodiscard]] std::string number_schema_of(const Allowed& allowed);

// Of an operation's body. With `named`, it has the member "op", as in a commit.
enum class OpName : bool { kLeftOut, kMember };
[[nodiscard]] std::string op_schema(std::string_view op, const Setting& setting,
                                    OpName named = OpName::kLeftOut);
// Of a list of operations, and of a commit: its members and such a list; `item` is the schema of
// one operation.
[[nodiscard]] std::string list_schema(std::string_view item);
[[nodiscard]] std::string commit_schema(std::string_view list, std::string_view item);

// Whether it has fields that must be there and are not elsewhere.
[[nodiscard]] bool needs_body(std::string_view op, const Setting& setting);
// The fields of an operation as query parameters of OpenAPI, without those elsewhere.
[[nodiscard]] std::string op_parameters(std::string_view op, const Setting& setting);
// Of a field that is elsewhere.
[[nodiscard]] std::string place_schema(std::string_view op, const Setting& setting,
                                       std::string_view name);

// Of texts that were written as answers: what all of them have is required, nothing else is
// allowed.
[[nodiscard]] std::string schema_of(std::span<const std::string> samples);

}  // namespace hapax::wire
