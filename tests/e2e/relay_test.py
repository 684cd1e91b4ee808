"""`hapax relay` between a real PostgreSQL and a real `hapax serve`, killed at random."""

import concurrent.futures
import contextlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import threading
import unittest
import urllib.parse

from postgres import Cluster
from relaying import RelayCase, label
from running import arguments, wait_for


class RelayTest(RelayCase):
    def records(self, server):
        got, start = [], 1
        while True:
            page = server.call("GET", f"/streams/orders/records?from={start}&max=1000").json
            if not page["records"]:
                return got
            got += page["records"]
            start = got[-1]["sequence"] + 1

    def publish(self, first, count, keys=20):
        """One transaction per event, so that they can commit out of order."""
        self.cluster.psql("".join(
            f"SELECT hapax.publish('paid', '{n}', 'k{n % keys}', 'e{n}');\n"
            for n in range(first, first + count)), timeout=240)

    def test_nothing_is_lost_or_doubled_when_everybody_is_killed(self):
        chance = random.Random(4)
        server = self.serve()
        server.call("PUT", "/streams/orders", {})
        to = server.url + "/streams/orders"
        relays = [self.relay(to, "--lease", "1s", "--batch", "40") for _ in range(2)]
        done = threading.Event()
        keys, each = 20, 1200
        # Keys of their own, so that the order of commits per key is known.
        pool = self.enterContext(concurrent.futures.ThreadPoolExecutor(2))
        writers = [pool.submit(self.publish, w * each, each, keys) for w in range(2)]

        def kill():
            which = chance.randrange(4)
            if which < 2:
                relays[which].kill()
                relays[which].wait()
                relays[which] = self.relay(to, "--lease", "1s", "--batch", "40")
            elif which == 2:
                relays[0].send_signal(signal.SIGSTOP)
                done.wait(1.5)
                relays[0].send_signal(signal.SIGCONT)
            else:
                server.restart()

        for _ in range(8):
            done.wait(chance.random() * 0.4)
            kill()
        for writer in writers:
            writer.result()
        wait_for(lambda: self.status()["waiting"] == 0 and self.status()["retries"] == 0,
                 "the outbox to be drained")
        for relay in relays:
            relay.send_signal(signal.SIGTERM)
            self.assertEqual(relay.wait(timeout=30), 0)
        got = self.records(server)
        self.assertEqual(len(got), 2 * each)
        self.assertEqual({record["id"] for record in got}, {f"e{n}" for n in range(2 * each)})
        order = {}
        for record in got:
            number = int(record["payload"])
            writer = number // each
            last = order.get((writer, record["group"]), -1)
            self.assertLess(last, number)
            order[writer, record["group"]] = number
        self.assertEqual(self.status()["dead_letters"], 0)
        wait_for(lambda: {lane["owner"] for lane in self.status()["lanes"]} == {None},
                 "the lanes to be given back")

    def test_once_from_two_databases_into_a_folder(self):
        self.publish(0, 50)
        file = os.path.join(self.folder, "app.db")
        self.hapax("migrate", "sqlite:" + file)
        with contextlib.closing(sqlite3.connect(file)) as app, app:
            app.executemany("INSERT INTO hapax_outbox (id, type, key, payload) VALUES "
                            "(?, 'paid', 'k', x'ff00')", [(f"s{n}",) for n in range(30)])
        folder = os.path.join(self.folder, "data")
        self.hapax("stream", "create", "orders", "--data", folder)
        words = ["relay", "--from", self.cluster.uri(), "--from", "sqlite:" + file, "--to",
                 folder + "/streams/orders", "--once", "--json"]

        def accepted():
            return [json.loads(line)["accepted"] for line in self.hapax(*words).splitlines()]

        self.assertEqual(accepted(), [50, 30])
        self.assertEqual(accepted(), [0, 0])
        self.assertIn("lanes           0 of 1 are held",
                      self.hapax("relay", "--from", "sqlite:" + file, "--status"))
        line = self.hapax("tail", "orders", "--data", folder, "-n", "1", "--json")
        self.assertIn('"event_type"', line)

    def test_a_folder_that_is_no_store_does_not_become_one(self):
        self.publish(0, 1)
        done = subprocess.run([self.HAPAX, "relay", "--from", self.cluster.uri(), "--to",
                               "typo/streams/orders", "--once"], capture_output=True, text=True,
                              timeout=60, cwd=self.folder)
        self.assertEqual(done.returncode, 66, done.stderr)
        self.assertIn("there is no store in typo; `hapax stream create", done.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "typo")))

    def test_a_database_that_is_named_twice_is_shared(self):
        receiver = self.receiver()
        self.relay(receiver.url, "--from", self.cluster.uri() + "&application_name=again",
                   "--lease", "9s", "--name", "both")

        def held():
            owners = [label(lane) for lane in self.status()["lanes"]]
            return {owner: owners.count(owner) for owner in owners}

        wait_for(lambda: held() == {"both": 8, "both/2": 8}, "the lanes to be shared")
        self.cluster.psql("SELECT hapax.publish('t', 'x', 'k' || n, 'e' || n) "
                          "FROM generate_series(1, 100) AS n")
        wait_for(lambda: len(receiver.got) == 100, "the records")
        self.assertNotIn("was lost", self.log_text())

    def test_once_sends_what_a_relay_that_died_has_left(self):
        receiver = self.receiver()
        file, publish = self.sqlite()

        def publish_in_postgres(name):
            self.cluster.psql(f"SELECT hapax.publish('t', 'x', id => '{name}')")

        for source, tell in ((self.cluster.uri(), publish_in_postgres), (file, publish)):
            receiver.got.clear()
            dead = self.relay(receiver.url, "--lease", "3s", "--name", "dead", source=source)
            wait_for(lambda: set(map(label, self.status(source)["lanes"])) == {"dead"},
                     "the lanes to be held")
            dead.kill()
            dead.wait()
            tell("left")
            done = self.once(source, receiver.url, "--lease", "6s")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("1 accepted", done.stdout)
            self.assertEqual(receiver.got, [("left", "x", "t")])

    def test_once_leaves_lanes_to_a_relay_that_lives(self):
        receiver = self.receiver()
        file, publish = self.sqlite()
        self.relay(receiver.url.replace("/in", "/hangs"), "--lease", "20s", "--name", "living",
                   source=file)
        publish("held")
        wait_for(lambda: receiver.hanging, "the record to hang")
        done = self.once(file, receiver.url, "--lease", "1s")
        self.assertEqual(done.returncode, 75, done.stderr)
        self.assertRegex(done.stderr, "records wait .1. in lanes that others hold: living")
        receiver.closing.set()
        wait_for(lambda: self.status(file)["waiting"] == 0, "the living one to send it")
        done = self.once(file, receiver.url)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        # More than once, if all of this took longer than a record may hang.
        self.assertEqual(set(receiver.got), {("held", "x", "t")})

    def test_once_says_what_waits_for_another_attempt(self):
        receiver = self.receiver()
        for number, body in enumerate(["x", "400", "y", "z"]):
            self.cluster.psql(f"SELECT hapax.publish('t', '{body}', 'k', 'm{number}')")
        done = self.once(self.cluster.uri(), receiver.url)
        self.assertEqual(done.returncode, 75, done.stderr)
        self.assertRegex(done.stderr, "records wait .3. for another attempt, or behind one")
        self.assertEqual([each[0] for each in receiver.got], ["m0"])
        self.cluster.psql("UPDATE hapax.outbox SET created_at = created_at - interval '1 hour' "
                          "WHERE id = 'm1'")
        self.assertGreater(self.status()["lag_ms"], 3_000_000)
        self.cluster.psql("UPDATE hapax.outbox_retry SET next_at = now() WHERE next_at > now()")
        done = self.once(self.cluster.uri(), receiver.url, "--attempts", "1")
        self.assertEqual((done.returncode, self.status()["dead_letters"]), (0, 1), done.stderr)
        self.assertEqual([each[0] for each in receiver.got], ["m0", "m2", "m3"])

    def test_a_relay_without_lanes_says_who_holds_them(self):
        receiver = self.receiver()
        holder = self.relay(receiver.url, "--name", "holder", "--lease", "1h")
        wait_for(lambda: set(map(label, self.status()["lanes"])) == {"holder"},
                 "the lanes to be held")
        holder.kill()
        holder.wait()
        self.cluster.psql("SELECT hapax.publish('t', 'x', 'k', 'm')")
        self.relay(receiver.url, "--lease", "1s")
        wait_for(lambda: "lanes that others hold: holder" in self.log_text(), "it to be said")
        # Written while the clock was ahead: nobody holds them.
        self.cluster.psql("UPDATE hapax.outbox_lane SET lease_until = lease_until + interval '1 d'")
        self.cluster.psql("UPDATE hapax.outbox_relay SET alive_until = now() + interval '1 d' "
                          "WHERE owner LIKE 'holder#%'")
        wait_for(lambda: [each[0] for each in receiver.got] == ["m"], "the record")
        self.assertEqual(self.log_text().count("holds no lane"), 1)

    def test_a_relay_that_was_stopped_sends_nothing_for_what_it_lost(self):
        """Y2: not even what it had been sending when its lease ended."""
        receiver = self.receiver()
        stopped = self.relay(receiver.url.replace("/in", "/hangs"), "--lease", "2s")
        self.cluster.psql("SELECT hapax.publish('t', 'x', id => 'r1')")
        wait_for(lambda: receiver.hanging, "the record to hang")
        stopped.send_signal(signal.SIGSTOP)
        self.relay(receiver.url, "--lease", "2s")
        wait_for(lambda: receiver.got == [("r1", "x", "t")], "the other relay to send it")
        wait_for(lambda: self.status()["waiting"] == 0, "the other relay to settle it")
        sent = list(receiver.hanging)  # Again by each lease that it had time to take.
        stopped.send_signal(signal.SIGCONT)
        wait_for(lambda: "is no longer held" in self.log_text(), "the first to notice")
        self.assertEqual(receiver.hanging, sent)

    def test_a_slow_endpoint_is_not_unavailable(self):
        """Y4: a lease that ends before an answer comes is followed by another one."""
        receiver = self.receiver()
        for n, body in enumerate(["x", "slow", "y"]):
            self.cluster.psql(f"SELECT hapax.publish('t', '{body}', 'k', 'm{n}')")
        done = subprocess.run([self.HAPAX, "relay", "--from", self.cluster.uri(), "--to",
                               receiver.url, "--once", "--lease", "6s"], capture_output=True,
                              text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(receiver.hanging, ["m1"])
        self.assertEqual([each[0] for each in receiver.got], ["m0", "m1", "m2"])

    def test_what_a_record_says_is_one_value_of_a_header(self):
        """Y7: ids come from whoever may publish; an endpoint believes the header fields."""
        receiver = self.receiver()
        said = ["a\r\nX-Evil: 1", "a", " a", "a ", "a%20", "caf\u00e9 100%", "\n", "\u20ac" * 85]
        for text in said:
            quoted = "E'" + text.replace("\r", "\\r").replace("\n", "\\n") + "'"
            self.cluster.psql(f"SELECT hapax.publish({quoted}, 'x', {quoted}, {quoted}, "
                              f"correlation_id => {quoted}, causation_id => {quoted})")
        self.hapax("relay", "--from", self.cluster.uri(), "--to", receiver.url, "--once")
        for name in ("Idempotency-Key", "Hapax-Key", "Hapax-Type", "Hapax-Correlation-Id",
                     "Hapax-Causation-Id"):
            self.assertEqual(sorted(urllib.parse.unquote(head[name]) for head in receiver.heads),
                             sorted(said), name)
        self.assertEqual([head["X-Evil"] for head in receiver.heads], [None] * len(said))
        self.assertIn("caf%C3%A9 100%25", [head["Hapax-Key"] for head in receiver.heads])

    def test_an_endpoint_gets_no_token_that_was_not_meant_for_it(self):
        receiver = self.receiver()
        environment = {**os.environ, "HAPAX_TOKEN": "of-the-server"}
        with open(os.path.join(self.folder, "token"), "w", encoding="utf-8") as file:
            file.write("of-the-endpoint\n")
        for number, more in enumerate([[], ["--token-file", "token"]]):
            self.cluster.psql(f"SELECT hapax.publish('t', 'x', 'k', 'm{number}')")
            subprocess.run([self.HAPAX, "relay", "--from", self.cluster.uri(), "--to",
                            receiver.url, "--once", *more], env=environment, cwd=self.folder,
                           check=True, timeout=60, stdout=subprocess.DEVNULL)
        self.assertEqual([head["Authorization"] for head in receiver.heads],
                         [None, "Bearer of-the-endpoint"])

    def test_an_endpoint_gets_a_request_per_record(self):
        receiver = self.receiver()
        for n, (key, body) in enumerate([("a", "x1"), ("b", "422"), ("b", "x2"), ("c", "500"),
                                         ("d", "x3")]):
            self.cluster.psql(f"SELECT hapax.publish('paid', '{body}', '{key}', 'm{n}')")
        self.relay(receiver.url, "--attempts", "2")
        others = 0

        def given_up():
            """A 500 is its record's own fault only if others pass, also beside its last attempt."""
            nonlocal others
            if self.status()["dead_letters"] == 2:
                return True
            self.cluster.psql(f"SELECT hapax.publish('other', 'x', 'o{others}', 'o{others}')")
            others += 1
            return False

        wait_for(given_up, "two to be given up")
        wait_for(lambda: self.status()["delivered"] == 3 + others, "the others to pass")
        self.assertEqual(sorted(each for each in receiver.got if each[2] == "paid"),
                         [("m0", "x1", "paid"), ("m2", "x2", "paid"), ("m4", "x3", "paid")])
        listed = self.hapax("relay", "--from", self.cluster.uri(), "--dead-letters", "--json")
        letters = [json.loads(line) for line in listed.splitlines()]
        self.assertEqual([(each["id"], each["key"], each["attempts"], each["reason"][:8])
                          for each in letters],
                         [("m1", "b", 2, "HTTP 422"), ("m3", "c", 2, "HTTP 500")])
        # What the guide to operations says about putting them back, after the cause was mended.
        self.cluster.psql("UPDATE hapax.outbox_dead SET payload = 'x4' WHERE id = 'm1'")
        self.cluster.psql("WITH back AS (DELETE FROM hapax.outbox_dead "
                          "WHERE reason LIKE 'HTTP 422%' RETURNING *) "
                          "SELECT hapax.publish(type, payload, key, id, headers, correlation_id, "
                          "causation_id) FROM back ORDER BY seq")
        wait_for(lambda: ("m1", "x4", "paid") in receiver.got, "the one that was put back")
        self.cluster.psql("UPDATE hapax.outbox_dead SET payload = 'x5' WHERE id = 'm3'")
        self.assertIn("1 published again", self.hapax("relay", "--from", self.cluster.uri(),
                                                      "--redrive", "m3"))
        wait_for(lambda: ("m3", "x5", "paid") in receiver.got, "the other one")
        wait_for(lambda: self.status()["delivered"] == 5 + others, "all to be settled")
        self.assertEqual(self.status()["dead_letters"], 0)

    def test_a_letter_that_is_refused_is_named_and_keeps_back_no_other(self):
        for name in ("a", "", "b"):
            self.cluster.psql("INSERT INTO hapax.outbox_dead (seq, id, type, payload, key, "
                              "created_at, attempts, reason) VALUES (nextval('hapax.outbox_seq'),"
                              f" 'm{name}', 't', 'x', '{name}', now(), 2, 'no')")
        words = [self.HAPAX, "relay", "--from", self.cluster.uri(), "--redrive-all"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("2 published again", done.stdout)
        self.assertRegex(done.stdout, "m is refused .*: .*the key of an event is empty")
        done = subprocess.run([*words, "--json"], capture_output=True, text=True, timeout=60)
        told = json.loads(done.stdout)
        self.assertEqual((done.returncode, told["redriven"], told["refused"][0]["id"]),
                         (1, 0, "m"))

    def test_a_server_that_is_away_is_waited_for(self):
        server = self.serve()
        server.call("PUT", "/streams/orders", {})
        file = os.path.join(self.folder, "app.db")
        self.hapax("migrate", "sqlite:" + file)
        relay = self.relay(server.url + "/streams/orders", "--attempts", "1",
                           "--from", "sqlite:" + file)
        self.publish(0, 10)
        wait_for(lambda: len(self.records(server)) == 10, "ten records")

        def while_down():
            self.publish(10, 10)
            wait_for(lambda: "unavailable" in self.log_text(), "a pause")

        server.restart(while_down)
        wait_for(lambda: len(self.records(server)) == 20, "twenty records")
        self.assertEqual(self.status()["dead_letters"], 0)
        self.cluster.stop()  # The other database goes on meanwhile.
        with contextlib.closing(sqlite3.connect(file)) as app, app:
            app.execute("INSERT INTO hapax_outbox (id, type, payload) VALUES ('s', 'paid', 'x')")
        wait_for(lambda: len(self.records(server)) == 21, "the record of the other database")
        self.cluster.start()
        self.publish(20, 10)
        wait_for(lambda: len(self.records(server)) == 31, "the rest")
        relay.send_signal(signal.SIGTERM)
        self.assertEqual(relay.wait(timeout=30), 0)

    def test_a_database_that_is_away_at_the_start_holds_up_no_other(self):
        server = self.serve()
        server.call("PUT", "/streams/orders", {})
        to = server.url + "/streams/orders"
        file = os.path.join(self.folder, "app.db")
        self.hapax("migrate", "sqlite:" + file)
        with contextlib.closing(sqlite3.connect(file)) as app, app:
            app.execute("INSERT INTO hapax_outbox (id, type, payload) VALUES ('s', 'paid', 'x')")
        self.publish(0, 10)
        self.cluster.stop()
        try:
            once = subprocess.run([self.HAPAX, "relay", "--from", self.cluster.uri(), "--from",
                                   "sqlite:" + file, "--to", to, "--once"], capture_output=True,
                                  text=True, timeout=60, cwd=self.folder)
            self.assertEqual(once.returncode, 69, once.stderr)
            self.assertIn("1 accepted", once.stdout)
            with contextlib.closing(sqlite3.connect(file)) as app, app:
                app.execute("INSERT INTO hapax_outbox (id, type, payload) VALUES ('t', 'p', 'x')")
            relay = self.relay(to, "--from", "sqlite:" + file)
            wait_for(lambda: len(self.records(server)) == 2, "the records of the other database")
            self.assertIn("connect to PostgreSQL", self.log_text())
        finally:
            self.cluster.start()
        wait_for(lambda: len(self.records(server)) == 12, "the rest")
        relay.send_signal(signal.SIGTERM)
        self.assertEqual(relay.wait(timeout=30), 0)

    def test_a_silent_database_is_left_and_sigterm_is_heard(self):
        server = self.serve()
        server.call("PUT", "/streams/orders", {})
        relay = self.relay(server.url + "/streams/orders", "--lease", "2s")
        self.publish(0, 10)
        wait_for(lambda: len(self.records(server)) == 10, "ten records")

        stopped = set()

        def stop():
            told = self.cluster.psql("SELECT pid FROM pg_stat_activity WHERE application_name "
                                     "LIKE 'hapax relay%' AND datname = 'shop'")
            for pid in {int(pid) for pid in told.split()} - stopped:
                wait_for(lambda pid=pid: stands_still(pid), "a session between two questions")
                stopped.add(pid)
                self.addCleanup(os.kill, pid, signal.SIGCONT)

        def stands_still(pid):
            """Within a question it would keep its locks, and hold up others with it."""
            os.kill(pid, signal.SIGSTOP)
            told = self.cluster.psql(f"SELECT state FROM pg_stat_activity WHERE pid = {pid}")
            if told == "idle":
                return True
            os.kill(pid, signal.SIGCONT)
            return False

        stop()
        self.publish(10, 10)
        wait_for(lambda: len(self.records(server)) == 20, "twenty records over a new session")
        self.assertIn("the server is silent", self.log_text())
        stop()
        relay.send_signal(signal.SIGTERM)
        self.assertEqual(relay.wait(timeout=30), 0)

    def test_what_committed_late_is_sent_by_a_restored_database(self):
        holder = subprocess.Popen(["psql", "-X", "-q", "-t", "-A", "-d", self.cluster.uri()],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(holder.communicate)
        # The other cluster will be far behind these numbers of transactions.
        self.cluster.psql("SELECT pg_current_xact_id();\n" * 3000)
        holder.stdin.write("BEGIN;" + "".join(
            f"SELECT hapax.publish('t', 'x', 'k{n}', 'late-{n}');" for n in range(20)) + "\n")
        holder.stdin.flush()
        for _ in range(20):
            holder.stdout.readline()
        self.cluster.psql("".join(f"SELECT hapax.publish('t', 'x', NULL, 'e{n}');\n"
                                  for n in range(100)))
        folder = os.path.join(self.folder, "data")
        self.hapax("stream", "create", "orders", "--data", folder)

        def once(cluster):
            words = ["relay", "--from", cluster.uri(), "--to", folder + "/streams/orders", "--once",
                     "--json"]
            return json.loads(self.hapax(*words))["accepted"]

        self.assertEqual(once(self.cluster), 100)
        holder.stdin.write("COMMIT; SELECT 1;\n")
        holder.stdin.flush()
        holder.stdout.readline()

        other = Cluster()
        self.addCleanup(other.end)
        other.psql("CREATE DATABASE shop", "postgres")
        dump = os.path.join(self.folder, "dump")
        subprocess.run(["pg_dump", "-Fc", "-f", dump, self.cluster.uri()], check=True)
        subprocess.run(["pg_restore", "-d", other.uri(), dump], check=True)
        self.assertLess(int(other.psql("SELECT pg_current_xact_id()")),
                        int(self.cluster.psql("SELECT min(xid::text::bigint) FROM hapax.outbox")))
        status = json.loads(self.hapax("relay", "--from", other.uri(), "--status", "--json"))
        self.assertEqual(status["waiting"], 20)
        other.psql("SELECT hapax.publish('t', 'x', 'k1', 'behind')")
        self.assertEqual(once(other), 21)
        told = [json.loads(line)["id"] for line in self.hapax(
            "tail", "orders", "--data", folder, "--from", "101", "--json").splitlines()]
        self.assertEqual(set(told), {"behind", *(f"late-{n}" for n in range(20))})
        self.assertLess(told.index("late-1"), told.index("behind"))

    def test_the_status_names_the_oldest_transaction(self):
        holder = subprocess.Popen(
            ["psql", "-X", "-q", "-t", "-A", "-d", self.cluster.uri() + "&application_name=sloth"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(holder.communicate)
        holder.stdin.write("BEGIN; SELECT hapax.publish('t', 'x', 'k', 'held');\n")
        holder.stdin.flush()
        holder.stdout.readline()
        self.publish(0, 3)
        status = self.status()
        self.assertEqual(status["waiting"], 3)
        self.assertIn("sloth", status["oldest_transaction_of"])

    def test_exit_codes_tell_what_is_wrong_with_the_database(self):
        self.cluster.psql("DROP ROLE IF EXISTS stranger; CREATE ROLE stranger LOGIN", "postgres")
        away = f"postgres:///shop?host={self.folder}"
        other = self.cluster.uri("none")
        stranger = self.cluster.uri().replace("user=postgres", "user=stranger")
        standby = self.cluster.uri() + "&options=-cdefault_transaction_read_only%3Don"
        once = ["--once", "--to", "http://127.0.0.1:1/in"]
        for source, code, ways in (
                (other, 66, [["--status"], ["--dead-letters"], ["--redrive-all"], once]),
                (away, 69, [["--status"], ["--dead-letters"], ["--redrive-all"], once]),
                (stranger, 77, [["--status"], ["--dead-letters"], ["--redrive-all"], once]),
                (standby, 69, [["--redrive-all"], once]),
                ("sqlite:none.db", 66, [["--status"], once])):
            for words in ways:
                done = subprocess.run([self.HAPAX, "relay", "--from", source, *words],
                                      capture_output=True, text=True, timeout=60, cwd=self.folder)
                self.assertEqual(done.returncode, code, (source, words, done.stderr))
        for store, code in ((other, 66), (away, 69), (stranger, 77)):
            done = subprocess.run([self.HAPAX, "serve", "--store", store, "--http", "127.0.0.1:0",
                                   "--resp", ""], capture_output=True, text=True, timeout=60,
                                  cwd=self.folder)
            self.assertEqual(done.returncode, code, (store, done.stderr))

    def test_mistakes_are_told(self):
        def fail(*words):
            return subprocess.run([self.HAPAX, "relay", *words], capture_output=True, text=True,
                                  timeout=60, cwd=self.folder)
        self.assertEqual(fail("--from", self.cluster.uri()).returncode, 64)
        self.assertEqual(fail("--from", "mysql://x", "--to", "http://a/streams/b").returncode, 64)
        self.cluster.psql("DROP SCHEMA hapax CASCADE")
        told = fail("--from", self.cluster.uri(), "--to", "http://127.0.0.1:1/streams/b")
        self.assertIn("hapax migrate", told.stderr)


if __name__ == "__main__":
    arguments()
    unittest.main()
