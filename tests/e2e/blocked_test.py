"""Keys of workflows that wait for a decision, as `hapax serve` and `hapax blocked` have them."""

import json
import subprocess
import unittest

from delivering import DeliveryTest
from running import SignedInTest, arguments, jwt, wait_for

arguments()


class BlockedTest(DeliveryTest):
    def flow(self, url, on_failure="onFailure: block", more=""):
        return f"""
streams: [{{stream: orders}}]
workflows:
  - id: erp
    source: {{type: stream, stream: orders}}
    endpoint: {{url: "{url}"}}
    ordering: {{key: record, {on_failure}}}
    delivery: {{retries: {{maxAttempts: 2, backoffMs: [10]}}}}
{more}
"""

    def poisoned(self):
        """An endpoint that refuses what is in its `bad`."""
        endpoint = self.endpoint()
        endpoint.bad = {"a1"}
        endpoint.hook = lambda request: (
            422 if json.loads(request[1])["data"]["order"] in endpoint.bad else 200)
        return endpoint

    def blocked(self, server):
        status, _, told = server.call("GET", "/api/v1/workflows/erp/blocked")
        self.assertEqual(status, 200, told)
        return told["blocked"]

    def waits(self, server, key="k"):
        wait_for(lambda: [each["key"] for each in self.blocked(server)] == [key],
                 lambda: f"key {key} to be blocked; blocked is {self.blocked(server)}")
        return self.blocked(server)[0]

    def decide(self, server, expected=200, **body):
        status, _, told = server.call("POST", "/api/v1/workflows/erp/blocked", body)
        self.assertEqual(status, expected, told)
        return told

    def test_a_key_waits_over_a_kill_until_somebody_decides(self):
        endpoint = self.poisoned()
        server = self.serve(self.flow(endpoint.url))
        self.publish(server, "a1", "a2", group="k")
        self.publish(server, "b1", group="m")
        self.arrives(endpoint, "b1")
        seen = self.waits(server)
        self.assertEqual((seen["stream"], seen["sequence"], seen["attempts"]), ("orders", 1, 2))
        self.assertEqual(seen["until_ms"] - seen["since_ms"], 30 * 86_400_000)
        self.assertIn("HTTP 422", seen["reason"])
        server.restart()
        self.publish(server, "b2", group="m")
        self.arrives(endpoint, "b2")
        self.assertEqual(self.waits(server), seen)
        self.assertEqual(self.dead_letters(server), [])
        endpoint.bad.clear()
        self.decide(server, key="k", decision="retry")
        self.arrives(endpoint, "a2")
        self.assertEqual(self.orders(endpoint), ["b1", "b2", "a1", "a2"])
        self.assertEqual(self.blocked(server), [])
        heads = {json.loads(body)["data"]["order"]: head for head, body in endpoint.got}
        self.assertEqual(heads["a1"]["hapax-replay"], "1")
        self.assertIsNone(heads["a2"]["hapax-replay"])

    def test_what_is_parked_is_a_dead_letter_and_what_is_dropped_is_gone(self):
        endpoint = self.poisoned()
        endpoint.bad = {"a1", "a2"}
        server = self.serve(self.flow(endpoint.url))
        self.publish(server, "a1", "a2", "a3", group="k")
        self.waits(server)
        self.decide(server, key="k", decision="park", reason="wrong address")
        dead = self.dead_letter(server)
        self.assertEqual(dead["id"], "a1")
        self.assertIn("parked by anybody: wrong address", dead["lineage"]["reason"])
        wait_for(lambda: [each["sequence"] for each in self.blocked(server)] == [2],
                 "the next one to block")
        problem = self.decide(server, 400, key="k", decision="drop")
        self.assertIn("say why the record is dropped", problem["detail"])
        self.decide(server, key="k", decision="drop", reason="sent by hand")
        self.arrives(endpoint, "a3")
        self.assertEqual(self.orders(endpoint), ["a3"])
        self.assertEqual(len(self.dead_letters(server)), 1)
        problem = self.decide(server, 404, key="k", decision="retry")
        self.assertIn("nothing blocks key 'k' of workflow 'erp'", problem["detail"])
        for body, what in (({"key": "k", "decision": "wait"}, "expected retry, park, drop"),
                           ({"decision": "retry"}, "one of key and key_base64"),
                           ({"key": "k", "decision": "retry", "x": "y"}, "unknown member")):
            self.assertIn(what, self.decide(server, 400, **body)["detail"])

    def test_after_some_time_a_key_goes_on_by_itself(self):
        endpoint = self.poisoned()
        server = self.serve(self.flow(endpoint.url, "onFailure: block-for, blockFor: 2s"))
        self.publish(server, "a1", "a2", group="k")
        self.arrives(endpoint, "a2")
        self.assertEqual(self.dead_letter(server)["id"], "a1")
        self.assertEqual(self.blocked(server), [])

    def test_a_record_that_its_transform_fails_over_blocks_its_key(self):
        endpoint = self.endpoint()
        server = self.serve(self.flow(endpoint.url,
                                      more="    transform: {jq: '{order: (.order | keys)}'}"))
        self.publish(server, "a1", "a2", group="k")
        seen = self.waits(server)
        self.assertEqual((seen["stream"], seen["sequence"]), ("orders", 1))
        self.decide(server, key="k", decision="park")
        wait_for(lambda: [each["sequence"] for each in self.blocked(server)] == [2],
                 "the next one to block")
        self.assertEqual(endpoint.came, [])

    def refused(self, *words):
        done = subprocess.run([self.HAPAX, "blocked", *words], capture_output=True, timeout=60,
                              cwd=self.folder, check=False)
        return done.returncode

    def test_the_command_lists_and_decides(self):
        endpoint = self.poisoned()
        endpoint.bad = {"a1", "b1", "c1"}
        server = self.serve(self.flow(endpoint.url))
        where = ("--url", server.url)
        self.assertEqual(self.hapax("blocked", "list", "erp", *where), "no blocked keys")
        for each in "abc":
            self.publish(server, f"{each}1", group=each)
        wait_for(lambda: len(self.blocked(server)) == 3, "three blocked keys")
        listed = self.hapax("blocked", "list", "erp", *where).splitlines()
        self.assertEqual(sorted(line.split()[:3] for line in listed[1:]),
                         [[each, "orders", str(at)] for at, each in enumerate("abc", 1)])
        told = json.loads(self.hapax("blocked", "list", "erp", "--json", *where))
        self.assertEqual((len(told["blocked"]), told["more"]), (3, False))
        self.assertEqual(self.hapax("blocked", "drop", "erp", "a", "--reason", "by hand", *where),
                         "a: drop record 1 of stream 'orders'")
        self.assertEqual(self.refused("park", "erp", "none", *where), 66)
        self.assertEqual(self.refused("list", "none", *where), 66)
        self.assertEqual(self.refused("retry", "erp", *where), 64)
        self.assertEqual(self.refused("drop", "erp", "b", *where), 64)
        endpoint.bad.clear()
        self.hapax("blocked", "retry", "erp", "--all", *where)
        self.arrives(endpoint, "b1", "c1")
        self.assertEqual(self.blocked(server), [])


class Rights(SignedInTest):
    def test_only_administrators_of_the_tenant_decide(self):
        server = self.serve(self.AUTH + """
workflows:
  - id: shop
    tenant: acme
    source: {type: http}
    endpoint: {url: "http://127.0.0.1:1/in"}
    ordering: {onFailure: block}
""")
        decision = {"key": "k", "decision": "retry"}
        for tenant, role, method, status in (("acme", "produce", "GET", 403),
                                             ("acme", "consume", "GET", 200),
                                             ("acme", "consume", "POST", 403),
                                             ("acme", "admin", "POST", 404),
                                             ("beta", "admin", "GET", 404)):
            answer = server.call(method, "/workflows/shop/blocked",
                                 decision if method == "POST" else None,
                                 token=jwt(tenant, (role,)))
            self.assertEqual(answer.status, status, (tenant, role, answer.body))


if __name__ == "__main__":
    unittest.main(verbosity=2)
