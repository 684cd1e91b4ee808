#include "config/document.h"

#include <sstream>
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
    findings.misread(place, "", error.msg);
    return {};
  }
  return std::move(builder.root);
}

}  // namespace hapax::config
