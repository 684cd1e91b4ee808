#include "webhook/renamed_url.h"

#include <algorithm>

#include "base/format.h"

namespace hapax::webhook {

using base::format;

bool is_server_name(std::string_view name) {
  constexpr std::size_t kNameMax = 253;
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.';
  };
  return !name.empty() && name.size() <= kNameMax && name.front() != '.' && name.front() != '-' &&
         std::all_of(name.begin(), name.end(), fits);
}

RenamedUrl renamed_url(std::string_view url, std::string_view name) {
  const std::size_t start = url.find("://") + 3;
  const std::size_t end = std::min(url.find_first_of("/?", start), url.size());
  const std::string_view authority = url.substr(start, end - start);
  const bool bracketed = authority.starts_with('[');
  const std::size_t host_end =
      bracketed ? authority.find(']') + 1 : std::min(authority.find(':'), authority.size());
  const std::string_view port = authority.substr(host_end);  // ":8443", or nothing
  const bool has_port = port.size() > 1;
  return {
      .url = format("{}{}{}{}", url.substr(0, start), name, has_port ? port : "", url.substr(end)),
      .connect_to = format("::{}{}", authority.substr(0, host_end), has_port ? port : ":443"),
      .authority = std::string(authority)};
}

}  // namespace hapax::webhook
