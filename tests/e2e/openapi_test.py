"""Every operation of /openapi.json is called, and what it says of bodies and answers is true."""

import re
import unittest

import running

running.arguments()

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None),
         "integer": int, "number": (int, float)}


class Schemas:
    """As much of JSON Schema as the document uses; an unknown keyword is an error."""

    IGNORED = {"description", "contentEncoding"}

    def __init__(self, document):
        self.document = document

    def faults(self, schema, value, where="$"):
        for word, rule in schema.items():
            if word in self.IGNORED or word == "additionalProperties":
                continue
            check = getattr(self, "check_" + word.replace("$", ""), None)
            if check is None:
                raise AssertionError(f"unknown keyword {word}")
            yield from check(rule, value, where)
        if schema.get("additionalProperties") is False and isinstance(value, dict):
            for name in value.keys() - schema.get("properties", {}).keys():
                yield f"{where}.{name} is not allowed"

    def fits(self, schema, value):
        return not list(self.faults(schema, value))

    def check_ref(self, rule, value, where):
        schema = self.document
        for part in rule.removeprefix("#/").split("/"):
            schema = schema[part]
        yield from self.faults(schema, value, where)

    def check_type(self, rule, value, where):
        names = rule if isinstance(rule, list) else [rule]
        if isinstance(value, bool) and "boolean" not in names:
            yield f"{where} is a boolean, not {names}"
        elif not any(isinstance(value, TYPES[name]) for name in names):
            yield f"{where} is {value!r}, not {names}"

    def check_properties(self, rule, value, where):
        if isinstance(value, dict):
            for name, schema in rule.items():
                if name in value:
                    yield from self.faults(schema, value[name], f"{where}.{name}")

    def check_required(self, rule, value, where):
        if isinstance(value, dict):
            yield from (f"{where}.{name} is missing" for name in rule if name not in value)

    def check_items(self, rule, value, where):
        if isinstance(value, list):
            for index, item in enumerate(value):
                yield from self.faults(rule, item, f"{where}[{index}]")

    def check_enum(self, rule, value, where):
        if value not in rule:
            yield f"{where} is {value!r}, not one of {rule}"

    def check_const(self, rule, value, where):
        yield from self.check_enum([rule], value, where)

    def check_allOf(self, rule, value, where):
        for schema in rule:
            yield from self.faults(schema, value, where)

    def check_anyOf(self, rule, value, where):
        if not any(self.fits(schema, value) for schema in rule):
            yield f"{where} is none of {len(rule)}: {value!r}"

    def check_oneOf(self, rule, value, where):
        count = sum(self.fits(schema, value) for schema in rule)
        if count != 1:
            yield f"{where} is {count} of {len(rule)}: {value!r}"

    def check_minimum(self, rule, value, where):
        if isinstance(value, int) and value < rule:
            yield f"{where} is below {rule}"

    def check_maximum(self, rule, value, where):
        if isinstance(value, int) and value > rule:
            yield f"{where} is above {rule}"

    def check_minLength(self, rule, value, where):
        if isinstance(value, str) and len(value) < rule:
            yield f"{where} is too short"

    def check_maxLength(self, rule, value, where):
        if isinstance(value, str) and len(value) > rule:
            yield f"{where} is too long"

    def check_minItems(self, rule, value, where):
        if isinstance(value, list) and len(value) < rule:
            yield f"{where} has too few items"

    def check_maxItems(self, rule, value, where):
        if isinstance(value, list) and len(value) > rule:
            yield f"{where} has too many items"

    def check_maxProperties(self, rule, value, where):
        if isinstance(value, dict) and len(value) > rule:
            yield f"{where} has too many members"

    def check_dependentRequired(self, rule, value, where):
        if isinstance(value, dict):
            for name in rule.keys() & value.keys():
                yield from self.check_required(rule[name], value, where)

    def check_not(self, rule, value, where):
        if self.fits(rule, value):
            yield f"{where} is what it must not be: {value!r}"

    def check_pattern(self, rule, value, where):
        if isinstance(value, str) and not re.search(rule, value):
            yield f"{where} is {value!r}"


