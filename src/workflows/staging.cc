#include "workflows/staging.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include <hapax/limits.h>

#include "base/format.h"
#include "base/hex.h"
#include "base/whole_number.h"
#include "base/words.h"
#include "delivery/event_type_index.h"
#include "digest/hash.h"
#include "relay/headers.h"
#include "workflows/own_streams.h"
#include "workflows/plan.h"
#include "workflows/row_mark.h"

namespace hapax::workflows {

namespace {

using delivery::EndpointSettings;
using delivery::Outgoing;
using delivery::Reshaped;
using delivery::StagedRecord;
using delivery::Workflow;
using Headers = std::vector<std::pair<std::string, std::string>>;

constexpr std::string_view kStagedHeader = "hapax-staged";

// "1 1700000000000 0 crm": the form, time, replays, and the name of the endpoint. A record that has
// as many headers as a record may have leaves no room for the mark; then the mark has the last of
// them: "2 1700000000000 0 3 crm5:trace5:00-ab", as netstrings behind the length of the name.
struct StagedMark {
  std::int64_t time_ms = 0;
  std::uint32_t replay = 0;
  std::string_view endpoint;
  Headers displaced{};
};

std::string text_of(const StagedMark& mark) {
  if (mark.displaced.empty()) {
    return base::format("1 {} {} {}", mark.time_ms, mark.replay, mark.endpoint);
  }
  std::string text =
      base::format("2 {} {} {} {}", mark.time_ms, mark.replay, mark.endpoint.size(), mark.endpoint);
  for (const auto& [name, value] : mark.displaced) {
    base::append_format(text, "{}:{}{}:{}", name.size(), name, value.size(), value);
  }
  return text;
}

std::optional<StagedMark> read_mark(std::string_view text) {
  int form = 0;
  StagedMark mark;
  const bool whole = base::take_word(text, form) && (form == 1 || form == 2) &&
                     base::take_word(text, mark.time_ms) && base::take_word(text, mark.replay);
  if (!whole) return std::nullopt;
  std::size_t bytes = text.size();
  if (form == 2 && (!base::take_word(text, bytes) || bytes > text.size())) return std::nullopt;
  mark.endpoint = text.substr(0, bytes);
  auto displaced = relay::headers_of(text.substr(bytes));
  if (!displaced) return std::nullopt;
  mark.displaced = *std::move(displaced);
  return mark;
}

// Order is kept per endpoint and key, so that endpoints do not wait for each other.
std::string outbox_group(const std::string& endpoint, const std::string& key) {
  if (key.empty() || endpoint.empty()) return key;
  std::string group = endpoint + '/' + key;
  return group.size() <= limits::kMessageIdBytesMax ? group : base::hex(digest::sha256(group));
}

class Composer {
 public:
  Composer(const Workflow& workflow, std::string store_id, SharedVerifier verifier)
      : endpoints_(workflow.endpoints),
        takers_(endpoints_),
        outbox_(outbox_of(workflow).name),
        transformed_(workflow.transform.has_value()),
        rows_(delivery::stores_rows(workflow)),
        key_for_(key_maker(workflow, std::move(store_id))),
        verifier_(std::move(verifier)) {}

  [[nodiscard]] Result<std::vector<StagedRecord>> compose(const Record& record,
                                                          std::uint64_t stream_uid,
                                                          std::vector<Reshaped> outputs) const {
    std::vector<StagedRecord> all;
    // Without a transform the payload of the record is that of its only output.
    const std::string& payload = transformed_ ? record.payload : outputs.at(0).payload;
    // V9: also of a record without an output, or a changed one could be made to vanish.
    HAPAX_CHECK(check_record(verifier_, record, payload, rows_));
    HAPAX_TRY(const Told told, told_by(record));
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      Reshaped& output = outputs[i];
      const std::string_view type = output.type ? *output.type : type_of(record);
      const Headers headers = headers_for(told.headers, type);
      for (const std::size_t place : takers_.takers_of(type)) {
        const EndpointSettings& endpoint = endpoints_[place];
        StagedRecord& staged = all.emplace_back();
        const std::string_view name = endpoints_.size() > 1 ? endpoint.name : std::string_view();
        const signing::FanOut fan_out{static_cast<std::uint32_t>(i), name};
        HAPAX_TRY(staged.id, key_for_(record, payload, stream_uid, fan_out));
        staged.payload = output.payload;
        const std::string& key = output.key ? *output.key : record.group;
        staged.headers = headers;
        address(staged, endpoint, key, told);
      }
    }
    return all;
  }

 private:
  // What the outputs of a record have of it.
  struct Told {
    Headers headers{};
    std::int64_t time_ms = 0;
    std::uint32_t replay = 0;
  };

  [[nodiscard]] Result<Told> told_by(const Record& record) const {
    Told told{.time_ms = to_ms(record.time),
              .replay = record.lineage ? record.lineage->redrives : 0};
    if (!rows_) {
      told.headers = record.headers;
      return told;
    }
    HAPAX_TRY(MarkedRow row, read_row(record.headers));
    told.headers = std::move(row.headers);
    if (row.mark.time_ms != 0) told.time_ms = row.mark.time_ms;
    told.replay += row.mark.replay;
    return told;
  }

