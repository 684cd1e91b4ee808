// Events commit with the change they tell of, or not at all.
#include <stdexcept>
#include <thread>

#include <hapax/limits.h>

#include "application.h"
#include "base/format.h"
#include "relay/stream_sink.h"

namespace hapax::application {
namespace {

using testing::HasSubstr;

class OutboxTest : public ApplicationTest {
 protected:
  Event placed(const std::string& key = "o-1") {
    return {.type = "order.placed", .key = key, .payload = std::string("\0{\x80", 3)};
  }
};
INSTANTIATE_TEST_SUITE_P(All, OutboxTest, testing::ValuesIn(outbox_kinds()), name_of);

TEST_P(OutboxTest, an_event_commits_with_the_change_it_tells_of) {
  Outbox outbox(database());
  std::string id;
  const Status done = database().with_transaction([&]() -> Status {
    HAPAX_CHECK(order("o-1"));
    Event event = placed();
    event.headers = {{"a \"b\"", "c\\\n"}, {"a", "ä"}};
    event.correlation_id = "co";
    HAPAX_TRY(id, outbox.publish(event));
    return Ok{};
  });
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_EQ(id.size(), 36u);
  EXPECT_EQ(app_->number("SELECT count(*) FROM " + table("outbox") + " WHERE id = '" + id +
                         "' AND key = 'o-1' AND length(payload) = 3 AND causation_id IS NULL AND "
                         "correlation_id = 'co'"),
            1);
  EXPECT_EQ(app_->number("SELECT count(*) FROM " + table("outbox") + " WHERE headers ->> 1 = " +
                         "'[\"a\"," + (GetParam().name == "sqlite" ? "" : " ") + "\"ä\"]'"),
            1);
}

TEST_P(OutboxTest, a_failure_of_either_side_leaves_nothing) {
  Outbox outbox(database());
  // The event is refused.
  Event bad = placed();
  bad.type = "";
  EXPECT_EQ(database()
                .with_transaction([&]() -> Status {
                  HAPAX_CHECK(order("o-1"));
                  HAPAX_CHECK(outbox.publish(bad));
                  return Ok{};
                })
                .error()
                .code,
            Errc::kInvalidArgument);
  // The application changes its mind, or throws.
  EXPECT_EQ(database()
                .with_transaction([&]() -> Status {
                  HAPAX_CHECK(outbox.publish(placed()));
                  return Error{Errc::kConflict, "sold out"};
                })
                .error()
                .detail,
            "sold out");
  const auto throws = [&]() -> Status {
    HAPAX_CHECK(order("o-1"));
    HAPAX_CHECK(outbox.publish(placed()));
    throw std::runtime_error("bug");
  };
  EXPECT_THROW(ignore(database().with_transaction(throws), "it throws"), std::runtime_error);
  // A statement of the application fails.
  EXPECT_FALSE(database().with_transaction([&]() -> Status {
    HAPAX_CHECK(outbox.publish(placed()));
    HAPAX_CHECK(order("o-1"));
    return order("o-1");
  }));
  EXPECT_FALSE(database().in_transaction());
  EXPECT_EQ(count("orders"), 0);
  EXPECT_EQ(count(table("outbox")), 0);
}

TEST_P(OutboxTest, a_savepoint_is_undone_alone) {
  Outbox outbox(database());
  ASSERT_TRUE(app_->run("BEGIN"));
  ASSERT_TRUE(outbox.publish(placed("kept")));
  EXPECT_FALSE(database().with_transaction([&]() -> Status {
    HAPAX_CHECK(outbox.publish(placed("undone")));
    const Status inner = database().with_transaction([&]() -> Status {
      HAPAX_CHECK(outbox.publish(placed("inner")));
      return Ok{};
    });
    EXPECT_TRUE(inner);
    return Error{Errc::kConflict, "no"};
  }));
  ASSERT_TRUE(database().in_transaction());
  ASSERT_TRUE(app_->run("COMMIT"));
  EXPECT_EQ(count(table("outbox")), 1);
  EXPECT_EQ(app_->number("SELECT count(*) FROM " + table("outbox") + " WHERE key = 'kept'"), 1);
}

TEST_P(OutboxTest, publish_outside_of_a_transaction_is_refused) {
  Outbox outbox(database());
  const auto refused = outbox.publish(placed());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kPreconditionFailed);
  EXPECT_EQ(count(table("outbox")), 0);
}

TEST_P(OutboxTest, what_a_stream_would_refuse_is_refused_at_once) {
  Outbox outbox(database());
  ASSERT_TRUE(app_->run("BEGIN"));
  Event event = placed();
  event.key = std::string(256, 'k');
  EXPECT_EQ(outbox.publish(event).error().code, Errc::kLimitExceeded);
  event.key = std::string(255, 'k');
  EXPECT_TRUE(outbox.publish(event));
  ASSERT_TRUE(app_->run("ROLLBACK"));
  if (GetParam().name == "sqlite") return;
  const std::pair<std::string, std::string> large[] = {
      {"'t', 'x', key => repeat('k', 256)", "the key of an event has 256 bytes, at most 255"},
      {"'t', 'x', id => repeat('i', 256)", "the id of an event has 256 bytes, at most 255"},
      {"repeat('t', 256), 'x'", "the type of an event has 256 bytes, at most 255"},
      {"'t', repeat('x', 8388609)", "the payload of an event has 8388609 bytes, at most 8388608"}};
  for (const auto& [call, text] : large) {
    const Status told = app_->run("SELECT hapax.publish(" + call + ")");
    ASSERT_FALSE(told) << call;
    EXPECT_EQ(told.error().code, Errc::kLimitExceeded) << told.error().text();
    EXPECT_THAT(told.error().detail, HasSubstr(text));
  }
}

// An unset variable must not turn the guarantee off.
TEST_P(OutboxTest, an_empty_id_key_or_type_is_refused) {
  Outbox outbox(database());
  ASSERT_TRUE(app_->run("BEGIN"));
  for (const Event& event : {Event{.id = "", .type = "t"}, Event{.type = "t", .key = ""}}) {
    const auto refused = outbox.publish(event);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::kInvalidArgument);
    EXPECT_THAT(refused.error().detail, HasSubstr("of an event is empty; leave it out for none"));
  }
  ASSERT_TRUE(app_->run("ROLLBACK"));
  const bool sqlite = GetParam().name == "sqlite";
  const std::vector<std::string> statements =
      sqlite ? std::vector<std::string>{"INSERT OR IGNORE INTO hapax_outbox (id, type, payload) "
                                        "VALUES ('', 't', 'x')",
                                        "INSERT OR IGNORE INTO hapax_outbox (id, type, payload) "
                                        "VALUES (NULL, 't', 'x')",
                                        "INSERT INTO hapax_outbox (id, type, key, payload) "
                                        "VALUES ('i', 't', '', 'x')",
                                        "INSERT OR IGNORE INTO hapax_outbox (id, type, payload) "
                                        "VALUES ('i', '', 'x')"}
             : std::vector<std::string>{
                   "SELECT hapax.publish('t', 'x', id => '')",
                   "SELECT hapax.publish('t', 'x', key => '')",
                   "SELECT hapax.publish('', 'x')", "SELECT hapax.publish(NULL, 'x')",
                   "SELECT hapax.publish_all('{\"\"}', '{x}', '{k}', '{i}', '{NULL}', '{NULL}', "
                   "'{NULL}')",
                   "SELECT hapax.publish_all('{t}', '{x}', '{k}', '{\"\"}', '{NULL}', '{NULL}', "
                   "'{NULL}')",
                   "SELECT hapax.publish_all('{t}', '{x}', '{k}', '{NULL}', '{NULL}', '{NULL}', "
                   "'{NULL}')",
                   "SELECT hapax.publish_all('{t,u}', '{x,x}', '{k,k}', '{i}', '{NULL,NULL}', "
                   "'{NULL,NULL}', '{NULL,NULL}')",
                   "INSERT INTO hapax.outbox (xid, lane, id, type, key, payload) VALUES "
                   "(hapax.outbox_xid('k'), hapax.outbox_lane('k', ''), '', 't', 'k', 'x')",
                   "INSERT INTO hapax.outbox (xid, lane, id, type, key, payload) VALUES "
                   "(hapax.outbox_xid(''), hapax.outbox_lane('', 'i'), 'i', 't', '', 'x')"};
  for (const std::string& statement : statements) {
    const Status told = app_->run(statement);
    ASSERT_FALSE(told) << statement;
    EXPECT_EQ(told.error().code, Errc::kInvalidArgument) << told.error().text();
  }
  EXPECT_EQ(count(table("outbox")), 0);
}