def ops(text):
    return {"ops": [{"op": "append", "stream": "s", "payload": text}]}


# Calls in order: method, path, body, expected status. {receipt}, {fence} and {epoch} stand for what
# an earlier answer handed out.
CALLS = [
    ("PUT", "/streams/s", {"window_s": 60, "track_groups": True}, 200),
    ("PUT", "/streams/s", {"window_s": 61}, 409),
    ("PATCH", "/streams/s", {"window_s": "forever", "retention_count": 100}, 200),
    ("GET", "/streams", None, 200),
    ("GET", "/streams/s", None, 200),
    ("GET", "/streams/none", None, 404),
    ("GET", "/streams/s/horizon", None, 200),
    ("POST", "/streams/s/records", {"payload": "x", "id": "a", "headers": {"n": "v"}}, 201),
    ("POST", "/streams/s/records", {"payload": "x", "id": "a", "headers": [["n", "v"]]}, 200),
    ("POST", "/streams/s/records", {"payload": "y", "id": "a"}, 422),
    ("POST", "/streams/s/records", {"payload_base64": "/w==", "group": "g"}, 201),
    ("POST", "/streams/s/records", [{"payload": {"n": 1}}, {"payload": "z", "id": "a"}], 200),
    ("POST", "/streams/s/records", {"mode": "atomic", "records": [{"payload": "x"}]}, 200),
    ("POST", "/streams/s/records", {"payload": "x", "expect_last": 99}, 412),
    ("POST", "/streams/s/records", {"payload": "x", "first_sent_ms": 1, "id": "z"}, 412),
    ("POST", "/streams/s/producers/p", {}, 200),
    ("POST", "/streams/s/records",
     {"payload": "x", "producer": "p", "producer_epoch": 1, "producer_sequence": 0}, 201),
    ("POST", "/streams/s/records",
     {"payload": "x", "producer": "p", "producer_epoch": 1, "producer_sequence": 0}, 200),
    ("POST", "/streams/s/records",
     {"payload": "x", "producer": "p", "producer_epoch": 1, "producer_sequence": 7}, 409),
    ("POST", "/streams/s/records",
     {"payload": "x", "producer": "q", "producer_epoch": 1, "producer_sequence": 7}, 409),
    ("GET", "/streams/s/producers/p", None, 200),
    ("DELETE", "/streams/s/producers/p?actor=me&reason=over", None, 200),
    ("GET", "/streams/s/ids/a", None, 200),
    ("POST", "/streams/s/records", {"payload": "x", "id": "\x01a"}, 201),
    ("GET", "/streams/s/ids/%01a", None, 200),
    ("GET", "/streams/s/ids?id=a", None, 200),
    ("GET", "/streams/s/ids", None, 400),
    ("GET", "/streams/s/records?from=1&max=3", None, 200),
    ("POST", "/streams/s/trim", {"before": 2}, 200),
    ("PUT", "/streams/s/consumers/c", {"attempts_max": 1}, 200),
    ("POST", "/streams/s/consumers/c/receive?wait_ms=1", {"owner": "me"}, 200),
    ("POST", "/streams/s/consumers/c/extend", {"receipt": "{receipt}", "lease_ms": 60000}, 200),
    ("POST", "/streams/s/consumers/c/nack", {"receipt": "{receipt}", "reason": "no"}, 200),
    ("POST", "/streams/s/consumers/c/receive", {}, 200),
    ("POST", "/streams/s/consumers/c/ack", {"acks": [{"receipt": "{receipt}"}]}, 200),
    ("POST", "/streams/s/consumers/c/nack", {"receipt": "{receipt}"}, 409),
    ("GET", "/streams/s.dead/records", None, 200),
    ("POST", "/streams/s.dead/redrive", {"sequence": 1}, 201),
    ("GET", "/streams/s/records", None, 200),
    ("GET", "/streams/s/consumers", None, 200),
    ("GET", "/streams/s/consumers/c", None, 200),
    ("POST", "/streams/s/consumers/c/seek", {"to": 3}, 200),
    ("DELETE", "/streams/s/consumers/c", None, 200),
    ("POST", "/claims/pay/k", {"owner": "me", "content": "x"}, 200),
    ("POST", "/claims/pay/k", {"owner": "you", "content": "x"}, 409),
    ("POST", "/claims/pay/k", {"owner": "you", "content": "y"}, 422),
    ("POST", "/claims/pay/k/renew", {"fence": "{fence}", "lease_ms": 9000}, 200),
    ("POST", "/claims/pay/k/renew", {"fence": 0}, 409),
    ("GET", "/claims/pay/k", None, 200),
    ("POST", "/claims/pay/k/settle", {"fence": "{fence}", "body_base64": "/w=="}, 200),
    ("POST", "/claims/pay/k", {"owner": "me", "content": "x"}, 200),
    ("GET", "/claims/pay/k", None, 200),
    ("POST", "/claims/pay/u", {}, 200),
    ("POST", "/claims/pay/u/settle",
     {"fence": "{fence}", "outcome": "unknown", "reason": "r"}, 200),
    ("POST", "/claims/pay/u", {}, 409),
    ("GET", "/claims/pay/u", None, 200),
    ("POST", "/claims/pay/u/resolve",
     {"resolution": "not_applied", "actor": "me", "reason": "looked"}, 200),
    ("DELETE", "/claims/pay/k?actor=me&reason=over", None, 200),
    ("PUT", "/registers/r", {"value": "v"}, 200),
    ("PUT", "/registers/r", {"value": "w", "expected": 9}, 412),
    ("GET", "/registers/r", None, 200),
    ("PUT", "/registers/n", {"value": "1", "mode": "absent", "expires_in_ms": 60000}, 200),
    ("PUT", "/registers/n", {"value": "9", "mode": "absent", "tell_value": True}, 200),
    ("GET", "/registers/n", None, 200),
    ("POST", "/registers/n/add", {"by": 2}, 200),
    ("POST", "/registers/r/add", {}, 412),
    ("POST", "/registers/n/expire", {"expires_in_ms": 5000, "only_if": "earlier"}, 200),
    ("POST", "/registers/n/expire", {}, 200),
    ("PUT", "/registers/%FF", {"value_base64": "/w==", "mode": "always"}, 200),
    ("PUT", "/registers/%FF", {"value": "", "mode": "always", "tell_value": True}, 200),
    ("POST", "/commit", {"ops": [{"op": "get", "name_base64": "/w=="}]}, 200),
    ("GET", "/registers", None, 200),
    ("GET", "/registers?cursor=0&max=10&prefix=n", None, 200),
    ("GET", "/registers?max=0", None, 400),
    ("DELETE", "/registers/n?tell_value=true", None, 200),
    ("DELETE", "/registers/n", None, 200),
    ("GET", "/registers/n", None, 404),
    ("PUT", "/positions/k", {"to": "1", "epoch": 1}, 200),
    ("PUT", "/positions/k", {"to": "2", "expected": "9", "epoch": 1}, 412),
    ("GET", "/positions/k", None, 200),
    ("POST", "/transactions/t", {}, 200),
    ("POST", "/commit", {"transaction": "t", "epoch": "{epoch}", **ops("x")}, 200),
    ("POST", "/transactions/t/end", {"epoch": "{epoch}", "finish": "commit"}, 200),
    ("POST", "/commit", {"id": "c", "id_window_s": 60, **ops("x")}, 200),
    ("POST", "/commit", {"ops": [{"op": "trim", "stream": "none", "before": 1}]}, 409),
    ("GET", "/statistics", None, 200),
    ("GET", "/dedup/stats?queue=s", None, 200),
    ("GET", "/dedup/keys/s:a/status", None, 200),
    ("POST", "/claims/s/job", {}, 200),
    ("DELETE", "/dedup/keys/s:job", None, 200),
    ("PUT", "/streams/outbox_events", {}, 200),
    ("POST", "/streams/outbox_events/records", {"payload": "x"}, 201),
    ("GET", "/outbox/pending", None, 200),
    ("GET", "/outbox/stats", None, 200),
    ("POST", "/workflows/w/events",
     {"id": "a", "type": "t", "key": "k", "payload": "x", "headers": {"n": "v"}}, 201),
    ("POST", "/workflows/w/events", {"id": "a", "key": "k", "payload": "x"}, 200),
    ("POST", "/workflows/w/events", {"id": "a", "key": "k", "payload": "y"}, 422),
    ("POST", "/workflows/w/events", {"id": "b", "payload": "x", "first_sent_ms": 1}, 412),
    ("POST", "/workflows/w/events", {"events": [{"id_base64": "/w==", "payload": 1}]}, 200),
    ("GET", "/workflows", None, 200),
    ("GET", "/workflows/w", None, 200),
    ("GET", "/workflows/none", None, 404),
    ("GET", "/workflows/w/attempts", None, 200),
    ("GET", "/workflows/w/attempts?key=a&outcome=delivered&endpoint=&since_ms=1&max=2", None, 200),
    ("GET", "/workflows/w/attempts?outcome=lost", None, 400),
    ("GET", "/workflows/none/attempts", None, 404),
    ("POST", "/workflows/w/pause", None, 200),
    ("POST", "/workflows/w/resume", None, 200),
    ("POST", "/workflows/none/pause", None, 404),
    ("GET", "/workflows/w/blocked", None, 200),
    ("GET", "/workflows/none/blocked", None, 404),
    ("POST", "/workflows/w/blocked", {"key": "k", "decision": "retry"}, 404),
    ("POST", "/workflows/w/blocked", {"key_base64": "/w==", "decision": "park"}, 404),
    ("GET", "/workflows/w/undelivered", None, 200),
    ("GET", "/workflows/w/undelivered?count=true", None, 200),
    ("GET", "/workflows/none/undelivered", None, 404),
    ("GET", "/workflows/w/dead", None, 200),
    ("GET", "/workflows/none/dead", None, 404),
    ("POST", "/workflows/w/dead/replay", {"all": True}, 200),
    ("POST", "/workflows/w/dead/replay", {"status": "4xx", "dry_run": True}, 200),
    ("DELETE", "/workflows/none/dead?through=1", None, 404),
    ("POST", "/workflows/w/replay", {"id": "r1", "since_ms": 0}, 200),
    ("POST", "/workflows/w/replay", {"since_ms": 0, "dry_run": True}, 200),
    ("POST", "/workflows/none/replay", {"id": "r1", "since_ms": 0}, 404),
    ("POST", "/workflows/none/events", {"id": "a", "payload": "x"}, 404),
    ("PUT", "/workflows/v?dry_run=true", {"id": "v"}, 200),
    ("PUT", "/workflows/v?version=0", {"id": "v"}, 200),
    ("PUT", "/workflows/v", {"id": "v", "retention": {"attempts": "1d"}}, 200),
    ("PUT", "/workflows/v?version=1000", {"id": "v"}, 412),
    ("PUT", "/workflows/w", {"id": "w"}, 412),
    ("PUT", "/workflows/x", {"id": "v"}, 400),
    ("GET", "/workflows/v", None, 200),
    ("POST", "/workflows/w/test", {"id": "a", "key": "k", "type": "t", "payload": "x"}, 200),
    ("POST", "/workflows/w/test?send=true", {"id": "a", "payload": "x"}, 200),
    ("POST", "/workflows/v/test", {"id": "a", "payload": "x"}, 412),
    ("POST", "/workflows/none/test", {"id": "a", "payload": "x"}, 404),
    ("DELETE", "/workflows/w", None, 412),
    ("DELETE", "/workflows/none?drop_undelivered=true", None, 404),
    ("DELETE", "/workflows/v", None, 200),
    ("GET", "/secrets", None, 200),
    ("PUT", "/secrets/ERP", {"value": "t0ken"}, 200),
    ("GET", "/secrets", None, 200),
    ("DELETE", "/secrets/ERP", None, 200),
    ("DELETE", "/secrets/ERP", None, 404),
    ("GET", "/openapi.json", None, 200),
    ("GET", "/health/live", None, 200),
    ("GET", "/health/ready", None, 200),
    ("GET", "/metrics", None, 200),
    ("GET", "/", None, 200),
    ("GET", "/api/style.css", None, 200),
    ("DELETE", "/streams/s", None, 200),
]


