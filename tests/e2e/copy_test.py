"""`hapax copy`: a store moves from a folder into PostgreSQL and back, and is the same.
Usage: copy_test.py HAPAX SOURCE_TREE"""
import json
import os
import subprocess
import unittest

from postgres import Cluster
from running import FolderTest, Server, arguments, wait_for

HAPAX, _ = arguments()
USAGE, MISSING, UNREACHABLE, LATER, FORBIDDEN = 64, 66, 69, 75, 77

SMALL = "store: {segment_bytes: 64KiB, snapshot_every_bytes: 64KiB}\n"


class CopyTest(FolderTest):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.databases = 0

    @classmethod
    def tearDownClass(cls):
        cls.cluster.end()

    def setUp(self):
        super().setUp()
        CopyTest.databases += 1
        self.database = f"copy{CopyTest.databases}"
        self.cluster.psql(f"CREATE DATABASE {self.database}", "postgres")
        self.uri = self.cluster.uri(self.database)
        self.data = os.path.join(self.folder, "data")
        self.back = os.path.join(self.folder, "back", "data")
        os.mkdir(os.path.dirname(self.back))

    def psql(self, sql):
        return self.cluster.psql(sql, self.database)

    def start(self, *words):
        process = subprocess.Popen([HAPAX, "copy", *words], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, cwd=self.folder)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def copy(self, *words, code=0):
        done = subprocess.run([HAPAX, "copy", *words], capture_output=True, text=True, timeout=120,
                              cwd=self.folder)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stderr if code else done.stdout

    def refused(self, *words):
        """What a server says that does not start."""
        done = subprocess.run([HAPAX, "serve", "--http", "127.0.0.1:0", "--resp", "", *words],
                              capture_output=True, text=True, timeout=60, cwd=self.folder)
        self.assertNotEqual(done.returncode, 0)
        return done.stderr

    def fill(self):
        """A bit of everything, in several segments."""
        server = self.serve(SMALL)
        self.assertEqual(server.call("PUT", "/streams/orders", {}).status, 200)
        for n in range(0, 1000, 20):
            records = [{"id": f"o-{m}", "group": f"g-{m % 5}", "payload": f"{m}-" + "x" * 400}
                       for m in range(n, n + 20)]
            answer = server.call("POST", "/streams/orders/records", {"records": records})
            self.assertEqual(answer.status, 200)
        self.fences = {}
        for key in ("completed", "failed", "unknown", "processing"):
            claim = {"owner": "w", "lease_ms": 3600000}
            self.fences[key] = server.call("POST", f"/claims/pay/{key}", claim).json["fence"]
            settle = {"fence": self.fences[key], "outcome": key, "reason": "because"}
            if key == "completed":
                settle = {"fence": self.fences[key], "outcome": key, "status": 201, "body": "paid"}
            if key != "processing":
                self.assertEqual(
                    server.call("POST", f"/claims/pay/{key}/settle", settle).status, 200)
        server.call("PUT", "/streams/orders/consumers/mail", {"attempts_max": 1})
        got = server.call("POST", "/streams/orders/consumers/mail/receive",
                          {"max": 3, "lease_ms": 3600000, "owner": "w"}).json
        self.receipts = [one["receipt"] for one in got["records"]]
        self.assertEqual(len(self.receipts), 3)
        server.call("POST", "/streams/orders/consumers/mail/nack",
                    {"receipt": self.receipts[0], "reason": "mail is down"})
        client = self.client(server)
        client("SET", "stays", "v")
        client("SET", "goes", "w", "EX", "7200")
        self.assertEqual(server.stop(), 0)
        self.assertGreater(len([n for n in os.listdir(self.data) if n.startswith("journal-")]), 3)

    def seen(self, server):
        """What clients see; times of claims and leases included."""
        out = {"streams": server.call("GET", "/streams").json}
        for stream in ("orders", "orders.dead"):
            out[stream] = server.call("GET", f"/streams/{stream}").json
            records, start = [], 1
            while True:
                page = server.call("GET", f"/streams/{stream}/records?from={start}&max=1000").json
                if not page["records"]:
                    break
                records += page["records"]
                start = records[-1]["sequence"] + 1
            out[stream + " records"] = records
        for key in self.fences:
            out[key] = server.call("GET", f"/claims/pay/{key}").json
        client = server.client()
        try:
            out["registers"] = [client("GET", "stays"), client("GET", "goes"),
                                client("PEXPIRETIME", "goes"), client("TTL", "stays")]
        finally:
            client.close()
        return out

    def serve_from(self, *words):
        folder = os.path.join(self.folder, "from")
        os.makedirs(folder, exist_ok=True)
        server = Server(HAPAX, folder, *words)
        self.addCleanup(server.end)
        return server

    def test_there_and_back(self):
        self.fill()
        server = self.serve(SMALL)
        before = self.seen(server)
        server.stop()
        told = json.loads(self.copy(self.data, self.uri, "--json"))
        self.assertTrue(told["moved"])
        self.assertEqual(told["copied_bytes"], told["log_bytes"] + told["file_bytes"])
        self.assertIn("was moved to", self.refused("--data", self.data))

        server = self.serve_from("--store", self.uri)
        self.assertEqual(self.seen(server), before)
        record = {"records": [{"id": "o-7", "group": "g-2", "payload": "7-" + "x" * 400}]}
        verdict = server.call("POST", "/streams/orders/records", record).json["verdicts"][0]
        self.assertEqual((verdict["verdict"], verdict["sequence"]), ("duplicate", 8))
        # Leases, fences and receipts that were given out before still count.
        settle = {"fence": self.fences["processing"], "outcome": "completed"}
        self.assertEqual(
            server.call("POST", "/claims/pay/processing/settle", settle).json["verdict"], "done")
        acked = server.call("POST", "/streams/orders/consumers/mail/ack",
                            {"receipt": self.receipts[1]}).json
        self.assertEqual(acked["verdict"], "done")
        used = self.copy(self.uri, self.back, code=LATER)
        self.assertIn("HX1023", used)
        before = self.seen(server)
        self.assertEqual(server.stop(), 0)

        text = self.copy(self.uri, self.back, "--progress")
        self.assertIn("verified  every batch is the same", text)
        self.assertIn("is marked as moved", text)
        self.assertIn("was moved to", self.refused("--store", self.uri))
        self.assertIn("moved to", self.copy(self.uri, os.path.join(self.folder, "other"), code=1))
        self.assertIn("nothing to do", self.copy(self.uri, self.back))
        verified = subprocess.run([HAPAX, "verify", self.back], capture_output=True, text=True,
                                  timeout=60)
        self.assertEqual(verified.returncode, 0, verified.stdout)
        server = Server(HAPAX, os.path.dirname(self.back))
        self.addCleanup(server.end)
        self.assertEqual(self.seen(server), before)

    def blocked(self):
        """Nobody can insert into the log; answers what ends that."""
        session = subprocess.Popen(["psql", "-X", "-q", self.uri], stdin=subprocess.PIPE, text=True)
        session.stdin.write("BEGIN; LOCK TABLE hapax_store.log IN SHARE MODE;\n")
        session.stdin.flush()
        wait_for(lambda: self.psql("SELECT count(*) FROM pg_locks WHERE mode = 'ShareLock' AND "
                                   "relation = 'hapax_store.log'::regclass") == "1", "the lock")
        return session

    def test_a_copy_that_is_killed_goes_on(self):
        self.fill()
        self.copy(self.data, self.uri, "--keep")
        self.psql("TRUNCATE hapax_store.log, hapax_store.file, hapax_store.piece")
        session = self.blocked()
        process = self.start(self.data, self.uri)
        wait_for(lambda: self.psql("SELECT count(*) FROM pg_locks WHERE NOT granted") != "0",
                 "a copy that waits")
        self.assertIn("HX1012", self.refused("--store", self.uri))
        process.kill()
        process.wait()
        session.communicate("ROLLBACK;\n", timeout=60)
        self.assertIn("hapax copy " + self.data, self.refused("--store", self.uri))
        told = json.loads(self.copy(self.data, self.uri, "--json"))
        self.assertFalse(told["done_before"])
        self.assertGreater(told["file_bytes"], 0)
        self.assertLess(told["copied_bytes"], told["log_bytes"] + told["file_bytes"])
        # Killed after ever longer times, on the way back.
        for part in range(1, 8):
            process = self.start(self.uri, self.back)
            try:
                process.wait(timeout=0.015 * part)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        told = json.loads(self.copy(self.uri, self.back, "--json"))
        server = Server(HAPAX, os.path.dirname(self.back))
        self.addCleanup(server.end)
        self.assertEqual(server.call("GET", "/streams/orders").json["last"], 1000)

    def test_what_is_wrong_is_said(self):
        empty = os.path.join(self.folder, "empty")
        os.mkdir(empty)
        self.assertIn("HX1003", self.copy(empty, self.uri, code=MISSING))
        self.assertEqual(os.listdir(empty), [])
        self.assertIn("HX1003", self.copy(self.uri, self.back, code=MISSING))
        self.copy(self.data, self.back, code=USAGE)
        self.copy(self.uri, self.uri, code=USAGE)
        self.copy(self.data, self.uri, "--schema", "1 2", code=USAGE)
        self.hapax("stream", "create", "orders", "--data", self.data)
        nobody = "postgres://me:secret@127.0.0.1:1/x"
        self.assertNotIn("secret", self.copy(self.data, nobody, code=UNREACHABLE))
        self.psql("CREATE ROLE poor LOGIN")
        poor = self.uri.replace("user=postgres", "user=poor")
        self.assertIn("HX1014", self.copy(self.data, poor, code=FORBIDDEN))
        careless = self.uri + "&options=-csynchronous_commit%3Doff"
        self.assertIn("synchronous_commit", self.copy(self.data, careless, code=USAGE))
        # A schema of its own, and a password that no note keeps.
        uri = self.uri + "&sslpassword=secret&password=secret"
        told = self.copy(self.data, uri, "--schema", "mine", "--json")
        self.assertNotIn("secret", told)
        with open(os.path.join(self.data, "MOVED"), encoding="utf-8") as file:
            note = file.read()
        self.assertNotIn("secret", note)
        self.assertIn(", schema mine\n", note)
        self.assertIn("nothing to do", self.copy(self.data + "/", uri, "--schema", "mine"))
        self.assertIn("schema mine", self.copy(self.data, self.uri, code=1))
        inspected = self.hapax("inspect", self.data)
        self.assertIn("was moved to", inspected)
        self.assertEqual(self.psql("SELECT count(*) FROM mine.file WHERE name = 'STORE'"), "1")


if __name__ == "__main__":
    unittest.main()
