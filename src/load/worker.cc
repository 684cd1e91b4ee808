#include "load/worker.h"

#include <algorithm>
#include <utility>

#include "wire/json_text.h"

namespace hapax::load {

namespace {

constexpr std::size_t kKnownMax = 10'000;
constexpr std::int64_t kStormEvery = 5'000;  // milliseconds
constexpr std::int64_t kStormSoonest = 1'000;

// A job as queues carry it; about 200 bytes.
std::string payload_of(const std::string& job) {
  return wire::JsonObject()
      .add("id", job)
      .add("type", "send_receipt")
      .add("priority", "normal")
      .raw("payload", R"({"customer":"c-20417","order":"o-88213","amount_cents":1999,)"
                      R"("currency":"EUR","note":"a standard job"})")
      .text();
}

Micros since(Steady::time_point begin, Steady::time_point end) {
  return std::chrono::duration_cast<Micros>(end - begin);
}

std::int64_t wall_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

std::string stream_of(const Plan& plan) { return plan.name; }

std::string fence_in(std::string_view body) {
  constexpr std::string_view kMark = "\"fence\":";
  const std::size_t at = body.find(kMark);
  if (at == std::string_view::npos) return "";
  const std::size_t from = at + kMark.size();
  return std::string(body.substr(from, body.find_first_not_of("0123456789", from) - from));
}

Worker::Worker(const Plan& plan, std::uint32_t number)
    : plan_(plan), client_(plan.server), state_(number * 0x9e3779b97f4a7c15U + 1) {}

Status Worker::connect() {
  HAPAX_TRY(const client::Reply reply, client_.call({.method = "GET", .path = "/health/live"}));
  if (reply.good()) return Ok{};
  return Error{Errc::kUnavailable, "what answers at " + plan_.server.url.text() +
                                       " is no Hapax server, or takes no more connections"};
}

std::uint64_t Worker::random() {  // xorshift64*: quick, and the same in every run
  state_ ^= state_ >> 12U;
  state_ ^= state_ << 25U;
  state_ ^= state_ >> 27U;
  return state_ * 0x2545f4914f6cdd1dU;
}

void Worker::fail(std::uint64_t& count, const std::string& why) {
  ++count;
  if (outcome_.first_failure.empty()) outcome_.first_failure = why;
}

std::string Worker::step(const std::string& what, const client::ApiCall& call,
                         std::string_view expected) {
  const auto reply = client_.call(call);
  const Steady::time_point now = Steady::now();
  outcome_.steps[what].add(since(since_, now));
  since_ = now;
  if (!reply) {
    fail(outcome_.failed, reply.error().detail);
    return "";
  }
  const bool commit = reply->body.starts_with("{\"committed\":true");
  const std::string verdict(commit ? "committed" : reply->fields.get("Hapax-Verdict"));
  ++outcome_.verdicts[what + " " + (verdict.empty() ? std::to_string(reply->status) : verdict)];
  if (verdict == expected) return reply->body;
  if (reply->good()) {
    fail(outcome_.wrong, what + " was told " + verdict + " instead of " + std::string(expected));
  } else {
    fail(outcome_.failed, what + " was told " + reply->body);
  }
  return "";
}

void Worker::work(std::uint64_t number, Steady::time_point due) {
  since_ = due;
  const std::string job = plan_.name + "-" + std::to_string(number);
  switch (plan_.profile.job) {
    case JobKind::kClaim:
      claim(job);
      break;
    case JobKind::kAppend:
      append(job);
      break;
    case JobKind::kOutbox:
      claim_and_publish(job);
      break;
    case JobKind::kExpire:
      expire(job);
      break;
  }
  outcome_.steps["job"].add(since(due, Steady::now()));
}

std::string Worker::claim_path(const std::string& job) const {
  return "/api/v1/claims/" + stream_of(plan_) + "/" + job;
}

// What was answered; empty if the job is somebody else's.
std::string Worker::win(const std::string& job) {
  return step("claim",
              {.method = "POST",
               .path = claim_path(job),
               .body = R"({"owner":"bench","lease_ms":60000,"retention_s":60,)"
                       R"("tombstone_s":60})"},
              "fresh");
}

void Worker::claim(const std::string& job) {
  const std::string body = win(job);
  if (body.empty()) return;
  const std::string settle = wire::JsonObject()
                                 .raw("fence", fence_in(body))
                                 .add("status", 200)
                                 .add("body", payload_of(job))
                                 .text();
  (void)step("settle", {.method = "POST", .path = claim_path(job) + "/settle", .body = settle},
             "done");
}

void Worker::claim_and_publish(const std::string& job) {
  const std::string body = win(job);
  if (body.empty()) return;
  wire::JsonArray ops;
  ops.add(wire::JsonObject()
              .add("op", "settle")
              .add("scope", stream_of(plan_))
              .add("key", job)
              .raw("fence", fence_in(body))
              .add("status", 200)
              .text());
  for (std::uint32_t event = 1; event <= plan_.profile.events; ++event) {
    ops.add(wire::JsonObject()
                .add("op", "append")
                .add("stream", stream_of(plan_))
                .add("id", job + "-" + std::to_string(event))
                .add("group", job)
                .add("payload", payload_of(job))
                .text());
  }
  const std::string commit = wire::JsonObject().raw("ops", ops.text()).text();
  (void)step("commit", {.method = "POST", .path = "/api/v1/commit", .body = commit}, "committed");
}

void Worker::append(const std::string& job) {
  const bool again = !known_.empty() && random() % 100 < plan_.profile.duplicates;
  const std::string id = again ? known_[random() % known_.size()] : job;
  const std::string record = wire::JsonObject().add("id", id).add("payload", payload_of(id)).text();
  const std::string told = step("append",
                                {.method = "POST",
                                 .path = "/api/v1/streams/" + stream_of(plan_) + "/records",
                                 .body = record},
                                again ? "duplicate" : "fresh");
  if (told.empty() || again) return;
  if (known_.size() < kKnownMax) {
    known_.push_back(id);
  } else {
    known_[random() % kKnownMax] = id;
  }
}

void Worker::expire(const std::string& job) {
  const std::int64_t soonest = wall_ms() + kStormSoonest;
  const std::int64_t at = (soonest / kStormEvery + 1) * kStormEvery;
  const std::string body = wire::JsonObject()
                               .add("value", "processing")
                               .add("mode", "absent")
                               .add("expires_at_ms", at)
                               .text();
  (void)step("set", {.method = "PUT", .path = "/api/v1/registers/" + job, .body = body}, "done");
}

}  // namespace hapax::load
