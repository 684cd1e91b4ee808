"""Workflows over the API and the command: how they do, pause and resume."""

import json
import unittest

import delivering
import running
from running import jwt, wait_for

running.arguments()


def declared(url, more=""):
    return f"""
workflows:
  - id: shop
    source: {{type: http}}
    endpoint: {{url: "{url}", auth: {{type: bearer, token: "${{env:SHOP_TOKEN}}"}}}}
{more}
  - id: later
    source: {{type: stream, stream: orders}}
"""


TOKEN = {"SHOP_TOKEN": "t0k-secret"}


class State(delivering.DeliveryTest):
    def post(self, server, *events):
        for each in events:
            answer = server.call("POST", "/workflows/shop/events",
                                 {"id": each, "payload": json.dumps({"order": each})})
            self.assertEqual(answer.status, 201, answer.body)

    def shop(self, server):
        return server.call("GET", "/workflows/shop").json

    def test_a_workflow_tells_how_it_does(self):
        endpoint = self.endpoint()
        endpoint.hook = lambda request: 422 if b"poison" in request[1] else 200
        server = self.serve(declared(endpoint.url,
                                     "    delivery: {retries: {maxAttempts: 2, backoffMs: [10]}}"),
                            TOKEN)
        self.post(server, "e1", "poison")
        wait_for(lambda: self.shop(server)["dead_letters"] == 1,
                 lambda: f"a dead letter; there is {self.shop(server)}")
        wait_for(lambda: self.shop(server)["waiting"] == 0, "nothing to wait")
        told = self.shop(server)
        self.assertEqual((told["id"], told["state"], told["in_flight"]), ("shop", "running", 0))
        figures = told["endpoints"][0]
        self.assertEqual([figures[name] for name in ("attempts", "delivered", "retries",
                                                     "dead_letters")], [3, 1, 1, 1])
        self.assertIn("HTTP 422", figures["last_error"])
        # Of three attempts one failed and was repeated, and that one was under a key sent before.
        self.assertEqual([round(figures[name], 3) for name in ("retry_rate", "duplicate_rate")],
                         [0.333, 0.333])
        self.assertEqual((figures["repeats"], figures["disabled"]), (1, False))
        latency = [figures["latency_ms"][name] for name in ("p50", "p95", "p99")]
        self.assertEqual(latency, sorted(latency))
        self.assertGreater(latency[0], 0)
        self.assertEqual(told["declaration"]["endpoint"]["url"], endpoint.url)
        self.assertNotIn("t0k-secret", json.dumps(told))
        both = server.call("GET", "/workflows").json["workflows"]
        self.assertEqual([(each["id"], each["state"]) for each in both],
                         [("later", "not_running"), ("shop", "running")])
        self.assertIn("is a draft", both[0]["reason"])
        self.assertNotIn("declaration", both[0])

    def test_a_paused_workflow_sends_nothing_until_it_is_resumed(self):
        endpoint = self.endpoint()
        server = self.serve(declared(endpoint.url), TOKEN)
        self.post(server, "e1")
        self.arrives(endpoint, "e1")
        for _ in range(2):
            answer = server.call("POST", "/workflows/shop/pause")
            self.assertEqual((answer.status, answer.json["state"]), (200, "paused"))
        server.wait_for_log("is paused")
        self.post(server, "e2")
        server.restart()
        server.wait_for_log("is paused", 2)
        self.post(server, "e3")
        told = self.shop(server)
        self.assertEqual((told["state"], told["waiting"]), ("paused", 2))
        self.assertEqual(self.orders(endpoint), ["e1"])
        answer = server.call("POST", "/workflows/shop/resume")
        self.assertEqual((answer.status, answer.json["state"]), (200, "running"))
        self.arrives(endpoint, "e2", "e3")

    def test_one_that_does_not_run_is_not_paused(self):
        server = self.serve(declared("http://127.0.0.1:1/in"), TOKEN)
        for name, status, words in (("later", 412, "cannot be paused or resumed: it is a draft"),
                                    ("none", 404, "workflow 'none' is not declared")):
            answer = server.call("POST", f"/workflows/{name}/pause")
            self.assertEqual(answer.status, status, answer.body)
            self.assertIn(words, answer.json["detail"])


    def test_the_command_says_and_does_the_same(self):
        server = self.serve(declared("http://127.0.0.1:1/in"), TOKEN)
        where = ("--url", server.url)
        told = self.hapax("workflows", "list", *where).splitlines()
        self.assertEqual([line.split()[:2] for line in told[1:]],
                         [["later", "not_running"], ["shop", "running"]])
        self.assertIn("is a draft", told[1])
        self.assertEqual(self.hapax("workflows", "pause", "shop", *where), "shop: paused")
        shown = json.loads(self.hapax("workflows", "show", "shop", "--json", *where))
        self.assertEqual(shown["state"], "paused")
        self.assertIn("${env:SHOP_TOKEN}", json.dumps(shown["declaration"]))
        self.assertEqual(self.hapax("workflows", "resume", "shop", *where), "shop: running")
        self.assertIn("(the only one)", self.hapax("workflows", "show", "shop", *where))


class Rights(running.SignedInTest):
    def test_each_tenant_sees_its_own_and_only_administrators_pause(self):
        server = self.serve(self.AUTH + declared("http://127.0.0.1:1/in", "    tenant: acme"),
                            TOKEN)
        for tenant, role, path, method, status in (
                ("acme", "produce", "/workflows", "GET", 200),
                ("acme", "produce", "/workflows/shop", "GET", 403),
                ("acme", "produce", "/workflows/shop/pause", "POST", 403),
                ("acme", "produce", "/workflows/shop/attempts", "GET", 403),
                ("acme", "admin", "/workflows/shop/attempts", "GET", 200),
                ("beta", "admin", "/workflows/shop/attempts", "GET", 404),
                ("acme", "admin", "/workflows/shop/pause", "POST", 200),
                ("beta", "admin", "/workflows/shop/pause", "POST", 404)):
            answer = server.call(method, path, token=jwt(tenant, (role,)))
            self.assertEqual(answer.status, status, (tenant, role, path, answer.body))
        mine = server.call("GET", "/workflows", token=jwt("acme", ("admin",))).json["workflows"]
        self.assertEqual([(each["id"], each["state"]) for each in mine], [("shop", "paused")])
        others = server.call("GET", "/workflows", token=jwt("beta", ("admin",))).json
        self.assertEqual(others, {"workflows": []})
        wait_for(lambda: b'\\"act\\":\\"pause\\"' in server.call(
            "GET", "/streams/$audit/records", token=jwt("acme")).body, "a line in the audit")


if __name__ == "__main__":
    unittest.main(verbosity=2)
