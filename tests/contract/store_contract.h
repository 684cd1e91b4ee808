// What every test of a store needs, whatever store it is: a folder of its own, short ways to commit
// and to look, and restarts. The suite knows hapax::Store only; a new kind of store is one more
// line in all_stores(). Time is the store's own: a test waits for log time to pass, never for the
// clock.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <hapax/hapax.h>

#include "host/temporary_folder_test.h"

// The thread sanitizer looks at the store itself; the doors have tests of their own there.
#ifndef HAPAX_CONTRACT_EMBEDDED_ONLY
#include "http_store.h"
#include "postgres_store.h"
#include "resp_store.h"
#endif

namespace hapax::contract {

struct StoreKind {
  std::string name;
  std::function<Result<std::unique_ptr<Store>>(const std::filesystem::path& folder)> open;
  std::string (*cannot)(std::string_view test) =
      nullptr;  // why a case is skipped; empty: it is not
  std::size_t receive_bytes_max = limits::kReceiveBytesMax;
};

// Small segments and frequent snapshots: rotation, snapshots and cleaning happen in every test.
inline Result<std::unique_ptr<Store>> open_small_embedded(const std::filesystem::path& folder) {
  EmbeddedOptions options;
  options.segment_bytes = std::uint64_t{64} << 10;
  options.snapshot_every_bytes = std::uint64_t{32} << 10;
  options.log = [](const std::string&) {};
  return open_embedded(folder, options);
}

inline std::vector<StoreKind> all_stores() {
#ifdef HAPAX_CONTRACT_EMBEDDED_ONLY
  return {{"embedded", open_small_embedded}};
#else
  return {{"embedded", open_small_embedded},
          {"postgres", open_in_postgres},
          {"http", open_behind_http, not_through_a_door},
          {"resp", open_behind_resp, not_through_a_door, limits::kBriefReceiveBytesMax}};
#endif
}
inline std::string name_of(const testing::TestParamInfo<StoreKind>& info) {
  return info.param.name;
}
inline void PrintTo(const StoreKind& kind, std::ostream* out) { *out << kind.name; }

inline std::string told(const Verdict& verdict) {
  std::string text(word_of(verdict));
  if (const auto* refused = std::get_if<Refused>(&verdict)) text += ": " + refused->error.text();
  return text;
}

template <class Wanted>
Wanted as(const Verdict& verdict) {
  if (const auto* found = std::get_if<Wanted>(&verdict)) return *found;
  ADD_FAILURE() << "the verdict is " << told(verdict) << ", not " << word_of(Verdict{Wanted{}});
  return Wanted{};
}

inline Receipt receipt_of(const Delivery& delivery) {
  return {delivery.record.sequence, delivery.token};
}
inline std::vector<std::uint64_t> sequences(const std::vector<Delivery>& deliveries) {
  std::vector<std::uint64_t> all;
  for (const Delivery& delivery : deliveries) all.push_back(delivery.record.sequence.value);
  return all;
}
inline std::vector<std::string> payloads(const std::vector<Record>& records) {
  std::vector<std::string> all;
  for (const Record& record : records) all.push_back(record.payload);
  return all;
}

// Enough traffic that segments are sealed, snapshots written and dead segments removed.
inline void churn(Store& store) {
  const std::string junk(std::size_t{20} << 10, 'j');
  const std::vector<Op> make{CreateStream{"churn", {}}};
  const std::vector<Op> ops{Trim{"churn", Sequence{~std::uint64_t{0}}},
                            Append{.stream = "churn", .payload = junk}};
  Commit commit;
  commit.ops = make;
  ASSERT_TRUE(store.commit(commit));
  commit.ops = ops;
  for (int i = 0; i < 12; ++i) {
    const auto answer = store.commit(commit);
    ASSERT_TRUE(answer) << answer.error().text();
    ASSERT_TRUE(answer->committed);
  }
}

class StoreContract : public testing::TestWithParam<StoreKind> {
 protected:
  StoreContract() { open(); }
  void SetUp() override {
    const auto cannot = GetParam().cannot;
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    const std::string why = cannot == nullptr ? std::string() : cannot(test->name());
    if (!why.empty()) GTEST_SKIP() << why;
  }

