"""Thousands of clients, over HTTP and RESP, on a server that is killed again and again.

Usage: soak.py HAPAX [--minutes N] [--connections N] [--seed N]
Each client works, repeats what got no answer as real ones do, and remembers every answer;
witness.py then compares them with what a last start finds. Runs in rounds of a minute with new
names, so that memory stays bounded. Exit code 1: a promise was broken, and the folder is kept.
"""

import argparse
import asyncio
import itertools
import json
import os
import random
import resource
import shutil
import sys
import tempfile
import time
from urllib.parse import quote

import running
import witness
from witness import Ack, Append, Claim, Delivery, SetOnce, Settle

LOST = (ConnectionError, asyncio.IncompleteReadError, OSError)
LEASE_MS = 2000
STREAMS = 4
PATIENCE = 60  # Seconds for what was asked before the end to be answered.


class NotNow(Exception):
    """The server is starting or stopping: nothing happened."""


class HttpDoor:
    def __init__(self, server):
        self.address = server.host, server.port

    async def connect(self):
        self.reader, self.writer = await asyncio.open_connection(*self.address)

    async def call(self, method, path, body=None):
        data = b"" if body is None else json.dumps(body).encode()
        head = (f"{method} /api/v1{path} HTTP/1.1\r\n"
                f"Host: localhost\r\nContent-Length: {len(data)}\r\n\r\n")
        self.writer.write(head.encode() + data)
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = head.lower().split(b"content-length:", 1)[1].split(b"\r\n", 1)[0]
        answer = json.loads(await self.reader.readexactly(int(length)))
        if head.startswith(b"HTTP/1.1 503"):
            raise NotNow(answer)
        if "code" in answer:
            return {"verdict": f"{answer['code']} {answer['detail']}"}
        return answer

    async def append(self, stream, id_, payload):
        return await self.call("POST", f"/streams/{stream}/records",
                               {"id": id_, "payload": payload})

    async def append_both(self, streams, id_, payload):
        ops = [{"op": "append", "stream": stream, "id": id_, "payload": payload}
               for stream in streams]
        told = await self.call("POST", "/commit", {"ops": ops})
        return told.get("verdicts", [told, told])

    async def claim(self, scope, key, owner):
        return await self.call("POST", f"/claims/{scope}/{key}",
                               {"owner": owner, "lease_ms": LEASE_MS})

    async def settle(self, scope, key, fence, body):
        return await self.call("POST", f"/claims/{scope}/{key}/settle",
                               {"fence": fence, "body": body})

    async def set_once(self, name, value):
        told = await self.call("PUT", "/registers/" + quote(name, safe=""),
                               {"value": value, "mode": "absent"})
        return told.get("applied", told)


class RespDoor:
    def __init__(self, server):
        self.address = server.resp[0], server.resp_port

    async def connect(self):
        self.reader, self.writer = await asyncio.open_connection(*self.address)

    def send(self, *words):
        parts = [str(word).encode() for word in words]
        self.writer.write(b"*%d\r\n" % len(parts) + b"".join(
            b"$%d\r\n%s\r\n" % (len(part), part) for part in parts))

    async def reply(self):
        line = await self.reader.readuntil(b"\r\n")
        kind, rest = line[:1], line[1:-2]
        if kind == b"*":
            return None if rest == b"-1" else [await self.reply() for _ in range(int(rest))]
        if kind == b"$":
            if rest == b"-1":
                return None
            return (await self.reader.readexactly(int(rest) + 2))[:-2].decode()
        if kind == b":":
            return int(rest)
        if kind == b"-":
            if rest.startswith((b"LOADING", b"ERR HX1010", b"ERR HX1009")):
                raise NotNow(rest)
            return {"verdict": rest.decode()}
        return rest.decode()

    async def ask(self, *words):
        self.send(*words)
        return await self.reply()

    async def told(self, *words):
        return fields(await self.ask(*words))

    async def append(self, stream, id_, payload):
        return await self.told("HX.APPEND", stream, payload, "ID", id_)

    async def append_both(self, streams, id_, payload):
        self.send("MULTI")
        for stream in streams:
            self.send("HX.APPEND", stream, payload, "ID", id_)
        self.send("EXEC")
        replies = [await self.reply() for _ in range(len(streams) + 2)]
        done = replies[-1]
        return [fields(one) for one in done] if isinstance(done, list) else [done, done]

    async def claim(self, scope, key, owner):
        return await self.told("HX.CLAIM", scope, key, "OWNER", owner, "LEASE_MS", LEASE_MS)

    async def settle(self, scope, key, fence, body):
        return await self.told("HX.SETTLE", scope, key, fence, "BODY", body)

    async def set_once(self, name, value):
        told = await self.ask("SET", name, value, "NX")
        return told == "OK" if told in ("OK", None) else told


def fields(reply):
    return reply if isinstance(reply, dict) else dict(zip(reply[::2], reply[1::2]))


