// trace: the life of a key, from everything that the API tells of it.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>

#include "base/format.h"
#include "cli/attempt_lines.h"
#include "cli/show.h"
#include "cli/store_commands.h"
#include "cli/trace_outbox.h"
#include "cli/way.h"
#include "wire/json_text.h"

namespace hapax::cli {

namespace {

using wire::JsonValue;

constexpr std::int64_t kTraceRecordsMax = 5'000;  // looked at in the audit and in dead letters
constexpr std::int64_t kTracePage = 1'000;
constexpr std::string_view kAudit = "$audit";
constexpr int kAttemptPagesMax = 100;  // of one workflow
constexpr std::string_view kDeadLetters = ".dead";
constexpr std::string_view kAttempts = ".attempts";

struct TraceOptions {
  Target target;
  std::string key;
  std::vector<std::string> scopes;
  std::optional<std::string> group;
  OutboxesToTrace outboxes;
};

// Of what happened in one millisecond, a record is stored before it is sent.
enum class LifeStep : std::uint8_t { kOther, kAttempt };

struct LifeEvent {
  std::int64_t ms = 0;
  LifeStep step = LifeStep::kOther;
  std::string text;
};

// What was found, as JSON with the place it was found in.
class Life {
 public:
  void add(std::string_view kind, std::string_view place_name, const std::string& place,
           const JsonValue& json) {
    std::string text = json_of(json);
    const std::string front = wire::JsonObject().add(place_name, place).text();
    text = front.substr(0, front.size() - 1) + (text == "{}" ? "" : ",") + text.substr(1);
    lists_[std::string(kind)].push_back(std::move(text));
  }
  void add(const EventInOutbox& event) {
    if (!event.json.empty()) lists_["outbox"].push_back(event.json);
    for (const auto& [ms, text] : event.happened) tell(ms, text);
    note(event.note);
  }
  void tell(std::int64_t ms, std::string text, LifeStep step = LifeStep::kOther) {
    events_.push_back({ms, step, std::move(text)});
  }
  void note(std::string text) { notes_.insert(std::move(text)); }
  [[nodiscard]] bool empty() const { return lists_.empty(); }
  [[nodiscard]] std::size_t count(const std::string& kind) const {
    const auto found = lists_.find(kind);
    return found == lists_.end() ? 0 : found->second.size();
  }

  [[nodiscard]] std::string json(const std::string& key) const {
    wire::JsonObject out;
    out.add("key", key);
    for (const char* kind :
         {"outbox", "claims", "ids", "records", "attempts", "dead_letters", "registers", "audit"}) {
      wire::JsonArray list;
      if (const auto found = lists_.find(kind); found != lists_.end()) {
        for (const std::string& one : found->second) list.add(one);
      }
      out.raw(kind, list.text());
    }
    return out.text();
  }

  void print() {
    std::stable_sort(events_.begin(), events_.end(), [](const LifeEvent& a, const LifeEvent& b) {
      return std::pair(a.ms, a.step) < std::pair(b.ms, b.step);
    });
    for (const LifeEvent& event : events_) {
      base::print("{}  {}\n", tinted(Tint::kFaint, instant_text(event.ms)), event.text);
    }
    for (const std::string& note : notes_) base::print("{}\n", note);
  }

 private:
  std::map<std::string, std::vector<std::string>> lists_;
  std::vector<LifeEvent> events_;
  std::set<std::string> notes_;
};

class Tracing {
 public:
  Tracing(Way& way, const TraceOptions& options, Life life)
      : way_(way), options_(options), life_(std::move(life)) {}

