"""Events that are posted to a workflow: durable when they are answered, and delivered once."""

import json
import unittest

import delivering
import running
from running import jwt, wait_for

running.arguments()

EVENTS = "/workflows/shop/events"


def workflow(url, more=""):
    return f"""
workflows:
  - id: shop
    source: {{type: http}}
    endpoint: {{url: "{url}"}}
{more}
"""


class Posting(delivering.DeliveryTest):
    def delivered(self, endpoint):
        with endpoint.lock:
            return [json.loads(body) for _, body in endpoint.got]

    def arrives(self, endpoint, count):
        wait_for(lambda: len(self.delivered(endpoint)) >= count,
                 lambda: f"{count} events at the endpoint, which has {self.delivered(endpoint)}")

    def test_an_event_arrives_with_its_type_its_headers_and_the_key_of_its_id(self):
        endpoint = self.endpoint()
        server = self.serve(workflow(endpoint.url))
        answer = server.call("POST", EVENTS, {
            "id": "order-17", "type": "OrderCreated", "key": "ann", "payload": {"total": 1.10},
            "headers": {"traceparent": "00-ab-cd-01", "tracestate": "rojo=00f0,congo=t61;x",
                        "X-Line": "a\r\nX-Forged: 1"}})
        self.assertEqual((answer.status, answer.json["verdict"]), (201, "fresh"))
        self.arrives(endpoint, 1)
        head, body = endpoint.got[0]
        told = json.loads(body)
        self.assertEqual((told["eventType"], told["data"]), ("OrderCreated", {"total": 1.1}))
        self.assertEqual(head["traceparent"], "00-ab-cd-01")
        self.assertEqual(head["tracestate"], "rojo=00f0,congo=t61;x")
        self.assertEqual(head["X-Line"], "a%0D%0AX-Forged:%201")
        self.assertNotIn("X-Forged", head)
        # printf '11:hapax-key-1,4:http,0:,4:shop,8:order-17,0:,' | sha256sum
        self.assertEqual(head["webhook-id"], told["idempotencyKey"])
        self.assertEqual(told["idempotencyKey"],
                         "d969ba80f1ae0ce75b9bc4f2b0066d974855abff4245156c3f5f65c343cbd59a")

    def test_an_event_that_comes_again_is_a_duplicate_and_another_one_a_conflict(self):
        endpoint = self.endpoint()
        server = self.serve(workflow(endpoint.url))
        event = {"id": "e1", "payload": {"n": 1}}
        first = server.call("POST", EVENTS, event)
        again = server.call("POST", EVENTS, event)
        self.assertEqual((first.status, again.status), (201, 200))
        self.assertEqual(again.json["verdict"], "duplicate")
        self.assertEqual(again.json["sequence"], first.json["sequence"])
        other = server.call("POST", EVENTS, {**event, "payload": {"n": 2}})
        self.assertEqual((other.status, other.json["title"]), (422, "conflict"))
        server.call("POST", EVENTS, {"id": "e2", "payload": {"n": 2}})
        self.arrives(endpoint, 2)
        self.assertEqual(sorted(each["data"]["n"] for each in self.delivered(endpoint)), [1, 2])

    def test_many_events_in_one_request(self):
        endpoint = self.endpoint()
        server = self.serve(workflow(endpoint.url))
        events = [{"id": f"e{n}", "key": "one", "payload": {"n": n}} for n in range(5)]
        answer = server.call("POST", EVENTS, {"events": events[:2]})
        self.assertEqual([each["verdict"] for each in answer.json["verdicts"]], ["fresh"] * 2)
        answer = server.call("POST", EVENTS, events[1:4])
        self.assertEqual([each["verdict"] for each in answer.json["verdicts"]],
                         ["duplicate", "fresh", "fresh"])
        lines = b"".join(json.dumps(each).encode() + b"\n" for each in events[3:])
        answer = server.call("POST", EVENTS, lines, {"Content-Type": "application/x-ndjson"})
        self.assertEqual([each["verdict"] for each in answer.json["verdicts"]],
                         ["duplicate", "fresh"])
        self.arrives(endpoint, 5)
        self.assertEqual([each["data"]["n"] for each in self.delivered(endpoint)],
                         list(range(5)))

    def test_what_was_answered_is_delivered_after_kill_9(self):
        endpoint = self.endpoint()
        endpoint.hook = lambda _: 503
        server = self.serve(workflow(endpoint.url,
                                     "    delivery: {retries: {maxAttempts: 50, backoffMs: 50}}"))
        for n in range(20):
            self.assertEqual(
                server.call("POST", EVENTS, {"id": f"e{n}", "payload": {"n": n}}).status, 201)
        server.kill()
        endpoint.hook = None
        server.start(f"{server.host}:{server.port}", ":".join(server.resp))
        again = server.call("POST", EVENTS, {"id": "e0", "payload": {"n": 0}})
        self.assertEqual(again.json["verdict"], "duplicate")
        wait_for(lambda: {each["data"]["n"] for each in self.delivered(endpoint)} == set(range(20)),
                 "all of them at the endpoint")

    def test_a_workflow_that_takes_no_events_says_why(self):
        server = self.serve("""
streams: [{stream: orders}]
workflows:
  - id: erp
    source: {type: stream, stream: orders}
    endpoint: {url: "http://127.0.0.1:1/in"}
  - id: later
    enabled: false
    source: {type: http}
    endpoint: {url: "http://127.0.0.1:1/in"}
""")
        event = {"id": "e1", "payload": "x"}
        for name, status, code, words in (
                ("none", 404, "HX1003", "workflow 'none' is not declared on this server"),
                ("erp", 412, "HX1012", "its source is stream 'orders'; append records there"),
                ("later", 412, "HX1012", "workflow 'later' takes no events: it is not enabled")):
            answer = server.call("POST", f"/workflows/{name}/events", event)
            self.assertEqual((answer.status, answer.json["code"]), (status, code), answer.body)
            self.assertIn(words, answer.json["detail"])

    def test_what_an_event_lacks_is_told(self):
        server = self.serve(workflow("http://127.0.0.1:1/in"))
        for body, words in (({"payload": "x"}, "id: is missing"),
                            ({"id": "e1"}, "payload: is missing"),
                            ({"id": "", "payload": "x"}, "id"),
                            ({"id": "e1", "payload": "x", "type": ""}, "type: is empty"),
                            ({"id": "e1", "payload": "x", "group": "g"},
                             "group: is not a field of this operation")):
            answer = server.call("POST", EVENTS, body)
            self.assertEqual((answer.status, answer.json["code"]), (400, "HX1001"), answer.body)
            self.assertIn(words, answer.json["detail"])

    def test_ids_are_remembered_for_the_time_of_deduplication(self):
        config = workflow("http://127.0.0.1:1/in", """
    delivery: {deduplication: {ttl: 20d}, retries: {giveUpAfter: 2d}}
    retention: {delivered: 40d}""")
        server = self.serve(config)
        settings = server.call("GET", "/streams/shop.events").json["settings"]
        day = 86400
        self.assertEqual(settings["window_s"], 20 * day)
        self.assertNotIn("retention_age_ms", settings)  # What waits stays, however long it waits.


