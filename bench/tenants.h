// Many workers of many tenants over many remembered ids, most of which come again: the scale that
// backend teams write into their requirements. Known ids are answered from memory, new ones are
// durable before they are.
#pragma once

#include <array>
#include <deque>
#include <memory>

#include <sys/epoll.h>
#include <sys/prctl.h>

#include "served.h"
#include "table.h"

namespace hapax::bench {

// What the workers say to a server.
struct Language {
  Stamped check;  // whether an id is known
  // In each answer once. Behind it is the length of the word: 5 is "fresh", 9 is "duplicate".
  std::string_view mark;
  bool tells_apart = true;
};

inline const Language& to_hapax() {
  static const Language language{Stamped([](const std::string& id) {
                                   return resp({"HX.APPEND", "jobs", "{}", "ID", id});
                                 }),
                                 "verdict\r\n$"};
  return language;
}

// A look-up that stores nothing and finds nothing: what the machine takes for a question and an
// answer.
inline const Language& to_redis() {
  static const Language language{Stamped([](const std::string& id) {
                                   return resp({"GET", id});
                                 }),
                                 "$-1\r", false};
  return language;
}

class Workers {
 public:
  static constexpr std::uint64_t kTenants = 10;
  static constexpr std::uint64_t kWorkers = 100;
  static constexpr std::uint64_t kIds = 1'000'000;
  static constexpr std::uint64_t kNewOneIn = 20;  // 95 % come again

  Workers(std::uint16_t port, const Language& language)
      : language_(language), set_(::epoll_create1(EPOLL_CLOEXEC)) {
    for (std::uint64_t i = 0; i < kWorkers; ++i) {
      Worker& worker = workers_.emplace_back(port, i % kTenants);
      epoll_event event{.events = EPOLLIN, .data = {.u64 = i}};
      ::epoll_ctl(set_, EPOLL_CTL_ADD, worker.wire.socket(), &event);
    }
  }
  ~Workers() { ::close(set_); }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  void sign_in(const std::vector<std::string>& tokens) {
    for (std::uint64_t i = 0; i < kWorkers; ++i) {
      Wire& wire = workers_[i].wire;
      wire.send(resp({"AUTH", tokens[i % kTenants]}));
      wire.receive();
      if (i >= kTenants) continue;
      wire.send(resp({"HX.CREATE_STREAM", "jobs"}));
      wire.receive();
    }
  }

