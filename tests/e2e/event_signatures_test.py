"""Records that are signed when they are published: what was changed since is not sent."""

import base64
import hashlib
import hmac
import json
import os
import re
import subprocess
import unittest

import delivering
import running
from outbox_workflows_test import OutboxWorkflowsTest as Outboxes
from running import wait_for

_, SOURCE = running.arguments()

NEW, OLD = ("whsec_" + base64.b64encode(byte * 32).decode() for byte in (b"n", b"o"))
KEYS = "signature: {keys: [{key: '${env:NEW}'}, {key: '${env:OLD}'}]}"
PAGE = open(f"{SOURCE}/docs/reference/event-signatures.md", encoding="utf-8").read()


def example(language):
    return re.search(rf"```{language}\n(.*?)```", PAGE, re.S).group(1)


page_names = {}
exec(example("python"), page_names)
sign_event = page_names["sign_event"]  # The page's own function is what signs here.


class Signed(delivering.DeliveryTest):
    def start(self, config):
        return self.serve(config, {"NEW": NEW, "OLD": OLD})

    def append(self, server, name, payload, key=NEW, signed=None, event_type="OrderCreated"):
        signature = sign_event(key, name, event_type, "ann", signed or payload)
        status, _, text = server.call("POST", "/api/v1/streams/orders/records", {
            "id": name, "group": "ann", "payload": payload,
            "headers": [["event_type", event_type], ["hapax-signature", signature]]})
        self.assertIn(status, (200, 201), text)

    def config(self, url, more=""):
        return self.workflow(url, more=more).replace(
            "stream: orders}\n    endpoint", f"stream: orders, {KEYS}}}\n    endpoint")

    def test_a_record_that_was_changed_is_a_dead_letter_and_never_sent(self):
        endpoint = self.endpoint()
        server = self.start(self.config(endpoint.url))
        self.append(server, "a", '{"order": "a"}')
        self.append(server, "b", '{"order": "changed"}', signed='{"order": "b"}')
        self.append(server, "c", '{"order": "c"}', key=OLD)
        self.publish(server, "unsigned", group="ann")
        self.append(server, "d", '{"order": "d"}')
        self.arrives(endpoint, "a", "c", "d")
        wait_for(lambda: len(self.dead_letters(server)) == 2, "two dead letters")
        told = json.dumps(self.dead_letters(server))
        self.assertIn("its signature does not match", told)
        self.assertIn("its signature is missing", told)
        self.assertEqual(self.orders(endpoint), ["a", "c", "d"])
        for head, _ in endpoint.came:
            self.assertNotIn("hapax-signature", {name.lower() for name in head})

    def test_a_transform_gets_no_record_through_that_was_changed(self):
        endpoint = self.endpoint()
        server = self.start(self.config(
            endpoint.url, '    transform: {jq: "select(.order != \\"x\\") | {order}"}\n'))
        self.append(server, "a", '{"order": "x"}', signed='{"order": "a"}')
        self.append(server, "b", '{"order": "b"}')
        self.arrives(endpoint, "b")
        self.assertIn("does not match", json.dumps(self.dead_letter(server)))

    def test_a_posted_event(self):
        endpoint = self.endpoint()
        server = self.start(f"""
workflows:
  - id: erp
    source: {{type: http, {KEYS}}}
    endpoint: {{url: "{endpoint.url}"}}
""")
        good = '{"order": "e1",  "total": 1.10}'
        body = (f'{{"id": "e1", "type": "T", "payload": {good}, "headers": {{"hapax-signature": '
                f'"{sign_event(NEW, "e1", "T", "", good)}"}}}}')
        self.assertEqual(server.call("POST", "/workflows/erp/events", body.encode(),
                                     {"Content-Type": "application/json"}).status, 201)
        server.call("POST", "/workflows/erp/events", {
            "id": "e2", "type": "T", "payload": {"order": "e2"},
            "headers": {"hapax-signature": sign_event(NEW, "e1", "T", "", good)}})
        self.assertIn("does not match", json.dumps(self.dead_letter(server)))
        self.arrives(endpoint, "e1")
        self.assertEqual(self.orders(endpoint), ["e1"])

    def test_without_its_key_the_workflow_does_not_start(self):
        path = os.path.join(self.folder, "hapax.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.config("http://127.0.0.1:1/in"))
        done = subprocess.run(
            [self.HAPAX, "serve", "--config", path, "--data", os.path.join(self.folder, "data"),
             "--http", "127.0.0.1:0", "--resp", "127.0.0.1:0"], capture_output=True, text=True,
            timeout=60, check=False, env={**os.environ, "OLD": OLD})
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("workflow 'erp': source.signature", done.stderr)
        self.assertIn("no variable NEW", done.stderr)
        self.assertNotIn(OLD, done.stderr)


class SignedOutbox(Outboxes):
    """The threat of document D: somebody changes a row of the outbox before it is sent."""

    def test_a_changed_row_is_a_dead_letter(self):
        receiver = self.receiver()
        self.cluster.psql("CREATE EXTENSION IF NOT EXISTS pgcrypto;" + example("sql"))
        for name in ("o1", "o2", "o3"):
            payload = f'{{"order": "{name}"}}'
            self.cluster.psql(
                f"SELECT hapax.publish('OrderCreated', '{payload}', NULL, '{name}', headers => "
                "jsonb_build_array(jsonb_build_array('hapax-signature', "
                f"sign_event('{NEW}', '{name}', 'OrderCreated', NULL, "
                f"convert_to('{payload}', 'UTF8')))))")
        self.publish("unsigned")
        self.cluster.psql("UPDATE hapax.outbox SET payload = convert_to("
                          "'{\"order\": \"stolen\"}', 'UTF8') WHERE id = 'o2'")
        self.serve(self.config(receiver, source=f", {KEYS}"),
                   {"SHOP": self.cluster.uri(), "NEW": NEW, "OLD": OLD})
        self.arrive(receiver, "o1", "o3")
        wait_for(lambda: self.status()["dead_letters"] == 2, "both to be dead letters")
        self.assertEqual(sorted(self.orders(receiver)), ["o1", "o3"])
        told = self.cluster.psql("SELECT id, reason FROM hapax.outbox_dead ORDER BY id")
        self.assertIn("does not match", told.splitlines()[0])
        self.assertIn("is missing", told.splitlines()[1])


def load_tests(loader, *_):
    suite = loader.loadTestsFromTestCase(Signed)
    suite.addTest(SignedOutbox("test_a_changed_row_is_a_dead_letter"))
    return suite


if __name__ == "__main__":
    unittest.main()
