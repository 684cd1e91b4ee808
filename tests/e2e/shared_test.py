"""Several `hapax serve` processes on one PostgreSQL database: they behave as one, whoever dies."""

import json
import os
import random
import re
import signal
import threading
import time
import unittest

from postgres import Cluster
from running import FolderTest, Server, arguments, wait_for


class SharedTest(FolderTest):
    def setUp(self):
        super().setUp()
        self.cluster = Cluster()
        self.addCleanup(self.cluster.end)
        self.servers = [self.join(n) for n in range(3)]

    def join(self, number):
        folder = os.path.join(self.folder, str(number))
        os.makedirs(folder)
        server = Server(self.HAPAX, folder, "--store", self.cluster.uri("postgres"))
        self.addCleanup(server.end)
        return server

    def call(self, number, method, path, body=None):
        return self.servers[number].call(method, path, body)

    def everything(self, number, stream):
        got, start = [], 1
        while True:
            page = self.call(number, "GET", f"/streams/{stream}/records?from={start}&max=1000").json
            self.assertIn("records", page)
            if not page["records"]:
                return got
            got += page["records"]
            start = got[-1]["sequence"] + 1


class TogetherTest(SharedTest):
    def test_what_one_did_all_know(self):
        self.assertEqual(self.call(0, "PUT", "/streams/s", {}).status, 200)
        record = {"records": [{"id": "1", "payload": "tea"}]}
        self.assertEqual(self.call(0, "POST", "/streams/s/records", record).json["verdicts"][0]
                         ["verdict"], "fresh")
        self.assertEqual(self.call(1, "POST", "/streams/s/records", record).json["verdicts"][0]
                         ["verdict"], "duplicate")
        self.assertEqual([one["payload"] for one in self.everything(2, "s")], ["tea"])
        mine = self.call(1, "POST", "/claims/c/k", {"owner": "a"}).json
        self.assertEqual(mine["verdict"], "fresh")
        self.assertEqual(self.call(2, "POST", "/claims/c/k", {"owner": "b"}).json["verdict"],
                         "in_progress")
        settle = {"fence": mine["fence"], "outcome": "completed"}
        self.assertEqual(self.call(0, "POST", "/claims/c/k/settle", settle).json["verdict"],
                         "done")
        self.assertEqual(self.call(2, "POST", "/claims/c/k", {"owner": "b"}).json["verdict"],
                         "duplicate")

    def test_who_waits_at_one_hears_of_records_of_another(self):
        self.call(0, "PUT", "/streams/s", {})
        got = []
        poll = threading.Thread(target=lambda: got.append(
            self.call(2, "GET", "/streams/s/records?from=1&wait_ms=20000").json))
        began = time.monotonic()
        poll.start()
        self.call(0, "POST", "/streams/s/records", {"records": [{"payload": "tea"}]})
        poll.join(30)
        self.assertEqual([one["payload"] for one in got[0]["records"]], ["tea"])
        self.assertLess(time.monotonic() - began, 15)


class StartTest(FolderTest):
    def test_a_database_that_is_away_is_waited_for(self):
        cluster = Cluster()
        self.addCleanup(cluster.end)
        cluster.stop(signal.SIGINT)  # So that there is nothing to recover: it must be back in 10 s.
        servers = []
        starting = threading.Thread(target=lambda: servers.append(
            Server(self.HAPAX, self.folder, "--store", cluster.uri("postgres"))))
        starting.start()
        self.addCleanup(lambda: [server.end() for server in servers])

        def says(text):
            with open(os.path.join(self.folder, "log"), encoding="utf-8") as file:
                return text in file.read()

        wait_for(lambda: os.path.exists(os.path.join(self.folder, "log")) and
                 says("waiting for it, 10000 ms at most"), "the server to say what it waits for")
        cluster.start()
        starting.join()
        self.assertEqual(servers[0].call("PUT", "/streams/s", {}).status, 200)


