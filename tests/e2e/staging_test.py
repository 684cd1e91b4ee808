"""Workflows in two steps, as `hapax serve` runs them: transforms, several endpoints, streams."""

import json
import os
import subprocess
import threading
import unittest

from delivering import DeliveryTest
from running import arguments, wait_for


class StagingTest(DeliveryTest):
    def workflow_with(self, more, streams=""):
        return f"""
streams: [{{stream: orders}}{streams}]
workflows:
  - id: erp
    source: {{type: stream, stream: orders}}
{more}
"""

    def append(self, server, *records):
        status, _, told = server.call("POST", "/api/v1/streams/orders/records",
                                      {"records": list(records)})
        self.assertEqual(status, 200, told)

    def data(self, endpoint):
        with endpoint.lock:
            return [json.loads(body)["data"] for _, body in endpoint.got]

    def records(self, server, stream):
        found, first = [], 1
        while True:
            status, _, told = server.call(
                "GET", f"/api/v1/streams/{stream}/records?from={first}&max=1000")
            if status != 200 or not told["records"]:
                return found
            found += told["records"]
            first = found[-1]["sequence"] + 1

    def test_a_transform_reshapes_filters_and_fans_out(self):
        endpoint = self.endpoint()
        jq = "select(.lines) | .id as $id | .lines[] | {order: $id, sku: .}"
        server = self.serve(self.workflow_with(
            f"    transform: {{jq: '{jq}'}}\n"
            f"    endpoint: {{url: \"{endpoint.url}\"}}"))
        self.append(server,
                    {"id": "o1", "group": "c1", "payload": '{"id": 1, "lines": ["a", "b"]}'},
                    {"id": "o2", "group": "c1", "payload": '{"id": 2}'},
                    {"id": "o3", "group": "c1", "payload": '{"id": 3, "lines": ["c"]}',
                     "headers": [["event_type", "Late"], ["traceparent", "00-ab-cd-01"]]})
        wait_for(lambda: len(endpoint.got) >= 3, "three requests")
        self.assertEqual(self.data(endpoint), [{"order": 1, "sku": "a"}, {"order": 1, "sku": "b"},
                                               {"order": 3, "sku": "c"}])
        heads = [head for head, _ in endpoint.got]
        self.assertEqual(len({head["webhook-id"] for head in heads}), 3)
        self.assertEqual(heads[2]["traceparent"], "00-ab-cd-01")
        self.assertIsNone(heads[2]["hapax-staged"])
        self.assertEqual(json.loads(endpoint.got[2][1])["eventType"], "Late")

    def test_what_fails_is_a_dead_letter_and_is_sent_after_it_was_mended(self):
        endpoint = self.endpoint()
        config = self.workflow_with(
            "    transform: {jq: '{total: (.amount + 1)}'}\n"
            f"    endpoint: {{url: \"{endpoint.url}\"}}")
        server = self.serve(config)
        self.append(server, {"id": "bad", "group": "c1", "payload": '{"amount": "many"}'},
                    {"id": "worse", "payload": "no JSON"},
                    {"id": "good", "group": "c1", "payload": '{"amount": 1}'})
        wait_for(lambda: self.data(endpoint) == [{"total": 2}], "the good one")
        wait_for(lambda: len(self.dead_letters(server)) == 2, "both dead letters")
        dead = {each["id"]: each for each in self.dead_letters(server)}
        self.assertIn("transform: ", dead["bad"]["lineage"]["reason"])
        self.assertIn("cannot be added", dead["bad"]["lineage"]["reason"])
        server.write(config.replace(".amount + 1", ".amount | tostring"))
        server.restart()
        self.hapax("redrive", "erp.dead", str(dead["bad"]["sequence"]), "--url", server.url)
        wait_for(lambda: len(endpoint.got) == 2, "the mended one")
        self.assertEqual(self.data(endpoint)[1], {"total": "many"})
        self.assertEqual(endpoint.got[1][0]["Hapax-Replay"], "1")

    def test_a_program_that_loops_costs_its_record_only(self):
        endpoint = self.endpoint()
        server = self.serve(self.workflow_with(
            "    transform: {jq: 'if .loop then (def f: f; f) else . end'}\n"
            f"    endpoint: {{url: \"{endpoint.url}\"}}"))
        self.append(server, {"id": "o1", "payload": '{"n": 1}'},
                    {"id": "loop", "payload": '{"loop": true}'},
                    {"id": "o2", "payload": '{"n": 2}'})
        wait_for(lambda: len(endpoint.got) == 2, "the others")
        self.assertEqual(self.dead_letter(server)["id"], "loop")

    def test_a_program_with_a_fault_is_told_at_the_start(self):
        path = os.path.join(self.folder, "hapax.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.workflow_with("    transform: {jq: '{a: '}\n"
                                          "    endpoint: {url: \"http://127.0.0.1:1/in\"}"))
        done = subprocess.run(
            [self.HAPAX, "serve", "--config", path, "--data", os.path.join(self.folder, "data"),
             "--http", "127.0.0.1:0", "--resp", "127.0.0.1:0"],
            capture_output=True, text=True, timeout=60, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("workflow 'erp': transform.jq: ", done.stderr)

    def test_an_endpoint_that_hangs_does_not_hold_up_the_other(self):
        hangs, flows = self.endpoint(), self.endpoint()
        release = threading.Event()
        self.addCleanup(release.set)

        def hook(_):
            release.wait(60)
            return 200
        hangs.hook = hook
        server = self.serve(self.workflow_with(
            "    endpoints:\n"
            f"      - {{name: crm, url: \"{hangs.url}\", eventTypes: [\"Order*\"],\n"
            "         concurrency: 2}\n"
            f"      - {{name: search, url: \"{flows.url}\", concurrency: 2}}"))
        records = [{"id": f"o{n}", "payload": json.dumps({"order": f"o{n}"}),
                    "headers": [["event_type", "OrderCreated" if n % 2 else "ProductMade"]],
                    **({"group": f"c{n % 7}"} if n % 3 else {})} for n in range(300)]
        for first in range(0, 300, 50):
            self.append(server, *records[first:first + 50])
        wait_for(lambda: len(set(self.orders(flows))) == 300, lambda: f"{len(flows.got)} of 300")
        self.assertEqual(hangs.got, [])
        release.set()
        wait_for(lambda: len(set(self.orders(hangs))) == 150, lambda: f"{len(hangs.got)} of 150")
        keys = {head["webhook-id"] for each in (hangs, flows) for head, _ in each.got}
        self.assertEqual(len(keys), 450)
        for endpoint in (hangs, flows):
            firsts = list(dict.fromkeys(self.orders(endpoint)))
            for customer in range(7):
                mine = [int(each[1:]) for each in firsts
                        if int(each[1:]) % 3 and int(each[1:]) % 7 == customer]
                self.assertEqual(mine, sorted(mine))

    def test_kill_9_stores_each_record_once_in_the_target_stream(self):
        server = self.serve(self.workflow_with(
            "    transform: {jq: 'if .n % 4 == 3 then empty else {n, copy: 1}, {n, copy: 2} end'}\n"
            "    endpoint: {stream: copies}", ", {stream: copies}"))
        for first in range(0, 2000, 100):
            self.append(server, *({"id": f"o{n}", "payload": json.dumps({"n": n}),
                                   **({"group": f"c{n % 10}"} if n % 2 else {})}
                                  for n in range(first, first + 100)))
            if first % 300 == 0:
                server.restart()

        def copies():
            return self.records(server, "copies")
        wait_for(lambda: len(copies()) >= 3000, lambda: f"{len(copies())} of 3000 records", 60)
        got = [(record["payload"], record.get("group")) for record in copies()]
        wanted = [(json.dumps({"n": n, "copy": c}, separators=(",", ":")),
                   f"c{n % 10}" if n % 2 else None)
                  for n in range(2000) if n % 4 != 3 for c in (1, 2)]
        self.assertEqual(len(got), len(wanted))
        self.assertEqual(sorted(got, key=str), sorted(wanted, key=str))
        for group in {group for _, group in wanted if group}:
            self.assertEqual([each for each in got if each[1] == group],
                             [each for each in wanted if each[1] == group])
        self.assertEqual(self.dead_letters(server), [])

    def test_kill_9_delivers_each_output_under_one_key(self):
        endpoint = self.endpoint()
        server = self.serve(self.workflow_with(
            "    transform: {jq: '{order: .order, copy: (1, 2)}'}\n"
            f"    endpoint: {{url: \"{endpoint.url}\"}}"))
        for i in range(6):
            self.publish(server, *(f"o{i * 25 + n}" for n in range(25)), group=f"customer-{i}")
            if i in (1, 3):
                wait_for(lambda: len(endpoint.got) > i * 20, "some to arrive")
                server.restart()

        def outputs():
            return {body for _, body in endpoint.got}
        wait_for(lambda: len(outputs()) >= 300, lambda: f"{len(outputs())} of 300 outputs")
        by_key = {}
        with endpoint.lock:
            for head, body in endpoint.came:
                by_key.setdefault(head["webhook-id"], set()).add(body)
        self.assertEqual(len(by_key), 300)
        self.assertTrue(all(len(bodies) == 1 for bodies in by_key.values()))
        self.assertEqual(self.dead_letters(server), [])


if __name__ == "__main__":
    StagingTest.HAPAX, _ = arguments()
    unittest.main()
