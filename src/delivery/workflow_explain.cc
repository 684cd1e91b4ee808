#include "delivery/workflow_explain.h"

#include <algorithm>

#include "base/format.h"
#include "delivery/breaker.h"
#include "delivery/client_guidance.h"
#include "delivery/key_explain.h"
#include "delivery/workflow_check.h"
#include "delivery/workflow_runs.h"

namespace hapax::delivery {

namespace {

constexpr std::string_view kClientKnowsKey =
    "The client must recognise repeated requests: store the idempotencyKey in the transaction that "
    "does the work, and answer a key that is already there with success. ";

// How the position in a source moves, which decides what a crash of Hapax repeats.
std::string source_text(const Workflow& workflow) {
  if (!workflow.source) {
    return "No source is declared, so this is a draft: it says what would hold, and nothing runs.";
  }
  if (const auto* outbox = std::get_if<FromOutbox>(&*workflow.source)) {
    return std::string(
               "Records come from an outbox table: the application commits a record with "
               "the change that it tells of, or neither. ") +
           (std::holds_alternative<MappedOutboxTable>(outbox->tables)
                ? base::format(
                      "The table is the application's own. Hapax stores a record in its stream "
                      "'{}.rows', once by its key, and sets the column for delivered rows after "
                      "that.",
                      workflow.id.text())
            : stores_rows(workflow)
                ? base::format("Hapax stores it in its stream '{}.rows', once by its key, and "
                               "settles it in the database after that.",
                               workflow.id.text())
                : "Hapax settles a record in the same database when it is delivered.");
  }
  if (const auto* stream = std::get_if<FromStream>(&*workflow.source)) {
    return base::format(
        "Records come from the stream '{}': what was appended is on disk, and the "
        "workflow's consumer keeps its position in the same store.",
        stream->stream);
  }
  return base::format(
      "Records come by POST /api/v1/workflows/{}/events: the caller is answered when its event is "
      "on disk. A caller without an answer sends the event again under the same id.",
      workflow.id.text());
}

std::string where_position_is(const Workflow& workflow) {
  if (!workflow.source) return "the position in the source";
  if (stores_rows(workflow)) return "the position in the workflow's own stream of rows";
  if (std::holds_alternative<FromOutbox>(*workflow.source)) return "the mark in the outbox table";
  if (std::holds_alternative<FromStream>(*workflow.source)) {
    return "the consumer's position in the stream";
  }
  return "the position in the workflow's own stream of events";
}

// What happens to a record of which nobody knows whether it arrived.
std::string unknown_text(const EndpointNature& nature) {
  if (std::holds_alternative<NatureIdempotent>(nature)) {
    return "Hapax sends it again under the same key, because the endpoint is declared idempotent.";
  }
  if (const auto* probe = std::get_if<NatureProbe>(&nature)) {
    return base::format(
        "Hapax asks {} and sends again only if the answer is that the key is not "
        "known.",
        probe->status_url.text());
  }
  return std::string(
             "Hapax parks it as a dead letter and sends nothing until a person decides "
             "(hapax resolve, then hapax dead replay)") +
         (std::holds_alternative<NatureNotSaid>(nature)
              ? ", because the nature of the endpoint is not declared."
              : ".");
}

class EndpointText {
 public:
  EndpointText(const Workflow& workflow, const EndpointSettings& endpoint)
      : workflow_(workflow), terms_(workflow.delivery), endpoint_(endpoint) {}

  [[nodiscard]] ExplainedEndpoint all() const {
    ExplainedEndpoint text;
    text.name = endpoint_.name;
    const bool http = endpoint_.http() != nullptr;
    text.guarantee = http ? http_guarantee() : stream_guarantee();
    text.crash_windows = http ? http_windows() : stream_windows();
    text.client = http ? http_client() + http_manners() : stream_client();
    if (http) text.pauses = http_pauses();
    return text;
  }

