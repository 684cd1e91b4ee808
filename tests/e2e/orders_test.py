"""examples/orders: orders are placed, relayed and received by processes that are killed at random.

At the end every order was taken from the stock once, and nothing else was.
"""

import contextlib
import json
import os
import random
import re
import sqlite3
import subprocess
import threading
import unittest

from postgres import Cluster
from running import FolderTest, arguments, wait_for

COUNT = 300
KILLS = 6  # of each kind; fewer than the attempts that a record has
LATER = 75


class Killed:
    """A command that is killed at random and started again; in the end it may finish."""

    def __init__(self, seed, *words):
        self.chance, self.words, self.kills = random.Random(seed), words, 0

    def turn(self, folder):
        """Whether it ran to its end, and all was well."""
        patience = self.chance.random() * 0.12 if self.kills < KILLS else 60
        with subprocess.Popen(self.words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              text=True, cwd=folder) as process:
            try:
                process.wait(timeout=patience)
            except subprocess.TimeoutExpired:
                process.kill()
                self.kills += 1
                return False
            if process.returncode not in (0, LATER):
                raise AssertionError(f"{self.words}: {process.stderr.read()}")
            return process.returncode == 0


class Sqlite:
    def __init__(self, folder, name):
        self.path = os.path.join(folder, name + ".db")
        self.address = "sqlite:" + self.path

    def rows(self, sql):
        with contextlib.closing(sqlite3.connect(self.path, timeout=30)) as file:
            return [tuple(str(value) for value in row) for row in file.execute(sql)]


class Postgres:
    def __init__(self, cluster, name):
        self.cluster, self.name = cluster, name
        self.address = cluster.uri(name)
        cluster.psql("CREATE DATABASE " + name, "postgres")

    def rows(self, sql):
        text = self.cluster.psql(sql, self.name)
        return [tuple(line.split("|")) for line in text.splitlines()]


class OrdersTest(FolderTest):
    def orders(self, *words):
        return subprocess.run([self.program(), *words], capture_output=True, text=True, timeout=60,
                              cwd=self.folder, check=True).stdout

    def program(self):
        return os.path.join(os.path.dirname(self.HAPAX), "example_orders")

    def waiting(self, shop):
        told = json.loads(self.hapax("relay", "--from", shop.address, "--status", "--json"))
        return told["waiting"] + told["retries"]

    def make(self, shop, warehouse):
        for database in (shop, warehouse):
            self.hapax("migrate", database.address)
            self.orders("tables", database.address)
        self.hapax("stream", "create", "orders", "--data", "between")

    def run_killed(self, shop, warehouse):
        """Places in a thread of its own; relay and receiver take turns at the folder."""
        place = Killed(1, self.program(), "place", str(COUNT), shop.address)
        relay = Killed(2, self.HAPAX, "relay", "--from", shop.address, "--to",
                       "between/streams/orders", "--once", "--lease", "1s")
        receive = Killed(3, self.program(), "receive", "between", warehouse.address)
        failures = []

        def place_all():
            try:
                while not place.turn(self.folder):
                    pass
            except AssertionError as failure:
                failures.append(failure)

        placing = threading.Thread(target=place_all)
        placing.start()

        def all_arrived():
            relay.turn(self.folder)
            receive.turn(self.folder)
            taken = warehouse.rows("SELECT count(DISTINCT order_id) FROM taken")
            return failures or taken == [(str(COUNT),)]

        wait_for(all_arrived, "every order to arrive", seconds=150)
        placing.join()
        wait_for(lambda: relay.turn(self.folder) and self.waiting(shop) == 0,
                 "what was sent to be settled")
        self.assertEqual(failures, [])
        return [process.kills for process in (place, relay, receive)]

    def check(self, shop, warehouse):
        """The stock counts down by what was ordered; a second effect would show in both."""
        placed = shop.rows("SELECT id, item, quantity FROM orders ORDER BY id")
        self.assertEqual(len(placed), COUNT)
        self.assertEqual(warehouse.rows("SELECT * FROM taken ORDER BY order_id"), placed)
        sums = shop.rows("SELECT item, 1000000 - sum(quantity) FROM orders GROUP BY item "
                         "ORDER BY item")
        self.assertEqual(warehouse.rows("SELECT item, quantity FROM stock ORDER BY item"), sums)

    def play(self, shop, warehouse):
        self.make(shop, warehouse)
        kills = self.run_killed(shop, warehouse)
        self.assertGreater(min(kills), 0, "nobody was killed, so this shows nothing")
        self.check(shop, warehouse)

        # All of it once more, as after a lost position: the inbox knows every one.
        self.hapax("consumer", "seek", "orders", "warehouse", "1", "--data", "between")
        told = re.fullmatch(r"0 orders were taken from the stock, (\d+) were known already\n",
                            self.orders("receive", "between", warehouse.address))
        self.assertGreaterEqual(int(told[1]), COUNT)  # More, if leases of its records ended.
        self.assertEqual(self.orders("place", str(COUNT), shop.address),
                         f"{COUNT} orders are placed\n")
        self.assertEqual(self.waiting(shop), 0)
        self.check(shop, warehouse)

    def test_on_sqlite(self):
        self.play(Sqlite(self.folder, "shop"), Sqlite(self.folder, "warehouse"))

    def test_on_postgres(self):
        cluster = Cluster()
        self.addCleanup(cluster.end)
        self.play(Postgres(cluster, "shop"), Postgres(cluster, "warehouse"))


if __name__ == "__main__":
    arguments()
    unittest.main()
