#include "cli/show.h"

#include <algorithm>
#include <cstdlib>

#include <unistd.h>

#include "base/format.h"
#include "base/time_text.h"
#include "digest/base64.h"
#include "wire/json_text.h"

namespace hapax::cli {

namespace {

using wire::JsonValue;

// Milliseconds of a moment, not of a span: after 2001.
constexpr std::int64_t kMomentMin = 1'000'000'000'000;

bool is_coloured() {
  static const bool kYes = ::isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr;
  return kYes;
}

std::size_t width_of(std::string_view text) {
  std::size_t width = 0;
  bool escape = false;
  for (const char c : text) {
    if (c == '\x1b') escape = true;
    const bool continues = (static_cast<unsigned char>(c) & 0xc0U) == 0x80U;
    if (!escape && !continues) ++width;
    if (escape && c == 'm') escape = false;
  }
  return width;
}

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || c == '.' || c == '-';
  });
}

Tint tint_of(std::string_view verdict) {
  if (verdict == "duplicate" || verdict == "unchanged") return Tint::kWarning;
  return is_holding(verdict) ? Tint::kGood : Tint::kBad;
}

std::string plain_text(const JsonValue& value) {
  if (const auto* text = value.get<std::string>()) return printable(*text);
  return json_of(value);
}

const JsonValue::Array kNone;

}  // namespace

bool is_holding(std::string_view verdict) {
  constexpr std::string_view kWords[] = {"fresh", "duplicate", "records",
                                         "done",  "unchanged", "staged"};
  return std::find(std::begin(kWords), std::end(kWords), verdict) != std::end(kWords);
}

std::string printable(std::string_view name) {
  std::string out;
  const auto is_control = [&](std::size_t at) {
    const auto byte = static_cast<unsigned char>(name[at]);
    const auto before = static_cast<unsigned char>(at == 0 ? '\0' : name[at - 1]);
    return byte < 0x20 || byte == 0x7f || (before == 0xc2 && byte >= 0x80 && byte < 0xa0);
  };
  for (std::size_t at = 0; at < name.size(); ++at) {
    const bool leads = at + 1 < name.size() && name[at] == '\xc2' && is_control(at + 1);
    if (is_control(at) || leads) {
      out += base::format("\\x{:02x}", static_cast<unsigned char>(name[at]));
    } else {
      out += name[at];
    }
  }
  return out;
}

bool is_postgres(std::string_view place) {
  return place.starts_with("postgres://") || place.starts_with("postgresql://");
}

std::string without_password(std::string uri) {
  const std::size_t scheme = uri.find("://");
  if (scheme == std::string::npos) return uri;
  constexpr std::string_view kParameter = "password=";
  // Each of them: there is sslpassword, too.
  for (std::size_t at = 0; (at = uri.find(kParameter, at)) != std::string::npos;) {
    at += kParameter.size();
    uri.replace(at, std::min(uri.find('&', at), uri.size()) - at, "…");
  }
  // All up to the last @, because a password may hold one that should have been escaped.
  const std::size_t host = uri.rfind('@');
  const std::size_t colon = uri.find(':', scheme + 3);
  if (host == std::string::npos || colon > host) return uri;
  return uri.erase(colon, host - colon);
}

std::string tinted(Tint tint, std::string_view text) {
  if (!is_coloured()) return std::string(text);
  constexpr std::string_view kCodes[] = {"32", "33", "31", "2"};
  return base::format("\x1b[{}m{}\x1b[0m", kCodes[static_cast<std::size_t>(tint)], text);
}

std::string instant_text(std::int64_t ms) { return base::rfc3339_ms(time_from_ms(ms)); }