// bytea's escapes would alter a text that has backslashes.
TEST(PostgresPublish, payloads_of_every_type_arrive_as_they_are) {
  OnPostgres app(prepare_postgres(""));
  const std::string uuid = "6ba7b811-9dad-11d1-80b4-00c04fd430c8";
  const struct {
    std::string call;
    std::string stored;
  } cases[] = {
      {R"('t', '{"a": "x\\y\n"}')", R"({"a": "x\\y\n"})"},
      {R"('t', '{"a": "x\\y\n"}'::text, key => 'k')", R"({"a": "x\\y\n"})"},
      {R"('t', '{"a":  "x\\y\n"}'::json, key => 7)", R"({"a":  "x\\y\n"})"},
      {R"('t', '{"a":  "x\\y\n"}'::jsonb, key => 7::smallint)", R"({"a": "x\\y\n"})"},
      {"'t', 'x'::varchar, key => '" + uuid + "'::uuid", "x"},
      {R"('t', '\x7879'::bytea, id => ')" + uuid + "'::uuid", "xy"},
      {"'t', 'x', 'k', '" + uuid + "'::uuid", "x"},
      {"'t', 'x', 7, '" + uuid + R"('::uuid, '[["a", "b"]]')", "x"},
      {"'t', 'x', id => NULL", "x"},
      {R"('t', 'x', 'k', 'i', '[["a", "b"]]')", "x"},
      {R"('t', 'x', 'k', 'i', '[["a", "b"]]', 'c', 'd')", "x"},
      {R"('t', 'x', NULL, NULL, NULL, NULL, NULL)", "x"},
      {"'t', 'x', correlation_id => 'c', id => '" + uuid + "'::uuid, causation_id => 'd'", "x"},
      {"'t', '', headers => '[]'", ""},
  };
  for (const auto& each : cases) {
    const Status done = app.run("TRUNCATE hapax.outbox; SELECT hapax.publish(" + each.call + ")");
    ASSERT_TRUE(done) << each.call << ": " << done.error().text();
    EXPECT_EQ(app.number("SELECT count(*) FROM hapax.outbox WHERE payload = convert_to($x$" +
                         each.stored + "$x$, 'UTF8')"),
              1)
        << each.call;
  }
  EXPECT_EQ(app.number("SELECT count(*) FROM (SELECT hapax.publish('t', 'x', 7, '" + uuid +
                       "'::uuid)) AS p(id) WHERE id = '" + uuid + "'"),
            1);
  EXPECT_EQ(app.number("SELECT count(*) FROM hapax.outbox WHERE key = '7' AND id = '" + uuid + "'"),
            1);
  // Nobody can tell whether the bytes are meant, or the text.
  const Status refused = app.run(R"(SELECT hapax.publish('t', '\x00ff'))");
  EXPECT_EQ(refused.error().code, Errc::kInvalidArgument) << refused.error().text();
  EXPECT_THAT(refused.error().detail, HasSubstr("cast it to bytea"));
}

