// The administrative interface that teams know from "exactly once patterns" on Redis: queues and
// dedup keys. A queue is a stream, and the scope of claims, of that name; a key
// "dedup:{queue}:{job}" is the claim {queue}/{job}, or the message id {job} of the stream, or else
// the register of that name.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/tenant_frame.h"
#include "base/time_text.h"
#include "rest/api.h"
#include "rest/commits.h"
#include "rest/decimal_text.h"
#include "rest/replies.h"
#include "wire/answer.h"
#include "wire/json_schema.h"
#include "wire/json_source.h"
#include "wire/json_text.h"
#include "wire/strict_json.h"

namespace hapax::rest {

namespace {

using access::Right;
using std::chrono::hours;

constexpr std::string_view kDefaultQueue = "default";
constexpr std::uint64_t kBytesPerId = 64;  // at most, the index included

// --- keys

struct Job {
  std::string queue;  // empty: it has a name that nobody's has
  std::string id;
};

// A queue whose name would reach into another tenant is none.
std::string queue_named(std::string_view name) {
  return std::string(base::from_outside(name) ? name : std::string_view());
}

struct Key {
  Job job;
  std::string whole;                 // as a register
  std::optional<std::string> group;  // of the message id, where ids are unique per group
  std::optional<Job> own;            // the same job, if the key names the caller's own tenant
  std::vector<Job> others;           // what else the key may mean, to whoever wrote it
};

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::size_t colon = text.find(':'); colon != text.npos; colon = text.find(':')) {
    parts.push_back(text.substr(0, colon));
    text.remove_prefix(colon + 1);
  }
  parts.push_back(text);
  return parts;
}

// "{queue}:{tenant}:{job}", "{prefix}:{queue}:{job}" and "{prefix}:{queue}:{tenant}:{job}" are
// written, too. Read as "{queue}:{job}" they name a job that nobody knows, and "not_seen" would be
// said of one that nobody looked for.
void add_readings(std::string_view rest, const std::string& tenant, Key& key) {
  const std::vector<std::string_view> parts = split(rest);
  const auto job = [&](std::size_t queue, std::size_t from) {
    const auto begin = static_cast<std::size_t>(parts[from].data() - rest.data());
    return Job{queue_named(parts[queue]), std::string(rest.substr(begin))};
  };
  if (parts.size() < 3) return;
  if (!tenant.empty() && parts[1] == tenant) key.own = job(0, 2);
  key.others = {job(0, 2), job(1, 2)};
  if (parts.size() > 3) key.others.push_back(job(1, 3));
}

Key key_of(const SharedCall& call) {
  std::string_view rest = call->name("key");
  Key key;
  key.whole = rest;
  if (const auto group = call->request().query_value("group")) key.group = *group;
  if (const auto queue = call->request().query_value("queue")) {
    key.job = {queue_named(*queue), std::string(rest)};
    return key;
  }
  if (rest.starts_with("dedup:")) rest.remove_prefix(6);
  const std::size_t colon = rest.find(':');
  const bool named = colon != std::string_view::npos;
  key.job = {queue_named(named ? rest.substr(0, colon) : kDefaultQueue),
             std::string(named ? rest.substr(colon + 1) : rest)};
  add_readings(rest, call->caller().tenant, key);
  return key;
}

struct KeyStatus {
  std::string status = "not_seen";
  std::string processed_at;  // empty: it was not, or nobody knows
  std::string worker;
  std::int64_t attempts = 0;
  std::string metadata = "{}";  // JSON
};

// The member "metadata" of a JSON object, as it was written; "{}" if there is none.
std::string metadata_in(std::string_view value) {
  const auto json = value.starts_with('{') ? wire::read_strict_json(value)
                                           : Result<wire::JsonValue>(wire::JsonValue{});
  const auto* members = json ? json->get<wire::JsonValue::Object>() : nullptr;
  if (members == nullptr) return "{}";
  wire::JsonItems items(value);
  for (std::size_t i = 0; i < members->size(); ++i) {
    const auto& [name, member] = (*members)[i];
    const bool object = member.get<wire::JsonValue::Object>() != nullptr;
    if (name == "metadata" && object) return std::string(wire::json_value_at(items.from(i)));
  }
  return "{}";
}

KeyStatus status_of(const ClaimStatus& claim, wire::Bodies bodies) {
  KeyStatus status{std::string(wire::word_of(claim.state)), "", claim.owner, claim.attempts};
  const bool over = claim.state == ClaimState::kCompleted || claim.state == ClaimState::kFailed;
  if (over) status.processed_at = base::rfc3339_seconds(claim.since);
  const bool shown = claim.result && bodies == wire::Bodies::kShown;
  if (shown) status.metadata = metadata_in(claim.result->body);
  return status;
}

