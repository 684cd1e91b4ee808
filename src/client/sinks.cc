#include "client/sinks.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/format.h"
#include "base/utf8.h"
#include "digest/base64.h"
#include "wire/json_text.h"
#include "wire/strict_json.h"

namespace hapax::client {

namespace {

using relay::Outgoing;
using relay::PieceAnswer;
using relay::SinkDelivery;
using std::chrono::milliseconds;
using PieceKind = PieceAnswer::Kind;

constexpr milliseconds kAnswerTime{10'000};
constexpr std::size_t kReasonMax = 300;

// One attempt: whether and when to try again is the engine's to say.
ClientOptions for_relay(ClientOptions options) {
  options.attempts_max = 1;
  return options;
}

milliseconds time_for(const relay::Permit& permit) {
  return std::max(std::min(kAnswerTime, permit.left()), milliseconds{1});
}

std::string reason_of(const Reply& reply) {
  return base::format("HTTP {} {}", reply.status, reply.body.substr(0, kReasonMax));
}

// As text if that is possible and not longer: a control character takes six bytes, and 8 MiB of
// them no server would take.
void add_bytes(wire::JsonObject& object, const std::string& name, const std::string& bytes) {
  if (base::is_utf8(bytes)) {
    std::string text = wire::json_text(bytes);
    if (text.size() <= bytes.size() / 3 * 4 + 6) {
      object.raw(name, text);
      return;
    }
  }
  object.add(name + "_base64", digest::encode_base64(bytes));
}

std::string json_of(const Outgoing& record) {
  wire::JsonObject object;
  add_bytes(object, "id", record.id);
  if (!record.key.empty()) add_bytes(object, "group", record.key);
  add_bytes(object, "payload", record.payload);
  wire::JsonArray headers;
  for (const auto& [name, value] : relay::stream_headers(record)) {
    headers.add("[" + wire::json_text(name) + "," + wire::json_text(value) + "]");
  }
  object.raw("headers", headers.text());
  return object.text();
}

// Which record of an atomic commit was refused, and why.
PieceAnswer refusal_in(const Reply& reply) {
  const auto json = wire::read_strict_json(reply.body);
  const wire::JsonValue* list = json ? json->find("verdicts") : nullptr;
  const auto* verdicts = list ? list->get<wire::JsonValue::Array>() : nullptr;
  if (verdicts == nullptr) return {PieceKind::kTooLarge, 0, reason_of(reply)};
  for (std::size_t i = 0; i < verdicts->size(); ++i) {
    const wire::JsonValue* word = (*verdicts)[i].find("verdict");
    const auto* text = word ? word->get<std::string>() : nullptr;
    if (text == nullptr || *text == "fresh" || *text == "duplicate" || *text == "not_applied") {
      continue;
    }
    const wire::JsonValue* code = (*verdicts)[i].find("code");
    const auto* known = code ? code->get<std::string>() : nullptr;
    const wire::JsonValue* detail = (*verdicts)[i].find("detail");
    const auto* said = detail ? detail->get<std::string>() : nullptr;
    const bool own_fault = known == nullptr || *known == "HX1001" || *known == "HX1002";
    return {own_fault ? PieceKind::kRefused : PieceKind::kUnavailable, i,
            *text + (said == nullptr ? "" : ": " + *said)};
  }
  return {PieceKind::kTooLarge, 0, reason_of(reply)};
}

}  // namespace

StreamSink::StreamSink(ClientOptions options, std::string stream)
    : client_(for_relay(std::move(options))), stream_(std::move(stream)) {}

PieceAnswer StreamSink::send(std::span<const Outgoing* const> piece, const relay::Permit& permit) {
  wire::JsonArray records;
  for (const Outgoing* record : piece) records.add(json_of(*record));
  const ApiCall call{.method = "POST",
                     .path = "/api/v1/streams/" + encoded(stream_) + "/records",
                     .body = "{\"mode\":\"atomic\",\"records\":" + records.text() + "}",
                     .time = time_for(permit),
                     .may_send = [&permit] { return permit.good(); }};
  const auto reply = client_.call(call);
  if (!reply) return {PieceKind::kUnavailable, 0, reply.error().text()};
  if (reply->good()) return {};
  // A missing stream or right is no fault of the records, and somebody will see to it.
  const bool theirs =
      reply->status == 400 || reply->status == 409 || reply->status == 413 || reply->status == 422;
  if (!theirs) return {PieceKind::kUnavailable, 0, reason_of(*reply)};
  return refusal_in(*reply);
}

}  // namespace hapax::client
