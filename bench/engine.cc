// What the embedded store costs: throughput beside the yardstick programs of the same run, memory
// per remembered thing, growth, restart, latency. See docs/benchmarks.md.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <unistd.h>

#include <hapax/hapax.h>

#include "folder.h"
#include "table.h"

namespace {

namespace fs = std::filesystem;
using hapax::bench::fail;
using hapax::bench::Folder;
using hapax::bench::Table;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kBatch = 1000;
constexpr std::size_t kIdBytes = 36;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::unique_ptr<hapax::Store> open_store(const fs::path& folder,
                                         hapax::EmbeddedOptions options = {}) {
  options.memory_max = std::uint64_t{16} << 30;
  auto opened = hapax::open_embedded(folder / "store", options);
  if (!opened) fail(opened.error().text());
  return *std::move(opened);
}

void commit_one(hapax::Store& store, const hapax::Op& op) {
  const auto answer = store.commit({.ops = {&op, 1}});
  if (!answer) fail(answer.error().text());
  if (!answer->committed) fail("a commit was refused");
}

// The ids of the yardstick: 36 bytes, every fifth a repeat of the one before.
void write_id(std::uint64_t i, char* id) {
  const std::uint64_t key = i % 5 == 4 ? i - 1 : i;
  std::uint64_t spread = key * 0x9E3779B97F4A7C15ULL;
  constexpr std::string_view kBegin = "0190a1b2-0000-7000-";
  std::copy(kBegin.begin(), kBegin.end(), id);
  for (int q = 0; q < 16; ++q) id[19 + q] = "0123456789abcdef"[(spread >> (q * 4)) & 15];
  id[35] = 'x';
}

// One commit of up to kBatch operations with the memory its views refer to.
struct Batch {
  std::array<std::array<char, kIdBytes>, kBatch> ids;
  std::vector<hapax::Op> ops;
  std::string_view id(std::size_t i) const { return {ids[i].data(), kIdBytes}; }
};

using Fill = std::function<void(Batch&, std::uint64_t first, std::uint64_t count)>;

// Keeps `depth` commits under way; the next one is filled while the disk works on the last.
class Pipeline {
 public:
  Pipeline(hapax::Store& store, hapax::Mode mode, std::size_t depth)
      : store_(store), mode_(mode), slots_(depth), free_(depth) {
    for (std::size_t i = 0; i < depth; ++i) free_[i] = i;
  }

  // Answers the seconds it took.
  double run(std::uint64_t first, std::uint64_t count, const Fill& fill) {
    const auto start = Clock::now();
    for (std::uint64_t at = 0; at < count; at += kBatch) {
      const std::size_t slot = take();
      slots_[slot].ops.clear();
      fill(slots_[slot], first + at, std::min<std::uint64_t>(kBatch, count - at));
      const hapax::Commit commit{.ops = slots_[slot].ops, .mode = mode_};
      store_.submit(commit, [this, slot](const hapax::Result<hapax::Answer>& answer) {
        if (!answer) fail(answer.error().text());
        if (!answer->committed) fail("a commit was refused");
        const std::lock_guard lock(mutex_);
        free_.push_back(slot);
        wake_.notify_one();
      });
    }
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return free_.size() == slots_.size(); });
    return seconds_since(start);
  }

 private:
  std::size_t take() {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return !free_.empty(); });
    const std::size_t slot = free_.front();
    free_.pop_front();
    return slot;
  }

  hapax::Store& store_;
  const hapax::Mode mode_;
  std::vector<Batch> slots_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::size_t> free_;
};

const std::string kPayload(100, 'x');

void fill_appends(Batch& batch, std::uint64_t first, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    write_id(first + i, batch.ids[i].data());
    batch.ops.emplace_back(hapax::Append{.stream = "s", .payload = kPayload, .id = batch.id(i)});
  }
}

