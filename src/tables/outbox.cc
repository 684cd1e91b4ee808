#include <utility>

#include <hapax/limits.h>
#include <hapax/outbox.h>
#include <hapax/uuid.h>

#include "base/format.h"
#include "tables/tables.h"

namespace hapax {

namespace {

Status check_size(std::string_view what, std::size_t size, std::size_t most) {
  if (size <= most) return Ok{};
  return Error{Errc::kLimitExceeded,
               base::format("the {} of an event has {} bytes, at most {}", what, size, most)};
}

// The relay adds these to the event's own; the names are those of relay::stream_headers().
Status check_headers(const Event& event) {
  const std::pair<std::string_view, std::string_view> added[] = {
      {"event_type", event.type},
      {"correlation_id", event.correlation_id},
      {"causation_id", event.causation_id}};
  std::size_t count = event.headers.size();
  std::size_t bytes = 0;
  for (const auto& [name, value] : event.headers) bytes += name.size() + value.size();
  for (const auto& [name, value] : added) {
    if (value.empty()) continue;
    ++count;
    bytes += name.size() + value.size();
  }
  if (count > limits::kHeadersMax) {
    return Error{Errc::kLimitExceeded, base::format("an event has {} headers, with its type and "
                                                    "its correlation and causation ids, at most {}",
                                                    count, limits::kHeadersMax)};
  }
  return check_size("headers, with type, correlation and causation id,", bytes,
                    limits::kHeaderBytesMax);
}

// What every stream would refuse must not be promised to anybody.
Status check(const Event& event) {
  if (event.type.empty()) return Error{Errc::kInvalidArgument, "an event needs a type"};
  for (const auto& [what, text] : {std::pair{"id", &event.id}, {"key", &event.key}}) {
    if (!*text) continue;
    if ((*text)->empty()) {
      return Error{Errc::kInvalidArgument,
                   "the " + std::string(what) + " of an event is empty; leave it out for none"};
    }
    HAPAX_CHECK(check_size(what, (*text)->size(), limits::kMessageIdBytesMax));
  }
  HAPAX_CHECK(check_size("type", event.type.size(), limits::kNameBytesMax));
  HAPAX_CHECK(check_size("payload", event.payload.size(), limits::kRecordBytesMax));
  return check_headers(event);
}

}  // namespace

Result<std::string> Outbox::publish(const Event& event) {
  HAPAX_TRY(std::vector<std::string> ids, publish(std::span(&event, 1)));
  return std::move(ids.front());
}

Result<std::vector<std::string>> Outbox::publish(std::span<const Event> events) {
  if (!database_.in_transaction()) {
    return Error{Errc::kPreconditionFailed,
                 "publish outside of a transaction: an event commits together with the change it "
                 "tells of; begin one, or use Database::with_transaction"};
  }
  std::vector<Event> named(events.begin(), events.end());
  std::vector<std::string> ids;
  for (Event& event : named) {
    if (!event.id) event.id = uuid7().text();
    HAPAX_CHECK(check(event));
    ids.push_back(*event.id);
  }
  if (!named.empty()) HAPAX_CHECK(database_.tables_->publish(named));
  return ids;
}

}  // namespace hapax
