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

#include "wire/usual.h"

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
  bool alone = false;  // where lists may stand: the body was one operation and no list
  std::optional<std::string_view> id;
  std::optional<Window> id_window;  // none: nobody said
  std::optional<TransactionRef> transaction;
  // Of the server's own, at the end, and what they note; no body can say it.
  std::size_t notes = 0;
  std::vector<std::size_t> noted;

  [[nodiscard]] Commit commit() const {
    return {.ops = ops,
            .mode = mode,
            .id = id,
            .id_window = id_window.value_or(limits::kWindowDefault),
            .transaction = transaction,
            .notes = notes,
            .noted = noted};
  }

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
                                            std::span<const TextField> given,
                                            const Usual& usual = {});

// {"mode": "atomic", "id": …, "transaction": …, "epoch": …, "ops": [{"op": "append", …}, …]}
[[nodiscard]] Result<SharedRequest> read_commit(std::string_view body, const Usual& usual = {});

// Several operations of one kind: a JSON array of objects, or {"<list>": […]}, each on its own; or
// one object, which is all there is: if it is refused, so is the commit.
[[nodiscard]] Result<SharedRequest> read_ops(std::string_view op, std::string_view list,
                                             std::string_view body,
                                             std::span<const TextField> given,
                                             const Usual& usual = {});
// The same, one JSON object per line.
[[nodiscard]] Result<SharedRequest> read_op_lines(std::string_view op, std::string_view body,
                                                  std::span<const TextField> given,
                                                  const Usual& usual = {});

// The fields of an operation; none if there is no such operation.
[[nodiscard]] std::vector<std::string_view> field_names(std::string_view op);

}  // namespace hapax::wire
