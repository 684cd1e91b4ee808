#include "serve/options.h"

#include <gtest/gtest.h>

namespace hapax::serve {
namespace {

// The defaults are written where they are used; the configuration repeats them to be able to show
// them without knowing the front doors.
TEST(ServeOptions, ADefaultConfigurationChangesNothing) {
  const auto made = options_from(config::Config{});
  ASSERT_TRUE(made);
  const Options standard;
  EXPECT_EQ(made->data, standard.data);
  EXPECT_EQ(made->http.address, standard.http.address);
  EXPECT_EQ(made->resp.address, standard.resp.address);
  EXPECT_EQ(made->loops, standard.loops);
  EXPECT_EQ(made->readers, standard.readers);
  EXPECT_EQ(made->drain, standard.drain);
  EXPECT_EQ(made->connection_limits.connections_max, standard.connection_limits.connections_max);
  EXPECT_EQ(made->connection_limits.unsent_max, standard.connection_limits.unsent_max);
  EXPECT_EQ(made->connection_limits.read_max, standard.connection_limits.read_max);
  EXPECT_EQ(made->connection_limits.stuck_max, standard.connection_limits.stuck_max);
  const http::SessionLimits& http = standard.http_limits;
  EXPECT_EQ(made->http_limits.parser.header_bytes_max, http.parser.header_bytes_max);
  EXPECT_EQ(made->http_limits.parser.fields_max, http.parser.fields_max);
  EXPECT_EQ(made->http_limits.parser.body_bytes_max, http.parser.body_bytes_max);
  EXPECT_EQ(made->http_limits.header_time, http.header_time);
  EXPECT_EQ(made->http_limits.body_time, http.body_time);
  EXPECT_EQ(made->http_limits.idle_time, http.idle_time);
  EXPECT_EQ(made->http_limits.pipelined_max, http.pipelined_max);
  EXPECT_EQ(made->resp_limits.arguments_max, standard.resp_limits.arguments_max);
  EXPECT_EQ(made->resp_limits.argument_bytes_max, standard.resp_limits.argument_bytes_max);
  EXPECT_EQ(made->resp_limits.command_bytes_max, standard.resp_limits.command_bytes_max);
  EXPECT_EQ(made->resp_pending_max, standard.resp_pending_max);
  EXPECT_EQ(made->resp_command_time, standard.resp_command_time);
  EXPECT_EQ(made->resp_idle_time, standard.resp_idle_time);
  EXPECT_EQ(made->http_limits.unsent_max, standard.http_limits.unsent_max);
}

TEST(ServeOptions, WhoeverMustSignInMayComeFromElsewhere) {
  config::Config config;
  config.server.http.address = ":7171";
  EXPECT_FALSE(check(*options_from(config)));
  config.auth.tokens_file = "tokens";
  EXPECT_TRUE(check(*options_from(config)));
}

TEST(ServeOptions, FilesOfTlsReachTheirDoor) {
  config::Config config;
  config.server.resp.tls = {"c.pem", "k.pem"};
  const auto made = options_from(config);
  ASSERT_TRUE(made);
  EXPECT_FALSE(made->http.tls);
  ASSERT_TRUE(made->resp.tls);
  EXPECT_EQ(made->resp.tls->key, "k.pem");
}

TEST(ServeOptions, AnAddressOthersCanReachNeedsAWord) {
  Options options;
  options.http.address = ":7171";
  EXPECT_FALSE(check(options));
  options.open_to_all = true;
  EXPECT_TRUE(check(options));
}

TEST(ServeOptions, SoDoesThatOfTheMetrics) {
  Options options;
  options.metrics.address = "0.0.0.0:9090";
  EXPECT_FALSE(check(options));
  options.auth.tokens_file = "tokens";
  EXPECT_TRUE(check(options));
}

TEST(ServeOptions, AServerListensSomewhere) {
  Options options;
  options.http.address = "";
  EXPECT_TRUE(check(options));
  options.resp.address = "";
  options.metrics.address = "127.0.0.1:0";
  EXPECT_FALSE(check(options));
}

}  // namespace
}  // namespace hapax::serve
