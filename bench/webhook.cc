// What the sender of webhooks costs: posts of 300 bytes to nginx, beside libcurl alone (the
// yardstick `deliver`), with as many at a time; and what dead endpoints cost the living ones. No
// store and no retry.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <sys/resource.h>

#include "deliver_limit.h"
#include "held_port.h"
#include "nginx.h"
#include "options.h"
#include "table.h"
#include "webhook/sender.h"

namespace {

namespace webhook = hapax::webhook;
using namespace hapax::bench;

using Url = std::function<std::string(std::uint64_t)>;

// Posts, as many at a time. Used on the sender's thread, but for per_second().
class Posts {
 public:
  Posts(Url url, std::uint64_t count, std::size_t width)
      : url_(std::move(url)), count_(count), width_(width) {
    webhook::SenderSettings settings;
    settings.limits.per_origin = width_;
    auto opened = webhook::Sender::open(std::move(settings));
    if (!opened) fail(opened.error().text());
    sender_ = std::move(*opened);
  }

  // Starts a request whose end does not matter.
  void start_beside(const std::string& url) {
    start(url, [](const webhook::SendReply&) {});
  }

  double per_second() {
    const auto begin = std::chrono::steady_clock::now();
    begun_ = std::min<std::uint64_t>(width_, count_);
    for (std::uint64_t i = 0; i < begun_; ++i) post(i);
    std::unique_lock lock(mutex_);
    finished_.wait(lock, [this] { return all_; });
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    sender_->stop(std::chrono::milliseconds(0));
    if (bad_ > 0) fail(std::to_string(bad_) + " posts failed: " + why_);
    return static_cast<double>(count_) / took.count();
  }

  // Called for each post that ended.
  std::function<void(std::uint64_t)> after;

 private:
  void start(std::string url, webhook::OnReply reply) {
    webhook::SendRequest request;
    request.url = std::move(url);
    request.guarded = false;
    request.headers = {{"Content-Type", "application/json"},
                       {"Idempotency-Key", "0123456789abcdef0123456789abcdef"}};
    request.body.assign(300, 'x');
    request.total_timeout = std::chrono::minutes(1);
    if (!sender_->start(std::move(request), std::move(reply))) fail("the sender has stopped");
  }
  void post(std::uint64_t number) {
    start(url_(number), [this](const webhook::SendReply& reply) { ended(reply); });
  }
  void ended(const webhook::SendReply& reply) {
    if (reply.status != 200) {
      ++bad_;
      why_ = reply.reason;
    }
    if (after) after(ended_);
    if (begun_ < count_) post(begun_++);
    if (++ended_ < count_) return;
    const std::scoped_lock lock(mutex_);
    all_ = true;
    finished_.notify_one();
  }

  Url url_;
  std::uint64_t count_;
  std::size_t width_;
  std::unique_ptr<webhook::Sender> sender_;
  std::atomic<std::uint64_t> begun_ = 0;
  std::uint64_t ended_ = 0;
  std::uint64_t bad_ = 0;
  std::string why_;
  std::mutex mutex_;
  std::condition_variable finished_;
  bool all_ = false;
};

constexpr std::size_t kWidth = 64;

void bench_posts(Table& table, const Options& options) {
  const Nginx nginx;
  const std::string url = "http://127.0.0.1:" + std::to_string(nginx.port) + "/";
  const auto count = static_cast<std::uint64_t>(options.seconds * 25'000);
  std::vector<double> limit;
  std::vector<double> ours;
  for (int round = 0; round < options.rounds; ++round) {
    if (const auto speed = deliver_limit(options.limit_dir, url, count, kWidth)) {
      limit.push_back(*speed);
    }
    ours.push_back(Posts([&](std::uint64_t) { return url; }, count, kWidth).per_second());
  }
  const std::string name = "posts of 300 bytes, 64 at a time";
  if (limit.empty()) {
    std::printf("yardstick skipped: no --limit-dir with the program `deliver`\n");
    table.figure(name, median(ours), "posts/s");
    return;
  }
  table.figure("yardstick limit/deliver", median(limit), "posts/s");
  table.ratio_at_least(name, median(ours), "posts/s", "limit/deliver", median(limit), 0.8);
}

// libcurl takes every name under localhost for this machine, and each for an origin of its own.
std::string endpoint(const char* kind, std::uint64_t number, std::uint16_t port) {
  return "http://" + std::string(kind) + std::to_string(number) +
         ".localhost:" + std::to_string(port) + "/";
}

// 5,000 endpoints that answer, alone and beside 2,500 that refuse and 2,500 that never answer.
void bench_endpoints(Table& table, const Options& options) {
  constexpr std::uint64_t kLiving = 5'000;
  constexpr std::uint64_t kDead = 2'500;
  const auto count = kLiving + static_cast<std::uint64_t>(options.seconds * 20'000);
  std::vector<double> alone;
  std::vector<double> beside;
  for (int round = 0; round < options.rounds; ++round) {
    for (std::vector<double>* speeds : {&alone, &beside}) {
      const Nginx nginx;
      const HeldPort refusing(false);
      const HeldPort silent(true);
      const Url url = [&](std::uint64_t i) { return endpoint("e", i % kLiving, nginx.port); };
      Posts posts(url, count, kWidth);
      if (speeds == &beside) {
        for (std::uint64_t i = 0; i < kDead; ++i) {
          posts.start_beside(endpoint("silent", i, silent.number));
        }
        posts.after = [&](std::uint64_t i) {
          if (i % 20 == 0) posts.start_beside(endpoint("no", i / 20 % kDead, refusing.number));
        };
      }
      speeds->push_back(posts.per_second());
    }
  }
  table.figure("5,000 endpoints, 64 posts at a time", median(alone), "posts/s");
  table.ratio_at_least("the same beside 2,500 that refuse and 2,500 that are silent",
                       median(beside), "posts/s", "without those", median(alone), 0.8);
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  if (!installed("nginx")) fail("no nginx");
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  Table table;
  if (options.wants("posts")) bench_posts(table, options);
  if (options.wants("endpoints")) bench_endpoints(table, options);
  return finish(table, options);
}