  int run() {
    const auto streams = way_.look("/api/v1/streams");
    if (!streams) return way_.exit_code();
    std::set<std::string> scopes(options_.scopes.begin(), options_.scopes.end());
    std::set<std::string> names;
    for (const JsonValue& name : list_in(streams->json, "streams")) {
      if (const auto& stream = *name.get<std::string>(); stream != kAudit) names.insert(stream);
    }
    scopes.insert(names.begin(), names.end());
    for (const std::string& stream : names) {
      if (!look_in_stream(stream)) return way_.exit_code();
    }
    for (const std::string& stream : names) {
      if (stream.ends_with(kAttempts) && !look_at_attempts(stream)) return way_.exit_code();
    }
    for (const std::string& stream : names) {
      if (stream.ends_with(kDeadLetters) && !look_in_dead_letters(stream)) return way_.exit_code();
    }
    if (!look_in_audit()) return way_.exit_code();
    const std::string& key = options_.key;
    const std::size_t slash = key.find('/');
    if (slash != std::string::npos && !look_at_claim(key.substr(0, slash), key.substr(slash + 1))) {
      return way_.exit_code();
    }
    scopes.insert(audited_scopes_.begin(), audited_scopes_.end());
    for (const std::string& scope : scopes) {
      if (!look_at_claim(scope, key)) return way_.exit_code();
    }
    if (!look_at_register()) return way_.exit_code();
    return print();
  }

 private:
  // False: the way is closed. What is missing or not allowed is left out.
  bool look(const std::string& path, std::string_view what, std::optional<Told>& told) {
    told = way_.ask({.method = "GET", .path = "/api/v1" + path});
    if (!told) return false;
    if (told->reply.status == 401) {
      way_.fail(*told);
      return false;
    }
    if (told->reply.status == 403) {
      life_.note(base::format("not looked at: {} ({})", what, text_in(told->json, "detail")));
    }
    // What was refused was not looked at either: nobody may take it for "not there".
    if (told->reply.status == 400) {
      life_.note(base::format("not looked at: {} ({})", what, text_in(told->json, "detail")));
    }
    if (!told->good()) told.reset();
    return true;
  }

  bool look_in_stream(const std::string& stream) {
    std::optional<Told> id;
    const std::string path = "/streams/" + client::encoded(stream);
    const std::string group = options_.group ? "?group=" + client::encoded(*options_.group) : "";
    if (!look(path + "/ids/" + client::encoded(options_.key) + group, "message ids", id)) {
      return false;
    }
    if (!id) return true;
    const std::int64_t sequence = number_in(id->json, "sequence");
    life_.add("ids", "stream", stream, id->json);
    life_.tell(number_in(id->json, "first_seen_ms"),
               base::format("stored in stream {} as sequence {}", printable(stream), sequence));
    if (const std::int64_t ends = number_in(id->json, "expires_at_ms"); ends != 0) {
      life_.tell(ends, base::format("the id is forgotten in stream {}", printable(stream)));
    }
    places_.insert({stream, sequence});
    return look_at_record(stream, sequence) && look_at_consumers(stream, sequence);
  }

  // Of the workflow that keeps its attempts in that stream. What it knows a record by leads to the
  // record, and to the claims of its attempts.
  bool look_at_attempts(const std::string& stream) {
    const std::string workflow = stream.substr(0, stream.size() - kAttempts.size());
    std::set<std::string> keys{options_.key};
    std::int64_t from = 0;
    for (int page = 0; page < kAttemptPagesMax; ++page) {
      std::optional<Told> told;
      const std::string path =
          base::format("/workflows/{}/attempts?key={}&max={}&from={}", client::encoded(workflow),
                       client::encoded(options_.key), kTracePage, from);
      if (!look(path, "attempts of workflow " + printable(workflow), told)) return false;
      if (!told) return true;
      const std::string source = text_in(told->json, "source");
      for (const JsonValue& attempt : list_in(told->json, "attempts")) {
        tell_attempt(workflow, attempt);
        keys.insert(text_in(attempt, "key"));
        const std::int64_t sequence = number_in(attempt, "sequence");
        const bool fresh = !source.empty() && places_.insert({source, sequence}).second;
        if (fresh && !look_at_stored(source, sequence)) return false;
      }
      if (told->json.find("next") == nullptr) return look_at_deliveries(workflow, keys);
      from = number_in(told->json, "next");
    }
    life_.note(
        base::format("not looked at: later attempts of workflow {0}; see hapax attempts {0} "
                     "{1} --from {2}",
                     printable(workflow), printable(options_.key), from));
    return look_at_deliveries(workflow, keys);
  }

