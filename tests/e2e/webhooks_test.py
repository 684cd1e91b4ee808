"""Webhooks between Hapax and other people's libraries: each side makes what the other one reads.

The libraries are those of Standard Webhooks, CloudEvents and JSON Schema, from PyPI. Requests are
made, and verified, by a small program over the rooms that the command sends with.
"""

import base64
import datetime
import json
import os
import re
import subprocess
import sys
import time
import unittest

import pypi

HAPAX, SOURCE = (os.path.abspath(sys.argv.pop(1)) for _ in range(2))
LINES = os.path.join(os.path.dirname(HAPAX), "hapax_webhook_lines")
PINNED = ("standardwebhooks==1.1.0", "cloudevents==2.2.0", "jsonschema==4.26.0")

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
NEXT_SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"
PRIVATE = "whsk_nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A="
PUBLIC = "whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
KEY = "801cacdb870f801f0aa5f17a59f499143dca8eb57af2835ee15993796d950b41"
JSON_PAYLOADS = (b'{"orderId": 12345}', b'{"n":12345678901234567890123,"m":0.10}', b" [1e5,null]\n",
                 '{"ä":"€😀"}'.encode(), b'"text"', b"null", b"7")
OTHER_PAYLOADS = (b"", b"<order/>", b"\xff\x00\r\n", b'{"a":1,"a":2}', b'{"a":1} x')


def encode(data):
    return base64.b64encode(data).decode()


class Made:
    """A request as a receiver gets it."""

    def __init__(self, answer):
        self.body = base64.b64decode(answer["body"])
        self.fields = [(one["name"], one["value"]) for one in answer["fields"]]
        self.headers = dict(self.fields)


class Webhooks(unittest.TestCase):
    def setUp(self):
        pypi.importable(self, PINNED)
        self.lines = subprocess.Popen([LINES], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      text=True, encoding="utf-8")
        self.addCleanup(self.lines.communicate)
        self.now = int(time.time() * 1000)

    def ask(self, **line):
        self.lines.stdin.write(json.dumps(line, ensure_ascii=False) + "\n")
        self.lines.stdin.flush()
        return json.loads(self.lines.stdout.readline())

    def request(self, payload=b"{}", keys=(SECRET,), **more):
        answer = self.ask(**{"do": "request", "key": KEY, "type": "OrderCreated",
                             "time": 1763202600123, "at": self.now, "source": "/retail/orders",
                             "keys": [{"key": key} for key in keys], "payload": encode(payload),
                             **more})
        self.assertNotIn("error", answer)
        return Made(answer)

    def verdict(self, headers, body, keys):
        return self.ask(do="verify", keys=keys, fields=[list(pair) for pair in headers.items()],
                        body=encode(body), now=self.now)


