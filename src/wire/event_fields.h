// An event that is posted to a workflow, as a list of named fields. It becomes a record of the
// stream in which the workflow keeps its events.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include <hapax/ops.h>

#include "wire/op_fields.h"
#include "wire/request.h"

namespace hapax::wire {

inline constexpr std::string_view kEvent = "event";
// The header of a record that names its type.
inline constexpr std::string_view kEventTypeHeader = "event_type";

struct PostedEvent {
  std::string_view workflow;
  std::string_view id;
  std::optional<std::string_view> type;
  std::optional<std::string_view> key;
  std::string_view payload;
  std::span<const Header> headers;
  std::optional<Time> first_sent;
};
template <class V>
void fields(V& v, PostedEvent& event) {
  v.required("workflow", event.workflow, About{"Id of the workflow", allowed::kName});
  v.required("id", KeyBytes{event.id},
             About{"Id of the event: the same one again is a duplicate", allowed::kKey});
  v.required("payload", Bytes{event.payload}, About{"The event's content", allowed::kPayload});
  v.optional("type", event.type, About{"Type of the event", allowed::kSome});
  if (event.type && event.type->empty()) v.refuse("type", "is empty; leave it out instead");
  v.optional("key", OptionalKeyBytes{event.key},
             About{"Events of one key are delivered in order", allowed::kKey});
  v.optional("headers", event.headers, About{"Names and values", allowed::kHeaders});
  v.optional("first_sent_ms", event.first_sent,
             "When it was first tried; refused before the horizon");
}

// The stream is left empty: who looks the workflow up knows it. The headers live in the request.
[[nodiscard]] inline Append record_of(const PostedEvent& event, Request& request) {
  Append record;
  record.id = event.id;
  record.group = event.key;
  record.payload = event.payload;
  record.headers = event.headers;
  record.first_sent = event.first_sent;
  if (!event.type) return record;
  auto& headers = request.headers.emplace_back();
  headers.reserve(event.headers.size() + 1);
  headers.push_back({kEventTypeHeader, *event.type});
  headers.insert(headers.end(), event.headers.begin(), event.headers.end());
  record.headers = headers;
  return record;
}

// What a body can be: an operation, or an event.
template <class Act>
bool with_body(std::string_view name, const Act& act) {
  if (name != kEvent) return with_op(name, act);
  act(Named<PostedEvent>{kEvent});
  return true;
}

}  // namespace hapax::wire
