#include "op_json.h"

#include <optional>
#include <type_traits>

#include "base/utf8.h"
#include "digest/base64.h"
#include "op_parts.h"
#include "wire/json_text.h"
#include "wire/op_fields.h"
#include "wire/text_value.h"

namespace hapax::contract {

namespace {

// Listens to the list of fields and writes down what the operation has in them.
class OpWriter {
 public:
  OpWriter() = default;
  // Fields that the path names stand in it.
  explicit OpWriter(std::string_view pattern) : path(pattern) {}

  template <class Value>
  void required(std::string_view name, Value&& value, std::string_view /*help*/) {
    put(name, value);
  }
  template <class Value>
  void optional(std::string_view name, Value&& value, std::string_view /*help*/) {
    if (!left_out(value)) put(name, value);
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
  void put(std::string_view name, std::string_view text) {
    if (!put_in_path(name, text)) out.add(name, text);
  }
  void put(std::string_view name, wire::Bytes bytes) { put_base64(name, bytes.view); }
  void put(std::string_view name, wire::KeyBytes bytes) {
    if (put_in_path(name, bytes.view)) return;
    base::is_utf8(bytes.view) ? out.add(name, bytes.view) : put_base64(name, bytes.view);
  }
  void put(std::string_view name, wire::OptionalKeyBytes bytes) {
    put(name, wire::KeyBytes{*bytes.view});
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
  std::string path;
  bool nameless = false;  // a name cannot stand in a path

 private:
  wire::JsonObject& put_base64(std::string_view name, std::string_view bytes) {
    return out.add(std::string(name) + "_base64", digest::encode_base64(bytes));
  }
  bool put_in_path(std::string_view name, std::string_view value) {
    const std::string place = "{" + std::string(name) + "}";
    const std::size_t at = path.find(place);
    if (at == std::string::npos) return false;
    nameless = nameless || value.empty() || value.find('\0') != std::string_view::npos;
    path.replace(at, place.size(), escaped(value));
    return true;
  }
};

std::string json_of(const Op& op) {
  return std::visit(
      []<class AnyOp>(AnyOp one) {
        OpWriter writer;
        writer.put("op", name_of_op<AnyOp>());
        write_op(writer, one);
        return writer.out.text();
      },
      op);
}

struct OwnRoute {
  std::string_view op;
  std::string_view method;
  std::string_view path;
};
constexpr OwnRoute kOwnRoutes[] = {
    {"create_stream", "PUT", "/streams/{stream}"},
    {"configure_stream", "PATCH", "/streams/{stream}"},
    {"delete_stream", "DELETE", "/streams/{stream}"},
    {"trim", "POST", "/streams/{stream}/trim"},
    {"append", "POST", "/streams/{stream}/records"},
    {"open_producer", "POST", "/streams/{stream}/producers/{producer}"},
    {"retire_producer", "DELETE", "/streams/{stream}/producers/{producer}"},
    {"create_consumer", "PUT", "/streams/{stream}/consumers/{consumer}"},
    {"delete_consumer", "DELETE", "/streams/{stream}/consumers/{consumer}"},
    {"ack", "POST", "/streams/{stream}/consumers/{consumer}/ack"},
    {"nack", "POST", "/streams/{stream}/consumers/{consumer}/nack"},
    {"extend", "POST", "/streams/{stream}/consumers/{consumer}/extend"},
    {"seek", "POST", "/streams/{stream}/consumers/{consumer}/seek"},
    {"redrive", "POST", "/streams/{dead_letters}/redrive"},
    {"claim", "POST", "/claims/{scope}/{key}"},
    {"renew", "POST", "/claims/{scope}/{key}/renew"},
    {"settle", "POST", "/claims/{scope}/{key}/settle"},
    {"resolve", "POST", "/claims/{scope}/{key}/resolve"},
    {"forget", "DELETE", "/claims/{scope}/{key}"},
    {"set", "PUT", "/registers/{name}"},
    {"unset", "DELETE", "/registers/{name}"},
    {"expire", "POST", "/registers/{name}/expire"},
    {"add", "POST", "/registers/{name}/add"},
    {"advance", "PUT", "/positions/{source}"},
    {"begin", "POST", "/transactions/{transaction}"},
    {"end", "POST", "/transactions/{transaction}/end"},
};

template <class AnyOp>
std::optional<OpCall> call_of_one(AnyOp op) {
  for (const OwnRoute& route : kOwnRoutes) {
    if (route.op != name_of_op<AnyOp>()) continue;
    OpWriter writer(route.path);
    write_op(writer, op);
    if (writer.nameless) return std::nullopt;
    return OpCall{std::string(route.method), writer.path, writer.out.text()};
  }
  return std::nullopt;
}

}  // namespace

std::string escaped(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out.push_back('%');
    out.push_back(kDigits[byte / 16]);
    out.push_back(kDigits[byte % 16]);
  }
  return out;
}

std::optional<OpCall> call_of(const Op& op) {
  return std::visit([](const auto& one) { return call_of_one(one); }, op);
}

std::string json_of(const Commit& commit) {
  OpWriter writer;
  write_options(writer, commit);
  wire::JsonArray ops;
  for (const Op& op : commit.ops) ops.add(json_of(op));
  writer.out.raw("ops", ops.text());
  return writer.out.text();
}

}  // namespace hapax::contract
