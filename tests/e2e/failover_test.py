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

FAILED, UNREACHABLE, LATER = 1, 69, 75


def record(name):
    return {"records": [{"id": name, "payload": name}]}


class FailoverTest(FolderTest):
    def setUp(self):
        super().setUp()
        self.primary = Cluster()
        self.addCleanup(self.primary.end)
        self.standby = Standby(self.primary)
        self.addCleanup(self.standby.end)
        both = (f"postgres:///postgres?host={self.primary.folder},{self.standby.folder}"
                "&user=postgres&target_session_attrs=read-write")
        self.servers = [self.join(n, both) for n in range(3)]

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

        # From here on nothing reaches the standby.
        sender = int(self.primary.psql("SELECT pid FROM pg_stat_replication", "postgres"))
        os.kill(sender, signal.SIGSTOP)
        for n in range(4):
            self.assertEqual(self.append(n % 3, f"lost-{n}").status, 200)
        self.assertEqual(self.servers[2].call("POST", "/claims/c/lost", {"owner": "a"})
                         .json["verdict"], "fresh")
        for number in range(3):
            self.assertEqual(len(self.everything(number)), 10)

        self.primary.process.send_signal(signal.SIGQUIT)
        os.kill(sender, signal.SIGKILL)
        self.primary.process.wait(timeout=60)
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
        told = self.refused(FAILED, "serve", "--store", alone, "--http", "127.0.0.1:0")
        self.assertIn("the database is a standby: connect to the primary", told)
        told = self.refused(FAILED, "serve", "--store", alone.replace("/postgres?", "/template1?"),
                            "--http", "127.0.0.1:0")
        self.assertIn("read-only: connect to the primary", told)
        told = self.refused(UNREACHABLE, "migrate", alone, "--schema", "other")
        self.assertIn("read-only: connect to the primary", told)
        told = self.refused(LATER, "relay", "--once", "--from", alone, "--to",
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