 private:
  [[nodiscard]] std::string http_pauses() const {
    const BreakerSettings breaker = BreakerSettings::of(endpoint_.breaker);
    return base::format(
        "When records of {} keys fail in a row, or of {} without an answer, the endpoint is left "
        "alone for {}, and each time for twice as long, up to {}, or {} without an answer. Then {} "
        "at a time finds out whether it is better.",
        breaker.failing_keys, breaker.silent_keys, pause_text(breaker.pause_first),
        pause_text(breaker.failing_pause_max), pause_text(breaker.pause_max),
        breaker.probes == 1 ? "one request" : base::format("up to {} requests", breaker.probes));
  }

  [[nodiscard]] static std::string pause_text(Duration pause) {
    return pause.count() % 1'000 == 0 ? span_text(pause) : base::format("{} ms", pause.count());
  }

  [[nodiscard]] std::string http_guarantee() const {
    switch (terms_.guarantee) {
      case Guarantee::kAtMostOnce:
        return "Each record is sent once at most. Nothing is sent twice; a record can be lost on "
               "its way.";
      case Guarantee::kAtLeastOnce:
        return "Each record is confirmed by the endpoint, or becomes a dead letter that you can "
               "see. The endpoint can receive a record more than once.";
      case Guarantee::kIdempotentKeys:
        return "Each record is confirmed by the endpoint, or becomes a dead letter that you can "
               "see. The endpoint can receive a record more than once, always under the same "
               "idempotencyKey.";
      case Guarantee::kExactlyOnce:
        break;
    }
    return "Each record is confirmed by the endpoint, or becomes a dead letter that you can see. "
           "An attempt is on disk, as a claim under the idempotencyKey, before its first byte "
           "leaves, "
           "so none is forgotten, and none begins while the outcome of another one is not known. "
           "Over HTTP this is not yet once: the effect is once if the endpoint recognises the key.";
  }

  [[nodiscard]] std::string http_windows() const {
    const std::string position = where_position_is(workflow_);
    const EndpointNature& nature = endpoint_.http()->nature;
    switch (terms_.guarantee) {
      case Guarantee::kAtMostOnce:
        return base::format(
            "A crash after the attempt is on disk and before the request has arrived loses the "
            "record. So does an answer other than success. Such a record is a dead letter, and its "
            "claim, in the scope {}.deliveries under its idempotencyKey, says unknown or failed.",
            workflow_.id.text());
      case Guarantee::kAtLeastOnce:
      case Guarantee::kIdempotentKeys:
        return base::format(
            "An answer that is lost, and a crash between the answer and the write of {}: the "
            "record is sent again although the endpoint has it.",
            position);
      case Guarantee::kExactlyOnce:
        break;
    }
    return base::format(
        "A crash before an attempt is on disk repeats nothing. A crash or a lost answer after that "
        "leaves the record unknown. {}",
        unknown_text(nature));
  }

  [[nodiscard]] std::string http_client() const {
    std::string text;
    switch (terms_.guarantee) {
      case Guarantee::kAtMostOnce:
        return "The client has nothing to recognise, because nothing is repeated. It must bear "
               "that records are missing, and compare with the source where that matters.";
      case Guarantee::kAtLeastOnce:
        text =
            "The client must make a repetition harmless by its nature, for example by an upsert "
            "under the id of the record. ";
        break;
      case Guarantee::kIdempotentKeys:
      case Guarantee::kExactlyOnce:
        text = kClientKnowsKey;
        break;
    }
    const bool parked = std::holds_alternative<NatureManual>(endpoint_.http()->nature) ||
                        std::holds_alternative<NatureNotSaid>(endpoint_.http()->nature);
    if (terms_.guarantee == Guarantee::kExactlyOnce && parked) {
      text +=
          "A client that cannot do so receives a second request only if a person resolves an "
          "unknown record as not applied although it was. ";
    }
    text += base::format(
        "It must remember for at least {} (giveUpAfter), and for {} more if dead "
        "letters are replayed (deadLetter.keep).",
        span_text(terms_.retries.give_up_after), span_text(workflow_.dead_letter_keep));
    return text;
  }

  // Whatever the guarantee.
  [[nodiscard]] std::string http_manners() const {
    const HttpTarget& http = *endpoint_.http();
    std::string text;
    if (!http.signing.empty()) {
      text +=
          " Requests are signed (Standard Webhooks): the client verifies webhook-signature over "
          "the body as it came, and refuses what does not fit.";
    }
    if (word_for_status(http.on_status, 410) == StatusWord::kDisable) {
      text += " An answer 410 ends deliveries to it, until the workflow is paused and resumed.";
    }
    return text;
  }

