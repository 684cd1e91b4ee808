#include "workflows/plan.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <variant>

#include "base/format.h"
#include "signing/delivery_key.h"
#include "workflows/own_streams.h"

namespace hapax::workflows {

using delivery::Guarantee;
using delivery::Workflow;

namespace {

// What a process held that was killed is handed out again after so long. Leases are renewed while
// a request is under way, so it may be shorter than a request.
constexpr Duration kLease{10'000};

bool repeats_in_doubt(const Workflow& workflow) {
  const delivery::HttpTarget* target = workflow.endpoints.front().http();
  return target != nullptr && std::holds_alternative<delivery::NatureIdempotent>(target->nature);
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
    terms.ask_after = probed_target(workflow)->timeouts.request;
  }
  return terms;
}

signing::KeyForm form_of(const Workflow& workflow) {
  return workflow.delivery.key.form == delivery::KeyForm::kShort ? signing::KeyForm::kShort
                                                                 : signing::KeyForm::kWhole;
}

bool takes_events(const Workflow& workflow) {
  return std::holds_alternative<delivery::FromHttp>(*workflow.source);
}

std::string source_stream_of(const Workflow& workflow) {
  if (takes_events(workflow)) return events_stream_of(workflow.id);
  return std::get<delivery::FromStream>(*workflow.source).stream;
}

delivery::StreamSource::KeyOf key_of_records(const Workflow& workflow, std::string store_id) {
  return [store_id = std::move(store_id), form = form_of(workflow),
          source = source_stream_of(workflow)](const Record& record, std::uint64_t stream_uid) {
    const std::string stream = base::format("{}", stream_uid);
    signing::StreamOrigin origin{.store = store_id, .stream = stream, .record = {}};
    // A record that was put back has another sequence than the one it was first sent under. A dead
    // letter of another stream tells of a sequence there.
    const bool put_back = record.lineage && record.lineage->to && record.lineage->stream == source;
    const Sequence first = put_back ? record.lineage->sequence : record.sequence;
    if (record.id.empty()) {
      origin.record = first;
    } else {
      origin.record = std::string_view(record.id);
    }
    return signing::DeliveryKey::make(origin).value().text(form);
  };
}

}  // namespace

const delivery::HttpTarget* probed_target(const Workflow& workflow) {
  const delivery::HttpTarget* target = workflow.endpoints.front().http();
  const bool probed = workflow.delivery.guarantee == Guarantee::kExactlyOnce && target != nullptr &&
                      std::holds_alternative<delivery::NatureProbe>(target->nature);
  return probed ? target : nullptr;
}

// What the workflow has in the store. All its names begin with its own, so that they can lie
// together.
delivery::StreamSourceSettings source_settings(const Workflow& workflow, std::string owner) {
  const std::string& id = workflow.id.text();
  delivery::StreamSourceSettings settings;
  settings.stream = source_stream_of(workflow);
  settings.consumer = id;
  settings.dead_letters = id + ".dead";
  settings.attempts = id + ".attempts";
  settings.owner = std::move(owner);
  settings.give_up_after = workflow.delivery.retries.give_up_after;
  settings.attempts_kept = settings.give_up_after + std::chrono::days{30};
  settings.claims = attempt_terms(workflow);
  return settings;
}

// An event has the id that its sender gave it, and so the same key in whichever stream it is kept.
// What was appended to the stream of events by other ways may have no id; then it is a record of
// that stream.
delivery::StreamSource::KeyOf key_of(const Workflow& workflow, std::string store_id) {
  auto key_of_record = key_of_records(workflow, std::move(store_id));
  if (!takes_events(workflow)) return key_of_record;
  return
      [key_of_record = std::move(key_of_record), form = form_of(workflow), tenant = workflow.tenant,
       id = workflow.id.text()](const Record& record, std::uint64_t stream_uid) {
        if (record.id.empty()) return key_of_record(record, stream_uid);
        const signing::IngestOrigin origin{.tenant = tenant, .workflow = id, .event = record.id};
        return signing::DeliveryKey::make(origin).value().text(form);
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
  policy.retry_after = [backoff = workflow.delivery.retries.backoff,
                        &entropy](std::uint32_t attempt) {
    return delivery::pause_after(backoff, attempt, ports::draw_u64(entropy));
  };
  return policy;
}

delivery::EngineSettings engine_settings(const Workflow& workflow) {
  std::uint32_t concurrency = 0;
  for (const delivery::EndpointSettings& endpoint : workflow.endpoints) {
    concurrency += concurrency_of(endpoint);
  }
  delivery::EngineSettings settings;
  settings.lease = kLease;
  settings.announces = claims_attempts(workflow);
  settings.window = std::clamp<std::uint32_t>(concurrency * 16, 256, 8'000);
  return settings;
}

}  // namespace hapax::workflows