  void tell_attempt(const std::string& workflow, const JsonValue& attempt) {
    life_.add("attempts", "workflow", workflow, attempt);
    const std::string endpoint = printable(text_in(attempt, "endpoint"));
    const std::string number = std::to_string(number_in(attempt, "attempt"));
    const std::int64_t replay = number_in(attempt, "replay");
    life_.tell(number_in(attempt, "began_ms"),
               base::format("workflow {} sends it, attempt {}{}{}", printable(workflow), number,
                            endpoint.empty() ? "" : ", to endpoint " + endpoint,
                            replay == 0 ? "" : base::format(", replay {}", replay)),
               LifeStep::kAttempt);
    const std::string status = attempt_status(attempt);
    const std::string words = attempt_words(attempt);
    life_.tell(
        attempt_end_ms(attempt),
        base::format("attempt {} of workflow {}: {}{} after {} ms{}", number, printable(workflow),
                     text_in(attempt, "outcome"), status.empty() ? "" : ", HTTP " + status,
                     attempt_time(attempt), words.empty() ? "" : ": " + words),
        LifeStep::kAttempt);
  }

  bool look_at_deliveries(const std::string& workflow, const std::set<std::string>& keys) {
    const std::string scope = workflow + ".deliveries";
    return std::all_of(keys.begin(), keys.end(),
                       [&](const std::string& key) { return look_at_claim(scope, key); });
  }

  // A record that is known by its place only.
  bool look_at_stored(const std::string& stream, std::int64_t sequence) {
    const std::size_t before = life_.count("records");
    if (!look_at_record(stream, sequence)) return false;
    if (life_.count("records") == before) return true;
    life_.tell(stored_ms_,
               base::format("stored in stream {} as sequence {}", printable(stream), sequence));
    return true;
  }

  bool look_at_record(const std::string& stream, std::int64_t sequence) {
    std::optional<Told> told;
    const std::string path =
        base::format("/streams/{}/records?from={}&max=1", client::encoded(stream), sequence);
    if (!look(path, "records", told)) return false;
    if (!told) return true;
    const auto& records = list_in(told->json, "records");
    if (records.empty() || number_in(records.front(), "sequence") != sequence) {
      life_.note(base::format("record {} of stream {} was removed; its id is still known", sequence,
                              printable(stream)));
      return true;
    }
    life_.add("records", "stream", stream, records.front());
    stored_ms_ = number_in(records.front(), "time_ms");
    tell_replayed(stream, records.front());
    return true;
  }

  // Where a record came from that was put back.
  void tell_replayed(const std::string& stream, const JsonValue& record) {
    const JsonValue* lineage = record.find("lineage");
    if (lineage == nullptr || lineage->find("to") == nullptr) return;
    life_.tell(stored_ms_,
               base::format("put back into stream {} as sequence {}: replay {} of record {} of "
                            "stream {} ({})",
                            printable(stream), number_in(record, "sequence"),
                            number_in(*lineage, "redrives"), number_in(*lineage, "sequence"),
                            printable(text_in(*lineage, "stream")),
                            printable(text_in(*lineage, "reason"))));
  }

  bool look_at_consumers(const std::string& stream, std::int64_t sequence) {
    std::optional<Told> told;
    if (!look("/streams/" + client::encoded(stream), "consumers", told)) return false;
    if (!told) return true;
    life_.note(base::format("stream {} knows every id since {}", printable(stream),
                            instant_text(number_in(told->json, "horizon_ms"))));
    for (const JsonValue& one : list_in(told->json, "consumers")) {
      const std::string name = printable(text_in(one, "consumer"));
      const char* state = "may be in flight or acked";
      if (sequence <= number_in(one, "floor")) state = "is through";
      if (sequence >= number_in(one, "next")) state = "has not been handed out";
      life_.note(base::format("consumer {} of stream {}: sequence {} {}", name, printable(stream),
                              sequence, state));
    }
    return true;
  }

