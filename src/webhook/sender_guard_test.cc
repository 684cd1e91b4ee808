// The guard at connect time, and names that are looked up off the sender's thread.
#include <cstring>
#include <string>
#include <string_view>

#include <curl/curl.h>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netdb.h>

#include "webhook/receiver_test.h"
#include "webhook/sender.h"

namespace hapax::webhook {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

// What the lookup of a name ending in .test does.
class Names {
 public:
  void hang() {
    base::MutexLock lock(mutex_);
    ++hanging_;
    changed_.notify_all();
    lock.wait(changed_, [this]() HAPAX_REQUIRES(mutex_) { return released_; });
    --hanging_;
    changed_.notify_all();
  }
  [[nodiscard]] bool wait_for_hanging() {
    base::MutexLock lock(mutex_);
    return lock.wait_for(changed_, kPatient,
                         [this]() HAPAX_REQUIRES(mutex_) { return hanging_ > 0; });
  }
  void hold() {
    const base::MutexLock lock(mutex_);
    released_ = false;
  }
  void release() {
    base::MutexLock lock(mutex_);
    released_ = true;
    changed_.notify_all();
    lock.wait(changed_, [this]() HAPAX_REQUIRES(mutex_) { return hanging_ == 0; });
  }

 private:
  base::Mutex mutex_;
  std::condition_variable changed_;
  int hanging_ HAPAX_GUARDED_BY(mutex_) = 0;
  bool released_ HAPAX_GUARDED_BY(mutex_) = false;
};

Names names;

}  // namespace
}  // namespace hapax::webhook

// Stands before the C library's in this program: names that end in .test are ours.
extern "C" int getaddrinfo(const char* node, const char* service, const addrinfo* hints,
                           addrinfo** found) {
  using Lookup = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
  static const auto real = reinterpret_cast<Lookup>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  const std::string_view name = node == nullptr ? "" : node;
  if (name == "hangs.test") hapax::webhook::names.hang();
  if (name == "nobody.test") return EAI_NONAME;
  return real(name.ends_with(".test") ? "127.0.0.1" : node, service, hints, found);
}