  [[nodiscard]] bool same_store() const {
    return workflow_.source &&
           (!std::holds_alternative<FromOutbox>(*workflow_.source) || stores_rows(workflow_));
  }

  [[nodiscard]] std::string stream_guarantee() const {
    const std::string& stream = endpoint_.stream()->stream;
    if (same_store()) {
      return base::format(
          "Each record is stored in '{}' once: the append and the new position are "
          "one commit.",
          stream);
    }
    switch (terms_.guarantee) {
      case Guarantee::kAtMostOnce:
        return base::format("Each record is stored in '{}' once at most; one can be lost.", stream);
      case Guarantee::kAtLeastOnce:
        return base::format(
            "Each record is stored in '{}', or becomes a dead letter that you can "
            "see. It can be stored more than once.",
            stream);
      case Guarantee::kIdempotentKeys:
        return base::format(
            "Each record is stored in '{}' under its key. A repetition within the "
            "window of the stream is answered as a duplicate and not stored again.",
            stream);
      case Guarantee::kExactlyOnce:
        break;
    }
    return base::format(
        "Each record is stored in '{}' once: the append and the position of the "
        "source as Hapax knows it are one commit, and a record that the table "
        "hands out again is a duplicate.",
        stream);
  }

  [[nodiscard]] std::string stream_windows() const {
    if (same_store()) return "None: either all of the commit is on disk, or nothing is.";
    const std::string position = where_position_is(workflow_);
    switch (terms_.guarantee) {
      case Guarantee::kAtMostOnce:
        return base::format("A crash after {} is written and before the append loses the record.",
                            position);
      case Guarantee::kAtLeastOnce:
        return base::format(
            "A crash between the append and the write of {} stores the record a second time.",
            position);
      case Guarantee::kIdempotentKeys:
        return base::format(
            "A crash between the append and the write of {} appends the record again, and the "
            "stream answers duplicate. A repetition after the window of the stream "
            "would be stored.",
            position);
      case Guarantee::kExactlyOnce:
        break;
    }
    return base::format(
        "A crash between the commit and the write of {}: the table hands the record out again, "
        "and it is recognised for {} (deduplication.ttl).",
        position, span_text(terms_.dedup_ttl));
  }

  [[nodiscard]] std::string stream_client() const {
    switch (same_store() ? Guarantee::kExactlyOnce : terms_.guarantee) {
      case Guarantee::kAtMostOnce:
        return "Readers of the stream must bear that records are missing.";
      case Guarantee::kAtLeastOnce:
        return "Readers of the stream must make a repetition harmless.";
      case Guarantee::kIdempotentKeys:
      case Guarantee::kExactlyOnce:
        break;
    }
    return "A record is stored once; a reader that acts outside of the store must still make its "
           "own act harmless to repeat, because a reader can die between the act and its ack.";
  }

