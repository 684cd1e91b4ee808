"""hapax dead: dead letters are listed, shown, put back and dropped."""

import json
import subprocess
import unittest

from running import FolderTest, SignedInTest, arguments, jwt, wait_for

RECORDS = (("o1", "OrderPlaced", "customer-1", "HTTP 422"), ("o2", "OrderPlaced", None, "HTTP 500"),
           ("o3", "OrderPaid", "customer-2", "HTTP 422"), ("o4", "OrderPaid", None, "timed out"))


class DeadTest(FolderTest):
    def setUp(self):
        super().setUp()
        self.server = self.serve()
        self.good("PUT", "/streams/orders")
        self.good("PUT", "/streams/orders/consumers/erp",
                  {"attempts_max": 1, "dead_letters": "erp.dead"})
        self.publish_and_give_up(RECORDS)

    def good(self, method, path, body=None):
        status, _, told = self.server.call(method, path, body)
        self.assertLess(status, 300, told)
        return told

    def publish_and_give_up(self, records):
        for each, event_type, group, _ in records:
            body = {"id": each, "payload": "tea", "headers": [["event_type", event_type]]}
            if group:
                body["group"] = group
            self.good("POST", "/streams/orders/records", body)
        self.give_up({each: reason for each, _, _, reason in records})

    def receive(self):
        return self.good("POST", "/streams/orders/consumers/erp/receive", {"max": 100})["records"]

    def give_up(self, reasons):
        nacks = [{"receipt": each["receipt"], "reason": reasons[each["id"]]}
                 for each in self.receive()]
        self.good("POST", "/streams/orders/consumers/erp/nack", {"nacks": nacks})

    def dead(self, *words, code=0):
        done = subprocess.run([self.HAPAX, "dead", *words, "--url", self.server.url],
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def ids(self, *words):
        lines = self.dead("list", "erp", "--json", *words).splitlines()
        return [json.loads(line)["id"] for line in lines if line.startswith("{")]

    def test_list_by_filters(self):
        self.assertEqual(self.ids(), ["o1", "o2", "o3", "o4"])
        self.assertEqual(self.ids("--reason", "HTTP 422"), ["o1", "o3"])
        self.assertEqual(self.ids("--type", "OrderPaid"), ["o3", "o4"])
        self.assertEqual(self.ids("--type", "OrderPaid", "--reason", "HTTP"), ["o3"])
        self.assertEqual(self.ids("--group", "customer-1"), ["o1"])
        self.assertEqual(self.ids("--id", "o4"), ["o4"])
        self.assertEqual(self.ids("--since", "1h"), ["o1", "o2", "o3", "o4"])
        self.assertEqual(self.ids("--until", "1h"), [])
        self.assertEqual(self.ids("--since", "2100-01-01T00:00:00Z"), [])
        text = self.dead("list", "erp.dead")
        self.assertIn("OrderPlaced", text)
        self.assertIn("timed out", text)

    def test_show_tells_the_attempts(self):
        text = self.dead("show", "erp", "2")
        self.assertIn("o2", text)
        self.assertIn("HTTP 500", text)
        self.assertIn("tea", text)
        self.assertIn("no dead letter 9", self.dead("show", "erp", "9", code=66))

    def test_replay_by_filter_and_by_sequence(self):
        self.assertIn("2 would be put back",
                      self.dead("replay", "erp", "--reason", "HTTP 422", "--dry-run"))
        self.assertEqual(len(self.ids()), 4)
        self.assertIn("2 put back", self.dead("replay", "erp", "--reason", "HTTP 422"))
        self.assertEqual(self.ids(), ["o2", "o4"])
        self.assertIn("1 put back", self.dead("replay", "erp", "4", "--rate", "100/s"))
        self.assertEqual(self.ids(), ["o2"])
        self.assertEqual(sorted(each["id"] for each in self.receive()), ["o1", "o3", "o4"])
        told = json.loads(self.dead("replay", "erp", "--all", "--json"))
        self.assertEqual((told["replayed"], told["refused"]), (1, 0))
        self.assertIn("0 put back", self.dead("replay", "erp", "--all", code=66))

    def test_replay_asks_which(self):
        self.assertIn("say which dead letters", self.dead("replay", "erp", code=64))
        self.assertIn("say which dead letters", self.dead("replay", "erp", "1", "--all", code=64))
        self.assertIn("is not a rate", self.dead("replay", "erp", "1", "--rate", "x", code=64))
        self.assertIn("--since x is neither", self.dead("list", "erp", "--since", "x", code=64))
        self.assertIn("nobody.dead", self.dead("drop", "nobody", "--through", "1", code=66))

    def test_a_workflow_without_dead_letters_has_none(self):
        self.assertIn("no dead letters", self.dead("list", "healthy"))
        self.assertIn("0 put back", self.dead("replay", "healthy", "--all", code=66))

    def test_what_cannot_be_put_back_stays(self):
        self.good("DELETE", "/streams/orders/consumers/erp")
        self.assertIn("stays a dead letter", self.dead("replay", "erp", "1", code=1))
        self.assertEqual(len(self.ids()), 4)

    def test_drop_removes_the_oldest(self):
        self.dead("drop", "erp", "--through", "2")
        self.assertEqual(self.ids(), ["o3", "o4"])

    def many(self, count):
        """So many more dead letters; their ids."""
        names = [f"m{n}" for n in range(count)]
        body = {"records": [{"id": name, "payload": json.dumps({"total": n})}
                            for n, name in enumerate(names)]}
        self.good("POST", "/streams/orders/records", body)
        for _ in range(0, count, 100):
            self.give_up({name: "HTTP 503 busy" for name in names})
        return names

    def receive_all(self):
        every = []
        while found := self.receive():
            every += found
        return every

    def replay_begun(self, *words):
        return subprocess.Popen([self.HAPAX, "dead", "replay", "erp", *words, "--url",
                                 self.server.url], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True)

    def test_filters_by_status_and_by_a_condition_over_the_payload(self):
        self.many(5)
        self.assertEqual(self.ids("--status", "422"), ["o1", "o3"])
        self.assertEqual(self.ids("--status", "5xx"), ["o2", "m0", "m1", "m2", "m3", "m4"])
        self.assertEqual(self.ids("--status", "5xx", "--jq", ".total > 2"), ["m3", "m4"])
        self.assertIn("status: expected", self.dead("list", "erp", "--status", "99", code=64))
        self.assertIn("jq: ", self.dead("list", "erp", "--jq", ".total >", code=64))
        # What is no JSON is not meant, and that is told.
        told = self.dead("list", "erp", "--jq", ".total == 1")
        self.assertIn("the jq program failed over 4 of them", told)
        self.assertIn("m1", told)
        self.assertIn("2 would be put back",
                      self.dead("replay", "erp", "--jq", ".total > 2", "--dry-run"))
        self.assertIn("2 put back", self.dead("replay", "erp", "--status", "5xx", "--jq",
                                              ".total > 2"))
        self.assertEqual(sorted(each["id"] for each in self.receive()), ["m3", "m4"])

    def test_a_replay_that_is_killed_resumes_and_doubles_nothing(self):
        names = self.many(40)
        begun = self.replay_begun("--status", "503", "--rate", "2/s")
        wait_for(lambda: len(self.ids("--status", "503")) <= 38, "some to be put back")
        begun.kill()
        begun.communicate()
        self.assertGreater(len(self.ids("--status", "503")), 0)
        self.dead("replay", "erp", "--status", "503")
        every = self.receive_all()
        self.assertEqual(sorted(each["id"] for each in every), sorted(names))
        self.assertEqual({each["lineage"]["redrives"] for each in every}, {1})

    # Z31
    def test_two_who_replay_the_same_at_once_double_nothing(self):
        names = self.many(300)
        both = [self.replay_begun("--status", "503", "--json") for _ in range(2)]
        told = []
        for each in both:
            out, said = each.communicate(timeout=60)
            self.assertIn(each.returncode, (0, 66), said)
            told.append(json.loads(out))
        self.assertEqual(sum(each["replayed"] for each in told), 300, told)
        self.assertEqual(sum(each["refused"] for each in told), 0, told)
        self.assertEqual(sorted(each["id"] for each in self.receive_all()), sorted(names))

    def test_a_replay_whose_answer_was_lost_is_repeated_without_doubling(self):
        self.many(3)
        body = {"status": "503"}
        self.assertEqual(self.good("POST", "/workflows/erp/dead/replay", body)["replayed"], 3)
        again = self.good("POST", "/workflows/erp/dead/replay", body)
        self.assertEqual((again["matched"], again["replayed"]), (0, 0))
        self.assertEqual(len(self.receive_all()), 3)

    def test_what_dies_again_during_a_replay_is_not_meant_by_it(self):
        self.many(2)
        counted = self.good("POST", "/workflows/erp/dead/replay",
                            {"status": "503", "dry_run": True})
        self.assertEqual((counted["matched"], counted["last"]), (2, 6))
        body = {"status": "503", "max": 1, "through": counted["last"]}
        first = self.good("POST", "/workflows/erp/dead/replay", body)
        self.assertEqual(first["replayed"], 1)
        self.give_up({"m0": "HTTP 503 again"})
        body.update({"from": first["next"], "max": 100})
        second = self.good("POST", "/workflows/erp/dead/replay", body)
        self.assertEqual((second["replayed"], second.get("next")), (1, None))
        self.assertEqual(self.ids("--status", "503"), ["m0"])
        self.assertIn("replays", self.dead("list", "erp"))
        self.assertIn("redrives", self.dead("show", "erp", "7"))

    def test_progress_is_told(self):
        self.many(30)
        begun = self.replay_begun("--status", "503", "--rate", "15/s")
        out, said = begun.communicate(timeout=60)
        self.assertEqual(begun.returncode, 0, said)
        self.assertIn("30 put back", out)
        self.assertRegex(said, "of 30 put back")

    def test_the_api_pages_and_refuses(self):
        self.many(7)
        seen, query = [], ""
        while query is not None:
            told = self.good("GET", f"/workflows/erp/dead?max=3{query}")
            self.assertLessEqual(len(told["dead"]), 3)
            seen += [each["record"]["id"] for each in told["dead"]]
            query = f"&from={told['next']}" if "next" in told else None
        self.assertEqual(seen, ["o1", "o2", "o3", "o4"] + [f"m{n}" for n in range(7)])
        one = self.good("GET", "/workflows/erp/dead?sequence=2")["dead"][0]
        self.assertEqual((one["record"]["id"], one["status"]), ("o2", 500))
        for wrong in ({}, {"all": False}, {"id": ""}, {"all": "yes"}, {"sequences": "1"},
                      {"id": 7}, {"max": 0, "all": True}, {"colour": "red"}):
            answer = self.server.call("POST", "/workflows/erp/dead/replay", wrong)
            self.assertEqual(answer.status, 400, (wrong, answer.body))
        for path in ("/workflows/erp/dead?max=0", "/workflows/erp/dead?status=abc"):
            self.assertEqual(self.server.call("GET", path).status, 400)
        self.assertEqual(self.server.call("DELETE", "/workflows/erp/dead").status, 400)
        self.assertEqual(self.server.call("GET", "/workflows/nobody/dead").status, 404)
        self.good("DELETE", "/workflows/erp/dead?through=9")
        self.assertEqual(self.ids(), ["m5", "m6"])


class DeadRights(SignedInTest):
    def test_only_administrators_of_the_tenant_replay(self):
        server = self.serve(self.AUTH + """
workflows:
  - id: shop
    tenant: acme
    source: {type: http}
    endpoint: {url: "http://127.0.0.1:1/in"}
    delivery: {retries: {maxAttempts: 1, backoffMs: [1]}}
""")
        event = {"id": "e1", "type": "t", "payload": "{}"}
        self.assertLess(server.call("POST", "/workflows/shop/events", event,
                                    token=jwt("acme")).status, 300)

        def dead(tenant="acme", role="consume"):
            return server.call("GET", "/workflows/shop/dead", token=jwt(tenant, (role,)))
        wait_for(lambda: dead().json["dead"], "a dead letter")
        self.assertEqual(dead("acme", "produce").status, 403)
        self.assertEqual(dead("beta", "admin").status, 404)
        path = "/workflows/shop/dead/replay"
        for tenant, role, status in (("acme", "consume", 403), ("beta", "admin", 404),
                                     ("acme", "admin", 200)):
            answer = server.call("POST", path, {"all": True}, token=jwt(tenant, (role,)))
            self.assertEqual(answer.status, status, (tenant, role, answer.body))
        path = "/workflows/shop/dead?through=99"
        self.assertEqual(server.call("DELETE", path, token=jwt("acme", ("consume",))).status, 403)


if __name__ == "__main__":
    DeadTest.HAPAX, _ = arguments()
    unittest.main()
