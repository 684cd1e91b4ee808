"""What a workflow has not confirmed: hapax undelivered, and its route."""

import json
import subprocess
import threading
import unittest

from delivering import DeliveryTest
from running import SignedInTest, arguments, jwt, wait_for

arguments()

ONE_ATTEMPT = "    delivery: {guarantee: at-most-once, retries: {maxAttempts: 1}}"


class UndeliveredTest(DeliveryTest):
    def run_hapax(self, *words, code=0):
        done = subprocess.run([self.HAPAX, *words], capture_output=True, text=True, timeout=60,
                              check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def told(self, server, query="", expected=200):
        status, _, told = server.call("GET", f"/api/v1/workflows/erp/undelivered{query}")
        self.assertEqual(status, expected, told)
        return told

    def undelivered(self, server, query=""):
        return self.told(server, query)["undelivered"]

    def states(self, server, query=""):
        return [(each.get("id", each.get("key")), each["state"])
                for each in self.undelivered(server, query)]

    def wait_for_states(self, server, expected, query="", seconds=30):
        wait_for(lambda: self.states(server, query) == expected,
                 lambda: f"{expected}; they are {self.states(server, query)}", seconds)
        return self.undelivered(server, query)

    def holding(self, *names):
        """An endpoint that does not answer requests of these orders before it is let go."""
        endpoint = self.endpoint()
        endpoint.let_go = threading.Event()
        self.addCleanup(endpoint.let_go.set)

        def hook(request):
            if json.loads(request[1])["data"]["order"] in names:
                endpoint.let_go.wait(60)
            return 200
        endpoint.hook = hook
        return endpoint

    def test_each_record_is_told_with_where_it_is(self):
        endpoint = self.holding("a1")
        inner = endpoint.hook

        def hook(request):
            order = json.loads(request[1])["data"]["order"]
            return {"b1": 503, "c1": 422}.get(order) or inner(request)
        endpoint.hook = hook
        more = ("    delivery: {retries: {maxAttempts: 9, backoffMs: [600000]}}\n")
        server = self.serve(self.workflow(endpoint.url,
                                          ", onStatus: {422: dead-letter}", more))
        self.assertEqual(self.undelivered(server), [])
        self.publish(server, "d1")
        self.arrives(endpoint, "d1")
        self.publish(server, "a1", "a2", group="a")
        self.publish(server, "b1", "b2", group="b")
        self.publish(server, "c1")
        found = self.wait_for_states(server, [
            ("a1", "in_flight"), ("a2", "behind"), ("b1", "retry"), ("b2", "behind"),
            ("c1", "dead_letter")])
        a1, a2, b1, _, c1 = found
        self.assertEqual((a1["stream"], a1["sequence"], a1["group"]), ("orders", 2, "a"))
        self.assertEqual(a1["key"], endpoint.came[1][0]["webhook-id"])
        self.assertEqual((a2["behind"], a2["behind_blocked"], a2["attempts"]), (2, False, 0))
        self.assertEqual(b1["attempts"], 1)
        self.assertIn("HTTP 503", b1["error"])
        self.assertGreater(b1["until_ms"] - b1["since_ms"], 500_000)
        self.assertEqual(c1["stream"], "erp.dead")
        self.assertIn("HTTP 422", c1["error"])
        keys = {json.loads(body)["data"]["order"]: head["webhook-id"]
                for head, body in endpoint.came}
        self.assertEqual(c1["key"], keys["c1"])
        self.assertEqual(self.told(server, "?count=true")["counts"], {
            "waiting": 0, "in_flight": 1, "retry": 1, "behind": 2, "blocked": 0, "unknown": 0,
            "dead_letter": 1})
        endpoint.let_go.set()
        self.arrives(endpoint, "a2")
        self.wait_for_states(server, [("b1", "retry"), ("b2", "behind"), ("c1", "dead_letter")])

    def test_pages_follow_each_other_and_miss_nothing(self):
        server = self.serve(self.workflow("http://127.0.0.1:1/in", more="    enabled: false"))
        names = [f"o{n}" for n in range(25)]
        self.publish(server, *names)
        seen, query = [], ""
        while query is not None:
            told = self.told(server, f"?max=4{query}")
            self.assertLessEqual(len(told["undelivered"]), 4)
            seen += [each["id"] for each in told["undelivered"]]
            query = f"&from={told['next']}" if "next" in told else None
        self.assertEqual(seen, names)
        for wrong in ("max=0", "max=1001", "from=1", "from=x.y.z", "since_ms=soon", "colour=red",
                      "count=maybe"):
            self.assertEqual(self.told(server, f"?{wrong}", 400)["code"], "HX1001", wrong)
        self.assertEqual(self.undelivered(server, "?since_ms=4102444800000"), [])
        self.assertEqual(len(self.undelivered(server, "?since_ms=1000")), 25)
        where = ("--url", server.url)
        lines = self.run_hapax("undelivered", "erp", "--json", *where).splitlines()
        self.assertEqual([json.loads(line)["id"] for line in lines], names)
        self.assertIn("--from", self.run_hapax("undelivered", "erp", "--max", "7", *where))
        sums = json.loads(self.run_hapax("undelivered", "erp", "--count", "--json", *where))
        self.assertEqual((sums["waiting"], sums["all"]), (25, 25))
        self.assertIn("o24", self.run_hapax("undelivered", "erp", *where))
        self.assertIn("nothing is undelivered",
                      self.run_hapax("undelivered", "erp", "--since", "2100-01-01T00:00:00Z",
                                     *where))
        self.assertIn("'nobody' is not declared",
                      self.run_hapax("undelivered", "nobody", *where, code=66))

    def test_of_several_endpoints_each_delivery_is_told(self):
        slow, good = self.holding("o1"), self.endpoint()
        server = self.serve(f"""
streams: [{{stream: orders}}]
workflows:
  - id: erp
    source: {{type: stream, stream: orders}}
    endpoints:
      - {{name: crm, url: "{slow.url}"}}
      - {{name: erp, url: "{good.url}"}}
""")
        self.publish(server, "o1", group="k")
        self.publish(server, "o2", group="k")
        self.arrives(good, "o1", "o2")
        wait_for(lambda: [(each["endpoint"], each["state"]) for each in self.undelivered(server)]
                 == [("crm", "in_flight"), ("crm", "behind")],
                 lambda: f"both at crm, which are {self.undelivered(server)}")
        found = self.undelivered(server)
        self.assertEqual({(each["stream"], each["group"]) for each in found}, {("erp.outbox", "k")})
        self.assertEqual(self.undelivered(server, "?endpoint=erp"), [])
        self.assertEqual(len(self.undelivered(server, "?endpoint=crm")), 2)
        self.assertEqual(self.told(server, "?endpoint=erp&count=true")["counts"]["behind"], 0)
        slow.let_go.set()
        self.wait_for_states(server, [])

    def test_what_was_sent_at_most_once_and_not_confirmed_is_unknown_over_a_kill(self):
        """The request is under way when the process dies: nobody knows, and everybody can see."""
        endpoint = self.holding("o1")
        server = self.serve(self.workflow(endpoint.url, more=ONE_ATTEMPT))
        self.publish(server, "o1")
        wait_for(lambda: endpoint.came, "the request")
        server.restart()
        self.publish(server, "o2")
        self.arrives(endpoint, "o2")
        # The lease of the dead process ends, and then the record is a dead letter.
        self.wait_for_states(server, [("o1", "unknown")])
        wait_for(lambda: self.undelivered(server)[0]["stream"] == "erp.dead", "the dead letter")
        self.assertEqual(self.states(server), [("o1", "unknown")])
        self.assertEqual(self.told(server, "?count=true")["counts"]["unknown"], 1)
        self.assertEqual(len(endpoint.came), 2)
        table = self.run_hapax("undelivered", "erp", "--url", server.url)
        self.assertIn("unknown outcome of erp.deliveries/", table)

    def test_what_waits_behind_a_blocked_key_says_so(self):
        endpoint = self.endpoint()
        endpoint.hook = lambda _: 422
        more = ("    ordering: {onFailure: block}\n"
                "    delivery: {retries: {maxAttempts: 1}}\n")
        server = self.serve(self.workflow(endpoint.url, more=more))
        self.publish(server, "a1", "a2", group="k")
        first, second = self.wait_for_states(server, [("a1", "blocked"), ("a2", "behind")])
        self.assertEqual((second["behind"], second["behind_blocked"]), (1, True))
        self.assertIn("HTTP 422", first["error"])
        self.assertGreater(first["until_ms"], first["since_ms"])


class UndeliveredRights(SignedInTest):
    def test_each_tenant_sees_its_own(self):
        server = self.serve(self.AUTH + """
workflows:
  - id: shop
    tenant: acme
    source: {type: http}
    endpoint: {url: "http://127.0.0.1:1/in"}
""")
        event = {"id": "e1", "type": "t", "payload": "{}"}
        answer = server.call("POST", "/workflows/shop/events", event, token=jwt("acme"))
        self.assertLess(answer.status, 300, answer.body)
        for tenant, role, status in (("acme", "produce", 403), ("acme", "consume", 200),
                                     ("acme", "admin", 200), ("beta", "admin", 404)):
            answer = server.call("GET", "/workflows/shop/undelivered",
                                 token=jwt(tenant, (role,)))
            self.assertEqual(answer.status, status, (tenant, role, answer.body))
            if status == 200:
                self.assertEqual([each["id"] for each in answer.json["undelivered"]], ["e1"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
