#include "net/asio_loop.h"

#include <algorithm>
#include <utility>

#include <boost/asio/post.hpp>

#include "net/connection.h"

namespace hapax::net {

namespace {

constexpr std::chrono::milliseconds kDeadlineGrain{250};

}  // namespace

AsioLoop::AsioLoop(std::size_t number, bool may_wait, const ServerLimits& limits,
                   TrafficCounters& counters)
    : number_(number),
      may_wait_(may_wait),
      limits_(limits),
      counters_(counters),
      work_(context_.get_executor()),
      epoll_set_(context_),
      alarm_(context_),
      deadlines_(context_) {}

AsioLoop::~AsioLoop() { join(); }

void AsioLoop::start() {
  epoll_set_.start();
  thread_ = std::thread([this] { context_.run(); });
}

void AsioLoop::join() {
  if (!thread_.joinable()) return;
  asio::post(context_, [this] {
    cut_all();
    epoll_set_.stop();
    alarm_.cancel();
    deadlines_.cancel();
    appointments_.clear();
    work_.reset();
  });
  thread_.join();
}

void AsioLoop::post(std::function<void()> act) { asio::post(context_, std::move(act)); }

void AsioLoop::at_end_of_turn(std::function<void()> act) {
  at_end_.push_back(std::move(act));
  want_end_of_turn();
}

void AsioLoop::will_flush(std::shared_ptr<Connection> connection) {
  to_flush_.push_back(std::move(connection));
  want_end_of_turn();
}

// What is posted now runs after everything that was ready when this turn began.
void AsioLoop::want_end_of_turn() {
  if (std::exchange(end_wanted_, true)) return;
  asio::post(context_, [this] { end_turn(); });
}

// What these ask for goes into the next turn, except that what the acts send still leaves in this.
void AsioLoop::end_turn() {
  for (const auto& act : std::exchange(at_end_, {})) act();
  for (const auto& connection : std::exchange(to_flush_, {})) connection->flush();
  end_wanted_ = false;
  if (!at_end_.empty() || !to_flush_.empty()) want_end_of_turn();
}

void AsioLoop::at(SteadyTime when, std::function<void()> act) {
  const auto added = appointments_.emplace(when, std::move(act));
  if (added == appointments_.begin()) arm();
}

void AsioLoop::arm() {
  alarm_.expires_at(appointments_.begin()->first);
  alarm_.async_wait([this](const boost::system::error_code& error) {
    if (!error) ring();
  });
}

void AsioLoop::ring() {
  const SteadyTime now = std::chrono::steady_clock::now();
  while (!appointments_.empty() && appointments_.begin()->first <= now) {
    auto due = appointments_.extract(appointments_.begin());
    due.mapped()();
  }
  if (!appointments_.empty()) arm();
}

void AsioLoop::add(const std::shared_ptr<Connection>& connection) {
  connections_.insert(connection);
  connection->start();
  if (draining_) connection->drain();
  if (!std::exchange(watching_, true)) watch_deadlines();
}

void AsioLoop::remove(const std::shared_ptr<Connection>& connection) {
  if (connections_.erase(connection) != 0) {
    counters_.open.fetch_sub(1);
  }
}

// A deadline is a field of its connection: setting one costs nothing, and one timer serves all.
void AsioLoop::watch_deadlines() {
  deadlines_.expires_after(kDeadlineGrain);
  deadlines_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    const SteadyTime now = std::chrono::steady_clock::now();
    const std::vector<std::shared_ptr<Connection>> all(connections_.begin(), connections_.end());
    for (const auto& connection : all) connection->check_deadline(now);
    watching_ = !connections_.empty();
    if (watching_) watch_deadlines();
  });
}

void AsioLoop::drain() {
  draining_ = true;
  const std::vector<std::shared_ptr<Connection>> all(connections_.begin(), connections_.end());
  for (const auto& connection : all) connection->drain();
}

void AsioLoop::cut_all() {
  const std::vector<std::shared_ptr<Connection>> all(connections_.begin(), connections_.end());
  for (const auto& connection : all) connection->cut();
}

}  // namespace hapax::net