  Store& store() { return *store_; }
  void close() { store_.reset(); }
  void open() { store_ = std::move(GetParam().open(folder())).value(); }
  void reopen() {
    close();
    open();
  }
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_.path(); }

  void churn() { contract::churn(store()); }
  // What the store remembers does not depend on whether it was restarted or tidied up.
  void always(const std::function<void()>& check) {
    for (const char* when : {"at once", "after a restart", "after traffic and a restart"}) {
      SCOPED_TRACE(when);
      check();
      if (HasFailure()) return;
      if (std::string_view(when) == "after a restart") churn();
      reopen();
    }
  }

  // --- commits -----------------------------------------------------------------------------------

  Result<Answer> try_commit(const std::vector<Op>& ops, Mode mode = Mode::kAtomic,
                            std::optional<std::string_view> id = {}) {
    Commit commit;
    commit.ops = ops;
    commit.mode = mode;
    commit.id = id;
    return store_->commit(commit);
  }
  Answer commit(const std::vector<Op>& ops, Mode mode = Mode::kAtomic,
                std::optional<std::string_view> id = {}) {
    auto answer = try_commit(ops, mode, id);
    if (!answer) {
      ADD_FAILURE() << answer.error().text();
      return Answer{false, false, {}, std::vector<Verdict>(ops.size(), NotApplied{})};
    }
    return *std::move(answer);
  }
  Answer each(const std::vector<Op>& ops) { return commit(ops, Mode::kEach); }

  template <class Wanted>
  Wanted run(const Op& op, std::optional<std::string_view> id = {}) {
    return as<Wanted>(commit({op}, Mode::kAtomic, id).verdicts.front());
  }
  // The verdict of an operation that is expected to be wrong in itself.
  Error refusal(const Op& op) { return run<Refused>(op).error; }

  // The same where a front door may refuse it before the store can.
  Error refusal_of_any(const Op& op) {
    const auto answer = try_commit({op});
    return answer ? as<Refused>(answer->verdicts.front()).error : answer.error();
  }

  // --- short forms -------------------------------------------------------------------------------

  void make_stream(std::string_view name, const StreamSettings& settings = {}) {
    run<Done>(CreateStream{name, settings});
  }
  Sequence append(std::string_view stream, std::string_view payload,
                  std::optional<std::string_view> id = {},
                  std::optional<std::string_view> group = {}) {
    return run<Appended>(Append{.stream = stream, .payload = payload, .id = id, .group = group})
        .sequence;
  }
  std::vector<Delivery> receive(std::string_view stream, std::string_view consumer,
                                std::uint32_t max = 100, Duration lease = limits::kLeaseDefault,
                                std::string_view owner = "worker") {
    return run<Received>(Receive{stream, consumer, max, lease, owner}).deliveries;
  }
  std::vector<Record> records(std::string_view stream) {
    return store_->read({.stream = stream, .max = limits::kReadMax}).value().records;
  }
  Sequence last(std::string_view stream) { return store_->describe(stream).value().last; }
  Time log_time() { return store_->statistics().value().log_time; }
  std::uint64_t fenced() { return store_->statistics().value().fenced; }

  // Until log time is at or past `time`: a look moves it.
  void wait_until(Time time) {
    while (log_time() < time) std::this_thread::yield();
  }
  // Until the store's own acts made it true; bounded by log time.
  void wait_for(const std::function<bool()>& holds, Duration most = Duration{20'000}) {
    const Time end = log_time() + most;
    while (!holds()) {
      ASSERT_LT(log_time(), end) << "the store never got there";
      std::this_thread::yield();
    }
  }

 private:
  const host::TemporaryFolder folder_;
  std::unique_ptr<Store> store_;
};

}  // namespace hapax::contract
