#include "op_json.h"

#include <optional>
#include <type_traits>

#include "digest/base64.h"
#include "wire/json_text.h"
#include "wire/op_fields.h"
#include "wire/text_value.h"

namespace hapax::contract {

namespace {

// Listens to the list of fields and writes down what the operation has in them.
class OpWriter {
 public:
  template <class Value>
  void required(std::string_view name, Value&& value, std::string_view /*help*/) {
    put(name, value);
  }
  template <class Value>
  void optional(std::string_view name, Value&& value, std::string_view /*help*/) {
    using Type = std::remove_cvref_t<Value>;
    if constexpr (std::is_same_v<Type, std::string_view>) {
      if (value.empty()) return;
    } else if constexpr (std::is_same_v<Type, wire::Bytes>) {
      if (value.view.empty()) return;
    }
    put(name, value);
  }
  void refuse(std::string_view, const std::string&) {}

  template <class Value>
  void put(std::string_view name, const Value& value) {
    if constexpr (std::is_enum_v<Value>) {
      out.add(name, wire::word(value));
    } else {
      out.add(name, value);
    }
  }
  template <class Tag>
  void put(std::string_view name, Number<Tag> number) {
    out.add(name, number.value);
  }
  void put(std::string_view name, Duration span) { out.add(name, span.count()); }
  void put(std::string_view name, Time time) { out.add(name, to_ms(time)); }
  void put(std::string_view name, Window window) {
    window.is_forever() ? out.add(name, wire::kForever) : out.add(name, window.raw());
  }
  void put(std::string_view name, wire::Bytes bytes) {
    out.add(std::string(name) + "_base64", digest::encode_base64(bytes.view));
  }
  void put(std::string_view name, wire::ReceiptText text) {
    out.add(name, wire::receipt_text(text.receipt.sequence, text.receipt.token));
  }
  void put(std::string_view name, std::span<const Header> headers) {
    if (headers.empty()) return;
    wire::JsonArray pairs;
    for (const Header& header : headers) {
      pairs.add("[" + wire::json_text(header.name) + "," + wire::json_text(header.value) + "]");
    }
    out.raw(name, pairs.text());
  }
  template <class Value>
  void put(std::string_view name, const std::optional<Value>& value) {
    if (value) put(name, *value);
  }

  wire::JsonObject out;
};

// What a list of fields keeps in variables of its own until it is read.
void put_parts(OpWriter& writer, const Append& op) {
  if (op.producer) {
    writer.put("producer", op.producer->name);
    writer.put("producer_epoch", op.producer->epoch);
    writer.put("producer_sequence", op.producer->sequence);
  }
  if (!op.expect) return;
  const bool of_stream = op.expect->of == ExpectLast::Of::kStream;
  writer.put(of_stream ? "expect_last" : "expect_last_of_group", op.expect->last);
}
void put_parts(OpWriter& writer, const Set& op) {
  if (!op.at) return;
  writer.put("at_ms", op.at->wall_ms);
  writer.put("at_counter", op.at->counter);
  writer.put("at_node", op.at->node);
}
template <class Other>
void put_parts(OpWriter&, const Other&) {}

template <class AnyOp>
std::string_view name_of_op() {
  std::string_view found;
  const auto look = [&]<class Listed>(const wire::Named<Listed>& named) {
    if constexpr (std::is_same_v<Listed, AnyOp>) found = named.name;
  };
  std::apply([&](const auto&... named) { (look(named), ...); }, wire::kOps);
  return found;
}

std::string json_of(const Op& op) {
  return std::visit(
      []<class AnyOp>(AnyOp one) {
        OpWriter writer;
        writer.put("op", name_of_op<AnyOp>());
        wire::fields(writer, one);
        put_parts(writer, one);
        return writer.out.text();
      },
      op);
}

}  // namespace

std::string json_of(const Commit& commit) {
  OpWriter writer;
  writer.put("mode", commit.mode);
  if (!commit.id.empty()) writer.put("id", commit.id);
  writer.put("id_window_s", commit.id_window);
  if (commit.transaction) {
    writer.put("transaction", commit.transaction->name);
    writer.put("epoch", commit.transaction->epoch);
  }
  wire::JsonArray ops;
  for (const Op& op : commit.ops) ops.add(json_of(op));
  writer.out.raw("ops", ops.text());
  return writer.out.text();
}

}  // namespace hapax::contract