std::string Table::text() const {
  const std::size_t columns = rows_.front().size();
  std::vector<std::size_t> widths(columns, 0);
  std::vector<bool> right(columns, rows_.size() > 1);
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    for (std::size_t i = 0; i < columns; ++i) {
      widths[i] = std::max(widths[i], width_of(rows_[row][i]));
      if (row > 0 && !is_number(rows_[row][i])) right[i] = false;
    }
  }
  std::string out;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < columns; ++i) {
      const std::string gap(widths[i] - width_of(row[i]), ' ');
      line += right[i] ? gap + row[i] : row[i] + gap;
      if (i + 1 < columns) line += "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string json_of(const JsonValue& value) {
  if (const auto* text = value.get<std::string>()) return wire::json_text(*text);
  if (const auto* yes = value.get<bool>()) return *yes ? "true" : "false";
  if (const auto* number = value.get<std::int64_t>()) return std::to_string(*number);
  if (const auto* large = value.get<std::uint64_t>()) return std::to_string(*large);
  if (const auto* real = value.get<double>()) return base::format("{}", *real);
  if (const auto* array = value.get<JsonValue::Array>()) {
    wire::JsonArray out;
    for (const JsonValue& one : *array) out.add(json_of(one));
    return out.text();
  }
  if (const auto* object = value.get<JsonValue::Object>()) {
    wire::JsonObject out;
    for (const auto& [name, member] : *object) out.raw(name, json_of(member));
    return out.text();
  }
  return "null";
}

Shown shown(std::string_view name, const JsonValue& value) {
  Shown out{std::string(name), plain_text(value)};
  const bool moment_name = name.ends_with("_ms");
  if (const auto* ms = value.get<std::int64_t>(); moment_name && ms && *ms >= kMomentMin) {
    out = {std::string(name.substr(0, name.size() - 3)), instant_text(*ms)};
  } else if (moment_name && value.get<std::monostate>() != nullptr) {
    out = {std::string(name.substr(0, name.size() - 3)), "never ends"};
  }
  std::replace(out.name.begin(), out.name.end(), '_', ' ');
  return out;
}

std::string verdict_line(const JsonValue& verdict) {
  const std::string word = text_in(verdict, "verdict");
  std::string line = tinted(tint_of(word), word);
  const auto* members = verdict.get<JsonValue::Object>();
  if (members == nullptr) return line;
  for (const auto& [name, value] : *members) {
    const bool problem = verdict.find("type") != nullptr;
    const bool told = name == "verdict" || name == "type" || name == "title" ||
                      (problem && (name == "detail" || name == "status"));
    if (told || value.get<JsonValue::Array>() != nullptr) continue;
    const Shown member = shown(name, value);
    line += "  " + member.name + " " + (member.value.empty() ? "-" : member.value);
  }
  return line;
}

std::string member_lines(const JsonValue& object, std::size_t indent) {
  const auto* members = object.get<JsonValue::Object>();
  if (members == nullptr) return "";
  std::size_t width = 0;
  for (const auto& [name, value] : *members)
    width = std::max(width, shown(name, value).name.size());
  std::string out;
  const std::string before(indent, ' ');
  for (const auto& [name, value] : *members) {
    if (value.get<JsonValue::Array>() != nullptr) continue;
    const Shown member = shown(name, value);
    if (value.get<JsonValue::Object>() != nullptr) {
      out += before + member.name + "\n" + member_lines(value, indent + 2);
    } else {
      out += base::format("{}{:<{}}  {}\n", before, member.name, width, member.value);
    }
  }
  return out;
}

std::string text_in(const JsonValue& object, std::string_view name) {
  const JsonValue* found = object.find(name);
  const auto* text = found == nullptr ? nullptr : found->get<std::string>();
  return text == nullptr ? "" : *text;
}

std::int64_t number_in(const JsonValue& object, std::string_view name) {
  const JsonValue* found = object.find(name);
  const auto* number = found == nullptr ? nullptr : found->get<std::int64_t>();
  return number == nullptr ? 0 : *number;
}

const JsonValue::Array& list_in(const JsonValue& object, std::string_view name) {
  const JsonValue* found = object.find(name);
  const auto* list = found == nullptr ? nullptr : found->get<JsonValue::Array>();
  return list == nullptr ? kNone : *list;
}

std::string bytes_in(const JsonValue& object, const std::string& name) {
  if (object.find(name + "_base64") == nullptr) return text_in(object, name);
  return digest::decode_base64(text_in(object, name + "_base64")).value_or("");
}

}  // namespace hapax::cli
