"""Alerts, as `hapax serve` tells them: to endpoints, into streams and in the log, each once."""

import json
import os
import unittest

import delivering
import postgres
import running
from running import wait_for

running.arguments()

KEY = {"ALERT_KEY": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}


def declared(url, alert):
    return f"""
workflows:
  - id: shop
    source: {{type: http}}
    endpoint: {{url: "{url}"}}
    delivery: {{retries: {{maxAttempts: 1}}}}
alerts:
{alert}
"""


class AlertTest(delivering.DeliveryTest):
    def shop(self, status):
        """An endpoint of the workflow that answers so."""
        endpoint = self.endpoint()
        endpoint.hook = lambda _: status
        return endpoint

    def post(self, server, *events):
        for event in events:
            answer = server.call("POST", "/workflows/shop/events", {"id": event, "payload": "1"})
            self.assertEqual(answer.status, 201, answer.body)

    def told(self, endpoint):
        """A message that comes again comes under its id, as any record of a workflow does."""
        with endpoint.lock:
            by_id = {head["webhook-id"]: body for head, body in endpoint.got}
        bodies = [json.loads(body)["data"] for body in by_id.values()]
        return [(one["alert"], one["state"], one["workflow"]) for one in bodies]

    def kept(self, server):
        return server.call("GET", "/workflows/shop").json["dead_letters"]

    def replay_all(self, server):
        self.hapax("dead", "replay", "shop", "--all", "--url", server.url)


class Told(AlertTest):
    def test_a_dead_letter_is_told_once_over_restarts_and_so_is_its_end(self):
        shop, pager = self.shop(422), self.endpoint()
        server = self.serve(declared(shop.url, f"""
  - id: dead
    when: dead-letters
    endpoint: {{url: "{pager.url}", signing: {{keys: [{{key: "${{env:ALERT_KEY}}"}}]}}}}
"""), KEY)
        self.post(server, "e1")
        wait_for(lambda: self.told(pager), "an alert")
        self.post(server, "e2")
        wait_for(lambda: self.kept(server) == 2, "two dead letters")
        server.restart()
        wait_for(lambda: self.kept(server) == 2, "two dead letters")
        server.wait_for_log("alert.begins alert=dead")
        shop.hook = None
        self.replay_all(server)
        wait_for(lambda: len(self.told(pager)) > 1, "the end of the alert", seconds=150)
        self.assertEqual(self.told(pager), [("dead", "begins", "shop"), ("dead", "ends", "shop")])
        self.assertEqual(server.text().count("alert.begins alert=dead"), 1)
        with pager.lock:
            fields, body = pager.got[0]
        self.assertTrue(fields["webhook-signature"].startswith("v1,"))
        envelope = json.loads(body)
        self.assertEqual(envelope["eventType"], "alert.begins")
        self.assertGreaterEqual(envelope["data"]["value"], 1)
        self.assertEqual(envelope["data"]["above"], 0)
        names = [one["id"] for one in server.call("GET", "/workflows").json["workflows"]]
        self.assertEqual(names, ["shop"])

    def test_an_alert_goes_into_a_stream_and_to_several_endpoints(self):
        shop, pager = self.shop(422), self.endpoint()
        server = self.serve("streams: [{stream: ops.alerts}]\n" + declared(shop.url, f"""
  - id: dead
    when: dead-letters
    log: false
    endpoints:
      - {{name: kept, stream: ops.alerts}}
      - {{name: pager, url: "{pager.url}"}}
"""))
        self.post(server, "e1")
        wait_for(lambda: self.told(pager), "an alert")

        def stored():
            answer = server.call("GET", "/streams/ops.alerts/records")
            return answer.json["records"] if answer.status == 200 else []
        wait_for(stored, "an alert in the stream")
        self.assertEqual([json.loads(one["payload"])["state"] for one in stored()], ["begins"])
        self.assertNotIn("alert.begins", server.text())

    def test_an_alert_that_cannot_be_delivered_is_in_the_log_and_holds_up_nothing(self):
        shop, pager = self.shop(422), self.endpoint()
        pager.hook = lambda _: pager.closing.wait(60) and 500  # It never answers.
        server = self.serve("delivery: {retries: {maxAttempts: 1}}\n" + declared(shop.url, f"""
  - id: dead
    when: dead-letters
    endpoint: {{url: "{pager.url}", timeouts: {{request: 2s}}}}
"""))
        self.post(server, "e1")
        server.wait_for_log("alert.begins alert=dead")
        shop.hook = None
        self.post(server, *(f"more-{i}" for i in range(20)))
        wait_for(lambda: len(shop.got) == 20, "all records at the endpoint")
        server.wait_for_log("workflow=alerts.dead")

    def test_a_workflow_that_is_behind_and_an_endpoint_that_is_gone(self):
        shop = self.shop(410)
        server = self.serve(declared(shop.url, """
  - {id: late, when: lag, time: 1s, for: 0s}
  - {id: gone, when: endpoint-disabled}
"""))
        self.post(server, "e1")
        server.wait_for_log("alert.begins alert=late")
        server.wait_for_log("alert.begins alert=gone")
        self.assertIn("workflow shop: disabled, nothing is sent to it", server.text())
        shop.hook = None
        for act in ("pause", "resume"):
            server.call("POST", f"/workflows/shop/{act}")
            if act == "pause":
                server.wait_for_log('what="is paused"')
        server.wait_for_log("alert.ends alert=gone")
        server.wait_for_log("alert.ends alert=late")

    def test_duplicates_of_a_queue(self):
        server = self.serve("alerts: [{id: twice, when: duplicate-rate, share: 50%, for: 0s, "
                            "names: [shop.*]}]\nstreams: [{stream: shop.orders}]")
        for i in range(60):
            server.call("POST", "/streams/shop.orders/records",
                        {"id": f"e{i // 6}", "payload": "1"})
        server.wait_for_log("alert.begins alert=twice")
        self.assertRegex(server.text(),
                         r"queue shop\.orders: [0-9.]+ % are duplicates, more than 50 %")

    def test_an_alert_that_makes_no_sense_is_refused_where_it_stands(self):
        path = self.folder + "/bad.yaml"
        with open(path, "w", encoding="utf-8") as file:
            file.write("""alerts:
  - {id: a, when: lags}
  - {id: b, when: lag, count: 3}
  - {id: c, when: quota, share: lots}
  - {id: d, when: dead-letters, log: false}
  - id: e
    when: lag
    endpoint: {url: nowhere}
workflows:
  - {id: alerts.e}
""")
        told = running.subprocess.run([self.HAPAX, "check", path], capture_output=True, text=True,
                                      timeout=60, check=False)
        self.assertEqual(told.returncode, 64, told.stderr)
        for line in ("bad.yaml:2:19: alerts.0.when must be one of dead-letters, lag,",
                     "bad.yaml:3:24: alerts.1.count is only of dead-letters",
                     "bad.yaml:4:26: alerts.2.share must be a share such as 10% or 0.1",
                     "bad.yaml:5:33: alerts.3.log is false and there is no endpoint",
                     "bad.yaml:8:16: alerts.4.endpoint.url",
                     "bad.yaml:10:6: workflows.0.id begins with 'alerts.'"):
            self.assertIn(line, told.stderr)


