"""Every source under every guarantee and every fault, judged by the journal of the endpoint.

Usage: matrix.py HAPAX [--only PATTERN] [--seed N] [--jobs N] [--list]
A cell is SOURCE/GUARANTEE/FAULT. It publishes some records, lets the fault happen, and waits until
each record had its effect or is a dead letter. PATTERN is a shell pattern of such names; a failing
cell is repeated by its name. Exit code 1: a promise was broken.
"""

import argparse
import concurrent.futures
import contextlib
import fnmatch
import json
import os
import random
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import threading
import time
from typing import NamedTuple

import matrix_receiver
import postgres_points
from postgres import Cluster
from running import Server

RECORDS, GROUPS = 18, 4
PATIENCE = 120  # Seconds for all records of a cell to be settled.
DAY = 86400
SOURCES = ("stream", "http", "postgres", "sqlite")


class Guarantee(NamedTuple):
    """What is declared, and what the journal must then show."""

    delivery: str
    endpoint: str = ""
    more: str = ""
    complete: bool = True  # no record is given up
    once: bool = False  # no effect twice, also at an endpoint that does not know keys


PROBE = ", nature: probe, statusUrl: '{base}/of/{{key}}'"
GUARANTEES = {
    "at-most-once": Guarantee("at-most-once", complete=False, once=True),
    "at-least-once": Guarantee("at-least-once"),
    "idempotent-keys": Guarantee("idempotent-keys"),
    "exactly-once to an idempotent endpoint": Guarantee("exactly-once", ", nature: idempotent"),
    "exactly-once to one that is asked": Guarantee("exactly-once", PROBE, once=True),
    "exactly-once with a person": Guarantee("exactly-once", complete=False, once=True),
    "exactly-once into a stream": Guarantee("exactly-once", once=True),
    "in two steps": Guarantee("idempotent-keys", more="    transform: {jq: '{order}'}\n"),
}
INTO_A_STREAM = "exactly-once into a stream"

AT_REQUESTS = {"killed at a request": "request", "killed at an effect": "effect",
               "killed after an answer": "answer"}
AT_SYNCS = {"killed before a sync": 0, "killed after a sync": 1}
STATEMENTS = {"lease": r"relay_lease", "take": r"relay_take", "settle": r"relay_settle"}
AT_STATEMENTS = {f"killed {when} a {name}": (when, pattern) for name, pattern in STATEMENTS.items()
                 for when in ("before", "after")}
CLOCKS = {"clock a day ahead": DAY, "clock a day back": -DAY}
OTHERS = ("ended by SIGTERM", "stopped for 12 s")
RESTART = "PostgreSQL restarted"
ENDPOINT = (*matrix_receiver.ANSWERS, *matrix_receiver.CONNECTIONS)
FAULTS = (*ENDPOINT, *AT_REQUESTS, *AT_SYNCS, *AT_STATEMENTS, *CLOCKS, *OTHERS, RESTART)
# After one of these, a record that the fault did not meet is no dead letter either. The others end
# connections, or last so long that a loaded machine fails innocent requests, too.
SELECTIVE = ("4xx", "5xx", "redirect", "garbage", "reset in", "1xx")


def exists(source, guarantee, fault):
    if fault in AT_SYNCS and source == "postgres":
        return guarantee not in ("at-least-once", "idempotent-keys")  # They store nothing here.
    if fault in (*AT_STATEMENTS, RESTART):
        return source == "postgres"
    if guarantee == INTO_A_STREAM:
        return fault in (*AT_SYNCS, *CLOCKS, "ended by SIGTERM")
    return True


def names():
    return [f"{source}/{guarantee}/{fault}" for source in SOURCES for guarantee in GUARANTEES
            for fault in FAULTS if exists(source, guarantee, fault)]


def orders():
    """Each order with its group; every third has none."""
    return [(f"o{n}", f"g{n % GROUPS}" if n % 3 else "") for n in range(RECORDS)]


