"""`hapax migrate`, and what services without the library call from SQL, by psql and sqlite3."""

import json
import os
import re
import subprocess
import unittest

import running
from postgres import Cluster

HAPAX, SOURCE = running.arguments()
FAILED, USAGE, MISSING, UNREACHABLE, FORBIDDEN = 1, 64, 66, 69, 77


class DatabaseTest(running.FolderTest):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.addClassCleanup(cls.cluster.end)

    def setUp(self):
        super().setUp()
        self.cluster.psql("DROP DATABASE IF EXISTS shop", "postgres")
        self.cluster.psql("CREATE DATABASE shop", "postgres")
        self.uri = self.cluster.uri()

    def psql(self, sql):
        return self.cluster.psql(sql)

    def bad(self, code, *words):
        return self.refused(code, "migrate", *words)

    def refused(self, code, *words):
        done = subprocess.run([HAPAX, *words], capture_output=True, text=True, timeout=60,
                              cwd=self.folder)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stderr

    def sqlite(self, sql):
        done = subprocess.run(["sqlite3", "-bail", "shop.db"], input=sql, capture_output=True,
                              text=True, timeout=60, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()


class Migrate(DatabaseTest):
    def test_postgres(self):
        would = self.hapax("migrate", self.uri, "--dry-run").splitlines()
        self.assertEqual(would[0], "would apply 1 outbox_inbox")
        found = self.psql("SELECT count(*) FROM pg_namespace WHERE nspname = 'hapax'")
        self.assertEqual(found, "0")
        self.assertEqual(self.hapax("migrate", self.uri).splitlines()[0], "applied 1 outbox_inbox")
        again = json.loads(self.hapax("migrate", self.uri, "--json"))
        self.assertEqual((again["before"], again["steps"]), (again["after"], []))
        self.hapax("migrate", self.uri, "--retention", "3000s")
        self.assertEqual(self.psql("SELECT hapax.outbox_retention()"), "00:50:00")

    def test_what_is_printed_is_what_is_done(self):
        self.psql(self.hapax("migrate", "postgres://", "--print", "--schema", "mine"))
        done = self.hapax("migrate", self.uri, "--schema", "mine")
        self.assertTrue(done.startswith("nothing to do, version "), done)
        self.sqlite(self.hapax("migrate", "sqlite:", "--print"))
        done = self.hapax("migrate", "sqlite:shop.db")
        self.assertTrue(done.startswith("nothing to do, version "), done)

    def test_runs_at_once_do_each_step_once(self):
        runs = [subprocess.Popen([HAPAX, "migrate", self.uri, "--json"], stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True) for _ in range(4)]
        told = [json.loads(run.communicate(timeout=60)[0]) for run in runs]
        self.assertEqual({report["after"] for report in told}, {told[0]["after"]}, told)
        steps = sorted(step for report in told for step in report["steps"])
        self.assertEqual([int(step.split()[0]) for step in steps],
                         list(range(1, told[0]["after"] + 1)), told)

    def test_an_interrupted_run_is_finished_by_the_next(self):
        run = subprocess.Popen([HAPAX, "migrate", self.uri], stdout=subprocess.DEVNULL)
        run.kill()
        run.wait()
        self.hapax("migrate", self.uri)
        self.psql("SELECT hapax.publish('t', 'x')")

    def test_publishing_goes_on_meanwhile(self):
        """An upgrade that has nothing to do takes no lock that an open transaction holds."""
        self.hapax("migrate", self.uri)
        holder = subprocess.Popen(["psql", "-X", "-q", self.uri], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)
        holder.stdin.write("BEGIN; SELECT hapax.publish('t', 'x', key => 'k');\n")
        holder.stdin.flush()
        holder.stdout.readline()
        self.hapax("migrate", self.uri, "--retention", "60d")
        holder.communicate("COMMIT;\n", timeout=60)
        self.assertEqual(self.psql("SELECT count(*) FROM hapax.outbox"), "1")

    def test_sqlite(self):
        would = self.hapax("migrate", "sqlite:shop.db", "--dry-run").splitlines()
        self.assertEqual(would[0], "would apply 1 outbox_inbox")
        self.assertFalse(os.path.exists(os.path.join(self.folder, "shop.db")))
        self.hapax("migrate", "sqlite:shop.db", "--prefix", "my_")
        self.assertEqual(self.sqlite("SELECT count(*) FROM my_outbox"), "0")

    def test_bad_input(self):
        self.assertIn("neither postgres://", self.bad(USAGE, "mysql://x"))
        self.assertIn("--prefix is for SQLite", self.bad(USAGE, self.uri, "--prefix", "x"))
        self.assertIn("--schema is for", self.bad(USAGE, "sqlite:shop.db", "--schema", "x"))
        self.assertIn("'a\"b' is not of", self.bad(USAGE, self.uri, "--schema", 'a"b'))
        self.assertIn("no span", self.bad(USAGE, self.uri, "--retention", "soon"))
        self.assertIn("does not exist", self.bad(MISSING, self.cluster.uri("none")))
        self.bad(UNREACHABLE, "postgres:///shop?host=" + self.folder)
        self.bad(MISSING, "sqlite:no/such/folder.db")
        self.psql("CREATE ROLE stranger LOGIN")
        told = self.bad(FORBIDDEN, self.uri.replace("user=postgres", "user=stranger"))
        self.assertIn("HX1014 forbidden", told)

    def test_other_versions_are_refused(self):
        self.hapax("migrate", self.uri)
        self.psql("UPDATE hapax.migrations SET checksum = 'other' WHERE version = 1")
        told = self.bad(FAILED, self.uri)
        self.assertIn("HX1022 format_version: migration 1 (outbox_inbox) was applied with", told)
        self.psql("DELETE FROM hapax.migrations;"
                  "INSERT INTO hapax.migrations VALUES (99, 'future', 'x')")
        self.assertIn("have migration 99 (future), this program", self.bad(FAILED, self.uri))


class Recipes(DatabaseTest):
    """What a service in another language does, as psql sends it."""

    def setUp(self):
        super().setUp()
        self.hapax("migrate", self.uri)
        self.psql("CREATE TABLE orders (id text PRIMARY KEY)")

    def test_an_event_commits_with_its_change(self):
        self.psql("BEGIN; INSERT INTO orders VALUES ('o-1');"
                  "SELECT hapax.publish('order.placed', '{\"id\": \"o-1\"}', key => 'o-1',"
                  " headers => '[[\"trace\", \"7\"]]', correlation_id => 'c'); COMMIT;")
        self.psql("BEGIN; INSERT INTO orders VALUES ('o-2');"
                  "SELECT hapax.publish('order.placed', 'x'); ROLLBACK;")
        self.assertEqual(self.psql("SELECT count(*), min(key), min(type) FROM hapax.outbox"),
                         "1|o-1|order.placed")
        with self.assertRaisesRegex(AssertionError, "HX1001: the type of an event is empty"):
            self.psql("SELECT hapax.publish('', 'x')")

    def test_the_inbox_answers_the_new_ones(self):
        accept = ("SELECT message_id, verdict FROM hapax.inbox_accept('billing', "
                  "ARRAY['a', 'b'], ARRAY['1', '{}']::bytea[], '30 days') ORDER BY 1")
        self.assertEqual(self.psql(accept.format("2")), "a|fresh\nb|fresh")
        self.assertEqual(self.psql(accept.format("2")), "")
        self.assertEqual(self.psql(accept.format("3")), "b|conflict")
        twice = ("SELECT message_id, verdict, place FROM hapax.inbox_accept('twice', "
                 "ARRAY['z', 'b', 'a', 'b', 'b', 'a'], "
                 "ARRAY['0', '3', '4', '1', '3', '2']::bytea[]) ORDER BY place, message_id")
        conflicts = "b|conflict|4\na|conflict|6"
        self.assertEqual(self.psql(twice), conflicts + "\na|fresh|\nb|fresh|\nz|fresh|")
        self.assertEqual(self.psql(twice), conflicts)
        take = "SELECT verdict, outcome FROM hapax.inbox_take('mail', 'm-1')"
        self.assertEqual(self.psql(take), "fresh|")
        self.psql("SELECT hapax.inbox_outcome('mail', 'm-1', 'sent')")
        self.assertEqual(self.psql(take), "duplicate|\\x73656e74")

    def test_jobs(self):
        lock = "SELECT verdict, attempt, holder FROM hapax.check_and_lock('mail', 'j', '{}', '{}')"
        self.assertEqual(self.psql(lock.format("w1", "1 min")), "fresh|1|w1")
        self.psql("UPDATE hapax.claims SET lease_until = now()")
        old = self.psql("SELECT fence FROM hapax.claims")
        self.assertEqual(self.psql(lock.format("w2", "1 min")), "fresh|2|w2")
        self.assertEqual(self.psql(lock.format("w3", "1 min")), "in_progress|2|w2")
        fence = self.psql("SELECT fence FROM hapax.claims")
        complete = "SELECT verdict, current FROM hapax.mark_complete('mail', 'j', {}, 'sent')"
        self.assertEqual(self.psql(complete.format(old)), "fenced|" + fence)
        renew = f"SELECT verdict FROM hapax.renew('mail', 'j', {fence}, '1 min')"
        self.assertEqual(self.psql(renew), "done")
        self.assertEqual(self.psql(complete.format(fence)), "done|" + fence)
        self.assertEqual(self.psql("SELECT hapax.get_status('mail', 'j'), "
                                   "hapax.is_processed('mail', 'j'), "
                                   "hapax.get_status('mail', 'other')"), "completed|t|not_seen")
        self.assertEqual(self.psql(lock.format("w3", "1 min")), "duplicate|2|w2")

    def test_what_became_of_earlier_owners(self):
        lock = ("SELECT verdict, attempt, former FROM hapax.check_and_lock("
                "'mail', 'j', 'w', '1 min')")
        failed = "SELECT hapax.mark_failed('mail', 'j', fence) FROM hapax.claims"
        self.assertEqual(self.psql(lock), "fresh|1|")
        self.psql(failed)
        self.assertEqual(self.psql(lock), "fresh|2|failed")
        self.psql("UPDATE hapax.claims SET lease_until = now()")
        self.assertEqual(self.psql(lock), "fresh|3|lapsed")
        self.psql(failed)  # One that lapsed may have done it all the same.
        self.assertEqual(self.psql(lock), "fresh|4|lapsed")

    def test_what_is_over_is_forgotten(self):
        self.psql("SELECT * FROM hapax.inbox_accept('s', ARRAY['a', 'b'], NULL, '0 s');"
                  "SELECT * FROM hapax.inbox_accept('s', ARRAY['c'])")
        self.assertEqual(self.psql("SELECT hapax.forget_expired()"), "2")
        self.assertEqual(self.psql("SELECT message_id FROM hapax.inbox"), "c")

    def test_clean(self):
        """Gives a retention to ids that were to stay forever, and forgets what is over."""
        self.hapax("migrate", "sqlite:shop.db")
        many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500) "
        self.sqlite(many + "INSERT INTO hapax_inbox (subscriber, message_id, received_at) "
                    "SELECT 's', i, 1 FROM n")
        self.sqlite("INSERT INTO hapax_inbox (subscriber, message_id) VALUES ('other', 'm')")
        self.sqlite("INSERT INTO hapax_claims (scope, key, state, owner, fence, attempts, "
                    "lease_until, first_seen, settled_at) VALUES "
                    "('jobs', 'k', 'completed', 'w', 1, 1, 1, 1, 1)")
        self.psql("INSERT INTO hapax.inbox (subscriber, message_id, received_at) "
                  "SELECT 's', i, now() - interval '2 h' FROM generate_series(1, 2500) AS i;"
                  "SELECT hapax.inbox_take('other', 'm');"
                  "SELECT hapax.check_and_lock('jobs', 'k', 'w', '1 min');"
                  "SELECT hapax.mark_complete('jobs', 'k', 1);"
                  "UPDATE hapax.claims SET settled_at = now() - interval '2 h'")
        for database, ask in ((self.uri, self.psql), ("sqlite:shop.db", self.sqlite)):
            with self.subTest(database):
                self.assertIn("forgot 0 ids", self.hapax("clean", database))
                told = self.hapax("clean", database, "--retention", "PT1H", "--subscriber", "s",
                                  "--scope", "jobs", "--json")
                self.assertEqual(told.strip(), '{"forgotten":2501}')
                table = "hapax.inbox" if database == self.uri else "hapax_inbox"
                self.assertEqual(ask(f"SELECT count(*) FROM {table}"), "1")
        self.refused(64, "clean", self.uri, "--retention", "1h")
        self.refused(64, "clean", self.uri, "--subscriber", "s")
        self.refused(64, "clean", self.uri, "--subscriber", "s", "--retention", "soon")
        self.refused(66, "clean", "sqlite:nothing.db")
        self.assertFalse(os.path.exists(os.path.join(self.folder, "nothing.db")))

    def test_what_is_over_is_forgotten_in_sqlite(self):
        """By the statements of the guide, in pieces of 1,000."""
        self.hapax("migrate", "sqlite:shop.db")
        with open(os.path.join(SOURCE, "docs/guide/inbox.md"), encoding="utf-8") as file:
            statements = re.findall(r'^sqlite3 shop.db "(DELETE .*)"$', file.read(), re.MULTILINE)
        self.assertEqual(len(statements), 2)
        self.sqlite("INSERT INTO hapax_inbox (subscriber, message_id, expires_at) VALUES "
                    "('s', 'later', (strftime('%s', 'now') + 60) * 1000), ('s', 'ever', NULL)")
        self.sqlite("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
                    "WHERE i < 1500) "
                    "INSERT INTO hapax_inbox (subscriber, message_id, expires_at) "
                    "SELECT 's', i, (strftime('%s', 'now') - 60) * 1000 FROM n")
        self.sqlite("INSERT INTO hapax_claims (scope, key, state, owner, fence, attempts, "
                    "lease_until, first_seen, expires_at) VALUES "
                    "('s', 'k', 'completed', 'w', 1, 1, 0, 0, 1), "
                    "('s', 'open', 'processing', 'w', 2, 1, 0, 0, NULL)")
        self.assertEqual([self.sqlite(statements[0]) for _ in range(3)], ["1000", "500", "0"])
        self.assertEqual(self.sqlite(statements[1]), "1")
        self.assertEqual(self.sqlite("SELECT message_id FROM hapax_inbox ORDER BY 1"),
                         "ever\nlater")
        self.assertEqual(self.sqlite("SELECT key FROM hapax_claims"), "open")


if __name__ == "__main__":
    unittest.main(verbosity=2)
