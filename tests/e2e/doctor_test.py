"""`hapax doctor DB`: each fault is planted, and its finding looked for."""

import contextlib
import json
import os
import socket
import sqlite3
import subprocess
import threading
import unittest

from postgres import Cluster
from running import FolderTest, Server, arguments, wait_for

FINE, WARNING, CRITICAL, USAGE = 0, 1, 2, 64


def send_all_but_notifications(source, target):
    """What a pooler makes of LISTEN: the answers come, the notifications do not."""
    data = b""
    while True:
        try:
            more = source.recv(65536)
        except OSError:
            return
        if not more:
            return
        data += more
        while len(data) >= 5 and len(data) >= 1 + int.from_bytes(data[1:5], "big"):
            size = 1 + int.from_bytes(data[1:5], "big")
            if data[:1] != b"A":
                target.sendall(data[:size])
            data = data[size:]


def send_all(source, target):
    with contextlib.suppress(OSError):
        while more := source.recv(65536):
            target.sendall(more)
        target.shutdown(socket.SHUT_WR)


class DoctorTest(FolderTest):
    def doctor(self, database, *more):
        done = subprocess.run([self.HAPAX, "doctor", database, "--json", *more],
                              capture_output=True, text=True, timeout=60, cwd=self.folder)
        self.assertEqual(done.stderr, "")
        told = json.loads(done.stdout)
        worst = {FINE: "ok", WARNING: "warning", CRITICAL: "critical"}[done.returncode]
        self.assertEqual(told["worst"], worst)
        self.assertEqual(told["healthy"], done.returncode == FINE)
        for check in told["checks"]:
            self.assertEqual(check["state"] != "ok", "advice" in check, check)
        return told["checks"]

    def assertFound(self, checks, check, state, found, advice=""):
        for one in checks:
            if one["check"] == check and one["state"] == state and found in one["found"]:
                self.assertIn(advice, one.get("advice", ""))
                return one
        self.fail(f"no {state} {check} with '{found}' in {json.dumps(checks, indent=1)}")


