"""What clients of a server saw, and whether it can be true.

The witness shares nothing with the server: it knows what was asked, when, and what was answered,
and compares that with what is found afterwards. `check` names every promise that was broken; the
numbers are those of docs/internals/invariants.md. Times are of one steady clock; `answered` is None
if no answer came, which says nothing about whether it happened.
"""

from collections import defaultdict
from typing import NamedTuple, Optional


class Append(NamedTuple):
    stream: str
    id: str
    payload: str
    asked: float
    answered: Optional[float] = None
    verdict: str = ""
    sequence: int = 0


class Claim(NamedTuple):
    key: str
    worker: str
    asked: float
    answered: Optional[float] = None
    verdict: str = ""
    fence: int = 0
    body: str = ""


class Settle(NamedTuple):
    key: str
    fence: int
    body: str
    asked: float
    answered: Optional[float] = None
    verdict: str = ""


class SetOnce(NamedTuple):
    """A register that is set only if it is absent."""

    name: str
    value: str
    asked: float
    answered: Optional[float] = None
    won: bool = False


class Delivery(NamedTuple):
    stream: str
    sequence: int
    id: str
    payload: str
    asked: float


class Ack(NamedTuple):
    stream: str
    sequence: int
    answered: float


class History:
    def __init__(self):
        self.appends, self.claims, self.settles = [], [], []
        self.sets, self.deliveries, self.acks = [], [], []
        self.unexpected = []  # answers that nobody should get

    def answers(self):
        told = (self.appends, self.claims, self.settles, self.sets)
        return sum(one.answered is not None for kind in told for one in kind)

    def unanswered(self):
        told = (self.appends, self.claims, self.settles, self.sets)
        return sum(one.answered is None for kind in told for one in kind)


class Found:
    """What is there in the end."""

    def __init__(self):
        self.records = {}  # stream: [(sequence, id, payload)]
        self.claims = {}  # key: (state, fence, body)
        self.registers = {}  # name: value or None
        self.pairs = []  # two streams that get their records together


def check(history, found):
    """The promises that were broken, each as a line."""
    return [*history.unexpected, *check_streams(history, found), *check_pairs(found),
            *check_claims(history, found), *check_registers(history, found),
            *check_consumers(history, found)]


def grouped(items, key):
    groups = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return groups


def not_growing(items):
    """Of (asked, answered, number): those not above all that were told before they asked."""
    done = sorted((answered, number) for _, answered, number in items)
    floor, next_done = 0, 0
    for asked, _, number in sorted(items):
        while next_done < len(done) and done[next_done][0] < asked:
            floor = max(floor, done[next_done][1])
            next_done += 1
        if number <= floor:
            yield number, floor


def check_streams(history, found):
    asked = grouped(history.appends, lambda one: one.stream)
    for stream, records in found.records.items():
        stored = {}
        for position, (sequence, id_, payload) in enumerate(records, 1):
            if sequence != position:
                yield f"I5 {stream}: place {position} has the sequence {sequence}"
            if id_ in stored:
                yield f"I2 {stream}: {id_} is stored twice, at {stored[id_][0]} and {sequence}"
            stored[id_] = (sequence, payload)
        known = {(one.id, one.payload) for one in asked[stream]}
        for id_, (sequence, payload) in stored.items():
            if (id_, payload) not in known:
                yield f"I7 {stream}: nobody sent {id_} with {payload!r}, found at {sequence}"
        told = [one for one in asked[stream] if one.answered is not None]
        yield from check_appends(stream, told, stored)


def check_appends(stream, told, stored):
    fresh = {}
    for one in told:
        sequence, payload = stored.get(one.id, (None, None))
        if one.verdict == "conflict":
            if payload == one.payload:
                yield f"I3 {stream}: {one.id} conflicts with itself"
            continue
        if sequence is None:
            yield f"I1 {stream}: {one.id} was {one.verdict} at {one.sequence} and is lost"
        elif sequence != one.sequence:
            yield f"I4 {stream}: {one.id} was told {one.sequence} and is at {sequence}"
        elif payload != one.payload:
            yield f"I7 {stream}: {one.id} holds {payload!r}, acknowledged was {one.payload!r}"
        if one.verdict == "fresh" and fresh.setdefault(one.id, one) is not one:
            yield f"I2 {stream}: {one.id} was fresh twice"
    # What came later is behind: a sequence that was told is never given again.
    news = [(one.asked, one.answered, one.sequence) for one in fresh.values()]
    for number, floor in not_growing(news):
        yield f"I5 {stream}: {number} was given after {floor}"


def check_pairs(found):
    for left, right in found.pairs:
        ids = [{id_ for _, id_, _ in found.records[stream]} for stream in (left, right)]
        for id_ in ids[0] ^ ids[1]:
            yield f"I15 {id_} is in one of {left} and {right} only"


def check_claims(history, found):
    grants = [one for one in history.claims if one.verdict == "fresh"]
    holders = {}
    for one in grants:
        if holders.setdefault(one.fence, one) is not one:
            yield f"I14 fence {one.fence} was given to {holders[one.fence].worker} and {one.worker}"
    for number, floor in not_growing([(one.asked, one.answered, one.fence) for one in grants]):
        yield f"K2 fence {number} was given after {floor}"
    settles = grouped(history.settles, lambda one: one.key)
    for key, claims in grouped(history.claims, lambda one: one.key).items():
        yield from check_key(key, claims, settles[key], found.claims.get(key))


def check_key(key, claims, settles, ended):
    done = [one for one in settles if one.verdict == "done"]
    if len({one.fence for one in done}) > 1:
        yield f"K1 {key} was settled under the fences {sorted({one.fence for one in done})}"
    for one in claims:
        if one.verdict == "duplicate" and ended != ("completed", one.fence, one.body):
            yield f"I13 {key} was told {one.fence}, {one.body!r} and ended as {ended}"
    for one in done:
        if ended != ("completed", one.fence, one.body):
            yield f"I1 {key} was settled under {one.fence} with {one.body!r} and ended as {ended}"
        newer = [claim.fence for claim in claims if claim.verdict == "fresh"
                 and claim.fence > one.fence and claim.answered < one.asked]
        if newer:
            yield f"I11 {key} was settled under {one.fence} after {newer[0]} was given"
    held = [one for one in claims if one.verdict == "fresh"]
    if held and not ended:
        yield f"I1 {key} was claimed under {held[0].fence} and is unknown"


def check_registers(history, found):
    for name, sets in grouped(history.sets, lambda one: one.name).items():
        winners = [one for one in sets if one.won]
        value = found.registers.get(name)
        if len(winners) > 1:
            yield f"I14 {name} was won {len(winners)} times"
        for one in winners:
            if value != one.value:
                yield f"I1 {name} was set to {one.value!r} and holds {value!r}"
        if value is not None and value not in {one.value for one in sets}:
            yield f"I7 {name} holds {value!r}, which nobody set"
        if value is None and any(one.answered is not None for one in sets):
            yield f"I1 {name} was there and is lost"


def check_consumers(history, found):
    acked = {}
    for one in history.acks:
        place = (one.stream, one.sequence)
        acked[place] = min(one.answered, acked.get(place, one.answered))
    stored = {(stream, record[0]): record for stream, records in found.records.items()
              for record in records}
    for one in history.deliveries:
        place = (one.stream, one.sequence)
        if acked.get(place, one.asked) < one.asked:
            yield f"I2 {one.stream}: {one.sequence} was handed out after it was acked"
        if stored.get(place) != (one.sequence, one.id, one.payload):
            yield f"I7 {one.stream}: handed out {one.sequence} {one.id}, stored {stored.get(place)}"
