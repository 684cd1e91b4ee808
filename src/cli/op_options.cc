#include "cli/op_options.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include <CLI/CLI.hpp>

#include "base/assert.h"
#include "base/format.h"
#include "base/utf8.h"
#include "cli/show.h"
#include "cli/span.h"
#include "digest/base64.h"
#include "wire/json_text.h"
#include "wire/op_fields.h"

namespace hapax::cli {

namespace {

template <class Value>
struct KindOf {
  static constexpr FieldKind kKind = std::is_same_v<Value, bool> ? FieldKind::kFlag
                                     : std::is_enum_v<Value>     ? FieldKind::kWord
                                     : std::is_integral_v<Value> ? FieldKind::kNumber
                                                                 : FieldKind::kText;
  using Type = Value;
};
template <class Value>
struct KindOf<std::optional<Value>> : KindOf<Value> {};
template <class Tag>
struct KindOf<Number<Tag>> : KindOf<std::uint64_t> {};
template <>
struct KindOf<Time> : KindOf<std::int64_t> {};
template <>
struct KindOf<Duration> {
  static constexpr FieldKind kKind = FieldKind::kSpan;
  using Type = Duration;
};
template <>
struct KindOf<Window> {
  static constexpr FieldKind kKind = FieldKind::kWindow;
  using Type = Window;
};
template <>
struct KindOf<wire::Bytes> {
  static constexpr FieldKind kKind = FieldKind::kBytes;
  using Type = wire::Bytes;
};
template <>
struct KindOf<std::span<const Header>> {
  static constexpr FieldKind kKind = FieldKind::kHeaders;
  using Type = std::span<const Header>;
};

// Listens to the list of fields.
class FieldList {
 public:
  template <class Value>
  void required(std::string_view name, Value&& /*value*/, std::string_view help) {
    add<std::remove_cvref_t<Value>>(name, help, true);
  }
  template <class Value>
  void optional(std::string_view name, Value&& /*value*/, std::string_view help) {
    add<std::remove_cvref_t<Value>>(name, help, false);
  }
  void refuse(std::string_view, const std::string&) {}

  std::vector<OpField> fields;

