// PostgreSQL reads the texts of functions by the caller's search_path, and prefers what fits the
// types exactly to what is its own. Who may create functions in a schema of that path must not get
// the rights of whoever publishes, relays or looks.
#include <algorithm>

#include <hapax/hapax.h>

#include "application.h"
#include "postgres/checkup.h"
#include "postgres/outbox_source.h"
#include "relay_rig.h"

namespace hapax::application {
namespace {

using testing::HasSubstr;
using testing::Not;

// In `public`, which is on the path: each operator that the server does not have for a pair of
// types, and what our functions call with each type, and pairs of types, that it is not made for.
constexpr const char* kHostile = R"(
SET search_path = pg_catalog;
CREATE TABLE public.called AS
  SELECT DISTINCT p.proname AS name FROM pg_proc AS p, (
    SELECT DISTINCT m[1] AS word FROM pg_proc AS o, regexp_matches(o.prosrc, '(\w+)\(', 'g') AS m
    WHERE o.pronamespace = 'hapax'::regnamespace) AS w
  WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.proname = w.word;
DO $plant$
DECLARE
  types regtype[] := '{int2,int4,int8,numeric,float8,text,name,bool,bytea,jsonb,uuid,interval,
    timestamptz,date,xid8,oid,text[],int4[],int8[],bytea[],xid8[]}';
  few regtype[] := '{int4,int8,numeric,float8,text,bytea,jsonb,timestamptz}';
  a regtype;
  b regtype;
  operator text;
  called name;
BEGIN
  FOREACH a IN ARRAY types LOOP
    FOR called IN SELECT c.name FROM public.called AS c LOOP
      CONTINUE WHEN EXISTS (SELECT 1 FROM pg_proc AS p WHERE p.proname = called
        AND p.pronamespace = 'pg_catalog'::regnamespace
        AND p.proargtypes = a::oid::text::oidvector);
      EXECUTE format('CREATE FUNCTION public.%I(%s) RETURNS %2$s LANGUAGE plpgsql AS
        ''BEGIN RAISE ''''taken''''; END''', called, a);
    END LOOP;
    FOREACH b IN ARRAY types LOOP
      EXECUTE format('CREATE FUNCTION public.is_taken(%s, %s) RETURNS boolean LANGUAGE plpgsql AS
        ''BEGIN RAISE ''''taken''''; END''', a, b);
      EXECUTE format('CREATE FUNCTION public.taken(%s, %s) RETURNS %1$s LANGUAGE plpgsql AS
        ''BEGIN RAISE ''''taken''''; END''', a, b);
      FOREACH operator IN ARRAY '{+,-,*,/,%,&,|,||,<,>,<=,>=,=,<>,->,->>}'::text[] LOOP
        CONTINUE WHEN EXISTS (SELECT 1 FROM pg_operator AS o WHERE o.oprname = operator
          AND o.oprnamespace = 'pg_catalog'::regnamespace AND o.oprleft = a AND o.oprright = b);
        EXECUTE format('CREATE OPERATOR public.%s (FUNCTION = public.%s, LEFTARG = %s,
          RIGHTARG = %s)', operator,
          CASE WHEN operator IN ('<', '>', '<=', '>=', '=', '<>') THEN 'is_taken' ELSE 'taken' END,
          a, b);
      END LOOP;
    END LOOP;
  END LOOP;
  FOR called, a, b IN SELECT c.name, x, y FROM public.called AS c, unnest(few) AS x,
      unnest(few) AS y WHERE EXISTS (SELECT 1 FROM pg_proc AS p WHERE p.proname = c.name
        AND p.pronargs >= 2 AND p.pronamespace = 'pg_catalog'::regnamespace) LOOP
    CONTINUE WHEN EXISTS (SELECT 1 FROM pg_proc AS p WHERE p.proname = called
      AND p.pronamespace = 'pg_catalog'::regnamespace
      AND p.proargtypes = (a::oid || ' ' || b::oid)::oidvector);
    EXECUTE format('CREATE FUNCTION public.%I(%s, %s) RETURNS %2$s LANGUAGE plpgsql AS
      ''BEGIN RAISE ''''taken''''; END''', called, a, b);
  END LOOP;