// {"status": "failed", "processed_at": …, "worker_id": …, "attempt_count": …, "metadata": {…}}, the
// value of a key in "exactly once patterns". Nothing if it is none.
std::optional<KeyStatus> status_in(std::string_view value, wire::Bodies bodies) {
  if (!value.starts_with('{')) return std::nullopt;
  const auto json = wire::read_strict_json(value);
  if (!json) return std::nullopt;
  const auto text = [&](std::string_view name) {
    const wire::JsonValue* member = json->find(name);
    const auto* found = member == nullptr ? nullptr : member->get<std::string>();
    return found == nullptr ? std::string() : *found;
  };
  KeyStatus status{text("status"), "", "", 1};
  if (status.status.empty()) return std::nullopt;
  if (bodies == wire::Bodies::kHidden) return status;
  status.processed_at = text("processed_at");
  status.worker = text("worker_id");
  status.metadata = metadata_in(value);
  const wire::JsonValue* attempts = json->find("attempt_count");
  const auto* number = attempts == nullptr ? nullptr : attempts->get<std::int64_t>();
  if (number != nullptr) status.attempts = *number;
  return status;
}

// A plain key says it by its value, if it says it at all; that it is there means: seen.
KeyStatus status_of(const RegisterValue& value, wire::Bodies bodies) {
  if (auto status = status_in(value.value, bodies)) return *std::move(status);
  const bool known = value.value == "processing" || value.value == "failed";
  return {known ? value.value : "completed", "", "", 1};
}

// Nothing: neither a claim nor a message id.
Result<std::optional<KeyStatus>> find_job(Store& store, const Job& job, const Key& key,
                                          wire::Bodies bodies) {
  HAPAX_TRY(const auto claim, store.find_claim(job.queue, job.id));
  if (claim) return std::optional(status_of(*claim, bodies));
  const auto id = store.find_id(job.queue, job.id, key.group);
  if (!id && id.error().code != Errc::kNotFound) return id.error();
  if (!id || !*id) return std::optional<KeyStatus>();
  return std::optional(KeyStatus{"completed", base::rfc3339_seconds((*id)->first_seen), "", 1});
}

Error other_key(const Job& job) {
  return Error{Errc::kInvalidArgument, "nothing is known under this key as it stands, but queue '" +
                                           job.queue + "' knows '" + job.id +
                                           "': ask for dedup:" + job.queue + ":" + job.id +
                                           " or name the queue (?queue=" + job.queue +
                                           "). Tenants and prefixes are no part of a key"};
}

// "not_seen" only of what was looked for in every way that the key can be read.
Result<KeyStatus> find_key(Store& store, const Key& key, wire::Bodies bodies) {
  const auto found = find_job(store, key.job, key, bodies);
  if (found && *found) return **found;
  HAPAX_TRY(const auto value, store.find_register(key.whole));
  if (value) return status_of(*value, bodies);
  if (!found) return found.error();
  if (key.own) {
    HAPAX_TRY(const auto own, find_job(store, *key.own, key, bodies));
    if (own) return *own;
  }
  for (const Job& job : key.others) {
    HAPAX_TRY(const auto other, find_job(store, job, key, bodies));
    if (other) return other_key(job);
  }
  return KeyStatus{};
}

std::string json_of(std::string_view key, const KeyStatus& status) {
  wire::JsonObject out;
  const auto text_or_null = [&](std::string_view name, std::string_view text) {
    text.empty() ? out.raw(name, "null") : out.add(name, text);
  };
  out.add("key", key).add("status", status.status);
  text_or_null("processed_at", status.processed_at);
  text_or_null("worker_id", status.worker);
  return out.add("attempt_count", status.attempts).raw("metadata", status.metadata).text();
}

void get_key(access::Entry& entry, const SharedCall& call) {
  const auto find = [key = key_of(call), bodies = bodies_for(call->caller())](Store& store) {
    return find_key(store, key, bodies);
  };
  entry.ask(call->from(), call->caller(), find, [call](const Result<KeyStatus>& status) {
    respond_read(call, status,
                 [&](const KeyStatus& found) { return json_of(call->name("key"), found); });
  });
}

