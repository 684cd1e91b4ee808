"""Endpoints of workflows that `hapax serve` runs: signatures, CloudEvents, what answers mean, and
access tokens. Requests are verified and read by the libraries of others."""

import base64
import json
import os
import subprocess
import time
import unittest
import urllib.parse

import pypi
from delivering import DeliveryTest
from running import arguments, wait_for

PINNED = ("standardwebhooks==1.1.0", "cloudevents==2.2.0", "jsonschema==4.26.0")
OLD = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
NEW = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"
PRIVATE = "whsk_nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A="
PUBLIC = "whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
SECRETS = {"OLD_KEY": OLD, "NEW_KEY": NEW, "PRIVATE_KEY": PRIVATE}


class Signed(DeliveryTest):
    def one_request(self, endpoint, more=""):
        receiver = self.endpoint()
        server = self.serve(self.workflow(receiver.url, endpoint, more), SECRETS)
        self.publish(server, "o1", group="customer-1")
        wait_for(lambda: receiver.got, lambda: "a request; the log: " + server.text())
        self.assertNotIn(OLD, server.text())
        return receiver.got[0]

    def test_the_library_of_standard_webhooks_verifies_every_key_in_its_term(self):
        pypi.importable(self, PINNED)
        from standardwebhooks.webhooks import Webhook, WebhookVerificationError
        head, body = self.one_request(
            ', signing: {keys: [{key: "${env:OLD_KEY}", until: "2999-01-01T00:00:00Z"}, '
            '{key: "${env:PRIVATE_KEY}"}, {key: "${env:NEW_KEY}", from: "2999-01-01T00:00:00Z"}]}')
        self.assertEqual(Webhook(OLD).verify(body, dict(head))["data"], {"order": "o1"})
        with self.assertRaises(WebhookVerificationError):
            Webhook(NEW).verify(body, dict(head))
        lines = os.path.join(os.path.dirname(self.HAPAX), "hapax_webhook_lines")
        asked = {"do": "verify", "keys": [PUBLIC], "fields": list(map(list, head.items())),
                 "body": base64.b64encode(body).decode(), "now": int(time.time() * 1000)}
        told = subprocess.run([lines], input=json.dumps(asked) + "\n", capture_output=True,
                              text=True, timeout=60, check=True).stdout
        self.assertEqual(json.loads(told)["id"], head["webhook-id"])

    def test_without_a_key_in_its_term_records_wait(self):
        receiver = self.endpoint()
        config = self.workflow(
            receiver.url, ', signing: {keys: [{key: "${env:OLD_KEY}", until: '
            '"2020-01-01T00:00:00Z"}]}', "    delivery: {retries: {maxAttempts: 1}}")
        server = self.serve(config, SECRETS)
        self.publish(server, "o1", "o2")
        server.wait_for_log("the endpoint is unavailable, pausing: none of the 1 signing keys is "
                            "in use at 20")
        server.restart(lambda: server.write(config.replace("2020", "2999")))
        self.arrives(receiver, "o1", "o2")
        self.assertEqual(len(receiver.came), 2)
        self.assertEqual(self.dead_letters(server), [])

    def test_a_key_that_cannot_sign_is_told_at_the_start(self):
        path = os.path.join(self.folder, "hapax.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.workflow("http://127.0.0.1:1/in",
                                     ', signing: {keys: [{key: "${env:OLD_KEY}"}]}'))
        done = subprocess.run(
            [self.HAPAX, "serve", "--config", path, "--data", os.path.join(self.folder, "data"),
             "--http", "127.0.0.1:0", "--resp", "127.0.0.1:0"], capture_output=True, text=True,
            timeout=60, check=False, env={**os.environ, "OLD_KEY": "whsec_c2hvcnQ="})
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("workflow 'erp': signing key 1: a whsec_ secret has 24 to 64 bytes; not 5",
                      done.stderr)

    def check_cloud_event(self, body, media_type):
        pypi.importable(self, PINNED)
        from cloudevents.core.bindings import http
        head, text = self.one_request(
            f', body: {body}, cloudEvents: {{source: /shop, subject: key}}, '
            'signing: {keys: [{key: "${env:OLD_KEY}"}]}')
        self.assertEqual(head["Content-Type"], media_type)
        event = http.from_http_event(http.HTTPMessage(dict(head), text))
        self.assertEqual(
            (event.get_id(), event.get_source(), event.get_type(), event.get_subject()),
            (head["webhook-id"], "/shop", "OrderCreated", "customer-1"))
        self.assertEqual(event.get_data(), {"order": "o1"})
        self.assertIn("v1,", head["webhook-signature"])

    def test_the_sdk_reads_cloud_events_in_binary_mode(self):
        self.check_cloud_event("cloudevents-binary", "application/json")

    def test_the_sdk_reads_cloud_events_in_structured_mode(self):
        self.check_cloud_event("cloudevents-structured", "application/cloudevents+json")

    def test_a_record_that_is_no_cloud_event_is_a_dead_letter_at_once(self):
        receiver = self.endpoint()
        server = self.serve(self.workflow(
            receiver.url, ", body: cloudevents-binary, cloudEvents: {source: /shop}"))
        self.publish(server, "o1", event_type="")
        self.assertIn("a CloudEvent needs a type", self.dead_letter(server)["lineage"]["reason"])
        self.assertEqual(receiver.came, [])

    def test_the_body_can_be_the_payload(self):
        _, text = self.one_request(", body: payload")
        self.assertEqual(json.loads(text), {"order": "o1"})

    def test_the_body_can_be_the_envelope_under_any_guarantee(self):
        _, text = self.one_request(", body: envelope", "    delivery: {guarantee: at-least-once}")
        self.assertEqual(json.loads(text)["data"], {"order": "o1"})


