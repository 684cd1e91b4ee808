"""A process of a shared store, or its database, ends at each step of what they say."""

import contextlib
import itertools
import os
import threading
import unittest

from postgres import Cluster
from postgres_points import Between, Point, sql_like
from running import FolderTest, Server, arguments, wait_for

CONFIG = "store: {snapshot_every_bytes: 64KiB}\n"
BEFORE, AFTER = "before", "after"


def is_append(statement):
    return statement.prepared == "append"


def begins_a_segment(statement):
    return is_append(statement) and statement.values[1] == b"64" and statement.values[0] != b"1"


STEPS = {
    "an append": is_append,
    "an append to a new segment": begins_a_segment,
    "following others": lambda statement: statement.prepared == "behind",
    "a new file": sql_like(r"INSERT INTO .*\.\"file\""),
    "a piece of a snapshot": sql_like(r"INSERT INTO .*\.\"piece\""),
    "the name of a snapshot": sql_like(r"^WITH old AS"),
    "removing a file": sql_like(r"^WITH gone AS"),
    "removing a segment": sql_like(r"DELETE FROM .*\.\"log\""),
    "the lock of the keeper": sql_like(r"pg_try_advisory_lock"),
}


class PointsTest(FolderTest):
    def setUp(self):
        super().setUp()
        self.cluster = Cluster()
        self.addCleanup(self.cluster.end)
        self.betweens, self.servers = [], []
        self.join()
        self.servers[0].kill()
        self.cluster.psql("UPDATE hapax_store.format SET segment_bytes = 65536", "postgres")
        self.again(0)
        self.join()
        self.sequences = {}
        self.names = (f"r-{n}" for n in range(10**6))
        self.call("PUT", "/streams/s", {})

    def join(self):
        folder = os.path.join(self.folder, str(len(self.servers)))
        os.makedirs(folder)
        self.betweens.append(Between(folder, self.cluster.folder))
        self.addCleanup(self.betweens[-1].end)
        self.servers.append(Server(self.HAPAX, folder, "--store",
                                   self.betweens[-1].uri("postgres"), config=CONFIG))
        self.addCleanup(self.servers[-1].end)

    def again(self, number):
        server = self.servers[number]
        server.start(f"{server.host}:{server.port}", ":".join(server.resp))

    def call(self, method, path, body, first=0):
        """By whichever process answers."""
        numbers, answers = itertools.cycle((first % 2, 1 - first % 2)), []

        def answered():
            with contextlib.suppress(OSError):
                answers.append(self.servers[next(numbers)].call(method, path, body))
                self.assertIn(answers[-1].status, (200, 503), answers[-1].body)
                if answers[-1].status == 200:
                    return True
            self.revive()
            return False

        wait_for(answered, "somebody who answers")
        return answers[-1].json

    def append(self, number):
        name = next(self.names)
        body = {"records": [{"id": name, "payload": "x" * 12000}]}
        verdict = self.call("POST", "/streams/s/records", body, number)["verdicts"][0]
        self.assertIn(verdict["verdict"], ("fresh", "duplicate"))
        self.sequences[name] = verdict["sequence"]
        if len(self.sequences) % 4 == 0:
            self.call("POST", "/streams/s/trim", {"before": verdict["sequence"]}, number)

    def revive(self):
        """Who has ended begins again."""
        for number, server in enumerate(self.servers):
            if server.process.poll() is not None:
                server.process.stdout.close()
                self.again(number)

    def end_at(self, point, victim):
        hit, lock = threading.Event(), threading.Lock()

        def act(number):
            with lock:
                if hit.is_set():
                    return
                if victim == "process":
                    process = self.servers[number].process  # revive() puts another there.
                    process.kill()
                    process.wait()
                else:
                    self.cluster.stop()
                    self.cluster.start()
                hit.set()

        for number, between in enumerate(self.betweens):
            between.watch(point, lambda number=number: act(number))
        for n in range(1000):
            if hit.is_set():
                break
            self.append(n)
        self.assertTrue(hit.is_set(), point)
        for between in self.betweens:
            between.watch(None, None)
        self.revive()

    def test_whatever_ends_wherever(self):
        """All four ways at an append; elsewhere one, unless HAPAX_POINTS=all (a minute)."""
        ways = [(BEFORE, "process"), (AFTER, "database"), (AFTER, "process"), (BEFORE, "database")]
        for n, (name, matches) in enumerate(STEPS.items()):
            every = n == 0 or os.environ.get("HAPAX_POINTS") == "all"
            for when, victim in ways if every else [ways[n % len(ways)]]:
                with self.subTest(step=name, when=when, victim=victim):
                    self.end_at(Point(name, matches, when), victim)
        self.agree()

    def agree(self):
        self.assertEqual(sorted(self.sequences.values()),
                         list(range(1, len(self.sequences) + 1)))
        name, sequence = list(self.sequences.items())[-1]
        for number in range(2):
            again = {"records": [{"id": name, "payload": "x" * 12000}]}
            verdict = self.call("POST", "/streams/s/records", again, number)["verdicts"][0]
            self.assertEqual((verdict["verdict"], verdict["sequence"]), ("duplicate", sequence))
            wait_for(lambda number=number:
                     self.servers[number].call("GET", "/health/ready").status == 200, "health")
            self.assertNotIn("serves nothing more", self.servers[number].text())


if __name__ == "__main__":
    arguments()
    unittest.main(verbosity=2)