// What became of the claim and of the plain key, as one.
void respond_deleted(access::Entry& entry, const SharedCall& call, const Result<Answer>& answer,
                     const std::string& why) {
  if (!answer || answer->verdicts.size() != 2) return respond_one(call, answer);
  const Verdict& claim = answer->verdicts.front();
  const auto* plain = std::get_if<Held>(&answer->verdicts.back());
  const bool unset = plain != nullptr && plain->applied;
  const auto* refused = std::get_if<Refused>(&claim);
  if (refused != nullptr && (!unset || refused->error.code != Errc::kNotFound)) {
    return respond_error(call, refused->error);
  }
  // The store and the entry keep the audit of claims; that of a key is not theirs.
  if (unset && !answer->repeated && !call->caller().tenant.empty()) {
    wire::JsonObject line;
    line.add("act", "unset").add("subject", call->name("key"));
    line.add("actor", call->caller().subject).add("reason", why);
    entry.audit(call->caller().tenant, line.text());
  }
  http::Response response = json_response(
      200, wire::JsonObject().add("key", call->name("key")).add("deleted", true).text());
  if (answer->repeated) response.fields.add("Idempotent-Replayed", "true");
  call->exchange->respond(response);
}

// The claim and the plain key of that name; a message id stays until its window ends.
void delete_key(access::Entry& entry, const SharedCall& call) {
  auto request = std::make_shared<wire::Request>();
  const Key key = key_of(call);
  std::string why(call->request().query_value("reason").value_or("deleted by API"));
  request->mode = Mode::kEach;
  request->ops.emplace_back(Forget{request->keep(key.job.queue), request->keep(key.job.id),
                                   request->keep(call->caller().subject), request->keep(why)});
  request->ops.emplace_back(Unset{request->keep(call->name("key"))});
  if (const Status named = give_id(call->request(), *request); !named) {
    return respond_error(call, named.error());
  }
  access::Caller caller = call->caller();
  caller.rights.add(Right::kProduce);  // Who administers may remove what others may make.
  entry.commit(call->from(), caller, request,
               [&entry, call, why = std::move(why)](const Result<Answer>& answer) {
                 respond_deleted(entry, call, answer, why);
               });
}

// --- statistics

// The first sequence at or behind that time; records carry the store's time, which never goes back.
Result<Sequence> sequence_at(Store& store, const StreamStats& stats, Time time) {
  std::uint64_t low = stats.first.value;
  std::uint64_t high = stats.last.value + 1;
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    HAPAX_TRY(const Records read, store.read({stats.stream, Sequence{middle}, 1, 1}));
    if (read.records.empty()) return Sequence{stats.last.next()};
    if (read.records.front().time < time) {
      low = read.records.front().sequence.value + 1;
    } else {
      high = middle;
    }
  }
  return Sequence{low};
}

struct Ttls {
  std::array<std::uint64_t, 4> counts{};  // 0-1h, 1-6h, 6-24h, more
};

// Ids expire in the order in which they came, a window later: the records between two times say how
// many. What they say is fitted to the number of ids: older ids are those whose records left, and
// records without an id count for nothing. A class holds its upper end: an id of this very
// millisecond has its whole window before it, and no more than that.
Result<Ttls> ttls_of(Store& store, const StreamStats& stats, Time now) {
  Ttls ttls;
  if (stats.settings.window.is_forever()) {
    ttls.counts.back() = stats.ids;
    return ttls;
  }
  const Time oldest = now - std::chrono::seconds{stats.settings.window.raw()};
  const std::array<Duration, 4> starts = {hours{0}, hours{1}, hours{6}, hours{24}};
  std::array<std::uint64_t, 5> places{};
  for (std::size_t i = 0; i < starts.size(); ++i) {
    HAPAX_TRY(const Sequence place, sequence_at(store, stats, oldest + starts[i] + Duration{1}));
    places[i] = place.value;
  }
  places.back() = stats.last.value + 1;
  const std::uint64_t records = places.back() - places.front();
  std::uint64_t left = stats.ids;
  for (std::size_t i = ttls.counts.size(); i-- > 1;) {
    const std::uint64_t there = places[i + 1] - places[i];
    const auto share = records > stats.ids
                           ? static_cast<std::uint64_t>(static_cast<double>(there) *
                                                        static_cast<double>(stats.ids) /
                                                        static_cast<double>(records))
                           : there;
    ttls.counts[i] = std::min(left, share);
    left -= ttls.counts[i];
  }
  ttls.counts.front() = left;
  return ttls;
}

