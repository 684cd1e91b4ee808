// What a record is called outside: by the table of docs/reference/delivery-keys.md, or by the
// format that its workflow declares. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <hapax/result.h>

#include "delivery/workflow.h"
#include "signing/delivery_key.h"

namespace hapax::workflows {

// A record as any source tells it. The texts outlive it.
struct KeyedRecord {
  std::variant<signing::OutboxOrigin, signing::StreamOrigin, signing::IngestOrigin> origin;
  std::string_view type{};
  std::string_view group{};
  std::span<const std::pair<std::string, std::string>> headers{};
  std::string_view payload{};
};

// The value of each field of the format, in their order. V8: kInvalidArgument, with the name of the
// field, if the record lacks one: a key without it would be a key of other records, too.
[[nodiscard]] Result<std::vector<std::string>> key_values(const delivery::KeyFormat& format,
                                                          const KeyedRecord& record);

// kInvalidArgument: the record has no key.
[[nodiscard]] Result<std::string> record_key(const delivery::KeySettings& settings,
                                             const KeyedRecord& record,
                                             const signing::FanOut& fan_out = {});

}  // namespace hapax::workflows
