#include "workflows/record_key.h"

#include <utility>

#include "base/format.h"
#include "base/words.h"
#include "wire/json_check.h"
#include "wire/json_member.h"

namespace hapax::workflows {

namespace {

using delivery::KeyField;
using delivery::KeyFormat;
using delivery::KeyHeader;
using delivery::KeyMember;
using delivery::KeyPart;

// The four components of the table of keys.
struct OriginFields {
  std::string_view database;
  std::string_view table;
  std::string_view primary_key;
  std::string change_version;
};

struct FieldsOf {
  OriginFields operator()(const signing::OutboxOrigin& from) const {
    return {from.database, from.outbox, from.id, {}};
  }
  OriginFields operator()(const signing::StreamOrigin& from) const {
    if (const auto* id = std::get_if<std::string_view>(&from.record)) {
      return {from.store, from.stream, *id, {}};
    }
    const Sequence sequence = std::get<Sequence>(from.record);
    return {from.store, from.stream, {}, base::format("{}", sequence.value)};
  }
  OriginFields operator()(const signing::IngestOrigin& from) const {
    return {from.tenant, from.workflow, from.event, {}};
  }
};

// V8: the primary key or the change version of a record may be empty where the other one, which the
// format has as well, tells it from all others of its table.
bool may_be_empty(const KeyFormat& format, const OriginFields& from, KeyField field) {
  switch (field) {
    case KeyField::kDatabase:  // The same for all records of a workflow.
      return true;
    case KeyField::kPrimaryKey:
      return format.has(KeyField::kChangeVersion) && !from.change_version.empty();
    case KeyField::kChangeVersion:
      return format.has(KeyField::kPrimaryKey) && !from.primary_key.empty();
    case KeyField::kTable:
    case KeyField::kEventType:
    case KeyField::kGroupKey:
      break;
  }
  return false;
}

std::string_view value_of(const KeyedRecord& record, const OriginFields& from, KeyField field) {
  switch (field) {
    case KeyField::kDatabase:
      return from.database;
    case KeyField::kTable:
      return from.table;
    case KeyField::kPrimaryKey:
      return from.primary_key;
    case KeyField::kChangeVersion:
      return from.change_version;
    case KeyField::kEventType:
      return record.type;
    case KeyField::kGroupKey:
      return record.group;
  }
  return {};
}

// The first of that name.
std::string_view value_of(const KeyedRecord& record, const KeyHeader& header) {
  for (const auto& [name, value] : record.headers) {
    if (base::lower(name) == header.name) return value;
  }
  return {};
}

Error lacking(const KeyPart& part, std::string_view why) {
  return {Errc::kInvalidArgument,
          base::format("its key cannot be made: {} {}", text_of(part), why)};
}

Result<std::string> value_of(const KeyFormat& format, const KeyedRecord& record,
                             const OriginFields& from, const KeyPart& part) {
  if (const auto* field = std::get_if<KeyField>(&part)) {
    const std::string_view value = value_of(record, from, *field);
    if (value.empty() && !may_be_empty(format, from, *field)) {
      return lacking(part, "is empty");
    }
    return std::string(value);
  }
  if (const auto* header = std::get_if<KeyHeader>(&part)) {
    const std::string_view value = value_of(record, *header);
    if (value.empty()) return lacking(part, "is not among its headers, or is empty");
    return std::string(value);
  }
  const auto found = wire::json_member(record.payload, std::get<KeyMember>(part).path);
  if (!found) return lacking(part, "is not in its payload");
  auto text = wire::json_scalar_text(*found);
  if (!text || text->empty()) {
    return lacking(part, "is null, empty, an object or an array in its payload");
  }
  return *std::move(text);
}

}  // namespace

Result<std::vector<std::string>> key_values(const KeyFormat& format, const KeyedRecord& record) {
  if (format.reads_payload() && !wire::is_strict_json(record.payload)) {
    return Error{Errc::kInvalidArgument,
                 "its key cannot be made: its format names members of the payload, which is not "
                 "JSON, or has a member twice"};
  }
  const OriginFields from = std::visit(FieldsOf{}, record.origin);
  std::vector<std::string> values;
  values.reserve(format.parts().size());
  for (const KeyPart& part : format.parts()) {
    HAPAX_TRY(std::string value, value_of(format, record, from, part));
    values.push_back(std::move(value));
  }
  return values;
}

Result<std::string> record_key(const delivery::KeySettings& settings, const KeyedRecord& record,
                               const signing::FanOut& fan_out) {
  const auto form = settings.form == delivery::KeyForm::kShort ? signing::KeyForm::kShort
                                                               : signing::KeyForm::kWhole;
  signing::KeyOrigin origin =
      std::visit([](const auto& from) { return signing::KeyOrigin(from); }, record.origin);
  if (!settings.format.is_default()) {
    HAPAX_TRY(auto values, key_values(settings.format, record));
    origin = signing::FormatOrigin{settings.format.text(), std::move(values)};
  }
  HAPAX_TRY(const auto key, signing::DeliveryKey::make(origin, fan_out));
  return key.text(form);
}

}  // namespace hapax::workflows
