#include "http/session.h"

#include <gtest/gtest.h>

#include "net/held_link_test.h"

namespace hapax::http {
namespace {

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

struct Turned final : Attachment {};

// A10: the header is enough to be turned away; what follows is not read.
TEST(Session, ABodyIsNotReadFromWhoMayNotComeIn) {
  net::HeldLink link;
  const SessionLimits limits;
  std::size_t asked = 0;
  const Gate gate = [&](const Request&, std::string_view) {
    ++asked;
    return Gated{false, std::make_shared<Turned>()};
  };
  const Handler handler = [](const std::shared_ptr<Exchange>& exchange) {
    Response response;
    response.status = exchange->attachment() != nullptr ? 401 : 200;
    exchange->respond(response);
  };
  const auto session = std::make_shared<Session>(link, limits, handler, &gate);
  const std::string look = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
  EXPECT_EQ(session->take(look), look.size());
  EXPECT_EQ(asked, 0U) << "without a body the handler asks";
  EXPECT_TRUE(has(link.sent, " 200 "));
  const std::string header = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n";
  EXPECT_EQ(session->take(header), header.size());
  EXPECT_EQ(asked, 1U);
  EXPECT_TRUE(has(link.sent, " 401 "));
  EXPECT_TRUE(has(link.sent, "Connection: close"));
  session->lost();
}

// What the handler leaves with a connection is there for its next request, and goes with it.
TEST(Session, KeepsAnAttachmentWhileTheConnectionLives) {
  net::HeldLink link;
  const SessionLimits limits;
  std::weak_ptr<Attachment> left;
  std::size_t found = 0;
  const Handler handler = [&](const std::shared_ptr<Exchange>& exchange) {
    Attached& attached = exchange->connection_attachment();
    if (attached != nullptr) ++found;
    if (attached == nullptr) attached = std::make_shared<Turned>();
    left = attached;
    exchange->respond({});
  };
  const auto session = std::make_shared<Session>(link, limits, handler);
  const std::string look = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
  EXPECT_EQ(session->take(look + look), 2 * look.size());
  EXPECT_EQ(found, 1U);
  EXPECT_FALSE(left.expired());
  session->lost();
  EXPECT_TRUE(left.expired());
}

}  // namespace
}  // namespace hapax::http