 private:
  template <class Value>
  void add(std::string_view name, std::string_view help, bool required) {
    OpField field{std::string(name), std::string(help), required, KindOf<Value>::kKind};
    using Type = typename KindOf<Value>::Type;
    if constexpr (std::is_enum_v<Type>) {
      for (const auto& one : wire::words_of(Type{})) field.words.emplace_back(one.word);
    }
    fields.push_back(std::move(field));
  }
};

Error bad_value(const OpField& field, const std::string& value, std::string_view expected) {
  return Error{Errc::kInvalidArgument,
               base::format("{} '{}' is not {}", field.required ? field.name : field.option(),
                            value, expected)};
}

bool is_whole(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

Result<std::string> headers_json(const OpField& field, const std::vector<std::string>& given) {
  wire::JsonArray all;
  for (const std::string& one : given) {
    const std::size_t sign = one.find('=');
    if (sign == std::string::npos || sign == 0) return bad_value(field, one, "NAME=VALUE");
    all.add("[" + wire::json_text(one.substr(0, sign)) + "," +
            wire::json_text(one.substr(sign + 1)) + "]");
  }
  return all.text();
}

Result<std::string> span_json(const OpField& field, const std::string& value) {
  const bool window = field.kind == FieldKind::kWindow;
  if (window && value == "forever") return wire::json_text(value);
  const auto span = span_of(value);
  if (!span) return bad_value(field, value, "a span of time such as 30s, 5m or 24h");
  if (!window) return std::to_string(span->count());
  if (span->count() % 1000 != 0) return bad_value(field, value, "whole seconds");
  return std::to_string(span->count() / 1000);
}

}  // namespace

std::string OpField::option() const {
  std::string text = name;
  if (kind == FieldKind::kSpan && text.ends_with("_ms")) text.resize(text.size() - 3);
  if (kind == FieldKind::kWindow && text.ends_with("_s")) text.resize(text.size() - 2);
  if (kind == FieldKind::kHeaders && text.ends_with("s")) text.pop_back();
  std::replace(text.begin(), text.end(), '_', '-');
  return "--" + text;
}

std::vector<OpField> op_fields(std::string_view op) {
  FieldList list;
  const bool known = wire::with_op(op, [&]<class AnyOp>(const wire::Named<AnyOp>&) {
    AnyOp sample{};
    wire::fields(list, sample);
  });
  HAPAX_ASSERT(known, "a command names an operation that does not exist");
  return std::move(list.fields);
}

std::string Member::text() const {
  const auto value = wire::read_strict_json(json);
  const auto* text = value ? value->get<std::string>() : nullptr;
  return text == nullptr ? json : *text;
}

Result<Member> member_of(const OpField& field, const std::vector<std::string>& given) {
  const std::string& first = given.front();
  switch (field.kind) {
    case FieldKind::kNumber:
      if (!is_whole(first)) return bad_value(field, first, "a whole number");
      return Member{field.name, first};
    case FieldKind::kSpan:
    case FieldKind::kWindow: {
      HAPAX_TRY(std::string json, span_json(field, first));
      return Member{field.name, std::move(json)};
    }
    case FieldKind::kHeaders: {
      HAPAX_TRY(std::string json, headers_json(field, given));
      return Member{field.name, std::move(json)};
    }
    case FieldKind::kFlag:
      return Member{field.name, first};
    case FieldKind::kBytes:
      if (!base::is_utf8(first)) {
        return Member{field.name + "_base64", wire::json_text(digest::encode_base64(first))};
      }
      break;
    case FieldKind::kText:
    case FieldKind::kWord:
      break;
  }
  if (!base::is_utf8(first)) return bad_value(field, printable(first), "UTF-8");
  return Member{field.name, wire::json_text(first)};
}

void OpOptions::declare(CLI::App& command, std::string_view op,
                        const std::set<std::string>& without) {
  for (OpField& field : op_fields(op)) {
    if (without.contains(field.name)) continue;
    Given& given = all_.emplace_back(Given{std::move(field)});
    const OpField& kept = given.field;
    if (kept.kind == FieldKind::kFlag) {
      command.add_flag_function(
          kept.option() + ",!--no-" + kept.option().substr(2),
          [&given](std::int64_t count) {
            given.flag = count > 0;
            given.flagged = true;
          },
          kept.help);
      continue;
    }
    const std::string name = kept.required ? kept.name : kept.option();
    CLI::Option* option =
        kept.kind == FieldKind::kHeaders
            ? command.add_option(name, given.values, kept.help)->allow_extra_args(false)
            : command.add_option(name, given.value, kept.help);
    if (kept.required) option->required();
    if (!kept.words.empty()) option->check(CLI::IsMember(kept.words));
    if (kept.kind == FieldKind::kBytes && !kept.required) {
      command.add_option(kept.option() + "-file", given.file, "The same from a file; - for stdin")
          ->excludes(option);
    }
  }
}

Result<std::vector<Member>> OpOptions::members() const {
  std::vector<Member> out;
  for (const Given& given : all_) {
    std::vector<std::string> values = given.values;
    if (given.value) values = {*given.value};
    if (given.flagged) values = {given.flag ? "true" : "false"};
    if (!given.file.empty()) {
      HAPAX_TRY(std::string content, read_all(given.file));
      values = {std::move(content)};
    }
    const bool person = given.field.name == "owner" || given.field.name == "actor";
    if (values.empty() && person) values = {who()};
    if (values.empty()) continue;
    HAPAX_TRY(Member member, member_of(given.field, values));
    out.push_back(std::move(member));
  }
  return out;
}

client::ApiCall call_of(const std::string& method, std::string path,
                        const std::vector<Member>& members) {
  wire::JsonObject body;
  std::string query;
  for (const Member& member : members) {
    const std::string place = "{" + member.name + "}";
    if (const std::size_t at = path.find(place); at != std::string::npos) {
      path.replace(at, place.size(), client::encoded(member.text()));
    } else if (method == "DELETE") {
      query += (query.empty() ? "?" : "&") + member.name + "=" + client::encoded(member.text());
    } else {
      body.raw(member.name, member.json);
    }
  }
  client::ApiCall call{.method = method, .path = "/api/v1" + path + query};
  if (method != "DELETE") call.body = body.text();
  call.key = fresh_key();
  return call;
}

void declare_op(CLI::App& parent, const OpSubcommand& command, int& exit_code) {
  struct State {
    Target target;
    OpOptions options;
  };
  const auto state = std::make_shared<State>();
  CLI::App* sub = parent.add_subcommand(std::string(command.name), std::string(command.help));
  state->options.declare(*sub, command.op);
  add_target(*sub, state->target);
  state->target.make_folder = command.op == "create_stream";
  sub->footer("Example: " + std::string(command.example));
  sub->callback([state, command, &exit_code] {
    const auto members = state->options.members();
    if (!members) {
      exit_code = report(members.error());
      return;
    }
    const client::ApiCall call =
        call_of(std::string(command.method), std::string(command.path), *members);
    exit_code = on_way(state->target, [&](Way& way) {
      const auto told = way.ask_good(call);
      if (!told) return way.exit_code();
      base::print("{}\n", way.json() ? told->reply.body : verdict_line(told->json));
      return kExitOk;
    });
  });
}

}  // namespace hapax::cli
