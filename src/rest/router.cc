#include "rest/router.h"

#include <algorithm>
#include <utility>

#include "wire/nearest.h"

namespace hapax::rest {

namespace {

std::vector<std::string> split(std::string_view pattern) {
  std::vector<std::string> segments;
  pattern.remove_prefix(1);
  while (!pattern.empty()) {
    const std::size_t slash = std::min(pattern.find('/'), pattern.size());
    segments.emplace_back(pattern.substr(0, slash));
    pattern.remove_prefix(std::min(slash + 1, pattern.size()));
  }
  return segments;
}

bool is_name(std::string_view segment) { return segment.starts_with('{'); }

bool matches(const std::vector<std::string>& pattern, const std::vector<std::string>& path) {
  const auto fits = [](const std::string& wanted, const std::string& got) {
    return is_name(wanted) ? !got.empty() : wanted == got;
  };
  return std::equal(pattern.begin(), pattern.end(), path.begin(), path.end(), fits);
}

std::vector<std::string_view> known_in_query(const Route& route) {
  std::vector<std::string_view> known = wire::field_names(route.op);
  std::erase_if(known, [&](std::string_view name) {
    return route.pattern.find("{" + std::string(name) + "}") != std::string::npos;
  });
  for (const QueryField& field : route.query) known.push_back(field.name);
  return known;
}

Error bad_query(std::string_view name, const std::string& why) {
  return Error{Errc::kInvalidArgument, std::string(name) + ": " + why};
}

}  // namespace

Status check_query(const Route& route, const http::Request& request) {
  if (request.query.empty()) return Ok{};
  const std::vector<std::string_view> known = known_in_query(route);
  for (auto at = request.query.begin(); at != request.query.end(); ++at) {
    const std::string& name = at->first;
    const auto is_it = [&](const auto& other) { return other.first == name; };
    if (std::any_of(request.query.begin(), at, is_it)) {
      return bad_query(name, "stands twice in the query");
    }
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    return bad_query(name,
                     "this route knows no such field of a query" + wire::suggestion(name, known));
  }
  return Ok{};
}

access::From Call::from() const {
  access::From from(exchange->loop(), exchange->reference());
  from.follows = exchange->follows_others();
  return from;
}

std::string_view Call::name(std::string_view key) const {
  for (const auto& [name, value] : names) {
    if (name == key) return value;
  }
  return {};
}

std::vector<wire::TextField> Call::fields() const {
  std::vector<wire::TextField> all;
  for (const auto& [name, value] : names) all.push_back({name, value});
  for (const auto& [name, value] : request().query) all.push_back({name, value});
  return all;
}

void Router::add(Route route) {
  segments_.push_back(split(route.pattern));
  routes_.push_back(std::move(route));
}

Router::Found Router::find(std::string_view method, const std::vector<std::string>& path) const {
  Found found;
  const std::string_view wanted = method == "HEAD" ? "GET" : method;
  for (std::size_t i = 0; i < routes_.size(); ++i) {
    if (!matches(segments_[i], path)) continue;
    if (routes_[i].method != wanted) {
      found.allowed += (found.allowed.empty() ? "" : ", ") + routes_[i].method;
      if (routes_[i].method == "GET") found.allowed += ", HEAD";
      continue;
    }
    found.route = &routes_[i];
    for (std::size_t j = 0; j < path.size(); ++j) {
      const std::string& segment = segments_[i][j];
      if (!is_name(segment)) continue;
      found.names.emplace_back(segment.substr(1, segment.size() - 2), path[j]);
    }
    return found;
  }
  return found;
}

}  // namespace hapax::rest
