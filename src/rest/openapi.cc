#include "rest/openapi.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/words.h"
#include "rest/answer_samples.h"
#include "rest/event_stream.h"
#include "rest/record_frames.h"
#include "rest/record_schemas.h"
#include "wire/answer.h"
#include "wire/event_fields.h"
#include "wire/json_schema.h"
#include "wire/json_text.h"
#include "wire/op_fields.h"

namespace hapax::rest {

namespace {

using wire::JsonArray;
using wire::JsonObject;

constexpr std::string_view kJson = "application/json";
constexpr std::string_view kText = R"({"schema":{"type":"string"}})";
constexpr std::string_view kCommit =
    R"({"ops":[{"op":"append","stream":"orders","payload":"tea","id":"o-1"},)"
    R"({"op":"set","name":"last-order","value":"o-1","mode":"always"}]})";
constexpr std::string_view kBytes = R"({"schema":{}})";

std::string reference(std::string_view name) {
  return JsonObject().add("$ref", "#/components/schemas/" + std::string(name)).text();
}
std::string content(std::string_view schema) { return JsonObject().raw("schema", schema).text(); }

// "{stream}" and its like in a pattern.
std::vector<std::string> names_in(std::string_view pattern) {
  std::vector<std::string> names;
  for (std::size_t at = 0; (at = pattern.find('{', at)) != std::string_view::npos; ++at) {
    names.emplace_back(pattern.substr(at + 1, pattern.find('}', at) - at - 1));
  }
  return names;
}

// --- what is sent

// As commits.cc reads it: bare or in quotes, of printable ASCII.
constexpr std::string_view kIdempotencyKey =
    R"(^(?:[!#-+\x2d-~](?:[ -+\x2d-~]{0,253}[!-+\x2d-~])?)"
    R"(|\x22(?:[ !#-\x5b\x5d-~]|\x5c[\x22\x5c]){1,255}\x22)$)";

// As ${secret:NAME} takes it.
constexpr std::string_view kSecretName = R"({"type":"string","pattern":"^[A-Za-z0-9_]{1,100}$"})";

// As delivery::WorkflowId is.
constexpr std::string_view kWorkflowId =
    R"({"type":"string","pattern":"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$"})";

// Of a name in the path of a route that reads.
wire::Allowed allowed_in_path(const Route& route, std::string_view name) {
  namespace allowed = wire::allowed;
  if (name == "key" && route.dedup_key) return {1, {}, wire::FirstByte::kNoFrame};
  if (name == "key" || name == "id") return allowed::kKey;
  if (name == "consumer" || name == "producer") return allowed::kNameBelow;
  return name == "name" ? allowed::kRegister : allowed::kName;
}

std::string parameters_of(const Route& route, const wire::Setting& setting) {
  JsonArray all;
  const auto add = [&](std::string_view name, std::string_view in, std::string_view help,
                       std::string_view schema, bool required = false) {
    all.add(JsonObject()
                .add("name", name)
                .add("in", in)
                .add("required", required || in == "path")
                .add("description", help)
                .raw("schema", schema)
                .text());
  };
  for (const std::string& name : setting.elsewhere) {
    add(name, "path", "",
        name == "secret"     ? std::string(kSecretName)
        : name == "workflow" ? std::string(kWorkflowId)
        : route.op.empty()   ? wire::text_schema_of(allowed_in_path(route, name))
                             : wire::place_schema(route.op, setting, name));
  }
  for (const QueryField& field : route.query) {
    add(field.name, "query", field.help, field.schema, field.required);
  }
  if (!route.op.empty() || route.keyed) {
    add("Idempotency-Key", "header", "The commit's id: a repetition gets the first answer",
        JsonObject()
            .add("type", "string")
            .add("minLength", 1)
            .add("maxLength", 2 + 2 * limits::kMessageIdBytesMax)
            .add("pattern", kIdempotencyKey)
            .text());
  }
  std::string text = all.text();
  if (route.method == "DELETE" && !route.op.empty()) {  // It has no body.
    const std::string fields = wire::op_parameters(route.op, setting);
    if (fields != "[]") text = text.substr(0, text.size() - 1) + "," + fields.substr(1);
  }
  return text;
}

std::string any_op_schema(wire::Callers callers) {
  JsonArray all;
  std::apply(
      [&](const auto&... named) {
        (all.add(wire::op_schema(named.name, {{}, callers}, wire::OpName::kMember)), ...);
      },
      wire::kOps);
  return JsonObject().raw("oneOf", all.text()).text();
}

std::string body_of(const Route& route, const wire::Setting& setting) {
  JsonObject types;
  if (route.op == "commit") {
    const std::string schema = wire::commit_schema("ops", reference("Operation"));
    types.raw(kJson, JsonObject().raw("schema", schema).raw("example", kCommit).text());
  } else if (route.list.empty()) {
    types.raw(kJson, content(wire::op_schema(route.op, setting)));
  } else {
    const std::string one = wire::op_schema(route.op, setting);
    JsonArray forms;
    forms.add(one);
    forms.add(wire::list_schema(one));
    forms.add(wire::commit_schema(route.list, one));
    types.raw(kJson, content(JsonObject().raw("anyOf", forms.text()).text()));
    types.raw("application/x-ndjson", kText);
    if (route.op == "append") types.raw(kRecordFrames, kBytes);
  }
  const bool needed =
      route.op == "commit" || !route.list.empty() || wire::needs_body(route.op, setting);
  return JsonObject().add("required", needed).raw("content", types.text()).text();
}

// --- what comes back

std::string good_answer(const Route& route) {
  JsonObject types;
  if (!route.answer.empty()) {
    types.raw(kJson, content(reference(route.answer)));
    if (route.answer == "Records") types.raw(kEventStream, kText).raw(kRecordFrames, kBytes);
  } else {
    const bool one = route.op != "commit" && route.op != "end";
    JsonArray forms;
    if (one) forms.add(reference("Verdict"));
    if (!one || !route.list.empty()) forms.add(reference("Answer"));
    types.raw(kJson, content(JsonObject().raw("oneOf", forms.text()).text()));
  }
  return JsonObject().add("description", "It holds").raw("content", types.text()).text();
}

bool makes_a_record(const Route& route) {
  return route.op == "append" || route.op == "redrive" || route.op == wire::kEvent;
}

std::string responses_of(const Route& route) {
  JsonObject out;
  const bool text = route.answer.starts_with("text/") || route.answer == kJson;
  if (text) {
    const JsonObject types = JsonObject().raw(route.answer, kText);
    out.raw("200",
            JsonObject().add("description", "As it says").raw("content", types.text()).text());
    if (route.open) return out.text();  // It is there for everybody, and always.
  } else {
    out.raw("200", good_answer(route));
  }
  if (makes_a_record(route)) out.raw("201", good_answer(route));
  JsonObject types;
  types.raw("application/problem+json", content(reference("Problem")));
  if (route.answer.empty()) types.raw(kJson, content(reference("Answer")));
  out.raw("default", JsonObject()
                         .add("description", "It does not hold, or went wrong")
                         .raw("content", types.text())
                         .text());
  return out.text();
}

// --- the document

std::string operation_id(const Route& route) {
  if (!route.op.empty()) return route.op;
  std::string id = base::lower(route.method);
  for (const char c : route.pattern) {
    if (c != '{' && c != '}') id.push_back(c == '/' || c == '.' ? '_' : c);
  }
  return id;
}

std::string operation_of(const Route& route, wire::Callers callers) {
  const std::vector<std::string> names = names_in(route.pattern);
  const wire::Setting setting{names, callers};
  JsonObject out;
  out.add("operationId", operation_id(route)).add("summary", route.summary);
  out.raw("parameters", parameters_of(route, setting));
  if (!route.op.empty() && route.method != "DELETE") {
    out.raw("requestBody", body_of(route, setting));
  } else if (!route.body.empty()) {
    const JsonObject types = JsonObject().raw(kJson, content(route.body));
    out.raw("requestBody", JsonObject().add("required", true).raw("content", types.text()).text());
  }
  if (route.open) out.raw("security", "[]");
  return out.raw("responses", responses_of(route)).text();
}

std::string paths_of(const Router& router, wire::Callers callers) {
  std::map<std::string, JsonObject> paths;
  for (const Route& route : router.routes()) {
    paths[route.pattern].raw(base::lower(route.method), operation_of(route, callers));
  }
  JsonObject out;
  for (const auto& [pattern, operations] : paths) out.raw(pattern, operations.text());
  return out.text();
}

std::string schema_of(const std::vector<Verdict>& samples) {
  std::vector<std::string> texts;
  std::set<std::string> known;
  for (const Verdict& sample : samples) {
    texts.push_back(wire::json_of(sample));
    known.insert(wire::json_text(word_of(sample)));
  }
  JsonArray words;
  for (const std::string& one : known) words.add(one);
  const std::string word = JsonObject().raw("enum", words.text()).text();
  JsonArray both;
  both.add(wire::schema_of(texts));
  both.add(JsonObject().raw("properties", JsonObject().raw("verdict", word).text()).text());
  return JsonObject().raw("allOf", both.text()).text();
}

void add_workflow_change_schemas(JsonObject& out) {
  out.raw("WorkflowPut",
          R"({"type":"object","properties":{"id":{"type":"string"},)"
          R"("outcome":{"enum":["created","changed","unchanged"]},"version":{"type":"integer"},)"
          R"("differences":{"type":"array","items":{"type":"object","properties":{)"
          R"("path":{"type":"string"},"before":{},"after":{}},"required":["path"],)"
          R"("additionalProperties":false}},"warnings":{"type":"array",)"
          R"("items":{"type":"string"}}},"required":["id","outcome","version","differences",)"
          R"("warnings"],"additionalProperties":false})");
  out.raw("WorkflowTest",
          R"({"type":"object","properties":{"outputs":{"type":"array","items":)"
          R"({"type":"object","properties":{"payload":{"type":"string"},)"
          R"("payload_base64":{"type":"string"},"type":{"type":"string"},"key":{"type":"string"},)"
          R"("key_base64":{"type":"string"}},"additionalProperties":false}},)"
          R"("dead_letter":{"type":"string"},"requests":{"type":"array","items":{"type":"object",)"
          R"("properties":{"endpoint":{"type":"string"},"key":{"type":"string"},)"
          R"("flaw":{"type":"string"},"stream":{"type":"string"},"method":{"type":"string"},)"
          R"("url":{"type":"string"},"headers":{"type":"array","items":{"type":"array"}},)"
          R"("body":{"type":"string"},"body_base64":{"type":"string"},"sent":{"type":"object",)"
          R"("properties":{"outcome":{"enum":["delivered","rejected","try-later","unknown",)"
          R"("not-sent","gone"]},"status":{"type":"integer"},"reason":{"type":"string"},)"
          R"("answer":{"type":"string"},"answer_base64":{"type":"string"}},)"
          R"("required":["outcome","status"],"additionalProperties":false}},)"
          R"("required":["endpoint"],"additionalProperties":false}}},)"
          R"("required":["outputs","requests"],"additionalProperties":false})");
  out.raw("WorkflowRemoved", R"({"type":"object","properties":{"id":{"type":"string"},)"
                             R"("state":{"enum":["removing","removed"]}},)"
                             R"("required":["id","state"],"additionalProperties":false})");
}

// A declaration is what the configuration may say, which has a schema of its own.
void add_workflow_schemas(JsonObject& out) {
  constexpr std::string_view kEndpoint =
      R"({"type":"object","properties":{"name":{"type":"string"},)"
      R"("attempts":{"type":"integer"},"delivered":{"type":"integer"},)"
      R"("retries":{"type":"integer"},"dead_letters":{"type":"integer"},)"
      R"("unknown":{"type":"integer"},"pauses":{"type":"integer"},)"
      R"("repeats":{"type":"integer"},"retry_rate":{"type":"number"},)"
      R"("duplicate_rate":{"type":"number"},"disabled":{"type":"boolean"},)"
      R"("latency_ms":{"type":"object","properties":{"p50":{"type":"number"},)"
      R"("p95":{"type":"number"},"p99":{"type":"number"}},)"
      R"("required":["p50","p95","p99"],"additionalProperties":false},)"
      R"("last_error":{"type":"string"}},"required":["name","attempts","delivered"],)"
      R"("additionalProperties":false})";
  out.raw("Workflow",
          R"({"type":"object","properties":{"id":{"type":"string"},)"
          R"("state":{"enum":["running","waiting","paused","not_running","disabled","removing"]},)"
          R"("origin":{"enum":["file","api"]},"version":{"type":"integer"},)"
          R"("not_applied":{"type":"string"},)"
          R"("reason":{"type":"string"},"since":{"type":"string","format":"date-time"},)"
          R"("waiting":{"type":"integer"},"in_flight":{"type":"integer"},)"
          R"("lost":{"type":"integer"},)"
          R"("dead_letters":{"type":"integer"},"endpoints":{"type":"array","items":)" +
              std::string(kEndpoint) +
              R"(},"client_guidance":{"type":"string"},"declaration":{"type":"object"}},)"
              R"("required":["id","origin","state","dead_letters",)"
              R"("endpoints"],"additionalProperties":false})");
  constexpr std::string_view kAttempt =
      R"({"type":"object","properties":{"position":{"type":"integer"},)"
      R"("began_ms":{"type":"integer"},"settled_ms":{"type":"integer"},"key":{"type":"string"},)"
      R"("endpoint":{"type":"string"},"attempt":{"type":"integer"},)"
      R"("replay":{"type":"integer"},"sequence":{"type":"integer"},)"
      R"("outcome":{"enum":["delivered","rejected","try-later","unknown"]},)"
      R"("status":{"type":"integer"},"times_us":{"type":"object","properties":{)"
      R"("waited":{"type":"integer"},"name":{"type":"integer"},"connected":{"type":"integer"},)"
      R"("tls":{"type":"integer"},"first_byte":{"type":"integer"},"total":{"type":"integer"}},)"
      R"("required":["waited","total"],"additionalProperties":false},)"
      R"("reason":{"type":"string"},"answer":{"type":"string"},)"
      R"("answer_base64":{"type":"string"},"answer_cut":{"type":"boolean"}},)"
      R"("required":["position","began_ms","settled_ms","key","attempt","sequence","outcome",)"
      R"("times_us"],"additionalProperties":false})";
  out.raw("Attempts", R"({"type":"object","properties":{"source":{"type":"string"},)"
                      R"("attempts":{"type":"array","items":)" +
                          std::string(kAttempt) +
                          R"(},"next":{"type":"integer"}},"required":["attempts"],)"
                          R"("additionalProperties":false})");
  constexpr std::string_view kBlocked =
      R"({"type":"object","properties":{"key":{"type":"string"},"key_base64":{"type":"string"},)"
      R"("stream":{"type":"string"},"sequence":{"type":"integer"},"since_ms":{"type":"integer"},)"
      R"("until_ms":{"type":["integer","null"]},"attempts":{"type":"integer"},)"
      R"("retries":{"type":"integer"},"reason":{"type":"string"}},"required":["stream",)"
      R"("sequence","since_ms","until_ms","attempts","retries","reason"],)"
      R"("additionalProperties":false})";
  out.raw("Blocked", R"({"type":"object","properties":{"blocked":{"type":"array","items":)" +
                         std::string(kBlocked) +
                         R"(},"more":{"type":"boolean"}},"required":["blocked","more"],)"
                         R"("additionalProperties":false})");
  out.raw("BlockedDecided",
          R"({"type":"object","properties":{"decision":{"enum":["retry","park","drop"]},)"
          R"("records":{"type":"array","items":)" +
              std::string(kBlocked) +
              R"(}},"required":["decision","records"],"additionalProperties":false})");
  out.raw("Workflows", R"({"type":"object","properties":{"workflows":{"type":"array","items":)" +
                           reference("Workflow") + R"(}},"required":["workflows"]})");
}

std::string schemas(wire::Callers callers) {
  JsonArray verdicts;
  for (const auto& samples : verdict_samples()) verdicts.add(schema_of(samples));
  JsonObject out;
  out.raw("Verdict", JsonObject().raw("anyOf", verdicts.text()).text());
  out.raw("Answer",
          std::string(R"({"type":"object","properties":{"committed":{"type":"boolean"},)") +
              R"("repeated":{"type":"boolean"},"time_ms":{"type":"integer"},)" +
              R"("verdicts":{"type":"array","items":)" + reference("Verdict") +
              R"(}},"required":["committed","repeated","time_ms","verdicts"]})");
  out.raw("Problem",
          R"({"type":"object","properties":{"type":{"type":"string"},"title":{"type":"string"},)"
          R"("status":{"type":"integer"},"detail":{"type":"string"},"code":{"type":"string",)"
          R"("pattern":"^HX[0-9]{4}$"},"retry":{"enum":["never","later","look","stop"]}},)"
          R"("required":["type","title","status","detail"]})");
  out.raw("Operation", any_op_schema(callers));
  for (const Samples& samples : answer_samples()) {
    out.raw(samples.name, wire::schema_of(samples.texts));
  }
  add_workflow_schemas(out);
  add_record_schemas(out);
  add_workflow_change_schemas(out);
  out.raw("OutboxPending",
          R"({"type":"object","properties":{"pending":{"type":"integer"},"events":{"type":"array",)"
          R"("items":{"type":"object","required":["metadata","status","created_at"]}},)"
          R"("outboxes":{"type":"array","items":{"type":"object","required":["workflow",)"
          R"("pending"]}}},)"
          R"("required":["pending","events"]})");
  return out.text();
}

}  // namespace

std::string openapi_document(const Router& router, wire::Callers callers) {
  const JsonObject info =
      JsonObject().add("title", "Hapax").add("version", "1").add("summary", "Every effect, once");
  const JsonObject bearer = JsonObject().add("type", "http").add("scheme", "bearer");
  const JsonObject components =
      JsonObject()
          .raw("schemas", schemas(callers))
          .raw("securitySchemes", JsonObject().raw("token", bearer.text()).text());
  const bool signed_in = callers == wire::Callers::kSignedIn;
  return JsonObject()
      .add("openapi", "3.1.0")
      .raw("info", info.text())
      .raw("servers", R"([{"url":"/"}])")
      .raw("security", signed_in ? R"([{"token":[]}])" : "[]")
      .raw("paths", paths_of(router, callers))
      .raw("components", components.text())
      .text();
}

}  // namespace hapax::rest
