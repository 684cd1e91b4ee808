// A log and its files in memory that several stores of one test share, and that can fail.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "journal/names.h"
#include "ports/files.h"
#include "ports/shared_log.h"

namespace hapax::shared {

struct MemoryPlace {
  std::mutex mutex;
  std::map<ports::LogPlace, ports::LogBatch> log;
  std::map<std::string, std::shared_ptr<std::string>, std::less<>> files;
  std::set<std::string, std::less<>> locks;
  std::uint64_t server = 1;              // counts those that served so far, one after the other
  std::function<void()> before_payload;  // runs before the next read of a segment, once
  std::string refused;                   // no file is made whose name begins so; empty: all are
  int before_refusing = 0;               // so many are made yet
  std::atomic<bool> held{false};         // files are not made before this is false
  std::atomic<bool> holds{false};        // somebody waits for that

  // What a database that fails over to a standby behind it does: it has no locks, and who wrote
  // through the connection that held one writes no more.
  void lose_last(std::size_t count) {
    const std::lock_guard lock(mutex);
    ++server;
    locks.clear();
    for (; count > 0 && !log.empty(); --count) log.erase(std::prev(log.end()));
  }
  void damage_last() {
    const std::lock_guard lock(mutex);
    log.rbegin()->second.bytes.back() ^= 1;
  }
  std::size_t batches() {
    const std::lock_guard lock(mutex);
    return log.size();
  }
};

// A process that dies at one of its steps: then that step, and nothing later, may have had its
// effect, and nobody hears of it.
class Life {
 public:
  enum class End : std::uint8_t { kBeforeStep, kAfterStep };

  void ends_at(int step, End end) {
    end_ = end;
    left_ = step;
  }
  [[nodiscard]] bool over() const { return left_ <= 0; }

  // Runs the step, if it still does.
  template <class Step>
  auto run(const Step& step) -> decltype(step()) {
    const int left = left_--;
    if (left > 1) return step();
    if (left == 1 && end_ == End::kAfterStep) ignore(step(), "nobody hears of it");
    return Error{Errc::kUnavailable, "this process is dead"};
  }

 private:
  std::atomic<int> left_ = std::numeric_limits<int>::max();
  End end_ = End::kBeforeStep;
};

class MemoryLog final : public ports::SharedLog {
 public:
  enum class Trouble : std::uint8_t { kNone, kAnswerLost, kNeverArrived, kDown, kFull, kNoHistory };

  explicit MemoryLog(MemoryPlace& place) : place_(place) {}

  // The next `times` appends end so; kDown is all calls until told otherwise, kNoHistory all that
  // read everything.
  void trouble(Trouble trouble, int times = 1) {
    const std::lock_guard lock(place_.mutex);
    trouble_ = trouble;
    times_ = times;
  }
  // Batches are read so many at once, that of the tip counted. As with a database, nobody can tell
  // from a full part whether more follows.
  void rows_at_once(std::size_t rows) {
    const std::lock_guard lock(place_.mutex);
    rows_at_once_ = rows;
  }
  // Runs before the next append, once: others were first.
  void before_append(std::function<void()> act) { before_append_ = std::move(act); }
  // Runs before each append and each reading of news, until another is given; while nothing runs.
  void always_before(std::function<void()> act) { always_before_ = std::move(act); }
  // Runs when the next append is done, once: its answer is on the way.
  void after_append(std::function<void()> act) { after_append_ = std::move(act); }

  [[nodiscard]] Life& life() { return life_; }

  Result<Put> append(const ports::LogTip& tip, const ports::LogBatch& batch) override {
    if (always_before_) always_before_();
    auto put = life_.run([&] { return append_now(tip, batch); });
    if (auto act = put ? std::exchange(after_append_, nullptr) : nullptr) act();
    return put;
  }
  Result<ports::LogPart> read_behind(const ports::LogTip& tip) override {
    if (always_before_) always_before_();
    return life_.run([&] { return read_behind_now(tip); });
  }
  Result<ports::LogPart> read_from(std::uint64_t lsn) override {
    return life_.run([&] { return read_from_now(lsn); });
  }

 private:
  Result<Put> append_now(const ports::LogTip& tip, const ports::LogBatch& batch) {
    if (auto act = std::exchange(before_append_, nullptr)) act();
    const std::lock_guard lock(place_.mutex);
    const Trouble now = times_ > 0 ? trouble_ : Trouble::kNone;
    const bool lasts = now == Trouble::kDown || now == Trouble::kNoHistory;
    if (!lasts && times_ > 0) --times_;
    if (now == Trouble::kDown) return down();
    if (now == Trouble::kFull) return Error{Errc::kNoSpace, "no space"};
    if (now == Trouble::kNeverArrived) return Error{Errc::kOutcomeUnknown, "the line broke"};
    const bool follows = tip.none || is_there(tip);
    const bool ends = place_.log.empty() || !(place_.log.rbegin()->first > tip.at);
    if (!follows || !ends || place_.log.contains(batch.at)) return Put::kNot;
    place_.log.emplace(batch.at, batch);
    if (now == Trouble::kAnswerLost) return Error{Errc::kOutcomeUnknown, "the line broke"};
    return Put::kDone;
  }

