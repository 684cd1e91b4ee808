// Bodies of requests from a client: a JSON value that stands as content is kept as it was sent, and
// as the same bytes alone, in a list and by itself.
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "wire/request.h"

namespace {

using hapax::Result;
using hapax::wire::SharedRequest;

constexpr hapax::wire::TextField kStream[] = {{"stream", "s"}};

std::optional<std::string> payload(const Result<SharedRequest>& request, std::size_t index) {
  if (!request) return std::nullopt;
  return std::string(std::get<hapax::Append>((*request)->ops.at(index)).payload);
}

std::optional<std::string> payload_in(const std::string& body) {
  return payload(hapax::wire::read_op("append", body, kStream), 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  static_cast<void>(hapax::wire::read_commit(bytes));
  static_cast<void>(hapax::wire::read_ops("append", "records", bytes, kStream));
  static_cast<void>(hapax::wire::read_op_lines("append", bytes, kStream));

  const std::size_t begin = bytes.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos || bytes[begin] == '"' || bytes[begin] == 'n') return 0;
  const std::string body = "{\"payload\":" + std::string(bytes) + "}";
  const auto alone = payload_in(body);
  if (!alone) return 0;
  if (!bytes.substr(begin).starts_with(*alone)) std::abort();
  if (payload_in("{\"payload\":" + *alone + "}") != alone) std::abort();
  const std::string list = "[" + body + " , " + body + "]";
  const auto listed = hapax::wire::read_ops("append", "records", list, kStream);
  if (payload(listed, 0) != alone || payload(listed, 1) != alone) std::abort();
  return 0;
}