// Keys of claims and plain keys, by the start of the slice in which they end.
void add_ttls(Ttls& ttls, const access::QueueCounts& counts, Time now) {
  for (const auto& [slice, keys] : counts.slices()) {
    if (slice.is_over(now)) continue;
    const Time start = slice.start();
    const std::size_t place = start <= now + hours{1}    ? 0
                              : start <= now + hours{6}  ? 1
                              : start <= now + hours{24} ? 2
                                                         : 3;
    ttls.counts[place] += keys.count;
  }
}

struct QueueFigures {
  StreamStats stats;  // of the stream of that name, if there is one
  Ttls ttls;
  access::QueueCounts counts;
  Time now{};
};

// `store` is that of the queue's tenant.
Result<QueueFigures> figures_of(access::Entry& entry, Store& store, base::StoreName queue) {
  QueueFigures figures;
  auto stats = store.describe(queue.name);
  HAPAX_TRY(const Statistics all, store.statistics());  // Behind: no record is of a later time.
  figures.now = all.log_time;
  HAPAX_TRY(figures.counts, entry.ledger().of(entry.store(), queue));
  if (stats || stats.error().code != Errc::kNotFound) {
    HAPAX_TRY(figures.stats, std::move(stats));
    HAPAX_TRY(figures.ttls, ttls_of(store, figures.stats, all.log_time));
  }
  add_ttls(figures.ttls, figures.counts, all.log_time);
  return figures;
}

std::string json_of(std::string_view queue, const QueueFigures& figures) {
  const auto asked = figures.counts.last_24h(figures.now);
  const double duplicates = static_cast<double>(asked.duplicates);
  const double hit_rate = asked.checks == 0 ? 0 : duplicates / static_cast<double>(asked.checks);
  const auto keys = figures.counts.keys(figures.now);
  const double bytes = static_cast<double>(figures.stats.ids * kBytesPerId + keys.bytes);
  const auto& counts = figures.ttls.counts;
  wire::JsonObject ttls;
  ttls.add("0-1h", counts[0]).add("1-6h", counts[1]).add("6-24h", counts[2]);
  if (counts[3] != 0) ttls.add("24h+", counts[3]);
  return wire::JsonObject()
      .add("queue_name", queue)
      .add("total_keys", figures.stats.ids + keys.count)
      .raw("hit_rate_24h", decimal_text(hit_rate))
      .add("duplicate_jobs_blocked", figures.counts.in_all().duplicates)
      .raw("storage_size_mb", decimal_text(bytes / 1e6))
      .raw("ttl_distribution", ttls.text())
      .text();
}

void get_figures(access::Entry& entry, const SharedCall& call) {
  const std::string queue(call->request().query_value("queue").value_or(kDefaultQueue));
  entry.ask(
      call->from(), call->caller(),
      [&entry, tenant = call->caller().tenant, queue](Store& store) {
        return figures_of(entry, store, {tenant, queue});
      },
      [call, queue](const Result<QueueFigures>& figures) {
        respond_read(call, figures,
                     [&](const QueueFigures& found) { return json_of(queue, found); });
      });
}

Status check_query_names(const SharedCall& call) {
  HAPAX_CHECK(check_name(call, "queue", wire::allowed::kName));
  return check_name(call, "group", wire::allowed::kKey);
}

}  // namespace

void add_dedup_routes(Router& router, access::Entry& entry) {
  using Serve = void (*)(access::Entry&, const SharedCall&);
  const auto add = [&](std::string method, std::string_view path, Serve act, std::string answer,
                       std::string summary) {
    Route route{std::move(method), std::string(kRoot).append(path),
                guarded({Right::kAdmin},
                        [&entry, act](const SharedCall& call) {
                          const Status named = check_query_names(call);
                          named ? act(entry, call) : respond_error(call, named.error());
                        }),
                std::move(summary), ""};
    route.answer = std::move(answer);
    route.dedup_key = true;
    route.query = {{"queue", wire::text_schema_of(wire::allowed::kName),
                    "Name of the queue: a stream, and a scope of claims"}};
    if (act == get_key) {
      route.query.push_back({"group", wire::text_schema_of(wire::allowed::kKey),
                             "Group key, where ids are unique per group"});
    }
    if (act == delete_key) {
      route.query.push_back(
          {"reason", wire::text_schema_of(wire::allowed::kWhy), "Why, for the audit"});
      route.keyed = true;
    }
    router.add(std::move(route));
  };
  add("GET", "/dedup/stats", get_figures, "DedupStats", "Figures of a queue");
  add("GET", "/dedup/keys/{key}/status", get_key, "DedupKey", "What is known of a dedup key");
  add("DELETE", "/dedup/keys/{key}", delete_key, "DedupDeleted", "Forget a dedup key");
}

}  // namespace hapax::rest
