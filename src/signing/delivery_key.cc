#include "signing/delivery_key.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "base/hex.h"
#include "base/words.h"
#include "digest/base64.h"
#include "digest/hash.h"

namespace hapax::signing {

namespace {

// The first component. Another table would have another number.
constexpr std::string_view kTable = "hapax-key-1";
constexpr std::size_t kShortBytes = 9;  // 12 characters of base64url

// V2: the length comes first, so that no two lists of components are one text.
void add(std::string& to, std::string_view component) {
  base::append_format(to, "{}:{},", component.size(), component);
}

Status present(std::string_view component, std::string_view name) {
  if (!component.empty()) return Ok{};
  return Error{Errc::kInvalidArgument,
               base::format("a delivery key needs the {}, which is empty", name)};
}

// The kind of origin, then {database, table, primary key, change version}.
struct Components {
  std::string text;

  void begin(std::string_view kind) {
    add(text, kTable);
    add(text, kind);
  }

  Status operator()(const OutboxOrigin& from) {
    HAPAX_CHECK(present(from.database, "uid of the database"));
    HAPAX_CHECK(present(from.outbox, "name of the outbox"));
    HAPAX_CHECK(present(from.id, "id of the record"));
    begin("outbox");
    for (const std::string_view one : {from.database, from.outbox, from.id, std::string_view()}) {
      add(text, one);
    }
    return Ok{};
  }

  Status operator()(const StreamOrigin& from) {
    HAPAX_CHECK(present(from.store, "id of the store"));
    HAPAX_CHECK(present(from.stream, "uid of the stream"));
    const auto* id = std::get_if<std::string_view>(&from.record);
    if (id != nullptr) HAPAX_CHECK(present(*id, "message id of the record"));
    begin("stream");
    add(text, from.store);
    add(text, from.stream);
    // An id is a primary key and a sequence a version, so that id "5" is not sequence 5.
    add(text, id != nullptr ? *id : std::string_view());
    add(text, id != nullptr ? "" : base::format("{}", std::get<Sequence>(from.record).value));
    return Ok{};
  }

  Status operator()(const IngestOrigin& from) {
    HAPAX_CHECK(present(from.workflow, "id of the workflow"));
    HAPAX_CHECK(present(from.event, "id of the event"));
    begin("http");
    for (const std::string_view one :
         {from.tenant, from.workflow, from.event, std::string_view()}) {
      add(text, one);
    }
    return Ok{};
  }

  Status operator()(const RowOrigin& from) {
    HAPAX_CHECK(present(from.database, "name of the database"));
    HAPAX_CHECK(present(from.table, "name of the table"));
    HAPAX_CHECK(present(from.change_version, "change version of the row"));
    if (from.primary_key.empty()) return present("", "primary key of the row");
    begin("row");
    std::string columns;
    for (const std::string_view column : from.primary_key) add(columns, column);
    for (const std::string_view one :
         {from.database, from.table, std::string_view(columns), from.change_version}) {
      add(text, one);
    }
    return Ok{};
  }

  // The format says how many values there are, so what fan-out adds is not one of them.
  Status operator()(const FormatOrigin& from) {
    HAPAX_CHECK(present(from.format, "format"));
    const bool some = std::any_of(from.values.begin(), from.values.end(),
                                  [](const std::string& value) { return !value.empty(); });
    if (!some) return present("", "value of a field of the format");
    begin("format");
    add(text, from.format);
    for (const std::string& value : from.values) add(text, value);
    return Ok{};
  }
};

}  // namespace

Result<std::string> key_components(const KeyOrigin& origin, const FanOut& fan_out) {
  Components components;
  HAPAX_CHECK(std::visit(components, origin));
  if (fan_out.output != 0) {
    add(components.text, "output");
    add(components.text, base::format("{}", fan_out.output));
  }
  if (!fan_out.endpoint.empty()) {
    add(components.text, "endpoint");
    add(components.text, fan_out.endpoint);
  }
  return std::move(components.text);
}

Result<DeliveryKey> DeliveryKey::make(const KeyOrigin& origin, const FanOut& fan_out) {
  HAPAX_TRY(const std::string components, key_components(origin, fan_out));
  return DeliveryKey(digest::sha256(components));
}

std::string DeliveryKey::text(KeyForm form) const {
  if (form == KeyForm::kWhole) return base::hex(hash_);
  return digest::encode_base64(std::string_view(hash_).substr(0, kShortBytes),
                               digest::Base64::kUrl);
}

Status check_hash_algorithm(std::string_view name) {
  std::string plain = base::lower(name);
  std::erase(plain, '-');
  if (plain == "sha256") return Ok{};
  return Error{Errc::kInvalidArgument, "hashAlgorithm must be SHA256; no other is offered"};
}

}  // namespace hapax::signing
