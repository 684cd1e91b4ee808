// HTTP requests and responses as values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hapax::http {

[[nodiscard]] bool same_name(std::string_view a, std::string_view b);  // without regard to case

class Fields {
 public:
  void add(std::string_view name, std::string_view value) { list_.emplace_back(name, value); }
  void set(std::string_view name, std::string_view value);  // instead of all of that name
  // The first of that name; empty if there is none.
  [[nodiscard]] std::string_view get(std::string_view name) const;
  [[nodiscard]] bool has(std::string_view name) const;
  [[nodiscard]] std::size_t count(std::string_view name) const;
  [[nodiscard]] const std::vector<std::pair<std::string, std::string>>& list() const {
    return list_;
  }

 private:
  std::vector<std::pair<std::string, std::string>> list_;
};

struct Request {
  std::string method;
  std::string target;  // as sent
  unsigned version = 11;
  bool keep_alive = true;
  Fields fields;
  std::string body;

  std::string authority;  // that it is addressed to: of an absolute target, or the Host field

  // Of the target: percent-decoded.
  std::vector<std::string> path;  // segments
  std::vector<std::pair<std::string, std::string>> query;

  [[nodiscard]] std::optional<std::string_view> query_value(std::string_view name) const;
};

struct Response {
  unsigned status = 200;
  Fields fields;
  std::string body;
};

[[nodiscard]] std::string_view reason_of(unsigned status);
// The media type of the body, without its parameters.
[[nodiscard]] std::string_view media_type(const Request& request);
// Whether the Accept field names exactly this media type.
[[nodiscard]] bool accepts(const Request& request, std::string_view type);

enum class Framing : std::uint8_t { kWhole, kChunked, kUntilClose };
// Status line, header fields and, if whole, the body. `head_only`: the answer to HEAD.
[[nodiscard]] std::string text_of(const Response& response, Framing framing, bool keep_alive,
                                  bool head_only);
[[nodiscard]] std::string chunk_of(std::string_view bytes);  // an empty one ends the body

// Fills authority, path and query; false if the target is not one we serve.
[[nodiscard]] bool split_target(Request& request);
// Nothing for a broken escape.
[[nodiscard]] std::optional<std::string> percent_decode(std::string_view text, bool plus_is_space);

}  // namespace hapax::http