class StandardWebhooks(Webhooks):
    def test_its_library_verifies_ours(self):
        from standardwebhooks.webhooks import Webhook
        for shape in ("envelope", "as_it_came", "binary", "structured"):
            for payload in JSON_PAYLOADS:
                made = self.request(payload, shape=shape)
                parsed = Webhook(SECRET).verify(made.body, made.headers)
                if shape == "envelope":
                    self.assertEqual(parsed["data"], json.loads(payload))
                    self.assertEqual(parsed["idempotencyKey"], made.headers["webhook-id"])

    def test_its_library_refuses_what_was_changed(self):
        from standardwebhooks.webhooks import Webhook, WebhookVerificationError
        made = self.request(b'{"a":1}')
        changed = {"body": (made.body.replace(b"1", b"2"), made.headers),
                   "id": (made.body, {**made.headers, "webhook-id": "other"}),
                   "time": (made.body, {**made.headers,
                                        "webhook-timestamp": str(self.now // 1000 - 1)}),
                   "late": (made.body, self.request(b'{"a":1}', at=self.now - 302_000).headers)}
        for what, (body, headers) in changed.items():
            with self.subTest(what), self.assertRaises(WebhookVerificationError):
                Webhook(SECRET).verify(body, headers)

    def test_both_keys_verify_while_one_follows_the_other(self):
        from standardwebhooks.webhooks import Webhook, WebhookVerificationError
        terms = [{"key": SECRET, "until": self.now + 60_000},
                 {"key": PRIVATE},
                 {"key": NEXT_SECRET, "from": self.now - 60_000}]
        for at, good, bad in ((self.now, (SECRET, NEXT_SECRET), ()),
                              (self.now - 60_001, (SECRET,), (NEXT_SECRET,)),
                              (self.now + 60_000, (NEXT_SECRET,), (SECRET,))):
            answer = self.ask(do="request", key=KEY, type="t", at=at, keys=terms, payload="e30=")
            made = Made(answer)
            for secret in good:
                Webhook(secret).verify(made.body, made.headers)
                self.assertEqual(self.verdict(made.headers, made.body, [secret])["id"], KEY)
            for secret in bad:
                with self.assertRaises(WebhookVerificationError):
                    Webhook(secret).verify(made.body, made.headers)
            self.assertEqual(self.verdict(made.headers, made.body, [PUBLIC])["id"], KEY)

    def test_ours_verifies_its(self):
        from standardwebhooks.webhooks import Webhook
        for body in ("", '{"a":1}', '{"ä":"€😀"}', " a\n"):
            sent = datetime.datetime.fromtimestamp(self.now // 1000, tz=datetime.timezone.utc)
            headers = {"webhook-id": "msg_1", "webhook-timestamp": str(self.now // 1000),
                       "webhook-signature": Webhook(SECRET).sign("msg_1", sent, body)}
            self.assertEqual(self.verdict(headers, body.encode(), [NEXT_SECRET, SECRET]),
                             {"id": "msg_1", "sent": self.now // 1000 * 1000})
            self.assertEqual(self.verdict(headers, body.encode() + b" ", [SECRET]),
                             {"fault": "no_match"})
            self.assertEqual(self.verdict(headers, body.encode(), [NEXT_SECRET]),
                             {"fault": "no_match"})


class CloudEvents(Webhooks):
    def read(self, made):
        from cloudevents.core.bindings import http
        return http.from_http_event(http.HTTPMessage(made.headers, made.body))

    def check_attributes(self, event, kind, subject):
        self.assertEqual((event.get_id(), event.get_source(), event.get_type(),
                          event.get_specversion(), event.get_subject()),
                         (KEY, "/retail/orders", kind, "1.0", subject))
        self.assertEqual(event.get_time(), datetime.datetime(
            2025, 11, 15, 10, 30, 0, 123_000, tzinfo=datetime.timezone.utc))

    def test_the_sdk_reads_every_attribute(self):
        texts = ("OrderCreated", "com.example.order", "with space", 'quote " percent %41 %',
                 "Euro € 😀", "a,b;c=d")
        for shape in ("binary", "structured"):
            for text in texts:
                made = self.request(shape=shape, type=text, subject=text)
                self.check_attributes(self.read(made), text, text)
            self.check_attributes(self.read(self.request(shape=shape)), "OrderCreated", None)

    def test_the_sdk_reads_json(self):
        for shape in ("binary", "structured"):
            for payload in JSON_PAYLOADS:
                event = self.read(self.request(payload, shape=shape))
                self.assertEqual(event.get_datacontenttype(), "application/json")
                self.assertEqual(event.get_data(), json.loads(payload))

    def test_the_sdk_reads_bytes(self):
        for payload in OTHER_PAYLOADS:
            event = self.read(self.request(payload, shape="structured"))
            self.assertEqual(event.get_data(), payload)
            self.assertIsNone(event.get_datacontenttype())
            event = self.read(self.request(payload, shape="structured",
                                           content_type="application/xml"))
            self.assertEqual(event.get_data(), payload)
            self.assertEqual(event.get_datacontenttype(), "application/xml")
        event = self.read(self.request(b"\xff", shape="binary", content_type="image/png"))
        self.assertEqual((event.get_data(), event.get_datacontenttype()), (b"\xff", "image/png"))

    def test_extensions_of_the_record_reach_the_sdk(self):
        made = self.request(shape="binary", fields=[["ce-partitionkey", "p 1"], ["ce-id", "no"]])
        event = self.read(made)
        self.assertEqual((event.get_id(), event.get_extension("partitionkey")), (KEY, "p 1"))


class Envelope(Webhooks):
    def setUp(self):
        super().setUp()
        with open(f"{SOURCE}/docs/reference/envelope.schema.json", encoding="utf-8") as file:
            self.schema = json.load(file)

    def validator(self):
        from jsonschema import Draft202012Validator
        Draft202012Validator.check_schema(self.schema)
        return Draft202012Validator(self.schema)

    def test_every_envelope_fits_its_schema(self):
        validator = self.validator()
        for payload in JSON_PAYLOADS + OTHER_PAYLOADS:
            for kind in ("OrderCreated", "", 'a"b\n€'):
                made = self.request(payload, type=kind)
                self.assertEqual(made.headers["Content-Type"], "application/json")
                envelope = json.loads(made.body)
                validator.validate(envelope)
                self.assertEqual(envelope["eventType"], kind)
                if payload in JSON_PAYLOADS:
                    self.assertIn(b'"data":' + payload + b"}", made.body)
                else:
                    self.assertEqual(base64.b64decode(envelope["dataBase64"]), payload)

    def test_the_schema_refuses_what_is_no_envelope(self):
        validator = self.validator()
        good = json.loads(self.request().body)
        for name in good:
            self.assertFalse(validator.is_valid({k: v for k, v in good.items() if k != name}), name)
        for change in ({"dataBase64": ""}, {"idempotencyKey": "a/b"}, {"idempotencyKey": 1},
                       {"timestamp": "yesterday"}, {"eventType": None}):
            self.assertFalse(validator.is_valid({**good, **change}), change)

    def test_the_page_shows_one(self):
        with open(f"{SOURCE}/docs/reference/webhooks.md", encoding="utf-8") as file:
            shown = re.search(r"```json\n(.*?)\n```", file.read(), re.S).group(1)
        self.assertEqual(self.request(b'{"orderId":12345}').body.decode(), shown)


class Keys(Webhooks):
    def test_are_those_of_the_page(self):
        with open(f"{SOURCE}/docs/reference/delivery-keys.md", encoding="utf-8") as file:
            table = file.read().partition("## Examples")[2].split("\n\n")[2]
        rows = [[cell.strip() for cell in line.strip("| \n").split(" | ")]
                for line in table.splitlines()[2:]]
        self.assertEqual(len(rows), 11)
        for row in rows:
            kind, database, table, primary, version, output, endpoint, whole, short = (
                "" if cell == "-" else cell.replace("`", "") for cell in row)
            origin = "sequence" if kind == "stream" and version else kind
            parts = [database, table, *(primary.split(" ") if primary else []),
                     *([version] if version else [])]
            told = self.ask(do="key", origin=origin, parts=parts, output=int(output),
                            endpoint=endpoint)
            self.assertEqual((told["whole"], told["short"]), (whole, short), row)


if __name__ == "__main__":
    unittest.main(verbosity=2)
