// A disk that is full, for real: precise errors, nothing half done, and all goes on by itself when
// there is space again.
#include <hapax/hapax.h>
#include <hapax/postgres_store.h>

#include "application.h"
#include "small_disk.h"

namespace hapax::application {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing_disk::SmallDisk;
using testing_disk::with_small_disk;
using testing_postgres::Cluster;

const std::string kLarge(300'000, 'x');

// A server whose tables in that database lie on the small disk; its log does not.
std::string database_on(Cluster& cluster, const SmallDisk& disk) {
  const std::string place = disk.path() + "/tables";
  std::filesystem::create_directory(place);
  const passwd* owner = ::geteuid() == 0 ? ::getpwnam("postgres") : nullptr;
  if (owner != nullptr && ::chown(place.c_str(), owner->pw_uid, owner->pw_gid) != 0) std::abort();
  const std::string uri = cluster.make_database();
  auto connection = *postgres::Connection::open(uri);
  EXPECT_TRUE(connection.run("CREATE TABLESPACE small LOCATION '" + place + "'"));
  EXPECT_TRUE(
      connection.run("DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_tablespace = "
                     "small', current_database()); END $$"));
  return uri;
}

Result<Verdict> append(Store& store, std::string_view id, std::string_view payload) {
  const std::vector<Op> ops{Append{.stream = "s", .payload = payload, .id = id}};
  HAPAX_TRY(const Answer answer, store.commit({.ops = ops}));
  return answer.verdicts.front();
}

std::vector<std::string> ids_of(Store& store) {
  std::vector<std::string> all;
  const auto records = store.read({.stream = "s", .max = 100});
  if (!records) return {records.error().text()};
  for (const Record& record : records->records) all.push_back(record.id);
  return all;
}

Status publish(Process& app, const std::string& payload) {
  Outbox outbox(app.database());
  return app.database().with_transaction([&]() -> Status {
    HAPAX_CHECK(app.run("INSERT INTO orders VALUES ('o')"));
    HAPAX_CHECK(outbox.publish({.id = "e", .type = "t", .payload = payload}));
    return Ok{};
  });
}

void check_store(const std::string& uri, const SmallDisk& disk) {
  const auto store = open_postgres(uri).value();
  const auto other = open_postgres(uri).value();
  ASSERT_TRUE(store->commit({.ops = std::vector<Op>{CreateStream{"s", {}}}}));
  ASSERT_TRUE(append(*store, "1", "tea"));
  disk.fill();
  for (Store* one : {store.get(), other.get()}) {
    const auto refused = append(*one, "2", kLarge);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::kNoSpace) << refused.error().text();
    EXPECT_THAT(refused.error().detail, HasSubstr("free disk space on the database server"));
    EXPECT_EQ(word_of(append(*one, "1", "tea").value()), "duplicate");
    EXPECT_THAT(ids_of(*one), ElementsAre("1"));
  }
  disk.free();
  EXPECT_EQ(word_of(append(*store, "2", kLarge).value()), "fresh");
  EXPECT_EQ(word_of(append(*other, "2", kLarge).value()), "duplicate");
  EXPECT_THAT(ids_of(*open_postgres(uri).value()), ElementsAre("1", "2"));
}

void check_outbox(Process& app, const std::string& outbox, const SmallDisk& disk) {
  ASSERT_TRUE(app.run("CREATE TABLE orders (id TEXT PRIMARY KEY)"));
  disk.fill();
  const Status refused = publish(app, kLarge);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kNoSpace) << refused.error().text();
  EXPECT_THAT(refused.error().detail, HasSubstr("free disk space"));
  EXPECT_FALSE(app.database().in_transaction());
  EXPECT_EQ(app.number("SELECT count(*) FROM orders"), 0);
  disk.free();
  const Status done = publish(app, kLarge);
  EXPECT_TRUE(done) << done.error().text();
  EXPECT_EQ(app.number("SELECT count(*) FROM orders"), 1);
  EXPECT_EQ(app.number("SELECT count(*) FROM " + outbox), 1);
}

TEST(FullDisk, of_postgres_refuses_and_goes_on) {
  with_small_disk("24m", [](const SmallDisk& disk) {
    Cluster cluster;
    const std::string uri = database_on(cluster, disk);
    check_store(uri, disk);
    auto connection = *postgres::Connection::open(uri);
    ASSERT_TRUE(postgres::migrate(connection, {}));
    OnPostgres app(uri);
    check_outbox(app, "hapax.outbox", disk);
  });
}

TEST(FullDisk, of_sqlite_refuses_and_goes_on) {
  with_small_disk("2m", [](const SmallDisk& disk) {
    OnSqlite app(prepare_sqlite(disk.path()));
    check_outbox(app, "hapax_outbox", disk);
  });
}

// A file that nobody has open has no index of its log yet, and no room for one.
TEST(FullDisk, of_sqlite_is_named_at_the_first_statement_too) {
  with_small_disk("2m", [](const SmallDisk& disk) {
    const std::string path = prepare_sqlite(disk.path());
    disk.fill();
    auto connection = *sqlite::Connection::open(path);
    const Status written = connection.run("CREATE TABLE t (n)");
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code, Errc::kNoSpace) << written.error().text();
    disk.free();
    EXPECT_TRUE(connection.run("CREATE TABLE t (n)"));
  });
}

}  // namespace
}  // namespace hapax::application
