// The attributes of a CloudEvent (CloudEvents 1.0), but for the type of its data.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <hapax/result.h>

#include "envelope/content.h"

namespace hapax::envelope {

struct Attribute {
  std::string_view name;
  std::string value;
};

// kInvalidArgument, with the attribute and the reason.
[[nodiscard]] Status check_attributes(const RecordFacts& facts);

// REQUIRES: facts that check_attributes() accepts.
[[nodiscard]] std::vector<Attribute> attributes_of(const RecordFacts& facts);

// An attribute as the value of a header field, by the HTTP binding: space, double quote, percent
// and all that is not visible ASCII as %XX of its UTF-8.
[[nodiscard]] std::string attribute_field_value(std::string_view text);

// Whether a media type says that the data is JSON: its subtype is json, or ends with +json.
[[nodiscard]] bool is_json_type(std::string_view media_type);

}  // namespace hapax::envelope