namespace hapax::webhook {
namespace {

SenderSettings guarded() { return {}; }

// Q4: no guarded request reaches an address that the guard refuses.
TEST(SenderGuard, RefusesLoopbackHoweverItIsWritten) {
  Receiver receiver(Receiver::answering(kOk));
  const auto sender = open_sender(guarded());
  for (const char* host :
       {"127.0.0.1", "127.1", "0x7f000001", "2130706433", "0177.0.0.1", "0", "localhost",
        "a.localhost", "[::ffff:127.0.0.1]", "[::1]", "[::]", "rebinds.test"}) {
    const SendReply reply = send(*sender, post_to(receiver.at().url("http", host)));
    EXPECT_EQ(reply.ending, SendEnding::kNotSent) << host;
    EXPECT_EQ(reply.cause, SendCause::kGuard) << host << ": " << reply.reason;
    EXPECT_THAT(reply.reason, HasSubstr("the address guard refuses the endpoint"));
  }
  EXPECT_EQ(receiver.connections(), 0U);
}

TEST(SenderGuard, LetsWhatTheOperatorAllowsPass) {
  Receiver receiver(Receiver::answering(kOk));
  const auto sender = open_sender(on_loopback());
  EXPECT_EQ(send(*sender, post_to(receiver.at().url("http", "rebinds.test"))).status, 200);
}

TEST(SenderGuard, IsNotAskedForRequestsOfTheOperator) {
  Receiver receiver(Receiver::answering(kOk));
  const auto sender = open_sender(guarded());
  SendRequest request = post_to(receiver.url());
  request.guarded = false;
  EXPECT_EQ(send(*sender, std::move(request)).status, 200);
}

// Q4: a connection in the pool has passed no guard if it was opened for a request without one.
TEST(SenderGuard, JudgesAnOpenConnectionToo) {
  Receiver receiver(Receiver::answering(kOk));
  const auto sender = open_sender(guarded());
  SendRequest request = post_to(receiver.url());
  request.guarded = false;
  ASSERT_EQ(send(*sender, std::move(request)).status, 200);
  const SendReply reply = send(*sender, post_to(receiver.url()));
  EXPECT_EQ(reply.ending, SendEnding::kNotSent);
  EXPECT_EQ(reply.cause, SendCause::kGuard);
  EXPECT_THAT(receiver.requests(), SizeIs(1));
}

TEST(SenderProxy, IsUsedForGuardedRequestsOnlyIfItFilters) {
  Receiver proxy(Receiver::answering(kOk));
  Receiver direct(Receiver::answering(kOk));
  const auto sender = open_sender(guarded());
  SendRequest request = post_to("http://elsewhere.test/hook");
  request.proxy.url = base::format("http://127.0.0.1:{}", proxy.at().port());
  EXPECT_EQ(send(*sender, request).cause, SendCause::kInvalid);
  request.proxy.filters = true;
  EXPECT_EQ(send(*sender, request).status, 200);
  EXPECT_THAT(proxy.requests().at(0), HasSubstr("POST http://elsewhere.test/hook HTTP/1.1\r\n"));
  // The handle is used again, without a proxy.
  SendRequest plain = post_to(direct.url());
  plain.guarded = false;
  EXPECT_EQ(send(*sender, std::move(plain)).status, 200);
  EXPECT_THAT(direct.requests(), SizeIs(1));
}

TEST(SenderProxy, ThatRefusesATunnelMeansNotSent) {
  Receiver proxy(
      Receiver::answering("HTTP/1.1 403 No\r\nRetry-After: 9\r\nContent-Length: 0\r\n\r\n"));
  const auto sender = open_sender(guarded());
  SendRequest request = post_to("https://elsewhere.test/hook");
  request.proxy = {.url = base::format("http://127.0.0.1:{}", proxy.at().port()), .filters = true};
  const SendReply reply = send(*sender, std::move(request));
  EXPECT_EQ(reply.ending, SendEnding::kNotSent);
  EXPECT_EQ(reply.status, 0);
  EXPECT_EQ(reply.retry_after, "");  // the proxy's, not the endpoint's
}

TEST(SenderNames, ThatDoNotExistMeanNotSent) {
  const auto sender = open_sender();
  const SendReply reply = send(*sender, post_to("http://nobody.test/"));
  EXPECT_EQ(reply.ending, SendEnding::kNotSent);
  EXPECT_EQ(reply.cause, SendCause::kName);
}

// libcurl would wait for the lookup's thread when the request is given up, and with it everybody.
TEST(SenderNames, ThatHangHoldUpNobodyElse) {
  names.hold();
  Receiver receiver(Receiver::answering(kOk));
  const auto sender = open_sender();
  SendRequest hangs = post_to("http://hangs.test/");
  hangs.connect_timeout = kBrief;
  auto lost = start(*sender, std::move(hangs));
  ASSERT_TRUE(names.wait_for_hanging());
  EXPECT_EQ(send(*sender, post_to(receiver.url())).status, 200);
  const SendReply reply = lost.get();
  EXPECT_EQ(reply.ending, SendEnding::kNotSent);
  EXPECT_EQ(reply.cause, SendCause::kTimeout);
  auto stopped = start(*sender, post_to("http://hangs.test/"));
  sender->stop(std::chrono::milliseconds(0));
  EXPECT_EQ(stopped.get().ending, SendEnding::kNotSent);
  names.release();
}

// Without these the sender would block in lookups, or have no HTTP/2.
TEST(Libcurl, LooksUpNamesInThreadsAndKnowsHttp2) {
  const auto* version = curl_version_info(CURLVERSION_NOW);
  EXPECT_NE(version->features & CURL_VERSION_ASYNCHDNS, 0);
  EXPECT_EQ(version->ares, nullptr);
  EXPECT_NE(version->features & CURL_VERSION_HTTP2, 0);
}

}  // namespace
}  // namespace hapax::webhook