  Result<ports::LogPart> read_behind_now(const ports::LogTip& tip) {
    const std::lock_guard lock(place_.mutex);
    if (times_ > 0 && trouble_ == Trouble::kDown) return down();
    if (!tip.none && !is_there(tip)) return Error{Errc::kNotFound, "the tip is gone"};
    std::vector<ports::LogBatch> found;
    const std::size_t most = rows_at_once_ - (tip.none ? 0 : 1);
    for (const auto& [at, batch] : place_.log) {
      if (found.size() < most && (tip.none || at > tip.at)) found.push_back(batch);
    }
    const bool all = found.size() < most;
    return ports::LogPart{std::move(found), all};
  }

  Result<ports::LogPart> read_from_now(std::uint64_t lsn) {
    const std::lock_guard lock(place_.mutex);
    const bool lasts = trouble_ == Trouble::kDown || trouble_ == Trouble::kNoHistory;
    if (times_ > 0 && lasts) return down();
    std::vector<ports::LogBatch> found;
    for (const auto& [at, batch] : place_.log) {
      if (found.size() < rows_at_once_ && batch.last >= lsn) found.push_back(batch);
    }
    const bool all = found.size() < rows_at_once_;
    return ports::LogPart{std::move(found), all};
  }

  static Error down() { return Error{Errc::kUnavailable, "nobody answers"}; }
  [[nodiscard]] bool is_there(const ports::LogTip& tip) const {
    const auto found = place_.log.find(tip.at);
    return found != place_.log.end() && found->second.mark == tip.mark;
  }

  MemoryPlace& place_;
  Life life_;
  std::function<void()> before_append_;
  std::function<void()> always_before_;
  std::function<void()> after_append_;
  // Guarded by the place's mutex:
  Trouble trouble_ = Trouble::kNone;
  int times_ = 0;
  std::size_t rows_at_once_ = std::numeric_limits<std::size_t>::max();
};

class MemoryFile final : public ports::File {
 public:
  MemoryFile(MemoryPlace& place, Life& life, std::shared_ptr<std::string> bytes)
      : place_(place), life_(life), bytes_(std::move(bytes)) {}

  Result<std::size_t> write_at(std::uint64_t offset, std::string_view bytes) override {
    return life_.run([&]() -> Result<std::size_t> {
      const std::lock_guard lock(place_.mutex);
      if (bytes_->size() < offset + bytes.size()) bytes_->resize(offset + bytes.size());
      std::memcpy(bytes_->data() + offset, bytes.data(), bytes.size());
      return bytes.size();
    });
  }
  Result<std::size_t> read_at(std::uint64_t offset, std::span<char> into) const override {
    const std::lock_guard lock(place_.mutex);
    if (offset >= bytes_->size()) return 0;
    const std::size_t count = std::min<std::size_t>(into.size(), bytes_->size() - offset);
    std::memcpy(into.data(), bytes_->data() + offset, count);
    return count;
  }
  Status sync() override { return Ok{}; }
  Status truncate(std::uint64_t size) override {
    bytes_->resize(size);
    return Ok{};
  }
  [[nodiscard]] Result<std::uint64_t> size() const override { return bytes_->size(); }
  Status reserve(std::uint64_t) override { return Ok{}; }

 private:
  MemoryPlace& place_;
  Life& life_;
  const std::shared_ptr<std::string> bytes_;
};

class MemorySegment final : public ports::File {
 public:
  MemorySegment(MemoryPlace& place, std::uint32_t number) : place_(place), number_(number) {}

  Result<std::size_t> write_at(std::uint64_t, std::string_view) override { return no(); }
  Result<std::size_t> read_at(std::uint64_t offset, std::span<char> into) const override {
    if (auto act = taken_act()) act();
    const std::lock_guard lock(place_.mutex);
    const std::string all = bytes();
    return std::string_view(all)
        .substr(std::min<std::size_t>(offset, all.size()))
        .copy(into.data(), into.size());
  }
  Status sync() override { return Ok{}; }
  Status truncate(std::uint64_t) override { return no(); }
  [[nodiscard]] Result<std::uint64_t> size() const override {
    const std::lock_guard lock(place_.mutex);
    return bytes().size();
  }
  Status reserve(std::uint64_t) override { return Ok{}; }

 private:
  static Error no() { return Error{Errc::kIo, "segments are written by appends"}; }
  [[nodiscard]] std::function<void()> taken_act() const {
    const std::lock_guard lock(place_.mutex);
    return std::exchange(place_.before_payload, nullptr);
  }
  [[nodiscard]] std::string bytes() const {
    std::string all;
    for (const auto& [at, batch] : place_.log) {
      if (at.segment != number_) continue;
      all.resize(at.offset);
      all.append(batch.bytes);
    }
    return all;
  }

  MemoryPlace& place_;
  const std::uint32_t number_;
};

class MemoryFolder final : public ports::Folder {
 public:
  MemoryFolder(MemoryPlace& place, Life& life) : place_(place), life_(life) {}

