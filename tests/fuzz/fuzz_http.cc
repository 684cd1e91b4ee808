// Requests from anywhere: the same requests, or the same refusal, however the bytes arrive; and no
// request has a form that a proxy could have read differently.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "http/parser.h"

namespace {

using hapax::http::Parser;
using hapax::http::ParserLimits;
using hapax::http::Progress;

constexpr ParserLimits kLimits{
    .header_bytes_max = 4'096, .fields_max = 20, .body_bytes_max = 4'096};

void check(const hapax::http::Request& request) {
  const bool length = request.fields.has("Content-Length");
  if (length && request.fields.has("Transfer-Encoding")) std::abort();
  if (request.fields.count("Content-Length") > 1) std::abort();
  if (request.version == 11 && request.fields.count("Host") != 1) std::abort();
  if (request.body.size() > kLimits.body_bytes_max) std::abort();
  if (length && std::to_string(request.body.size()) != request.fields.get("Content-Length")) {
    std::abort();
  }
}

// What a connection that gets `step` bytes at a time would hand on.
std::string told(std::string_view bytes, std::size_t step) {
  std::string told;
  std::size_t begin = 0;
  auto parser = std::make_unique<Parser>(kLimits);
  for (std::size_t end = 0; end < bytes.size();) {
    end = std::min(bytes.size(), end + step);
    for (bool more = true; more;) {
      std::size_t used = 0;
      const Progress progress = parser->put(bytes.substr(begin, end - begin), used);
      if (used > end - begin) std::abort();
      begin += used;
      if (progress == Progress::kBroken) {
        return told + "broken " + std::to_string(parser->problem().status);
      }
      if (progress == Progress::kRequest) {
        const hapax::http::Request& request = parser->request();
        check(request);
        told += request.method + " " + request.target + " " + request.body + "\n";
        parser = std::make_unique<Parser>(kLimits);
      }
      more = progress != Progress::kMore;
    }
  }
  return told;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string whole = told(bytes, bytes.size() + 1);
  if (told(bytes, 1) != whole || told(bytes, 7) != whole) std::abort();
  return 0;
}
