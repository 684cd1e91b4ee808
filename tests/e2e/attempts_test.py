"""The log of the attempts of a workflow: hapax attempts, its route, and hapax trace."""

import json
import os
import subprocess
import unittest

from delivering import DeliveryTest
from running import arguments, wait_for

SOON = "    delivery: {retries: {maxAttempts: 3, backoffMs: [10]}}"


class AttemptsTest(DeliveryTest):
    def run_hapax(self, *words, code=0):
        done = subprocess.run([self.HAPAX, *words], capture_output=True, text=True, timeout=60,
                              check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def data(self):
        return os.path.join(self.folder, "data")

    def attempts(self, server, *words):
        lines = self.run_hapax("attempts", "erp", *words, "--json", "--url", server.url)
        return [json.loads(line) for line in lines.splitlines()]

    def wait_for_attempts(self, server, count, *words):
        wait_for(lambda: len(self.attempts(server, *words)) >= count,
                 lambda: f"{count} attempts in the log, which has {self.attempts(server, *words)}")
        found = self.attempts(server, *words)
        self.assertEqual(len(found), count, found)
        return found

    def refusing(self, count, status=503, text=b"<busy>\n"):
        """An endpoint that refuses so many requests of each key."""
        endpoint = self.endpoint()

        def hook(request):
            with endpoint.lock:
                key = request[0]["webhook-id"]
                came = sum(head["webhook-id"] == key for head, _ in endpoint.came)
            return (status, {}, text) if came <= count else 200
        endpoint.hook = hook
        return endpoint

    def test_each_attempt_is_told_with_its_outcome_and_times(self):
        endpoint = self.refusing(1)
        server = self.serve(self.workflow(endpoint.url, more=SOON))
        self.publish(server, "o1")
        first, second = self.wait_for_attempts(server, 2)
        key = endpoint.came[0][0]["webhook-id"]
        self.assertEqual((first["key"], second["key"]), (key, key))
        self.assertEqual((first["outcome"], first["status"], first["attempt"], first["answer"]),
                         ("try-later", 503, 1, "<busy>\n"))
        self.assertEqual((second["outcome"], second["status"], second["attempt"]),
                         ("delivered", 200, 2))
        self.assertNotIn("answer", second)
        self.assertEqual((first["sequence"], second["sequence"]), (1, 1))
        for each in (first, second):
            self.assertGreater(each["times_us"]["total"], 0)
            self.assertLessEqual(each["times_us"]["first_byte"], each["times_us"]["total"])
            self.assertLessEqual(each["began_ms"], each["settled_ms"])
        self.assertGreater(second["position"], first["position"])
        table = self.run_hapax("attempts", "erp", "o1", "--url", server.url)
        self.assertIn("try-later", table)
        self.assertIn("503", table)
        self.assertNotIn("\n\n", table)  # What an endpoint answers is one line of the table.

    def test_filters(self):
        endpoint = self.refusing(1)
        server = self.serve(self.workflow(endpoint.url, more=SOON))
        self.publish(server, "o1", "o2")
        self.wait_for_attempts(server, 4)
        o1 = self.attempts(server, "o1")
        self.assertEqual([each["outcome"] for each in o1], ["try-later", "delivered"])
        self.assertEqual({each["sequence"] for each in o1}, {1})
        self.assertEqual(self.attempts(server, o1[0]["key"]), o1)
        self.assertEqual(len(self.attempts(server, "--outcome", "delivered")), 2)
        self.assertEqual(self.attempts(server, "--outcome", "unknown"), [])
        self.assertEqual(len(self.attempts(server, "--since", "1h")), 4)
        self.assertEqual(self.attempts(server, "--until", "1h"), [])
        self.assertEqual(self.attempts(server, "--endpoint", "crm"), [])
        self.assertEqual(self.attempts(server, "o9"), [])
        self.assertIn("no attempts", self.run_hapax("attempts", "erp", "o9", "--url", server.url))
        self.run_hapax("attempts", "erp", "--outcome", "lost", "--url", server.url, code=64)
        self.assertIn("'nobody' is not declared",
                      self.run_hapax("attempts", "nobody", "--url", server.url, code=66))

    def test_pages_follow_each_other(self):
        endpoint = self.endpoint()
        server = self.serve(self.workflow(endpoint.url))
        self.publish(server, *[f"o{n}" for n in range(7)])
        self.wait_for_attempts(server, 7)
        path, seen, next_page = "/api/v1/workflows/erp/attempts?max=3", [], 0
        while next_page is not None:
            status, _, told = server.call("GET", f"{path}&from={next_page}")
            self.assertEqual(status, 200)
            self.assertLessEqual(len(told["attempts"]), 3)
            self.assertEqual(told["source"], "orders")
            seen += [each["sequence"] for each in told["attempts"]]
            next_page = told.get("next")
        self.assertEqual(sorted(seen), list(range(1, 8)))
        self.assertIn("--from", self.run_hapax("attempts", "erp", "--max", "3", "--url",
                                               server.url))
        for wrong in ("max=0", "max=1001", "from=x", "outcome=lost", "key=", "since_ms=soon",
                      "colour=red"):
            status, _, told = server.call("GET", f"/api/v1/workflows/erp/attempts?{wrong}")
            self.assertEqual((status, told["code"]), (400, "HX1001"), wrong)

    def test_an_attempt_that_is_not_answered_is_unknown(self):
        endpoint = self.endpoint()

        def hook(_):
            raise ConnectionAbortedError
        endpoint.hook = hook
        endpoint.handle_error = lambda *_: None
        server = self.serve(self.workflow(endpoint.url, more=SOON))
        self.publish(server, "o1")
        found = self.wait_for_attempts(server, 3, "--outcome", "unknown")
        self.assertNotIn("status", found[0])
        self.assertTrue(found[0]["reason"])

    def test_an_endpoint_that_is_not_there_is_tried_later(self):
        server = self.serve(self.workflow("http://127.0.0.1:1/in", more=SOON))
        self.publish(server, "o1")
        self.dead_letter(server)
        found = self.wait_for_attempts(server, 3)
        self.assertEqual([each["outcome"] for each in found], ["try-later"] * 3)
        self.assertNotIn("status", found[0])
        self.assertIn("connect", found[0]["reason"].lower())

    def test_trace_tells_a_life_from_source_to_confirmation(self):
        endpoint = self.refusing(1)
        server = self.serve(self.workflow(endpoint.url, more=SOON))
        self.publish(server, "o1")
        found = self.wait_for_attempts(server, 2)
        life = self.run_hapax("trace", "o1", "--url", server.url)
        told = [life.find(text) for text in (
            "stored in stream orders as sequence 1", "workflow erp sends it, attempt 1",
            "attempt 1 of workflow erp: try-later, HTTP 503", "workflow erp sends it, attempt 2",
            "attempt 2 of workflow erp: delivered, HTTP 200")]
        self.assertEqual(told, sorted(told), life)
        self.assertNotIn(-1, told, life)
        # By the key that the endpoint knows.
        by_key = self.run_hapax("trace", found[0]["key"], "--url", server.url)
        self.assertIn("attempt 2 of workflow erp: delivered", by_key)
        self.assertIn("stored in stream orders as sequence 1", by_key)
        told = json.loads(self.run_hapax("trace", "o1", "--json", "--url", server.url))
        self.assertEqual([each["outcome"] for each in told["attempts"]],
                         ["try-later", "delivered"])
        self.assertEqual(told["attempts"][0]["workflow"], "erp")

    def test_trace_tells_the_dead_letter_of_a_workflow_in_two_steps(self):
        endpoint = self.refusing(9, 422, b"no such customer")
        config = self.workflow(endpoint.url, more=SOON + "\n    transform: {jq: '.order'}")
        server = self.serve(config)
        self.publish(server, "o1")
        self.dead_letter(server)
        self.wait_for_attempts(server, 3, "o1")
        life = self.run_hapax("trace", "o1", "--url", server.url)
        for text in ("stored in stream orders as sequence 1",
                     "stored in stream erp.outbox as sequence 1",
                     "attempt 3 of workflow erp: rejected, HTTP 422",
                     "no such customer", "dead letter 1 of consumer erp: HTTP 422"):
            self.assertIn(text, life)

    def test_an_attempt_is_logged_once_over_kills(self):
        endpoint = self.endpoint()
        server = self.serve(self.workflow(endpoint.url))
        orders = [f"o{n}" for n in range(60)]
        for i, order in enumerate(orders):
            self.publish(server, order)
            if i in (20, 40):
                wait_for(lambda: len(endpoint.got) > i // 2, "some to arrive")
                server.restart()
        self.arrives(endpoint, *orders)

        def all_told():
            return {each["sequence"] for each in self.attempts(server)} == set(range(1, 61))
        wait_for(all_told, "an attempt of each record in the log")
        told = {}
        for each in self.attempts(server):
            told[each["key"]] = told.get(each["key"], 0) + 1
        with endpoint.lock:
            came = [head["webhook-id"] for head, _ in endpoint.came]
        for key, count in told.items():
            self.assertLessEqual(count, came.count(key))

    def test_no_log_is_kept_if_nobody_wants_one(self):
        endpoint = self.endpoint()
        server = self.serve(self.workflow(endpoint.url, more="    retention: {attempts: 0s}"))
        self.publish(server, "o1")
        self.arrives(endpoint, "o1")
        server.stop()
        self.assertNotIn("erp.attempts", self.run_hapax("stream", "list", "--data", self.data()))

    def test_the_log_is_read_without_a_server(self):
        endpoint = self.endpoint()
        server = self.serve(self.workflow(endpoint.url))
        self.publish(server, "o1")
        key = self.wait_for_attempts(server, 1)[0]["key"]
        server.stop()
        told = self.run_hapax("attempts", "erp", key, "--data", self.data(), "--json")
        self.assertEqual(json.loads(told)["outcome"], "delivered")

    def test_a_stream_of_that_name_stays_as_it_is(self):
        endpoint = self.endpoint()
        config = self.workflow(endpoint.url).replace("{stream: orders}",
                                                     "{stream: orders}, {stream: erp.attempts}")
        server = self.serve(config)
        self.publish(server, "o1")
        self.arrives(endpoint, "o1")
        server.wait_for_log("attempts that are not in the log 'erp.attempts'")
        _, _, stream = server.call("GET", "/api/v1/streams/erp.attempts")
        self.assertEqual(stream["last"], 0)


if __name__ == "__main__":
    AttemptsTest.HAPAX, _ = arguments()
    unittest.main()
