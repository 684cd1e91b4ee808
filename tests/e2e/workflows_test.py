"""Workflows that `hapax serve` runs: from a stream to an endpoint, under a guarantee."""

import json
import os
import subprocess
import threading
import unittest

from delivering import DeliveryTest
from running import arguments, wait_for


class WorkflowsTest(DeliveryTest):
    def test_records_arrive_with_key_and_envelope(self):
        endpoint = self.endpoint()
        server = self.serve(self.workflow(
            endpoint.url, ', auth: {type: bearer, token: "${env:ERP_TOKEN}"}'),
            {"ERP_TOKEN": "t0k"})
        self.publish(server, "o1", "o2", "o3", group="customer-1")
        self.arrives(endpoint, "o1", "o2", "o3")
        self.assertEqual(self.orders(endpoint), ["o1", "o2", "o3"])
        head, body = endpoint.got[0]
        told = json.loads(body)
        self.assertEqual(list(told), ["idempotencyKey", "eventType", "timestamp", "data"])
        self.assertEqual(told["eventType"], "OrderCreated")
        self.assertEqual(head["webhook-id"], told["idempotencyKey"])
        self.assertEqual(head["Idempotency-Key"], told["idempotencyKey"])
        self.assertEqual(len(told["idempotencyKey"]), 64)
        self.assertEqual(head["Authorization"], "Bearer t0k")
        self.assertEqual(head["traceparent"], "00-ab-cd-01")
        keys = {each["webhook-id"] for each, _ in endpoint.got}
        self.assertEqual(len(keys), 3)
        self.assertNotIn("t0k", server.text())

    def test_at_least_once_sends_the_payload_as_it_came(self):
        endpoint = self.endpoint()
        server = self.serve(self.workflow(
            endpoint.url, more="    delivery: {guarantee: at-least-once}"))
        self.publish(server, "o1")
        wait_for(lambda: endpoint.got, "o1 at the endpoint")
        self.assertEqual(json.loads(endpoint.got[0][1]), {"order": "o1"})
        self.assertEqual(len(endpoint.got[0][0]["webhook-id"]), 64)

    def test_a_workflow_whose_stream_is_not_there_waits_and_says_so(self):
        endpoint = self.endpoint()
        config = self.workflow(endpoint.url).replace("streams: [{stream: orders}]\n", "")
        server = self.serve(config)

        def told():
            return server.call("GET", "/workflows/erp").json
        wait_for(lambda: told()["state"] == "waiting", lambda: f"a wait; it is {told()}")
        self.assertIn("orders", told()["reason"])
        since = told()["since"]
        shown = self.hapax("workflows", "list", "--url", server.url)
        self.assertIn("waiting", shown)
        self.assertIn("orders", shown)
        self.assertEqual(told()["since"], since)
        self.assertIn(server.call("PUT", "/streams/orders", {}).status, (200, 201))
        self.publish(server, "o1")
        self.arrives(endpoint, "o1")
        wait_for(lambda: told()["state"] == "running", lambda: f"it to run; it is {told()}")
        self.assertNotIn("reason", told())

    def test_only_its_event_types_go_to_an_endpoint(self):
        endpoint = self.endpoint()
        server = self.serve(self.workflow(endpoint.url, ', eventTypes: ["Order*"]'))
        self.publish(server, "p1", event_type="ProductMade")
        self.publish(server, "o1")
        self.arrives(endpoint, "o1")
        self.assertEqual(self.orders(endpoint), ["o1"])

    def test_a_record_that_fails_is_tried_again_then_a_dead_letter_then_replayed(self):
        endpoint = self.endpoint()
        refuses = threading.Event()
        refuses.set()

        def hook(request):
            return 422 if refuses.is_set() and b"poison" in request[1] else 200
        endpoint.hook = hook
        server = self.serve(self.workflow(
            endpoint.url, more="    delivery: {retries: {maxAttempts: 3, backoffMs: [10]}}"))
        self.publish(server, "poison", "o2", group="customer-1")
        self.publish(server, "o3")
        self.arrives(endpoint, "o2", "o3")
        dead = self.dead_letter(server)
        self.assertEqual(dead["id"], "poison")
        self.assertIn("HTTP 422", dead["lineage"]["reason"])
        with endpoint.lock:
            tries = [head["webhook-id"] for head, body in endpoint.came if b"poison" in body]
        self.assertEqual(len(tries), 3)
        self.assertEqual(len(set(tries)), 1)
        refuses.clear()
        self.hapax("redrive", "erp.dead", str(dead["sequence"]), "--url", server.url)
        self.arrives(endpoint, "poison")
        head = next(head for head, body in endpoint.got if b"poison" in body)
        self.assertEqual(head["webhook-id"], tries[0])
        self.assertEqual(head["Hapax-Replay"], "1")

    def test_an_attempt_is_not_forgotten_over_a_restart(self):
        endpoint = self.endpoint()
        endpoint.hook = lambda _: 500
        server = self.serve(self.workflow(
            endpoint.url, more="    delivery: {retries: {maxAttempts: 2, backoffMs: [8000]}}"))
        self.publish(server, "o1")
        wait_for(lambda: endpoint.came, "the first attempt")

        def is_given_back():
            _, _, stream = server.call("GET", "/api/v1/streams/orders")
            return stream["consumers"][0]["in_flight"] == 0
        wait_for(is_given_back, "it to be given back")
        server.kill()
        tried = len(endpoint.came)
        server.start(f"{server.host}:{server.port}", ":".join(server.resp))
        self.assertIn("HTTP 500", self.dead_letter(server)["lineage"]["reason"])
        if tried == 1:  # Otherwise the kill came so late that it met the second attempt.
            self.assertEqual(len(endpoint.came), 2)

    def test_kill_9_loses_nothing_and_repeats_under_the_same_key(self):
        endpoint = self.endpoint()

        def hook(_):
            endpoint.closing.wait(0.02)
            return 200
        endpoint.hook = hook
        server = self.serve(self.workflow(endpoint.url))
        orders = [f"o{n}" for n in range(150)]
        for i, order in enumerate(orders):
            self.publish(server, order, group=f"customer-{i % 10}")
            if i in (50, 100):
                wait_for(lambda: len(endpoint.got) > i // 2, "some to arrive")
                server.restart()
        self.arrives(endpoint, *orders)
        by_key = {}
        with endpoint.lock:
            for head, body in endpoint.came:
                by_key.setdefault(head["webhook-id"], set()).add(body)
        self.assertEqual(len(by_key), len(orders))
        self.assertTrue(all(len(bodies) == 1 for bodies in by_key.values()))
        firsts = list(dict.fromkeys(self.orders(endpoint)))
        for customer in range(10):
            mine = [each for each in firsts if int(each[1:]) % 10 == customer]
            self.assertEqual(mine, [each for each in orders if int(each[1:]) % 10 == customer])
        self.assertEqual(self.dead_letters(server), [])

    def hanging(self):
        """An endpoint that does not answer requests that come before its `answers` is set."""
        endpoint = self.endpoint()
        endpoint.answers = threading.Event()
        self.addCleanup(endpoint.answers.set)

        def hook(request):
            if b"hangs" in request[1] and not endpoint.answers.is_set():
                endpoint.answers.wait(120)
                return 503  # Nobody hears it any more.
            return 200
        endpoint.hook = hook
        return endpoint

    def keys_of(self, endpoint, order):
        with endpoint.lock:
            return [head["webhook-id"] for head, body in endpoint.came if order.encode() in body]

    def dies_while_the_endpoint_hangs(self, guarantee):
        endpoint = self.hanging()
        server = self.serve(self.workflow(
            endpoint.url, more=f"    delivery: {{guarantee: {guarantee}}}"))
        self.publish(server, "hangs", group="customer-1")
        wait_for(lambda: endpoint.came, "the request")
        server.restart(endpoint.answers.set)
        self.publish(server, "o2", group="customer-1")
        self.arrives(endpoint, "o2")
        [key] = self.keys_of(endpoint, "hangs")
        status, _, claim = server.call("GET", f"/api/v1/claims/erp.deliveries/{key}")
        self.assertEqual((status, claim["state"]), (200, "unknown"), claim)
        return endpoint, server, key

    def is_acked(self, server):
        _, _, stream = server.call("GET", "/api/v1/streams/orders")
        return stream["consumers"][0]["floor"] == stream["last"]

    def test_exactly_once_parks_what_its_process_died_over_until_somebody_decides(self):
        endpoint, server, key = self.dies_while_the_endpoint_hangs("exactly-once")
        dead = self.dead_letter(server)
        self.assertEqual(dead["id"], "hangs")
        self.assertIn(f"unknown outcome of erp.deliveries/{key}", dead["lineage"]["reason"])
        where = ("--url", server.url)
        self.assertIn("unknown", self.hapax("status", "erp.deliveries", key, *where))
        self.hapax("resolve", "erp.deliveries", key, "not_applied", "--reason", "asked", *where)
        self.hapax("redrive", "erp.dead", str(dead["sequence"]), *where)
        self.arrives(endpoint, "hangs")
        self.assertEqual(self.keys_of(endpoint, "hangs"), [key, key])
        wait_for(lambda: self.is_acked(server), "the record to be acked")
        self.assertIn("completed", self.hapax("status", "erp.deliveries", key, *where))

    def test_exactly_once_does_not_send_what_is_resolved_as_delivered(self):
        endpoint, server, key = self.dies_while_the_endpoint_hangs("exactly-once")
        dead = self.dead_letter(server)
        where = ("--url", server.url)
        self.hapax("resolve", "erp.deliveries", key, "completed", "--reason", "asked", *where)
        self.hapax("redrive", "erp.dead", str(dead["sequence"]), *where)
        self.publish(server, "o3")
        self.arrives(endpoint, "o3")
        wait_for(lambda: self.is_acked(server), "the record to be acked")
        self.assertEqual(self.keys_of(endpoint, "hangs"), [key])
        self.assertEqual(self.dead_letters(server), [])

    def test_at_most_once_sends_nothing_twice(self):
        endpoint, server, key = self.dies_while_the_endpoint_hangs("at-most-once")
        self.assertIn("unknown outcome of erp.deliveries/" + key,
                      self.dead_letter(server)["lineage"]["reason"])
        self.assertEqual(self.keys_of(endpoint, "hangs"), [key])

    def test_at_most_once_makes_one_attempt(self):
        endpoint = self.endpoint()
        endpoint.hook = lambda request: 503 if b"fails" in request[1] else 200
        server = self.serve(self.workflow(
            endpoint.url, more="    delivery: {guarantee: at-most-once}"))
        self.publish(server, "fails", "o2", group="customer-1")
        self.arrives(endpoint, "o2")
        [key] = self.keys_of(endpoint, "fails")
        status, _, claim = server.call("GET", f"/api/v1/claims/erp.deliveries/{key}")
        self.assertEqual((status, claim["state"]), (200, "failed"), claim)
        self.assertIn("HTTP 503", claim["reason"])
        self.assertIn("HTTP 503", self.dead_letter(server)["lineage"]["reason"])

    def test_exactly_once_sends_again_where_the_endpoint_is_idempotent(self):
        endpoint = self.hanging()
        server = self.serve(self.workflow(
            endpoint.url, ", nature: idempotent", "    delivery: {guarantee: exactly-once}"))
        self.publish(server, "hangs", group="customer-1")
        wait_for(lambda: endpoint.came, "the request")
        server.restart(endpoint.answers.set)
        self.arrives(endpoint, "hangs")
        first, again = self.keys_of(endpoint, "hangs")
        self.assertEqual(first, again)
        self.assertEqual(self.dead_letters(server), [])

    def test_exactly_once_asks_the_endpoint_where_it_can_be_asked(self):
        endpoint = self.endpoint()
        gate = threading.Event()
        self.addCleanup(gate.set)

        def hook(request):
            if gate.is_set():
                return 200
            if b"kept" in request[1]:
                with endpoint.lock:
                    endpoint.got.append(request)
            gate.wait(120)
            return 503  # Nobody hears it any more.
        endpoint.hook = hook
        status_url = endpoint.url.replace("/in", "/of/{key}")
        server = self.serve(self.workflow(
            endpoint.url,
            f", nature: probe, statusUrl: '{status_url}', timeouts: {{request: 1s}}",
            "    delivery: {guarantee: exactly-once}"))
        self.publish(server, "kept", "lost")
        wait_for(lambda: len(endpoint.came) == 2, "both requests")
        server.restart(gate.set)
        self.arrives(endpoint, "kept", "lost")
        wait_for(lambda: self.is_acked(server), "both to be acked")
        self.assertEqual(sorted(self.orders(endpoint)), ["kept", "lost"])
        [kept] = self.keys_of(endpoint, "kept")
        lost, *again = self.keys_of(endpoint, "lost")
        self.assertEqual(set(again), {lost})
        self.assertGreaterEqual(set(endpoint.asked), {kept, lost})
        self.assertEqual(self.dead_letters(server), [])
        for key in (kept, lost):
            _, _, claim = server.call("GET", f"/api/v1/claims/erp.deliveries/{key}")
            self.assertEqual(claim["state"], "completed")

    def test_sigterm_waits_for_the_answer(self):
        endpoint = self.endpoint()
        came, answer = threading.Event(), threading.Event()

        def hook(_):
            came.set()
            answer.wait(30)
            return 200
        endpoint.hook = hook
        server = self.serve(self.workflow(endpoint.url))
        self.publish(server, "o1")
        self.assertTrue(came.wait(30))
        server.process.terminate()
        server.wait_for_log("stopping")
        answer.set()
        self.assertEqual(server.process.wait(30), 0)
        server.process.stdout.close()
        server.start(f"{server.host}:{server.port}", ":".join(server.resp))
        self.publish(server, "o2")
        self.arrives(endpoint, "o2")
        self.assertEqual(self.orders(endpoint), ["o1", "o2"])

    def test_a_secret_that_is_not_there_is_told_at_the_start(self):
        path = os.path.join(self.folder, "hapax.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.workflow("http://127.0.0.1:1/in",
                                     ', auth: {type: bearer, token: "${env:ERP_TOKEN}"}'))
        done = subprocess.run(
            [self.HAPAX, "serve", "--config", path, "--data", os.path.join(self.folder, "data"),
             "--http", "127.0.0.1:0", "--resp", "127.0.0.1:0"],
            capture_output=True, text=True, timeout=60, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("workflow 'erp': the environment has no variable ERP_TOKEN", done.stderr)

    def test_check_says_what_does_not_run(self):
        server = self.serve(self.workflow("http://127.0.0.1:1/in"))
        probe = ", nature: probe, statusUrl: 'http://127.0.0.1:1/of/{key}'"
        for guarantee, words in (("exactly-once", None),
                                 ("idempotent-keys", "with nature probe and guarantee idempot")):
            server.write(self.workflow("http://127.0.0.1:1/in", probe,
                                       f"    delivery: {{guarantee: {guarantee}}}"))
            done = subprocess.run([self.HAPAX, "check", server.path], capture_output=True,
                                  text=True, timeout=60, check=False)
            self.assertEqual("does not run" in done.stdout + done.stderr, words is not None)
            self.assertIn(words or "erp", done.stdout + done.stderr)


if __name__ == "__main__":
    WorkflowsTest.HAPAX, _ = arguments()
    unittest.main()
