// Bodies that become commits, and their answers.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>

#include <hapax/result.h>
#include <hapax/verdicts.h>

#include "access/entry.h"
#include "rest/router.h"
#include "wire/request.h"

namespace hapax::rest {

// The commit's id from Idempotency-Key, quoted or bare; refused if the body names another.
[[nodiscard]] Status give_id(const http::Request& http, wire::Request& request);

// The body is JSON or of one of the other types; kUnsupportedMedia names them. A type that says
// nothing (none, or what curl -d says) is taken for JSON.
[[nodiscard]] Status check_media(const http::Request& http,
                                 std::initializer_list<std::string_view> others = {});

using Tell = void (*)(const SharedCall&, const Result<Answer>&);
void respond_one(const SharedCall& call, const Result<Answer>& answer);   // its verdict
void respond_list(const SharedCall& call, const Result<Answer>& answer);  // {"verdicts": […]}

void carry_out(access::Entry& entry, const SharedCall& call, Result<wire::SharedRequest> request,
               Tell tell = respond_one);

// Whether the body is of a type that check_media() knows. Otherwise the call was answered.
[[nodiscard]] bool understands(const SharedCall& call,
                               std::initializer_list<std::string_view> others = {});

inline constexpr std::string_view kLines = "application/x-ndjson";

// What is still to be done to operations that were read; an error is the client's answer.
using Complete = std::function<Status(const SharedCall&, wire::Request&)>;
// The body is one object, or a list of them, in JSON or as lines. One is answered with its verdict,
// a list with a list.
[[nodiscard]] Act many_ops(access::Entry& entry, std::string op, std::string list,
                           Complete complete = {});

}  // namespace hapax::rest
