#include "op_command.h"

#include <span>

#include "base/words.h"
#include "op_parts.h"
#include "wire/text_value.h"

namespace hapax::contract {

namespace {

// Listens to the list of fields; required ones stand without their names.
class WordWriter {
 public:
  template <class Value>
  void required(std::string_view /*name*/, Value&& value, std::string_view /*help*/) {
    words.push_back(text(value));
  }
  template <class Value>
  void optional(std::string_view name, Value&& value, std::string_view /*help*/) {
    if (!left_out(value)) put(name, value);
  }
  void refuse(std::string_view, const std::string&) {}

  template <class Value>
  void put(std::string_view name, const Value& value) {
    words.emplace_back(base::upper(name));
    words.push_back(text(value));
  }
  template <class Value>
  void put(std::string_view name, const std::optional<Value>& value) {
    if (value) put(name, *value);
  }
  void put(std::string_view name, std::span<const Header> headers) {
    if (headers.empty()) return;
    put(name, headers.size());
    for (const Header& header : headers) {
      words.emplace_back(header.name);
      words.emplace_back(header.value);
    }
  }

  Words words;

 private:
  template <class Value>
  static std::string text(const Value& value) {
    if constexpr (std::is_enum_v<Value>) {
      return std::string(wire::word(value));
    } else if constexpr (std::is_same_v<Value, bool>) {
      return value ? "true" : "false";
    } else {
      return std::to_string(value);
    }
  }
  template <class Tag>
  static std::string text(Number<Tag> number) {
    return std::to_string(number.value);
  }
  static std::string text(std::string_view bytes) { return std::string(bytes); }
  static std::string text(wire::Bytes bytes) { return std::string(bytes.view); }
  static std::string text(wire::KeyBytes bytes) { return std::string(bytes.view); }
  static std::string text(wire::OptionalKeyBytes bytes) { return std::string(*bytes.view); }
  static std::string text(Duration span) { return std::to_string(span.count()); }
  static std::string text(Time time) { return std::to_string(to_ms(time)); }
  static std::string text(Window window) {
    return window.is_forever() ? std::string(wire::kForever) : std::to_string(window.raw());
  }
  static std::string text(wire::ReceiptText one) {
    return wire::receipt_text(one.receipt.sequence, one.receipt.token);
  }
};

}  // namespace

Words command_of(const Op& op) {
  return std::visit(
      []<class AnyOp>(const AnyOp& one) {
        WordWriter writer;
        writer.words.push_back("HX." + base::upper(name_of_op<AnyOp>()));
        write_op(writer, one);
        return writer.words;
      },
      op);
}

Words commit_command(const Commit& commit) {
  WordWriter writer;
  writer.words.emplace_back("HX.COMMIT");
  write_options(writer, commit);
  return writer.words;
}

}  // namespace hapax::contract
