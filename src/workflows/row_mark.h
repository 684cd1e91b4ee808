// A row of an outbox on its way through the workflow's own stream of rows: which row it is, and
// what a record of a stream cannot say of it. The mark is the first header of the record. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <hapax/result.h>

#include "delivery/source.h"
#include "delivery/stream_source.h"

namespace hapax::workflows {

struct RowMark {
  std::string uid;           // of the database
  std::string outbox;        // as the database calls it
  std::string id;            // of the row
  std::int64_t time_ms = 0;  // of the event; 0: its outbox does not know
  std::uint32_t replay = 0;
};

// Makes a record of the stream of a row: its id becomes the key of the row, and what it has beside
// its headers becomes one. An error: the row has no key, and is as it was.
[[nodiscard]] Status mark_row(delivery::Outgoing& row, std::string uid, std::string outbox);

struct MarkedRow {
  RowMark mark;
  // As if the row had been appended to a stream.
  std::vector<std::pair<std::string, std::string>> headers{};
};
// kInvalidArgument: the record is no row that was marked.
[[nodiscard]] Result<MarkedRow> read_row(
    const std::vector<std::pair<std::string, std::string>>& headers);

// Takes the mark off a record that was read from the stream, and mends what it tells.
[[nodiscard]] delivery::StreamSource::Route route_of_rows(delivery::StreamSource::Route then);

}  // namespace hapax::workflows
