// A YAML document as a tree of places and texts. Strict where YAML is generous: one document, no
// anchors and aliases (a small file could grow without end), no tags, keys are text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/finding.h"

namespace hapax::config {

struct Entry;

struct Node {
  enum class Kind : std::uint8_t { kNothing, kText, kList, kMap };
  Kind kind = Kind::kNothing;
  Place place;
  std::string text{};
  bool quoted = false;
  std::vector<Node> items;
  std::vector<Entry> entries;  // in the order written, repeated keys included
};

struct Entry {
  std::string name;
  Place place;
  Node value;
};

inline constexpr std::size_t kDocumentBytesMax = std::size_t{1} << 20;
inline constexpr std::size_t kDepthMax = 16;

// An error is added to the findings and answers nothing.
[[nodiscard]] Node read_document(const std::string& source, std::string_view text,
                                 ConfigFindings& findings);

}  // namespace hapax::config