class Answers(DeliveryTest):
    def test_410_disables_the_endpoint_and_keeps_its_records(self):
        gone, living = self.endpoint(), self.endpoint()
        gone.hook = lambda _: 410
        config = self.workflow(gone.url, more="    delivery: {retries: {maxAttempts: 1}}") + (
            "  - id: other\n    source: {type: stream, stream: orders}\n"
            f"    endpoint: {{url: \"{living.url}\"}}\n")
        server = self.serve(config)
        self.publish(server, "o1")
        server.wait_for_log("the endpoint is disabled: HTTP 410; nothing is sent to it until the "
                            "workflow is paused and resumed or the process starts again, and its "
                            "records wait")
        self.publish(server, "o2", "o3")
        self.arrives(living, "o1", "o2", "o3")
        self.assertEqual(len(gone.came), 1)
        gone.hook = None
        server.restart()
        self.arrives(gone, "o1", "o2", "o3")
        self.assertEqual(self.dead_letters(server), [])

    def test_a_status_means_what_is_declared(self):
        receiver = self.endpoint()
        statuses = {"there": 409, "wrong": 422, "late": 404}

        def hook(request):
            order = json.loads(request[1])["data"]["order"]
            return statuses.pop(order, 200) if order == "late" else statuses.get(order, 200)
        receiver.hook = hook
        server = self.serve(self.workflow(
            receiver.url, ", onStatus: {409: delivered, 404: retry, 4xx: dead-letter}",
            "    delivery: {retries: {maxAttempts: 3, backoffMs: [10]}}"))
        # The last of the group is sent when every one before it is settled for good.
        self.publish(server, "there", "wrong", "late", "o1", group="customer-1")
        self.arrives(receiver, "late", "o1")
        self.assertEqual([dead["id"] for dead in self.dead_letters(server)], ["wrong"])
        orders = [json.loads(body)["data"]["order"] for _, body in receiver.came]
        self.assertEqual(orders, ["there", "wrong", "late", "late", "o1"])

    def test_retry_after_is_obeyed_by_all_records_of_the_endpoint(self):
        receiver = self.endpoint()
        at = []

        def hook(_):
            at.append(time.monotonic())
            return (429, {"Retry-After": "2"}, b"") if len(at) == 1 else 200
        receiver.hook = hook
        server = self.serve(self.workflow(
            receiver.url, ", concurrency: 1",
            "    delivery: {retries: {maxAttempts: 3, backoffMs: [10]}}"))
        self.publish(server, *(f"o{n}" for n in range(5)))
        self.arrives(receiver, *(f"o{n}" for n in range(5)))
        self.assertGreaterEqual(at[1] - at[0], 1.9)
        self.assertIn("the endpoint is unavailable, pausing: HTTP 429", server.text())


