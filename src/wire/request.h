// Request bodies that carry operations, read from JSON.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hapax/ops.h>
#include <hapax/result.h>

namespace hapax::wire {

// A field that stands in the path or the query: as text, whatever its type.
struct TextField {
  std::string_view name;
  std::string_view value;
};

// Operations and everything they refer to; alive until the commit is answered.
class Request {
 public:
  Request();
  ~Request();
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  std::vector<Op> ops;
  std::deque<std::vector<Header>> headers;  // lists that operations refer to
  Mode mode = Mode::kAtomic;
  std::string_view id;
  Window id_window = limits::kWindowDefault;
  std::optional<TransactionRef> transaction;

  [[nodiscard]] Commit commit() const { return {ops, mode, id, id_window, transaction}; }

  // Where the bytes live that the views above refer to.
  [[nodiscard]] std::string_view keep(std::string_view bytes);
  class Memory;
  [[nodiscard]] Memory& memory() { return *memory_; }

 private:
  std::unique_ptr<Memory> memory_;
};
using SharedRequest = std::shared_ptr<Request>;

// One operation: the body is a JSON object, or empty if the text fields say everything.
// Errors are kInvalidArgument and name the place: "ops/3/payload: …".
[[nodiscard]] Result<SharedRequest> read_op(std::string_view op, std::string_view body,
                                            std::span<const TextField> given);

// {"mode": "atomic", "id": …, "transaction": …, "epoch": …, "ops": [{"op": "append", …}, …]}
[[nodiscard]] Result<SharedRequest> read_commit(std::string_view body);

// Several operations of one kind: a JSON array of objects, or {"<list>": […]}, or one object.
[[nodiscard]] Result<SharedRequest> read_ops(std::string_view op, std::string_view list,
                                             std::string_view body,
                                             std::span<const TextField> given);
// The same, one JSON object per line.
[[nodiscard]] Result<SharedRequest> read_op_lines(std::string_view op, std::string_view body,
                                                  std::span<const TextField> given);

}  // namespace hapax::wire