class RedactionTest(FolderTest):  # A12
    """What callers are told when the database fails, and what the log has instead."""

    def setUp(self):
        super().setUp()
        self.cluster = Cluster()
        self.addCleanup(self.cluster.end)
        uri = self.cluster.uri("postgres")
        self.server = Server(self.HAPAX, self.folder, config=f"server: {{store: '{uri}'}}\n"
                                                             "log: {format: json}\n")
        self.addCleanup(self.server.end)
        self.assertEqual(self.server.call("PUT", "/streams/s", {}).status, 200)

    def lines(self, event):
        lines = [json.loads(line) for line in self.server.text().splitlines()]
        return [line for line in lines if line["event"] == event]

    def check_is_told(self, secret):
        record = {"records": [{"payload": "tea"}]}
        answer = self.server.call("POST", "/streams/s/records", record, {"X-Request-Id": "r-1"})
        self.assertEqual((answer.status, answer.headers["X-Request-Id"]), (503, "r-1"))
        self.assertIn("r-1", answer.json["detail"])
        received = self.server.call("POST", "/streams/s/consumers/c/receive", {},
                                    {"X-Request-Id": "r-2"})
        self.assertEqual((received.status, received.headers["X-Request-Id"]), (503, "r-2"))
        self.assertIn("request r-2)", received.json["detail"])
        client = self.client(self.server)
        replies = [client.ask("SET", "k", "v"), client.ask("HX.DESCRIBE", "s")]
        ready = self.server.call("GET", "/health/ready")
        for text in (answer.body.decode(), ready.body.decode(), *map(str, replies)):
            for inside in (secret, self.cluster.folder, "PostgreSQL", "libpq"):
                self.assertNotIn(inside, text)
        failures = {line["request"]: line["reason"] for line in self.lines("the store failed")}
        self.assertIn(secret, failures["r-1"])
        request = re.search("request ([0-9a-f]{16})", str(replies[0]))
        self.assertIn(secret, failures[request[1]])

    def test_a_statement_that_is_refused(self):
        self.cluster.psql("CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE "
                          "'not for role tester' USING ERRCODE = '42501'; END $$; CREATE TRIGGER "
                          "no BEFORE INSERT ON hapax_store.log EXECUTE FUNCTION no()",
                          database="postgres")
        self.check_is_told("not for role tester")

    def test_a_database_that_is_away(self):
        self.cluster.stop()
        wait_for(lambda: self.server.call("GET", "/health/ready").status == 503,
                 "the server to notice")
        self.check_is_told("connection")
        self.assertEqual([line["level"] for line in self.lines("not ready")], ["warning"])
        self.cluster.start()
        wait_for(lambda: self.server.call("GET", "/health/ready").status == 200,
                 "the server to notice that it is back")
        wait_for(lambda: len(self.lines("ready again")) == 1, "the log to tell it")

    def test_a_warning_of_the_server_is_a_line_of_the_log(self):
        self.cluster.psql("CREATE FUNCTION hm() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE "
                          "WARNING 'hm'; RAISE NOTICE 'by the way'; RETURN NULL; END $$; CREATE "
                          "TRIGGER hm AFTER INSERT ON hapax_store.log EXECUTE FUNCTION hm()",
                          database="postgres")
        for _ in range(3):
            self.assertEqual(self.server.call("POST", "/registers/n/add", {"by": 1}).status,
                             200)
        self.assertEqual(len(self.lines("PostgreSQL warns: hm")), 1)

    def test_a_warning_neither_breaks_the_line_nor_tells_the_password(self):
        """Whoever may write to the database says what is in it."""
        self.cluster.psql("CREATE FUNCTION hm() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE "
                          "WARNING USING MESSAGE = E'hm\\n\\x1b[2J open-sesame\\x7f'; RETURN NULL; "
                          "END $$; CREATE TRIGGER hm AFTER INSERT ON hapax_store.log EXECUTE "
                          "FUNCTION hm()", database="postgres")
        self.server.end()
        uri = self.cluster.uri("postgres") + "&password=open-sesame"
        self.server = Server(self.HAPAX, self.folder, config=f"server: {{store: '{uri}'}}\n"
                                                             "log: {format: json}\n")
        self.addCleanup(self.server.end)
        self.assertEqual(self.server.call("POST", "/registers/n/add", {"by": 1}).status, 200)
        self.assertEqual(len(self.lines("PostgreSQL warns: hm  [2J … ")), 1)

    def test_so_is_one_that_comes_before_it_is_connected(self):
        warning = ('database "postgres" has no actual collation version, but a version was '
                   "recorded")
        self.server.restart(lambda: self.cluster.psql(
            "UPDATE pg_database SET datcollversion = '1'", database="postgres"))
        self.assertEqual(self.server.call("GET", "/streams/s").status, 200)
        self.assertEqual(len(self.lines("PostgreSQL warns: " + warning)), 1)