class Tokens(DeliveryTest):
    AUTH = (', auth: {type: oauth2, tokenUrl: "%s", clientId: "shop:1", clientSecret: '
            '"${env:CLIENT_SECRET}", scope: "orders write"}')

    def setUp(self):
        super().setUp()
        self.asked = []
        self.issuer = self.endpoint()
        self.issuer.hook = self.issue
        self.refuses = False
        self.receiver = self.endpoint()
        self.valid = None
        self.receiver.hook = self.receive

    def issue(self, request):
        head, body = request
        if self.refuses:
            return 401, {}, b'{"error":"invalid_client"}'
        self.asked.append((head["Authorization"], urllib.parse.parse_qs(body.decode())))
        self.valid = f"t{len(self.asked)}"
        told = {"access_token": self.valid, "token_type": "Bearer", "expires_in": 3600}
        return 200, {"Content-Type": "application/json"}, json.dumps(told).encode()

    def receive(self, request):
        return 200 if request[0]["Authorization"] == f"Bearer {self.valid}" else 401

    def start(self):
        return self.serve(self.workflow(
            self.receiver.url, self.AUTH % self.issuer.url,
            "    delivery: {retries: {maxAttempts: 1}}"), {"CLIENT_SECRET": "s3cret"})

    def test_one_token_serves_many_records_until_it_is_refused(self):
        server = self.start()
        orders = [f"o{n}" for n in range(30)]
        self.publish(server, *orders)
        self.arrives(self.receiver, *orders)
        self.assertEqual(len(self.asked), 1)
        self.assertEqual(self.asked[0][0],
                         "Basic " + base64.b64encode(b"shop%3A1:s3cret").decode())
        self.assertEqual(self.asked[0][1],
                         {"grant_type": ["client_credentials"], "scope": ["orders write"]})
        self.valid = "another"  # The first one ends before its time.
        self.publish(server, "late")
        self.arrives(self.receiver, "late")
        self.assertEqual(len(self.asked), 2)
        self.assertEqual(self.dead_letters(server), [])
        for secret in ("s3cret", "Bearer"):
            self.assertNotIn(secret, server.text())

    def test_without_a_token_records_wait_and_no_attempt_counts(self):
        self.refuses = True
        server = self.start()
        self.publish(server, "o1", "o2")
        server.wait_for_log("the endpoint is unavailable, pausing: access token: HTTP 401 "
                            "invalid_client")
        self.assertEqual(self.receiver.came, [])

        def told():
            return server.call("GET", "/workflows/erp").json
        wait_for(lambda: told()["state"] == "waiting", lambda: f"a wait; it is {told()}")
        self.assertIn("access token: HTTP 401", told()["reason"])
        self.assertRegex(told()["since"], r"^20\d\d-.*Z$")
        self.refuses = False
        self.arrives(self.receiver, "o1", "o2")
        wait_for(lambda: told()["state"] == "running", lambda: f"it to run; it is {told()}")
        self.assertEqual(self.dead_letters(server), [])


if __name__ == "__main__":
    DeliveryTest.HAPAX, _ = arguments()
    unittest.main()
