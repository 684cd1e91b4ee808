"""`hapax relay` between a real PostgreSQL and a real `hapax serve`, killed at random."""

import contextlib
import http.server
import json
import os
import random
import signal
import sqlite3
import subprocess
import threading
import unittest

from postgres import Cluster
from running import FolderTest, arguments, wait_for


class Receiver(http.server.BaseHTTPRequestHandler):
    """Takes a record per request; what fails is told by its payload."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        status = int(body) if body.isdigit() else 200
        if status == 200:
            self.server.got.append((self.headers["Idempotency-Key"], body,
                                    self.headers["Hapax-Type"]))
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


class RelayTest(FolderTest):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()

    @classmethod
    def tearDownClass(cls):
        cls.cluster.end()

    def setUp(self):
        super().setUp()
        self.cluster.psql("DROP DATABASE IF EXISTS shop", "postgres")
        self.cluster.psql("CREATE DATABASE shop", "postgres")
        self.hapax("migrate", self.cluster.uri())
        self.relays = []
        self.addCleanup(self.end_relays)

    def end_relays(self):
        for relay in self.relays:
            relay.kill()
            relay.wait()

    def relay(self, to, *more):
        log = open(os.path.join(self.folder, "relay.log"), "a", encoding="utf-8")
        relay = subprocess.Popen([self.HAPAX, "relay", "--from", self.cluster.uri(), "--to", to,
                                  *more], stdout=log, stderr=log, cwd=self.folder)
        log.close()
        self.relays.append(relay)
        return relay

    def log_text(self):
        with open(os.path.join(self.folder, "relay.log"), encoding="utf-8") as file:
            return file.read()

    def status(self):
        return json.loads(self.hapax("relay", "--from", self.cluster.uri(), "--status", "--json"))

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
            for n in range(first, first + count)))

    def test_nothing_is_lost_or_doubled_when_everybody_is_killed(self):
        chance = random.Random(4)
        server = self.serve()
        server.call("PUT", "/streams/orders", {})
        to = server.url + "/streams/orders"
        relays = [self.relay(to, "--lease", "1s", "--batch", "40") for _ in range(2)]
        done = threading.Event()
        keys, each = 20, 1200
        # Keys of their own, so that the order of commits per key is known.
        writers = [threading.Thread(target=self.publish, args=(w * each, each, keys))
                   for w in range(2)]
        for writer in writers:
            writer.start()

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
            writer.join()
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
        status = self.status()
        self.assertEqual(status["dead_letters"], 0)
        self.assertEqual({lane["owner"] for lane in status["lanes"]}, {None})

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

    def test_an_endpoint_gets_a_request_per_record(self):
        receiver = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
        receiver.got = []
        thread = threading.Thread(target=receiver.serve_forever)
        thread.start()
        self.addCleanup(receiver.server_close)
        self.addCleanup(thread.join)
        self.addCleanup(receiver.shutdown)
        for n, (key, body) in enumerate([("a", "x1"), ("b", "422"), ("b", "x2"), ("c", "500"),
                                         ("d", "x3")]):
            self.cluster.psql(f"SELECT hapax.publish('paid', '{body}', '{key}', 'm{n}')")
        self.relay(f"http://127.0.0.1:{receiver.server_port}/in", "--attempts", "2")
        wait_for(lambda: len(receiver.got) >= 3, "the records that pass")
        wait_for(lambda: self.status()["dead_letters"] == 2, "the others to be given up")
        self.assertEqual(sorted(receiver.got), [("m0", "x1", "paid"), ("m2", "x2", "paid"),
                                                ("m4", "x3", "paid")])
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
        wait_for(lambda: self.status()["delivered"] == 5, "all to be settled")
        self.assertEqual(self.status()["dead_letters"], 0)

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
