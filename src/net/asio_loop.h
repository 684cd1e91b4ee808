// A Loop on Asio: one io_context, one thread.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <thread>
#include <unordered_set>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "net/epoll_set.h"
#include "net/link.h"
#include "net/server.h"

namespace hapax::net {

namespace asio = boost::asio;
using SteadyTime = std::chrono::steady_clock::time_point;

struct TrafficCounters {
  std::atomic<std::uint64_t> accepted = 0;
  std::atomic<std::uint64_t> refused = 0;
  std::atomic<std::uint64_t> paused = 0;
  std::atomic<std::uint64_t> open = 0;
  std::atomic<std::uint64_t> bytes_in = 0;
  std::atomic<std::uint64_t> bytes_out = 0;
};

class Connection;

class AsioLoop final : public Loop {
 public:
  AsioLoop(std::size_t number, bool may_wait, const ServerLimits& limits,
           TrafficCounters& counters);
  ~AsioLoop();

  void start();
  void join();

  void post(std::function<void()> act) override;
  void at_end_of_turn(std::function<void()> act) override;
  void at(SteadyTime when, std::function<void()> act) override;
  [[nodiscard]] std::size_t number() const override { return number_; }
  [[nodiscard]] bool may_wait() const override { return may_wait_; }

  [[nodiscard]] asio::io_context& context() { return context_; }
  [[nodiscard]] const ServerLimits& limits() const { return limits_; }
  [[nodiscard]] TrafficCounters& counters() { return counters_; }
  [[nodiscard]] EpollSet& epoll_set() { return epoll_set_; }

  // On the loop's thread. REQUIRES: it is counted as open.
  void add(const std::shared_ptr<Connection>& connection);
  void remove(const std::shared_ptr<Connection>& connection);
  void will_flush(std::shared_ptr<Connection> connection);
  void drain();
  void cut_all();

 private:
  void end_turn();
  void want_end_of_turn();
  void arm();
  void ring();
  void watch_deadlines();

  const std::size_t number_;
  const bool may_wait_;
  const ServerLimits limits_;
  TrafficCounters& counters_;

  asio::io_context context_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  EpollSet epoll_set_;
  asio::steady_timer alarm_;
  asio::steady_timer deadlines_;
  std::multimap<SteadyTime, std::function<void()>> appointments_;
  std::unordered_set<std::shared_ptr<Connection>> connections_;
  std::vector<std::shared_ptr<Connection>> to_flush_;
  std::vector<std::function<void()>> at_end_;
  bool end_wanted_ = false;
  bool watching_ = false;
  bool draining_ = false;
  std::thread thread_;
};

}  // namespace hapax::net
