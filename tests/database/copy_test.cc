// A store moved from a folder into a database and back: everything is as it was, whatever the copy
// went through, and never are there two stores.
#include "shared_postgres/copy.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hapax/hapax.h>
#include <hapax/postgres_store.h>

#include "../postgres/cluster.h"
#include "base/format.h"
#include "engine/offline.h"
#include "host/entropy.h"
#include "host/folder.h"
#include "host/temporary_folder_test.h"

namespace hapax {
namespace {

using shared_postgres::CopyReport;
using shared_postgres::CopyRole;
using shared_postgres::CopyStep;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

using Steps = std::function<bool(const CopyStep&)>;

EmbeddedOptions small_files() {
  EmbeddedOptions options;
  options.segment_bytes = std::uint64_t{24} << 10;
  options.snapshot_every_bytes = std::uint64_t{100} << 10;
  options.log = [](const std::string&) {};
  return options;
}

Verdict one(Store& store, const Op& op) {
  const auto answer = store.commit({.ops = {&op, 1}});
  EXPECT_TRUE(answer) << answer.error().text();
  return answer ? answer->verdicts.front() : Verdict{NotApplied{}};
}

std::string payload_of(int n) {
  return std::to_string(n) + std::string(60 + static_cast<std::size_t>(n) % 300, 'x');
}

void append(Store& store, int from, int to, const std::string& stream = "orders") {
  for (int n = from; n < to; ++n) {
    const std::string id = "id-" + std::to_string(n);
    const std::string group = "g-" + std::to_string(n % 7);
    const std::string payload = payload_of(n);
    one(store, Append{.stream = stream, .payload = payload, .id = id, .group = group});
  }
}

std::vector<fs::path> files(const fs::path& folder, const std::string& begin) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename().string().starts_with(begin)) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

void fill_claims(Store& store) {
  for (const std::string key : {"completed", "failed", "unknown", "processing"}) {
    const Verdict claimed = one(store, Claim{.scope = "pay",
                                             .key = key,
                                             .content = "c",
                                             .owner = "w",
                                             .lease = std::chrono::hours{24}});
    const Fence fence = std::get<Claimed>(claimed).fence;
    if (key == "completed") {
      one(store, Settle{.scope = "pay",
                        .key = key,
                        .fence = fence,
                        .result = {.status = 201, .headers = "h", .body = "paid"}});
    } else if (key == "failed") {
      one(store, Settle{.scope = "pay",
                        .key = key,
                        .fence = fence,
                        .outcome = Outcome::kFailed,
                        .reason = "no money"});
    } else if (key == "unknown") {
      one(store, Settle{.scope = "pay",
                        .key = key,
                        .fence = fence,
                        .outcome = Outcome::kUnknown,
                        .reason = "no answer"});
    }
  }
}

void fill_consumers(Store& store) {
  one(store,
      CreateConsumer{.stream = "orders", .consumer = "mail", .settings = {.attempts_max = 1}});
  const Verdict got = one(store, Receive{.stream = "orders",
                                         .consumer = "mail",
                                         .max = 4,
                                         .lease = std::chrono::hours{1},
                                         .owner = "w"});
  const auto& deliveries = std::get<Received>(got).deliveries;
  ASSERT_EQ(deliveries.size(), 4U);
  one(store, Ack{"orders", "mail", {deliveries[0].record.sequence, deliveries[0].token}});
  one(store, Nack{.stream = "orders",
                  .consumer = "mail",
                  .receipt = {deliveries[1].record.sequence, deliveries[1].token},
                  .reason = "mail is down"});
}

void fill_rest(Store& store) {
  one(store, Advance{.source = "kafka", .to = "17", .epoch = Epoch{3}});
  one(store, Set{.name = "stays", .value = "v", .mode = SetMode::kAlways});
  one(store, Set{.name = "goes",
                 .value = "v",
                 .mode = SetMode::kAlways,
                 .expiry = {.kind = Expiry::Kind::kAfter, .after = std::chrono::hours{5}}});
  one(store, OpenProducer{.stream = "orders", .producer = "shop"});
  const Verdict began =
      one(store, Begin{.transaction = "open", .timeout = std::chrono::minutes{10}});
  const Op staged = Append{.stream = "orders", .payload = "staged", .id = "staged"};
  ASSERT_TRUE(store.commit(
      {.ops = {&staged, 1}, .transaction = TransactionRef{"open", std::get<Began>(began).epoch}}));
  const Op answered = Append{.stream = "orders", .payload = "under a commit id"};
  ASSERT_TRUE(store.commit({.ops = {&answered, 1}, .id = "commit-1"}));
}

// A process that does this and is killed.
template <class Act>
void in_killed_process(const Act& act) {
  const pid_t child = ::fork();
  if (child == 0) {
    act();
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_EQ(status, 0);
}

// Everything there is, several segments of which some are gone, and snapshots; ended by a kill,
// twice, so that there are superseded batches and an end that nothing proves.
void fill(const fs::path& folder) {
  in_killed_process([&] {
    auto* const store = open_embedded(folder, small_files()).value().release();
    one(*store, CreateStream{"orders", {}});
    one(*store, CreateStream{"trash", {}});
    append(*store, 0, 200);
    append(*store, 0, 200, "trash");
    const fs::path dead = files(folder, "journal-").end()[-2];
    one(*store, Trim{"trash", Sequence{201}});
    fill_claims(*store);
    fill_consumers(*store);
    fill_rest(*store);
    for (int n = 200; fs::exists(dead) && n < 9'000; ++n) append(*store, n, n + 1);
    EXPECT_FALSE(fs::exists(dead));
  });
  in_killed_process([&] {
    auto* const store = open_embedded(folder, small_files()).value().release();
    append(*store, 20'000, 20'120);
  });
}

// What a client can see.
std::string seen(Store& store) {
  std::string out;
  const auto names = store.streams();
  EXPECT_TRUE(names) << names.error().text();
  if (!names) return out;
  for (const std::string& name : *names) {
    const StreamStats stats = store.describe(name).value();
    base::append_format(out, "{} {} {} {} {} {}\n", name, stats.first.value, stats.last.value,
                        stats.ids, stats.bytes, to_ms(stats.created_at));
    for (const ConsumerStats& consumer : stats.consumers) {
      base::append_format(out, "{} {} {} {} {} {}\n", consumer.consumer, consumer.floor.value,
                          consumer.next.value, consumer.in_flight, consumer.waiting,
                          consumer.dead_lettered);
    }
    for (Sequence from = stats.first; from <= stats.last;) {
      const auto page = store.read({.stream = name, .from = from, .max = 1'000});
      EXPECT_TRUE(page) << page.error().text();
      if (!page || page->records.empty()) break;
      for (const Record& record : page->records) {
        base::append_format(out, "{} {} {} {} {}\n", record.sequence.value, to_ms(record.time),
                            record.id, record.group, record.payload);
      }
      from = page->records.back().sequence.next();
    }
  }
  for (const std::string key : {"completed", "failed", "unknown", "processing"}) {
    const auto claim = store.find_claim("pay", key).value();
    out += key +
           (claim ? base::format(" {} {} {} {} {}", static_cast<int>(claim->state),
                                 claim->fence.value, claim->reason, to_ms(claim->until),
                                 claim->result ? claim->result->body : "")
                  : "") +
           "\n";
  }
  for (const std::string name : {"stays", "goes"}) {
    const auto held = store.find_register(name).value();
    out +=
        name +
        (held ? base::format("{} {} {}", held->value, held->version.value, to_ms(held->expires_at))
              : "") +
        "\n";
  }
  const auto position = store.find_position("kafka").value();
  out += position ? base::format("{} {}\n", position->value, position->epoch.value) : "none\n";
  const auto producer = store.find_producer("orders", "shop").value();
  out += producer ? std::to_string(producer->epoch.value) + "\n" : "none\n";
  const Statistics figures = store.statistics().value();
  base::append_format(out, "{} open transactions, {} settled\n", figures.transactions_open,
                      figures.claims_settled);
  return out;
}

class CopyTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    top_.emplace();
    fill(top_->path() / "filled");
  }
  static void TearDownTestSuite() { top_.reset(); }
  void SetUp() override {
    const std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    folder_ = top_->path() / name;
    back_ = top_->path() / (name + "-back");
    fs::copy(top_->path() / "filled", folder_);
    uri_ = testing_postgres::Cluster::instance().make_database();
  }

  Result<CopyReport> to_tables(Steps steps = {}, bool keep = false) {
    HAPAX_TRY(const auto source, shared_postgres::folder_side(folder_, CopyRole::kSource));
    HAPAX_TRY(const auto target,
              shared_postgres::tables_side({uri_, "hapax_store"}, CopyRole::kTarget, 64 << 20));
    return shared_postgres::copy_store(*source, *target,
                                       {{folder_, uri_, "again"}, keep, std::move(steps)});
  }
  Result<CopyReport> to_folder(Steps steps = {}, bool keep = false) {
    HAPAX_TRY(const auto source,
              shared_postgres::tables_side({uri_, "hapax_store"}, CopyRole::kSource, 64 << 20));
    HAPAX_TRY(const auto target, shared_postgres::folder_side(back_, CopyRole::kTarget));
    return shared_postgres::copy_store(*source, *target,
                                       {{uri_, back_, "again"}, keep, std::move(steps)});
  }
  [[nodiscard]] auto open_tables() const {
    PostgresStoreOptions options;
    options.log = [](const std::string&) {};
    return open_postgres(uri_, options);
  }
  std::string sql(const std::string& text) const {
    auto connection = postgres::Connection::open(uri_).value();
    const auto rows = connection.run(text);
    EXPECT_TRUE(rows) << rows.error().text();
    return rows && rows->size() > 0 ? rows->text(0, postgres::kOnly) : "";
  }
  static std::optional<host::TemporaryFolder> top_;
  fs::path folder_;
  fs::path back_;
  std::string uri_;
};
std::optional<host::TemporaryFolder> CopyTest::top_;

void flip(const fs::path& path, std::uint64_t offset) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(offset));
  const char byte = static_cast<char>(file.get() ^ 1);
  file.seekp(static_cast<std::streamoff>(offset));
  file.put(byte);
}

TEST_F(CopyTest, EverythingIsAsItWasThereAndBack) {
  const fs::path twin = folder_.string() + "-twin";
  fs::copy(folder_, twin);
  const std::string before = seen(*open_embedded(twin, small_files()).value());
  ASSERT_GT(files(folder_, "snapshot-").size(), 0U);
  ASSERT_GT(files(folder_, "journal-").size(), 5U);

  const auto there = to_tables();
  ASSERT_TRUE(there) << there.error().text();
  EXPECT_GT(there->snapshot_lsn, 0U);
  EXPECT_EQ(there->copied_bytes, there->log_bytes + there->file_bytes);
  EXPECT_EQ(there->left_out, 0U);
  {
    const auto store = open_tables().value();
    EXPECT_EQ(seen(*store), before);
    // It goes on: what was known is known, and what is new follows.
    const std::string payload = payload_of(20'001);
    EXPECT_EQ(word_of(one(*store, Append{.stream = "orders",
                                         .payload = payload,
                                         .id = "id-20001",
                                         .group = "g-" + std::to_string(20'001 % 7)})),
              "duplicate");
    const Op again = Append{.stream = "orders", .payload = "under a commit id"};
    EXPECT_TRUE(store->commit({.ops = {&again, 1}, .id = "commit-1"})->repeated);
    append(*store, 30'000, 30'010);
  }
  const std::string after = seen(*open_tables().value());
  const auto home = to_folder();
  ASSERT_TRUE(home) << home.error().text();
  const auto store = open_embedded(back_, small_files()).value();
  EXPECT_EQ(seen(*store), after);
  append(*store, 40'000, 40'010);
}

TEST_F(CopyTest, NeverAreThereTwoStores) {
  ASSERT_TRUE(to_tables());
  const auto old = open_embedded(folder_, small_files());
  ASSERT_FALSE(old);
  EXPECT_EQ(old.error().code, Errc::kPreconditionFailed);
  EXPECT_THAT(old.error().text(), HasSubstr("was moved to " + uri_));
  ASSERT_TRUE(to_folder());
  const auto tables = open_tables();
  ASSERT_FALSE(tables);
  EXPECT_EQ(tables.error().code, Errc::kPreconditionFailed);
  EXPECT_TRUE(open_embedded(back_, small_files()));
  // Neither can it be moved from there to a second place.
  fs::remove_all(back_);
  const auto second = to_folder();
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().text(), HasSubstr("was moved to"));
}

// J2: of several copies that were begun one is finished, be their places called the same.
TEST_F(CopyTest, OnlyOneOfSeveralCopiesIsFinished) {
  const Steps until_log = [](const CopyStep& step) { return step.doing != "log"; };
  const std::string first = uri_;
  ASSERT_FALSE(to_tables(until_log));
  uri_ = testing_postgres::Cluster::instance().make_database();
  ASSERT_TRUE(to_tables());
  const std::string second = std::exchange(uri_, first);
  for (const bool keep : {false, true}) {
    const auto late = to_tables({}, keep);
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().code, Errc::kPreconditionFailed);
    EXPECT_THAT(late.error().text(), HasSubstr("was moved to " + second));
  }
  EXPECT_FALSE(open_tables());

  uri_ = second;
  ASSERT_FALSE(to_folder(until_log));
  const fs::path elsewhere = back_.string() + "-elsewhere";
  fs::rename(back_, elsewhere);
  ASSERT_TRUE(to_folder());
  fs::remove_all(back_);
  fs::rename(elsewhere, back_);
  const auto late = to_folder();
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Errc::kPreconditionFailed);
  EXPECT_FALSE(open_embedded(back_, small_files()));
}

TEST_F(CopyTest, ACopyThatIsKeptLeavesTheSourceAlone) {
  ASSERT_TRUE(to_tables({}, true));
  EXPECT_TRUE(open_embedded(folder_, small_files()));
  EXPECT_TRUE(open_tables());
}

// Full chunks of ids are files of their own.
TEST_F(CopyTest, PartsOfASnapshotMoveWithIt) {
  {
    const auto store = open_embedded(folder_, small_files()).value();
    std::vector<std::string> ids(1'000);
    for (int round = 0; files(folder_, "part-").empty() && round < 500; ++round) {
      std::vector<Op> ops;
      for (std::size_t n = 0; n < ids.size(); ++n) {
        ids[n] = base::format("{}-{}", round, n);
        ops.push_back(Append{.stream = "orders", .payload = "p", .id = ids[n]});
      }
      ASSERT_TRUE(store->commit({.ops = ops}));
    }
    // The snapshot that it is for.
    const std::uint64_t before = store->statistics()->snapshots;
    for (int n = 60'000; store->statistics()->snapshots == before && n < 70'000; ++n) {
      append(*store, n, n + 1);
    }
  }
  const auto there = to_tables();
  ASSERT_TRUE(there) << there.error().text();
  EXPECT_GT(there->files, 1U);
  {
    const auto store = open_tables().value();
    EXPECT_EQ(word_of(one(*store, Append{.stream = "orders", .payload = "p", .id = "0-7"})),
              "duplicate");
  }
  const auto home = to_folder();
  ASSERT_TRUE(home) << home.error().text();
  EXPECT_FALSE(files(back_, "part-").empty());
  EXPECT_TRUE(open_embedded(back_, small_files()));
}

TEST_F(CopyTest, AnEmptyStoreMovesToo) {
  fs::remove_all(folder_);
  { ASSERT_TRUE(open_embedded(folder_, small_files())); }
  ASSERT_TRUE(to_tables());
  const auto home = to_folder();
  ASSERT_TRUE(home) << home.error().text();
  const auto store = open_embedded(back_, small_files()).value();
  EXPECT_EQ(word_of(one(*store, CreateStream{"s", {}})), "done");
}

// J1. Stopped after each of many steps: the next one goes on, and comes to the same.
class StoppedCopyTest : public CopyTest {
 protected:
  // Answers how much was copied in all.
  template <class Copy, class Check>
  std::uint64_t copy_with_stops(const Copy& copy, const Check& check) {
    std::uint64_t steps = 0;
    for (std::uint64_t stop = 1;; stop += 1 + stop / 2) {
      steps = 0;
      const auto report = copy([&](const CopyStep&) { return ++steps < stop; });
      if (report) {
        EXPECT_GT(stop, 5U);
        digest_ = report->state_digest;
        return report->copied_bytes;
      }
      EXPECT_EQ(report.error().code, Errc::kShuttingDown) << report.error().text();
      if (report.error().code != Errc::kShuttingDown) return 0;
      if (stop > 1) check();
    }
  }
  std::string digest_;
};

TEST_F(StoppedCopyTest, IntoTablesItGoesOn) {
  const auto copy = [&](Steps steps) { return to_tables(std::move(steps)); };
  const std::uint64_t copied = copy_with_stops(copy, [&] {
    const auto served = open_tables();
    ASSERT_FALSE(served);
    EXPECT_EQ(served.error().code, Errc::kPreconditionFailed);
    EXPECT_THAT(served.error().text(), HasSubstr("was not finished"));
    EXPECT_THAT(served.error().text(), HasSubstr("again"));
  });
  EXPECT_EQ(copied, 0U) << "everything was there by then";
  EXPECT_TRUE(open_tables());
}

TEST_F(StoppedCopyTest, IntoAFolderItGoesOn) {
  const auto there = to_tables();
  ASSERT_TRUE(there);
  const auto copy = [&](Steps steps) { return to_folder(std::move(steps)); };
  const std::uint64_t copied = copy_with_stops(copy, [&] {
    const auto served = open_embedded(back_, small_files());
    ASSERT_FALSE(served);
    EXPECT_EQ(served.error().code, Errc::kPreconditionFailed);
    EXPECT_THAT(served.error().text(), HasSubstr("was not finished"));
  });
  EXPECT_EQ(copied, 0U);
  EXPECT_EQ(digest_, there->state_digest);
  EXPECT_TRUE(open_embedded(back_, small_files()));
}

// The last steps one by one: J2 at each.
TEST_F(StoppedCopyTest, AtTheEndAtMostOneOfThemStarts) {
  for (const std::string_view doing : {"moved", "store"}) {
    const auto stopped = to_tables([&](const CopyStep& step) { return step.doing != doing; });
    ASSERT_FALSE(stopped);
    EXPECT_FALSE(open_tables());
    EXPECT_FALSE(open_embedded(folder_, small_files()));
  }
  ASSERT_TRUE(to_tables());
  const auto again = to_tables();
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_TRUE(again->done_before);
  EXPECT_TRUE(open_tables());
  for (const std::string_view doing : {"moved", "store"}) {
    const auto stopped = to_folder([&](const CopyStep& step) { return step.doing != doing; });
    ASSERT_FALSE(stopped);
    EXPECT_FALSE(open_tables());
    EXPECT_FALSE(open_embedded(back_, small_files()));
    // Neither is it a store to be moved on.
    const std::string there =
        std::exchange(uri_, testing_postgres::Cluster::instance().make_database());
    std::swap(folder_, back_);
    const auto moved_on = to_tables();
    ASSERT_FALSE(moved_on);
    EXPECT_EQ(moved_on.error().code, Errc::kPreconditionFailed) << moved_on.error().text();
    std::swap(folder_, back_);
    uri_ = there;
  }
  ASSERT_TRUE(to_folder());
  EXPECT_TRUE(open_embedded(back_, small_files()));
}

TEST_F(CopyTest, WhatIsThereIsNotOverwritten) {
  { ASSERT_TRUE(open_tables()); }
  const auto other = to_tables();
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, Errc::kAlreadyExists) << other.error().text();
  EXPECT_TRUE(open_tables());

  uri_ = testing_postgres::Cluster::instance().make_database();
  ASSERT_TRUE(to_tables());
  fs::create_directory(back_);
  std::ofstream(back_ / "letter.txt") << "dear";
  const auto foreign = to_folder();
  ASSERT_FALSE(foreign);
  EXPECT_EQ(foreign.error().code, Errc::kAlreadyExists);
  EXPECT_THAT(foreign.error().text(), HasSubstr("letter.txt"));
  EXPECT_EQ(files(back_, "").size(), 1U) << "nothing of ours is there";
}

TEST_F(CopyTest, OnlyTheSameStoreGoesOn) {
  ASSERT_FALSE(to_tables([](const CopyStep& step) { return step.doing != "log"; }));
  { append(*open_embedded(folder_, small_files()).value(), 50'000, 50'001); }
  const auto later = to_tables();
  ASSERT_FALSE(later);
  EXPECT_EQ(later.error().code, Errc::kAlreadyExists);
  EXPECT_THAT(later.error().text(), HasSubstr("it has changed since"));
  fs::remove_all(folder_);
  { one(*open_embedded(folder_, small_files()).value(), CreateStream{"s", {}}); }
  const auto other = to_tables();
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().text(), HasSubstr("another store"));
}

TEST_F(CopyTest, AStoreInUseIsNotCopied) {
  {
    const auto store = open_embedded(folder_, small_files()).value();
    const auto used = to_tables();
    ASSERT_FALSE(used);
    EXPECT_EQ(used.error().code, Errc::kLocked);
  }
  ASSERT_TRUE(to_tables());
  const auto store = open_tables().value();
  const auto used = to_folder();
  ASSERT_FALSE(used);
  EXPECT_EQ(used.error().code, Errc::kLocked) << used.error().text();
}

// J3: who held the store open, and lost its connection, cannot write to it during the copy or
// afterwards.
TEST_F(CopyTest, WhoLostItsConnectionWritesNothingMore) {
  ASSERT_TRUE(to_tables());
  PostgresStoreOptions options;
  options.log = [](const std::string&) {};
  options.patience = std::chrono::milliseconds{1};
  const auto store = open_postgres(uri_, options).value();
  bool refused = false;
  const auto moved = [&] {
    ignore(postgres::Connection::open(uri_)->run(
               "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = "
               "current_database() AND pid <> pg_backend_pid()"),
           "who was connected is not");
    return to_folder([&](const CopyStep& step) {
      if (step.doing == "log" && !refused) {
        const Op late = Append{.stream = "orders", .payload = "late"};
        refused = !store->commit({.ops = {&late, 1}});
        EXPECT_TRUE(refused);
      }
      return true;
    });
  };
  // The keeper may be back before the copy begins.
  auto done = moved();
  for (int tries = 0; !done && done.error().code == Errc::kLocked && tries < 50; ++tries) {
    done = moved();
  }
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_TRUE(refused);
  const Op late = Append{.stream = "orders", .payload = "late"};
  EXPECT_FALSE(store->commit({.ops = {&late, 1}}));
  EXPECT_EQ(sql("SELECT max(last) FROM hapax_store.log"), std::to_string(done->last_lsn));
}

// J3: its locks went with a connection, and somebody used the store before the copy noticed.
TEST_F(CopyTest, WhoLostItsLocksMovesNothing) {
  ASSERT_TRUE(to_tables());
  for (const bool keep : {false, true}) {
    fs::remove_all(back_);
    bool used = false;
    const auto moved = to_folder(
        [&](const CopyStep& step) {
          if (step.doing != "verify" || std::exchange(used, true)) return true;
          sql("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = "
              "current_database() AND pid <> pg_backend_pid()");
          append(*open_tables().value(), keep ? 50'000 : 51'000, keep ? 50'001 : 51'001);
          return true;
        },
        keep);
    ASSERT_FALSE(moved);
    EXPECT_TRUE(used);
    EXPECT_FALSE(open_embedded(back_, small_files()));
    EXPECT_TRUE(open_tables());
  }
}

// A step that changes something before it is compared.
Steps before_verify(std::function<void()> act) {
  return [act = std::move(act), done = false](const CopyStep& step) mutable {
    if (step.doing == "verify" && !std::exchange(done, true)) act();
    return true;
  };
}

// J4
TEST_F(CopyTest, AByteThatDiffersIsFound) {
  const auto tables = to_tables(before_verify([&] {
    sql("UPDATE hapax_store.log SET bytes = set_byte(bytes, 100, get_byte(bytes, 100) # 1) WHERE "
        "(segment, at) = (SELECT segment, at FROM hapax_store.log ORDER BY last DESC LIMIT 1)");
  }));
  ASSERT_FALSE(tables);
  EXPECT_EQ(tables.error().code, Errc::kCorruption) << tables.error().text();
  EXPECT_THAT(tables.error().text(), HasSubstr("the copy is not what was copied"));
  EXPECT_FALSE(open_tables());
  EXPECT_TRUE(open_embedded(folder_, small_files())) << "it is not moved";

  uri_ = testing_postgres::Cluster::instance().make_database();
  ASSERT_TRUE(to_tables());
  for (const std::string file : {"journal-", "snapshot-"}) {
    fs::remove_all(back_);
    const auto home = to_folder(before_verify([&] { flip(files(back_, file).front(), 200); }));
    ASSERT_FALSE(home) << file;
    EXPECT_EQ(home.error().code, Errc::kCorruption) << home.error().text();
    EXPECT_THAT(home.error().text(), HasSubstr(file));
    EXPECT_FALSE(open_embedded(back_, small_files()));
  }
}

TEST_F(CopyTest, ADamagedSourceIsNotMoved) {
  flip(files(folder_, "journal-").end()[-2], 100);
  const auto moved = to_tables();
  ASSERT_FALSE(moved);
  EXPECT_EQ(moved.error().code, Errc::kCorruption);
  EXPECT_THAT(moved.error().text(), HasSubstr("hapax repair"));
}

// Its last batch was written anew after a kill, into a segment that held nothing else, because of
// another kill, and is gone.
TEST_F(CopyTest, ASupersededBatchMayOutliveWhatSupersededIt) {
  std::vector<fs::path> segments;
  for (int tries = 0; segments.size() != 2; ++tries) {
    ASSERT_LT(tries, 20);  // Who is not killed soon marks what it has written as proven.
    fs::remove_all(folder_);
    in_killed_process([&] {
      auto* const store = open_embedded(folder_, small_files()).value().release();
      one(*store, CreateStream{"orders", {}});
      append(*store, 0, 50);
      one(*store, Advance{.source = "kafka", .to = "17", .epoch = Epoch{3}});
    });
    in_killed_process(
        [&] { EXPECT_NE(open_embedded(folder_, small_files()).value().release(), nullptr); });
    segments = files(folder_, "journal-");
  }
  {
    const auto store = open_embedded(folder_, small_files()).value();
    for (int n = 100; fs::exists(segments[1]) && n < 9'000; ++n) append(*store, n, n + 1);
  }
  ASSERT_TRUE(fs::exists(segments[0]));
  ASSERT_FALSE(fs::exists(segments[1]));
  const auto there = to_tables();
  ASSERT_TRUE(there) << there.error().text();
  EXPECT_TRUE(open_tables());
  EXPECT_TRUE(to_folder());
  EXPECT_TRUE(open_embedded(back_, small_files()));
}

TEST_F(CopyTest, RowsThatOverlapAreNotMoved) {
  ASSERT_TRUE(to_tables());
  sql("UPDATE hapax_store.log SET at = at - 8 WHERE (segment, at) = (SELECT segment, at FROM "
      "hapax_store.log ORDER BY last LIMIT 1 OFFSET 1)");
  const auto home = to_folder();
  ASSERT_FALSE(home);
  EXPECT_EQ(home.error().code, Errc::kCorruption);
}

// A start does not read it; a record that somebody wants is there.
TEST_F(CopyTest, DamageBelowTheSnapshotIsRepairedFirst) {
  const fs::path segment = files(folder_, "journal-").front();
  std::ifstream file(segment, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  flip(segment, bytes.find(payload_of(5)));
  const auto damaged = to_tables();
  ASSERT_FALSE(damaged);
  EXPECT_EQ(damaged.error().code, Errc::kCorruption) << damaged.error().text();
  EXPECT_THAT(damaged.error().text(), HasSubstr("hapax repair"));
  {
    const auto folder =
        host::DiskFolder::open_folder(folder_, host::FolderMode::kMustExist).value();
    host::HostEntropy entropy;
    ASSERT_TRUE(engine::repair(*folder, entropy, journal::RepairMode::kAcceptLoss)->needed);
  }
  uri_ = testing_postgres::Cluster::instance().make_database();
  const auto moved = to_tables();
  ASSERT_TRUE(moved) << moved.error().text();
  EXPECT_EQ(moved->left_out, 1U);
  { EXPECT_TRUE(open_tables()); }
  const auto home = to_folder();
  ASSERT_TRUE(home) << home.error().text();
  EXPECT_TRUE(open_embedded(back_, small_files()));
}

}  // namespace
}  // namespace hapax