# What breaks a rule between fields, or is no value of a field.
REFUSED = [
    ("POST", "/streams/s/records", {"payload": "x", "id": ""}),
    ("POST", "/streams/s/records", {"payload": "x", "payload_base64": "eA=="}),
    ("POST", "/streams/s/records", {"payload": "x", "id": "a", "id_base64": "eA=="}),
    ("POST", "/streams/s/records", {"payload_base64": "eA="}),
    ("POST", "/streams/s/records", {"payload_base64": "eB=="}),
    ("POST", "/streams/s/records", {"payload_base64": "eHg===="}),
    ("POST", "/streams/s/records", {"payload": "x", "producer": "p", "producer_epoch": 1}),
    ("POST", "/streams/s/records", {"payload": "x", "expect_last": 0, "expect_last_of_group": 0}),
    ("POST", "/streams/s/records", {"payload": "x", "expect_last_of_group": 0}),
    ("POST", "/streams/s/records", []),
    ("POST", "/workflows/w/blocked", {"key": "k"}),
    ("POST", "/workflows/w/blocked", {"key": "k", "decision": "wait"}),
    ("POST", "/workflows/w/blocked", {"key": "k", "decision": "retry", "why": "x"}),
    ("POST", "/workflows/w/dead/replay", {"all": True, "colour": "red"}),
    ("POST", "/workflows/w/replay", {"id": "a b", "since_ms": 0}),
    ("POST", "/workflows/w/events", {"payload": "x"}),
    ("POST", "/workflows/w/events", {"id": "a"}),
    ("POST", "/workflows/w/events", {"id": "", "payload": "x"}),
    ("POST", "/workflows/w/events", {"id": "a", "payload": "x", "type": ""}),
    ("POST", "/workflows/w/events", {"id": "a", "payload": "x", "group": "g"}),
    ("PUT", "/workflows/x", {}),
    ("PUT", "/workflows/x", []),
    ("PUT", "/secrets/ERP", {}),
    ("PUT", "/secrets/ERP", {"value": ""}),
    ("PUT", "/secrets/ERP", {"value": 7}),
    ("PUT", "/secrets/ERP", {"value": "a\nb"}),
    ("PUT", "/secrets/ERP", {"value": "v", "why": "w"}),
    ("POST", "/commit", {"ops": []}),
    ("POST", "/commit", {"transaction": "t", **ops("x")}),
    ("PUT", "/streams/t", {"window_s": 0}),
    ("PUT", "/streams/t", {"window_s": "60"}),
    ("PUT", "/streams/t", {"record_bytes_max": 0}),
    ("PUT", "/registers/r", {"value": "v", "expires_at_ms": 1, "expires_in_ms": 1}),
    ("PUT", "/registers/r", {"value": "v", "keep_expiry": True, "expires_in_ms": 1}),
    ("POST", "/registers/n/expire", {"expires_at_ms": 1, "expires_in_ms": 1}),
    ("PUT", "/streams/s/consumers/c", {"dead_letters": "$x"}),
    ("PUT", "/positions/p", {"to": ""}),
    ("POST", "/streams/s/consumers/c/ack", {"receipt": "1"}),
    ("POST", "/claims/s/k/resolve", {"resolution": "release"}),
    ("POST", "/claims/s/k/resolve", {"resolution": "release", "reason": "r"}),
    ("POST", "/claims/s/k/resolve", {"resolution": "release", "actor": "me", "reason": ""}),
]

