// How many records per second jq transforms, with two workers and one caller that keeps a window of
// records in the pool; and how long one record takes when nothing else is there.
//   hapax_bench_transform [--json FILE]
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <mutex>
#include <string>
#include <vector>

#include "table.h"
#include "transform/pool.h"

namespace hapax::bench {
namespace {

using transform::Compiled;
using transform::ProgramId;
using transform::TransformOutcome;
using transform::TransformPool;
using transform::TransformText;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kWindow = 4'000;
constexpr auto kSeconds = std::chrono::seconds{3};
constexpr Time kTime = time_from_ms(1'700'000'000'000);
constexpr const char* kInput =
    R"({"id":"o-1234567","customer":"c-42","status":"paid","total":129.95,"currency":"EUR",)"
    R"("lines":[{"sku":"A-1","n":2,"price":49.95},{"sku":"B-2","n":1,"price":30.05}]})";

ProgramId compile(TransformPool& pool, TransformText text) {
  std::promise<ProgramId> made;
  const auto done = [&](Result<Compiled> compiled) {
    made.set_value(std::get<ProgramId>(std::move(compiled).value()));
  };
  if (!pool.compile(std::move(text), done)) std::abort();
  return made.get_future().get();
}

// Lets a caller have so many records in the pool at once.
class Window {
 public:
  void enter() {
    std::unique_lock lock(mutex_);
    left_.wait(lock, [&] { return inside_ < kWindow; });
    ++inside_;
  }
  void leave(const Result<TransformOutcome>& outcome) {
    if (!outcome || std::holds_alternative<transform::TransformFailed>(*outcome)) std::abort();
    const std::lock_guard lock(mutex_);
    ++done_;
    // Woken when half is free: a caller that is woken by each record measures the waking.
    if (--inside_ == kWindow / 2 || inside_ == 0) left_.notify_all();
  }
  std::size_t drain() {
    std::unique_lock lock(mutex_);
    left_.wait(lock, [&] { return inside_ == 0; });
    return done_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable left_;
  std::size_t inside_ = 0;
  std::size_t done_ = 0;
};

void measure_rate(Table& table, TransformPool& pool, const std::string& name, TransformText text) {
  const ProgramId program = compile(pool, std::move(text));
  Window window;
  const auto begin = Clock::now();
  while (Clock::now() < begin + kSeconds) {
    window.enter();
    const auto done = [&](const Result<TransformOutcome>& outcome) { window.leave(outcome); };
    if (!pool.run(program, kInput, kTime, done)) std::abort();
  }
  const auto count = static_cast<double>(window.drain());
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  table.figure(name, count / seconds, "records/s");
}

void measure_latency(Table& table, TransformPool& pool) {
  const ProgramId program = compile(pool, {.main = "{id}"});
  std::vector<double> spans;
  for (int i = 0; i < 3'000; ++i) {
    std::promise<void> ran;
    const auto begin = Clock::now();
    const auto done = [&](const Result<TransformOutcome>&) { ran.set_value(); };
    if (!pool.run(program, kInput, kTime, done)) std::abort();
    ran.get_future().wait();
    spans.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  }
  std::sort(spans.begin(), spans.end());
  table.figure("one record alone, median", spans[spans.size() / 2], "us");
  table.figure("one record alone, p99", spans[spans.size() * 99 / 100], "us");
}

}  // namespace
}  // namespace hapax::bench

int main(int argc, char** argv) {
  using namespace hapax::bench;
  Table table;
  auto pool = hapax::transform::TransformPool::start({.workers = 2}).value();
  measure_rate(table, *pool, "., the record as it is", {.main = "."});
  measure_rate(table, *pool, "{id, total}", {.main = "{id, total}"});
  measure_rate(table, *pool, "select(.total > 1000), nothing comes out",
               {.main = "select(.total > 1000)"});
  measure_rate(table, *pool, "fan out in two, with event type and key",
               {.main = ".lines[] | {sku, sum: (.n * .price)}",
                .event_type = "\"line.\" + $input.status",
                .key = ".sku"});
  measure_latency(table, *pool);
  if (argc == 3 && std::strcmp(argv[1], "--json") == 0 && !table.write_json(argv[2])) return 1;
  return table.all_ok() ? 0 : 1;
}
