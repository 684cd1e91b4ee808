"""Workflows of `hapax serve` from tables that were there before us, as applications made them."""

import contextlib
import json
import os
import sqlite3
import subprocess
import unittest

from outbox_workflows_test import delivery_key
from relaying import RelayCase
from running import Server, arguments, wait_for

# As people wrote them down. PostgreSQL has no INDEX within CREATE TABLE, and offset is a word of
# its own.
EVENTS = """
CREATE TABLE outbox_events (
    id BIGSERIAL PRIMARY KEY,
    event_id VARCHAR(100) UNIQUE NOT NULL,  -- Deduplication key
    topic VARCHAR(255) NOT NULL,
    partition INT NOT NULL,
    "offset" BIGINT NOT NULL,
    endpoint_url VARCHAR(500) NOT NULL,
    payload JSONB NOT NULL,
    headers JSONB,
    created_at TIMESTAMP DEFAULT NOW(),
    delivered_at TIMESTAMP NULL,
    delivery_attempts INT DEFAULT 0,
    last_error TEXT NULL
);
CREATE INDEX idx_undelivered ON outbox_events (endpoint_url, delivered_at)
    WHERE delivered_at IS NULL;
"""
EVENTS_COLUMNS = ("{id: event_id, payload: payload, delivered: delivered_at, key: topic, "
                  "headers: headers, created: created_at, attempts: delivery_attempts, "
                  "error: last_error}")

AGGREGATES = """
CREATE TABLE outbox (
  id UUID PRIMARY KEY,
  aggregate_type VARCHAR(255) NOT NULL,
  aggregate_id VARCHAR(255) NOT NULL,
  event_type VARCHAR(255) NOT NULL,
  payload JSONB NOT NULL,
  created_at TIMESTAMP NOT NULL DEFAULT NOW(),
  published_at TIMESTAMP NULL
);
CREATE INDEX idx_outbox_unpublished ON outbox (created_at)
  WHERE published_at IS NULL;
"""
AGGREGATES_COLUMNS = ("{id: id, payload: payload, delivered: published_at, key: aggregate_id, "
                      "type: event_type, created: created_at}")

STATUSES = """
CREATE TABLE outbox_events (
    id UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    event_type VARCHAR(255) NOT NULL,
    aggregate_id VARCHAR(255) NOT NULL,
    data JSONB NOT NULL,
    metadata JSONB DEFAULT '{}',
    status VARCHAR(50) DEFAULT 'pending',
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    published_at TIMESTAMP NULL,
    retry_count INTEGER DEFAULT 0,
    last_error TEXT NULL
);
CREATE INDEX idx_outbox_status_created ON outbox_events (status, created_at);
CREATE INDEX idx_outbox_aggregate ON outbox_events (aggregate_id, created_at);
"""
STATUSES_COLUMNS = ("{id: id, payload: data, delivered: published_at, key: aggregate_id, "
                    "type: event_type, headers: metadata, created: created_at, "
                    "attempts: retry_count, error: last_error, status: status}")