  // Every record of a stream, the newest of them if they are too many.
  template <class Act>
  bool each_record(const std::string& stream, const Act& act) {
    std::optional<Told> told;
    if (!look("/streams/" + client::encoded(stream), stream, told)) return false;
    if (!told) return true;
    const std::int64_t last = number_in(told->json, "last");
    std::int64_t from = std::max(number_in(told->json, "first"), last - kTraceRecordsMax + 1);
    while (from <= last) {
      if (!look(base::format("/streams/{}/records?from={}&max={}", client::encoded(stream), from,
                             kTracePage),
                stream, told)) {
        return false;
      }
      if (!told || list_in(told->json, "records").empty()) return true;
      for (const JsonValue& record : list_in(told->json, "records")) act(record);
      from = number_in(list_in(told->json, "records").back(), "sequence") + 1;
    }
    return true;
  }

  bool look_in_dead_letters(const std::string& dead) {
    if (places_.empty()) return true;
    return each_record(dead, [&](const JsonValue& record) {
      const JsonValue* lineage = record.find("lineage");
      const bool ours = lineage != nullptr && places_.contains({text_in(*lineage, "stream"),
                                                                number_in(*lineage, "sequence")});
      if (!ours) return;
      life_.add("dead_letters", "dead_letters", dead, record);
      for (const JsonValue& attempt : list_in(*lineage, "history")) {
        life_.tell(
            number_in(attempt, "handed_out_ms"),
            base::format("handed out to {}, attempt {}", printable(text_in(attempt, "owner")),
                         number_in(attempt, "attempt")));
        life_.tell(number_in(attempt, "ended_ms"),
                   base::format("attempt {} ended: {} {}", number_in(attempt, "attempt"),
                                text_in(attempt, "ending"), printable(text_in(attempt, "reason"))));
      }
      life_.tell(number_in(record, "time_ms"),
                 base::format("dead letter {} of consumer {}: {}", number_in(record, "sequence"),
                              printable(text_in(*lineage, "consumer")),
                              printable(text_in(*lineage, "reason"))));
    });
  }

  bool look_at_claim(const std::string& scope, const std::string& key) {
    std::optional<Told> told;
    if (!look("/claims/" + client::encoded(scope) + "/" + client::encoded(key), "claims", told)) {
      return false;
    }
    if (!told) return true;
    const JsonValue& claim = told->json;
    life_.add("claims", "scope", scope, claim);
    const std::string state = text_in(claim, "state");
    const std::string owner = text_in(claim, "owner");
    const std::string reason = text_in(claim, "reason");
    std::string text =
        base::format("claim {}/{}: {}, fence {}, attempt {}", printable(scope), printable(key),
                     state, number_in(claim, "fence"), number_in(claim, "attempts"));
    if (!owner.empty()) text += ", owner " + printable(owner);
    if (!reason.empty()) text += ", because " + printable(reason);
    if (claim.find("status") != nullptr) {
      text += base::format(", result status {}", number_in(claim, "status"));
    }
    life_.tell(number_in(claim, "since_ms"), std::move(text));
    const std::string end = state == "processing" ? "its lease ends"
                            : state == "unknown"  ? ""
                                                  : "the claim is forgotten";
    if (const std::int64_t until = number_in(claim, "until_ms"); until != 0 && !end.empty()) {
      life_.tell(until, base::format("claim {}/{}: {}", printable(scope), printable(key), end));
    }
    if (state == "unknown") {
      life_.note(base::format("undecided: see what happened, then hapax resolve {} {} …",
                              printable(scope), printable(key)));
    }
    return true;
  }

  bool look_at_register() {
    std::optional<Told> told;
    if (!look("/registers/" + client::encoded(options_.key), "registers", told)) return false;
    if (!told) return true;
    life_.add("registers", "name", options_.key, told->json);
    life_.note(base::format("register {}: version {}, value {}", printable(options_.key),
                            number_in(told->json, "version"),
                            printable(bytes_in(told->json, "value"))));
    if (const std::int64_t ends = number_in(told->json, "expires_at_ms"); ends != 0) {
      life_.tell(ends, "the register of that name goes");
    }
    return true;
  }

