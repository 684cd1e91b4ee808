// TLS and HTTP/2, with nginx as the receiver. It inherits the socket that holds its port.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>

#include "webhook/receiver_test.h"
#include "webhook/sender.h"

namespace hapax::webhook {
namespace {

namespace fs = std::filesystem;
using ::testing::SizeIs;

constexpr int kInherited = 3;

pid_t spawn(const std::vector<std::string>& command, const std::string& variable = "",
            int inherited = -1) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  std::vector<char*> variables;
  if (!variable.empty()) variables.push_back(const_cast<char*>(variable.c_str()));
  variables.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  if (inherited >= 0) posix_spawn_file_actions_adddup2(&actions, inherited, kInherited);
  pid_t process = -1;
  EXPECT_EQ(
      ::posix_spawnp(&process, arguments[0], &actions, nullptr, arguments.data(), variables.data()),
      0)
      << command[0];
  posix_spawn_file_actions_destroy(&actions);
  return process;
}

int exit_code_of(pid_t process) {
  int status = -1;
  ::waitpid(process, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Two certificates for 127.0.0.1 and erp.internal, each signed by itself, and the nginx that shows
// the first.
class SecureReceiver {
 public:
  explicit SecureReceiver(const std::string& options = "") {
    std::string name = (fs::temp_directory_path() / "hapax-webhook-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    for (const char* one : {"server", "client"}) make_certificate(one);
    bound_.listen();
    std::ofstream out(path("nginx.conf"));
    out << "daemon off; worker_processes 1; pid " << path("pid") << "; error_log " << path("errors")
        << ";\nevents {}\nhttp { access_log " << path("requests") << ";";
    for (const char* kind : {"client_body", "proxy", "fastcgi", "uwsgi", "scgi"}) {
      out << ' ' << kind << "_temp_path " << path(kind) << ';';
    }
    out << " server { listen 127.0.0.1:" << bound_.port() << " ssl http2; ssl_certificate "
        << path("server.pem") << "; ssl_certificate_key " << path("server.key")
        << "; ssl_client_certificate " << path("client.pem") << "; " << options
        << " location / { return 200 $server_protocol; } } }\n";
    out.close();
    process_ = spawn({"nginx", "-c", path("nginx.conf"), "-e", path("errors")},
                     base::format("NGINX={};", kInherited), bound_.get());
  }
  ~SecureReceiver() {
    // -1 would be every process of the machine.
    if (process_ > 0) {
      ::kill(process_, SIGTERM);
      ::waitpid(process_, nullptr, 0);
    }
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  SecureReceiver(const SecureReceiver&) = delete;
  SecureReceiver& operator=(const SecureReceiver&) = delete;

  [[nodiscard]] std::string path(const std::string& name) const { return folder_ / name; }
  [[nodiscard]] SendRequest request() const {
    SendRequest out = post_to(bound_.url("https"));
    out.tls.ca_file = path("server.pem");
    return out;
  }

 private:
  void make_certificate(const std::string& name) const {
    EXPECT_EQ(
        exit_code_of(spawn(
            {"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
             "-nodes", "-keyout", path(name + ".key"), "-out", path(name + ".pem"), "-days", "2",
             "-subj", "/CN=" + name, "-addext", "subjectAltName=IP:127.0.0.1,DNS:erp.internal"})),
        0);
  }

  fs::path folder_;
  BoundSocket bound_;
  pid_t process_ = -1;
};

TEST(SenderTls, SpeaksHttp2WithAnEndpointThatProvesItsName) {
  const SecureReceiver receiver;
  const auto sender = open_sender();
  for (int i = 0; i < 2; ++i) {
    const SendReply reply = send(*sender, receiver.request());
    EXPECT_EQ(reply.status, 200) << reply.reason;
    EXPECT_EQ(reply.body, "HTTP/2.0");
    EXPECT_NE(reply.date, "");
    EXPECT_EQ(reply.times.tls > reply.times.connected, i == 0) << "one handshake";
  }
}

TEST(SenderTls, ManyRequestsShareAConnectionOverHttp2) {
  const SecureReceiver receiver;
  const auto sender = open_sender();
  ASSERT_EQ(send(*sender, receiver.request()).status, 200);
  std::vector<std::future<SendReply>> replies;
  for (int i = 0; i < 50; ++i) replies.push_back(start(*sender, receiver.request()));
  for (auto& one : replies) {
    const SendReply reply = one.get();
    EXPECT_EQ(reply.status, 200) << reply.reason;
    EXPECT_EQ(reply.times.connected.count(), 0) << "a connection was opened";
  }
}

TEST(SenderTls, SendsNothingToAnEndpointThatDoesNot) {
  const SecureReceiver receiver;
  const auto sender = open_sender();
  SendRequest stranger = receiver.request();
  stranger.tls.ca_file = receiver.path("client.pem");
  SendRequest machine = receiver.request();
  machine.tls.ca_file.clear();
  SendRequest misnamed = receiver.request();
  misnamed.url.replace(misnamed.url.find("127.0.0.1"), 9, "localhost");
  SendRequest no_file = receiver.request();
  no_file.tls.ca_file = receiver.path("nothing");
  for (const SendRequest& request : {stranger, machine, misnamed, no_file}) {
    const SendReply reply = send(*sender, request);
    EXPECT_EQ(reply.ending, SendEnding::kNotSent);
    EXPECT_EQ(reply.cause, SendCause::kTls) << reply.reason;
  }
  // The same handle then trusts what the next request says.
  EXPECT_EQ(send(*sender, receiver.request()).status, 200);
  SendRequest careless = stranger;
  careless.tls.verify = false;
  EXPECT_EQ(send(*sender, careless).status, 200);
  EXPECT_EQ(send(*sender, stranger).cause, SendCause::kTls);
}

TEST(SenderTls, ShowsItsOwnCertificate) {
  const SecureReceiver receiver("ssl_verify_client on; ssl_protocols TLSv1.2;");
  const auto sender = open_sender();
  SendRequest request = receiver.request();
  EXPECT_EQ(send(*sender, request).status, 400);  // nginx's way to ask for one
  request.tls.certificate_file = receiver.path("client.pem");
  request.tls.key_file = receiver.path("client.key");
  EXPECT_EQ(send(*sender, request).status, 200);
  request.tls.key_file = receiver.path("server.key");
  EXPECT_EQ(send(*open_sender(), request).cause, SendCause::kTls);  // not by an open connection
}

TEST(SenderTls, TheCertificateMayHaveToProveAnotherName) {
  const SecureReceiver receiver(
      "location = /hook { return 200 \"$server_protocol $http_host $ssl_server_name\"; }");
  const auto sender = open_sender();
  SendRequest request = receiver.request();
  const std::string authority = request.url.substr(8, request.url.find('/', 8) - 8);
  const std::string told = "HTTP/2.0 " + authority + " ";
  request.tls.server_name = "erp.internal";
  EXPECT_EQ(send(*sender, request).body, told + "erp.internal");
  EXPECT_EQ(send(*sender, receiver.request()).body, told) << "the same handle, by its own name";
  request.tls.server_name = "other.internal";
  EXPECT_EQ(send(*sender, request).cause, SendCause::kTls);
  request.tls.server_name = "erp.internal";
  request.url.replace(request.url.find("127.0.0.1"), 9, "localhost");
  EXPECT_EQ(send(*sender, request).status, 200);
  request.tls.server_name = "a/b";
  EXPECT_EQ(send(*sender, request).cause, SendCause::kInvalid);
}

TEST(SenderTls, OfAPlainOrSilentReceiverIsNotSent) {
  Receiver silent([](Peer& peer, Receiver& /*self*/) { peer.wait_for_end(); });
  Receiver closing([](Peer& peer, Receiver& /*self*/) { peer.wait_for_bytes(); });
  Receiver talking([](Peer& peer, Receiver& /*self*/) {
    peer.wait_for_bytes();
    peer.say(kOk);
    peer.wait_for_end();
  });
  const auto sender = open_sender();
  SendRequest request = post_to(silent.at().url("https"));
  request.connect_timeout = kBrief;
  const SendReply slow = send(*sender, request);
  EXPECT_EQ(slow.ending, SendEnding::kNotSent);
  EXPECT_EQ(slow.cause, SendCause::kTimeout);
  for (Receiver* other : {&closing, &talking}) {
    const SendReply reply = send(*sender, post_to(other->at().url("https")));
    EXPECT_EQ(reply.ending, SendEnding::kNotSent);
    EXPECT_EQ(reply.cause, SendCause::kTls) << reply.reason;
  }
}

}  // namespace
}  // namespace hapax::webhook
