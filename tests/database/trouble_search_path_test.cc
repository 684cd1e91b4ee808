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
  for (const std::string call : {
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
           "forget_expired()",
           "relay_bystanders('{1,2}')",
           "outbox_renumber('2020-01-01')",
       }) {
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
  database::Findings findings;
  auto connection = *postgres::Connection::open(address_);
  const postgres::CheckupOptions options{.uri = address_, .shown = "DB"};
  postgres::check_server(options, connection, findings);
  postgres::check_tables(options, connection, findings);
  EXPECT_GT(findings.all().size(), 15U);
  for (const database::Finding& each : findings.all()) {
    EXPECT_THAT(each.found, Not(HasSubstr("could not be looked at"))) << each.check;
  }
  const auto again = relay.source->redrive({});
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_TRUE(relay.source->clean());
  EXPECT_TRUE(relay.engine.stop());
}

}  // namespace
}  // namespace hapax::application
