#include "workflows/endpoint_sink.h"

#include <algorithm>
#include <variant>

#include "base/assert.h"
#include "base/words.h"
#include "envelope/attempt.h"
#include "workflows/answers.h"

namespace hapax::workflows {

namespace {

using delivery::HttpTarget;
using delivery::Outgoing;
using delivery::SendResult;

// Without a key of ours nothing can be sent, and nobody but the operator can give one.
constexpr Duration kUnsignedPause{10'000};
// Until somebody is looked for again who has stored what is missing.
constexpr Duration kSecretPause{2'000};

// What it was published with.
std::string_view content_type_of(const Outgoing& record) {
  for (const auto& [name, value] : record.headers) {
    if (base::lower(name) == "content-type") return value;
  }
  return {};
}

// Some servers take '_' for '-'.
std::string plain_name(std::string_view name) {
  std::string plain = base::lower(name);
  std::replace(plain.begin(), plain.end(), '_', '-');
  return plain;
}

// A publisher does not say again what the operator said: a receiver might take the later one.
bool is_configured(const webhook::SendRequest& blank, std::string_view name) {
  return std::any_of(blank.headers.begin(), blank.headers.end(), [&](const auto& header) {
    return plain_name(header.first) == plain_name(name);
  });
}

// A reason that nobody gave is one of this process, which is about to end.
void end_unsent(const std::shared_ptr<WaitNote>& note, const delivery::Sink::Done& done,
                Duration after = {}, std::string reason = {}) {
  if (note && !reason.empty()) note->waits(reason);
  done({SendResult{
      .outcome = SendResult::Outcome::kNotSent, .after = after, .reason = std::move(reason)}});
}

}  // namespace

// The key is in the header in any case. In the body it is what idempotent-keys promises.
void EndpointSink::plan_body(Plan& plan, const delivery::DeliveryTerms& terms,
                             const delivery::EndpointBody& body) {
  using envelope::BodyShape;
  if (const auto* event = std::get_if<delivery::CloudEventBody>(&body)) {
    plan.shape =
        event->structured ? BodyShape::kCloudEventStructured : BodyShape::kCloudEventBinary;
    plan.event_source = event->source;
    plan.event_subject = event->subject == delivery::EventSubject::kKey;
    return;
  }
  bool wrapped = terms.guarantee != delivery::Guarantee::kAtLeastOnce && terms.key.in_payload;
  if (std::holds_alternative<delivery::EnvelopeBody>(body)) wrapped = true;
  if (std::holds_alternative<delivery::PayloadBody>(body)) wrapped = false;
  plan.shape = wrapped ? BodyShape::kEnvelope : BodyShape::kAsItCame;
}

Status EndpointSink::plan_signing(Plan& plan, const HttpTarget& target,
                                  const SecretScope& secrets) {
  if (target.signing.empty()) return Ok{};
  std::vector<std::string> keys;
  for (const delivery::SigningTerm& term : target.signing) {
    HAPAX_TRY(std::string key, reveal(term.key, secrets));
    keys.push_back(std::move(key));
  }
  std::vector<signing::KeyTerm> terms;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    terms.push_back({.key = keys[i],
                     .from = target.signing[i].from.value_or(Time::min()),
                     .until = target.signing[i].until.value_or(Time::max())});
  }
  HAPAX_TRY(plan.keys, signing::KeyRing::make(terms));
  return Ok{};
}

Result<std::shared_ptr<const EndpointSink::Plan>> EndpointSink::make_plan(
    const delivery::DeliveryTerms& terms, const HttpTarget& target, const EndpointReach& reach) {
  auto plan = std::make_shared<Plan>();
  HAPAX_TRY(plan->caller, EndpointCaller::make(target, reach));
  plan_body(*plan, terms, target.body);
  HAPAX_CHECK(plan_signing(*plan, target, reach.secrets));
  plan->on_status = target.on_status;
  return std::shared_ptr<const Plan>(std::move(plan));
}

Result<std::unique_ptr<EndpointSink>> EndpointSink::make(const delivery::DeliveryTerms& terms,
                                                         const HttpTarget& target,
                                                         const EndpointReach& reach) {
  const bool changes = delivery::needs_stored_secret(target);
  auto make = [terms, target, reach] { return make_plan(terms, target, reach); };
  std::unique_ptr<EndpointSink> sink(
      new EndpointSink(reach, std::move(make), changes ? reach.secrets.stored : nullptr));
  if (!changes) HAPAX_CHECK(sink->plan_.get());
  return sink;
}

Result<envelope::RequestContent> EndpointSink::content_of(const Plan& plan,
                                                          const Outgoing& record) {
  envelope::RecordFacts facts{.key = record.id,
                              .type = record.type,
                              .time = record.time,
                              .payload = record.payload,
                              .content_type = content_type_of(record),
                              .source = plan.event_source};
  if (plan.event_subject) facts.subject = record.key;
  return envelope::make_content(plan.shape, facts);
}

Result<webhook::SendRequest> EndpointSink::draft(const Outgoing& record) {
  HAPAX_TRY(const auto plan, plan_.get());
  HAPAX_TRY(const auto content, content_of(*plan, record));
  return request_for(*plan, record, content, 0);
}

void EndpointSink::start(std::span<const Outgoing* const> records, std::int64_t not_after_ms,
                         Done done) {
  HAPAX_ASSERT(records.size() == 1, "an endpoint takes one record per request");
  const Outgoing& record = *records.front();
  const auto plan = plan_.get();
  // U4: a record is not to blame for a secret that is missing.
  if (!plan) return end_unsent(note_, done, kSecretPause, plan.error().detail);
  const auto content = content_of(**plan, record);
  if (!content) {
    return done({SendResult{.outcome = SendResult::Outcome::kRejected,
                            .hopeless = true,
                            .reason = content.error().text()}});
  }
  auto request = request_for(**plan, record, *content, not_after_ms);
  if (!request) {
    // V3: what was to be signed never leaves without a signature, and the record is not to blame.
    return end_unsent(note_, done, kUnsignedPause, request.error().detail);
  }
  (*plan)->caller->send(*std::move(request),
                        [done, plan = *plan, note = note_](const EndpointCaller::Answer& answer) {
                          if (const auto* nothing = std::get_if<NothingSent>(&answer)) {
                            return end_unsent(note, done, nothing->after, nothing->reason);
                          }
                          if (note) note->goes_on();
                          done({result_of(std::get<webhook::SendReply>(answer), plan->on_status)});
                        });
}

void EndpointSink::wind_down() {
  *winding_down_ = true;
  if (const auto plan = plan_.last()) plan->let_go();
}

Result<webhook::SendRequest> EndpointSink::request_for(const Plan& plan, const Outgoing& record,
                                                       const envelope::RequestContent& content,
                                                       std::int64_t not_after_ms) const {
  webhook::SendRequest request = plan.caller->blank();
  std::vector<Header> published;
  for (const auto& [name, value] : record.headers) {
    if (!is_configured(request, name)) published.push_back({name, value});
  }
  HAPAX_TRY(const auto fields,
            envelope::attempt_fields(content, {.key = record.id,
                                               .at = time_from_ms(clock_.wall_ms()),
                                               .replay = record.replay,
                                               .keys = plan.keys ? &*plan.keys : nullptr,
                                               .record_headers = published}));
  for (const envelope::HeaderField& field : fields) {
    request.headers.emplace_back(field.name, field.value);
  }
  request.body = content.body.text();
  request.may_leave = [&clock = clock_, not_after_ms, winding_down = winding_down_] {
    return !*winding_down && clock.steady_ms() < not_after_ms;
  };
  return request;
}

}  // namespace hapax::workflows
