#include "webhook/socket_watch.h"

#include <array>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace hapax::webhook {
namespace {

using std::chrono::milliseconds;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// The two ends of a connection.
struct Ends {
  Ends() {
    std::array<int, 2> both{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both.data()), 0);
    near = both[0];
    far = both[1];
  }
  ~Ends() {
    ::close(near);
    ::close(far);
  }
  Ends(const Ends&) = delete;
  Ends& operator=(const Ends&) = delete;
  void say() const { EXPECT_EQ(::write(far, "x", 1), 1); }

  int near = -1;
  int far = -1;
};

constexpr milliseconds kNow{0};

TEST(SocketWatch, TellsWhatIsWanted) {
  SocketWatch watch = *SocketWatch::open();
  const Ends ends;
  watch.opened(ends.near);
  watch.want(ends.near, SocketWatch::kWrite);
  ASSERT_THAT(watch.wait(kNow), SizeIs(1));
  EXPECT_EQ(watch.wait(kNow)[0].socket, ends.near);
  EXPECT_EQ(watch.wait(kNow)[0].events, SocketWatch::kWrite);
  watch.want(ends.near, SocketWatch::kRead);
  EXPECT_THAT(watch.wait(kNow), IsEmpty());
  ends.say();
  ASSERT_THAT(watch.wait(kNow), SizeIs(1));
  EXPECT_EQ(watch.wait(kNow)[0].events, SocketWatch::kRead);
}

TEST(SocketWatch, DoesNotTellOfAnIdleConnectionAndDoesNotSpin) {
  SocketWatch watch = *SocketWatch::open();
  const Ends ends;
  watch.opened(ends.near);
  watch.want(ends.near, SocketWatch::kRead);
  watch.want(ends.near, 0);
  ends.say();
  EXPECT_THAT(watch.wait(kNow), IsEmpty());
  // The idle socket is out of the set by now: only wake() ends this wait.
  std::thread waker([&] { watch.wake(); });
  EXPECT_THAT(watch.wait(milliseconds(-1)), IsEmpty());
  waker.join();
  watch.want(ends.near, SocketWatch::kRead);
  EXPECT_THAT(watch.wait(kNow), SizeIs(1));
}

// The number of a closed connection goes to a socket that libcurl opened by itself, and back.
TEST(SocketWatch, TellsSocketsApartThatHaveOneNumber) {
  SocketWatch watch = *SocketWatch::open();
  const Ends first;
  const Ends second;
  watch.opened(first.near);
  watch.want(first.near, SocketWatch::kRead);
  watch.want(first.near, 0);
  watch.closing(first.near);
  ASSERT_EQ(::dup2(second.near, first.near), first.near);  // closes it
  watch.want(first.near, SocketWatch::kRead);
  second.say();
  EXPECT_THAT(watch.wait(kNow), SizeIs(1));
  watch.want(first.near, 0);
  EXPECT_THAT(watch.wait(kNow), IsEmpty());
}

TEST(SocketWatch, BelievesANewConnectionRatherThanItsMemory) {
  SocketWatch watch = *SocketWatch::open();
  const Ends first;
  const Ends second;
  watch.opened(first.near);
  watch.want(first.near, SocketWatch::kRead);
  ASSERT_EQ(::dup2(second.near, first.near), first.near);  // closed, and nobody said so
  watch.opened(first.near);
  watch.want(first.near, SocketWatch::kRead);
  second.say();
  EXPECT_THAT(watch.wait(kNow), SizeIs(1));
}

TEST(SocketWatch, AWakeBeforeTheWaitIsNotLost) {
  SocketWatch watch = *SocketWatch::open();
  watch.wake();
  EXPECT_THAT(watch.wait(milliseconds(-1)), IsEmpty());
}

}  // namespace
}  // namespace hapax::webhook