END $plant$;
CREATE FUNCTION public.set_bit(bytea, integer, integer) RETURNS bytea LANGUAGE plpgsql AS
  $$ BEGIN RAISE 'taken'; END $$;
CREATE FUNCTION public.format(text, integer, name, text, text) RETURNS text LANGUAGE plpgsql AS
  $$ BEGIN RAISE 'taken'; END $$;
CREATE FUNCTION public.jsonb_path_exists(jsonb, jsonpath) RETURNS boolean LANGUAGE plpgsql AS
  $$ BEGIN RAISE 'taken'; END $$;
)";

// What an application or a relay calls. The fences are those that the calls before were given.
constexpr const char* kCalls[] = {
    "relay_announce(60000)",
    "publish('t', 'x')",
    "publish('t', 'x', 'k', 'i', '[[\"a\", \"1\"]]', 'c', 'd')",
    "publish_all('{t}', '{x}', '{k}', '{i}', '{\"[]\"}', '{NULL}', '{NULL}')",
    "relay_renounce()",
    "uuid7()",
    "uuid_of('6ba7b810-9dad-11d1-80b4-00c04fd430c8', 'n')",
    "relay_headers('[[\"a\", \"1\"]]')",
    "inbox_take('s', 'm', '\\x00', '1 hour')",
    "inbox_accept('s', '{m,n}', '{\"\\\\x01\",\"\\\\x02\"}', '1 hour')",
    "inbox_outcome('s', 'm', 'x')",
    "check_and_lock('s', 'k', 'w', '1 min', '\\x00')",
    "renew('s', 'k', 1, '1 min')",
    "mark_failed('s', 'k', 1)",
    "check_and_lock('s', 'k', 'w', '1 min')",
    "mark_complete('s', 'k', 2)",
    "get_status('s', 'k')",
    "is_processed('s', 'k')",
    "claim_drop('s', 'k', 2)",
    "check_and_lock('s', 'u', 'w', '1 min', on_lapse => 'unknown')",
    "mark_unknown('s', 'u', 4)",
    "resolve('s', 'u', 'completed', 'ann', 'asked')",
    "forget('s', 'u', 'ann', 'asked')",
    "inbox_retain('s', '1 hour')",
    "claims_retain('s', '1 hour')",
    "publish('t', '{}', key => 7, id => 'i')",
    "forget_expired()",
    "relay_bystanders('{1,2}')",
    "outbox_renumber('2020-01-01')",
};

class SearchPath : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    address_ = prepare_postgres("");
    auto hostile = *postgres::Connection::open(address_);
    const auto planted = hostile.run(kHostile);
    ASSERT_TRUE(planted) << planted.error().text();
    auto victim = *postgres::Connection::open(address_);
    ASSERT_FALSE(victim.run("SELECT 16.0 / count(*) FROM hapax.inbox"));
  }
  void expect_done(const std::string& sql) {
    const Status done = app_.run(sql);
    EXPECT_TRUE(done) << sql << ": " << done.error().text();
  }

  static inline std::string address_;
  OnPostgres app_{address_};
};

