#include "cli/way.h"

#include <gtest/gtest.h>

#include "host/temporary_folder_test.h"

namespace hapax::cli {
namespace {

// A11: another user of the machine may find the port, and gets nothing.
TEST(PrivateServer, AnswersNobodyWithoutItsCredential) {
  const host::TemporaryFolder folder;
  const auto inside = serve::PrivateServer::open(folder.path() / "data", "test");
  ASSERT_TRUE(inside) << inside.error().text();
  const auto status = [&](const std::string& token) {
    client::ClientOptions options;
    options.url = *client::parse_url((*inside)->url());
    options.token = token;
    const auto reply = client::Client(options).call({"GET", "/api/v1/streams"});
    return reply ? reply->status : 0U;
  };
  const std::string& token = (*inside)->token();
  std::string other = token;
  other[0] = token[0] == 'x' ? 'y' : 'x';
  EXPECT_EQ(status(token), 200U);
  EXPECT_EQ(status(""), 401U);
  EXPECT_EQ(status(other), 401U);
  EXPECT_EQ(status(token + "x"), 401U);
  EXPECT_EQ(status(token.substr(0, 5)), 401U);
}

// A10
TEST(PrivateServer, ReadsNoBodyFromOthers) {
  const host::TemporaryFolder folder;
  const auto inside = serve::PrivateServer::open(folder.path() / "data", "test");
  ASSERT_TRUE(inside) << inside.error().text();
  client::ClientOptions options;
  options.url = *client::parse_url((*inside)->url());
  const auto reply = client::Client(options).call({"POST", "/api/v1/commit", "{}"});
  ASSERT_TRUE(reply) << reply.error().text();
  EXPECT_EQ(reply->status, 401U);
  EXPECT_EQ(reply->fields.get("Connection"), "close") << "what follows is not looked at";
}

TEST(PrivateServer, HasTheFolderToItself) {
  const host::TemporaryFolder folder;
  const auto first = serve::PrivateServer::open(folder.path() / "data", "test");
  ASSERT_TRUE(first);
  const auto second = serve::PrivateServer::open(folder.path() / "data", "test");
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::kLocked);
}

Told told(unsigned status, std::string_view json) {
  Told out;
  out.reply.status = status;
  out.json = *wire::read_strict_json(json);
  return out;
}

TEST(Way, EachKindOfAnswerHasItsExitCode) {
  EXPECT_EQ(exit_of(told(200, R"({"verdict":"duplicate"})")), kExitOk);
  EXPECT_EQ(exit_of(told(422, R"({"verdict":"conflict"})")), kExitContradicted);
  EXPECT_EQ(exit_of(told(409, R"({"verdict":"in_progress"})")), kExitLater);
  EXPECT_EQ(exit_of(told(409, R"({"committed":false})")), kExitContradicted);
  EXPECT_EQ(exit_of(told(404, R"({"code":"HX1003"})")), kExitMissing);
  EXPECT_EQ(exit_of(told(404, R"({"type":"about:blank"})")), kExitMissing);
  EXPECT_EQ(exit_of(told(401, R"({"code":"HX1013"})")), kExitForbidden);
  EXPECT_EQ(exit_of(told(400, R"({"code":"HX1001"})")), kExitUsage);
  EXPECT_EQ(exit_of(told(507, R"({"code":"HX1008"})")), kExitLater);
  EXPECT_EQ(exit_of(told(500, R"({"code":"HX1021"})")), kExitDamaged);
  EXPECT_EQ(exit_of_verdict(told(0, R"({"verdict":"refused","code":"HX1003"})").json),
            kExitMissing);
}

TEST(Way, AListIsAsGoodAsItsWorstVerdict) {
  EXPECT_EQ(exit_of(told(200, R"({"verdicts":[{"verdict":"fresh"},{"verdict":"duplicate"}]})")),
            kExitOk);
  EXPECT_EQ(exit_of(told(200, R"({"verdicts":[{"verdict":"fresh"},{"verdict":"conflict"}]})")),
            kExitContradicted);
  EXPECT_EQ(exit_of(told(409, R"({"committed":false,"verdicts":[]})")), kExitContradicted);
}

}  // namespace
}  // namespace hapax::cli