  const Workflow& workflow_;
  const DeliveryTerms& terms_;
  const EndpointSettings& endpoint_;
};

std::string retries_text(const Workflow& workflow) {
  const RetryPolicy& policy = workflow.delivery.retries;
  if (workflow.delivery.guarantee == Guarantee::kAtMostOnce) return "One attempt, no retries.";
  if (policy.attempts_max <= 1) {
    return "One attempt. A record that fails is a dead letter, which stays until it is dropped.";
  }
  const RetryHorizon horizon = horizon_of(policy, Duration{0});
  const bool list = std::holds_alternative<BackoffList>(policy.backoff);
  return base::format(
      "Up to {} attempts. The pauses between them {}, together at most {}; no "
      "attempt begins later than {} after the first. Then the record is a dead "
      "letter, which stays until it is replayed or dropped.",
      policy.attempts_max, list ? "are those of the list" : "double, half of each at random",
      span_text(horizon.pauses), span_text(policy.give_up_after));
}

std::string order_text(const Workflow& workflow) {
  const Ordering order = workflow.order();
  std::string text = order.key == OrderingKey::kNone
                         ? "No order is kept. "
                         : "Order is kept per record key, and not across keys or workflows. ";
  if (const auto* wait = std::get_if<BlockKeyFor>(&order.on_failure)) {
    return text + base::format(
                      "When a record is given up, later records of its key wait {}; then it is a "
                      "dead letter, and they go on.",
                      span_text(wait->time));
  }
  return text + (std::holds_alternative<BlockKey>(order.on_failure)
                     ? "When a record is given up, later records of its key wait until a person "
                       "retries, parks or drops it (hapax blocked); other keys go on."
                     : "When a record becomes a dead letter, later records of its key go on: a "
                       "replay comes after them.");
}

std::string latency_text(const Workflow& workflow) {
  const bool http = workflow.endpoints.empty() ||
                    std::any_of(workflow.endpoints.begin(), workflow.endpoints.end(),
                                [](const auto& endpoint) { return endpoint.http() != nullptr; });
  std::string text =
      "A commit in the source wakes the delivery; nothing waits for a polling interval. ";
  if (!http) return text + "Expect the time of one write to the disk.";
  text += "Expect the time of the endpoint's own answer, and ";
  switch (workflow.delivery.guarantee) {
    case Guarantee::kAtMostOnce:
      text += "before it one write to the disk for the attempt";
      break;
    case Guarantee::kAtLeastOnce:
    case Guarantee::kIdempotentKeys:
      text += "after it one write to the disk for the position";
      break;
    case Guarantee::kExactlyOnce:
      text += "before it one write to the disk for the attempt, and after it one for the outcome";
      break;
  }
  if (workflow.source && std::holds_alternative<FromOutbox>(*workflow.source)) {
    text +=
        ". Where notifications of the database do not arrive (a pooler, SQLite), the table is "
        "polled, which adds up to one interval";
  }
  text += ". A record behind a failed one of its key waits for that one's retries";
  return text + ".";
}

std::string route_text(const Workflow& workflow) {
  std::string from = "no source";
  if (workflow.source) {
    from = "an outbox table";
    if (const auto* stream = std::get_if<FromStream>(&*workflow.source)) {
      from = base::format("stream '{}'", stream->stream);
    } else if (std::holds_alternative<FromHttp>(*workflow.source)) {
      from = "HTTP";
    }
  }
  std::string to;
  for (const EndpointSettings& endpoint : workflow.endpoints) {
    const HttpTarget* http = endpoint.http();
    base::append_format(to, "{}{}", to.empty() ? "" : ", ",
                        http != nullptr ? http->url.text()
                                        : base::format("stream '{}'", endpoint.stream()->stream));
  }
  return base::format("from {} to {}, {}", from, to.empty() ? "no endpoint" : to,
                      word_for(workflow.delivery.guarantee));
}

// What a draft would hold to: an endpoint over HTTP of which nothing is said.
const EndpointSettings& assumed_endpoint() {
  static const EndpointSettings kAssumed{"(an endpoint over HTTP)",
                                         HttpTarget{*WebUrl::parse("https://endpoint.invalid/")}};
  return kAssumed;
}

}  // namespace

WorkflowExplanation explain_workflow(const Workflow& workflow) {
  WorkflowExplanation told;
  told.id = workflow.id.text();
  told.route = route_text(workflow);
  told.source = source_text(workflow);
  if (!workflow.source_keys.empty()) {
    told.source +=
        " Records are signed when they are published: one whose signature is missing or does not "
        "match is a dead letter, and is not sent.";
  }
  for (const EndpointSettings& endpoint : workflow.endpoints) {
    told.endpoints.push_back(EndpointText(workflow, endpoint).all());
  }
  if (workflow.endpoints.empty()) {
    told.endpoints.push_back(EndpointText(workflow, assumed_endpoint()).all());
  }
  told.retries = retries_text(workflow);
  told.order = order_text(workflow);
  told.key = explain_key(workflow);
  told.latency = latency_text(workflow);
  told.not_run = why_not_run(workflow).value_or("");
  told.guidance = client_guidance(workflow);
  return told;
}

}  // namespace hapax::delivery
