// Dead letters of workflows over HTTP: found by filters, put back, and removed.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "rest/api.h"
#include "rest/commits.h"
#include "rest/replies.h"
#include "rest/whole_number.h"
#include "wire/json_schema.h"
#include "wire/json_text.h"
#include "wire/strict_json.h"
#include "wire/text_value.h"

namespace hapax::rest {

namespace {

constexpr std::size_t kFilterBytesMax = 64'000;
constexpr std::uint64_t kSequenceMax = kWholeMax;

constexpr std::string_view kFilterText = R"({"type":"string","minLength":1})";
constexpr std::string_view kStatusText = R"({"type":"string","pattern":"^[2-5]([0-9][0-9]|xx)$"})";

// A filter, or all of them.
std::string replay_schema() {
  const std::string number = wire::number_schema_of({});
  wire::JsonObject fields;
  fields.raw("sequences", R"({"type":"array","minItems":1,"maxItems":1000,"items":)" +
                              wire::number_schema_of({1, {}}) + "}");
  fields.raw("all", R"({"const":true})").raw("since_ms", number).raw("until_ms", number);
  for (const char* name : {"type", "group", "id", "reason", "endpoint", "jq"}) {
    fields.raw(name, kFilterText);
  }
  fields.raw("status", kStatusText).raw("dry_run", R"({"type":"boolean"})");
  fields.raw("database", R"({"type":"boolean"})").raw("from", number).raw("through", number);
  fields.raw("max", wire::number_schema_of({1, kDeadMax}));
  std::string one_of;
  for (const char* name : {"all", "sequences", "since_ms", "until_ms", "type", "group", "id",
                           "reason", "endpoint", "status", "jq"}) {
    if (!one_of.empty()) one_of += ',';
    one_of += base::format(R"({{"required":["{}"]}})", name);
  }
  return wire::JsonObject()
      .add("type", "object")
      .raw("properties", fields.text())
      .raw("anyOf", "[" + one_of + "]")
      .add("additionalProperties", false)
      .text();
}

// A text of a filter; null: there is none of that name.
std::string* text_of(DeadWanted& wanted, std::string_view name) {
  const std::pair<std::string_view, std::string*> texts[] = {
      {"type", &wanted.type},         {"group", &wanted.group},   {"id", &wanted.id},
      {"reason", &wanted.reason},     {"status", &wanted.status}, {"jq", &wanted.jq},
      {"endpoint", &wanted.endpoint},
  };
  for (const auto& [known, text] : texts) {
    if (known == name) return text;
  }
  return nullptr;
}

// As the schemas say it.
Status check_text(std::string_view name, std::string_view text) {
  if (text.empty()) {
    return Error{Errc::kInvalidArgument, base::format("{}: is empty; leave it out for any", name)};
  }
  const auto digit = [&](std::size_t at, char least) {
    return text[at] >= least && text[at] <= '9';
  };
  if (name != "status") return Ok{};
  const bool hundred = text.size() == 3 && text[0] >= '2' && text[0] <= '5';
  if (hundred && (text.substr(1) == "xx" || (digit(1, '0') && digit(2, '0')))) return Ok{};
  return Error{Errc::kInvalidArgument,
               base::format("status: expected one such as 422 or 4xx, got '{}'", text)};
}

Status check_dead(const DeadWanted& wanted) {
  if (wanted.max == 0 || wanted.max > kDeadMax) {
    return Error{Errc::kInvalidArgument,
                 base::format("max: expected 1 to {}, got {}", kDeadMax, wanted.max)};
  }
  if (wanted.sequences.size() > kDeadMax) {
    return Error{Errc::kInvalidArgument, base::format("sequences: more than {}", kDeadMax)};
  }
  return Ok{};
}

Result<DeadWanted> dead_in_query(const SharedCall& call) {
  DeadWanted wanted;
  for (const std::string_view name :
       {"type", "group", "id", "reason", "endpoint", "status", "jq"}) {
    const auto given = call->request().query_value(name);
    if (!given) continue;
    HAPAX_CHECK(check_text(name, *given));
    *text_of(wanted, name) = *given;
  }
  for (const auto& [name, value] :
       {std::pair{"since_ms", &wanted.since_ms}, std::pair{"until_ms", &wanted.until_ms}}) {
    if (!call->request().query_value(name)) continue;
    HAPAX_TRY(const std::uint64_t ms, option<std::uint64_t>(call, name, 0));
    *value = static_cast<std::int64_t>(std::min(ms, kSequenceMax));
  }
  if (call->request().query_value("sequence")) {
    HAPAX_TRY(const std::uint64_t one, option<std::uint64_t>(call, "sequence", 0));
    wanted.sequences.push_back(one);
  }
  HAPAX_TRY(wanted.from, option<std::uint64_t>(call, "from", 0));
  HAPAX_TRY(wanted.max, option<std::uint32_t>(call, "max", wanted.max));
  HAPAX_CHECK(check_dead(wanted));
  return wanted;
}

// --- the body of a replay

struct ReplayWanted {
  DeadWanted dead{};
  bool all = false;
  bool dry_run = false;
};

Error wrong(std::string_view name, std::string_view expected) {
  return {Errc::kInvalidArgument, base::format("{}: expected {}", name, expected)};
}

Result<std::uint64_t> whole_number(std::string_view name, const wire::JsonValue& value) {
  const auto whole = whole_number_in(value);
  if (!whole) return wrong(name, "a whole number that is not negative");
  return *whole;
}

Result<bool> truth(std::string_view name, const wire::JsonValue& value) {
  const auto* given = value.get<bool>();
  if (given == nullptr) return wrong(name, "true or false");
  return *given;
}

Status read_member(const std::string& name, const wire::JsonValue& value, ReplayWanted& wanted) {
  DeadWanted& dead = wanted.dead;
  if (std::string* const text = text_of(dead, name)) {
    const auto* given = value.get<std::string>();
    if (given == nullptr || given->size() > kFilterBytesMax) {
      return wrong(name, "a text of at most 64,000 bytes");
    }
    HAPAX_CHECK(check_text(name, *given));
    *text = *given;
  } else if (name == "all") {
    HAPAX_TRY(wanted.all, truth(name, value));
    if (!wanted.all) return wrong(name, "true, or nothing");
  } else if (name == "dry_run") {
    HAPAX_TRY(wanted.dry_run, truth(name, value));
  } else if (name == "database") {
    HAPAX_TRY(dead.database, truth(name, value));
  } else if (name == "sequences") {
    const auto* list = value.get<wire::JsonValue::Array>();
    if (list == nullptr) return wrong(name, "a list of sequences");
    for (const wire::JsonValue& each : *list) {
      HAPAX_TRY(const std::uint64_t sequence, whole_number(name, each));
      if (sequence == 0) return wrong(name, "sequences from 1 on");
      dead.sequences.push_back(sequence);
    }
    if (dead.sequences.empty()) return wrong(name, "one sequence at least");
  } else if (name == "since_ms" || name == "until_ms") {
    HAPAX_TRY(const std::uint64_t ms, whole_number(name, value));
    (name == "since_ms" ? dead.since_ms : dead.until_ms) = static_cast<std::int64_t>(ms);
  } else if (name == "from" || name == "through") {
    HAPAX_TRY((name == "from" ? dead.from : dead.through), whole_number(name, value));
  } else if (name == "max") {
    HAPAX_TRY(const std::uint64_t max, whole_number(name, value));
    dead.max = static_cast<std::uint32_t>(std::min<std::uint64_t>(max, kDeadMax + 1));
  } else {
    return Error{Errc::kInvalidArgument,
                 "unknown member '" + name +
                     "'; known are sequences, all, since_ms, until_ms, type, group, id, reason, "
                     "endpoint, status, jq, database, dry_run, from, through and max"};
  }
  return Ok{};
}

Result<ReplayWanted> replay_in(const Call& call) {
  HAPAX_TRY(const wire::JsonValue json, wire::read_strict_json(call.request().body));
  const auto* members = json.get<wire::JsonValue::Object>();
  if (members == nullptr) return Error{Errc::kInvalidArgument, "the body must be an object"};
  ReplayWanted wanted;
  for (const auto& [name, value] : *members) HAPAX_CHECK(read_member(name, value, wanted));
  HAPAX_CHECK(check_dead(wanted.dead));
  if (wanted.all || wanted.dead.chooses()) return wanted;
  return Error{Errc::kInvalidArgument,
               "say which dead letters: sequences, other filters, or all: true"};
}

// --- acts

void respond_dead(const SharedCall& call, const Result<std::string>& json) {
  respond_read(call, json, [](const std::string& text) { return text; });
}

// A13
void audit_dead(access::Entry& entry, const Call& call, std::string_view act,
                const std::string& told) {
  if (call.caller().tenant.empty()) return;
  entry.audit(call.caller().tenant, wire::JsonObject()
                                        .add("act", act)
                                        .add("subject", call.name("workflow"))
                                        .add("actor", call.caller().subject)
                                        .raw("told", told)
                                        .text());
}

// Streams of the server's own are for administrators.
Status check_dead_name(const Call& call) {
  if (!call.name("workflow").starts_with('$')) return Ok{};
  return access::check_right(call.caller(), access::Right::kAdmin);
}

Act list_dead(access::Entry& entry, const RecordDirectory& directory) {
  return [&entry, &directory](const SharedCall& call) {
    const Status allowed = check_dead_name(*call);
    if (!allowed) return respond_error(call, allowed.error());
    const auto wanted = dead_in_query(call);
    if (!wanted) return respond_error(call, wanted.error());
    const auto find = [&directory, wanted = *wanted, tenant = call->caller().tenant,
                       workflow = std::string(call->name("workflow"))](Store& store) {
      return directory.dead(tenant, workflow, wanted, store);
    };
    entry.ask(call->from(), call->caller(), find,
              [call](const Result<std::string>& json) { respond_dead(call, json); });
  };
}

Act replay_dead_letters(access::Entry& entry, const RecordDirectory& directory) {
  return [&entry, &directory](const SharedCall& call) {
    if (!understands(call)) return;
    const auto wanted = replay_in(*call);
    if (!wanted) return respond_error(call, wanted.error());
    const DeadAct act = wanted->dry_run ? DeadAct::kCount : DeadAct::kReplay;
    const auto replay = [&directory, wanted = wanted->dead, act, tenant = call->caller().tenant,
                         workflow = std::string(call->name("workflow"))](Store& store) {
      return directory.replay_dead(tenant, workflow, wanted, act, store);
    };
    entry.ask(call->from(), call->caller(), replay,
              [&entry, call, act](const Result<std::string>& json) {
                if (json && act == DeadAct::kReplay) audit_dead(entry, *call, "replay", *json);
                respond_dead(call, json);
              });
  };
}

Act drop_dead_letters(access::Entry& entry, const RecordDirectory& directory) {
  return [&entry, &directory](const SharedCall& call) {
    const auto through = option<std::uint64_t>(call, "through", 0);
    if (!through) return respond_error(call, through.error());
    if (*through == 0 || *through > kSequenceMax) {
      return respond_error(call, wrong("through", "the sequence of the last one to be removed"));
    }
    const auto drop = [&directory, through = *through, tenant = call->caller().tenant,
                       workflow = std::string(call->name("workflow"))](Store& store) {
      return directory.drop_dead(tenant, workflow, through, store);
    };
    entry.ask(call->from(), call->caller(), drop, [&entry, call](const Result<std::string>& json) {
      if (json) audit_dead(entry, *call, "drop", *json);
      respond_dead(call, json);
    });
  };
}

std::vector<QueryField> dead_query() {
  const std::string number = wire::number_schema_of({});
  const std::string text(kFilterText);
  return {{"since_ms", number, "That died then or later"},
          {"until_ms", number, "That died then or earlier"},
          {"type", text, "Of that event type"},
          {"group", text, "Of that group key"},
          {"id", text, "With that message id"},
          {"reason", text, "Whose reason contains this"},
          {"endpoint", text, "For the endpoint of that name"},
          {"status", std::string(kStatusText), "Whose last answer had this status: 422, 4xx"},
          {"jq", text, "For whose payload this program gives neither false nor null"},
          {"sequence", number, "The one of that sequence"},
          {"max", wire::number_schema_of({1, kDeadMax}), "How many at most; 100 without it"},
          {"from", number, "`next` of the page before"}};
}

}  // namespace

void add_dead_routes(Router& router, access::Entry& entry, const RecordDirectory& directory) {
  using access::Right;
  const std::string path = std::string(kRoot) + "/workflows/{workflow}/dead";
  Route list{"GET", path, guarded({Right::kAdmin, Right::kConsume}, list_dead(entry, directory)),
             "Dead letters of a workflow, oldest first", ""};
  list.answer = "DeadLetters";
  list.query = dead_query();
  router.add(std::move(list));
  Route replay{"POST", path + "/replay",
               guarded({Right::kAdmin}, replay_dead_letters(entry, directory)),
               "Put dead letters back, under their keys, or count them", ""};
  replay.answer = "DeadReplayed";
  replay.body = replay_schema();
  router.add(std::move(replay));
  Route drop{"DELETE", path, guarded({Right::kAdmin}, drop_dead_letters(entry, directory)),
             "Remove the oldest dead letters for good", ""};
  drop.answer = "DeadDropped";
  drop.query = {{"through", wire::number_schema_of({1, kSequenceMax}),
                 "Up to this sequence, and with it", true}};
  router.add(std::move(drop));
}

}  // namespace hapax::rest
