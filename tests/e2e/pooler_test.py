"""What works behind a real connection pooler that changes sessions, and what is refused there."""

import json
import os
import signal
import subprocess
import unittest

from postgres import Cluster, Pooler
from running import FolderTest, Server, arguments, wait_for

HELD = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"


@unittest.skipUnless(Pooler.PROGRAM, "pgbouncer is not installed")
class PoolerTest(FolderTest):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.transactions = Pooler(cls.cluster, "transaction")
        cls.sessions = Pooler(cls.cluster, "session")

    @classmethod
    def tearDownClass(cls):
        cls.transactions.stop()
        cls.sessions.stop()
        cls.cluster.end()

    def setUp(self):
        super().setUp()
        self.name = self.id().rsplit(".", 1)[1]
        self.cluster.psql(f"CREATE DATABASE {self.name}", "postgres")
        self.address = self.transactions.uri(self.name)

    def publish(self, first, count):
        self.transactions.psql("".join(
            f"SELECT hapax.publish('paid', '{n}', 'k{n % 7}', 'e{n}');\n"
            for n in range(first, first + count)), self.name)

    def records(self, server):
        return server.call("GET", "/streams/orders/records?from=1&max=1000").json["records"]

    def log_text(self):
        with open(os.path.join(self.folder, "relay.log"), encoding="utf-8") as file:
            return file.read()

    def relay(self, to):
        with open(os.path.join(self.folder, "relay.log"), "w", encoding="utf-8") as log:
            relay = subprocess.Popen([self.HAPAX, "relay", "--from", self.address, "--to", to],
                                     stdout=log, stderr=log, cwd=self.folder)
        self.addCleanup(relay.wait)
        self.addCleanup(relay.kill)
        return relay

    def test_a_relay_looks_for_records_itself(self):
        self.hapax("migrate", self.address)
        server = self.serve()
        server.call("PUT", "/streams/orders", {})
        self.publish(0, 300)
        relay = self.relay(server.url + "/streams/orders")
        wait_for(lambda: len(self.records(server)) == 300, "what was there")
        self.publish(300, 100)
        wait_for(lambda: len(self.records(server)) == 400, "what came later")
        self.transactions.stop()
        wait_for(lambda: "connection to PostgreSQL is lost" in self.log_text(), "the loss")
        self.transactions.start()
        self.publish(400, 100)
        wait_for(lambda: len(self.records(server)) == 500, "the rest")
        relay.send_signal(signal.SIGTERM)
        self.assertEqual(relay.wait(timeout=30), 0, self.log_text())
        self.assertEqual(self.log_text().count("NOTIFY does not reach this relay"), 1)
        got = self.records(server)
        self.assertEqual({record["id"] for record in got}, {f"e{n}" for n in range(500)})
        for key in range(7):
            order = [int(one["payload"]) for one in got if one["group"] == f"k{key}"]
            self.assertEqual(order, sorted(order))

    def test_the_doctor_finds_it(self):
        done = subprocess.run([self.HAPAX, "doctor", self.address, "--json"], capture_output=True,
                              text=True, timeout=60, cwd=self.folder)
        told = {check["check"]: check for check in json.loads(done.stdout)["checks"]}
        self.assertEqual(told["notify"]["state"], "warning")
        self.assertIn("did not come through", told["notify"]["found"])
        self.assertIn("pools sessions", told["notify"]["advice"])

    def test_migrations_lock_nobody_out(self):
        # Side by side, so that the transactions of each run in several sessions.
        runs = [subprocess.Popen([self.HAPAX, "migrate", self.address], stdout=subprocess.PIPE,
                                 text=True) for _ in range(4)]
        applied = "".join(run.communicate(timeout=60)[0] for run in runs)
        self.assertEqual([run.returncode for run in runs], [0] * 4)
        self.assertEqual(applied.count("applied 1 "), 1)
        self.assertEqual(applied.count("applied 2 "), 1)
        self.assertEqual(self.cluster.psql(HELD, self.name), "0")

    def test_an_application_publishes_and_receives(self):
        program = os.path.join(os.path.dirname(self.HAPAX), "example_orders")

        def orders(*words):
            return subprocess.run([program, *words], capture_output=True, text=True, timeout=60,
                                  cwd=self.folder, check=True).stdout

        self.hapax("migrate", self.address)
        orders("tables", self.address)
        self.assertEqual(orders("place", "20", self.address), "20 orders are placed\n")
        self.hapax("stream", "create", "orders", "--data", "between")
        self.hapax("relay", "--from", self.address, "--to", "between/streams/orders", "--once")
        self.assertIn("20 orders were taken", orders("receive", "between", self.address))
        self.hapax("consumer", "seek", "orders", "warehouse", "1", "--data", "between")
        self.assertRegex(orders("receive", "between", self.address), "^0 orders were taken")

    def test_a_shared_store_is_refused(self):
        for words in (["serve", "--store", self.address, "--http", "127.0.0.1:0", "--resp", ""],
                      ["copy", self.folder + "/data", self.address]):
            self.hapax("stream", "create", "orders", "--data", self.folder + "/data")
            done = subprocess.run([self.HAPAX, *words], capture_output=True, text=True, timeout=60,
                                  cwd=self.folder)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("changes sessions between transactions", done.stderr)
            self.assertIn("Connect to PostgreSQL directly", done.stderr)
        self.assertEqual(self.cluster.psql(HELD, self.name), "0")
        self.assertEqual(self.cluster.psql("SELECT to_regnamespace('hapax_store')", self.name), "")

    def test_a_shared_store_on_pooled_sessions(self):
        server = Server(self.HAPAX, self.folder, "--store", self.sessions.uri(self.name))
        self.addCleanup(server.end)
        self.assertEqual(server.call("PUT", "/streams/s", {}).status, 200)
        record = {"records": [{"id": "1", "payload": "tea"}]}
        for verdict in ("fresh", "duplicate"):
            told = server.call("POST", "/streams/s/records", record).json["verdicts"][0]
            self.assertEqual(told["verdict"], verdict)
        server.stop()
        wait_for(lambda: self.cluster.psql(HELD, self.name) == "0", "the locks to be free")


if __name__ == "__main__":
    arguments()
    unittest.main()
