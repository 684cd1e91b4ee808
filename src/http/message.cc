#include "http/message.h"

#include <algorithm>
#include <charconv>
#include <ostream>  // Boost 1.81 forgets it.

#include <boost/beast/http/status.hpp>

#include "base/words.h"

namespace hapax::http {

namespace {

// Takes "http://host" from the front of a target, if it is there, and answers the host.
std::optional<std::string_view> take_authority(std::string_view& target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!same_name(target.substr(0, scheme.size()), scheme)) continue;
    target.remove_prefix(scheme.size());
    const std::size_t end = std::min(target.find_first_of("/?"), target.size());
    const std::string_view authority = target.substr(0, end);
    target.remove_prefix(end);
    return authority;
  }
  return std::nullopt;
}

bool split_query(std::string_view text, Request& request) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('&'), text.size());
    const std::string_view one = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (one.empty()) continue;
    const std::size_t equals = std::min(one.find('='), one.size());
    auto name = percent_decode(one.substr(0, equals), true);
    auto value = percent_decode(one.substr(std::min(equals + 1, one.size())), true);
    if (!name || !value) return false;
    request.query.emplace_back(*std::move(name), *std::move(value));
  }
  return true;
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ') || text.starts_with('\t')) text.remove_prefix(1);
  while (text.ends_with(' ') || text.ends_with('\t')) text.remove_suffix(1);
  return text;
}

std::string_view without_parameters(std::string_view type) {
  return trimmed(type.substr(0, std::min(type.find(';'), type.size())));
}

}  // namespace

std::string_view media_type(const Request& request) {
  return without_parameters(request.fields.get("Content-Type"));
}

bool accepts(const Request& request, std::string_view type) {
  std::string_view list = request.fields.get("Accept");
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    if (same_name(without_parameters(list.substr(0, comma)), type)) return true;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

bool same_name(std::string_view a, std::string_view b) { return base::same_word(a, b); }

void Fields::set(std::string_view name, std::string_view value) {
  std::erase_if(list_, [&](const auto& field) { return same_name(field.first, name); });
  add(name, value);
}

std::string_view Fields::get(std::string_view name) const {
  for (const auto& [key, value] : list_) {
    if (same_name(key, name)) return value;
  }
  return {};
}

bool Fields::has(std::string_view name) const { return count(name) != 0; }

std::size_t Fields::count(std::string_view name) const {
  const auto is_it = [&](const auto& field) { return same_name(field.first, name); };
  return static_cast<std::size_t>(std::count_if(list_.begin(), list_.end(), is_it));
}

std::optional<std::string_view> Request::query_value(std::string_view name) const {
  for (const auto& [key, value] : query) {
    if (key == name) return value;
  }
  return std::nullopt;
}

std::string_view reason_of(unsigned status) {
  const auto reason =
      boost::beast::http::obsolete_reason(boost::beast::http::int_to_status(status));
  return {reason.data(), reason.size()};
}

std::string text_of(const Response& response, Framing framing, bool keep_alive, bool head_only) {
  std::string out = "HTTP/1.1 " + std::to_string(response.status) + " ";
  out.reserve(256 + response.body.size());
  out.append(reason_of(response.status)).append("\r\n");
  for (const auto& [name, value] : response.fields.list()) {
    out.append(name).append(": ").append(value).append("\r\n");
  }
  const bool has_body = response.status >= 200 && response.status != 204 && response.status != 304;
  if (framing == Framing::kChunked) {
    out.append("Transfer-Encoding: chunked\r\n");
  } else if (framing == Framing::kWhole && has_body) {
    out.append("Content-Length: ").append(std::to_string(response.body.size())).append("\r\n");
  }
  if (!keep_alive || framing == Framing::kUntilClose) out.append("Connection: close\r\n");
  out.append("\r\n");
  if (framing == Framing::kWhole && has_body && !head_only) out.append(response.body);
  return out;
}

std::string chunk_of(std::string_view bytes) {
  char digits[20];
  const auto [end, failed] = std::to_chars(digits, digits + sizeof digits, bytes.size(), 16);
  static_cast<void>(failed);  // 20 characters hold every size.
  std::string out(digits, end);
  out.append("\r\n").append(bytes).append("\r\n");
  return out;
}

std::optional<std::string> percent_decode(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_space) {
      out.push_back(' ');
    } else if (text[i] != '%') {
      out.push_back(text[i]);
    } else {
      const int high = i + 2 < text.size() ? base::hex_digit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? base::hex_digit(text[i + 2]) : -1;
      if (high < 0 || low < 0) return std::nullopt;
      out.push_back(static_cast<char>(high * 16 + low));
      i += 2;
    }
  }
  return out;
}

bool split_target(Request& request) {
  std::string_view target = request.target;
  const auto absolute = take_authority(target);
  request.authority = absolute.value_or(request.fields.get("Host"));
  if (!absolute && !target.starts_with('/')) return false;
  const std::size_t question = std::min(target.find('?'), target.size());
  std::string_view path = target.substr(0, question);
  if (path.starts_with('/')) path.remove_prefix(1);
  while (!path.empty()) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    auto segment = percent_decode(path.substr(0, slash), false);
    if (!segment) return false;
    request.path.push_back(*std::move(segment));
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return split_query(target.substr(std::min(question + 1, target.size())), request);
}

}  // namespace hapax::http