  Result<std::unique_ptr<ports::File>> open(std::string_view name, ports::OpenMode mode) override {
    while (mode == ports::OpenMode::kCreate && place_.held) {
      place_.holds = true;
      std::this_thread::yield();
    }
    return life_.run([&] { return open_now(name, mode); });
  }
  Status rename(std::string_view from, std::string_view to) override {
    return life_.run([&] { return rename_now(from, to); });
  }
  Status remove(std::string_view name) override {
    return life_.run([&] { return remove_now(name); });
  }
  Status sync() override { return Ok{}; }
  Result<std::vector<std::string>> list() override {
    return life_.run([&] { return list_now(); });
  }
  Result<std::unique_ptr<ports::Lock>> lock(std::string_view name) override {
    return life_.run([&] { return lock_now(name); });
  }
  [[nodiscard]] std::string describe(std::string_view name) const override {
    return "memory " + std::string(name);
  }

 private:
  Result<std::unique_ptr<ports::File>> open_now(std::string_view name, ports::OpenMode mode) {
    const std::lock_guard lock(place_.mutex);
    if (const auto number = segment_number(name)) return segment(*number);
    const auto found = place_.files.find(name);
    if (mode == ports::OpenMode::kCreate) {
      HAPAX_CHECK(check_server());
      if (found != place_.files.end()) return Error{Errc::kIo, "it is there"};
      const bool meant = !place_.refused.empty() && name.starts_with(place_.refused);
      if (meant && place_.before_refusing-- <= 0) {
        return Error{Errc::kUnavailable, "not now"};
      }
      return file(place_.files.emplace(name, std::make_shared<std::string>()).first->second);
    }
    if (found == place_.files.end()) return Error{Errc::kNotFound, std::string(name)};
    return file(found->second);
  }
  Status rename_now(std::string_view from, std::string_view to) {
    const std::lock_guard lock(place_.mutex);
    HAPAX_CHECK(check_server());
    const auto found = place_.files.find(from);
    if (found == place_.files.end()) return Error{Errc::kNotFound, std::string(from)};
    place_.files[std::string(to)] = found->second;
    place_.files.erase(found);
    return Ok{};
  }
  Status remove_now(std::string_view name) {
    const std::lock_guard lock(place_.mutex);
    HAPAX_CHECK(check_server());
    if (const auto number = segment_number(name)) {
      std::erase_if(place_.log, [&](const auto& one) {
        return one.first.segment == *number && *number < place_.log.rbegin()->first.segment;
      });
      return Ok{};
    }
    if (place_.files.erase(std::string(name)) == 0) {
      return Error{Errc::kNotFound, std::string(name)};
    }
    return Ok{};
  }
  Result<std::vector<std::string>> list_now() {
    const std::lock_guard lock(place_.mutex);
    std::set<std::string> names;
    for (const auto& [name, bytes] : place_.files) names.insert(name);
    for (const auto& [at, batch] : place_.log) names.insert(journal::segment_name(at.segment));
    return std::vector<std::string>(names.begin(), names.end());
  }
  Result<std::unique_ptr<ports::Lock>> lock_now(std::string_view name) {
    const std::lock_guard lock(place_.mutex);
    if (!place_.locks.insert(std::string(name)).second) {
      return Error{Errc::kLocked, std::string(name)};
    }
    server_ = place_.server;
    return std::unique_ptr<ports::Lock>(std::make_unique<Held>(place_, std::string(name), server_));
  }
  struct Held final : ports::Lock {
    Held(MemoryPlace& of, std::string what, std::uint64_t by)
        : place(of), name(std::move(what)), server(by) {}
    ~Held() override {
      const std::lock_guard lock(place.mutex);
      if (place.server == server) place.locks.erase(name);
    }
    MemoryPlace& place;
    std::string name;
    const std::uint64_t server;
  };
  [[nodiscard]] Status check_server() const {
    if (server_ == place_.server) return Ok{};
    return Error{Errc::kUnavailable, "the connection that held the lock is lost"};
  }

  static std::optional<std::uint32_t> segment_number(std::string_view name) {
    const journal::FileName parsed = journal::parse_name(name);
    if (parsed.kind != journal::FileName::Kind::kSegment) return std::nullopt;
    return static_cast<std::uint32_t>(parsed.number);
  }
  Result<std::unique_ptr<ports::File>> segment(std::uint32_t number) {
    const auto in_it = [&](const auto& one) { return one.first.segment == number; };
    if (std::none_of(place_.log.begin(), place_.log.end(), in_it)) {
      return Error{Errc::kNotFound, "segment " + std::to_string(number)};
    }
    return std::unique_ptr<ports::File>(std::make_unique<MemorySegment>(place_, number));
  }
  std::unique_ptr<ports::File> file(std::shared_ptr<std::string> bytes) {
    return std::make_unique<MemoryFile>(place_, life_, std::move(bytes));
  }

  MemoryPlace& place_;
  Life& life_;
  std::uint64_t server_ = 0;  // that gave the latest lock; guarded by the place's mutex
};

}  // namespace hapax::shared
