#include <atomic>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <hapax/hapax.h>
#include <hapax/postgres_store.h>

#include "../postgres/cluster.h"
#include "base/format.h"
#include "journal/names.h"
#include "shared_postgres/folder.h"
#include "shared_postgres/log.h"

namespace hapax {
namespace {

using testing::HasSubstr;

// The place of a batch follows from the size of a segment: two that disagree would both succeed.
TEST(SharedSegments, WhoMadeTheStoreChoseTheirSize) {
  const std::string uri = testing_postgres::Cluster::instance().make_database();
  PostgresStoreOptions small;
  small.segment_bytes = std::uint64_t{16} << 10;
  const auto one = open_postgres(uri, small).value();
  const auto other = open_postgres(uri).value();
  ASSERT_TRUE(one->commit({.ops = std::vector<Op>{CreateStream{"s", {}}}}).ok());
  const std::string payload(4'096, 'x');
  for (int i = 0; i < 20; ++i) {
    const std::vector<Op> ops{Append{.stream = "s", .payload = payload}};
    const auto answer = (i % 2 == 0 ? one : other)->commit({.ops = ops});
    ASSERT_TRUE(answer) << answer.error().text();
  }
  EXPECT_EQ(one->describe("s")->last, Sequence{20});
  EXPECT_EQ(other->describe("s")->last, Sequence{20});
}

// A database of its own, a store in it, and somebody who looks at it from the side.
class SharedDatabase : public testing::Test {
 protected:
  static Result<std::unique_ptr<Store>> open(const std::string& uri) {
    return open_postgres(uri, {.patience = std::chrono::milliseconds{100}});
  }
  static Result<Answer> append(Store& store, std::string_view id) {
    const std::vector<Op> ops{Append{.stream = "s", .payload = "p", .id = id}};
    return store.commit({.ops = ops});
  }
  void run(const std::string& sql) {
    const auto done = side_.run(sql);
    ASSERT_TRUE(done) << sql << ": " << done.error().text();
  }
  // ALTER DATABASE this one …
  void alter(const std::string& setting) {
    run("DO $$ BEGIN EXECUTE format('ALTER DATABASE %I " + setting +
        "', current_database()); END $$");
  }
  void wait_until(const std::string& condition) {
    for (;;) {
      const auto rows = side_.run("SELECT " + condition);
      ASSERT_TRUE(rows) << rows.error().text();
      if (rows->is_true(0, postgres::kOnly)) return;
      std::this_thread::yield();
    }
  }
  // For the whole server, and known to new sessions when it returns.
  void set_system(const std::string& name, const std::string& value) {
    run("ALTER SYSTEM SET " + name + " = '" + value + "'");
    run("SELECT pg_reload_conf()");
    wait_until("current_setting('" + name + "') = '" + value + "'");
  }

  const std::string uri_ = testing_postgres::Cluster::instance().make_database();
  postgres::Connection side_ = *postgres::Connection::open(uri_);
};

// What is acknowledged must be on disk.
TEST_F(SharedDatabase, OneThatAnswersBeforeItWritesIsRefused) {
  const auto opened = open(uri_ + "&options=-csynchronous_commit%3Doff");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::kInvalidArgument) << opened.error().text();
  set_system("fsync", "off");
  const auto unsafe = open(uri_);
  set_system("fsync", "on");
  ASSERT_FALSE(unsafe);
  EXPECT_EQ(unsafe.error().code, Errc::kInvalidArgument);
  EXPECT_THAT(unsafe.error().detail, HasSubstr("fsync is off"));
}

// … also if the server is told otherwise while it is in use.
TEST_F(SharedDatabase, WhatASessionWasFoundToWriteItGoesOnWriting) {
  auto session = *postgres::Connection::open(uri_);
  ASSERT_TRUE(shared_postgres::settle_session(session, shared_postgres::kNoLockTimeout));
  set_system("synchronous_commit", "off");
  const auto kept = session.run("SHOW synchronous_commit");
  set_system("synchronous_commit", "on");
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->at(0, postgres::kOnly), "on");
}

// E8: a place behind an old tip may be free again, because the keeper removes segments in any
// order.
TEST_F(SharedDatabase, NothingIsAppendedBeforeTheEndOfTheLog) {
  using Put = ports::SharedLog::Put;
  const shared_postgres::StorePlace place{uri_, "hapax_store"};
  ASSERT_TRUE(shared_postgres::make_store_tables(place, 4'096));
  shared_postgres::DatabaseClock clock;
  shared_postgres::RecentBatches recent;
  shared_postgres::PostgresLog log(place, clock, recent);
  const std::vector<ports::LogBatch> all{
      {{1, 64}, 1, 101, "one"}, {{2, 64}, 2, 102, "two"}, {{3, 64}, 3, 103, "three"}};
  const ports::LogTip none;
  const auto tip = [&](std::size_t i) { return ports::LogTip{all[i].at, all[i].mark, false}; };
  EXPECT_EQ(log.append(none, all[0]).value(), Put::kDone);
  EXPECT_EQ(log.append(none, all[0]).value(), Put::kNot);
  EXPECT_EQ(log.append(tip(0), all[1]).value(), Put::kDone);
  EXPECT_EQ(log.append(tip(1), all[2]).value(), Put::kDone);
  run("DELETE FROM hapax_store.log WHERE segment = 2");
  EXPECT_EQ(log.append(tip(0), {{2, 64}, 2, 104, "fork"}).value(), Put::kNot);
  run("DELETE FROM hapax_store.log WHERE segment = 1");
  EXPECT_EQ(log.append(none, {{1, 64}, 1, 105, "fork"}).value(), Put::kNot);
  EXPECT_EQ(log.append(tip(1), {{3, 64}, 3, 106, "fork"}).value(), Put::kNot);
  EXPECT_EQ(log.append(tip(2), {{4, 64}, 4, 107, "four"}).value(), Put::kDone);
}

// … nor removed before who looked for the end has appended.
TEST_F(SharedDatabase, NoSegmentIsRemovedWhileSomebodyAppends) {
  const shared_postgres::StorePlace place{uri_, "hapax_store"};
  ASSERT_TRUE(shared_postgres::make_store_tables(place, 4'096));
  run("INSERT INTO hapax_store.log SELECT n, 64, n, n, '' FROM generate_series(1, 3) AS n");
  shared_postgres::RecentBatches recent;
  shared_postgres::PostgresFolder folder(place, recent);
  const auto lock = folder.lock("KEEPER");
  ASSERT_TRUE(lock) << lock.error().text();
  auto appends = *postgres::Connection::open(uri_);
  ASSERT_TRUE(appends.run("BEGIN; LOCK TABLE hapax_store.log IN ROW EXCLUSIVE MODE"));
  const auto count = [&] {
    return side_.run("SELECT count(*) FROM hapax_store.log")->number(0, postgres::kOnly);
  };
  EXPECT_TRUE(folder.remove(journal::segment_name(2)));
  EXPECT_EQ(count(), 3);
  ASSERT_TRUE(appends.run("COMMIT"));
  EXPECT_TRUE(folder.remove(journal::segment_name(2)));
  EXPECT_EQ(count(), 2);
}

// Appending costs the same however long the log is.
TEST_F(SharedDatabase, WhoAppendsDoesNotReadTheLog) {
  const shared_postgres::StorePlace place{uri_, "hapax_store"};
  ASSERT_TRUE(shared_postgres::make_store_tables(place, 4'096));
  run("INSERT INTO hapax_store.log SELECT 1, 64 + n, n, n, '' FROM generate_series(1, 20000) AS n");
  {
    shared_postgres::DatabaseClock clock;
    shared_postgres::RecentBatches recent;
    shared_postgres::PostgresLog log(place, clock, recent);
    ports::LogTip tip{{1, 20'064}, 20'000, false};
    for (std::uint32_t n = 1; n <= 20; ++n) {  // From the sixth on the plan is the generic one.
      const ports::LogBatch batch{{1, 20'064 + n}, 20'000 + n, 20'000 + n, "x"};
      ASSERT_EQ(log.append(tip, batch).value(), ports::SharedLog::Put::kDone);
      tip = {batch.at, batch.mark, false};
    }
  }
  const std::string figures =
      " FROM pg_stat_user_tables WHERE schemaname = 'hapax_store' AND relname = 'log'";
  wait_until("(SELECT n_tup_ins >= 20020" + figures + ")");
  EXPECT_LT(side_.run("SELECT seq_scan" + figures)->number(0, postgres::kOnly), 5);
}

// A start reads a long log from its newest snapshot on, and nothing before it.
TEST_F(SharedDatabase, WhatComesBeforeASnapshotIsNotLookedThrough) {
  const shared_postgres::StorePlace place{uri_, "hapax_store"};
  ASSERT_TRUE(shared_postgres::make_store_tables(place, 4'096));
  run("INSERT INTO hapax_store.log SELECT 1, 64 + n, n, n, '' FROM generate_series(1, 20000) AS n");
  run("ANALYZE hapax_store.log");
  shared_postgres::DatabaseClock clock;
  shared_postgres::RecentBatches recent;
  shared_postgres::PostgresLog log(place, clock, recent);
  const auto first = log.read_from(19'990);
  ASSERT_TRUE(first) << first.error().text();
  EXPECT_EQ(first->batches.size(), 11U);
  EXPECT_TRUE(first->all);
  const auto plan = side_.run(
      "EXPLAIN (ANALYZE, TIMING off) SELECT 1 FROM hapax_store.log WHERE (segment, at) >= (SELECT "
      "segment, at FROM hapax_store.log WHERE last >= 19990 ORDER BY last LIMIT 1) ORDER BY "
      "segment, at LIMIT 32");
  ASSERT_TRUE(plan);
  for (std::size_t i = 0; i < plan->size(); ++i) {
    EXPECT_THAT(plan->at(i, postgres::kOnly), Not(HasSubstr("Rows Removed")));
  }
}

TEST_F(SharedDatabase, OneWhoseSessionsAreReadOnlyIsRefused) {
  ASSERT_TRUE(open(uri_));
  alter("SET default_transaction_read_only = on");
  const auto opened = open(uri_);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::kUnavailable);
  EXPECT_THAT(opened.error().detail, HasSubstr("default_transaction_read_only is on"));
}

TEST_F(SharedDatabase, NobodyIsAnsweredBeforeASynchronousStandbyHasIt) {
  const auto store = open_postgres(uri_).value();
  ASSERT_TRUE(store->commit({.ops = std::vector<Op>{CreateStream{"s", {}}}}));
  run("SET synchronous_commit = local");
  set_system("synchronous_standby_names", "nobody");
  // The server takes the setting when it gets to it: appends before that are answered at once.
  std::atomic<int> answered{0};
  std::atomic<bool> ends{false};
  std::thread caller([&] {
    while (!ends) {
      EXPECT_TRUE(append(*store, std::to_string(answered)));
      ++answered;
    }
  });
  const auto waits_for = [this](std::string_view span) {
    wait_until(base::format(
        "EXISTS (SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event "
        "= 'SyncRep' AND clock_timestamp() - query_start > interval '{}')",
        span));
  };
  waits_for("100 ms");
  const int before = answered;
  waits_for("400 ms");
  EXPECT_EQ(answered, before);
  ends = true;
  set_system("synchronous_standby_names", "");
  caller.join();
}

// Somebody has begun to append at a place and stands still: others are told that nothing happened,
// and leave nobody behind who waits for it.
TEST_F(SharedDatabase, APlaceThatAnotherHoldsIsWaitedForWithABound) {
  alter("SET statement_timeout = 500");  // of applications, not of the store
  const auto store = open(uri_).value();
  ASSERT_TRUE(store->commit({.ops = std::vector<Op>{CreateStream{"s", {}}}}));
  run("BEGIN");
  run("INSERT INTO hapax_store.log SELECT segment, at + length(bytes), last + 1, 7, '' "
      "FROM hapax_store.log ORDER BY segment DESC, at DESC LIMIT 1");
  const auto refused = append(*store, "1");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kUnavailable) << refused.error().text();
  EXPECT_THAT(refused.error().detail, HasSubstr("[55P03]"));
  const auto waiting = side_.run("SELECT count(*) FROM pg_locks WHERE NOT granted");
  EXPECT_EQ(waiting->number(0, postgres::kOnly), 0);
  run("ROLLBACK");
  while (!append(*store, "1")) std::this_thread::yield();
  EXPECT_EQ(store->describe("s")->last, Sequence{1});
}

// --- the batches that are kept in memory

using shared_postgres::RecentBatches;

std::string bytes_at(const RecentBatches& recent, std::uint32_t segment, std::uint64_t offset,
                     std::size_t size) {
  std::string into(size, '?');
  return recent.read(segment, offset, size, into.data()) ? into : "none";
}

TEST(SharedRecent, WhatLiesInOneBatchIsFound) {
  RecentBatches recent;
  recent.add({{1, 64}, 1, 0, "abcdef"});
  recent.add({{1, 70}, 2, 0, "ghi"});
  recent.add({{2, 64}, 3, 0, "xyz"});
  EXPECT_EQ(bytes_at(recent, 1, 66, 2), "cd");
  EXPECT_EQ(bytes_at(recent, 1, 70, 3), "ghi");
  EXPECT_EQ(bytes_at(recent, 2, 64, 1), "x");
  EXPECT_EQ(bytes_at(recent, 1, 68, 4), "none");  // in two batches
  EXPECT_EQ(bytes_at(recent, 1, 60, 2), "none");
  EXPECT_EQ(bytes_at(recent, 2, 10, 2), "none");
  EXPECT_EQ(bytes_at(recent, 3, 64, 1), "none");
  recent.clear();
  EXPECT_EQ(bytes_at(recent, 2, 64, 1), "none");
}

// E9: another batch in the same place, or an earlier one, ends what was known.
TEST(SharedRecent, NothingOfALogThatWentBackIsFound) {
  RecentBatches recent;
  recent.add({{1, 64}, 1, 0, "abc"});
  recent.add({{1, 72}, 2, 0, "old"});
  recent.add({{1, 72}, 2, 0, "new"});
  EXPECT_EQ(bytes_at(recent, 1, 72, 3), "new");
  EXPECT_EQ(bytes_at(recent, 1, 64, 3), "none");
}

TEST(SharedRecent, TheOldestMakeRoom) {
  RecentBatches recent;
  const std::string large(std::size_t{12} << 20, 'x');
  for (std::uint32_t segment = 1; segment <= 3; ++segment) recent.add({{segment, 64}, 1, 0, large});
  EXPECT_EQ(bytes_at(recent, 1, 64, 1), "none");
  EXPECT_EQ(bytes_at(recent, 2, 64, 1), "x");
  EXPECT_EQ(bytes_at(recent, 3, 64, 1), "x");
}

}  // namespace
}  // namespace hapax