# The most that a field takes; one more is HX1002.
LIMITS = [
    ("POST", "/streams/s/records", "id", 255),
    ("POST", "/streams/s/records", "group", 255),
    ("POST", "/streams/s/records", "producer", 255),
    ("POST", "/streams/s/records", "producer_epoch", 2**62 - 1),
    ("POST", "/workflows/w/events", "id", 255),
    ("POST", "/workflows/w/events", "key", 255),
    ("PUT", "/streams/t", "window_s", 34_560_000),
    ("PUT", "/streams/t", "record_bytes_max", 8 << 20),
    ("PUT", "/streams/t", "producer_memory", 100_000),
    ("PUT", "/streams/t", "producers_max", 100_000),
    ("PUT", "/streams/s/consumers/c", "attempts_max", 1_000_000),
    ("PUT", "/streams/s/consumers/c", "in_flight_max", 100_000),
    ("PUT", "/streams/s/consumers/c", "dead_letters", 255),
    ("POST", "/streams/s/consumers/c/receive", "max", 10_000),
    ("POST", "/streams/s/consumers/c/receive", "lease_ms", 86_400_000),
    ("POST", "/streams/s/consumers/c/receive", "owner", 255),
    ("POST", "/streams/s/consumers/c/nack", "delay_ms", 2_592_000_000),
    ("POST", "/streams/s/consumers/c/nack", "reason", 1024),
    ("POST", "/claims/s/k/settle", "reason", 1024),
    ("POST", "/claims/s/k/resolve", "actor", 255),
    ("POST", "/claims/s/k/resolve", "reason", 1024),
    ("PUT", "/positions/p", "to", 1024),
    ("PUT", "/positions/p", "expected", 1024),
    ("PUT", "/registers/r", "value", 65_536),
    ("PUT", "/registers/r", "expires_in_ms", 2**46),
    ("POST", "/transactions/t", "timeout_ms", 900_000),
    ("PUT", "/secrets/ERP", "value", 4_096),
]
BODIES = {
    "/streams/s/records": {"payload": "x", "id": "a", "group": "g", "producer": "p",
                           "producer_epoch": 1, "producer_sequence": 0},
    "/workflows/w/events": {"id": "a", "key": "k", "payload": "x"},
    "/streams/t": {"window_s": 60, "record_bytes_max": 9, "producer_memory": 9,
                   "producers_max": 9},
    "/streams/s/consumers/c": {"attempts_max": 9, "in_flight_max": 9, "dead_letters": "d"},
    "/streams/s/consumers/c/receive": {"max": 9, "lease_ms": 9, "owner": "o"},
    "/streams/s/consumers/c/nack": {"receipt": "1-1", "delay_ms": 0, "reason": "r"},
    "/claims/s/k/settle": {"fence": 1, "reason": "r"},
    "/claims/s/k/resolve": {"resolution": "release", "actor": "me", "reason": "r"},
    "/positions/p": {"to": "1", "expected": "0"},
    "/registers/r": {"value": "v", "expires_in_ms": 9},
    "/transactions/t": {"timeout_ms": 9},
    "/secrets/ERP": {"value": "v"},
}