// What the relay adds counts: it would end as a dead letter.
TEST_P(OutboxTest, an_event_has_no_more_headers_than_a_record_may_have) {
  Outbox outbox(database());
  ASSERT_TRUE(app_->run("BEGIN"));
  const auto agrees = [&](const Event& event, std::string_view what) {
    const relay::Outgoing record{.type = event.type,
                                 .headers = event.headers,
                                 .correlation_id = event.correlation_id,
                                 .causation_id = event.causation_id};
    const auto headers = relay::stream_headers(record);
    std::size_t bytes = 0;
    for (const auto& [name, value] : headers) bytes += name.size() + value.size();
    const bool fits = headers.size() <= limits::kHeadersMax && bytes <= limits::kHeaderBytesMax;
    const auto published = outbox.publish(event);
    EXPECT_EQ(published.has_value(), fits) << what;
    EXPECT_TRUE(published || published.error().code == Errc::kLimitExceeded);
    return fits;
  };
  Event event = placed();
  event.headers.resize(limits::kHeadersMax, {"n", "v"});
  EXPECT_FALSE(agrees(event, "64 headers and the type"));
  event.headers.pop_back();
  EXPECT_TRUE(agrees(event, "63 and the type"));
  event.causation_id = "c";
  EXPECT_FALSE(agrees(event, "63, the type and a causation id"));
  event.headers.clear();
  event.correlation_id = std::string(100'000, 'c');
  EXPECT_FALSE(agrees(event, "a long correlation id"));
  event.correlation_id.resize(65'536 - std::string("correlation_id").size() -
                              std::string("event_typeorder.placed").size() -
                              std::string("causation_idc").size());
  EXPECT_TRUE(agrees(event, "as long as it may be"));
  event.correlation_id += 'c';
  EXPECT_FALSE(agrees(event, "a byte longer"));
  ASSERT_TRUE(app_->run("ROLLBACK"));
}

TEST_P(OutboxTest, a_batch_keeps_its_order) {
  Outbox outbox(database());
  std::vector<Event> events;
  for (int i = 0; i < 300; ++i) {
    events.push_back(placed("key" + std::to_string(i % 7)));
    if (i % 3 == 0) events.back().key.reset();
    events.back().id = std::to_string(1000 + i);
  }
  ASSERT_TRUE(database().with_transaction([&]() -> Status {
    HAPAX_CHECK(outbox.publish(events));
    return Ok{};
  }));
  EXPECT_EQ(count(table("outbox")), 300);
  EXPECT_EQ(app_->number("SELECT count(*) FROM " + table("outbox") + " a JOIN " + table("outbox") +
                         " b ON b.seq = a.seq + 1 AND b.id > a.id"),
            299);
  EXPECT_EQ(app_->number("SELECT count(*) FROM " + table("outbox") + " WHERE key IS NULL"), 100);
}

// O2: what publishes under one key commits in the order of its numbers: whoever has a number sees
// every event of the key with a lower one.
TEST_P(OutboxTest, under_one_key_the_order_of_numbers_is_the_order_of_commits) {
  constexpr int kThreads = 4;
  constexpr int kEach = 15;
  std::vector<std::thread> threads;
  for (int n = 0; n < kThreads; ++n) {
    threads.emplace_back([&, n] {
      const auto process = start();
      Outbox outbox(process->database());
      for (int i = 0; i < kEach; ++i) {
        const std::string id = base::format("{}-{}", n, i);
        Status done = Error{Errc::kLocked, ""};
        while (!done && done.error().code == Errc::kLocked) {
          done = process->database().with_transaction([&]() -> Status {
            Event event = placed("one");
            event.id = id;
            HAPAX_CHECK(outbox.publish(event));
            const std::int64_t seen =
                process->number("SELECT count(*) FROM " + table("outbox") + " WHERE key = 'one'");
            return order(*process, std::to_string(seen));
          });
        }
        EXPECT_TRUE(done) << done.error().text();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  // Each saw another number of events: 1, 2, 3 … in the order of their commits.
  EXPECT_EQ(count("orders"), kThreads * kEach);
  EXPECT_EQ(count(table("outbox")), kThreads * kEach);
}

TEST_P(OutboxTest, tables_that_are_missing_are_said_to_be) {
  ASSERT_TRUE(app_->run("DELETE FROM " + table("migrations")));
  const auto opened = [&]() -> Result<Ok> {
    if (GetParam().name == "sqlite") {
      auto connection = *sqlite::Connection::open(address_);
      HAPAX_CHECK(on_sqlite(connection.raw()));
    } else {
      auto connection = *postgres::Connection::open(address_);
      HAPAX_CHECK(on_postgres(connection.raw()));
    }
    return Ok{};
  }();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::kFormatVersion);
  EXPECT_THAT(opened.error().detail, HasSubstr("run: hapax migrate"));
}

}  // namespace
}  // namespace hapax::application
