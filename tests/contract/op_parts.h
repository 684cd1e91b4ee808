// Operations written down from the lists of fields that servers read them with: what the writers of
// the front doors share. A writer has required, optional and refuse as any listener to such a list,
// and put(name, value).
#pragma once

#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>

#include <hapax/ops.h>

#include "wire/op_fields.h"

namespace hapax::contract {

// Nothing is said of what is empty.
template <class Value>
bool left_out(const Value& value) {
  if constexpr (std::is_same_v<Value, std::string_view>) return value.empty();
  if constexpr (std::is_same_v<Value, wire::OptionalKeyBytes>) {
    return !value.view;
  } else if constexpr (wire::kMayBeBase64<Value>) {
    return value.view.empty();
  }
  return false;
}

// What a list of fields keeps in variables of its own until it is read.
template <class Writer>
void put_parts(Writer& writer, const Append& op) {
  if (op.producer) {
    writer.put("producer", op.producer->name);
    writer.put("producer_epoch", op.producer->epoch);
    writer.put("producer_sequence", op.producer->sequence);
  }
  if (!op.expect) return;
  const bool of_stream = op.expect->of == ExpectLast::Of::kStream;
  writer.put(of_stream ? "expect_last" : "expect_last_of_group", op.expect->last);
}
template <class Writer>
void put_expiry(Writer& writer, const Expiry& expiry) {
  if (expiry.kind == Expiry::Kind::kKeep) writer.put("keep_expiry", true);
  if (expiry.kind == Expiry::Kind::kAt) writer.put("expires_at_ms", expiry.at);
  if (expiry.kind == Expiry::Kind::kAfter) writer.put("expires_in_ms", expiry.after);
}
template <class Writer>
void put_parts(Writer& writer, const Expire& op) {
  put_expiry(writer, op.expiry);
}
template <class Writer>
void put_parts(Writer& writer, const Set& op) {
  put_expiry(writer, op.expiry);
  if (!op.at) return;
  writer.put("at_ms", op.at->wall_ms);
  writer.put("at_counter", op.at->counter);
  writer.put("at_node", op.at->node);
}
template <class Writer, class Other>
void put_parts(Writer&, const Other&) {}

template <class AnyOp>
std::string_view name_of_op() {
  std::string_view found;
  const auto look = [&]<class Listed>(const wire::Named<Listed>& named) {
    if constexpr (std::is_same_v<Listed, AnyOp>) found = named.name;
  };
  std::apply([&](const auto&... named) { (look(named), ...); }, wire::kOps);
  return found;
}

template <class Writer, class AnyOp>
void write_op(Writer& writer, AnyOp op) {
  wire::fields(writer, op);
  put_parts(writer, op);
}

template <class Writer>
void write_options(Writer& writer, const Commit& commit) {
  writer.put("mode", commit.mode);
  if (commit.id) {
    std::string_view id = *commit.id;
    writer.put("id", wire::KeyBytes{id});
  }
  writer.put("id_window_s", commit.id_window);
  if (!commit.transaction) return;
  writer.put("transaction", commit.transaction->name);
  writer.put("epoch", commit.transaction->epoch);
}

}  // namespace hapax::contract
