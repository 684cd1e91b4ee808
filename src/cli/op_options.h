// The fields of an operation as arguments and options of a command, made from the one description
// that also reads JSON and RESP (wire/op_fields.h): what a server understands can be typed here.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <hapax/result.h>

#include "cli/way.h"

namespace hapax::cli {

enum class FieldKind : std::uint8_t {
  kText,
  kBytes,
  kNumber,
  kFlag,
  kWord,     // one of `words`
  kSpan,     // milliseconds on the wire
  kWindow,   // seconds on the wire, or "forever"
  kHeaders,  // NAME=VALUE, repeated
};

struct OpField {
  std::string name;  // as on the wire
  std::string help;
  bool required = false;
  FieldKind kind = FieldKind::kText;
  std::vector<std::string> words{};

  // "lease_ms" is --lease, because a span is written with its unit.
  [[nodiscard]] std::string option() const;
};

[[nodiscard]] std::vector<OpField> op_fields(std::string_view op);

// A value as it goes into a body.
struct Member {
  std::string name;
  std::string json;

  [[nodiscard]] std::string text() const;  // for paths and queries
};

// The value of a field, checked.
[[nodiscard]] Result<Member> member_of(const OpField& field, const std::vector<std::string>& given);

// Stays where it is: the command's options refer to it.
class OpOptions {
 public:
  OpOptions() = default;
  OpOptions(const OpOptions&) = delete;
  OpOptions& operator=(const OpOptions&) = delete;

  void declare(CLI::App& command, std::string_view op, const std::set<std::string>& without = {});
  // Of the fields that were given, in their order.
  [[nodiscard]] Result<std::vector<Member>> members() const;

 private:
  struct Given {
    OpField field;
    std::optional<std::string> value{};
    std::vector<std::string> values{};  // of headers
    std::string file{};                 // of a field of bytes
    bool flag = false;
    bool flagged = false;
  };
  std::deque<Given> all_;
};

// Fills {names} of a path, and puts the rest into the body, or the query of a DELETE.
[[nodiscard]] client::ApiCall call_of(const std::string& method, std::string path,
                                      const std::vector<Member>& members);

// A command that is one operation and prints its verdict.
struct OpSubcommand {
  std::string_view name;
  std::string_view op;
  std::string_view method;
  std::string_view path;
  std::string_view help;
  std::string_view example;
};
void declare_op(CLI::App& parent, const OpSubcommand& command, int& exit_code);

}  // namespace hapax::cli