class OpenApi(running.ServerTest):
    CONFIG = ("workflows: [{id: w, source: {type: http}, "
              'endpoint: {url: "http://127.0.0.1:1/hook"}}]\n'
              'server: {secrets_key: "${env:SEAL}"}\n')
    ENVIRONMENT = {"SEAL": "a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s="}

    def setUp(self):
        super().setUp()
        self.document = self.call("GET", "/openapi.json").json
        self.schemas = Schemas(self.document)
        self.handed_out = {}

    def operation(self, method, path):
        path = path.split("?")[0]
        for pattern, operations in sorted(self.document["paths"].items()):
            expression = re.sub(r"\{\w+\}", "[^/]+", pattern)
            if re.fullmatch(expression, path) and method.lower() in operations:
                return operations[method.lower()]
        raise AssertionError(f"{method} {path} is not in the document")

    def fill(self, body):
        if isinstance(body, dict):
            return {name: self.fill(value) for name, value in body.items()}
        if isinstance(body, list):
            return [self.fill(value) for value in body]
        if isinstance(body, str) and body.startswith("{"):
            return self.handed_out[body[1:-1]]
        return body

    def remember(self, told):
        for name in ("fence", "epoch"):
            if name in told:
                self.handed_out[name] = told[name]
        if told.get("records"):
            self.handed_out["receipt"] = told["records"][0].get("receipt")

    def check(self, operation, body, answer):
        if body is not None:
            schema = operation["requestBody"]["content"]["application/json"]["schema"]
            self.assertEqual(list(self.schemas.faults(schema, body)), [], body)
        responses = operation["responses"]
        response = responses.get(str(answer.status), responses.get("default"))
        kind = answer.headers["Content-Type"].split(";")[0]
        schema = response["content"][kind]["schema"]
        if kind.endswith("json") and schema != {"type": "string"}:
            self.assertEqual(list(self.schemas.faults(schema, answer.json)), [], answer.body)

    def test_every_operation_does_what_the_document_says(self):
        called = set()
        for method, path, body, status in CALLS:
            whole = path if path.startswith(running.WHOLE_PATHS) or path == "/" else \
                "/api/v1" + path
            with self.subTest(method=method, path=path, body=body):
                operation = self.operation(method, whole)
                called.add(operation["operationId"])
                body = self.fill(body)
                answer = self.call(method, whole, body)
                self.assertEqual(answer.status, status, answer.body)
                self.check(operation, body, answer)
                if answer.headers["Content-Type"] == "application/json" and status == 200:
                    self.remember(answer.json)
        known = {operation["operationId"] for path in self.document["paths"].values()
                 for operation in path.values()}
        self.assertEqual(known - called, set())

    def test_a_body_is_required_where_one_must_be_sent(self):
        self.call("PUT", "/streams/s")
        for pattern, path in self.document["paths"].items():
            for method, operation in path.items():
                if "requestBody" not in operation:
                    continue
                answer = self.call(method.upper(), re.sub(r"\{\w+\}", "s", pattern))
                refused = answer.status == 400 and answer.json.get("code") == "HX1001"
                self.assertEqual(operation["requestBody"]["required"], refused,
                                 f"{method} {pattern}: {answer.body}")

    def test_what_the_schema_refuses_the_server_refuses(self):
        self.call("PUT", "/streams/s")
        for method, path, body in (
                ("POST", "/streams/s/records", {}),
                ("POST", "/streams/s/records", {"payload": "x", "idd": "a"}),
                ("POST", "/streams/s/records", {"payload": "x", "id": 7}),
                ("POST", "/streams/s/records", {"payload": "x", "id_base64": 7}),
                ("PUT", "/streams/t", {"window_s": "long"}),
                ("PUT", "/streams/t", {"id_scope": "galaxy"}),
                ("POST", "/claims/pay/k", {"lease_ms": True}),
                ("POST", "/claims/pay/k/renew", {}),
                ("POST", "/commit", {"ops": [{"op": "nothing"}]}),
                *REFUSED):
            self.check_refused(method, path, body, (400, "HX1001"))

    def check_refused(self, method, path, body, expected):
        schema = self.body_of(method, path)
        self.assertFalse(self.schemas.fits(schema, body), str(body)[:300])
        answer = self.call(method, path, body)
        self.assertEqual((answer.status, answer.json["code"]), expected, str(body)[:300])

    def body_of(self, method, path):
        operation = self.operation(method, "/api/v1" + path)
        return operation["requestBody"]["content"]["application/json"]["schema"]

    def test_limits_are_those_of_the_store(self):
        self.call("PUT", "/streams/s")
        for method, path, name, most in LIMITS:
            with self.subTest(path=path, name=name):
                body = BODIES[path]
                is_text = isinstance(body[name], str)
                fits = {**body, name: "a" * most if is_text else most}
                beyond = {**body, name: "a" * (most + 1) if is_text else most + 1}
                self.assertTrue(self.schemas.fits(self.body_of(method, path), fits))
                answer = self.call(method, path, fits)
                self.assertNotIn(answer.json.get("code"), ("HX1001", "HX1002"), answer.body[:300])
                self.check_refused(method, path, beyond, (413, "HX1002"))

    def test_null_is_refused_everywhere(self):
        self.call("PUT", "/streams/s")
        schemas = {"/commit": "POST", **{path: method for method, path, _, _ in LIMITS}}
        checked = 0
        for method, path in {*((method, path) for path, method in schemas.items()),
                             ("PATCH", "/streams/s"), ("PUT", "/positions/p"),
                             ("POST", "/streams/s/consumers/c/seek"),
                             ("POST", "/registers/r/expire"), ("POST", "/registers/r/add"),
                             ("POST", "/claims/s/k/resolve"), ("POST", "/claims/s/k/renew")}:
            schema = self.body_of(method, path)
            schema = schema["anyOf"][0] if "anyOf" in schema else schema
            for name in schema["properties"]:
                self.check_refused(method, path, {name: None}, (400, "HX1001"))
                checked += 1
        self.assertGreater(checked, 50)

    def test_the_page_needs_nothing_from_elsewhere(self):
        page = self.call("GET", "/")
        self.assertEqual(page.headers["Content-Type"], "text/html; charset=utf-8")
        self.assertIn("default-src 'none'", page.headers["Content-Security-Policy"])
        text = page.body.decode()
        self.assertNotIn("<script", text)
        self.assertEqual(re.findall(r'(?:src|href)="(?!/)', text), [])
        for pattern in self.document["paths"]:
            self.assertIn(pattern, text)