TEST_F(SearchPath, nothing_that_sql_calls_is_taken_for_the_servers) {
  auto connection = *postgres::Connection::open(address_);
  for (const std::chrono::seconds retention : {std::chrono::hours{1}, std::chrono::hours{2'400}}) {
    ASSERT_TRUE(postgres::migrate(connection, {.retention = retention}));
    expect_done("SELECT hapax.publish('t', 'x', 'k')");
  }
  for (const std::string call : kCalls) {
    expect_done("SELECT hapax." + call);
  }
}

TEST_F(SearchPath, nothing_that_an_application_asks_is_taken_for_the_servers) {
  for (const bool prepared : {false, true}) {
    OnPostgres app(address_, {.prepared = prepared});
    const Status done = app.database().with_transaction([&]() -> Status {
      Outbox outbox(app.database());
      const std::vector<Event> two{{.type = "t", .key = "k"},
                                   {.type = "t", .headers = {{"a", "b"}}}};
      HAPAX_CHECK(outbox.publish(two.back()));
      HAPAX_CHECK(outbox.publish(two));
      return Ok{};
    });
    EXPECT_TRUE(done) << done.error().text();
  }
  Inbox inbox(app_.database(), {.retention = Window{std::chrono::hours{1}}});
  for (int i = 0; i < 2; ++i) {
    const auto handled =
        inbox.handle("app", {"m", "c"}, [] { return Result<std::string>("done"); });
    EXPECT_TRUE(handled) << handled.error().text();
  }
  const Fence fence = as<Claimed>(inbox.begin("app", {"n", ""}, "w")).fence;
  as<Renewed>(inbox.renew("app", {"n", ""}, fence));
  as<Done>(inbox.finish("app", {"n", ""}, fence, [] { return Result<std::string>("done"); }));
  as<DuplicateClaim>(inbox.begin("app", {"n", ""}, "w"));
  EXPECT_TRUE(inbox.forget_expired());
}

TEST_F(SearchPath, nothing_that_relays_and_checkups_ask_is_taken_for_the_servers) {
  for (const std::string id : {"bad", "good", "after"}) {
    expect_done("SELECT hapax.publish('t', 'x', 'k" + id + "', '" + id + "', '[[\"a\", \"1\"]]')");
  }
  testing_relay::Receiver receiver;
  receiver.refused = {"bad"};
  auto source = *postgres::OutboxSource::open({.uri = address_, .owner = "r", .listen = false});
  auto& opened = *source;
  testing_relay::Relay relay{
      std::unique_ptr<relay::Source>(std::move(source)), receiver, {.attempts_max = 2}};
  relay.drain();
  expect_done("UPDATE hapax.outbox_retry SET next_at = clock_timestamp()");
  relay.drain();
  EXPECT_THAT(receiver.sent, testing::IsSupersetOf({"good", "after"}));
  EXPECT_EQ(opened.ready_to_sleep(Duration{1'000}, 0), Duration{5});
  const auto report = relay.source->report();
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_EQ(report->dead_letters, 1U);
  const auto letters = relay.source->dead_letters(10);
  ASSERT_TRUE(letters) << letters.error().text();
  tables::Findings findings;
  auto connection = *postgres::Connection::open(address_);
  const postgres::CheckupOptions options{.uri = address_, .shown = "DB"};
  postgres::check_server(options, connection, findings);
  postgres::check_tables(options, connection, findings);
  EXPECT_GT(findings.all().size(), 15U);
  for (const tables::Finding& each : findings.all()) {
    EXPECT_THAT(each.found, Not(HasSubstr("could not be looked at"))) << each.check;
  }
  const auto again = relay.source->redrive({});
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_TRUE(relay.source->clean());
  EXPECT_TRUE(relay.engine.stop());
}

// In `evil`, which stands before pg_catalog: what the server has itself, with the same arguments.
constexpr const char* kEvil = R"(
CREATE SCHEMA evil;
DO $plant$
DECLARE
  f record;
BEGIN
  FOR f IN SELECT DISTINCT p.proname, oidvectortypes(p.proargtypes) AS arguments,
      p.prorettype::regtype AS result, p.proretset FROM pg_proc AS p, pg_proc AS o
      WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind = 'f' AND p.provariadic = 0
        AND o.pronamespace = 'hapax'::regnamespace
        AND position(p.proname || '(' IN o.prosrc) > 0
        AND p.prorettype NOT IN (SELECT oid FROM pg_type WHERE typtype = 'p' AND typname <> 'void')
        AND NOT EXISTS (SELECT 1 FROM unnest(p.proargtypes) AS a(type)
                        JOIN pg_type AS t ON t.oid = a.type WHERE t.typtype = 'p') LOOP
    EXECUTE format('CREATE FUNCTION evil.%I(%s) RETURNS %s %s LANGUAGE plpgsql AS
      ''BEGIN RAISE ''''taken''''; END''', f.proname, f.arguments,
      CASE WHEN f.proretset THEN 'SETOF' END, f.result);
  END LOOP;
  FOR f IN SELECT o.oid, o.oprname, o.oprleft::regtype AS left_type, o.oprright::regtype AS
      right_type, o.oprresult::regtype AS result FROM pg_operator AS o
      WHERE o.oprnamespace = 'pg_catalog'::regnamespace AND o.oprkind = 'b'
        AND o.oprname IN ('+', '-', '*', '/', '%', '&', '||', '<', '>', '<=', '>=', '=', '<>', '~')
        AND NOT EXISTS (SELECT 1 FROM pg_type AS t WHERE t.typtype = 'p'
                        AND t.oid IN (o.oprleft, o.oprright, o.oprresult)) LOOP
    EXECUTE format('CREATE FUNCTION evil.taken_%s(%s, %s) RETURNS %s LANGUAGE plpgsql AS
      ''BEGIN RAISE ''''taken''''; END''', f.oid, f.left_type, f.right_type, f.result);
    EXECUTE format('CREATE OPERATOR evil.%s (FUNCTION = evil.taken_%s, LEFTARG = %s,
      RIGHTARG = %s)', f.oprname, f.oid, f.left_type, f.right_type);
  END LOOP;
  FOR f IN SELECT unnest('{text,bytea,uuid,regclass,date,jsonpath,jsonb,json,xid8,timestamptz,
      name,oid}'::text[]) AS name LOOP
    EXECUTE format('CREATE DOMAIN evil.%I AS boolean CHECK (false)', f.name);
  END LOOP;
  EXECUTE format('ALTER DATABASE %I SET search_path = evil, pg_catalog', current_database());
END $plant$;
)";

class EvilFirst : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    address_ = prepare_postgres("");
    auto hostile = *postgres::Connection::open(address_);
    const auto planted = hostile.run(kEvil);
    ASSERT_TRUE(planted) << planted.error().text();
    auto victim = *postgres::Connection::open(address_);
    ASSERT_FALSE(victim.run("SELECT 'x'::pg_catalog.text || 'y'::pg_catalog.text"));
  }
  static inline std::string address_;
};

TEST_F(EvilFirst, nothing_that_sql_calls_is_taken_for_the_servers) {
  OnPostgres app{address_};
  auto connection = *postgres::Connection::open(address_);
  for (const std::chrono::seconds retention : {std::chrono::hours{1}, std::chrono::hours{2'400}}) {
    ASSERT_TRUE(postgres::migrate(connection, {.retention = retention}));
    const Status done = app.run("SELECT hapax.publish('t', 'x', 'k')");
    EXPECT_TRUE(done) << done.error().text();
  }
  for (const std::string call : kCalls) {
    if (call.starts_with("relay_headers")) continue;  // Part of relay_take(), which has a path.
    const Status done = app.run("SELECT hapax." + call);
    EXPECT_TRUE(done) << call << ": " << done.error().text();
  }
}

TEST_F(EvilFirst, nothing_that_an_application_or_a_relay_asks_is_taken_for_the_servers) {
  for (const bool prepared : {false, true}) {
    OnPostgres app(address_, {.prepared = prepared});
    const Status done = app.database().with_transaction([&]() -> Status {
      const std::vector<Event> two{{.type = "t", .key = "k"},
                                   {.type = "t", .headers = {{"a", "b"}}}};
      HAPAX_CHECK(Outbox(app.database()).publish(two.back()));
      HAPAX_CHECK(Outbox(app.database()).publish(two));
      return Ok{};
    });
    EXPECT_TRUE(done) << done.error().text();
  }
  OnPostgres app{address_};
  Inbox inbox(app.database(), {.retention = Window{std::chrono::hours{1}}});
  const Fence fence = as<Claimed>(inbox.begin("app", {"n", ""}, "w")).fence;
  as<Done>(inbox.finish("app", {"n", ""}, fence, [] { return Result<std::string>("done"); }));
  as<DuplicateClaim>(inbox.begin("app", {"n", ""}, "w"));
  JobClaims jobs(app.database(), "mail");
  as<Done>(jobs.mark_complete("j", as<Claimed>(jobs.check_and_lock("j", "w")).fence));
  testing_relay::Receiver receiver;
  auto source = *postgres::OutboxSource::open({.uri = address_, .owner = "r", .listen = false});
  testing_relay::Relay relay{std::unique_ptr<relay::Source>(std::move(source)), receiver, {}};
  relay.drain();
  EXPECT_FALSE(receiver.sent.empty());
  const auto report = relay.source->report();
  EXPECT_TRUE(report) << report.error().text();
  const auto cleaned = relay.source->clean();
  EXPECT_TRUE(cleaned) << cleaned.error().text();
  EXPECT_TRUE(relay.engine.stop());
}

}  // namespace
}  // namespace hapax::application
