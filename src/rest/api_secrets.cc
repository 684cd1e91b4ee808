// Secrets of tenants over HTTP: written, listed by name and removed, never read.
#include <string>
#include <utility>

#include "rest/api.h"
#include "rest/commits.h"
#include "rest/replies.h"
#include "wire/json_text.h"
#include "wire/strict_json.h"

namespace hapax::rest {

namespace {

constexpr std::string_view kBody =
    R"({"type":"object","properties":{"value":{"type":"string","minLength":1,"maxLength":4096,)"
    R"("pattern":"^[ -~]+$"}},"required":["value"],"additionalProperties":false})";

// {"value": "…"}. No error repeats a byte of it.
Result<std::string> value_in(const http::Request& request) {
  HAPAX_TRY(const wire::JsonValue json, wire::read_strict_json(request.body));
  const auto* members = json.get<wire::JsonValue::Object>();
  const wire::JsonValue* value = json.find("value");
  const auto* text = value == nullptr ? nullptr : value->get<std::string>();
  if (text == nullptr || members->size() != 1) {
    return Error{Errc::kInvalidArgument, "the body must be {\"value\": TEXT} and nothing else"};
  }
  return *text;
}

// A13: who changes a secret of a tenant is written to its audit; the value is not.
void audit_change(access::Entry& entry, const Call& call, std::string_view act) {
  if (call.caller().tenant.empty()) return;
  entry.audit(call.caller().tenant, wire::JsonObject()
                                        .add("act", act)
                                        .add("subject", call.name("secret"))
                                        .add("actor", call.caller().subject)
                                        .text());
}

void respond_text(const SharedCall& call, const Result<std::string>& json) {
  respond_read(call, json, [](const std::string& text) { return text; });
}

Act list_secrets(access::Entry& entry, SecretDirectory& directory) {
  return [&entry, &directory](const SharedCall& call) {
    const auto list = [&directory, tenant = call->caller().tenant](Store&) {
      return directory.list(tenant);
    };
    entry.ask_whole(call->from(), list,
                    [call](const Result<std::string>& json) { respond_text(call, json); });
  };
}

Act put_secret(access::Entry& entry, SecretDirectory& directory) {
  return [&entry, &directory](const SharedCall& call) {
    if (!understands(call)) return;
    auto value = value_in(call->request());
    if (!value) return respond_error(call, value.error());
    const auto put = [&directory, value = *std::move(value), tenant = call->caller().tenant,
                      name = std::string(call->name("secret"))](Store&) {
      return directory.put(tenant, name, value);
    };
    entry.ask_whole(call->from(), put, [&entry, call](const Result<std::string>& json) {
      if (json) audit_change(entry, *call, "put_secret");
      respond_text(call, json);
    });
  };
}

Act remove_secret(access::Entry& entry, SecretDirectory& directory) {
  return [&entry, &directory](const SharedCall& call) {
    const auto remove = [&directory, tenant = call->caller().tenant,
                         name = std::string(call->name("secret"))](Store&) -> Result<std::string> {
      HAPAX_CHECK(directory.remove(tenant, name));
      return wire::JsonObject().add("name", name).add("removed", true).text();
    };
    entry.ask_whole(call->from(), remove, [&entry, call](const Result<std::string>& json) {
      if (json) audit_change(entry, *call, "remove_secret");
      respond_text(call, json);
    });
  };
}

}  // namespace

void add_secret_routes(Router& router, access::Entry& entry, SecretDirectory& directory) {
  const auto add = [&](std::string method, std::string_view path, Act act, std::string summary,
                       std::string answer, std::string_view body = {}) {
    Route route{std::move(method), std::string(kRoot).append(path),
                guarded({access::Right::kAdmin}, std::move(act)), std::move(summary), ""};
    route.answer = std::move(answer);
    route.body = body;
    router.add(std::move(route));
  };
  add("GET", "/secrets", list_secrets(entry, directory), "Names of stored secrets", "Secrets");
  add("PUT", "/secrets/{secret}", put_secret(entry, directory),
      "Store a secret, which nobody can read", "Secret", kBody);
  add("DELETE", "/secrets/{secret}", remove_secret(entry, directory), "Remove a stored secret",
      "SecretRemoved");
}

}  // namespace hapax::rest