  // Each tenant remembers its share of the ids: number i is of tenant i modulo kTenants.
  void fill() {
    fresh_ = 0;
    while (fresh_ < kIds) {
      for (int n = 0; n < 100; ++n) {
        for (std::uint64_t i = 0; i < kTenants; ++i) ask(workers_[i], fresh_++, Clock::now());
      }
      for (std::uint64_t i = 0; i < kTenants; ++i) flush(workers_[i]);
      while (under_way_ > 5'000) hear();
    }
    while (under_way_ != 0) hear();
  }

  // As many as come back, with `window` under way for each worker.
  double rate(std::uint64_t window, double seconds) {
    const auto start = Clock::now();
    const auto end = start + std::chrono::duration<double>(seconds);
    heard_ = 0;
    while (Clock::now() < end) {
      for (Worker& worker : workers_) {
        while (worker.asked.size() < window) ask_next(worker, Clock::now());
        flush(worker);
      }
      hear();
    }
    const double rate =
        static_cast<double>(heard_) / std::chrono::duration<double>(Clock::now() - start).count();
    while (under_way_ != 0) hear();
    return rate;
  }

  // So many a second, each measured from when it was due. Milliseconds, known and new ids apart.
  std::array<std::vector<double>, 2> latencies(double per_second, double seconds) {
    for (auto& times : times_) times.clear();
    ::prctl(PR_SET_TIMERSLACK, 1);  // nanoseconds; else it wakes up to 50 µs late
    const auto start = Clock::now();
    const auto count = static_cast<std::uint64_t>(per_second * seconds);
    for (std::uint64_t i = 0; i < count;) {
      const auto due =
          start + std::chrono::duration_cast<Clock::duration>(
                      std::chrono::duration<double>(static_cast<double>(i) / per_second));
      // Not by looking all the time: a client that never sleeps takes a processor from the server.
      if (const auto wait = due - Clock::now(); wait > Clock::duration{0}) {
        hear(wait);
        continue;
      }
      Worker& worker = workers_[i++ % kWorkers];
      ask_next(worker, due);
      flush(worker);
    }
    while (under_way_ != 0) hear();
    return times_;
  }

 private:
  struct Asked {
    Clock::time_point due;
    bool fresh;
  };
  struct Worker {
    Worker(std::uint16_t port, std::uint64_t of) : wire(port), tenant(of) {}
    Wire wire;
    std::uint64_t tenant;
    std::string out;
    std::string rest;
    std::deque<Asked> asked;
  };

  void ask_next(Worker& worker, Clock::time_point due) {
    const bool fresh = ++asked_ % kNewOneIn == 0;
    const std::uint64_t known = asked_ * 7'919 % (kIds / kTenants) * kTenants + worker.tenant;
    ask(worker, fresh ? fresh_++ : known, due, fresh);
  }
  void ask(Worker& worker, std::uint64_t id, Clock::time_point due, bool fresh = true) {
    language_.check(worker.out, id);
    worker.asked.push_back({due, fresh});
    ++under_way_;
  }
  static void flush(Worker& worker) {
    if (!worker.out.empty()) worker.wire.send(worker.out);
    worker.out.clear();
  }

  void hear(std::chrono::nanoseconds at_most = std::chrono::seconds{1}) {
    std::array<epoll_event, kWorkers> ready{};
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(at_most);
    const timespec time{seconds.count(), (at_most - seconds).count()};
    const int count = ::epoll_pwait2(set_, ready.data(), kWorkers, &time, nullptr);
    for (int i = 0; i < count; ++i) hear_one(workers_[ready[static_cast<std::size_t>(i)].data.u64]);
  }
  void hear_one(Worker& worker) {
    const std::string_view mark = language_.mark;
    worker.rest += worker.wire.receive();
    const auto now = Clock::now();
    std::size_t end = 0;
    for (std::size_t at = 0; (at = worker.rest.find(mark, end)) != std::string::npos;) {
      if (at + mark.size() == worker.rest.size()) break;
      end = at + mark.size() + 1;
      const Asked& asked = worker.asked.front();
      const char word = worker.rest[end - 1];
      if (language_.tells_apart && word != (asked.fresh ? '5' : '9'))
        fail("another verdict was expected");
      times_[asked.fresh ? 1 : 0].push_back(
          std::chrono::duration<double, std::milli>(now - asked.due).count());
      worker.asked.pop_front();
      --under_way_;
      ++heard_;
    }
    const std::size_t rest = worker.rest.size() - end;
    worker.rest.erase(0, worker.rest.size() - std::min(rest, mark.size()));
  }

  const Language& language_;
  int set_;
  std::deque<Worker> workers_;
  std::uint64_t fresh_ = 0;
  std::uint64_t asked_ = 0;
  std::uint64_t heard_ = 0;
  std::uint64_t under_way_ = 0;
  std::array<std::vector<double>, 2> times_;
};

inline double percentile(std::vector<double> values, double share) {
  if (values.empty()) fail("nothing was measured");
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

// Ten times what one instance is usually asked for: 10,000 checks a second, a known id within 5 ms,
// a new one within 10 ms, 1 KB of memory each.
inline void bench_tenants(Table& table, const Options& options) {
  std::vector<std::string> tokens;
  const auto configure = [&](const Folder& folder) {
    const std::string file = folder.path("tokens");
    for (std::uint64_t i = 0; i < Workers::kTenants; ++i) {
      std::string token = output_of(options.hapax + " token make --roles produce admin --tenant t" +
                                    std::to_string(i) + " --file " + file);
      while (token.ends_with('\n')) token.pop_back();
      tokens.push_back(std::move(token));
    }
    return "auth: {tokens_file: " + file + "}\n";
  };
  const Hapax hapax(options, configure);
  const std::uint64_t before = hapax.server.resident_bytes();
  Workers workers(hapax.resp, to_hapax());
  workers.sign_in(tokens);
  workers.fill();
  const auto grown = static_cast<double>(hapax.server.resident_bytes() - before);
  const std::string name = "1 M ids, 100 workers, 10 tenants: ";
  table.at_most(name + "memory of one id", grown / static_cast<double>(Workers::kIds), "B", 100);
  table.ratio_at_least(name + "checks, 10 under way each", workers.rate(10, options.seconds), "/s",
                       "10,000/s", 10'000, 10);
  const auto [known, fresh] = workers.latencies(10'000, options.seconds);
  table.figure(name + "known id at 10,000/s, p50", percentile(known, 0.5), "ms");
  table.at_most(name + "known id at 10,000/s, p99", percentile(known, 0.99), "ms", 0.5);
  table.figure(name + "new id at 10,000/s, p50", percentile(fresh, 0.5), "ms");
  table.at_most(name + "new id at 10,000/s, p99", percentile(fresh, 0.99), "ms", 1);
}

// The same workers at the same pace, and a server that neither stores nor finds anything: what of
// these times is the machine's.
inline void bench_pace(Table& table, std::uint16_t redis, const Options& options) {
  const auto [looked, also] = Workers(redis, to_redis()).latencies(10'000, options.seconds);
  const std::string name = "100 workers, Redis GET of nothing at 10,000/s, ";
  table.figure(name + "p50", percentile(looked, 0.5), "ms");
  table.figure(name + "p99", percentile(looked, 0.99), "ms");
}

}  // namespace hapax::bench