class Names:
    """What the clients of a round work on: half of the time something new, else recent."""

    def __init__(self, round_, chance):
        self.chance = chance
        self.scope = f"scope-{round_}"
        self.streams = [f"orders-{round_}-{number}" for number in range(STREAMS)]
        self.pair = (f"left-{round_}", f"right-{round_}")
        self.prefix = f"once-{round_}"
        self.counters = {kind: itertools.count() for kind in ("id", "key", "name", "both")}
        self.last = dict.fromkeys(self.counters, 0)

    def pick(self, kind):
        if self.chance.random() < 0.5:
            self.last[kind] = next(self.counters[kind])
            return f"{kind}-{self.last[kind]}"
        return f"{kind}-{max(0, self.last[kind] - self.chance.randrange(100))}"


class Worker:
    """One connection. Remembers in the history what it asked and was told."""

    def __init__(self, round_, number):
        self.round, self.name = round_, f"w-{number}"
        self.names, self.history, self.chance = round_.names, round_.history, round_.chance
        self.is_http = number % 2 == 0
        self.door = (HttpDoor if self.is_http else RespDoor)(round_.server)
        acts = [(self.append, 55), (self.append_both, 10), (self.work, 20), (self.set_once, 15)]
        if self.is_http:
            acts.append((self.consume, 2))
        self.acts, self.weights = zip(*acts)

    async def run(self):
        connected = False
        while not self.round.over:
            try:
                if not connected:
                    await self.door.connect()
                    self.round.count(+1)
                    connected = True
                await self.chance.choices(self.acts, self.weights)[0]()
            except NotNow:
                await asyncio.sleep(0.05)
            except LOST:
                if connected:
                    self.door.writer.close()
                    self.round.count(-1)
                connected = False
                await asyncio.sleep(self.chance.uniform(0.02, 0.2))
        if connected:
            self.door.writer.close()

    async def until_answered(self, asks):
        """Repeats it, also over new connections, as who wants an effect must."""
        for _ in range(50):
            try:
                return await asks()
            except NotNow:
                await asyncio.sleep(0.05)
            except LOST:
                if self.round.over:
                    raise
                await asyncio.sleep(self.chance.uniform(0.02, 0.2))
                await self.reconnect()
        return None

    async def reconnect(self):
        try:
            self.door.writer.close()
            await self.door.connect()
        except LOST:
            pass  # The next try finds out.

    def expect(self, what, told, *known):
        if told not in known:
            self.history.unexpected.append(f"I16 {what} was answered {str(told)[:200]}")

    async def answer(self, kept, ones, asks):
        """The answer; without one they are kept all the same, for they may have happened."""
        try:
            return await asks
        except BaseException:
            kept += ones
            raise

    async def append(self):
        stream, id_ = self.chance.choice(self.names.streams), self.names.pick("id")
        payload = ("other-" if self.chance.random() < 0.03 else "of-") + id_

        async def once():
            one = Append(stream, id_, payload, time.monotonic())
            told = await self.answer(self.history.appends, [one],
                                     self.door.append(stream, id_, payload))
            self.keep(one, told, "fresh", "duplicate", "conflict")

        await self.until_answered(once)

    async def append_both(self):
        id_ = self.names.pick("both")

        async def once():
            asked = time.monotonic()
            ones = [Append(stream, id_, "both", asked) for stream in self.names.pair]
            verdicts = await self.answer(self.history.appends, ones,
                                         self.door.append_both(self.names.pair, id_, "both"))
            for one, told in zip(ones, verdicts):
                self.keep(one, told, "fresh", "duplicate")

        await self.until_answered(once)

    def keep(self, one, told, *known):
        self.expect("append", told["verdict"], *known)
        self.history.appends.append(one._replace(
            answered=time.monotonic(), verdict=told["verdict"], sequence=told.get("sequence", 0)))

    async def work(self):
        """Claims a key and, if it was given, settles it."""
        key = self.names.pick("key")
        one = Claim(key, self.name, time.monotonic())
        told = await self.answer(self.history.claims, [one],
                                 self.door.claim(self.names.scope, key, self.name))
        self.expect("claim", told["verdict"], "fresh", "duplicate", "in_progress")
        self.history.claims.append(one._replace(
            answered=time.monotonic(), verdict=told["verdict"], fence=told.get("fence", 0),
            body=told.get("body", "")))
        if told["verdict"] == "fresh":
            await self.settle(key, told["fence"])

    async def settle(self, key, fence):
        body = f"{self.name} under {fence}"

        async def once():
            one = Settle(key, fence, body, time.monotonic())
            told = await self.answer(self.history.settles, [one],
                                     self.door.settle(self.names.scope, key, fence, body))
            self.expect("settle", told["verdict"], "done", "fenced")
            self.history.settles.append(one._replace(answered=time.monotonic(),
                                                     verdict=told["verdict"]))

        await self.until_answered(once)

    async def set_once(self):
        name = f"{self.names.prefix}-{self.names.pick('name')}"
        one = SetOnce(name, f"{self.name} {self.chance.random()}", time.monotonic())
        won = await self.answer(self.history.sets, [one], self.door.set_once(name, one.value))
        self.expect("set", won, True, False)
        self.history.sets.append(one._replace(answered=time.monotonic(), won=won is True))

    async def consume(self):
        stream = self.names.streams[0]
        path = f"/streams/{stream}/consumers/c"
        asked = time.monotonic()
        told = await self.door.call("POST", path + "/receive",
                                    {"max": 20, "owner": self.name, "lease_ms": LEASE_MS})
        self.expect("receive", told["verdict"], "records")
        for record in told.get("records", ()):
            self.history.deliveries.append(Delivery(stream, record["sequence"], record["id"],
                                                    record["payload"], asked))
        for record in told.get("records", ()):
            acked = await self.door.call("POST", path + "/ack", {"receipt": record["receipt"]})
            self.expect("ack", acked["verdict"], "done", "stale")
            if acked["verdict"] == "done":
                self.history.acks.append(Ack(stream, record["sequence"], time.monotonic()))


