// The administrative interface that teams know from "exactly once patterns" on Redis: queues and
// dedup keys. A queue is a stream, and the scope of claims, of that name; a key
// "dedup:{queue}:{job}" is the claim {queue}/{job}, or the message id {job} of the stream, or else
// the register of that name.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "http/api.h"
#include "http/clock_text.h"
#include "http/commits.h"
#include "http/replies.h"
#include "wire/answer.h"
#include "wire/json_text.h"

namespace hapax::http {

namespace {

using front::Right;
using std::chrono::hours;

constexpr std::string_view kDefaultQueue = "default";
constexpr std::uint64_t kBytesPerId = 64;  // at most, the index included

// --- keys

struct Key {
  std::string queue;  // as the store knows it
  std::string job;
  std::string whole;  // as a register
};

Key key_of(const SharedCall& call) {
  std::string_view rest = call->name("key");
  Key key{"", "", inside_name(call, rest)};
  if (const auto queue = call->request().query_value("queue")) {
    key.queue = inside_name(call, *queue);
    key.job = rest;
    return key;
  }
  if (rest.starts_with("dedup:")) rest.remove_prefix(6);
  const std::size_t colon = rest.find(':');
  const bool named = colon != std::string_view::npos;
  key.queue = inside_name(call, named ? rest.substr(0, colon) : kDefaultQueue);
  key.job = named ? rest.substr(colon + 1) : rest;
  return key;
}

struct KeyStatus {
  std::string status = "not_seen";
  std::optional<Time> processed_at;
  std::string worker;
  std::uint32_t attempts = 0;
};

KeyStatus status_of(const ClaimStatus& claim) {
  KeyStatus status{std::string(wire::word_of(claim.state)), {}, claim.owner, claim.attempts};
  const bool over = claim.state == ClaimState::kCompleted || claim.state == ClaimState::kFailed;
  if (over) status.processed_at = claim.since;
  return status;
}

// A plain key says it by its value, if it says it at all; that it is there means: seen.
KeyStatus status_of(const RegisterValue& value) {
  const bool known = value.value == "processing" || value.value == "failed";
  return {known ? value.value : "completed", {}, "", 1};
}

Result<KeyStatus> find_key(Store& store, const Key& key) {
  HAPAX_TRY(const auto claim, store.find_claim(key.queue, key.job));
  if (claim) return status_of(*claim);
  const auto id = store.find_id(key.queue, key.job, "");
  if (!id && id.error().code != Errc::kNotFound) return id.error();
  if (id && *id) return KeyStatus{"completed", (*id)->first_seen, "", 1};
  HAPAX_TRY(const auto value, store.find_register(key.whole));
  return value ? status_of(*value) : KeyStatus{};
}

std::string json_of(std::string_view key, const KeyStatus& status) {
  wire::JsonObject out;
  out.add("key", key).add("status", status.status);
  if (status.processed_at) {
    out.add("processed_at", clock_text(*status.processed_at));
  } else {
    out.raw("processed_at", "null");
  }
  status.worker.empty() ? out.raw("worker_id", "null") : out.add("worker_id", status.worker);
  return out.add("attempt_count", status.attempts).raw("metadata", "{}").text();
}

void get_key(front::Desk& desk, const SharedCall& call) {
  desk.ask(
      call->exchange->loop(), [key = key_of(call)](Store& store) { return find_key(store, key); },
      [call](const Result<KeyStatus>& status) {
        respond_read(call, status,
                     [&](const KeyStatus& found) { return json_of(call->name("key"), found); });
      });
}

void delete_key(front::Desk& desk, const SharedCall& call) {
  auto request = std::make_shared<wire::Request>();
  const Key key = key_of(call);
  const std::string queue(front::TenantNames(call->caller).outside(key.queue));
  const std::string_view why = call->request().query_value("reason").value_or("deleted by API");
  request->ops.emplace_back(Forget{request->keep(queue), request->keep(key.job),
                                   request->keep(call->caller.subject), request->keep(why)});
  carry_out(desk, call, request, [](const SharedCall& told, const Result<Answer>& answer) {
    const bool done = answer && answer->committed;
    if (!done) return respond_one(told, answer);
    told->exchange->respond(json_response(
        200, wire::JsonObject().add("key", told->name("key")).add("deleted", true).text()));
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

struct QueueFigures {
  StreamStats stats;
  Ttls ttls;
  std::uint64_t fresh_24h = 0;
  front::DuplicateCount duplicates;
};

Result<QueueFigures> figures_of(front::Desk& desk, Store& store, const std::string& stream) {
  QueueFigures figures;
  HAPAX_TRY(figures.stats, store.describe(stream));
  HAPAX_TRY(const Statistics all, store.statistics());
  HAPAX_TRY(figures.ttls, ttls_of(store, figures.stats, all.log_time));
  HAPAX_TRY(const Sequence since, sequence_at(store, figures.stats, all.log_time - hours{24}));
  figures.fresh_24h = figures.stats.last.value + 1 - since.value;
  figures.duplicates = desk.duplicates().of(stream, all.log_time);
  return figures;
}

std::string json_of(std::string_view queue, const QueueFigures& figures) {
  const double duplicates = static_cast<double>(figures.duplicates.last_24h);
  const double asked = duplicates + static_cast<double>(figures.fresh_24h);
  const double bytes = static_cast<double>(figures.stats.ids * kBytesPerId);
  const auto& counts = figures.ttls.counts;
  wire::JsonObject ttls;
  ttls.add("0-1h", counts[0]).add("1-6h", counts[1]).add("6-24h", counts[2]);
  if (counts[3] != 0) ttls.add("24h+", counts[3]);
  return wire::JsonObject()
      .add("queue_name", queue)
      .add("total_keys", figures.stats.ids)
      .raw("hit_rate_24h", decimal_text(asked == 0 ? 0 : duplicates / asked))
      .add("duplicate_jobs_blocked", figures.duplicates.in_all)
      .raw("storage_size_mb", decimal_text(bytes / 1e6))
      .raw("ttl_distribution", ttls.text())
      .text();
}

void get_figures(front::Desk& desk, const SharedCall& call) {
  const std::string queue(call->request().query_value("queue").value_or(kDefaultQueue));
  desk.ask(
      call->exchange->loop(),
      [&desk, stream = inside_name(call, queue)](Store& store) {
        return figures_of(desk, store, stream);
      },
      [call, queue](const Result<QueueFigures>& figures) {
        respond_read(call, figures,
                     [&](const QueueFigures& found) { return json_of(queue, found); });
      });
}

}  // namespace

void add_dedup_routes(Router& router, front::Desk& desk) {
  using Serve = void (*)(front::Desk&, const SharedCall&);
  const auto add = [&](std::string method, std::string_view path, Serve act, std::string answer,
                       std::string summary) {
    Route route{std::move(method), std::string(kRoot).append(path),
                guarded({Right::kAdmin}, [&desk, act](const SharedCall& call) { act(desk, call); }),
                std::move(summary), ""};
    route.answer = std::move(answer);
    route.query = {{"queue", "string", "Name of the queue: a stream, and a scope of claims"}};
    router.add(std::move(route));
  };
  add("GET", "/dedup/stats", get_figures, "DedupStats", "Figures of a queue");
  add("GET", "/dedup/keys/{key}/status", get_key, "DedupKey", "What is known of a dedup key");
  add("DELETE", "/dedup/keys/{key}", delete_key, "DedupDeleted", "Forget a dedup key");
}

}  // namespace hapax::http