class Shared(AlertTest):
    """Three processes on one store in PostgreSQL."""

    def setUp(self):
        super().setUp()
        self.cluster = postgres.Cluster()
        self.addCleanup(self.cluster.end)

    def join(self, number, config):
        folder = os.path.join(self.folder, str(number))
        os.makedirs(folder)
        server = running.Server(self.HAPAX, folder, "--store", self.cluster.uri("postgres"),
                                config=config)
        self.addCleanup(server.end)
        return server

    def test_one_tells_and_another_takes_over_when_it_dies(self):
        shop, pager = self.shop(422), self.endpoint()
        config = declared(shop.url, f"""
  - {{id: dead, when: dead-letters, endpoint: {{url: "{pager.url}"}}}}
""")
        servers = [self.join(number, config) for number in range(3)]
        self.post(servers[0], "e1")
        wait_for(lambda: self.told(pager), "an alert")

        def lines():
            return [server.text().count("alert.begins alert=dead") for server in servers]
        wait_for(lambda: sum(lines()), "a line in a log")
        servers[lines().index(1)].kill()
        left = servers[(lines().index(1) + 1) % 3]
        shop.hook = None
        self.replay_all(left)
        wait_for(lambda: len(self.told(pager)) > 1, "the end of the alert", seconds=180)
        self.assertEqual(self.told(pager), [("dead", "begins", "shop"), ("dead", "ends", "shop")])
        self.assertEqual(sum(lines()), 1)


if __name__ == "__main__":
    unittest.main()