class Ground:
    """What cells share: a cluster, a certificate, the library of the faults."""

    def __init__(self, hapax):
        self.hapax, self.lock, self.cluster, self.runs = hapax, threading.Lock(), None, {}
        self.folder = tempfile.mkdtemp(prefix="hapax-matrix-")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                        "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem",
                        "-out", "cert.pem"],
                       cwd=self.folder, check=True, capture_output=True, timeout=60)
        self.shim = os.path.join(self.folder, "shim.so")
        subprocess.run(["c++", "-std=c++20", "-O1", "-shared", "-fPIC", "-o", self.shim,
                        os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                     "matrix_shim.cc")], check=True, timeout=120)

    def shared_cluster(self):
        with self.lock:
            if self.cluster is None:
                self.cluster = Cluster()
            return self.cluster

    def why_not(self, cell):
        """Why the workflow does not run in this version; None if it does. Asked once of each."""
        asked = (cell.source, cell.guarantee)
        with self.lock:
            if asked not in self.runs:
                path = os.path.join(self.folder, "check.yaml")
                with open(path, "w", encoding="utf-8") as file:
                    file.write(cell.config("http://127.0.0.1:1"))
                done = subprocess.run([self.hapax, "check", path], capture_output=True, text=True,
                                      timeout=60, env={**os.environ, "SHOP": "postgres:///shop"})
                said = done.stdout + done.stderr
                self.runs[asked] = said.strip() if "does not run" in said else None
            return self.runs[asked]

    def end(self):
        if self.cluster:
            self.cluster.end()
        shutil.rmtree(self.folder, ignore_errors=True)


class Control:
    """The file that the library of the faults reads in the server."""

    def __init__(self, path):
        self.path = path
        self.write()

    def write(self, ahead_s=0, syncs=0, after=0):
        with open(self.path, "r+b" if os.path.exists(self.path) else "wb") as file:
            file.write(struct.pack("<qqq", ahead_s, syncs, after))


