// Keys of workflows whose later records wait, over HTTP: listed, and decided about.
#include <string>
#include <utility>

#include "rest/api.h"
#include "rest/commits.h"
#include "rest/replies.h"
#include "wire/json_schema.h"
#include "wire/json_text.h"
#include "wire/strict_json.h"
#include "wire/text_value.h"

namespace hapax::rest {

namespace {

constexpr std::size_t kReasonBytesMax = 1'000;

// One of key and key_base64, and a reason for what cannot be brought back.
std::string decision_schema() {
  return R"({"type":"object","properties":{"key":{"type":"string"},"key_base64":)" +
         wire::base64_schema_of({}) +
         R"(,"decision":{"enum":["retry","park","drop"]},)"
         R"("reason":{"type":"string","maxLength":1000}},)"
         R"("oneOf":[{"required":["key"]},{"required":["key_base64"]}],)"
         R"("anyOf":[{"properties":{"decision":{"enum":["retry","park"]}}},)"
         R"({"required":["reason"],"properties":{"reason":{"minLength":1}}}],)"
         R"("required":["decision"],"additionalProperties":false})";
}

Error bad_body(std::string_view what) { return {Errc::kInvalidArgument, std::string(what)}; }

Result<std::string> text_of_member(const std::string& name, const wire::JsonValue& value) {
  const auto* text = value.get<std::string>();
  if (text == nullptr) return bad_body(name + ": expected a text");
  if (name == "reason" && text->size() > kReasonBytesMax) {
    return bad_body("reason: longer than 1,000 bytes");
  }
  if (name != "key_base64") return *text;
  auto bytes = wire::bytes_of_base64(*text);
  if (!bytes) return bad_body("key_base64: not base64");
  return *std::move(bytes);
}

Result<BlockedDecision> decision_in(const Call& call) {
  HAPAX_TRY(const wire::JsonValue json, wire::read_strict_json(call.request().body));
  const auto* members = json.get<wire::JsonValue::Object>();
  if (members == nullptr) return bad_body("the body must be an object");
  BlockedDecision decision{.key = {}, .word = {}, .reason = {}, .actor = call.caller().subject};
  int keys = 0;
  for (const auto& [name, value] : *members) {
    HAPAX_TRY(std::string text, text_of_member(name, value));
    if (name == "key" || name == "key_base64") {
      ++keys;
      decision.key = std::move(text);
    } else if (name == "decision") {
      decision.word = std::move(text);
    } else if (name == "reason") {
      decision.reason = std::move(text);
    } else {
      return bad_body("unknown member '" + name +
                      "'; known are key, key_base64, decision and reason");
    }
  }
  if (keys != 1) return bad_body("the body needs one of key and key_base64");
  return decision;
}

// A13
void audit_decision(access::Entry& entry, const Call& call, const BlockedDecision& decision) {
  if (call.caller().tenant.empty()) return;
  entry.audit(call.caller().tenant, wire::JsonObject()
                                        .add("act", "unblock")
                                        .add("subject", call.name("workflow"))
                                        .bytes("key", decision.key)
                                        .add("decision", decision.word)
                                        .add("reason", decision.reason)
                                        .add("actor", decision.actor)
                                        .text());
}

void respond_with(const SharedCall& call, const Result<std::string>& json) {
  respond_read(call, json, [](const std::string& text) { return text; });
}

Act list_blocked_keys(access::Entry& entry, const WorkflowDirectory& directory) {
  return [&entry, &directory](const SharedCall& call) {
    const auto list = [&directory, tenant = call->caller().tenant,
                       workflow = std::string(call->name("workflow"))](Store& store) {
      return directory.blocked(tenant, workflow, store);
    };
    entry.ask(call->from(), call->caller(), list,
              [call](const Result<std::string>& json) { respond_with(call, json); });
  };
}

Act decide_about_key(access::Entry& entry, const WorkflowDirectory& directory) {
  return [&entry, &directory](const SharedCall& call) {
    if (!understands(call)) return;
    const auto decision = decision_in(*call);
    if (!decision) return respond_error(call, decision.error());
    const auto decide = [&directory, decision = *decision, tenant = call->caller().tenant,
                         workflow = std::string(call->name("workflow"))](Store& store) {
      return directory.decide_blocked(tenant, workflow, decision, store);
    };
    entry.ask(call->from(), call->caller(), decide,
              [&entry, call, decision = *decision](const Result<std::string>& json) {
                if (json) audit_decision(entry, *call, decision);
                respond_with(call, json);
              });
  };
}

}  // namespace

void add_blocked_routes(Router& router, access::Entry& entry, const WorkflowDirectory& directory) {
  const std::string path = std::string(kRoot) + "/workflows/{workflow}/blocked";
  Route list{"GET", path,
             guarded({access::Right::kAdmin, access::Right::kConsume},
                     list_blocked_keys(entry, directory)),
             "Keys whose records wait because one of theirs was given up", ""};
  list.answer = "Blocked";
  router.add(std::move(list));
  Route decide{"POST", path, guarded({access::Right::kAdmin}, decide_about_key(entry, directory)),
               "Send what blocks a key again, park it as a dead letter, or drop it", ""};
  decide.answer = "BlockedDecided";
  decide.body = decision_schema();
  router.add(std::move(decide));
}

}  // namespace hapax::rest
