#include "load/drive.h"

#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/format.h"
#include "load/worker.h"
#include "wire/json_text.h"

namespace hapax::load {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kGrace{30};  // after the end, for what is late
constexpr milliseconds kRelayWait{200};
constexpr std::string_view kRelayPath = "/consumers/relay/";

std::string stream_path(const Plan& plan) { return "/api/v1/streams/" + stream_of(plan); }

bool has_stream(const Plan& plan) {
  return plan.profile.job == JobKind::kAppend || plan.profile.job == JobKind::kOutbox;
}

Status prepare(const Plan& plan) {
  client::Client client(plan.server);
  // Ids outlive the stream: they should know every repetition, and be gone soon afterwards.
  const std::int64_t window = plan.seconds + 2 * kGrace.count();
  const client::ApiCall make{.method = "PUT",
                             .path = stream_path(plan),
                             .body = wire::JsonObject().add("window_s", window).text(),
                             .key = plan.name};
  const client::ApiCall look{.method = "GET", .path = "/api/v1/streams"};
  HAPAX_TRY(const client::Reply reply, client.call(has_stream(plan) ? make : look));
  if (reply.good()) return Ok{};
  return Error{reply.status == 401 || reply.status == 403 ? Errc::kForbidden : Errc::kUnavailable,
               "the server does not let the load begin: " + reply.body};
}

void clean_up(const Plan& plan) {
  if (!has_stream(plan)) return;
  client::Client client(plan.server);
  ignore(client.call({.method = "DELETE", .path = stream_path(plan), .key = plan.name + "-end"}),
         "the figures stand without it");
}

// Acks events as an outbox' relay would, until `total` of them went through it or time is up.
class EventRelay {
 public:
  explicit EventRelay(const Plan& plan) : plan_(plan), thread_([this] { run(); }) {}

  std::uint64_t finish(std::uint64_t total, Steady::time_point until) {
    total_ = total;
    until_ = until;
    ending_ = true;
    thread_.join();
    return relayed_;
  }

 private:
  void run() {
    client::Client client(plan_.server);
    while (!ending_ || (relayed_ < total_ && Steady::now() < until_)) {
      const auto reply =
          client.call({.method = "POST",
                       .path = base::format("{}{}receive?wait_ms={}", stream_path(plan_),
                                            kRelayPath, kRelayWait.count()),
                       .body = R"({"max":100,"lease_ms":60000,"owner":"relay"})",
                       .waits = kRelayWait});
      if (!reply || !reply->good()) {
        std::this_thread::sleep_for(kRelayWait);
        continue;
      }
      ack(client, reply->body);
    }
  }

  void ack(client::Client& client, std::string_view body) {
    constexpr std::string_view kMark = "\"receipt\":\"";
    wire::JsonArray acks;
    std::uint64_t count = 0;
    for (std::size_t at = body.find(kMark); at != std::string_view::npos;
         at = body.find(kMark, at)) {
      at += kMark.size();
      const std::string_view receipt = body.substr(at, body.find('"', at) - at);
      acks.add(wire::JsonObject().add("receipt", receipt).text());
      ++count;
    }
    if (count == 0) return;
    const auto reply = client.call({.method = "POST",
                                    .path = stream_path(plan_) + std::string(kRelayPath) + "ack",
                                    .body = wire::JsonObject().raw("acks", acks.text()).text()});
    if (reply && reply->good()) relayed_ += count;
  }

  const Plan& plan_;
  std::uint64_t relayed_ = 0;
  std::uint64_t total_ = 0;   // read once ending_
  Steady::time_point until_;  // read once ending_
  std::atomic<bool> ending_ = false;
  std::thread thread_;
};

// The jobs of all workers come from one clock: number n is due n / rate after the start.
class Timetable {
 public:
  explicit Timetable(const Plan& plan)
      : plan_(plan), jobs_(std::uint64_t{plan.rate} * plan.seconds), start_(Steady::now()) {}

  void serve(Worker& worker) {
    const Steady::time_point last_call = start_ + seconds(plan_.seconds) + kGrace;
    for (std::uint64_t number = next_++; number < jobs_; number = next_++) {
      const auto offset = std::chrono::nanoseconds(number * 1'000'000'000 / plan_.rate);
      const Steady::time_point due = start_ + offset;
      std::this_thread::sleep_until(due);
      if (Steady::now() > last_call) {
        ++unsent_;
      } else {
        worker.work(number, due);
      }
    }
  }

  [[nodiscard]] std::uint64_t jobs() const { return jobs_; }
  [[nodiscard]] std::uint64_t unsent() const { return unsent_; }
  [[nodiscard]] std::chrono::duration<double> took() const { return Steady::now() - start_; }

 private:
  const Plan& plan_;
  const std::uint64_t jobs_;
  const Steady::time_point start_;
  std::atomic<std::uint64_t> next_ = 0;
  std::atomic<std::uint64_t> unsent_ = 0;
};

}  // namespace

void LoadOutcome::merge(const LoadOutcome& other) {
  for (const auto& [what, latencies] : other.steps) steps[what].merge(latencies);
  for (const auto& [word, count] : other.verdicts) verdicts[word] += count;
  failed += other.failed;
  wrong += other.wrong;
  if (first_failure.empty()) first_failure = other.first_failure;
}

Result<LoadOutcome> drive(const Plan& plan) {
  std::vector<std::unique_ptr<Worker>> workers;
  for (std::uint32_t i = 0; i < plan.connections; ++i) {
    workers.push_back(std::make_unique<Worker>(plan, i));
    HAPAX_CHECK(workers.back()->connect());
  }
  HAPAX_CHECK(prepare(plan));
  std::unique_ptr<EventRelay> relay;
  if (plan.profile.job == JobKind::kOutbox) relay = std::make_unique<EventRelay>(plan);
  Timetable timetable(plan);
  std::vector<std::thread> threads;
  threads.reserve(workers.size());
  for (const auto& worker : workers) {
    threads.emplace_back([&timetable, &worker] { timetable.serve(*worker); });
  }
  for (std::thread& thread : threads) thread.join();
  LoadOutcome outcome;
  outcome.took = timetable.took();
  for (const auto& worker : workers) outcome.merge(worker->outcome());
  outcome.due = timetable.jobs();
  outcome.unsent = timetable.unsent();
  if (relay != nullptr) {
    const std::uint64_t events = outcome.verdicts["commit committed"] * plan.profile.events;
    outcome.relayed = relay->finish(events, Steady::now() + kGrace);
    if (outcome.relayed < events) outcome.failed += events - outcome.relayed;
  }
  clean_up(plan);
  return outcome;
}

}  // namespace hapax::load
