// Where a server is, as people write it: http://127.0.0.1:7171, https://hapax.example/behind/proxy
#pragma once

#include <string>
#include <string_view>

#include <hapax/result.h>

namespace hapax::client {

struct Url {
  bool tls = false;
  std::string host;
  std::string port;
  std::string prefix;  // "/behind/proxy", or empty

  [[nodiscard]] std::string text() const;
  [[nodiscard]] std::string authority() const;  // of the Host field
  friend bool operator==(const Url&, const Url&) = default;
};

[[nodiscard]] Result<Url> parse_url(std::string_view text);

// Somebody else's URL, which is called as it is written: https://shop.example/in/?key=1
struct EndpointUrl {
  Url server;          // without a prefix
  std::string target;  // "/in/?key=1"
};
[[nodiscard]] Result<EndpointUrl> parse_endpoint_url(std::string_view text);

}  // namespace hapax::client
