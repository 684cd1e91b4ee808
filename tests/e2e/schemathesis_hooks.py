"""What schemathesis must know of Hapax beside the document; schemathesis_test.py names this file.

Bodies of two media types are no JSON, so no schema describes them. Waiting is cut short. And a
request that the schema allows may be refused for reasons that no schema can express.
"""

import itertools
import json
import re

import schemathesis
from hypothesis import strategies
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

COUNT = itertools.count()
LINES, FRAMES = "application/x-ndjson", "application/vnd.hapax.records"
TEXTS = strategies.lists(strategies.text(max_size=8), min_size=1, max_size=3)


def frames(texts):
    parts = [b"\0" + text.encode() for text in texts]
    return b"HXR1" + b"".join(len(part).to_bytes(4, "little") + part for part in parts)


def lines(texts):
    return "\n".join(json.dumps({"payload": text}) for text in texts).encode()


schemathesis.openapi.media_type(LINES, TEXTS.map(lines))
schemathesis.openapi.media_type(FRAMES, TEXTS.map(frames))


@schemathesis.hook
def before_call(_context, case, _kwargs):
    # One strategy serves all operations that take lines; events have ids, and the others than
    # append take receipts.
    made = isinstance(case.body, bytes) and case.body.startswith(b'{"payload": ')
    if made and case.media_type == LINES and not case.path.endswith("/records"):
        is_event = case.path.endswith("/events")
        case.body = b'{"id": "0", "payload": "x"}' if is_event else b'{"receipt": "1-1"}'
    # A key that was used for another request would be all that is answered.
    key = str((case.headers or {}).get("Idempotency-Key", ""))
    if re.fullmatch("[0-9A-Za-z]{1,200}", key):
        case.headers["Idempotency-Key"] = f"{key}-{next(COUNT)}"
    wait = str((case.query or {}).get("wait_ms", ""))
    if re.fullmatch("[0-9]+", wait):
        case.query["wait_ms"] = min(int(wait), 1)


# Refusals that depend on what the store holds, or that speak of several parts of a request.
BEYOND_A_SCHEMA = re.compile("|".join((
    "was never handed out to consumer",        # a receipt of the right form
    "cannot go to [0-9]+: the last record",    # a place behind the end of the stream
    "is not a dead letter",
    "does not track group keys",
    "are unique per group, and no record",     # and which group is not said
    "would put the dead letters of stream",    # into that stream itself
    "^record of stream .* the most is",        # its own record_bytes_max
    "ms ahead of the store",                   # a time of the future
    "^id: differs from the Idempotency-Key",   # body and header
    "^id: missing; or send id_base64",         # one of two fields of a query
    "^(id|group): .* exclude each other",      # the same
    "^jq: ",                                   # no program
    # The client learns this name from a list of streams, and uses it where its pattern forbids it.
    r"^stream '\$audit' begins with \$",
)))


def numbers_in(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [number for one in value for number in numbers_in(one)]
    return [value] if isinstance(value, float) else []


def is_beyond_a_schema(response, case):
    if response.status_code not in (400, 413):
        return False
    detail = response.json()["detail"]
    # What a declaration may say is told by the schema of the configuration.
    if case.method == "PUT" and case.path.endswith("/workflows/{workflow}"):
        return True
    if BEYOND_A_SCHEMA.search(detail):
        return True
    if "expected a whole number" in detail:
        # To a schema 1e16 is a whole number; to the server it may stand for its neighbour.
        return any(abs(number) >= 2**53 for number in numbers_in(case.body))
    sizes = re.search("has ([0-9]+); the most is ([0-9]+)", detail)
    if sizes is None:
        return False
    # A schema counts characters and the store counts bytes: of UTF-8, and of base64, of which the
    # longest text without padding is up to two bytes more than with it.
    sent = json.dumps([case.body if isinstance(case.body, (dict, list)) else None,
                       dict(case.path_parameters or {}), dict(case.query or {})],
                      ensure_ascii=False)
    return not sent.isascii() or \
        ("_base64" in sent and int(sizes[1]) <= int(sizes[2]) + 2)


@schemathesis.check
def takes_what_the_document_allows(context, response, case):
    if is_beyond_a_schema(response, case):
        return None
    return positive_data_acceptance(context, response, case)


@schemathesis.check
def refuses_what_the_document_forbids(context, response, case):
    if case.media_type in (LINES, FRAMES):
        return None  # What is said to break the schema is what the strategies above make.
    # Operations of a list are refused each on its own; the list has been answered.
    if response.status_code == 200 and re.search(b'"code":"HX100[12]"', response.content):
        return None
    return negative_data_rejection(context, response, case)
