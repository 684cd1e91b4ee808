#include "net/address.h"

#include <charconv>

#include <boost/asio/ip/address.hpp>

namespace hapax::net {

namespace {

Error bad_address(std::string_view text, std::string_view why) {
  return Error{Errc::kInvalidArgument,
               "'" + std::string(text) + "' is not an address to listen on: " + std::string(why) +
                   "; write for instance 127.0.0.1:7171, [::1]:7171 or :7171"};
}

}  // namespace

bool Address::loopback() const {
  boost::system::error_code error;
  const auto address = boost::asio::ip::make_address(host, error);
  return !error && address.is_loopback();
}

std::string Address::text() const {
  const bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Result<Address> parse_address(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return bad_address(text, "it has no port");
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);

  Address address;
  const auto [end, failed] =
      std::from_chars(digits.data(), digits.data() + digits.size(), address.port);
  if (failed != std::errc{} || end != digits.data() + digits.size()) {
    return bad_address(text, "its port is not a number from 0 to 65535");
  }
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host.empty()) host = "0.0.0.0";
  if (host == "localhost") host = "127.0.0.1";
  boost::system::error_code error;
  const auto parsed = boost::asio::ip::make_address(std::string(host), error);
  if (error) return bad_address(text, "its host is neither a numeric address nor localhost");
  address.host = parsed.to_string();
  return address;
}

}  // namespace hapax::net
