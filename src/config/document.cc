#include "config/document.h"

#include <algorithm>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "base/format.h"
#include "base/utf8.h"

namespace hapax::config {

namespace {

[[noreturn]] void refuse(const YAML::Mark& mark, const std::string& what) {
  throw YAML::ParserException(mark, what);
}

class Builder final : public YAML::EventHandler {
 public:
  explicit Builder(const std::string& source) : source_(source) {}

  Node root;

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    check(mark, "", anchor);
    add(mark, {Node::Kind::kNothing, place(mark)});
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    refuse(mark, "aliases (*name) are not understood; write the value again");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    check(mark, tag, anchor);
    add(mark, {Node::Kind::kText, place(mark), value, tag == "!"});
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, Node::Kind::kList);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, Node::Kind::kMap);
  }
  void OnMapEnd() override { close(); }

 private:
  // A list or map that is not complete, and the key whose value is awaited.
  struct Open {
    YAML::Mark mark;
    Node node;
    bool key_read = false;
    std::string key{};
    Place key_place{};
  };

  [[nodiscard]] Place place(const YAML::Mark& mark) const {
    return {source_, mark.line + 1, mark.column + 1};
  }

  static void check(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) {
      refuse(mark, "anchors (&name) are not understood; write the value where it is needed");
    }
    // "?" is a plain value, "!" one in quotes.
    if (!tag.empty() && tag != "?" && tag != "!") refuse(mark, "tags (!name) are not understood");
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
            Node::Kind kind) {
    check(mark, tag, anchor);
    if (stack_.size() == kDepthMax) refuse(mark, "too many levels");
    stack_.push_back({mark, {kind, place(mark)}});
  }

  void close() {
    Open done = std::move(stack_.back());
    stack_.pop_back();
    add(done.mark, std::move(done.node));
  }

  void add(const YAML::Mark& mark, Node node) {
    if (stack_.empty()) {
      root = std::move(node);
      return;
    }
    Open& parent = stack_.back();
    if (parent.node.kind == Node::Kind::kList) {
      parent.node.items.push_back(std::move(node));
    } else if (parent.key_read) {
      parent.node.entries.push_back({parent.key, parent.key_place, std::move(node)});
      parent.key_read = false;
    } else {
      if (node.kind != Node::Kind::kText) refuse(mark, "a key must be text");
      parent.key = std::move(node.text);
      parent.key_place = node.place;
      parent.key_read = true;
    }
  }

  const std::string& source_;
  std::vector<Open> stack_;
};

// What the library says of the faults that people make, in words that say what to do.
struct SaidByYaml {
  std::string_view of_library;
  std::string_view ours;
};
const SaidByYaml kSaidByYaml[] = {
    {YAML::ErrorMsg::END_OF_MAP,
     "this line does not continue the keys above it: check the indentation, and that it is "
     "'key: value'"},
    {YAML::ErrorMsg::END_OF_SEQ,
     "this line does not continue the list above it: check the indentation, and that it begins "
     "with '- '"},
    {YAML::ErrorMsg::END_OF_MAP_FLOW, "a '}' or ',' is missing in the {…} around this place"},
    {YAML::ErrorMsg::END_OF_SEQ_FLOW, "a ']' or ',' is missing in the […] around this place"},
    {YAML::ErrorMsg::BLOCK_ENTRY, "a '-' where no element of a list can be: check the indentation"},
    {YAML::ErrorMsg::MAP_VALUE,
     "a colon where no key can be: check the indentation, and put text that contains ': ' in "
     "quotes"},
    {YAML::ErrorMsg::EOF_IN_SCALAR, "a quote is opened before this place and not closed"},
    {YAML::ErrorMsg::FLOW_END, "a '}' or ']' that nothing opens"},
};

bool begins_with_tab(std::string_view text, int line) {
  for (; line > 0; --line) text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  const std::size_t first = text.find_first_not_of(' ');
  return first != std::string_view::npos && text[first] == '\t';
}

std::string words_for(const YAML::Exception& error, std::string_view text) {
  const std::string& said = error.msg;
  if (!error.mark.is_null() && begins_with_tab(text, error.mark.line)) {
    return "a tab at the beginning of the line; indent with spaces";
  }
  for (const auto& [of_library, ours] : kSaidByYaml) {
    if (said == of_library) return std::string(ours);
  }
  return said;
}

// The library takes the byte 4 for the end of the file, and other bytes for what they are not.
bool check_bytes(const std::string& source, std::string_view text, ConfigFindings& findings) {
  if (text.size() > kDocumentBytesMax) {
    findings.misread({source}, "",
                     base::format("has {} bytes, at most {}", text.size(), kDocumentBytesMax));
    return false;
  }
  int line = 1;
  std::size_t line_start = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte == '\n') {
      ++line;
      line_start = at + 1;
    } else if ((byte < 0x20 && byte != '\t' && byte != '\r') || byte == 0x7f) {
      const Place place{source, line, static_cast<int>(at - line_start) + 1};
      findings.misread(place, "", "a control character; write it in double quotes as \"\\x..\"");
      return false;
    }
  }
  if (base::is_utf8(text)) return true;
  findings.misread({source}, "", "is not UTF-8");
  return false;
}

}  // namespace

Node read_document(const std::string& source, std::string_view text, ConfigFindings& findings) {
  if (!check_bytes(source, text, findings)) return {};
  std::istringstream in{std::string(text)};
  Builder builder(source);
  try {
    YAML::Parser parser(in);
    if (!parser.HandleNextDocument(builder)) return {};
    Builder second(source);
    if (parser.HandleNextDocument(second)) {
      findings.misread(second.root.place, "",
                       "a second document (after ---); one file is one document");
      return {};
    }
  } catch (const YAML::Exception& error) {
    Place place{source, error.mark.line + 1, error.mark.column + 1};
    if (error.mark.is_null()) place = {source};
    findings.misread(place, "", words_for(error, text));
    return {};
  }
  return std::move(builder.root);
}

}  // namespace hapax::config