class Cell:
    def __init__(self, name, ground, seed=0):
        self.name, self.ground = name, ground
        self.source, self.guarantee, self.fault = name.split("/")
        self.terms = GUARANTEES[self.guarantee]
        self.chance = random.Random(f"{name} {seed}")
        self.broken, self.struck, self.restarts = [], threading.Event(), 0
        self.strike_at = 0  # at none
        self.dead, self.claims = {}, {}

    # --- what is declared

    def is_outbox(self):
        return self.source in ("postgres", "sqlite")

    def config(self, base):
        source = {"stream": "{type: stream, stream: orders}", "http": "{type: http}"}.get(
            self.source, '{type: outbox, database: "${env:SHOP}"}')
        # A fault that is noticed by waiting only must not take long, and others must not be
        # noticed on a loaded machine where there is none.
        waits = self.fault in ("hang", "drip") or "nature: probe" in self.terms.endpoint
        request = "3s" if waits else "20s"
        connect = "1s" if self.fault == "slow TLS" else "5s"
        tls = f", tls: {{caFile: {self.ground.folder}/cert.pem}}" if "https" in base else ""
        endpoint = (f'{{url: "{base}/in", timeouts: {{connect: {connect}, request: {request}}}'
                    f'{self.terms.endpoint.format(base=base)}{tls}}}')
        if self.guarantee == INTO_A_STREAM:
            endpoint = "{stream: archive}"
        once = self.terms.delivery == "at-most-once"
        retries = "" if once else (
            ", retries: {maxAttempts: 100, backoffMs: [20, 100], giveUpAfter: 1h}")
        return ("streams: [{stream: orders}, {stream: archive}]\nworkflows:\n  - id: erp\n"
                f"    source: {source}\n    endpoint: {endpoint}\n{self.terms.more}"
                f"    delivery: {{guarantee: {self.terms.delivery}{retries}}}\n")

    # --- what happens

    def run(self):
        self.folder = tempfile.mkdtemp(prefix="cell-", dir=self.ground.folder)
        self.control = Control(os.path.join(self.folder, "control"))
        tls = None
        if self.fault == "slow TLS":
            tls = [os.path.join(self.ground.folder, name) for name in ("cert.pem", "key.pem")]
        # A jump of the clock meets records that have failed before.
        fault = "5xx" if self.fault in CLOCKS else self.fault
        self.receiver = matrix_receiver.Receiver(self.folder, fault, tls, self.came)
        with contextlib.ExitStack() as stack:
            stack.callback(self.receiver.close)
            database = self.prepare_database(stack)
            environment = {"SHOP": database, "LD_PRELOAD": self.ground.shim,
                           "FAULT_CONTROL": self.control.path}
            self.server = Server(self.ground.hapax, self.folder,
                                 config=self.config(self.receiver.base), environment=environment)
            stack.callback(self.server.end)
            self.arm()
            self.publish()
            self.await_all()
            self.await_settled()
            self.look()
            self.control.write()
            if self.server.stop() != 0:
                self.broken.append("serve did not end in order: " + self.server.text()[-500:])
        self.judge()
        return self

    def prepare_database(self, stack):
        if self.source == "sqlite":
            self.outbox = "sqlite:" + os.path.join(self.folder, "app.db")
            self.hapax("migrate", self.outbox)
            return self.outbox
        if self.source != "postgres":
            return ""
        if self.fault == RESTART:
            self.cluster = Cluster()
            stack.callback(self.cluster.end)
        else:
            self.cluster = self.ground.shared_cluster()
        self.database = os.path.basename(self.folder).replace("-", "_").lower()
        self.cluster.psql(f"CREATE DATABASE {self.database}", "postgres")
        self.outbox = self.cluster.uri(self.database)
        self.hapax("migrate", self.outbox)
        if self.fault not in AT_STATEMENTS:
            return self.outbox
        os.makedirs(os.path.join(self.folder, "pg"))
        self.between = postgres_points.Between(os.path.join(self.folder, "pg"),
                                               self.cluster.folder)
        stack.callback(self.between.end)
        return self.between.uri(self.database)

    def hapax(self, *words):
        done = subprocess.run([self.ground.hapax, *words], capture_output=True, text=True,
                              timeout=60, check=False)
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        return done.stdout

    def arm(self):
        """What does not wait for a request to come."""
        if self.fault in AT_SYNCS:
            most = 2 if self.source == "sqlite" else 8
            self.control.write(syncs=self.chance.randint(1, most), after=AT_SYNCS[self.fault])
        elif self.fault in AT_STATEMENTS:
            when, pattern = AT_STATEMENTS[self.fault]
            matches, left = postgres_points.sql_like(pattern), [self.chance.randint(1, 3)]

            def is_it(statement):
                left[0] -= matches(statement)
                return left[0] == 0
            self.between.watch(postgres_points.Point(self.fault, is_it, when), self.kill)
            if "lease" in pattern:  # Leases are renewed every few seconds.
                self.receiver.held_back = self.struck
                left[0] = 1
        elif self.guarantee == INTO_A_STREAM:
            self.strike_at = self.chance.randint(1, RECORDS)  # Of what was published.
        else:
            self.strike_at = self.chance.randint(2, RECORDS // 2)

    def came(self, point, count):
        """A request is at a point, on the thread of its connection."""
        wanted = AT_REQUESTS.get(self.fault, "effect")
        if self.guarantee == INTO_A_STREAM or point != wanted or self.strike_at == 0:
            return
        with self.receiver.lock:
            if count < self.strike_at:
                return
            self.strike_at = 0
        self.strike()

    def strike(self):
        if self.fault in AT_REQUESTS:
            self.kill()
        elif self.fault in CLOCKS:
            self.control.write(ahead_s=CLOCKS[self.fault])
        elif self.fault == "stopped for 12 s":
            self.server.process.send_signal(signal.SIGSTOP)
            threading.Timer(12, self.server.process.send_signal, (signal.SIGCONT,)).start()
        self.struck.set()  # For the rest, see act_if_struck().

    def kill(self):
        self.server.process.kill()
        self.server.process.wait()
        self.struck.set()

    def act_if_struck(self):
        """What takes its time, on the thread of the cell."""
        if not self.struck.is_set() or self.restarts:
            return
        if self.fault == "ended by SIGTERM":
            self.restarts += 1
            if self.server.stop() != 0:
                self.broken.append("serve did not end in order")
            self.again()
        elif self.fault == RESTART:
            self.restarts += 1
            self.cluster.stop()
            self.cluster.start()

    def revive(self):
        """If the server has ended, it was the fault, and another one begins."""
        code = self.server.process.poll()
        if code is None:
            return
        if code != -signal.SIGKILL or self.restarts:
            raise AssertionError(f"serve ended with {code}: {self.server.text()[-1000:]}")
        self.restarts += 1
        self.control.write()
        self.again()

    def again(self):
        self.server.process.stdout.close()
        self.server.start(f"{self.server.host}:{self.server.port}", ":".join(self.server.resp))

    def publish(self):
        if self.fault == "away":
            threading.Timer(1.5, self.receiver.listen).start()
        if self.source == "sqlite":
            with contextlib.closing(sqlite3.connect(self.outbox[7:], timeout=60)) as app, app:
                app.executemany(
                    "INSERT INTO hapax_outbox (id, type, key, payload) VALUES (?, 't', ?, ?)",
                    [(order, group or None, payload_of(order)) for order, group in orders()])
        elif self.source == "postgres":
            self.cluster.psql("".join(
                f"SELECT hapax.publish('t', '{payload_of(order)}', "
                f"{repr(group) if group else 'NULL'}, '{order}');\n"
                for order, group in orders()), self.database)
        else:
            for order, group in orders():
                self.post(order, group)
        if self.guarantee == INTO_A_STREAM and self.is_outbox():
            self.strike()

    def post(self, order, group):
        field = "group" if self.source == "stream" else "key"
        path = "/streams/orders/records" if self.source == "stream" else "/workflows/erp/events"
        body = {"id": order, "payload": payload_of(order), **({field: group} if group else {})}
        if self.guarantee == INTO_A_STREAM and self.strike_at == int(order[1:]) + 1:
            self.strike()

        def posted():
            self.revive()
            self.act_if_struck()
            with contextlib.suppress(OSError):
                answer = self.server.call("POST", path, body)
                if answer.status not in (200, 201, 503):
                    raise AssertionError(f"{order}: {answer.status} {answer.body}")
                return answer.status != 503
            return False
        self.wait(posted, f"{order} to be taken")

    def wait(self, holds, what):
        until = time.monotonic() + PATIENCE
        while not holds():
            if time.monotonic() > until:
                raise AssertionError(f"waited in vain for {what}")
            self.receiver.closing.wait(0.05)

    # --- what became of the records

    def arrived(self):
        if self.guarantee != INTO_A_STREAM:
            return set(self.receiver.effects)
        return set(self.archived())

    def archived(self):
        page = self.server.call("GET", "/streams/archive/records?from=1&max=1000").json
        return [json.loads(record["payload"])["order"] for record in page["records"]]

    def dead_letters(self):
        """By order, with the reason."""
        told = self.server.call("GET", "/streams/erp.dead/records?from=1&max=1000")
        dead = {}
        if told.status == 200:
            dead = {json.loads(record["payload"])["order"]: record["lineage"]["reason"]
                    for record in told.json["records"]}
        if self.is_outbox():
            listed = self.hapax("relay", "--from", self.outbox, "--dead-letters", "--json")
            dead.update({one["id"]: one["reason"] for one in map(json.loads, listed.splitlines())})
        return dead

    def await_all(self):
        """An effect or a dead letter for each."""
        missing = {order for order, _ in orders()}

        def complete():
            self.revive()
            self.act_if_struck()
            nonlocal missing
            with contextlib.suppress(OSError):
                missing -= self.arrived()
                if missing:
                    missing -= set(self.dead_letters())
            return not missing
        with contextlib.suppress(AssertionError):
            self.wait(complete, "all")
        if missing:
            self.broken.append(f"lost: {sorted(missing)} after {PATIENCE} s; the log ends: "
                               + self.server.text()[-1500:])

    def await_settled(self):
        def settled():
            self.revive()
            self.act_if_struck()
            with contextlib.suppress(OSError):
                return all(self.drained(stream) for stream in (
                    "orders", "erp.events", "erp.rows", "erp.outbox")) and (
                    not self.is_outbox() or self.outbox_is_empty())
            return False
        if not self.broken:
            self.wait(settled, "everything to be settled; the log ends: "
                      + self.server.text()[-1500:])

    def drained(self, stream):
        answer = self.server.call("GET", "/streams/" + stream)
        if answer.status != 200:
            return answer.status == 404
        return all(one["floor"] == answer.json["last"] for one in answer.json["consumers"])

    def outbox_is_empty(self):
        told = json.loads(self.hapax("relay", "--from", self.outbox, "--status", "--json"))
        return told["waiting"] == 0 and told["retries"] == 0

    def look(self):
        self.dead = self.dead_letters()
        self.copies = self.archived() if self.guarantee == INTO_A_STREAM else []
        keys = {line["order"]: line["key"] for line in self.receiver.journal.lines()}
        for order in set(self.dead) & set(keys):
            claim = self.server.call("GET", f"/claims/erp.deliveries/{keys[order]}")
            self.claims[order] = claim.json.get("state", "none")

    # --- the judge

    def judge(self):
        lines = self.receiver.journal.lines()
        self.broken += self.receiver.errors
        if self.guarantee == INTO_A_STREAM:
            lines = [{"order": order, "key": order, "body": "", "effect": True}
                     for order in self.copies]
        self.found = Found(lines, self.dead, self.claims)
        self.broken += judged(self.found, self.terms, self.fault)
        return self


def payload_of(order):
    return json.dumps({"order": order})


class Found(NamedTuple):
    """Lines of the journal, dead letters by order with the reason, and the state of the claim of
    those that were sent."""

    lines: list
    dead: dict
    claims: dict

    def effects(self):
        return [line for line in self.lines if line["effect"]]

    def lost(self):
        there = {line["order"] for line in self.effects()} | set(self.dead)
        return [order for order, _ in orders() if order not in there]

    def doubled(self):
        """Of an endpoint that takes each key once."""
        keys = {(line["order"], line["key"]) for line in self.effects()}
        return sorted(order for order, _ in orders() if sum(one == order for one, _ in keys) > 1)

    def repeated(self):
        """Of one that does not know keys."""
        told = [line["order"] for line in self.effects()]
        return sorted(order for order, _ in orders() if told.count(order) > 1)


def judged(found, terms, fault):
    """The promises that were broken, each as a line."""
    if lost := found.lost():
        yield f"lost: {lost}"
    if doubled := found.doubled():
        yield f"doubled at an endpoint that knows keys: {doubled}"
    if terms.once and (repeated := found.repeated()):
        yield f"sent again after its effect: {repeated}"
    if terms.complete and found.dead:
        yield f"given up: {found.dead}"
    known = dict(orders())
    firsts = list(dict.fromkeys(line["order"] for line in found.effects()))
    for group in sorted(set(known.values()) - {""}):
        mine = [order for order in firsts if known.get(order) == group]
        if mine != sorted(mine, key=lambda order: int(order[1:])):
            yield f"out of order in {group}: {mine}"
    if strangers := set(firsts) - set(known):
        yield f"nobody published {strangers}"
    bodies = {}
    for line in found.lines:
        if bodies.setdefault(line["key"], line["body"]) != line["body"]:
            yield f"another body under the key of {line['order']}"
        if line.get("path", "/in") != "/in":
            yield f"{line['order']} was sent to {line['path']}"
    if terms.delivery == "at-most-once":
        requests = [line["order"] for line in found.lines if not line["effect"]]
        if again := sorted({order for order in requests if requests.count(order) > 1}):
            yield f"sent again: {again}"
    if not terms.complete:
        for order, state in found.claims.items():
            if state not in ("unknown", "failed"):
                yield f"{order} is a dead letter, and its attempt is {state}"
    if fault in SELECTIVE and not terms.complete:
        met = {order for order in found.dead if not any(
            line["order"] == order for line in found.lines)}
        if met:
            yield f"given up without a request: {sorted(met)}"


def run_cell(name, ground, seed):
    cell = Cell(name, ground, seed)
    if ground.why_not(cell):
        return cell, None
    began = time.monotonic()
    try:
        cell.run()
    except Exception as error:  # A cell that breaks is a finding; the others go on.
        cell.broken.append(f"{type(error).__name__}: {error}")
        cell.found = Found([], {}, {})
    return cell, time.monotonic() - began


class Tally:
    """Counts by source and guarantee."""

    HEAD = ("source", "guarantee", "cells", "records", "lost", "doubled", "repeated",
            "dead letters", "broken")

    def __init__(self):
        self.rows, self.not_run, self.broken = {}, {}, []

    def add(self, cell):
        row = self.rows.setdefault((cell.source, cell.guarantee), [0] * 7)
        found = cell.found
        for place, more in enumerate((1, RECORDS, len(found.lost()), len(found.doubled()),
                                      len(found.repeated()), len(found.dead),
                                      bool(cell.broken))):
            row[place] += more
        if cell.broken:
            self.broken.append(cell)

    def told(self):
        lines = ["| " + " | ".join(self.HEAD) + " |", "|" + "---|" * len(self.HEAD)]
        for source in SOURCES:
            for guarantee in GUARANTEES:
                row = self.rows.get((source, guarantee))
                if row:
                    lines.append("| " + " | ".join(map(str, (source, guarantee, *row))) + " |")
        return "\n".join(lines)


def run_cells(wanted, ground, seed=0, jobs=4, say=print):
    tally = Tally()
    with concurrent.futures.ThreadPoolExecutor(jobs) as threads:
        started = [threads.submit(run_cell, name, ground, seed) for name in wanted]
        for done in concurrent.futures.as_completed(started):
            cell, took = done.result()
            if took is None:
                tally.not_run[(cell.source, cell.guarantee)] = True
                continue
            tally.add(cell)
            reached = "" if cell.fault in ENDPOINT or cell.struck.is_set() or cell.restarts \
                else ", the point was not reached"
            say(f"{'BROKEN' if cell.broken else 'ok'} {took:5.1f} s  {cell.name}{reached}")
            for line in cell.broken:
                say("    " + line.replace("\n", "\n    "))
    return tally


def main():
    parser = argparse.ArgumentParser(prog="matrix", description="Every fault of a delivery.")
    parser.add_argument("hapax")
    parser.add_argument("--only", default="*")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--jobs", type=int, default=2 * (os.cpu_count() or 1))
    parser.add_argument("--list", action="store_true", help="the names of the cells, nothing else")
    options = parser.parse_args()
    wanted = fnmatch.filter(names(), options.only)
    if options.list:
        print("\n".join(wanted))
        return 0
    print(f"seed {options.seed}, {len(wanted)} cells", flush=True)
    ground = Ground(os.path.abspath(options.hapax))
    try:
        tally = run_cells(wanted, ground, options.seed, options.jobs,
                          lambda line: print(line, flush=True))
    finally:
        ground.end()
    print(tally.told())
    for source, guarantee in tally.not_run:
        print(f"not run by this version: {source}, {guarantee}")
    for cell in tally.broken:
        print(f"repeat: ./dev soak delivery --seed {options.seed} --only '{cell.name}'")
    return 1 if tally.broken else 0


if __name__ == "__main__":
    sys.exit(main())