// A repeated claim finds the first one in progress: that is an answer of its own, not a refusal.
void fill_claims(Batch& batch, std::uint64_t first, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    write_id(first + i, batch.ids[i].data());
    batch.ops.emplace_back(
        hapax::Claim{.scope = "s", .key = batch.id(i), .content = kPayload, .owner = "bench"});
  }
}

void make_stream(hapax::Store& store, const char* name = "s") {
  commit_one(store, hapax::CreateStream{.stream = name});
}

double appends_per_second(std::uint64_t count, hapax::Mode mode) {
  const Folder scratch;
  const auto store = open_store(scratch.path());
  make_stream(*store);
  Pipeline pipeline(*store, mode, 2);
  return static_cast<double>(count) / pipeline.run(0, count, fill_appends);
}

double claims_per_second(std::uint64_t count) {
  const Folder scratch;
  const auto store = open_store(scratch.path());
  Pipeline pipeline(*store, hapax::Mode::kEach, 2);
  return static_cast<double>(count) / pipeline.run(0, count, fill_claims);
}

// Receives a thousand, then commits a thousand appends and a thousand acks, until nothing is left.
std::uint64_t transform_all(hapax::Store& store) {
  std::uint64_t done = 0;
  std::vector<hapax::Op> ops;
  for (;;) {
    const hapax::Op receive = hapax::Receive{.stream = "s", .consumer = "c", .max = kBatch};
    const auto received = store.commit({.ops = {&receive, 1}});
    if (!received) fail(received.error().text());
    const auto& deliveries = std::get<hapax::Received>(received->verdicts[0]).deliveries;
    if (deliveries.empty()) return done;
    ops.clear();
    for (const hapax::Delivery& delivery : deliveries) {
      ops.emplace_back(hapax::Append{
          .stream = "out", .payload = delivery.record.payload, .id = delivery.record.id});
    }
    for (const hapax::Delivery& delivery : deliveries) {
      ops.emplace_back(hapax::Ack{
          .stream = "s", .consumer = "c", .receipt = {delivery.record.sequence, delivery.token}});
    }
    const auto answer = store.commit({.ops = ops});
    if (!answer) fail(answer.error().text());
    if (!answer->committed) fail("consume-transform-produce was refused");
    done += deliveries.size();
  }
}

// Four workers: while some wait for the disk, others read and build.
double consume_transform_produce(std::uint64_t count) {
  const Folder scratch;
  const auto store = open_store(scratch.path());
  make_stream(*store);
  make_stream(*store, "out");
  Pipeline(*store, hapax::Mode::kEach, 2).run(0, count, fill_appends);
  const auto start = Clock::now();
  std::atomic<std::uint64_t> done = 0;
  std::vector<std::thread> workers(4);
  for (std::thread& worker : workers) {
    worker = std::thread([&] { done += transform_all(*store); });
  }
  for (std::thread& worker : workers) worker.join();
  return static_cast<double>(done) / seconds_since(start);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::uint64_t resident_bytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  unsigned long long total = 0;
  unsigned long long resident = 0;
  if (file == nullptr || std::fscanf(file, "%llu %llu", &total, &resident) != 2) fail("statm");
  std::fclose(file);
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

// --- the yardstick -------------------------------------------------------------------------------

std::optional<double> yardstick(const std::string& limit_dir, std::uint64_t count) {
  const fs::path program = fs::path(limit_dir) / "journal";
  if (limit_dir.empty() || !fs::exists(program)) return std::nullopt;
  const Folder scratch;
  const std::string command = "cd '" + scratch.path() + "' && '" + fs::absolute(program).string() +
                              "' " + std::to_string(count) + " 1000 1";
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) fail("cannot run the yardstick");
  std::string text;
  std::array<char, 512> buffer{};
  while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) text += buffer.data();
  ::pclose(pipe);
  const std::size_t colon = text.find(": ");
  if (colon == std::string::npos) fail("the yardstick answered '" + text + "'");
  return std::strtod(text.c_str() + colon + 2, nullptr);
}

// --- the parts -----------------------------------------------------------------------------------

