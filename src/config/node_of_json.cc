#include "config/node_of_json.h"

#include "base/format.h"

namespace hapax::config {

namespace {

Node text_node(std::string text, bool quoted) {
  Node node;
  node.kind = Node::Kind::kText;
  node.text = std::move(text);
  node.quoted = quoted;
  return node;
}

struct NodeMaker {
  Node operator()(std::monostate) const { return {}; }
  Node operator()(bool value) const { return text_node(value ? "true" : "false", false); }
  Node operator()(const std::string& value) const { return text_node(value, true); }
  template <class Number>
  Node operator()(const Number& value) const {
    return text_node(base::format("{}", value), false);
  }
  Node operator()(const wire::JsonValue::Array& array) const {
    Node node;
    node.kind = Node::Kind::kList;
    for (const wire::JsonValue& item : array) node.items.push_back(node_of_json(item));
    return node;
  }
  Node operator()(const wire::JsonValue::Object& object) const {
    Node node;
    node.kind = Node::Kind::kMap;
    for (const wire::JsonMember& member : object) {
      node.entries.push_back({member.name, {}, node_of_json(member.value)});
    }
    return node;
  }
};

}  // namespace

Node node_of_json(const wire::JsonValue& json) { return std::visit(NodeMaker{}, json.is); }

}  // namespace hapax::config
