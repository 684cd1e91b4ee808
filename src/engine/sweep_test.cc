// The sweep for retention goes on in slices, beside the batches of others.
#include <atomic>
#include <chrono>
#include <functional>
#include <latch>
#include <memory>
#include <optional>
#include <semaphore>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engine/embedded_store.h"
#include "engine/rig_test.h"

namespace hapax::engine {
namespace {

constexpr std::size_t kLarge = std::size_t{7} << 20;

struct Hooks {
  std::function<void()> sync;
  std::function<void(std::size_t)> read;
};

// Waits outside of the disk's own lock: others read while a sync is held.
class HookedFile final : public ports::File {
 public:
  HookedFile(std::unique_ptr<ports::File> file, const Hooks& hooks)
      : file_(std::move(file)), hooks_(hooks) {}

  Result<std::size_t> write_at(std::uint64_t offset, std::string_view bytes) override {
    return file_->write_at(offset, bytes);
  }
  Result<std::size_t> read_at(std::uint64_t offset, std::span<char> into) const override {
    hooks_.read(into.size());
    return file_->read_at(offset, into);
  }
  Status sync() override {
    hooks_.sync();
    return file_->sync();
  }
  Status truncate(std::uint64_t size) override { return file_->truncate(size); }
  [[nodiscard]] Result<std::uint64_t> size() const override { return file_->size(); }
  Status reserve(std::uint64_t size) override { return file_->reserve(size); }

 private:
  const std::unique_ptr<ports::File> file_;
  const Hooks& hooks_;
};

class HookedFolder final : public ports::Folder {
 public:
  HookedFolder(ports::Folder& folder, Hooks hooks) : folder_(folder), hooks_(std::move(hooks)) {}

  Result<std::unique_ptr<ports::File>> open(std::string_view name, ports::OpenMode mode) override {
    HAPAX_TRY(std::unique_ptr<ports::File> file, folder_.open(name, mode));
    if (!name.starts_with("journal-")) return file;
    return std::unique_ptr<ports::File>(std::make_unique<HookedFile>(std::move(file), hooks_));
  }
  Status rename(std::string_view from, std::string_view to) override {
    return folder_.rename(from, to);
  }
  Status remove(std::string_view name) override { return folder_.remove(name); }
  Status sync() override { return folder_.sync(); }
  Result<std::vector<std::string>> list() override { return folder_.list(); }
  Result<std::unique_ptr<ports::Lock>> lock(std::string_view name) override {
    return folder_.lock(name);
  }
  [[nodiscard]] std::string describe(std::string_view name) const override {
    return folder_.describe(name);
  }

 private:
  ports::Folder& folder_;
  const Hooks hooks_;
};

class SweepTest : public EngineRig {
 protected:
  static constexpr int kStreams = 1'100;  // More than are trimmed before something is tended again.
  static constexpr int kConsumers = 9;    // So many copies of a large record do not fit a batch.

  void SetUp() override {
    engine_.reset();
    ASSERT_TRUE(folder_->remove(journal::kReserveName).ok());
    Hooks hooks{[this] { sync(); }, [this](std::size_t bytes) { read(bytes); }};
    hooked_.emplace(*folder_, std::move(hooks));
    EngineOptions options;
    options.snapshot_every_bytes = std::uint64_t{1} << 40;
    options.index_shards_log2 = 2;
    auto opened = Engine::open(*hooked_, clock_, entropy_, options);
    ASSERT_TRUE(opened.ok()) << opened.error().text();
    engine_ = *std::move(opened);
  }

  // Each has a record that is over.
  void make_streams_to_trim() {
    std::vector<Op> streams;
    std::vector<Op> records;
    for (int i = 0; i < kStreams; ++i) {
      const std::string_view name = texts_.emplace_back("short" + std::to_string(i));
      streams.push_back(CreateStream{name, {.retention = {.age = Duration{60'000}}}});
      records.push_back(Append{.stream = name, .payload = "p"});
    }
    commit(streams);
    commit(records);
    clock_.advance(100'000);
  }

  // Handing them back fills a batch of the journal with dead letters.
  std::vector<Op> receive_large_records() {
    const std::string large(kLarge, 'l');
    commit({CreateStream{"large", {.record_bytes_max = limits::kRecordBytesMax}}});
    commit({Append{.stream = "large", .payload = large}});
    std::vector<Op> nacks;
    for (int i = 0; i < kConsumers; ++i) {
      const std::string_view name = texts_.emplace_back("c" + std::to_string(i));
      commit({CreateConsumer{"large", name, {.attempts_max = 1}}});
      const Call& call = commit({Receive{"large", name, 1, Duration{3'600'000}, "o"}});
      const auto& got = std::get<Received>(call.verdict()).deliveries.at(0);
      nacks.push_back(Nack{"large", name, {got.record.sequence, got.token}, Duration{0}, "no"});
    }
    return nacks;
  }

  void sync() {
    if (!armed_) return;
    if (!begun_) {
      begun_ = true;
      sweeping_.release();
      submitted_.acquire();
      return;
    }
    if (!decided_.try_acquire_for(std::chrono::seconds{1})) return;
    armed_ = false;
    // Nothing is told when a slice is left out, so it has some time not to be.
    [[maybe_unused]] const bool never = never_.try_acquire_for(std::chrono::milliseconds{300});
  }

  void read(std::size_t bytes) {
    if (armed_ && bytes >= kLarge && ++copies_ == kConsumers) decided_.release();
  }

  std::atomic<bool> armed_ = false;
  bool begun_ = false;
  int copies_ = 0;
  std::counting_semaphore<> sweeping_{0};
  std::counting_semaphore<> submitted_{0};
  std::counting_semaphore<> decided_{0};
  std::counting_semaphore<> never_{0};
  std::optional<HookedFolder> hooked_;
};

// E14: one commit may fill the batch being built.
TEST_F(SweepTest, ASliceDoesNotJoinAFullBatch) {
  make_streams_to_trim();
  std::vector<Op> ops = receive_large_records();
  const std::string half(std::size_t{1} << 19, 'h');
  const std::string some(std::size_t{1} << 14, 's');
  commit({CreateStream{"s", {}}});
  for (const std::string_view payload : {std::string_view(half), std::string_view(some)}) {
    ops.insert(ops.end(), 40, Append{.stream = "s", .payload = payload});
  }
  ops.insert(ops.end(), 2'000, Append{.stream = "s"});
  armed_ = true;
  EmbeddedStore store(
      nullptr, std::move(engine_), [](const Error&) { std::abort(); }, [](const std::string&) {});
  sweeping_.acquire();
  std::latch answered(1);
  store.submit({.ops = ops, .mode = Mode::kEach}, [&](const Result<Answer>& answer) {
    ASSERT_TRUE(answer.ok());
    EXPECT_TRUE(holds(answer->verdicts.front()));
    EXPECT_FALSE(holds(answer->verdicts.back())) << "the batch is full";
    answered.count_down();
  });
  submitted_.release();
  answered.wait();
  // The sweep goes on behind it.
  const auto is_trimmed = [&](const std::string& name) {
    return store.describe(name)->first == Sequence{2};
  };
  while (!is_trimmed("short" + std::to_string(kStreams - 1))) std::this_thread::yield();
  EXPECT_TRUE(is_trimmed("short0"));
}

}  // namespace
}  // namespace hapax::engine