// Yardstick and store by turns, so that what disturbs one disturbs the other.
void bench_throughput(Table& table, const std::string& limit_dir, std::uint64_t count, int rounds) {
  std::vector<double> limit;
  std::vector<double> each;
  std::vector<double> atomic;
  std::vector<double> claims;
  std::vector<double> transform;
  for (int round = 0; round < rounds; ++round) {
    if (const auto speed = yardstick(limit_dir, count)) limit.push_back(*speed);
    each.push_back(appends_per_second(count, hapax::Mode::kEach));
    atomic.push_back(appends_per_second(count, hapax::Mode::kAtomic));
    claims.push_back(claims_per_second(count));
    transform.push_back(consume_transform_produce(count / 2));
  }
  const double appends = median(each);
  if (limit.empty()) {
    std::printf("yardstick skipped: no --limit-dir with the program `journal`\n");
    table.figure("append + dedup, batches of 1,000", appends, "records/s");
    table.figure("claims, batches of 1,000", median(claims), "claims/s");
  } else {
    table.figure("yardstick limit/journal", median(limit), "records/s");
    table.ratio_at_least("append + dedup, batches of 1,000", appends, "records/s", "limit/journal",
                         median(limit), 0.6);
    table.ratio_at_least("claims, batches of 1,000", median(claims), "claims/s", "limit/journal",
                         median(limit), 0.6);
  }
  table.ratio_at_most("one atomic commit of 1,000, time per record", 1e9 / median(atomic), "ns",
                      "each on its own", 1e9 / appends, 1.03);
  table.ratio_at_least("consume-transform-produce, 1,000 + 1,000", median(transform), "records/s",
                       "plain appends", appends, 0.35);
}

void bench_growth(Table& table, std::uint64_t ids) {
  const Folder scratch;
  hapax::EmbeddedOptions options;
  options.log = [](const std::string&) {};
  auto store = open_store(scratch.path(), options);
  hapax::StreamSettings settings;
  settings.retention.count = 1000;  // ids outlive their records
  commit_one(*store, hapax::CreateStream{.stream = "s", .settings = settings});
  Pipeline pipeline(*store, hapax::Mode::kEach, 2);
  const std::uint64_t warm = 125'000;  // 100,000 ids, as every fifth is a repeat
  pipeline.run(0, warm, fill_appends);
  std::uint64_t at = warm;
  // The quickest of some runs: the disk's bad moments are not what is compared.
  const auto quickest = [&] {
    double best = 1e9;
    for (int run = 0; run < 4; ++run, at += warm) {
      best = std::min(best, pipeline.run(at, warm, fill_appends) / static_cast<double>(warm));
    }
    return best;
  };
  const double small = quickest();
  const std::uint64_t before = resident_bytes();
  const std::uint64_t ids_before = at * 4 / 5;
  const std::uint64_t count = ids * 5 / 4;
  for (; at < count; at += warm) pipeline.run(at, std::min(warm, count - at), fill_appends);
  const double bytes = static_cast<double>(resident_bytes() - before);
  table.at_most("memory per remembered message id", bytes / static_cast<double>(ids - ids_before),
                "B", 64);
  const double large = quickest();
  table.ratio_at_most("time per append at " + std::to_string(ids / 1'000'000) + " M ids",
                      large * 1e9, "ns", "at 100 k ids", small * 1e9, 1.5);

  store.reset();
  const auto start = Clock::now();
  store = open_store(scratch.path(), options);
  const double took = seconds_since(start);
  const auto stats = store->statistics();
  if (!stats || stats->ids < ids) fail("ids were lost over the restart");
  table.at_most("restart with " + std::to_string(ids / 1'000'000) + " M ids", took, "s", 5);
}

void fill_settles(Batch& batch, std::uint64_t first, std::uint64_t count,
                  const std::vector<hapax::Fence>& fences) {
  for (std::uint64_t i = 0; i < count; ++i) {
    write_id((first + i) * 5, batch.ids[i].data());
    batch.ops.emplace_back(
        hapax::Settle{.scope = "s", .key = batch.id(i), .fence = fences[i], .result = {}});
  }
}