class PostgresDoctorTest(DoctorTest):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster("max_prepared_transactions = 5\nmax_connections = 20\n"
                              "timezone = 'UTC'\n")
        cls.cluster.psql("CREATE DATABASE migrated", "postgres")
        subprocess.run([cls.HAPAX, "migrate", cls.cluster.uri("migrated")], check=True,
                       stdout=subprocess.DEVNULL)

    @classmethod
    def tearDownClass(cls):
        cls.cluster.end()

    def setUp(self):
        super().setUp()
        self.cluster.psql("CREATE DATABASE shop TEMPLATE migrated", "postgres")
        self.addCleanup(self.put_aside)
        self.psql = self.cluster.psql

    def put_aside(self):
        """Dropping it would wait for a checkpoint."""
        self.cluster.psql("SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity WHERE "
                          "datname = 'shop';"
                          f"ALTER DATABASE shop RENAME TO was_{self._testMethodName}", "postgres")

    def found(self, *arguments, **more):
        self.assertFound(self.doctor(self.cluster.uri()), *arguments, **more)

    def healthy(self):
        """What is told where nothing is wrong. A notification has a second to come through."""
        checks = []

        def all_are_ok():
            checks[:] = self.doctor(self.cluster.uri())
            return {check["state"] for check in checks} == {"ok"}
        wait_for(all_are_ok, lambda: f"a healthy database: {checks}")
        return checks

    def sessions_like(self, name):
        return int(self.psql("SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE "
                             f"'{name}' AND backend_type = 'client backend'"))

    def session(self, sql):
        """A connection that stays open, in the state that the SQL leaves it in."""
        psql = subprocess.Popen(["psql", "-X", "-q", "-t", "-A", self.cluster.uri()], text=True,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE)

        def end():
            psql.stdin.close()
            psql.wait()
            psql.stdout.close()
        self.addCleanup(end)
        psql.stdin.write(sql + "SELECT 'ready';\n")
        psql.stdin.flush()
        while "ready" not in psql.stdout.readline():
            pass
        return psql

    def test_a_healthy_database(self):
        self.psql("SELECT hapax.publish('made', 'x', 'k')")
        checks = self.healthy()
        for name in ("reach", "writable", "durability", "connections", "clock", "transactions",
                     "notify", "schema", "structure", "ids", "waiting", "retries", "dead letters",
                     "size", "retention", "expired", "dead rows"):
            self.assertIn(name, [check["check"] for check in checks])
        text = self.hapax("doctor", self.cluster.uri())
        self.assertRegex(text, r"(?m)^ok +schema +hapax has version \d+$")

    def test_wrong_arguments_and_nobody_there(self):
        for words in (["mysql://x"], [self.cluster.uri(), "--patience", "long"],
                      [self.cluster.uri(), "--schema", 'a"b'], ["sqlite:"]):
            done = subprocess.run([self.HAPAX, "doctor", *words], capture_output=True, text=True,
                                  timeout=60)
            self.assertEqual(done.returncode, USAGE, done.stdout)
        checks = self.doctor(f"postgres://u:secret@/shop?host={self.folder}")
        self.assertFound(checks, "reach", "critical", "connect", "start the server")
        self.assertNotIn("secret", json.dumps(checks))

    def test_versions(self):
        found = self.doctor(self.cluster.uri(), "--schema", "other")
        self.assertFound(found, "schema", "critical", "no tables of Hapax", "--schema other")
        self.psql("INSERT INTO hapax.migrations VALUES (99, 'later', 'x')")
        self.found("schema", "warning", "has version 99", "newer Hapax")
        self.psql("DELETE FROM hapax.migrations WHERE version > 1")
        self.found("schema", "critical", "has version 1", "hapax migrate '" + self.cluster.uri())
        self.psql("UPDATE hapax.migrations SET checksum = 'x'")
        self.found("schema", "critical", "checksum", "build")

    def test_structure_is_missing_and_the_remedies_work(self):
        self.psql("DROP INDEX hapax.inbox_expires;"
                  "ALTER TABLE hapax.inbox DROP CONSTRAINT inbox_pkey;"
                  "DROP INDEX hapax.outbox_retry_key; DROP TABLE hapax.outbox_p07;"
                  "DROP FUNCTION hapax.relay_clean; DROP SEQUENCE hapax.outbox_listening;"
                  "SET allow_system_table_mods = on; UPDATE pg_index SET indisvalid = false "
                  "WHERE indexrelid = 'hapax.outbox_retry_due'::regclass;"
                  "ALTER TABLE hapax.inbox ALTER message_id DROP NOT NULL;"
                  "ALTER TABLE hapax.outbox ALTER id DROP NOT NULL;"
                  "ALTER TABLE hapax.claims SET UNLOGGED; DELETE FROM hapax.outbox_lane")
        checks = self.doctor(self.cluster.uri())
        for found in ("index inbox_expires", "primary key of inbox", "index outbox_retry_key",
                      "partition outbox_p07", "function relay_clean()", "outbox.id may be NULL",
                      "inbox.message_id may be NULL", "sequence outbox_listening",
                      "a valid index outbox_retry_due"):
            self.assertFound(checks, "structure", "critical", found)
        self.assertFound(checks, "unlogged", "critical", "claims", "SET LOGGED")
        for check in checks:
            if check["state"] == "critical" and "function" not in check["found"]:
                self.psql(check["advice"].split("; after")[0])
        script = self.hapax("migrate", "postgres://", "--print")
        start = script.index('CREATE OR REPLACE FUNCTION "hapax".relay_clean')
        self.psql(script[start:script.index("$$;", script.index("$$", start) + 2) + 3])
        checks = self.doctor(self.cluster.uri())
        self.psql(self.assertFound(checks, "structure", "critical", "0 of 16 lanes")["advice"])
        checks = self.healthy()

    def test_what_somebody_changed_and_the_remedies_work(self):
        self.psql("ALTER TABLE hapax.inbox DROP outcome;"
                  "ALTER TABLE hapax.claims ALTER attempts TYPE bigint;"
                  "ALTER TABLE hapax.claims ALTER on_lapse DROP DEFAULT;"
                  "ALTER TABLE hapax.inbox FORCE ROW LEVEL SECURITY;"
                  "ALTER TABLE hapax.claims ENABLE ROW LEVEL SECURITY;"
                  "ALTER FUNCTION hapax.relay_clean() SECURITY INVOKER;"
                  "DROP FUNCTION hapax.publish(text, anycompatiblenonarray, uuid, text, jsonb, "
                  "text);"
                  "CREATE OR REPLACE FUNCTION hapax.inbox_outcome(subscriber text, message_id "
                  "text, outcome bytea) RETURNS void LANGUAGE sql AS 'SELECT';"
                  "CREATE FUNCTION eats() RETURNS trigger LANGUAGE plpgsql AS "
                  "'BEGIN RETURN NULL; END';"
                  "CREATE TRIGGER eats BEFORE INSERT ON hapax.outbox FOR EACH ROW "
                  "EXECUTE FUNCTION eats();"
                  "CREATE RULE drops AS ON INSERT TO hapax.claim_audit DO INSTEAD NOTHING")
        checks = self.doctor(self.cluster.uri())
        for found in ("the column inbox.outcome is missing",
                      "the column claims.attempts has the type bigint, not integer",
                      "the column claims.on_lapse has lost its default",
                      "the function relay_clean() was replaced",
                      "the function publish(text, anycompatiblenonarray, uuid, text, jsonb, text) "
                      "is missing",
                      "the function inbox_outcome(text, text, bytea) was replaced"):
            self.assertFound(checks, "structure", "critical", found)
        found = [check["found"] for check in checks if check["check"] == "structure"]
        self.assertEqual(len(found), 6, found)
        forced = self.assertFound(checks, "row security", "critical", "is forced for inbox")
        policy = self.assertFound(checks, "row security", "warning", "is on for claims")
        self.psql(forced["advice"] + policy["advice"])
        for table, name in (("outbox", "eats"), ("claim_audit", "drops")):
            told = self.assertFound(checks, "triggers", "warning", f"the table {table} has a")
            self.assertIn(name, told["found"])
            self.psql(told["advice"].split("without it: ")[1])
        for column in ("inbox.outcome", "claims.attempts"):
            self.psql(self.assertFound(checks, "structure", "critical", column)["advice"]
                      .split("; what")[0])
        self.psql("ALTER TABLE hapax.claims ALTER on_lapse SET DEFAULT 'take_over';"
                  "ALTER FUNCTION hapax.relay_clean() SECURITY DEFINER")
        script = self.hapax("migrate", "postgres://", "--print")
        for name in ("inbox_outcome(",
                     "publish(\n  type text, payload anycompatiblenonarray, id uuid"):
            start = script.rindex(f'CREATE FUNCTION "hapax".{name}')
            create = script[start:script.index("$$;", start) + 3]
            self.psql(create.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"))
        self.healthy()

    def test_a_retention_is_not_a_change(self):
        for retention in ("1h", "100d"):
            self.hapax("migrate", self.cluster.uri(), "--retention", retention)
            self.healthy()

    def test_equal_events_under_random_ids(self):
        self.psql("SELECT hapax.publish('order.placed', '{}', 'o-1', 'placed-' || n), "
                  "hapax.publish('order.paid', '{\"n\": ' || n || '}', 'o-1') "
                  "FROM generate_series(1, 3) AS n")
        self.healthy()
        self.psql("SELECT hapax.publish('order.placed', '{\"amount\": 40}', 'o-1') "
                  "FROM generate_series(1, 2)")
        self.found("equal events", "warning", "1 events of the newest 8 rows are there again "
                   "within an hour under another random id, as 'order.placed' of 'o-1'",
                   "uuid_of(")

    def test_unknown_outcomes(self):
        self.psql("SELECT hapax.check_and_lock('mail', 'j-1', 'worker', '1ms', "
                  "on_lapse => 'unknown'); SELECT pg_sleep(0.002)")
        checks = self.doctor(self.cluster.uri())
        told = self.assertFound(checks, "unknown outcomes", "warning", "as 'mail', 'j-1'",
                                "resolve")
        self.assertNotIn("claims", [check["check"] for check in checks])
        self.psql(told["advice"].split("then: ")[1].replace("'completed' or ", ""))
        self.assertEqual(self.psql("SELECT hapax.get_status('mail', 'j-1')"), "failed")

    def test_partitions_that_nobody_empties(self):
        self.psql("CREATE TABLE hapax.outbox_def PARTITION OF hapax.outbox DEFAULT;"
                  "CREATE TABLE \"Mine\" PARTITION OF hapax.outbox FOR VALUES IN (32)")
        checks = self.doctor(self.cluster.uri())
        for found in ("hapax.outbox_def of the outbox (DEFAULT)",
                      'public."Mine" of the outbox (FOR VALUES IN (32))'):
            one = self.assertFound(checks, "structure", "warning", found, "once nothing waits: ")
            self.psql(one["advice"].split(": ")[1])
        self.assertEqual([check["state"] for check in checks if check["check"] == "structure"],
                         ["warning", "warning"])
        self.found("structure", "ok", "32 partitions")

    def test_sequences_that_went_back_and_the_remedies_work(self):
        self.psql("SELECT hapax.publish('t', 'x', 'k', 'e' || n) FROM generate_series(1, 20) AS n;"
                  "SELECT hapax.check_and_lock('jobs', 'j-' || n, 'w', '1h') "
                  "FROM generate_series(1, 5) AS n")
        data = os.path.join(self.folder, "data")
        self.hapax("stream", "create", "orders", "--data", data)
        relay = ["relay", "--from", self.cluster.uri(), "--to", data + "/streams/orders", "--once"]
        self.hapax(*relay)
        self.found("numbers", "ok", "outbox_seq is at 20, events up to number 20 were sent")
        self.psql("SELECT setval('hapax.outbox_seq', 3), setval('hapax.claim_fence', 1, false)")
        checks = self.doctor(self.cluster.uri())
        for name, found in (("numbers", "outbox_seq is at 3, events up to number 20 were sent"),
                            ("fences", "claim_fence is at 0, but a claim has the fence 5")):
            advice = self.assertFound(checks, name, "critical", found, "SELECT")["advice"]
            self.psql(advice.split(";")[0].replace("TIME", "infinity"))
        checks = self.healthy()
        self.psql("SELECT hapax.publish('t', 'x', 'k', 'new')")
        self.assertIn("1 accepted", self.hapax(*relay))

    def test_the_partition_in_use_is_not_emptied(self):
        self.psql("INSERT INTO hapax.outbox (part, xid, lane, id, type, payload, created_at) "
                  "SELECT hapax.outbox_part(), pg_current_xact_id(), 3, 'o', 't', '', now() - "
                  "interval '60 days'; "
                  "INSERT INTO hapax.outbox_progress (lane, fence, pos, pending, since, "
                  "draining, late_to, sent, attempts) VALUES (3, 1, 99, '{}', '{}', '{}', 0, 0, 0)")
        found = self.assertFound(self.doctor(self.cluster.uri()), "retention", "warning",
                                 "0 of them could be")
        self.assertNotIn("relay_clean", found["advice"])

    def test_contents(self):
        insert = ("INSERT INTO hapax.outbox (part, xid, lane, id, type, payload, created_at) "
                  "SELECT {}, pg_current_xact_id(), 3, {}, 't', '', now() - interval '{}'")
        self.psql(insert.format("hapax.outbox_part()", "''", "2h"))
        self.psql(insert.format("hapax.outbox_part()", "'o-1'", "10min")
                  + " FROM generate_series(1, 2)")
        self.psql(insert.format("(hapax.outbox_part() + 5) % 32", "'old'", "60 days"))
        self.psql("INSERT INTO hapax.inbox (subscriber, message_id, expires_at) VALUES "
                  "('mail', '', NULL), ('mail', 'm', now() - interval '2h');"
                  "INSERT INTO hapax.outbox_retry (lane, part, seq, attempts, last_error) VALUES "
                  "(3, 0, 1, 4, 'HTTP 422');"
                  "INSERT INTO hapax.outbox_dead (seq, id, type, payload, created_at, attempts, "
                  "reason) VALUES (9, 'd', 't', '', now(), 10, 'too large');"
                  "SELECT hapax.check_and_lock('jobs', 'j-1', 'worker', '1ms')")
        checks = self.doctor(self.cluster.uri())
        self.assertFound(checks, "ids", "critical", "1 of the newest 4 rows", "publish()")
        self.assertFound(checks, "duplicates", "warning", "as 'o-1'", "id = 'o-1'")
        self.assertFound(checks, "inbox ids", "critical", "'mail'", "DELETE FROM")
        self.assertFound(checks, "no relay", "critical", "1 lanes", "hapax relay --from")
        self.assertFound(checks, "retries", "warning", "HTTP 422", "outbox_retry")
        self.assertFound(checks, "dead letters", "warning", "too large", "seq = 9")
        self.assertFound(checks, "retention", "warning", "1 partitions", "relay")
        self.assertFound(checks, "expired", "warning", "1 rows of the inbox", "hapax clean '")
        self.assertFound(checks, "claims", "warning", "'jobs' 'j-1' by worker", "check_and_lock")
        # A relay holds the lane, renews it, and has taken the same records again and again.
        self.psql("UPDATE hapax.outbox_lane SET owner = 'relay-7', fence = 1, "
                  "lease_until = now() + interval '1 min' WHERE lane = 3;"
                  "INSERT INTO hapax.outbox_progress (lane, fence, pos, pending, since, "
                  "draining, late_to, sent, attempts) VALUES (3, 1, 0, '{}', '{}', '{}', 0, 0, 5);"
                  "UPDATE hapax.claims SET lease_until = now() + interval '1 h', "
                  "first_seen = now() - interval '1 day'")
        checks = self.doctor(self.cluster.uri())
        self.assertFound(checks, "stuck lanes", "critical", "held by relay-7",
                         "hapax relay --status")
        self.assertFound(checks, "claims", "warning", "renewed without an end", "worker")
        # It has just settled something: behind, but moving.
        self.psql("UPDATE hapax.outbox_progress SET attempts = 0")
        checks = self.doctor(self.cluster.uri())
        self.assertFound(checks, "waiting", "critical", "4 records", "start another one")
        self.assertNotIn("stuck lanes", [check["check"] for check in checks])
        # It stands where it stood, however often it says so.
        self.psql("UPDATE hapax.outbox_progress SET moved_at = now() - interval '20 min'")
        self.assertFound(self.doctor(self.cluster.uri()), "stuck lanes", "critical",
                         "nothing was sent for 20 min", "destination")

    def test_what_is_too_large_to_be_looked_at_is_told(self):
        self.psql("INSERT INTO hapax.claims (scope, key, state, owner, fence, attempts, "
                  "lease_until, first_seen, outcome) "
                  "SELECT 's', i::text, 'completed', 'w', i, 1, now(), now(), "
                  "convert_to(repeat('x', 1900), 'UTF8') FROM generate_series(1, 36000) AS i")
        self.found("claims", "ok", "not looked at")

    def test_dead_rows(self):
        self.psql("ALTER TABLE hapax.inbox SET (autovacuum_enabled = false);"
                  "INSERT INTO hapax.inbox SELECT 's', n::text FROM generate_series(1, 21000) AS n;"
                  "DELETE FROM hapax.inbox")
        dead = "SELECT sum(n_dead_tup) >= 21000 FROM pg_stat_user_tables"
        wait_for(lambda: self.psql(dead) == "t", "the statistics")
        self.found("dead rows", "warning", "at most 21000",
                   'VACUUM (VERBOSE, ANALYZE) "hapax".inbox')

    def test_settings(self):
        self.psql("ALTER DATABASE shop SET synchronous_commit = off;"
                  "ALTER DATABASE shop SET default_transaction_read_only = on")
        self.cluster.psql("ALTER SYSTEM SET fsync = off", "postgres")
        self.cluster.psql("ALTER SYSTEM SET full_page_writes = off", "postgres")
        self.cluster.psql("ALTER SYSTEM SET autovacuum = off", "postgres")
        self.cluster.psql("SELECT pg_reload_conf()", "postgres")
        try:
            checks = self.doctor(self.cluster.uri())
            for name, advice in (("fsync", "ALTER SYSTEM SET fsync = on"),
                                 ("full_page_writes", "ALTER SYSTEM SET full_page_writes = on"),
                                 ("synchronous_commit",
                                  "ALTER ROLE ALL IN DATABASE shop RESET synchronous_commit")):
                self.assertFound(checks, "durability", "critical", name + " is off", advice)
            self.assertFound(checks, "writable", "critical", "read_only is on", "RESET default_tr")
            self.assertFound(checks, "dead rows", "warning", "autovacuum is off", "ALTER SYSTEM")
        finally:
            for name in ("fsync", "full_page_writes", "autovacuum"):
                self.cluster.psql(f"ALTER SYSTEM RESET {name}", "postgres")
            self.cluster.psql("SELECT pg_reload_conf()", "postgres")

    def test_roles_that_do_not_wait_for_the_disk(self):
        roles = 'hasty, group_of_them, stranger, mended, "Half", careful'
        self.addCleanup(self.psql, f"DROP OWNED BY {roles}; DROP ROLE {roles};"
                        "ALTER ROLE ALL RESET synchronous_commit")
        self.psql("CREATE DATABASE other")
        self.psql("CREATE ROLE hasty LOGIN; CREATE ROLE group_of_them; CREATE ROLE stranger LOGIN;"
                  "CREATE ROLE mended LOGIN; CREATE ROLE \"Half\" LOGIN; CREATE ROLE careful LOGIN;"
                  "GRANT USAGE ON SCHEMA hapax TO hasty, group_of_them, mended, \"Half\", careful;"
                  "ALTER ROLE hasty SET synchronous_commit = off;"
                  "ALTER ROLE group_of_them SET synchronous_commit = off;"
                  "ALTER ROLE stranger SET synchronous_commit = off;"
                  "ALTER ROLE mended SET synchronous_commit = off;"
                  "ALTER ROLE mended IN DATABASE shop SET synchronous_commit = on;"
                  "ALTER ROLE \"Half\" IN DATABASE shop SET synchronous_commit = FALSE;"
                  "ALTER ROLE careful IN DATABASE other SET synchronous_commit = off;"
                  "ALTER ROLE careful SET synchronous_commit = local")
        found = [check for check in self.doctor(self.cluster.uri())
                 if check["check"] == "durability"]
        self.assertEqual([check["found"].split(":")[0] for check in found],
                         ['synchronous_commit is off for the role "Half" in this database',
                          "synchronous_commit is off for the role hasty"])
        for check in found:
            self.assertEqual(check["state"], "critical")
            self.psql(check["advice"])
        self.found("durability", "ok", "are on")
        # Who asks may be the only one for whom it is on.
        self.psql("ALTER ROLE ALL SET synchronous_commit = off;"
                  "ALTER ROLE postgres IN DATABASE shop SET synchronous_commit = on")
        checks = self.doctor(self.cluster.uri())
        self.psql(self.assertFound(checks, "durability", "critical",
                                   "roles without a setting of their own:")["advice"])
        self.found("durability", "ok", "are on")

    def test_transactions_connections_and_clock(self):
        self.psql("CREATE TABLE t (n int); BEGIN; INSERT INTO t VALUES (1); "
                  "PREPARE TRANSACTION 'tx-1'")
        holder = self.session("SET application_name = 'report'; "
                              "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1;\n")
        pid = self.psql("SELECT pid FROM pg_stat_activity WHERE application_name = 'report'")
        checks = self.doctor(self.cluster.uri(), "--patience", "1ms")
        held = self.assertFound(checks, "transactions", "critical", "application report",
                                f"pg_terminate_backend({pid})")
        self.assertEqual(held["figures"]["pid"], int(pid))
        self.assertFound(checks, "prepared", "critical", "'tx-1'", "ROLLBACK PREPARED 'tx-1'")
        self.assertEqual(self.doctor(self.cluster.uri())[0]["state"], "ok")
        holder.stdin.write("COMMIT;\n")
        self.psql("ROLLBACK PREPARED 'tx-1'")
        # A clock that is wrong, to who asks in this database.
        self.psql("ALTER FUNCTION pg_catalog.clock_timestamp() RENAME TO right_timestamp; "
                  "CREATE FUNCTION pg_catalog.clock_timestamp() "
                  "RETURNS timestamptz LANGUAGE sql AS $$ SELECT now() + interval '90 s' $$")
        self.found("clock", "critical", "differs by ", "ntp")
        self.psql("CREATE OR REPLACE FUNCTION pg_catalog.clock_timestamp() "
                  "RETURNS timestamptz LANGUAGE sql AS $$ SELECT now() - interval '9 s' $$")
        self.found("clock", "warning", "differs by -", "ntp")

    def test_connections_run_out(self):
        self.psql("CREATE ROLE clerk LOGIN")
        clerk = self.cluster.uri().replace("user=postgres", "user=clerk")
        for _ in range(13):
            self.session("")
        self.found("connections", "warning", "of 17 are used, most by: 13 psql", "max_connections")
        for _ in range(3):
            self.session("")
        wait_for(lambda: self.sessions_like("%") == 17, "former sessions to end")  # One asks.
        checks = self.doctor(clerk)
        self.assertFound(checks, "connections", "critical", "17 of 17 are used", "max_connections")
        self.assertFound(checks, "notify", "warning", "a second connection", "direct connection")
        self.assertFound(checks, "transactions", "warning", "does not see", "pg_monitor TO clerk")
        self.session("")
        checks = self.doctor(clerk)
        self.assertFound(checks, "reach", "critical", "all connections are in use",
                         "pg_stat_activity")
        done = subprocess.run([self.HAPAX, "serve", "--store", clerk, "--http", "127.0.0.1:0",
                               "--resp", ""],
                              capture_output=True, text=True, timeout=60, cwd=self.folder)
        self.assertEqual(done.returncode, 69)
        self.assertIn("raise max_connections", done.stderr)

    def test_a_slot_that_nobody_uses(self):
        self.psql("SELECT pg_create_physical_replication_slot('left_behind', true)")
        checks = self.doctor(self.cluster.uri())
        self.psql(self.assertFound(checks, "slots", "warning", "'left_behind', which keeps",
                                   "pg_drop_replication_slot")["advice"])
        self.assertNotIn("slots", [check["check"] for check in self.doctor(self.cluster.uri())])

    def test_notify_behind_a_pooler(self):
        pooler = socket.socket(socket.AF_UNIX)
        self.addCleanup(pooler.close)
        pooler.bind(os.path.join(self.folder, ".s.PGSQL.5432"))
        pooler.listen()

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    client = pooler.accept()[0]
                    server = socket.socket(socket.AF_UNIX)
                    server.connect(self.cluster.folder + "/.s.PGSQL.5432")
                    threading.Thread(target=send_all, args=(client, server), daemon=True).start()
                    threading.Thread(target=send_all_but_notifications, args=(server, client),
                                     daemon=True).start()
        threading.Thread(target=serve, daemon=True).start()
        checks = self.doctor(f"postgres:///shop?host={self.folder}&user=postgres")
        self.assertFound(checks, "notify", "warning", "did not come through", "pools sessions")

    def test_missing_rights_are_told(self):
        self.psql("DROP ROLE IF EXISTS guest; CREATE ROLE guest LOGIN")
        checks = self.doctor(self.cluster.uri().replace("user=postgres", "user=guest"))
        self.assertFound(checks, "schema", "warning", "permission denied", "GRANT USAGE")

    def test_a_shared_store(self):
        self.psql("DROP SCHEMA hapax CASCADE")
        server = Server(self.HAPAX, self.folder, "--store", self.cluster.uri())
        self.addCleanup(server.end)
        self.assertEqual(server.call("PUT", "/streams/orders")[0], 200)
        checks = self.healthy()
        self.assertFound(checks, "store format", "ok", "hapax_store has format 2")
        self.assertFound(checks, "store keeper", "ok", "the keeper is pid ")
        self.assertFound(checks, "store size", "ok", "1 segments")
        server.end()
        wait_for(lambda: self.sessions_like("hapax store%") == 0, "its sessions to end")
        self.found("store keeper", "ok", "nobody uses it now")
        self.session("SET application_name = 'hapax store log';")
        self.found("store keeper", "warning", "1 processes are connected, and none keeps it",
                   "hapax serve")
        self.psql("UPDATE hapax_store.format SET version = 9")
        self.found("store format", "critical", "has format 9", "everywhere")
        self.psql("UPDATE hapax_store.format SET version = 1;"
                  "ALTER TABLE hapax_store.log DROP CONSTRAINT log_pkey;"
                  "ALTER TABLE hapax_store.piece SET UNLOGGED")
        self.found("store structure", "critical", "the table log", "ADD PRIMARY KEY (segment, at)")
        self.found("store unlogged", "critical", "piece", "SET LOGGED")


class SqliteDoctorTest(DoctorTest):
    def setUp(self):
        super().setUp()
        self.path = os.path.join(self.folder, "shop.db")
        self.hapax("migrate", "sqlite:" + self.path)

    def run_sql(self, sql):
        with contextlib.closing(sqlite3.connect(self.path)) as connection:
            connection.executescript(sql)

    def examined(self, *more):
        return self.doctor("sqlite:" + self.path, *more)

    def test_a_healthy_file(self):
        self.run_sql("INSERT INTO hapax_outbox (id, type, payload) VALUES ('a', 't', x'')")
        checks = self.examined()
        self.assertEqual({check["state"] for check in checks}, {"ok"}, checks)

    def test_missing_and_damaged(self):
        checks = self.doctor("sqlite:nothing.db")
        self.assertFound(checks, "reach", "critical", "is not there", "hapax migrate")
        self.assertFalse(os.path.exists(os.path.join(self.folder, "nothing.db")))
        checks = self.examined("--prefix", "other_")
        self.assertFound(checks, "schema", "critical", "no tables", "--prefix other_")
        with open(self.path, "r+b") as file:
            file.seek(4096)
            file.write(b"\x55" * 4096)
        self.assertFound(self.examined(), "integrity", "critical", "", ".recover")

    def test_contents(self):
        self.run_sql("PRAGMA journal_mode = DELETE; DROP INDEX hapax_inbox_expires;"
                     "INSERT INTO hapax_outbox (id, type, payload, created_at) VALUES "
                     "('a', 't', x'', 0), ('a', 't', x'', 0);"
                     "INSERT INTO hapax_inbox (subscriber, message_id, expires_at) "
                     "VALUES ('s', 'm', 0);"
                     "INSERT INTO hapax_outbox_retry (seq, attempts, last_error) "
                     "VALUES (1, 4, 'HTTP 422');"
                     "INSERT INTO hapax_outbox_dead (seq, id, type, payload, created_at, attempts, "
                     "reason) VALUES (9, 'd', 't', x'', 0, 10, 'too large')")
        checks = self.examined()
        self.assertFound(checks, "journal", "warning", "delete", "journal_mode = WAL")
        missing = self.assertFound(checks, "structure", "critical", "index hapax_inbox_expires")
        self.assertFound(checks, "duplicates", "warning", "as 'a'", "claim")
        self.assertFound(checks, "no relay", "critical", "no relay runs", "hapax relay --from")
        self.assertFound(checks, "expired", "warning", "1 rows of the inbox", "hapax clean '")
        self.assertFound(checks, "retries", "warning", "HTTP 422", "outbox_retry")
        self.assertFound(checks, "dead letters", "warning", "too large", "publish them again")
        self.run_sql(missing["advice"] + "UPDATE hapax_outbox_lane SET owner = 'relay-7', "
                     "lease_until = 9e15, attempts = 5")
        self.assertFound(self.examined(), "stuck lanes", "critical", "relay-7", "restart")

    def test_versions_and_structure(self):
        self.run_sql("INSERT INTO hapax_migrations (version, name, checksum) "
                     "VALUES (99, 'later', 'x')")
        self.assertFound(self.examined(), "schema", "warning", "has version 99", "newer Hapax")
        self.run_sql("DELETE FROM hapax_migrations WHERE version > 1")
        self.assertFound(self.examined(), "schema", "critical", "has version 1", "hapax migrate")
        self.run_sql("UPDATE hapax_migrations SET checksum = 'x'")
        self.assertFound(self.examined(), "schema", "critical", "checksum", "build")

    def test_structure_and_ids(self):
        self.run_sql("DROP INDEX hapax_inbox_expires; DELETE FROM hapax_outbox_lane")
        checks = self.examined()
        self.run_sql(self.assertFound(checks, "structure", "critical", "hapax_inbox_expires")
                     ["advice"])
        lane = self.assertFound(checks, "structure", "critical", "the lane of the outbox")["advice"]
        subprocess.run(lane, shell=True, check=True, cwd=self.folder)
        self.run_sql("DROP TRIGGER hapax_outbox_ids; DROP TRIGGER hapax_inbox_text;"
                     "PRAGMA ignore_check_constraints = on;"
                     "INSERT INTO hapax_outbox (id, type, payload) VALUES ('', 't', x'');"
                     "INSERT INTO hapax_inbox (subscriber, message_id) VALUES "
                     "('a', '1'), ('a', '2'), ('mail', ''), ('mail', '3'), ('z', '1')")
        checks = self.examined()
        self.assertFound(checks, "ids", "critical", "1 of the newest 1 rows", "WHERE id IS NULL")
        self.assertFound(checks, "inbox ids", "critical", "'mail' has taken", "DELETE FROM")
        for name in ("hapax_outbox_ids", "hapax_inbox_text"):
            self.run_sql(self.assertFound(checks, "structure", "critical",
                                          f"the trigger {name} is missing")["advice"])
        self.assertFound(self.examined(), "structure", "ok", "triggers expected")
        self.run_sql("DROP TABLE hapax_outbox_retry")
        self.assertFound(self.examined(), "structure", "critical", "the table hapax_outbox_retry")

    def test_what_somebody_changed(self):
        self.run_sql("DROP TRIGGER hapax_outbox_headers; CREATE TRIGGER hapax_outbox_headers "
                     "BEFORE INSERT ON hapax_outbox BEGIN SELECT 1; END;"
                     "CREATE TRIGGER eats BEFORE INSERT ON hapax_inbox BEGIN "
                     "SELECT RAISE(IGNORE); END;"
                     "ALTER TABLE hapax_outbox_dead DROP COLUMN causation_id;"
                     "ALTER TABLE hapax_claim_audit DROP COLUMN act;"
                     "ALTER TABLE hapax_claim_audit ADD COLUMN act BLOB")
        checks = self.examined()
        for found in ("the trigger hapax_outbox_headers was replaced",
                      "the column hapax_outbox_dead.causation_id is missing",
                      "the column hapax_claim_audit.act has the type BLOB, not TEXT"):
            told = self.assertFound(checks, "structure", "critical", found)
            if "trigger" in found:
                self.run_sql(told["advice"])
        told = self.assertFound(checks, "triggers", "warning", "the table hapax_inbox has a")
        subprocess.run(told["advice"].split("without it: ")[1], shell=True, check=True)
        left = [check["found"] for check in self.examined() if check["state"] != "ok"]
        self.assertEqual(len(left), 2, left)

    def test_equal_events_and_unknown_outcomes(self):
        self.run_sql("INSERT INTO hapax_outbox (id, type, key, payload) VALUES "
                     "('0f1c0000-0000-4000-8000-000000000001', 't', 'k', '{}'),"
                     "('0f1c0000-0000-4000-8000-000000000002', 't', 'k', '{}');"
                     "INSERT INTO hapax_claims (scope, key, state, owner, fence, attempts, "
                     "lease_until, first_seen) VALUES ('mail', 'j', 'unknown', 'w', 1, 1, 1, 1)")
        checks = self.examined()
        self.assertFound(checks, "equal events", "warning", "as 't' of 'k'", "derive the id")
        self.assertFound(checks, "unknown outcomes", "warning", "as 'mail', 'j'", "resolve")

    def test_a_relay_that_is_behind(self):
        self.run_sql("INSERT INTO hapax_outbox (id, type, payload, created_at) VALUES "
                     "('a', 't', x'', 0);"
                     "UPDATE hapax_outbox_lane SET owner = 'relay-7', lease_until = 9e15, "
                     "moved_at = unixepoch('now') * 1000")
        self.assertFound(self.examined(), "waiting", "critical", "1 records", "log of relay-7")
        self.run_sql("UPDATE hapax_outbox_lane SET moved_at = 0")
        self.assertFound(self.examined(), "stuck lanes", "critical", "has sent nothing", "restart")

    def test_a_writer_that_does_not_end_and_a_log_that_has_grown(self):
        with contextlib.closing(sqlite3.connect(self.path, isolation_level=None)) as writer:
            writer.execute("PRAGMA wal_autocheckpoint = 0")
            writer.execute("CREATE TABLE t (b)")
            writer.execute("INSERT INTO t VALUES (zeroblob(70000000))")
            writer.execute("BEGIN IMMEDIATE")
            checks = self.examined()
        self.assertFound(checks, "writer", "warning", "another writer", "busy_timeout")
        self.assertFound(checks, "journal", "warning", "has grown to 6", "wal_checkpoint")


if __name__ == "__main__":
    arguments()
    unittest.main()
