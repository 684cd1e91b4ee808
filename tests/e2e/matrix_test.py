"""Cells of the matrix of deliveries, drawn from the commit; and its judge, tried with faults."""

import os
import random
import subprocess
import unittest

import matrix
from matrix import GUARANTEES, Found, judged
from running import arguments

HAPAX, SOURCE = arguments()


def line(order, effect=True, key=None, **more):
    return {"order": order, "key": key or "key of " + order, "body": order, "effect": effect,
            **more}


def sound():
    """What an endpoint saw of which each order had its effect at once."""
    return Found([line(order, effect, path="/in") for order, _ in matrix.orders()
                  for effect in (False, True)], {}, {})


def without(found, order):
    found.lines[:] = [one for one in found.lines if one["order"] != order]


def swapped(found, left, right):
    names = {left: right, right: left}
    for one in found.lines:
        one["order"] = names.get(one["order"], one["order"])


# What goes wrong under which guarantee after which fault, and what the judge says.
FAULTS = [
    ("lost", "idempotent-keys", "hang", lambda f: without(f, "o4")),
    ("doubled", "at-least-once", "hang", lambda f: f.lines.append(line("o4", key="another"))),
    ("sent again after", "exactly-once with a person", "hang",
     lambda f: f.lines.append(line("o4"))),
    ("sent again after", "exactly-once into a stream", "killed before a sync",
     lambda f: f.lines.append(line("o4"))),
    ("given up:", "idempotent-keys", "hang", lambda f: f.dead.update(o4="tried too often")),
    ("out of order", "at-least-once", "hang", lambda f: swapped(f, "o1", "o5")),
    ("nobody published", "at-most-once", "hang", lambda f: f.lines.append(line("o99"))),
    ("another body", "idempotent-keys", "hang", lambda f: f.lines[3].update(body="altered")),
    ("was sent to", "idempotent-keys", "redirect",
     lambda f: f.lines.append(line("o4", False, path="/elsewhere"))),
    ("sent again:", "at-most-once", "hang", lambda f: f.lines.append(line("o4", False))),
    ("its attempt is", "at-most-once", "hang", lambda f: f.claims.update(o4="completed")),
    ("given up without", "at-most-once", "5xx",
     lambda f: (without(f, "o4"), f.dead.update(o4="the endpoint is paused"))),
]


class Judge(unittest.TestCase):
    def test_it_believes_what_is_in_order(self):
        for name, terms in GUARANTEES.items():
            for fault in matrix.FAULTS:
                self.assertEqual(list(judged(sound(), terms, fault)), [], (name, fault))

    def test_an_unknown_outcome_is_in_order_where_a_person_decides(self):
        found = sound()
        found.lines[:] = [one for one in found.lines if one["order"] != "o4" or not one["effect"]]
        found.dead.update(o4="unknown outcome")
        found.claims.update(o4="unknown")
        for name, terms in GUARANTEES.items():
            said = list(judged(found, terms, "hang"))
            self.assertEqual(bool(said), terms.complete, (name, said))

    def test_it_sees_every_fault(self):
        for words, guarantee, fault, plant in FAULTS:
            with self.subTest(words=words, guarantee=guarantee):
                found = sound()
                plant(found)
                said = list(judged(found, GUARANTEES[guarantee], fault))
                self.assertTrue(any(words in one for one in said), said)


def commit():
    done = subprocess.run(["git", "-C", SOURCE, "rev-parse", "HEAD"], capture_output=True,
                          text=True, check=False)
    return done.stdout.strip() or "no commit"


def is_instrumented():
    """A sanitizer wants to be loaded before everything else, and the library of the faults, too."""
    told = subprocess.run(["ldd", HAPAX], capture_output=True, text=True, check=True).stdout
    return "libasan" in told or "libtsan" in told


def drawn(seed, ground):
    """One cell for each fault, over all sources and guarantees by turns."""
    chance = random.Random(seed)
    cells = []
    for fault in matrix.FAULTS:
        names = [name for name in matrix.names() if name.endswith("/" + fault)]
        chance.shuffle(names)
        runs = (name for name in names if not ground.why_not(matrix.Cell(name, ground)))
        cells += [name for name in [next(runs, None)] if name]
    return cells


class Sample(unittest.TestCase):
    def test_cells_drawn_from_the_commit(self):
        if is_instrumented():
            self.skipTest("the library of the faults cannot be loaded beside a sanitizer")
        ground = matrix.Ground(HAPAX)
        self.addCleanup(ground.end)
        seed = commit()
        cells = drawn(seed, ground)
        print(f"{len(cells)} of {len(matrix.names())} cells, drawn from {seed}", flush=True)
        tally = matrix.run_cells(cells, ground, jobs=4)
        print(tally.told())
        self.assertEqual([f"{cell.name}: {cell.broken}" for cell in tally.broken], [],
                         "repeat one: ./dev soak delivery --seed 0 --only NAME")


if __name__ == "__main__":
    unittest.main(verbosity=2)
