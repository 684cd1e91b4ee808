#include "net/epoll_set.h"

#include <array>
#include <string>

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace hapax::net {
namespace {

// Always has more to read than one turn takes.
class Talker final : public SocketOwner {
 public:
  Talker() { EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends_.data()), 0); }
  ~Talker() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }

  void say(char byte) const { EXPECT_EQ(::send(ends_[1], &byte, 1, 0), 1); }
  std::size_t ready(std::uint32_t) override {
    ++told;
    if (leaves != nullptr) leaves->leave();
    return std::size_t{1} << 20;
  }
  void join(EpollSet& epoll_set) {
    epoll_set_ = &epoll_set;
    EXPECT_TRUE(epoll_set.add(ends_[0], EPOLLIN, *this));
  }
  void leave() {
    if (epoll_set_ != nullptr) std::exchange(epoll_set_, nullptr)->remove(ends_[0], *this, nullptr);
  }

  int told = 0;
  Talker* leaves = nullptr;  // when this one is told

 private:
  std::array<int, 2> ends_{};
  EpollSet* epoll_set_ = nullptr;
};

class EpollSetTest : public testing::Test {
 protected:
  void SetUp() override {
    for (Talker& talker : talkers_) {
      talker.join(epoll_set_);
      talker.say('x');
    }
    epoll_set_.start();
  }
  void take_turns(int count) {
    for (int i = 0; i < count; ++i) context_.run_one();
  }

  boost::asio::io_context context_;
  EpollSet epoll_set_{context_};
  std::array<Talker, 5> talkers_;
};

// Who is first in the set and always has more to say must not keep the others waiting.
TEST_F(EpollSetTest, EverybodyHasATurn) {
  take_turns(10);
  for (const Talker& talker : talkers_) EXPECT_EQ(talker.told, 2);
}

TEST_F(EpollSetTest, WhoLeftIsToldNoMore) {
  talkers_[0].leaves = &talkers_[1];
  take_turns(8);
  EXPECT_EQ(talkers_[1].told, 0);
  for (const int i : {0, 2, 3, 4}) EXPECT_EQ(talkers_[static_cast<std::size_t>(i)].told, 2);
}

}  // namespace
}  // namespace hapax::net
