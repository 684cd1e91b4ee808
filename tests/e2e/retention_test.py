"""How long records wait for their delivery, and what is told of those that were lost."""

import unittest

from delivering import DeliveryTest
from running import arguments, wait_for

arguments()


class RetentionTest(DeliveryTest):
    def expires(self, more=""):
        endpoint = self.endpoint()
        endpoint.hook = lambda request: 503
        server = self.serve(self.workflow(endpoint.url, more=more + """
    deadLetter: {keep: 1s}
    delivery: {retries: {maxAttempts: 9999, backoffMs: [50], giveUpAfter: 1h}}
"""))
        self.publish(server, "a1", group="k")
        dead = self.dead_letter(server)
        self.assertIn("expired: it was not delivered within 1s", dead["lineage"]["reason"])

    def test_what_waits_for_too_long_is_a_dead_letter(self):
        self.expires()

    def test_so_is_what_waits_in_the_outbox(self):
        self.expires("    transform: {jq: .}\n")

    def test_what_the_stream_removes_is_told(self):
        endpoint = self.endpoint()
        server = self.serve(self.workflow(endpoint.url).replace(
            "{stream: orders}", "{stream: orders, retention_age_ms: 1h}"))
        server.wait_for_log("what waits for longer is lost")
        server.call("POST", "/workflows/erp/pause")
        server.wait_for_log("is paused")
        self.publish(server, "a1", "a2", "a3", "a4")
        server.call("POST", "/streams/orders/trim", {"before": 4})
        self.assertEqual(server.call("GET", "/workflows/erp").json["lost"], 0)
        server.call("POST", "/workflows/erp/resume")
        self.arrives(endpoint, "a4")
        self.assertEqual(server.call("GET", "/workflows/erp").json["lost"], 3)
        server.wait_for_log("removed 3 records (1 to 3) by its own retention")
        self.assertEqual(self.orders(endpoint), ["a4"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
