"""A primary is lost, and its standby takes over without the latest commits."""

import json
import os
import re
import signal
import subprocess
import threading
import unittest

from postgres import Cluster, Standby
from running import FolderTest, Server, arguments, wait_for

UNREACHABLE = 69


def record(name):
    return {"records": [{"id": name, "payload": name}]}


class PairTest(FolderTest):
    def setUp(self):
        super().setUp()
        self.primary = Cluster()
        self.addCleanup(self.primary.end)
        self.standby = Standby(self.primary)
        self.addCleanup(self.standby.end)
        self.both = (f"postgres:///postgres?host={self.primary.folder},{self.standby.folder}"
                     "&user=postgres&target_session_attrs=read-write")

    def cut(self):
        """From here on nothing reaches the standby."""
        self.sender = int(self.primary.psql("SELECT pid FROM pg_stat_replication", "postgres"))
        os.kill(self.sender, signal.SIGSTOP)

    def lose_the_primary(self):
        self.primary.process.send_signal(signal.SIGQUIT)
        os.kill(self.sender, signal.SIGKILL)
        self.primary.process.wait(timeout=60)


class RelayTest(PairTest):
    def publish(self, cluster, name, count):
        cluster.psql("".join(f"SELECT hapax.publish('t', '{name}', 'k{n % 40}', '{name}-{n}');\n"
                             for n in range(count)), "postgres")

    def test_a_relay_that_keeps_running_skips_nothing_that_the_standby_has(self):
        self.hapax("migrate", self.primary.uri("postgres"))
        server = self.serve()
        server.call("PUT", "/streams/s", {})
        log = open(os.path.join(self.folder, "relay.log"), "w", encoding="utf-8")
        self.addCleanup(log.close)
        relay = subprocess.Popen([self.HAPAX, "relay", "--from", self.both, "--to",
                                  server.url + "/streams/s", "--lease", "2s"], stdout=log,
                                 stderr=log, cwd=self.folder)
        self.addCleanup(relay.wait)
        self.addCleanup(relay.kill)

        def arrived(name):
            page = server.call("GET", "/streams/s/records?from=1&max=1000").json
            return sum(one["id"].startswith(name + "-") for one in page["records"])

        self.publish(self.primary, "kept", 100)
        wait_for(lambda: arrived("kept") == 100, "what the standby has, too")
        self.standby.wait_until_level()
        self.cut()
        # Another session under higher fences, as after any error; the standby knows nothing of it.
        self.primary.psql("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
                          "WHERE application_name = 'hapax relay'", "postgres")
        self.publish(self.primary, "lost", 200)
        wait_for(lambda: arrived("lost") == 200, "what the standby will not have")
        self.lose_the_primary()
        self.standby.promote()
        self.publish(self.standby, "new", 300)
        wait_for(lambda: arrived("new") == 300, "all that was published since")
        status = json.loads(self.hapax("relay", "--from", self.both, "--status", "--json"))
        self.assertEqual(status["dead_letters"], 0)
        relay.send_signal(signal.SIGTERM)
        self.assertEqual(relay.wait(timeout=30), 0)


