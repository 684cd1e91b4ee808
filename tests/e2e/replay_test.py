"""hapax replay: what was delivered is sent again, once for each replay."""

import json
import subprocess
import unittest

from delivering import DeliveryTest
from running import SignedInTest, arguments, jwt, wait_for

arguments()


class ReplayTest(DeliveryTest):
    def run_hapax(self, *words, code=0):
        done = subprocess.run([self.HAPAX, *words], capture_output=True, text=True, timeout=60,
                              check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def replay(self, server, *words, code=0):
        return self.run_hapax("replay", "erp", *words, "--url", server.url, code=code)

    def replay_api(self, server, expected=200, **body):
        status, _, told = server.call("POST", "/api/v1/workflows/erp/replay", body)
        self.assertEqual(status, expected, told)
        return told

    def settled(self, server, count):
        """So many deliveries are in the log of attempts."""
        def logged():
            path = "/api/v1/workflows/erp/attempts?outcome=delivered&max=1000"
            return server.call("GET", path)[2]["attempts"]
        wait_for(lambda: len(logged()) >= count,
                 lambda: f"{count} deliveries in the log, which has {len(logged())}")
        self.assertEqual(len(logged()), count)

    def requests(self, endpoint):
        """(order, replay) of each request that was answered with success."""
        with endpoint.lock:
            return [(json.loads(body)["data"]["order"], head["hapax-replay"])
                    for head, body in endpoint.got]

    def delivered(self, more="", count=5, group=None):
        endpoint = self.endpoint()
        server = self.serve(self.workflow(endpoint.url, more=more))
        names = [f"o{n}" for n in range(count)]
        self.publish(server, *names, group=group)
        self.arrives(endpoint, *names)
        self.settled(server, count)
        return endpoint, server, names

    def test_each_record_is_sent_again_under_its_key_in_order(self):
        endpoint, server, names = self.delivered(group="k")
        self.assertIn("5 deliveries would be sent again", self.replay(server, "--since", "1h",
                                                                      "--dry-run"))
        self.assertEqual(len(endpoint.came), 5)
        self.assertIn("5 deliveries are sent again, 0 are gone",
                      self.replay(server, "--since", "1h", "--id", "lost-state"))
        self.settled(server, 10)
        self.assertEqual(self.requests(endpoint)[5:], [(name, "1") for name in names])
        keys = [head["webhook-id"] for head, _ in endpoint.got]
        self.assertEqual(keys[:5], keys[5:])
        # Again under the same name: it is done, and nothing is sent.
        told = self.replay(server, "--id", "lost-state")
        self.assertIn("5 deliveries are sent again", told)
        self.replay(server, "--since", "1h", "--id", "other", "--until", "1h")
        self.publish(server, "last", group="k")
        self.arrives(endpoint, "last")
        self.assertEqual(len(endpoint.came), 11)
        table = self.run_hapax("attempts", "erp", "o1", "--json", "--url", server.url)
        self.assertEqual([json.loads(line).get("replay", 0) for line in table.splitlines()], [0, 1])

    def test_trace_tells_where_a_replayed_record_came_from(self):
        endpoint = self.endpoint()
        endpoint.hook = lambda _: 422
        more = "    delivery: {retries: {maxAttempts: 1}}"
        server = self.serve(self.workflow(endpoint.url, more=more))
        self.publish(server, "o1")
        self.dead_letter(server)
        endpoint.hook = None
        self.run_hapax("dead", "replay", "erp", "--all", "--url", server.url)
        self.settled(server, 1)
        self.replay(server, "--since", "1h", "--id", "r1")
        self.settled(server, 2)
        self.assertEqual(self.requests(endpoint), [("o1", "1"), ("o1", "2")])
        life = self.run_hapax("trace", "o1", "--url", server.url)
        told = [life.find(text) for text in (
            "workflow erp sends it, attempt 1\n",
            "put back into stream orders as sequence 2: replay 1 of record 1 of stream orders "
            "(HTTP 422", "workflow erp sends it, attempt 1, replay 1",
            "put back into stream orders as sequence 3: replay 2 of record 1 of stream orders "
            "(delivered, and replayed as r1)", "workflow erp sends it, attempt 1, replay 2")]
        self.assertNotIn(-1, told, life)
        self.assertEqual(told, sorted(told), life)

    # Z32, Z33
    def test_a_killed_replay_resumes_and_doubles_nothing(self):
        endpoint, server, names = self.delivered(count=40)
        begun = subprocess.Popen([self.HAPAX, "replay", "erp", "--since", "1h", "--id", "r1",
                                  "--rate", "2/s", "--url", server.url],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_for(lambda: len(endpoint.came) >= 42, "some to be sent again")
        begun.kill()
        begun.communicate()
        server.restart()
        problem = self.replay(server, "--since", "1h", "--id", "r2", code=73)
        self.assertIn("replay r1 of workflow 'erp' is not done", problem)
        self.assertIn("40 deliveries are sent again", self.replay(server, "--id", "r1"))
        self.settled(server, 80)
        # The server was killed, so what it was just sending may arrive twice, under its key.
        again = {order for order, replay in self.requests(endpoint) if replay == "1"}
        self.assertEqual(again, set(names))
        told = server.call("GET", "/api/v1/streams/orders/records?max=1000")[2]["records"]
        self.assertEqual(sorted(each["lineage"]["sequence"] for each in told if "lineage" in each),
                         list(range(1, 41)))
        self.replay(server, "--since", "1h", "--id", "r2", "--until", "1h")

    def test_a_piece_whose_answer_was_lost_is_repeated_without_doubling(self):
        endpoint, server, names = self.delivered()
        first = self.replay_api(server, id="r1", since_ms=0, max=2)
        self.assertEqual((first["replayed"], first["done"]), (2, False))
        while not self.replay_api(server, id="r1", since_ms=0, max=2)["done"]:
            pass
        for _ in range(3):
            self.assertTrue(self.replay_api(server, id="r1", max=100)["done"])
        self.settled(server, 10)
        self.assertEqual(sorted(self.requests(endpoint)[5:]), [(name, "1") for name in names])

    def test_a_later_replay_sends_each_record_once(self):
        """The log tells of each record twice by then."""
        endpoint, server, names = self.delivered()
        self.replay(server, "--since", "1h")
        self.settled(server, 10)
        self.replay(server, "--since", "1h")
        self.settled(server, 15)
        self.assertEqual(sorted(order for order, _ in self.requests(endpoint)[10:]), names)

    def claims_do_not_swallow(self, guarantee):
        endpoint, server, names = self.delivered(f"    delivery: {guarantee}")
        self.replay(server, "--since", "1h", "--id", "r1")
        self.settled(server, 10)
        self.assertEqual(sorted(self.requests(endpoint)[5:]), [(name, "1") for name in names])

    def test_what_was_delivered_at_most_once_is_sent_again_because_somebody_wants_it(self):
        self.claims_do_not_swallow("{guarantee: at-most-once, retries: {maxAttempts: 1}}")

    def test_what_was_delivered_exactly_once_is_sent_again_because_somebody_wants_it(self):
        self.claims_do_not_swallow("{guarantee: exactly-once}")

    def test_of_several_endpoints_one_may_be_meant(self):
        crm, search = self.endpoint(), self.endpoint()
        server = self.serve(f"""
streams: [{{stream: orders}}]
workflows:
  - id: erp
    source: {{type: stream, stream: orders}}
    endpoints:
      - {{name: crm, url: "{crm.url}"}}
      - {{name: search, url: "{search.url}"}}
""")
        self.publish(server, "o1", "o2", group="k")
        self.arrives(crm, "o1", "o2")
        self.arrives(search, "o1", "o2")
        self.settled(server, 4)
        self.replay(server, "--since", "1h", "--endpoint", "crm")
        self.settled(server, 6)
        self.assertEqual(self.requests(crm)[2:], [("o1", "1"), ("o2", "1")])
        self.assertEqual(len(search.came), 2)

    # Z34
    def test_what_is_gone_is_told(self):
        endpoint, server, _ = self.delivered(count=3)
        status, _, told = server.call("POST", "/api/v1/streams/orders/trim", {"before": 3})
        self.assertEqual(status, 200, told)
        key = next(head["webhook-id"] for head, body in endpoint.came
                   if json.loads(body)["data"]["order"] == "o0")
        told = self.replay(server, "--since", "1h")
        self.assertIn(f"the payload of {key} (sequence 1) is gone", told)
        self.assertIn("1 deliveries are sent again, 2 are gone", told)
        self.settled(server, 4)

    def test_what_cannot_be_replayed_is_refused(self):
        _, server, _ = self.delivered(count=1)
        self.assertIn("say since when", self.replay(server, code=64))
        self.replay(server, "--id", "nobody", code=66)
        self.replay_api(server, 400, since_ms=0)
        self.replay_api(server, 400, id="a b", since_ms=0)
        self.replay_api(server, 400, id="r", since_ms="yesterday")
        self.replay_api(server, 400, id="r", colour="red")
        self.replay_api(server, id="r1", since_ms=5, max=1)
        self.assertIn("began with another time",
                      self.replay_api(server, 412, id="r1", since_ms=6)["detail"])

    def test_a_replay_can_be_cancelled(self):
        _, server, _ = self.delivered()
        self.replay_api(server, id="r1", since_ms=0, max=2)
        self.assertIn("2 deliveries were put back", self.replay(server, "--id", "r1", "--cancel"))
        self.assertTrue(self.replay_api(server, id="r1", max=2)["done"])
        self.settled(server, 7)
        self.replay_api(server, id="r2", since_ms=0, max=100)


class ReplayRights(SignedInTest):
    def test_only_administrators_of_the_tenant_replay(self):
        server = self.serve(self.AUTH + """
workflows:
  - id: shop
    tenant: acme
    source: {type: http}
    endpoint: {url: "http://127.0.0.1:1/in"}
""")
        body = {"id": "r1", "since_ms": 0}
        for tenant, role, status in (("acme", "consume", 403), ("beta", "admin", 404),
                                     ("acme", "admin", 200)):
            answer = server.call("POST", "/workflows/shop/replay", body,
                                 token=jwt(tenant, (role,)))
            self.assertEqual(answer.status, status, (tenant, role, answer.body))


if __name__ == "__main__":
    unittest.main(verbosity=2)
