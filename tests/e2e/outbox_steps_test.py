"""Workflows of `hapax serve` that store the rows of an outbox before anything becomes of them."""

import contextlib
import json
import sqlite3
import unittest

from outbox_workflows_test import delivery_key
from relaying import RelayCase
from running import arguments, wait_for


class OutboxStepsTest(RelayCase):
    def flow(self, endpoints, more="", source=""):
        return f"""
streams: [{{stream: archive}}]
workflows:
  - id: shop
    source: {{type: outbox, database: "${{env:SHOP}}"{source}}}
{endpoints}
{more}
"""

    def to(self, receiver, more=""):
        return f'    endpoint: {{url: "{receiver.url}"{more}}}'

    def start(self, config, database=None):
        return self.serve(config, {"SHOP": database or self.cluster.uri()})

    def publish(self, *names, key="NULL", event_type="OrderCreated", more=""):
        quoted = key if key == "NULL" else f"'{key}'"
        self.cluster.psql("".join(
            f"SELECT hapax.publish('{event_type}', '{{\"order\": \"{name}\"}}', {quoted}, '{name}'"
            f"{more});\n" for name in names))

    def insert(self, file, *names):
        with contextlib.closing(sqlite3.connect(file[7:], timeout=30)) as app, app:
            app.executemany("INSERT INTO hapax_outbox (id, type, key, payload) VALUES (?, 't', "
                            "'k', ?)", [(name, json.dumps({"order": name})) for name in names])

    def orders(self, receiver):
        return [json.loads(body)["data"]["order"] for _, body, _ in list(receiver.got)]

    def arrive(self, receiver, *orders, seconds=60):
        wait_for(lambda: set(self.orders(receiver)) >= set(orders),
                 lambda: f"{orders} at the endpoint, which has {self.orders(receiver)}", seconds)

    def settled(self, source=None):
        def nothing_waits():
            told = self.status(source)
            return told["waiting"] == 0 and told["retries"] == 0
        wait_for(nothing_waits, "all to be settled")

    def records(self, server, stream):
        status, _, told = server.call("GET", f"/streams/{stream}/records")
        return told["records"] if status == 200 else []

    def uid(self):
        return self.cluster.psql("SELECT uid FROM hapax.outbox_uid")

    def test_a_transform_gets_the_row_and_its_key_stays(self):
        receiver = self.receiver()
        self.publish("o1", key="c1", more=", headers => '[[\"traceparent\", \"00-ab-cd-01\"]]', "
                                          "correlation_id => 'call-7'")
        self.start(self.flow(self.to(receiver), "    transform: {jq: '{order: (.order + \"!\")}'}"))
        self.arrive(receiver, "o1!")
        head = receiver.heads[0]
        self.assertEqual(head["webhook-id"], delivery_key(self.uid(), "hapax.outbox", "o1"))
        self.assertEqual((head["traceparent"], head["correlation_id"]),
                         ("00-ab-cd-01", "call-7"))
        self.assertIsNone(head["hapax-row"])
        self.assertEqual(json.loads(receiver.got[0][1])["eventType"], "OrderCreated")
        self.settled()
        self.assertEqual(self.status()["delivered"], 1)

    def test_a_row_that_its_transform_fails_over_is_replayed_through_it(self):
        receiver = self.receiver()
        self.publish("o1", more=", headers => '[[\"traceparent\", \"00-ab\"]]'")
        fails = "    transform: {jq: '{order: .order.name}'}"
        server = self.start(self.flow(self.to(receiver), fails))
        wait_for(lambda: self.records(server, "shop.dead"), "the dead letter")
        dead = self.records(server, "shop.dead")[0]
        self.assertEqual(json.loads(dead["payload"]), {"order": "o1"})
        self.settled()
        self.assertEqual(self.status()["dead_letters"], 0)
        self.assertEqual(server.stop(), 0)
        server.write(self.flow(self.to(receiver), "    transform: {jq: '.'}"))
        server.start(f"{server.host}:{server.port}", ":".join(server.resp))
        self.hapax("dead", "replay", "shop", "--all", "--url", server.url)
        self.arrive(receiver, "o1")
        head = receiver.heads[0]
        self.assertEqual(head["webhook-id"], delivery_key(self.uid(), "hapax.outbox", "o1"))
        self.assertEqual((head["Hapax-Replay"], head["traceparent"]), ("1", "00-ab"))

    def test_several_endpoints_and_a_stream_get_each_row(self):
        first, second = self.receiver(), self.receiver()
        endpoints = (f'    endpoints: [{{name: a, url: "{first.url}"}}, '
                     f'{{name: b, url: "{second.url}", eventTypes: ["Order*"]}}, '
                     '{name: c, stream: archive}]')
        self.publish("o1", "o2", key="c1")
        self.publish("p1", event_type="ProductMade")
        server = self.start(self.flow(endpoints))
        self.arrive(first, "o1", "o2", "p1")
        self.arrive(second, "o1", "o2")
        wait_for(lambda: len(self.records(server, "archive")) == 3, "all in the stream")
        self.assertEqual([each for each in self.orders(second) if each != "p1"], ["o1", "o2"])
        keys = {key for receiver in (first, second) for key, _, _ in receiver.got}
        self.assertEqual(len(keys), 5)
        self.settled()

    def test_kill_9_leaves_each_row_in_the_stream_once_and_in_order(self):
        server = self.start(self.flow("    endpoint: {stream: archive}",
                                      "    delivery: {guarantee: exactly-once}"))
        orders = [f"o{n}" for n in range(120)]
        for i, order in enumerate(orders):
            self.publish(order, key=f"c{i % 10}")
            if i in (40, 80):
                wait_for(lambda: len(self.records(server, "archive")) > i // 2, "some to arrive")
                server.restart()

        def archived():
            records = server.call("GET", "/streams/archive/records?max=1000").json["records"]
            return [json.loads(each["payload"])["order"] for each in records]
        wait_for(lambda: len(archived()) >= 120, lambda: f"all; there are {len(archived())}")
        self.assertEqual(sorted(archived()), sorted(orders))
        for customer in range(10):
            mine = [each for each in archived() if int(each[1:]) % 10 == customer]
            self.assertEqual(mine, [each for each in orders if int(each[1:]) % 10 == customer])
        self.settled()

    def test_at_most_once_sends_no_row_twice(self):
        receiver, came = self.receiver(), []

        def hook(request, key, _):
            came.append(key)
            if len(came) > 1:
                return False
            request.close_connection = True  # No answer: nobody knows.
            return True
        receiver.hook = hook
        server = self.start(self.flow(self.to(receiver),
                                      "    delivery: {guarantee: at-most-once}"))
        self.publish("o1")
        wait_for(lambda: self.records(server, "shop.dead"), "the unknown one")
        server.restart()
        self.publish("o2")
        self.arrive(receiver, "o2")
        self.assertEqual(len(came), len(set(came)))
        self.settled()
        claim = server.call("GET", f"/claims/shop.deliveries/{came[0]}").json
        self.assertEqual(claim["state"], "unknown")

    def test_exactly_once_from_an_sqlite_file(self):
        receiver = self.receiver()
        file, _ = self.sqlite()
        self.insert(file, "o1", "o2")
        server = self.start(self.flow(self.to(receiver, ", nature: idempotent"),
                                      "    delivery: {guarantee: exactly-once}"), file)
        self.arrive(receiver, "o1", "o2")
        server.restart()
        self.insert(file, "o3")
        self.arrive(receiver, "o3")
        # An idempotent endpoint is sent again what was under way at the kill.
        self.assertEqual(list(dict.fromkeys(self.orders(receiver))), ["o1", "o2", "o3"])
        self.assertEqual(len({key for key, _, _ in receiver.got}), 3)
        with contextlib.closing(sqlite3.connect(file[7:])) as app:
            uid = app.execute("SELECT uid FROM hapax_outbox_uid").fetchone()[0]
        self.assertEqual(receiver.got[0][0], delivery_key(uid, "hapax_outbox", "o1"))
        self.settled(file)

    def test_a_row_blocks_its_key_until_a_person_decides(self):
        receiver, bad = self.receiver(), {"o1"}

        def hook(request, _, body):
            if json.loads(body)["data"]["order"] not in bad:
                return False
            request.send_response(422)
            request.send_header("Content-Length", "0")
            request.end_headers()
            return True
        receiver.hook = hook
        self.publish("o1", "o2", key="c1")
        self.publish("o3", key="c2")
        server = self.start(self.flow(
            self.to(receiver), "    ordering: {onFailure: block}\n"
            "    delivery: {retries: {maxAttempts: 2, backoffMs: [10]}}"))
        self.arrive(receiver, "o3")

        def blocked():
            return server.call("GET", "/workflows/shop/blocked").json["blocked"]
        wait_for(lambda: [each["key"] for each in blocked()] == ["c1"], "the key to be blocked")
        self.assertEqual(blocked()[0]["stream"], "shop.rows")
        self.settled()  # In the database. The row is in the stream.
        bad.clear()
        server.call("POST", "/workflows/shop/blocked", {"key": "c1", "decision": "retry"})
        self.arrive(receiver, "o1", "o2")
        self.assertEqual(self.orders(receiver), ["o3", "o1", "o2"])

    def test_another_row_under_an_id_is_a_dead_letter_in_the_database(self):
        server = self.start(self.flow("    endpoint: {stream: archive}"))
        self.publish("o1", key="c1")
        wait_for(lambda: len(self.records(server, "archive")) == 1, "the first one")
        self.cluster.psql("SELECT hapax.publish('t', 'other', 'c1', 'o1')")
        self.publish("o2", key="c1")
        wait_for(lambda: len(self.records(server, "archive")) == 2, "the one behind it")
        self.settled()
        told = json.loads(self.hapax("relay", "--from", self.cluster.uri(), "--dead-letters",
                                     "--json"))
        self.assertEqual(told["id"], "o1")
        self.assertIn("another record has its id", told["reason"])

    def test_the_server_counts_what_waits_in_both_places(self):
        receiver = self.receiver()
        server = self.start(self.flow(self.to(receiver), "    transform: {jq: '.'}"))
        server.call("POST", "/workflows/shop/pause")
        server.wait_for_log('what="is paused"')
        self.publish("o1", "o2")

        def lag():
            lines = server.call("GET", "/metrics").body.decode().splitlines()
            return [line for line in lines if line.startswith("hapax_delivery_lag_records{")]
        wait_for(lambda: lag() == ['hapax_delivery_lag_records{workflow="shop"} 2'],
                 lambda: f"two records that wait; there is {lag()}")
        server.call("POST", "/workflows/shop/resume")
        self.arrive(receiver, "o1", "o2")
        wait_for(lambda: lag() == ['hapax_delivery_lag_records{workflow="shop"} 0'],
                 lambda: f"nothing that waits; there is {lag()}")


if __name__ == "__main__":
    OutboxStepsTest.HAPAX, _ = arguments()
    unittest.main()
