#include "workflows/plan.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <variant>

#include "base/format.h"
#include "signing/delivery_key.h"
#include "workflows/own_streams.h"
#include "workflows/record_key.h"
#include "workflows/row_mark.h"
#include "workflows/staging.h"

namespace hapax::workflows {

using delivery::Guarantee;
using delivery::Workflow;

namespace {

// What a process held that was killed is handed out again after so long. Leases are renewed while
// a request is under way, so it may be shorter than a request.
constexpr Duration kLease{10'000};

constexpr std::uint32_t kWindowMax = 8'000;
constexpr std::uint32_t kIntakeWindow = 2'000;

// Endpoints of different natures do not run under a guarantee that asks for one.
const delivery::HttpTarget* first_http_target(const Workflow& workflow) {
  for (const delivery::EndpointSettings& endpoint : workflow.endpoints) {
    if (endpoint.http() != nullptr) return endpoint.http();
  }
  return nullptr;
}

template <class Nature>
const delivery::HttpTarget* target_of(const Workflow& workflow) {
  const delivery::HttpTarget* target = first_http_target(workflow);
  return target != nullptr && std::holds_alternative<Nature>(target->nature) ? target : nullptr;
}

bool repeats_in_doubt(const Workflow& workflow) {
  return target_of<delivery::NatureIdempotent>(workflow) != nullptr;
}

bool claims_attempts(const Workflow& workflow) {
  const Guarantee guarantee = workflow.delivery.guarantee;
  return guarantee == Guarantee::kAtMostOnce || guarantee == Guarantee::kExactlyOnce;
}

std::optional<delivery::AttemptTerms> attempt_terms(const Workflow& workflow) {
  using InDoubt = delivery::AttemptTerms::InDoubt;
  if (!claims_attempts(workflow)) return std::nullopt;
  delivery::AttemptTerms terms{.scope = workflow.id.text() + ".deliveries"};
  const auto ttl = std::chrono::duration_cast<std::chrono::seconds>(workflow.delivery.dedup_ttl);
  terms.kept = Window{std::clamp(ttl, limits::kWindowMin, limits::kWindowMax)};
  if (workflow.delivery.guarantee == Guarantee::kAtMostOnce) {
    terms.in_doubt = InDoubt::kGiveUp;
  } else if (repeats_in_doubt(workflow)) {
    terms.in_doubt = InDoubt::kSendAgain;
  } else if (probed_target(workflow) != nullptr) {
    terms.in_doubt = InDoubt::kAsk;
    terms.attempts_max = workflow.delivery.retries.attempts_max;
    terms.ask_after = probed_target(workflow)->timeouts.request;
  }
  return terms;
}

// So many records of an endpoint are held, so that its next request never waits for the store.
std::uint32_t held_of(const delivery::EndpointSettings& endpoint, std::size_t endpoints) {
  const std::uint32_t concurrency = concurrency_of(endpoint);
  const auto share = static_cast<std::uint32_t>(kWindowMax / std::max<std::size_t>(endpoints, 1));
  return std::min(concurrency * 16, std::max(concurrency, share));
}

bool takes_events(const Workflow& workflow) {
  return std::holds_alternative<delivery::FromHttp>(*workflow.source);
}

// An event has the id that its sender gave it, and so the same key in whichever stream it is kept.
// What was appended to the stream of events by other ways may have no id; then it is a record of
// that stream.
class StreamKeys {
 public:
  StreamKeys(const Workflow& workflow, std::string store_id)
      : store_id_(std::move(store_id)),
        key_(workflow.delivery.key),
        source_(source_stream_of(workflow)),
        events_(takes_events(workflow)),
        rows_(delivery::stores_rows(workflow)),
        tenant_(workflow.tenant),
        workflow_(workflow.id.text()) {}

  [[nodiscard]] Result<std::string> make(const Record& record, std::string_view payload,
                                         std::uint64_t stream_uid,
                                         const signing::FanOut& fan_out) const {
    const std::string stream = base::format("{}", stream_uid);
    signing::StreamOrigin origin{.store = store_id_, .stream = stream, .record = {}};
    if (record.id.empty()) {
      origin.record = first_sequence(record);
    } else {
      origin.record = std::string_view(record.id);
    }
    KeyedRecord told{.origin = origin,
                     .type = type_of(record),
                     .group = record.group,
                     .headers = record.headers,
                     .payload = payload};
    if (events_ && !record.id.empty()) {
      told.origin = signing::IngestOrigin{tenant_, workflow_, record.id};
    }
    if (!rows_) return record_key(key_, told, fan_out);
    HAPAX_TRY(const MarkedRow row, read_row(record.headers));
    told.origin = signing::OutboxOrigin{row.mark.uid, row.mark.outbox, row.mark.id};
    told.headers = row.headers;
    return record_key(key_, told, fan_out);
  }

 private:
  // A record that was put back has another sequence than the one it was first sent under. A dead
  // letter of another stream tells of a sequence there.
  [[nodiscard]] Sequence first_sequence(const Record& record) const {
    const bool put_back = record.lineage && record.lineage->to && record.lineage->stream == source_;
    return put_back ? record.lineage->sequence : record.sequence;
  }

  std::string store_id_;
  delivery::KeySettings key_;
  std::string source_;
  bool events_;
  bool rows_;
  std::string tenant_;
  std::string workflow_;
};

}  // namespace

std::string_view type_of(const Record& record) {
  for (const auto& [name, value] : record.headers) {
    if (name == delivery::kTypeHeader) return value;
  }
  return {};
}

SignedEvent signed_event_of(const Record& record, std::string_view payload) {
  return {.id = record.id, .type = type_of(record), .key = record.group, .payload = payload};
}

Status check_record(const SharedVerifier& verifier, const Record& record, std::string_view payload,
                    bool is_row) {
  if (!verifier) return Ok{};
  SignedEvent event = signed_event_of(record, payload);
  if (!is_row) return check_signature(verifier, event, record.headers);
  HAPAX_TRY(const MarkedRow row, read_row(record.headers));
  event.id = row.mark.id;
  return check_signature(verifier, event, row.headers);
}

std::string source_stream_of(const Workflow& workflow) {
  return source_stream(workflow).value().name;
}

const delivery::HttpTarget* probed_target(const Workflow& workflow) {
  if (workflow.delivery.guarantee != Guarantee::kExactlyOnce) return nullptr;
  return target_of<delivery::NatureProbe>(workflow);
}

std::optional<delivery::AttemptLogSettings> attempt_log_of(const Workflow& workflow) {
  if (workflow.retention.attempts == Duration{0}) return std::nullopt;
  return delivery::AttemptLogSettings{.stream = attempts_stream_of(workflow.id.text()),
                                      .kept = workflow.retention.attempts,
                                      .bytes_max = workflow.retention.attempt_bytes};
}

// What the workflow has in the store. All its names begin with its own, so that they can lie
// together.
delivery::StreamSourceSettings source_settings(const Workflow& workflow, std::string owner) {
  const std::string& id = workflow.id.text();
  delivery::StreamSourceSettings settings;
  settings.stream = source_stream_of(workflow);
  if (is_staged(workflow)) {
    delivery::OwnStream outbox = outbox_of(workflow);
    settings.stream = std::move(outbox.name);
    settings.own = outbox.settings;
  } else if (delivery::stores_rows(workflow)) {
    settings.own = rows_of(workflow).settings;
  }
  settings.consumer = id;
  settings.dead_letters = id + ".dead";
  settings.attempts = id + ".attempts";
  settings.blocked = blocked_registers_of(workflow.id);
  settings.hold = hold_of(workflow);
  settings.keeping = keeping_of(workflow);
  settings.owner = std::move(owner);
  settings.give_up_after = workflow.delivery.retries.give_up_after;
  settings.attempts_kept = settings.give_up_after + std::chrono::days{30};
  if (source_stream(workflow).value().own && !is_staged(workflow)) {
    settings.delivered_kept = workflow.retention.delivered;
  }
  settings.claims = attempt_terms(workflow);
  settings.attempt_log = attempt_log_of(workflow);
  return settings;
}

KeyMaker key_maker(const Workflow& workflow, std::string store_id) {
  return [keys = StreamKeys(workflow, std::move(store_id))](
             const Record& record, std::string_view payload, std::uint64_t stream_uid,
             const signing::FanOut& fan_out) {
    return keys.make(record, payload, stream_uid, fan_out);
  };
}

// The message id of a record of the outbox is its key.
delivery::StreamSource::KeyOf key_of(const Workflow& workflow, std::string store_id,
                                     SharedVerifier verifier) {
  if (is_staged(workflow)) {
    return [](const Record& record, std::uint64_t) { return Result<std::string>(record.id); };
  }
  return [make = key_maker(workflow, std::move(store_id)), verifier = std::move(verifier),
          rows = delivery::stores_rows(workflow)](const Record& record,
                                                  std::uint64_t stream_uid) -> Result<std::string> {
    HAPAX_CHECK(check_record(verifier, record, record.payload, rows));
    return make(record, record.payload, stream_uid, {});
  };
}

std::uint32_t concurrency_of(const delivery::EndpointSettings& endpoint) {
  return endpoint.concurrency.value_or(delivery::kConcurrencyDefault);
}

delivery::EndpointPolicy policy_of(const Workflow& workflow,
                                   const delivery::EndpointSettings& endpoint,
                                   ports::Entropy& entropy) {
  delivery::EndpointPolicy policy;
  policy.name = endpoint.name;
  policy.concurrency = concurrency_of(endpoint);
  policy.rate = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(endpoint.rate, std::numeric_limits<std::uint32_t>::max()));
  const bool one = workflow.delivery.guarantee == Guarantee::kAtMostOnce;
  policy.attempts_max = one ? 1 : workflow.delivery.retries.attempts_max;
  const bool parks = claims_attempts(workflow) && (one || !repeats_in_doubt(workflow));
  policy.on_unknown = parks ? delivery::OnUnknown::kPark : delivery::OnUnknown::kRetry;
  // One that takes nothing must not fill the window with its records: the others' would wait.
  if (workflow.endpoints.size() > 1) {
    policy.held_max = held_of(endpoint, workflow.endpoints.size());
  }
  policy.breaker = delivery::BreakerSettings::of(endpoint.breaker);
  policy.retry_after = [backoff = workflow.delivery.retries.backoff,
                        &entropy](std::uint32_t attempt) {
    return delivery::pause_after(backoff, attempt, ports::draw_u64(entropy));
  };
  return policy;
}

// A row fails only for itself: what is wrong with the store counts for none.
delivery::EndpointPolicy intake_policy() {
  delivery::EndpointPolicy policy;
  policy.concurrency = 2;  // one is stored while the other one is settled
  policy.attempts_max = 1;
  policy.retry_after = [](std::uint32_t) { return Duration{1'000}; };
  return policy;
}

delivery::EngineSettings intake_settings() {
  delivery::EngineSettings settings;
  settings.lease = kLease;
  settings.window = kIntakeWindow;
  return settings;
}

delivery::EngineSettings engine_settings(const Workflow& workflow) {
  std::uint32_t held = 0;
  for (const delivery::EndpointSettings& endpoint : workflow.endpoints) {
    if (endpoint.http() != nullptr) held += held_of(endpoint, workflow.endpoints.size());
  }
  delivery::EngineSettings settings;
  settings.lease = kLease;
  settings.announces = claims_attempts(workflow);
  settings.tells_attempts = attempt_log_of(workflow).has_value();
  settings.blocks = hold_of(workflow).has_value();
  settings.window = std::clamp<std::uint32_t>(held, 256, kWindowMax);
  return settings;
}

}  // namespace hapax::workflows
