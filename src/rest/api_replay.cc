// Replays of what workflows have delivered, over HTTP.
#include <algorithm>
#include <string>
#include <utility>

#include "base/format.h"
#include "rest/api.h"
#include "rest/commits.h"
#include "rest/replies.h"
#include "rest/whole_number.h"
#include "wire/json_schema.h"
#include "wire/json_text.h"
#include "wire/strict_json.h"

namespace hapax::rest {

namespace {

using DeliveredAct = DeliveredWanted::Act;

// Its id, unless it is only to be counted.
std::string delivered_schema() {
  const std::string number = wire::number_schema_of({});
  wire::JsonObject fields;
  fields.raw("id", R"({"type":"string","pattern":"^[A-Za-z0-9._-]{1,64}$"})");
  fields.raw("since_ms", number).raw("until_ms", number).raw("endpoint", R"({"type":"string"})");
  fields.raw("dry_run", R"({"type":"boolean"})").raw("cancel", R"({"type":"boolean"})");
  fields.raw("from", number).raw("max", wire::number_schema_of({1, kReplayMax}));
  return wire::JsonObject()
      .add("type", "object")
      .raw("properties", fields.text())
      .raw("anyOf", R"([{"required":["id"]},{"required":["dry_run"],)"
                    R"("properties":{"dry_run":{"const":true}}}])")
      .add("additionalProperties", false)
      .text();
}

constexpr std::string_view kReplayIdForm =
    "1 to 64 letters, digits, '.', '_' and '-', chosen by you: whoever repeats it goes on with the "
    "same replay";

Error wrong_member(std::string_view name, std::string_view expected) {
  return {Errc::kInvalidArgument, base::format("{}: expected {}", name, expected)};
}

bool is_replay_id(std::string_view text) {
  const auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  return !text.empty() && text.size() <= kReplayIdBytesMax &&
         std::all_of(text.begin(), text.end(), good);
}

Status read_replay_member(const std::string& name, const wire::JsonValue& value,
                          DeliveredWanted& wanted) {
  if (name == "id" || name == "endpoint") {
    const auto* text = value.get<std::string>();
    if (text == nullptr) return wrong_member(name, "a text");
    if (name == "id" && !is_replay_id(*text)) return wrong_member(name, kReplayIdForm);
    (name == "id" ? wanted.id : wanted.endpoint) = *text;
    return Ok{};
  }
  if (name == "dry_run" || name == "cancel") {
    const auto* truth = value.get<bool>();
    if (truth == nullptr) return wrong_member(name, "true or false");
    // Whoever asks to count changes nothing, whatever else is said.
    if (*truth && name == "dry_run") wanted.act = DeliveredAct::kCount;
    if (*truth && wanted.act == DeliveredAct::kRun) wanted.act = DeliveredAct::kCancel;
    return Ok{};
  }
  const auto whole = whole_number_in(value);
  if (!whole) return wrong_member(name, "a whole number, not negative");
  const auto number = static_cast<std::int64_t>(*whole);
  if (name == "since_ms") {
    wanted.since_ms = number;
  } else if (name == "until_ms") {
    wanted.until_ms = number;
  } else if (name == "from") {
    wanted.from = *whole;
  } else if (name == "max") {
    wanted.max = static_cast<std::uint32_t>(std::min<std::uint64_t>(*whole, kReplayMax + 1));
  } else {
    return Error{Errc::kInvalidArgument,
                 "unknown member '" + name +
                     "'; known are id, since_ms, until_ms, endpoint, dry_run, cancel, from and "
                     "max"};
  }
  return Ok{};
}

Result<DeliveredWanted> delivered_in(const Call& call) {
  HAPAX_TRY(const wire::JsonValue json, wire::read_strict_json(call.request().body));
  const auto* members = json.get<wire::JsonValue::Object>();
  if (members == nullptr) return Error{Errc::kInvalidArgument, "the body must be an object"};
  DeliveredWanted wanted;
  for (const auto& [name, value] : *members) {
    HAPAX_CHECK(read_replay_member(name, value, wanted));
  }
  if (wanted.max == 0 || wanted.max > kReplayMax) {
    return wrong_member("max", base::format("1 to {}", kReplayMax));
  }
  if (wanted.act != DeliveredAct::kCount && !is_replay_id(wanted.id)) {
    return wrong_member("id",
                        "1 to 64 letters, digits, '.', '_' and '-', chosen by you: whoever "
                        "repeats it goes on with the same replay");
  }
  if (!wanted.id.empty() && !is_replay_id(wanted.id)) return wrong_member("id", kReplayIdForm);
  return wanted;
}

// A13
void audit_replay(access::Entry& entry, const Call& call, const std::string& told) {
  if (call.caller().tenant.empty()) return;
  entry.audit(call.caller().tenant, wire::JsonObject()
                                        .add("act", "replay_delivered")
                                        .add("subject", call.name("workflow"))
                                        .add("actor", call.caller().subject)
                                        .raw("told", told)
                                        .text());
}

Act replay_deliveries(access::Entry& entry, const RecordDirectory& directory) {
  return [&entry, &directory](const SharedCall& call) {
    if (!understands(call)) return;
    const auto wanted = delivered_in(*call);
    if (!wanted) return respond_error(call, wanted.error());
    const auto replay = [&directory, wanted = *wanted, tenant = call->caller().tenant,
                         workflow = std::string(call->name("workflow"))](Store& store) {
      return directory.replay_delivered(tenant, workflow, wanted, store);
    };
    const bool acts = wanted->act != DeliveredAct::kCount;
    entry.ask(call->from(), call->caller(), replay,
              [&entry, call, acts](const Result<std::string>& json) {
                if (json && acts) audit_replay(entry, *call, *json);
                respond_read(call, json, [](const std::string& text) { return text; });
              });
  };
}

}  // namespace

void add_replay_route(Router& router, access::Entry& entry, const RecordDirectory& directory) {
  Route route{"POST", std::string(kRoot) + "/workflows/{workflow}/replay",
              guarded({access::Right::kAdmin}, replay_deliveries(entry, directory)),
              "Send again what was delivered, a piece at a time", ""};
  route.answer = "Replay";
  route.body = delivered_schema();
  router.add(std::move(route));
}

}  // namespace hapax::rest