class SignedIn(running.SignedInTest):
    def test_the_actor_is_who_signed_in_unless_it_is_given(self):
        served = self.serve()
        document = served.call("GET", "/openapi.json").json
        self.assertEqual(document["security"], [{"token": []}])
        paths = document["paths"]
        body = paths["/api/v1/claims/{scope}/{key}/resolve"]["post"]["requestBody"]
        schema = body["content"]["application/json"]["schema"]
        self.assertEqual(schema["required"], ["resolution", "reason"])
        self.assertNotIn("minLength", schema["properties"]["actor"])
        query = {one["name"]: one["required"]
                 for one in paths["/api/v1/claims/{scope}/{key}"]["delete"]["parameters"]}
        self.assertEqual((query["actor"], query["reason"]), (False, True))
        token = running.jwt()
        for options, status in (("reason=over", 200), ("actor=&reason=over", 200),
                                ("actor=me", 400)):
            served.call("POST", "/claims/s/k", {}, token=token)
            answer = served.call("DELETE", "/claims/s/k?" + options, token=token)
            self.assertEqual(answer.status, status, answer.body)

    def test_without_signing_in_both_are_needed(self):
        served = self.serve("{}")
        document = served.call("GET", "/openapi.json").json
        self.assertEqual(document["security"], [])
        query = {one["name"]: one["required"] for one in
                 document["paths"]["/api/v1/claims/{scope}/{key}"]["delete"]["parameters"]}
        self.assertEqual((query["actor"], query["reason"]), (True, True))
        served.call("POST", "/claims/s/k", {})
        self.assertEqual(served.call("DELETE", "/claims/s/k?reason=over").status, 400)


if __name__ == "__main__":
    unittest.main(verbosity=2)
