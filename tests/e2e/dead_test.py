"""hapax dead: dead letters are listed, shown, put back and dropped."""

import json
import subprocess
import unittest

from running import FolderTest, arguments

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
        return [json.loads(line)["id"] for line in lines]

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


if __name__ == "__main__":
    DeadTest.HAPAX, _ = arguments()
    unittest.main()