class FailoverTest(PairTest):
    def setUp(self):
        super().setUp()
        self.servers = [self.join(n, self.both) for n in range(3)]

    def join(self, number, uri):
        folder = os.path.join(self.folder, str(number))
        os.makedirs(folder)
        server = Server(self.HAPAX, folder, "--store", uri)
        self.addCleanup(server.end)
        return server

    def append(self, number, name):
        return self.servers[number].call("POST", "/streams/s/records", record(name))

    def append_at_last(self, number, name):
        """Its sequence. Who meets the loss is told to try again."""
        answers = []

        def answered():
            answers.append(self.append(number, name))
            self.assertIn(answers[-1].status, (200, 503), answers[-1].body)
            return answers[-1].status == 200

        wait_for(answered, "an answer")
        return answers[-1].json["verdicts"][0]

    def everything(self, number):
        page = self.servers[number].call("GET", "/streams/s/records?from=1&max=1000").json
        return [(one["sequence"], one["id"]) for one in page["records"]]

    def refused(self, code, *words):
        done = subprocess.run([self.HAPAX, *words], capture_output=True, text=True, timeout=60,
                              cwd=self.folder)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stderr

    def test_what_a_standby_lost_is_told_and_all_goes_on(self):
        self.assertEqual(self.servers[0].call("PUT", "/streams/s", {}).status, 200)
        for n in range(6):
            self.assertEqual(self.append(n % 3, f"kept-{n}").status, 200)
        self.hapax("migrate", self.primary.uri("postgres"))
        kept_claim = self.servers[1].call("POST", "/claims/c/kept", {"owner": "a"}).json
        self.standby.wait_until_level()
        self.standby_is_refused()

        self.cut()
        for n in range(4):
            self.assertEqual(self.append(n % 3, f"lost-{n}").status, 200)
        self.assertEqual(self.servers[2].call("POST", "/claims/c/lost", {"owner": "a"})
                         .json["verdict"], "fresh")
        for number in range(3):
            self.assertEqual(len(self.everything(number)), 10)

        self.lose_the_primary()
        during = []
        caller = threading.Thread(target=lambda: during.append(self.append_at_last(1, "during")))
        caller.start()
        self.standby.promote()
        caller.join(60)

        # Everything that was lost is new again, and nobody contradicts anybody.
        verdicts = {n: self.append_at_last(n % 3, f"lost-{n}") for n in range(4)}
        self.assertEqual({one["verdict"] for one in verdicts.values()}, {"fresh"})
        self.assertEqual(self.append_at_last(2, "kept-0")["verdict"], "duplicate")
        again = self.append_at_last(0, "during")
        self.assertEqual((again["verdict"], again["sequence"]),
                         ("duplicate", during[0]["sequence"]))
        expected = self.everything(0)
        self.assertEqual([sequence for sequence, _ in expected], list(range(1, 12)))
        self.assertEqual([name for _, name in expected[:6]], [f"kept-{n}" for n in range(6)])
        for number in (1, 2):
            self.assertEqual(self.everything(number), expected)
        self.assertEqual(self.servers[0].call("POST", "/claims/c/lost", {"owner": "b"})
                         .json["verdict"], "fresh")
        settle = {"fence": kept_claim["fence"], "outcome": "completed"}
        self.assertEqual(self.servers[2].call("POST", "/claims/c/kept/settle", settle)
                         .json["verdict"], "done")
        self.losses_are_told()

    def losses_are_told(self):
        """Five batches of one fact each: four records and a claim."""
        for server in self.servers:
            found = re.search(r"the facts (\d+) to (\d+), written since [^ ]+, are lost",
                              server.text())
            self.assertTrue(found, server.text())
            self.assertEqual(int(found[2]) - int(found[1]) + 1, 5, found[0])
            wait_for(lambda server=server: server.call("GET", "/health/ready").status == 200,
                     "its health")

    def standby_is_refused(self):
        alone = self.standby.uri("postgres")
        doors = ("--http", "127.0.0.1:0", "--resp", "")
        told = self.refused(UNREACHABLE, "serve", "--store", alone, *doors)
        self.assertIn("the database is a standby: connect to the primary", told)
        told = self.refused(UNREACHABLE, "serve", "--store",
                            alone.replace("/postgres?", "/template1?"), *doors)
        self.assertIn("read-only: connect to the primary", told)
        told = self.refused(UNREACHABLE, "migrate", alone, "--schema", "other")
        self.assertIn("read-only: connect to the primary", told)
        told = self.refused(UNREACHABLE, "relay", "--once", "--from", alone, "--to",
                            self.servers[0].url + "/streams/s")
        self.assertIn("read-only: connect to the primary", told)
        done = subprocess.run([self.HAPAX, "doctor", alone, "--json"], capture_output=True,
                              text=True, timeout=60)
        self.assertEqual(done.returncode, 2)
        found = [one for one in json.loads(done.stdout)["checks"] if one["check"] == "writable"]
        self.assertEqual(found[0]["state"], "critical")
        self.assertIn("is a standby", found[0]["found"])
        self.assertIn("target_session_attrs=read-write", found[0]["advice"])


if __name__ == "__main__":
    arguments()
    unittest.main(verbosity=2)
