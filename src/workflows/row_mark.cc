#include "workflows/row_mark.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <iterator>
#include <string_view>

#include <hapax/limits.h>

#include "base/format.h"
#include "relay/headers.h"
#include "signing/delivery_key.h"

namespace hapax::workflows {

namespace {

using delivery::Outgoing;
using Headers = std::vector<std::pair<std::string, std::string>>;

constexpr std::string_view kRowHeader = "hapax-row";
// The fields of a mark, as netstrings with their names. Behind them stand headers for which the
// mark left no room.
constexpr std::array<std::string_view, 5> kFields{"uid", "outbox", "id", "time", "replay"};
constexpr std::string_view kNoRow = "it was not put there by its workflow";

void add_field(std::string& text, std::string_view name, std::string_view value) {
  base::append_format(text, "{}:{}{}:{}", name.size(), name, value.size(), value);
}

template <class Number>
bool read_whole(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

void put_in_front(Headers& headers, std::string_view name, const std::string& value) {
  if (!value.empty()) headers.emplace(headers.begin(), name, value);
}

}  // namespace

Status mark_row(Outgoing& row, std::string uid, std::string outbox) {
  const signing::OutboxOrigin origin{uid, outbox, row.id};
  HAPAX_TRY(const auto key, signing::DeliveryKey::make(origin));
  put_in_front(row.headers, "causation_id", row.causation_id);
  put_in_front(row.headers, "correlation_id", row.correlation_id);
  put_in_front(row.headers, delivery::kTypeHeader, row.type);
  std::string text;
  const std::array<std::string, 5> values{std::move(uid), std::move(outbox), row.id,
                                          base::format("{}", to_ms(row.time)),
                                          base::format("{}", row.replay)};
  for (std::size_t i = 0; i < kFields.size(); ++i) add_field(text, kFields[i], values[i]);
  const std::size_t kept = std::min(row.headers.size(), limits::kHeadersMax - 1);
  for (std::size_t i = kept; i < row.headers.size(); ++i) {
    add_field(text, row.headers[i].first, row.headers[i].second);
  }
  row.headers.resize(kept);
  row.headers.emplace(row.headers.begin(), kRowHeader, std::move(text));
  row.id = key.text();
  return Ok{};
}

Result<MarkedRow> read_row(const Headers& headers) {
  const Error none{Errc::kInvalidArgument, std::string(kNoRow)};
  if (headers.empty() || headers.front().first != kRowHeader) return none;
  auto fields = relay::headers_of(headers.front().second);
  if (!fields || fields->size() < kFields.size()) return none;
  for (std::size_t i = 0; i < kFields.size(); ++i) {
    if ((*fields)[i].first != kFields[i]) return none;
  }
  MarkedRow row;
  row.mark.uid = std::move((*fields)[0].second);
  row.mark.outbox = std::move((*fields)[1].second);
  row.mark.id = std::move((*fields)[2].second);
  const bool numbers = read_whole((*fields)[3].second, row.mark.time_ms) &&
                       read_whole((*fields)[4].second, row.mark.replay);
  if (!numbers) return none;
  row.headers.assign(headers.begin() + 1, headers.end());
  std::move(fields->begin() + static_cast<std::ptrdiff_t>(kFields.size()), fields->end(),
            std::back_inserter(row.headers));
  return row;
}

delivery::StreamSource::Route route_of_rows(delivery::StreamSource::Route then) {
  return [then = std::move(then)](Outgoing& record) -> std::optional<std::uint32_t> {
    auto row = read_row(record.headers);
    if (row) {
      record.headers = std::move(row->headers);
      if (row->mark.time_ms != 0) record.time = time_from_ms(row->mark.time_ms);
      record.replay += row->mark.replay;
    } else if (record.flaw.empty()) {
      record.flaw = row.error().detail;
    }
    return then ? then(record) : 0;
  };
}

}  // namespace hapax::workflows