class Round:
    """Some seconds of load with kills, and what was found after them."""

    def __init__(self, server, number, seed, connections):
        self.server, self.connections = server, connections
        self.chance = random.Random(seed)
        self.names = Names(number, self.chance)
        self.history = witness.History()
        self.over = False
        self.connected = self.most_connected = 0
        self.all_connected = asyncio.Event()

    def count(self, change):
        self.connected += change
        self.most_connected = max(self.most_connected, self.connected)
        if self.connected == self.connections:
            self.all_connected.set()

    async def run(self, seconds, kills, while_down=lambda: None):
        for stream in (*self.names.streams, *self.names.pair):
            self.server.call("PUT", "/streams/" + stream)
        workers = [asyncio.create_task(Worker(self, number).run())
                   for number in range(self.connections)]
        await asyncio.wait_for(self.all_connected.wait(), PATIENCE)
        for _ in range(kills):
            await asyncio.sleep(seconds / (kills + 1))
            await asyncio.to_thread(self.server.restart, while_down)
        await asyncio.sleep(seconds / (kills + 1))
        self.over = True
        _, stuck = await asyncio.wait(workers, timeout=PATIENCE)
        for task in workers:
            if task in stuck:
                task.cancel()
            elif task.exception():
                raise task.exception()
        if stuck:
            self.history.unexpected.append(f"I16 {len(stuck)} clients were never answered")
        await asyncio.to_thread(self.server.restart, while_down)
        return witness.check(self.history, await self.look())

    async def look(self):
        found = witness.Found()
        found.pairs = [self.names.pair]
        for stream in (*self.names.streams, *self.names.pair):
            found.records[stream] = self.records_of(stream)
        keys = iter({one.key for one in self.history.claims})
        names = iter({one.name for one in self.history.sets})
        await asyncio.gather(*(self.look_at(found, keys, names) for _ in range(32)))
        return found

    def records_of(self, stream):
        records = []
        while True:
            path = f"/streams/{stream}/records?from={len(records) + 1}&max=1000"
            answer = self.server.call("GET", path)
            if answer.status == 404:
                return records
            page = answer.json["records"]
            records += [(one["sequence"], one["id"], one["payload"]) for one in page]
            if not page:
                return records

    async def look_at(self, found, keys, names):
        http_door, resp_door = HttpDoor(self.server), RespDoor(self.server)
        await http_door.connect()
        await resp_door.connect()
        for key in keys:
            told = await http_door.call("GET", f"/claims/{self.names.scope}/{key}")
            if "state" in told:
                found.claims[key] = told["state"], told["fence"], told.get("body", "")
        for name in names:
            found.registers[name] = await resp_door.ask("GET", name)
        http_door.writer.close()
        resp_door.writer.close()

    def told(self):
        return (f"{self.history.answers()} answers, {self.history.unanswered()} without one, "
                f"{self.most_connected} connections at once")


def raise_limits(connections):
    """Of open files, for us and for the server, which inherits it."""
    wanted = 2 * connections + 500
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard), hard))
    if hard < wanted:
        raise SystemExit(f"soak: {wanted} open files are needed, {hard} are allowed (ulimit -n)")


def main():
    parser = argparse.ArgumentParser(prog="soak", description="Kills a server under load.")
    parser.add_argument("hapax")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--connections", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    raise_limits(options.connections)
    folder = tempfile.mkdtemp(prefix="hapax-soak-")
    print(f"seed {options.seed}, {options.connections} connections, data in {folder}", flush=True)
    server = running.Server(os.path.abspath(options.hapax), folder)
    until = time.monotonic() + options.minutes * 60
    for number in itertools.count():
        seconds = min(60, until - time.monotonic())
        if seconds < 5:
            break
        one = Round(server, number, options.seed + number, options.connections)
        broken = asyncio.run(one.run(seconds, kills=max(1, int(seconds / 6))))
        print(f"round {number}: {one.told()}: {len(broken)} promises broken", flush=True)
        if broken:
            print("\n".join(broken[:20]))
            server.end()
            return 1
    server.end()
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