class TroubleTest(SharedTest):
    """Callers that try again with the same id, at whichever process answers."""

    def setUp(self):
        super().setUp()
        self.call(0, "PUT", "/streams/s", {})
        self.done = threading.Event()
        self.acknowledged = {}
        self.lock = threading.Lock()

    def append_all(self, name, count):
        chance = random.Random(name)
        for n in range(count):
            message = {"records": [{"id": f"{name}-{n}", "payload": f"{name}-{n}"}]}
            while not self.done.is_set():
                try:
                    answer = self.servers[chance.randrange(3)].call(
                        "POST", "/streams/s/records", message)
                except OSError:
                    continue
                if answer.status != 200:
                    continue
                result = answer.json["verdicts"][0]
                self.assertIn(result["verdict"], ("fresh", "duplicate"))
                with self.lock:
                    self.acknowledged[f"{name}-{n}"] = result["sequence"]
                break

    def while_appending(self, trouble, callers=4, each=150):
        threads = [threading.Thread(target=self.append_all, args=(f"c{c}", each))
                   for c in range(callers)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            trouble()
        for thread in threads:
            thread.join(120)
        self.assertEqual(len(self.acknowledged), callers * each)

    def check_all(self):
        for number in range(3):
            records = self.everything(number, "s")
            self.assertEqual([one["sequence"] for one in records],
                             list(range(1, len(records) + 1)))
            self.assertEqual({one["id"]: one["sequence"] for one in records}, self.acknowledged)

    def test_processes_are_killed_and_stopped(self):
        chance = random.Random(7)

        def trouble():
            victim = self.servers[chance.randrange(3)]
            seen = len(self.acknowledged)
            if chance.random() < 0.6:
                victim.restart()
            else:
                victim.process.send_signal(signal.SIGSTOP)
                enough = min(seen + 40, 600)
                wait_for(lambda: len(self.acknowledged) >= enough or chance.random() < 0.02,
                         "others go on")
                victim.process.send_signal(signal.SIGCONT)

        self.while_appending(trouble)
        self.check_all()

    def test_the_database_stops_at_once_again_and_again(self):
        restarts = []

        def trouble():
            if len(restarts) >= 4:
                return wait_for(lambda: len(self.acknowledged) == 600, "the end")
            enough = len(self.acknowledged) + 60
            wait_for(lambda: len(self.acknowledged) >= min(enough, 600), "progress")
            self.cluster.stop()
            self.cluster.start()
            restarts.append(1)

        self.while_appending(trouble)
        self.check_all()
        # W4: who waited for it counts the time of the others as its own, once.
        for number in range(3):
            claim = self.call(number, "POST", f"/claims/c/{number}",
                              {"owner": "o", "lease_ms": 10_000}).json
            self.assertLess(claim["lease_until_ms"], time.time() * 1_000 + 10_000 + 250)

    def test_a_database_that_says_nothing_is_not_waited_for(self):
        one = lambda name: {"records": [{"id": name, "payload": name}]}
        self.call(0, "POST", "/streams/s/records", one("before"))
        pids = self.cluster.psql("SELECT pid FROM pg_stat_activity WHERE application_name = "
                                 "'hapax store log'", database="postgres").split()
        self.assertEqual(len(pids), 3)
        for pid in pids:
            os.kill(int(pid), signal.SIGSTOP)
        try:
            wait_for(lambda: self.call(0, "POST", "/streams/s/records", one("after")).status == 200,
                     "another connection")
            self.assertEqual([one["id"] for one in self.everything(1, "s")], ["before", "after"])
        finally:
            for pid in pids:
                os.kill(int(pid), signal.SIGCONT)
        for number in range(3):
            self.assertEqual(len(self.everything(number, "s")), 2)


if __name__ == "__main__":
    arguments()
    unittest.main(verbosity=2)