  bool look_in_audit() {
    return each_record(std::string(kAudit), [&](const JsonValue& record) {
      const auto act = wire::read_strict_json(text_in(record, "payload"));
      if (!act) return;
      const std::string subject = text_in(*act, "subject");
      if (subject != options_.key && !subject.ends_with("/" + options_.key)) return;
      life_.add("audit", "stream", std::string(kAudit), record);
      if (subject != options_.key) {
        audited_scopes_.insert(subject.substr(0, subject.size() - options_.key.size() - 1));
      }
      const std::string actor = text_in(*act, "actor");
      const std::string reason = text_in(*act, "reason");
      life_.tell(
          number_in(record, "time_ms"),
          base::format("{} {} by {}{}", text_in(*act, "act"), printable(subject), printable(actor),
                       reason.empty() ? "" : ", because " + printable(reason)));
    });
  }

  int print() {
    if (way_.json()) {
      base::print("{}\n", life_.json(options_.key));
    } else {
      life_.print();
    }
    if (!life_.empty()) return kExitOk;
    return way_.fail(kExitMissing,
                     "nothing is known of '" + printable(options_.key) +
                         "'. Claims are looked for in the scopes that --scope, a stream or the "
                         "audit names; what is older than a stream's horizon may have been "
                         "known and forgotten");
  }

  Way& way_;
  const TraceOptions& options_;
  Life life_;
  std::set<std::string> audited_scopes_;
  std::set<std::pair<std::string, std::int64_t>> places_;  // streams and sequences of the key
  std::int64_t stored_ms_ = 0;                             // of the record that was read last
};

// Whoever names outboxes and no store means the outboxes.
bool names_store(const Target& target) {
  const char* url = std::getenv("HAPAX_URL");
  return !target.url.empty() || !target.data.empty() || (url != nullptr && *url != '\0');
}

int print_outboxes(const TraceOptions& options, Life life) {
  if (options.target.output == Output::kJson) {
    base::print("{}\n", life.json(options.key));
  } else {
    life.print();
  }
  return life.empty() ? kExitMissing : kExitOk;
}

int run_trace(const TraceOptions& options) {
  Life life;
  const auto events = trace_in_outboxes(options.outboxes, options.key);
  if (!events) return report_database(events.error());
  for (const EventInOutbox& event : *events) life.add(event);
  if (!options.outboxes.from.empty() && !names_store(options.target)) {
    return print_outboxes(options, std::move(life));
  }
  return on_way(options.target,
                [&](Way& way) { return Tracing(way, options, std::move(life)).run(); });
}

}  // namespace

void declare_trace(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<TraceOptions>();
  CLI::App* trace = app.add_subcommand("trace", "Tell the life of a key");
  trace
      ->add_option("key", options->key,
                   "Message id, event id, key of a delivery or of a claim, or SCOPE/KEY")
      ->required();
  trace->add_option("--group", options->group, "Group key, where ids are unique per group");
  trace->add_option("--scope", options->scopes, "Scope of claims to look into; may be repeated")
      ->allow_extra_args(false);
  trace
      ->add_option("--from", options->outboxes.from,
                   "Outbox to look into: postgres://… or sqlite:FILE; may be repeated. Without "
                   "--url, --data and HAPAX_URL nothing else is looked into")
      ->allow_extra_args(false);
  trace->add_option("--schema", options->outboxes.schema, "Schema of our tables")
      ->capture_default_str();
  trace->add_option("--prefix", options->outboxes.prefix, "Prefix of our tables in SQLite")
      ->capture_default_str();
  add_target(*trace, options->target);
  trace->footer(
      "Looks for claims, message ids and records of every stream, attempts of workflows, dead\n"
      "letters, a register of that name, the audit, and outboxes.\n"
      "Example: hapax trace o-1 --scope payments\n         hapax trace payments/o-1 --json\n"
      "         hapax trace placed-o-1 --from postgres://app@db/shop");
  trace->callback([options, &exit_code] { exit_code = run_trace(*options); });
}

}  // namespace hapax::cli
