"""A short soak of 2,000 connections, and proof that the witness notices what it is there for."""

import asyncio
import os
import shutil
import unittest

import running
import soak
import witness
from witness import Ack, Append, Claim, Delivery, SetOnce, Settle

running.arguments()


def seen():
    """A history in which everything is in order, and what was found after it."""
    history, found = witness.History(), witness.Found()
    history.appends = [Append("s", "a", "x", 1, 2, "fresh", 1), Append("s", "a", "x", 1),
                       Append("s", "a", "x", 3, 4, "duplicate", 1),
                       Append("s", "a", "y", 3, 4, "conflict"),
                       Append("s", "b", "x", 5, 6, "fresh", 2),
                       Append("left", "p", "x", 1, 2, "fresh", 1),
                       Append("right", "p", "x", 1, 2, "fresh", 1)]
    history.claims = [Claim("k", "ann", 1, 2, "fresh", 7), Claim("k", "bob", 2, 3, "in_progress"),
                      Claim("k", "bob", 5, 6, "fresh", 8), Claim("k", "cyd", 9, 10, "duplicate", 8,
                                                                 "paid")]
    history.settles = [Settle("k", 8, "paid", 7, 8, "done"), Settle("k", 7, "x", 7, 8, "fenced")]
    history.sets = [SetOnce("r", "1", 1, 2, True), SetOnce("r", "2", 1, 2, False)]
    history.deliveries = [Delivery("s", 1, "a", "x", 5)]
    history.acks = [Ack("s", 1, 6)]
    found.records = {"s": [(1, "a", "x"), (2, "b", "x")], "left": [(1, "p", "x")],
                     "right": [(1, "p", "x")]}
    found.pairs = [("left", "right")]
    found.claims = {"k": ("completed", 8, "paid")}
    found.registers = {"r": "1"}
    return history, found


# What goes wrong, and the promise that it breaks.
FAULTS = [
    ("I1", lambda h, f: f.records["s"].pop()),
    ("I1", lambda h, f: f.claims.clear()),
    ("I1", lambda h, f: f.registers.update(r=None)),
    ("I1", lambda h, f: f.registers.update(r="2")),
    ("I1", lambda h, f: f.claims.update(k=("completed", 7, "paid"))),
    ("I2", lambda h, f: f.records["s"].append((3, "a", "x"))),
    ("I2", lambda h, f: h.appends.append(Append("s", "a", "x", 7, 8, "fresh", 1))),
    ("I2", lambda h, f: h.deliveries.append(Delivery("s", 1, "a", "x", 7))),
    ("I3", lambda h, f: h.appends.append(Append("s", "a", "x", 7, 8, "conflict"))),
    ("I4", lambda h, f: h.appends.append(Append("s", "a", "x", 7, 8, "duplicate", 2))),
    ("I5", lambda h, f: f.records["s"].insert(1, (3, "c", "x"))),
    ("I5", lambda h, f: h.appends.insert(0, Append("s", "c", "x", 0, 0.5, "fresh", 3))),
    ("I7", lambda h, f: f.records["s"].append((3, "c", "never sent"))),
    ("I7", lambda h, f: f.records.update(s=[(1, "a", "y"), (2, "b", "x")])),
    ("I7", lambda h, f: h.deliveries.append(Delivery("s", 2, "b", "other", 5))),
    ("I7", lambda h, f: f.registers.update(r="3")),
    ("I11", lambda h, f: h.settles.append(Settle("k", 7, "paid", 7, 8, "done"))),
    ("I13", lambda h, f: h.claims.append(Claim("k", "dan", 9, 10, "duplicate", 8, "other"))),
    ("I14", lambda h, f: h.claims.append(Claim("j", "dan", 5, 6, "fresh", 8))),
    ("I14", lambda h, f: h.sets.append(SetOnce("r", "3", 5, 6, True))),
    ("I15", lambda h, f: f.records["right"].pop()),
    ("I16", lambda h, f: h.unexpected.append("I16 append was answered 'busy'")),
    ("K1", lambda h, f: h.settles.append(Settle("k", 7, "x", 1, 2, "done"))),
    ("K2", lambda h, f: h.claims.append(Claim("j", "dan", 9, 10, "fresh", 3))),
]


class Witness(unittest.TestCase):
    def test_it_believes_what_can_be_true(self):
        self.assertEqual(witness.check(*seen()), [])

    def test_it_notices_every_fault(self):
        for number, (promise, plant) in enumerate(FAULTS):
            with self.subTest(number=number, promise=promise):
                history, found = seen()
                plant(history, found)
                broken = {line.split()[0] for line in witness.check(history, found)}
                self.assertIn(promise, broken)


class Soak(running.ServerTest):
    def soak(self, connections, **how):
        soak.raise_limits(connections)
        one = soak.Round(self.server, 0, seed=1, connections=connections)
        broken = asyncio.run(one.run(**how))
        print(one.told())
        return one, broken

    def test_two_thousand_clients_and_three_kills(self):
        one, broken = self.soak(2000, seconds=7, kills=2)
        self.assertEqual(broken[:10], [])
        self.assertEqual(one.most_connected, 2000)
        self.assertGreater(one.history.answers(), 2000)
        self.assertGreater(one.history.unanswered(), 0)

    def test_a_store_that_forgets_is_noticed(self):
        """Its folder is rolled back to what it was at the kill before, which starts as if sound."""
        data, older = (os.path.join(self.folder, name) for name in ("data", "older"))

        def roll_back():
            if os.path.exists(older):
                shutil.rmtree(data)
                os.rename(older, data)
            else:
                shutil.copytree(data, older)

        _, broken = self.soak(20, seconds=2, kills=1, while_down=roll_back)
        self.assertIn("I1", {line.split()[0] for line in broken})
        self.assertNotIn("I16", {line.split()[0] for line in broken})


if __name__ == "__main__":
    unittest.main(verbosity=2)