class OutboxTablesTest(RelayCase):
    def flow(self, receiver, table, columns, more=""):
        return f"""
workflows:
  - id: shop
    source: {{type: outbox, database: "${{env:SHOP}}", table: '{table}', columns: {columns}}}
    endpoint: {{url: "{receiver.url}"}}
{more}
"""

    def start(self, config, database=None):
        return self.serve(config, {"SHOP": database or self.cluster.uri()})

    def told(self, receiver):
        return [json.loads(body) for _, body, _ in list(receiver.got)]

    def orders(self, receiver):
        return [each["data"]["order"] for each in self.told(receiver)]

    def arrive(self, receiver, *orders, seconds=60):
        wait_for(lambda: set(self.orders(receiver)) >= set(orders),
                 lambda: f"{orders} at the endpoint, which has {self.orders(receiver)}", seconds)

    def psql(self, sql):
        return self.cluster.psql(sql)

    def uid(self):
        return self.psql("SELECT uid FROM hapax.outbox_uid")

    def all_marked(self, table, column):
        sql = f"SELECT count(*) FROM {table} WHERE {column} IS NULL"
        wait_for(lambda: self.psql(sql) == "0", "all rows to be marked")

    def test_a_table_of_events_with_a_deduplication_key(self):
        receiver = self.receiver()
        self.psql(EVENTS + "CREATE TABLE orders (id TEXT PRIMARY KEY);")
        insert = ("BEGIN; INSERT INTO orders VALUES ('{0}'); INSERT INTO outbox_events (event_id, "
                  "topic, partition, \"offset\", endpoint_url, payload, headers) VALUES ('sales-0-"
                  "{0}', 'sales', 0, 1, 'x', '{{\"order\": \"{0}\"}}', '{{\"traceparent\": "
                  "\"00-ab\"}}'); {1};")
        self.psql(insert.format("o1", "COMMIT"))
        server = self.start(self.flow(receiver, "outbox_events", EVENTS_COLUMNS))
        self.arrive(receiver, "o1")
        self.psql(insert.format("o2", "ROLLBACK"))
        self.psql(insert.format("o3", "COMMIT"))
        self.arrive(receiver, "o3")
        self.assertEqual(self.orders(receiver), ["o1", "o3"])
        key = delivery_key(self.uid(), "public.outbox_events", "sales-0-o1")
        self.assertEqual((receiver.got[0][0], receiver.heads[0]["traceparent"]), (key, "00-ab"))
        self.all_marked("outbox_events", "delivered_at")
        self.assertEqual(self.psql("SELECT DISTINCT delivery_attempts, last_error IS NULL, "
                                   "delivered_at - created_at < interval '1 hour' "
                                   "FROM outbox_events"), "1|t|t")
        state = server.call("GET", "/workflows/shop").json
        self.assertEqual(state["state"], "running", state)

    def test_a_table_of_aggregates_keeps_their_order_over_kill_9(self):
        receiver = self.receiver()
        self.psql(AGGREGATES)
        server = self.start(self.flow(receiver, "public.outbox", AGGREGATES_COLUMNS))
        orders = [f"o{n}" for n in range(90)]
        for i, order in enumerate(orders):
            self.psql("INSERT INTO outbox (id, aggregate_type, aggregate_id, event_type, payload) "
                      f"VALUES (gen_random_uuid(), 'Order', 'a{i % 9}', 'OrderCreated', "
                      f"'{{\"order\": \"{order}\"}}')")
            if i in (30, 60):
                wait_for(lambda: len(receiver.got) > i // 2, "some to arrive")
                server.restart()
        self.arrive(receiver, *orders, seconds=120)
        firsts = list(dict.fromkeys(self.orders(receiver)))
        for each in range(9):
            mine = [order for order in firsts if int(order[1:]) % 9 == each]
            self.assertEqual(mine, [order for order in orders if int(order[1:]) % 9 == each])
        self.assertEqual(len({key for key, _, _ in receiver.got}), len(orders))
        self.assertEqual({each["eventType"] for each in self.told(receiver)}, {"OrderCreated"})
        self.all_marked("outbox", "published_at")

    def test_a_table_with_states_has_them_written(self):
        receiver = self.receiver()
        self.psql(STATUSES)
        insert = ("INSERT INTO outbox_events (event_type, aggregate_id, data) VALUES ('JobDone', "
                  "'j1', '{{\"order\": \"{}\"}}');")
        self.psql(insert.format("o1"))
        self.start(self.flow(receiver, "outbox_events", STATUSES_COLUMNS,
                             "    transform: {jq: '.order |= . + \"!\"'}"))
        self.arrive(receiver, "o1!")
        self.psql(insert.format("o2"))
        self.arrive(receiver, "o2!")
        self.all_marked("outbox_events", "published_at")
        self.assertEqual(self.psql("SELECT DISTINCT status, retry_count FROM outbox_events"),
                         "published|1")

    def test_a_row_of_an_infinite_time_holds_up_nobody(self):
        receiver = self.receiver()
        self.psql(AGGREGATES)
        insert = ("INSERT INTO outbox VALUES (gen_random_uuid(), 't', '{0}', 'e', "
                  "'{{\"order\": \"{0}\"}}', '{1}');")
        for order, created in (("o1", "-infinity"), ("o2", "2026-01-31"), ("o3", "infinity")):
            self.psql(insert.format(order, created))
        self.start(self.flow(receiver, "outbox", AGGREGATES_COLUMNS))
        self.arrive(receiver, "o3")
        self.all_marked("outbox", "published_at")
        self.assertEqual(sorted(self.orders(receiver)), ["o1", "o2", "o3"])

    def test_a_row_that_commits_late_is_not_lost(self):
        receiver = self.receiver()
        self.psql(EVENTS)
        self.start(self.flow(receiver, "outbox_events", EVENTS_COLUMNS))
        insert = ("INSERT INTO outbox_events (event_id, topic, partition, \"offset\", "
                  "endpoint_url, payload) VALUES ('{0}', '{0}', 0, 1, 'x', '{{\"order\": "
                  "\"{0}\"}}');")
        early = subprocess.Popen(["psql", "-X", "-q", self.cluster.uri()], stdin=subprocess.PIPE,
                                 text=True)
        self.addCleanup(early.wait)
        self.addCleanup(early.stdin.close)
        early.stdin.write("BEGIN; " + insert.format("early") + "\n")
        early.stdin.flush()
        wait_for(lambda: self.psql("SELECT count(*) FROM pg_stat_activity WHERE state = "
                                   "'idle in transaction' AND query LIKE '%early%'") == "1",
                 "the early one to wait")
        self.psql(insert.format("later"))
        self.arrive(receiver, "later")
        self.assertEqual(self.orders(receiver), ["later"])
        early.stdin.write("COMMIT;\n")
        early.stdin.flush()
        self.arrive(receiver, "early")
        self.all_marked("outbox_events", "delivered_at")

    def from_sqlite(self, tables, table, columns, insert, *orders):
        """The same as people would write it in SQLite: without functions of PostgreSQL."""
        receiver = self.receiver()
        source, _ = self.sqlite()
        for old, new in (("NOW()", "CURRENT_TIMESTAMP"), ("DEFAULT gen_random_uuid()", "")):
            tables = tables.replace(old, new)

        def run(sql):
            with contextlib.closing(sqlite3.connect(source[7:], timeout=30)) as app:
                app.executescript(sql)
                rows = app.execute(f"SELECT * FROM {table} ORDER BY rowid")
                names = [column[0] for column in rows.description]
                return [dict(zip(names, row)) for row in rows]
        run(tables)
        half = len(orders) // 2
        for number, order in enumerate(orders[:half]):
            run(insert.format(number, order))
        server = self.start(self.flow(receiver, table, columns), source)
        self.arrive(receiver, *orders[:half])
        server.restart()
        for number, order in enumerate(orders[half:]):
            run("BEGIN; " + insert.format(number + half, order) + "COMMIT;")
            run("BEGIN; " + insert.format(number + 100, "never") + "ROLLBACK;")
        self.arrive(receiver, *orders)
        self.assertEqual(list(dict.fromkeys(self.orders(receiver))), list(orders))
        return receiver, lambda: run("")

    def test_a_table_of_events_in_sqlite(self):
        insert = ("INSERT INTO outbox_events (event_id, topic, partition, \"offset\", "
                  "endpoint_url, payload, headers) VALUES ('e{0}', 'k', 0, 1, 'x', '{{\"order\": "
                  "\"{1}\"}}', '{{\"traceparent\": \"00-{1}\"}}');")
        receiver, rows = self.from_sqlite(EVENTS.replace("BIGSERIAL", "INTEGER"), "outbox_events",
                                          EVENTS_COLUMNS, insert, "o1", "o2", "o3", "o4")
        self.assertEqual(receiver.heads[0]["traceparent"], "00-o1")
        wait_for(lambda: all(row["delivered_at"] for row in rows()), "all rows to be marked")
        self.assertEqual({(row["delivery_attempts"], row["last_error"]) for row in rows()},
                         {(1, None)})

    def test_a_table_of_aggregates_in_sqlite(self):
        insert = ("INSERT INTO outbox (id, aggregate_type, aggregate_id, event_type, payload) "
                  "VALUES ('0192f0c1-7b5e-7c3a-9d21-4f6a8b0c1{0:03}', 'Order', 'a1', "
                  "'OrderCreated', '{{\"order\": \"{1}\"}}');")
        receiver, rows = self.from_sqlite(AGGREGATES, "outbox", AGGREGATES_COLUMNS, insert,
                                          "o1", "o2", "o3", "o4")
        wait_for(lambda: all(row["published_at"] for row in rows()), "all rows to be marked")
        self.assertEqual({each["eventType"] for each in self.told(receiver)}, {"OrderCreated"})

    def test_a_table_with_states_in_sqlite(self):
        insert = ("INSERT INTO outbox_events (id, event_type, aggregate_id, data) VALUES ('{0}', "
                  "'JobDone', 'j1', '{{\"order\": \"{1}\"}}');")
        _, rows = self.from_sqlite(STATUSES, "outbox_events", STATUSES_COLUMNS, insert, "o1", "o2")
        wait_for(lambda: all(row["published_at"] for row in rows()), "all rows to be marked")
        self.assertEqual({(row["status"], row["retry_count"]) for row in rows()},
                         {("published", 1)})

    def test_a_wrong_mapping_of_an_sqlite_file_is_told(self):
        receiver = self.receiver()
        source, _ = self.sqlite()

        def run(sql):
            with contextlib.closing(sqlite3.connect(source[7:], timeout=30)) as app:
                app.executescript(sql)
        server = self.start(self.flow(receiver, "box", "{id: id, payload: body, delivered: at}"),
                            source)

        def reason():
            told = server.call("GET", "/workflows/shop").json
            return told.get("reason", "") if told["state"] == "waiting" else ""
        for table, words in (
                ("", "there is no table box in the file"),
                ("CREATE TABLE box (id TEXT)", "column id of table box must have a unique index"),
                ("CREATE TABLE box (id TEXT UNIQUE, x)", "has no column body; it has id, x"),
                ("CREATE TABLE box (id TEXT UNIQUE, body, at INT)", "is declared as 'int'")):
            run("DROP TABLE IF EXISTS box; " + table)
            wait_for(lambda: words in reason(), lambda: f"'{words}', not '{reason()}'")
        run("DROP TABLE box; CREATE TABLE box (id TEXT UNIQUE, body, at DATETIME); "
            "INSERT INTO box VALUES (NULL, '1', NULL), ('a', '{\"order\": \"o1\"}', NULL)")
        self.arrive(receiver, "o1")
        server.wait_for_log("its id is empty")

    def stored(self, columns, database, count):
        """The first payloads that a workflow from the table `box` stores."""
        server = self.start(f"""
streams: [{{stream: archive}}]
workflows:
  - id: shop
    source: {{type: outbox, database: "${{env:SHOP}}", table: box, columns: {columns}}}
    endpoint: {{stream: archive}}
""", database)

        def payloads():
            told = server.call("GET", "/streams/archive/records?max=100")
            return [each["payload"] for each in told.json["records"]]
        wait_for(lambda: len(payloads()) >= count,
                 lambda: f"{count} records; there are {payloads()}")
        return payloads()

    def test_rows_without_a_payload_keep_their_place(self):
        self.psql("CREATE TABLE box (id INT PRIMARY KEY, body TEXT, at TIMESTAMP);"
                  "INSERT INTO box VALUES (1, NULL), (2, NULL), (3, 'x'), (4, NULL)")
        found = self.stored("{id: id, payload: body, delivered: at}", None, 4)
        self.assertEqual(found, ["", "", "x", ""])
        self.all_marked("box", "at")

    # Columns of SQLite need no types, so one column has numbers and texts.
    def test_rows_of_sqlite_that_cannot_be_stored_hold_up_nobody(self):
        source, _ = self.sqlite()
        with contextlib.closing(sqlite3.connect(source[7:], timeout=30)) as app:
            app.executescript(
                "CREATE TABLE box (id UNIQUE, body, at DATETIME);"
                "INSERT INTO box VALUES ('large', zeroblob(34000000), NULL), (NULL, 'a', NULL), "
                "(NULL, 'b', NULL), (x'00', 'c', NULL);"
                "INSERT INTO box (id, body) VALUES (1, NULL), (2, NULL), ('b', 'x'), (3.5, 'y')")
            found = self.stored("{id: id, payload: body, delivered: at}", source, 4)
            self.assertEqual(found, ["", "", "x", "y"])

            def waiting():
                return app.execute("SELECT count(*) FROM box WHERE at IS NULL").fetchone()[0]
            wait_for(lambda: waiting() == 4, lambda: f"the rest to be marked, not {waiting()}")

    def test_names_are_quoted(self):
        receiver = self.receiver()
        self.psql('CREATE SCHEMA "my""app"; CREATE TABLE "my""app"."Out Box" ("the ""id" BIGINT '
                  'PRIMARY KEY, "Body" TEXT, "done; DROP TABLE x" BOOLEAN);'
                  'INSERT INTO "my""app"."Out Box" VALUES (7, \'{"order": "o1"}\', NULL), '
                  '(8, \'{"order": "o2"}\', false), (9, \'{"order": "o3"}\', true)')
        columns = "{id: 'the \"id', payload: Body, delivered: 'done; DROP TABLE x'}"
        self.start(self.flow(receiver, '"my""app"."Out Box"', columns))
        self.arrive(receiver, "o1", "o2")
        wait_for(lambda: self.psql('SELECT count(*) FROM "my""app"."Out Box" WHERE "done; DROP '
                                   'TABLE x"') == "3", "both to be marked")
        self.assertEqual(sorted(self.orders(receiver)), ["o1", "o2"])

    def test_processes_of_one_store_store_each_row_once(self):
        self.psql(AGGREGATES)
        self.cluster.psql("DROP DATABASE IF EXISTS store", "postgres")
        self.cluster.psql("CREATE DATABASE store", "postgres")
        config = f"""
streams: [{{stream: archive}}]
workflows:
  - id: shop
    source:
      {{type: outbox, database: "${{env:SHOP}}", table: outbox, columns: {AGGREGATES_COLUMNS}}}
    endpoint: {{stream: archive}}
"""
        servers = []
        for number in range(2):
            folder = os.path.join(self.folder, str(number))
            os.makedirs(folder)
            server = Server(self.HAPAX, folder, "--store", self.cluster.uri("store"),
                            config=config, environment={"SHOP": self.cluster.uri()})
            self.addCleanup(server.end)
            servers.append(server)

        def insert(first, end):
            for n in range(first, end):
                self.psql("INSERT INTO outbox (id, aggregate_type, aggregate_id, event_type, "
                          f"payload) VALUES (gen_random_uuid(), 'Order', 'a{n % 5}', 't', '{n}')")

        def archived():
            told = servers[1].call("GET", "/streams/archive/records?max=1000")
            return [int(each["payload"]) for each in told.json["records"]]
        insert(0, 30)
        wait_for(lambda: len(archived()) >= 15, "some to arrive")
        servers[0].kill()
        insert(30, 60)
        wait_for(lambda: len(archived()) >= 60, lambda: f"all; there are {archived()}", 60)
        self.all_marked("outbox", "published_at")
        self.assertEqual(sorted(archived()), list(range(60)))
        for each in range(5):
            mine = [n for n in archived() if n % 5 == each]
            self.assertEqual(mine, sorted(mine))

    def test_a_wrong_mapping_is_told_and_waited_for(self):
        receiver = self.receiver()
        server = self.start(self.flow(receiver, "outbox_events",
                                      EVENTS_COLUMNS.replace("payload: payload", "payload: body")))

        def reason():
            told = server.call("GET", "/workflows/shop").json
            return told.get("reason", "") if told["state"] == "waiting" else ""
        wait_for(lambda: "there is no table outbox_events" in reason(), reason)
        self.psql(EVENTS.replace("headers JSONB", "headers TEXT"))
        wait_for(lambda: "source.columns.payload: table public.outbox_events has no column body; "
                 "it has id, event_id" in reason(), reason)
        self.psql("ALTER TABLE outbox_events RENAME payload TO body")
        wait_for(lambda: "source.columns.headers: column headers of table public.outbox_events is "
                 "text; it must be json or jsonb" in reason(), reason)
        self.psql("ALTER TABLE outbox_events DROP headers; ALTER TABLE outbox_events ADD headers "
                  "JSONB; ALTER TABLE outbox_events DROP CONSTRAINT outbox_events_event_id_key")
        wait_for(lambda: "source.columns.id: column event_id" in reason(), reason)
        self.psql("ALTER TABLE outbox_events ADD UNIQUE (event_id); "
                  "INSERT INTO outbox_events (event_id, topic, partition, \"offset\", "
                  "endpoint_url, body) VALUES ('e', 't', 0, 1, 'x', '{\"order\": \"o1\"}')")
        self.arrive(receiver, "o1")

    def test_a_row_that_cannot_be_stored_is_told_in_the_table_and_holds_up_nobody(self):
        receiver = self.receiver()
        self.psql(EVENTS.replace("payload JSONB", "payload TEXT"))
        self.start(self.flow(receiver, "outbox_events", EVENTS_COLUMNS))
        insert = ("INSERT INTO outbox_events (event_id, topic, partition, \"offset\", "
                  "endpoint_url, payload) VALUES ('{}', 't', 0, 1, 'x', {});")
        self.psql(insert.format("large", "repeat('x', 9000000)")
                  + insert.format("small", "'{\"order\": \"o1\"}'"))
        self.arrive(receiver, "o1")
        wait_for(lambda: "HX1002" in self.psql(
            "SELECT last_error FROM outbox_events WHERE event_id = 'large'"), "the reason")
        self.assertEqual(self.psql("SELECT delivered_at IS NULL FROM outbox_events WHERE event_id "
                                   "= 'large'"), "t")


if __name__ == "__main__":
    OutboxTablesTest.HAPAX, _ = arguments()
    unittest.main()
