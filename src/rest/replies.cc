#include "rest/replies.h"

#include <utility>
#include <vector>

#include "base/format.h"
#include "base/tenant_frame.h"

namespace hapax::rest {

namespace {

// Names below another one, which keeps tenants apart already: they are any bytes.
bool is_below(const Call& call, std::string_view name) {
  return name == "consumer" || name == "producer" || name == "id" ||
         (name == "key" && !call.name("scope").empty());
}

Status admit(const Call& call, const std::vector<access::Right>& any_of) {
  HAPAX_CHECK(access::check_any_right(call.caller(), any_of));
  for (const auto& [name, value] : call.names) {
    if (!is_below(call, name) && !base::from_outside(value)) {
      return Error{Errc::kInvalidArgument, name + ": must not begin with the byte 0x01"};
    }
    if (name == "stream") HAPAX_CHECK(access::check_stream(call.caller(), value));
  }
  return Ok{};
}

}  // namespace

wire::Bodies bodies_for(const access::Caller& caller) {
  return caller.rights.has(access::Right::kReadBodies) ? wire::Bodies::kShown
                                                       : wire::Bodies::kHidden;
}

Act guarded(std::initializer_list<access::Right> any_of, Act act) {
  return
      [any_of = std::vector<access::Right>(any_of), act = std::move(act)](const SharedCall& call) {
        if (Status admitted = admit(*call, any_of); !admitted) {
          return respond_error(call, std::move(admitted).error());
        }
        act(call);
      };
}

Status check_name(const SharedCall& call, std::string_view option, const wire::Allowed& allowed) {
  const auto name = call->request().query_value(option);
  if (!name) return Ok{};
  const auto bad = [&](Errc code, const std::string& why) {
    return Error{code, std::string(option) + ": " + why};
  };
  if (name->empty()) return bad(Errc::kInvalidArgument, "is empty; leave it out instead");
  if (allowed.first != wire::FirstByte::kAny && !base::from_outside(*name)) {
    return bad(Errc::kInvalidArgument, "must not begin with the byte 0x01");
  }
  if (allowed.most && name->size() > *allowed.most) {
    return bad(Errc::kLimitExceeded,
               base::format("has {}; the most is {}", name->size(), *allowed.most));
  }
  return Ok{};
}

void respond_error(const SharedCall& call, const Error& error) {
  call->exchange->respond(problem_response(error, call->request()));
}

}  // namespace hapax::rest