void bench_claim_memory(Table& table, std::uint64_t claims) {
  const Folder scratch;
  hapax::EmbeddedOptions options;
  options.log = [](const std::string&) {};
  const auto store = open_store(scratch.path(), options);
  auto batch = std::make_unique<Batch>();
  std::vector<hapax::Fence> fences(kBatch);
  const auto settle_all = [&](std::uint64_t first, std::uint64_t count) {
    for (std::uint64_t at = first; at < first + count; at += kBatch) {
      batch->ops.clear();
      for (std::uint64_t i = 0; i < kBatch; ++i) {
        write_id((at + i) * 5, batch->ids[i].data());
        batch->ops.emplace_back(hapax::Claim{.scope = "s", .key = batch->id(i), .owner = "bench"});
      }
      const auto claimed = store->commit({.ops = batch->ops});
      if (!claimed || !claimed->committed) fail("claims were refused");
      for (std::size_t i = 0; i < kBatch; ++i) {
        fences[i] = std::get<hapax::Claimed>(claimed->verdicts[i]).fence;
      }
      batch->ops.clear();
      fill_settles(*batch, at, kBatch, fences);
      const auto settled = store->commit({.ops = batch->ops});
      if (!settled || !settled->committed) fail("settles were refused");
    }
  };
  settle_all(0, 100'000);
  const std::uint64_t before = resident_bytes();
  settle_all(100'000, claims);
  const double bytes = static_cast<double>(resident_bytes() - before);
  table.at_most("memory per settled claim", bytes / static_cast<double>(claims), "B", 96);
}

// --- latency -------------------------------------------------------------------------------------

struct Latencies {
  double p50 = 0;
  double p99 = 0;
  double p999 = 0;
};

Latencies percentiles(std::vector<double>& micros) {
  std::sort(micros.begin(), micros.end());
  const auto at = [&](double share) {
    return micros[std::min(micros.size() - 1,
                           static_cast<std::size_t>(share * static_cast<double>(micros.size())))];
  };
  return {at(0.5), at(0.99), at(0.999)};
}

// Single appends by so many committers at once, for a while.
Latencies measure_commits(hapax::Store& store, std::size_t committers, double for_seconds,
                          std::atomic<std::uint64_t>& next) {
  std::mutex mutex;
  std::vector<double> all;
  std::vector<std::thread> threads;
  const auto end = Clock::now() + std::chrono::duration<double>(for_seconds);
  for (std::size_t t = 0; t < committers; ++t) {
    threads.emplace_back([&] {
      std::vector<double> mine;
      std::array<char, kIdBytes> id{};
      while (Clock::now() < end) {
        write_id(next.fetch_add(1) * 5, id.data());
        const hapax::Op op = hapax::Append{
            .stream = "s", .payload = kPayload, .id = std::string_view(id.data(), id.size())};
        const auto start = Clock::now();
        const auto answer = store.commit({.ops = {&op, 1}});
        if (!answer || !answer->committed) fail("an append was refused");
        mine.push_back(seconds_since(start) * 1e6);
      }
      const std::lock_guard lock(mutex);
      all.insert(all.end(), mine.begin(), mine.end());
    });
  }
  for (std::thread& thread : threads) thread.join();
  return percentiles(all);
}

void bench_latency(Table& table) {
  for (const std::size_t committers : {std::size_t{1}, std::size_t{16}, std::size_t{256}}) {
    const Folder scratch;
    const auto store = open_store(scratch.path());
    make_stream(*store);
    std::atomic<std::uint64_t> next{0};
    const Latencies found = measure_commits(*store, committers, 2.0, next);
    const std::string who = "commit latency, " + std::to_string(committers) + " committers, ";
    table.figure(who + "rate", static_cast<double>(next.load()) / 2.0, "commits/s");
    table.figure(who + "p50", found.p50, "us");
    table.figure(who + "p99", found.p99, "us");
    table.figure(who + "p99.9", found.p999, "us");
  }
}

// A million ids whose windows end within one second, while single commits are measured.
void bench_expiry(Table& table, std::uint64_t ids) {
  const Folder scratch;
  const auto store = open_store(scratch.path());
  hapax::StreamSettings settings;
  settings.retention.count = 1000;
  commit_one(*store, hapax::CreateStream{.stream = "s", .settings = settings});
  std::atomic<std::uint64_t> next{std::uint64_t{1} << 40};
  const Latencies idle = measure_commits(*store, 4, 3.0, next);
  settings.window = hapax::Window{std::chrono::seconds{4}};
  commit_one(*store, hapax::CreateStream{.stream = "short", .settings = settings});
  const auto fill = [](Batch& batch, std::uint64_t first, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      write_id((first + i) * 5, batch.ids[i].data());
      batch.ops.emplace_back(hapax::Append{.stream = "short", .payload = "x", .id = batch.id(i)});
    }
  };
  const double took = Pipeline(*store, hapax::Mode::kEach, 2).run(0, ids, fill);
  table.figure("expiry storm: seconds to accept the ids", took, "s");
  const Latencies storm = measure_commits(*store, 4, 6.0, next);
  table.ratio_at_most("commit p99 while 1 M ids expire", storm.p99, "us", "idle p99", idle.p99, 3);
}

void bench_snapshots(Table& table) {
  const auto measure = [](std::uint64_t every) {
    const Folder scratch;
    hapax::EmbeddedOptions options;
    options.log = [](const std::string&) {};
    options.segment_bytes = std::uint64_t{32} << 20;
    options.snapshot_every_bytes = every;
    const auto store = open_store(scratch.path(), options);
    hapax::StreamSettings settings;
    settings.retention.count = 10'000;
    commit_one(*store, hapax::CreateStream{.stream = "s", .settings = settings});
    Pipeline(*store, hapax::Mode::kEach, 2).run(0, 1'000'000, fill_appends);
    std::atomic<std::uint64_t> next{std::uint64_t{1} << 40};
    return measure_commits(*store, 16, 4.0, next);
  };
  const Latencies without = measure(std::uint64_t{1} << 40);
  const Latencies with = measure(std::uint64_t{4} << 20);
  table.figure("commit p99, 16 committers, no snapshots", without.p99, "us");
  table.figure("commit p99, 16 committers, snapshot every 4 MiB", with.p99, "us");
}

struct Options {
  std::string json;
  std::string limit_dir;
  std::string only;
  bool quick = false;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const auto value = [&]() -> std::string {
      if (i + 1 >= argc) fail(std::string(word) + " needs a value");
      return argv[++i];
    };
    if (word == "--json")
      options.json = value();
    else if (word == "--limit-dir")
      options.limit_dir = value();
    else if (word == "--only")
      options.only = value();
    else if (word == "--quick")
      options.quick = true;
    else
      fail("unknown argument '" + std::string(word) +
           "'; known: --json FILE, --limit-dir DIR, --only PART, --quick");
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  const std::uint64_t scale = options.quick ? 10 : 1;
  Table table;
  const auto wanted = [&](std::string_view part) {
    return options.only.empty() || options.only == part;
  };
  if (wanted("throughput"))
    bench_throughput(table, options.limit_dir, 1'000'000 / scale, options.quick ? 9 : 5);
  if (wanted("latency")) bench_latency(table);
  if (wanted("snapshots")) bench_snapshots(table);
  if (wanted("expiry")) bench_expiry(table, 1'000'000 / scale);
  if (wanted("growth")) bench_growth(table, 10'000'000 / scale);
  if (wanted("claims")) bench_claim_memory(table, 10'000'000 / scale);
  if (!options.json.empty() && !table.write_json(options.json))
    fail("cannot write " + options.json);
  return table.all_ok() ? 0 : 1;
}