  void address(StagedRecord& staged, const EndpointSettings& endpoint, const std::string& key,
               const Told& told) const {
    if (const delivery::StreamTarget* to = endpoint.stream()) {
      staged.stream = to->stream;
      staged.group = key;
      return;
    }
    staged.stream = outbox_;
    staged.group = outbox_group(endpoint.name, key);
    StagedMark mark{.time_ms = told.time_ms, .replay = told.replay, .endpoint = endpoint.name};
    Headers& headers = staged.headers;
    const std::size_t kept = std::min(headers.size(), limits::kHeadersMax - 1);
    const auto last = headers.begin() + static_cast<std::ptrdiff_t>(kept);
    mark.displaced.assign(std::make_move_iterator(last), std::make_move_iterator(headers.end()));
    headers.erase(last, headers.end());
    headers.emplace(headers.begin(), kStagedHeader, text_of(mark));
  }

  // What a transform made is JSON, whatever its source was. Of a record without a type no later
  // header may be taken for one: it is not signed.
  [[nodiscard]] Headers headers_for(const Headers& of_record, std::string_view type) const {
    Headers headers;
    if (!type.empty()) headers.emplace_back(delivery::kTypeHeader, type);
    bool typed = false;
    for (const auto& [name, value] : of_record) {
      const bool names_type = name == delivery::kTypeHeader;
      if (names_type && (!std::exchange(typed, true) || type.empty())) continue;
      if (transformed_ && base::lower(name) == "content-type") continue;
      if (verifier_ && is_signature_header(name)) continue;
      headers.emplace_back(name, value);
    }
    return headers;
  }

  const std::vector<EndpointSettings> endpoints_;
  const delivery::EventTypeIndex takers_;
  const std::string outbox_;
  const bool transformed_;
  const bool rows_;
  const KeyMaker key_for_;
  const SharedVerifier verifier_;
};

}  // namespace

bool has_outbox(const Workflow& workflow) {
  const auto& endpoints = workflow.endpoints;
  return is_staged(workflow) &&
         std::any_of(endpoints.begin(), endpoints.end(),
                     [](const EndpointSettings& each) { return each.http() != nullptr; });
}

delivery::StagerSettings stager_settings(const Workflow& workflow, std::string owner) {
  const std::string& id = workflow.id.text();
  delivery::StagerSettings settings;
  settings.source = source_stream_of(workflow);
  settings.consumer = id;
  settings.dead_letters = id + ".dead";
  settings.blocked = blocked_registers_of(workflow.id);
  settings.hold = hold_of(workflow);
  settings.keeping = keeping_of(workflow);
  settings.owner = std::move(owner);
  if (has_outbox(workflow)) settings.outbox = outbox_of(workflow);
  settings.delivered_kept = workflow.retention.delivered;
  settings.owns_source = source_stream(workflow).value().own;
  return settings;
}

delivery::Stager::Compose compose_of(const Workflow& workflow, std::string store_id,
                                     SharedVerifier verifier) {
  const auto composer =
      std::make_shared<const Composer>(workflow, std::move(store_id), std::move(verifier));
  return [composer](const Record& record, std::uint64_t stream_uid, std::vector<Reshaped> outputs) {
    return composer->compose(record, stream_uid, std::move(outputs));
  };
}

std::optional<StagedOrigin> staged_origin_of(const Record& record) {
  const bool marked = !record.headers.empty() && record.headers.front().first == kStagedHeader;
  const auto mark = marked ? read_mark(record.headers.front().second) : std::nullopt;
  if (!mark) return std::nullopt;
  return StagedOrigin{std::string(mark->endpoint), time_from_ms(mark->time_ms), mark->replay};
}

delivery::StreamSource::Route route_from_outbox(const Workflow& workflow) {
  std::map<std::string, std::uint32_t, std::less<>> indexes;
  for (const EndpointSettings& endpoint : workflow.endpoints) {
    if (endpoint.http() == nullptr) continue;
    indexes.emplace(endpoint.name, static_cast<std::uint32_t>(indexes.size()));
  }
  return [indexes = std::move(indexes)](Outgoing& record) -> std::optional<std::uint32_t> {
    const bool marked = !record.headers.empty() && record.headers.front().first == kStagedHeader;
    auto mark = marked ? read_mark(record.headers.front().second) : std::nullopt;
    if (!mark) {
      record.flaw = "it was not put into the outbox by its workflow";
      return 0;
    }
    const auto index = indexes.find(mark->endpoint);
    if (index == indexes.end()) {
      record.flaw = base::format("its workflow has no endpoint '{}' any more", mark->endpoint);
      return 0;
    }
    record.time = time_from_ms(mark->time_ms);
    record.replay += mark->replay;
    const std::string prefix = std::string(mark->endpoint) + '/';
    if (!mark->endpoint.empty() && record.key.starts_with(prefix)) {
      record.key.erase(0, prefix.size());
    }
    Headers displaced = std::move(mark->displaced);
    record.headers.erase(record.headers.begin());
    std::move(displaced.begin(), displaced.end(), std::back_inserter(record.headers));
    return index->second;
  };
}

}  // namespace hapax::workflows