class Figures(delivering.DeliveryTest):
    def series(self, server, name):
        page = server.call("GET", "/metrics").body.decode()
        found = [line for line in page.splitlines() if line.startswith(name + "{")]
        return {line.rsplit(" ", 1)[0].removeprefix(name): float(line.rsplit(" ", 1)[1])
                for line in found}

    def test_what_becomes_of_records_is_counted_by_workflow_and_endpoint(self):
        endpoint = self.endpoint()
        failed = set()

        def hook(request):
            data = json.loads(request[1])["data"]
            if data == "poison":
                return 422
            if data == "slow" and "slow" not in failed:
                failed.add("slow")
                return 500
            return 200
        endpoint.hook = hook
        server = self.serve(workflow(
            endpoint.url, "    delivery: {retries: {maxAttempts: 2, backoffMs: [10]}}"))
        for payload in ("good", "slow", "poison"):
            server.call("POST", EVENTS, {"id": payload, "payload": json.dumps(payload)})
        mine = '{workflow="shop",endpoint=""}'
        expected = {"attempts": 5, "delivered": 2, "retries": 2, "dead_letters": 1, "unknown": 0,
                    "repeats": 2}

        def counted():
            return {name: self.series(server, f"hapax_delivery_{name}_total").get(mine)
                    for name in expected}
        wait_for(lambda: counted() == expected, lambda: f"{expected}; there is {counted()}")
        took = self.series(server, "hapax_delivery_duration_seconds_count")
        self.assertEqual(took[mine], 2)
        buckets = self.series(server, "hapax_delivery_duration_seconds_bucket")
        self.assertEqual(buckets['{workflow="shop",endpoint="",le="+Inf"}'], 2)

    def test_endpoints_beyond_the_limit_are_summed(self):
        endpoint = self.endpoint()
        endpoints = "".join(f"      - {{name: e{i}, url: '{endpoint.url}/{i}'}}\n"
                            for i in range(5))
        server = self.serve("metrics: {endpoints_max: 2}\nworkflows:\n  - id: shop\n"
                            "    source: {type: http}\n    endpoints:\n" + endpoints)
        server.call("POST", EVENTS, {"id": "e1", "payload": "1"})
        name = "hapax_delivery_delivered_total"
        mine = ['{workflow="shop",endpoint="%s"}' % each for each in ("e0", "e1", "(others)")]
        wait_for(lambda: self.series(server, name) == dict(zip(mine, (1, 1, 3))),
                 lambda: f"two of five and their sum; there is {self.series(server, name)}")


class Tenants(running.SignedInTest):
    def test_each_tenant_posts_to_its_own_workflows_and_needs_the_right_to_produce(self):
        server = self.serve(self.AUTH + workflow("http://127.0.0.1:1/in", "    tenant: acme"))
        event = {"id": "e1", "payload": "x"}
        for token, status in ((jwt("acme", ("produce",)), 201), (jwt("acme", ("consume",)), 403),
                              (jwt("beta", ("produce",)), 404)):
            answer = server.call("POST", EVENTS, event, token=token)
            self.assertEqual(answer.status, status, answer.body)


if __name__ == "__main__":
    unittest.main(verbosity=2)
