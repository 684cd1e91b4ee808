// What the acts of the API have in common: who may act, options of a call, and answers to reads.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include <hapax/result.h>

#include "access/admission.h"
#include "rest/problem.h"
#include "rest/router.h"
#include "rest/verdict_response.h"
#include "wire/allowed.h"
#include "wire/answer.h"
#include "wire/text_value.h"

namespace hapax::rest {

inline constexpr std::string_view kRoot = "/api/v1";

// Whether the caller may see stored results.
[[nodiscard]] wire::Bodies bodies_for(const access::Caller& caller);
// An act for callers who have one of the rights; the others are told so. No name of the path
// reaches into another tenant.
[[nodiscard]] Act guarded(std::initializer_list<access::Right> any_of, Act act);

// An option from the query.
template <class Value>
[[nodiscard]] Result<Value> option(const SharedCall& call, std::string_view name, Value otherwise) {
  const auto text = call->request().query_value(name);
  if (!text) return otherwise;
  Value value{};
  if (const auto expected = wire::from_text(*text, value)) {
    return Error{Errc::kInvalidArgument, std::string(name) + ": expected " + *expected + ", got '" +
                                             std::string(*text) + "'"};
  }
  return value;
}

// Whether that name in the query, if it is there, can be anybody's.
[[nodiscard]] Status check_name(const SharedCall& call, std::string_view option,
                                const wire::Allowed& allowed);

void respond_error(const SharedCall& call, const Error& error);

template <class Value, class ToJson>
void respond_read(const SharedCall& call, const Result<Value>& value, const ToJson& to_json) {
  if (!value) return respond_error(call, value.error());
  call->exchange->respond(json_response(200, to_json(*value)));
}

// A read that finds something or nothing.
template <class Value, class ToJson>
void respond_found(const SharedCall& call, const Result<std::optional<Value>>& found,
                   std::string_view what, const ToJson& to_json) {
  if (found && !*found) {
    return respond_error(
        call, {Errc::kNotFound, std::string(what) + " is not known; it was never there, or is "
                                                    "forgotten"});
  }
  respond_read(call, found, [&](const std::optional<Value>& value) { return to_json(*value); });
}

}  // namespace hapax::rest
