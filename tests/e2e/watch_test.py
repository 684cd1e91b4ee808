"""What the server tells of itself: health, systemd, figures, log lines."""

import json
import os
import re
import socket
import unittest

import running
from running import jwt, wait_for

running.arguments()

LABEL = r'[a-z]+="(?:[^"\\]|\\.)*"'
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def values(text):
    """Samples by name with labels; fails on what Prometheus would not read."""
    found = {}
    for line in text.splitlines():
        if line.startswith("#"):
            assert re.fullmatch(r"# (HELP|TYPE) [a-z_]+ .+", line), line
            continue
        match = re.fullmatch(rf"([a-z_]+(?:{{{LABEL}(?:,{LABEL})*}})?) ([0-9.e+-]+)", line)
        assert match, line
        assert match.group(1) not in found, line
        found[match.group(1)] = float(match.group(2))
    return found


class Health(running.SignedInTest):
    def test_it_is_for_everybody(self):
        served = self.serve()
        self.assertEqual(served.call("GET", "/health/live")[0], 200)
        status, _, body = served.call("GET", "/health/ready")
        self.assertEqual((status, body), (200, {"status": "ready"}))
        self.assertEqual(served.call("POST", "/health/ready")[0], 401)

    def test_systemd_is_told(self):
        path = os.path.join(self.folder, "notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(path)
            manager.settimeout(30)
            served = self.serve(environment={"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "1000000"})
            said = [manager.recv(100).decode() for _ in range(3)]
            self.assertEqual(said, ["READY=1", "WATCHDOG=1", "WATCHDOG=1"])
            self.assertEqual(served.stop(), 0)
            while said[-1] == "WATCHDOG=1":
                said.append(manager.recv(100).decode())
            self.assertEqual(said[-1], "STOPPING=1")


class Metrics(running.SignedInTest):
    def work(self, served, token=None):
        served.call("PUT", "/streams/orders", token=token)
        for payload in ("a", "a", "b"):
            served.call("POST", "/streams/orders/records", {"id": "1", "payload": payload},
                        token=token)
        served.call("POST", "/streams/orders/consumers/c/receive", token=token)
        served.call("POST", "/claims/pay/k", {"owner": "w"}, token=token)

    def test_an_id_that_comes_again_soon_after_its_window_is_a_near_miss(self):
        served = self.serve("streams: [{stream: short, window_s: 1s}]\n")

        def near_misses():
            """It is one only within another window behind its own."""
            served.call("POST", "/streams/short/records", {"id": "1", "payload": "a"})
            return values(served.call("GET", "/metrics")[2])["hapax_near_misses_total"]
        self.assertEqual(near_misses(), 0)
        running.wait_for(near_misses, "the end of a window")

    def test_names_are_those_that_dashboards_have(self):
        served = self.serve("exactly_once_config: {outbox: {enabled: true}}\n")
        self.work(served)
        served.call("POST", "/streams/outbox_events/records", {"payload": "x"})
        status, fields, text = served.call("GET", "/metrics")
        self.assertEqual(status, 200)
        self.assertTrue(fields["Content-Type"].startswith("text/plain; version=0.0.4"))
        found = values(text)
        for word in ("fresh", "duplicate", "conflict"):
            self.assertEqual(
                found[f'idempotency_checks_total{{queue="orders",result="{word}"}}'], 1)
        self.assertEqual(found['duplicate_jobs_blocked_total{queue="orders"}'], 1)
        self.assertEqual(found['hapax_verdicts_total{op="claim",verdict="fresh"}'], 1)
        self.assertEqual(found["hapax_duplicate_age_seconds_count"], 1)
        self.assertGreaterEqual(found["hapax_commit_duration_seconds_count"], 6)
        self.assertGreaterEqual(found["hapax_fsync_duration_seconds_count"], 5)
        self.assertGreater(found["hapax_batch_bytes_sum"], 500)
        self.assertGreaterEqual(found["hapax_connections"], 1)
        self.assertIn('hapax_build_info{version="', text)

        def surveyed():
            now = values(served.call("GET", "/metrics")[2])
            return (now.get('dedup_storage_size_bytes{queue="orders"}'),
                    now["outbox_events_pending"], now['hapax_claims{state="processing"}'],
                    now.get('hapax_consumer_lag{queue="orders",consumer="c"}'))

        wait_for(lambda: surveyed() == (48, 1, 1, 1), "the survey")
        self.assertGreater(values(served.call("GET", "/metrics")[2])["hapax_journal_bytes"], 0)

    def test_a_name_that_is_no_text_breaks_nothing(self):
        served = self.serve("")
        link = running.Link(served.resp_port)
        self.addCleanup(link.close)
        for name in (b"\xff", b"\xfe", b"\xef\xbf\xbd", b'a"b\\c\nd'):
            link.ask("HX.CLAIM", name, "k", "OWNER", "w")
            link.ask("HX.CREATE_STREAM", name)
            link.ask("HX.CREATE_CONSUMER", name, b"c" + name)

        def told(name):
            text = served.call("GET", "/metrics").body.decode()  # fails if it is not UTF-8
            return [key for key in values(text) if key.startswith(name + "{")]

        # Scopes are any bytes, names of streams and consumers are text.
        wait_for(lambda: len(told("hapax_consumer_lag")) == 2, "the figures of two consumers")
        for scope in ("\ufffdff", "\ufffdfe"):
            self.assertEqual(len([key for key in told("idempotency_checks_total")
                                  if f'queue="{scope}"' in key]), 1)

    def test_a_tenant_sees_its_own(self):
        served = self.serve()
        self.work(served, jwt("acme"))
        self.work(served, jwt("other"))
        self.assertEqual(served.call("GET", "/metrics")[0], 401)
        self.assertEqual(served.call("GET", "/metrics", token=jwt(roles=["produce"]))[0], 403)
        text = served.call("GET", "/metrics", token=jwt("acme"))[2]
        found = values(text)
        self.assertEqual(found['duplicate_jobs_blocked_total{tenant="acme",queue="orders"}'], 1)
        self.assertNotIn("other", text.replace("(others)", ""))
        self.assertNotIn("hapax_verdicts_total", text)

    def test_they_may_have_an_address_of_their_own_or_be_open(self):
        served = self.serve(self.AUTH + "metrics: {address: '127.0.0.1:0'}\n")
        self.work(served, jwt("acme"))
        url = served.process.stdout.readline().split()[1]
        self.assertEqual(served.call("GET", "/metrics")[0], 401)
        served.url = url.removesuffix("/metrics")
        status, _, text = served.call("GET", "/metrics")
        self.assertEqual(status, 200)
        self.assertIn('hapax_verdicts_total{op="append",verdict="fresh"} ', text)
        self.assertIn('tenant="acme"', text)
        self.assertEqual(served.call("GET", "/streams")[0], 401)
        self.assertEqual(served.call("PUT", "/streams/new", {}, token=jwt("acme"))[0], 404)
        self.assertEqual(served.call("GET", "/metrics", {})[0], 200)
        self.assertEqual(served.stop(), 0)
        served = self.serve(self.AUTH + "metrics: {open: true}\n")
        self.assertEqual(served.call("GET", "/metrics")[0], 200)


class Logs(running.SignedInTest):
    def test_a_request_is_found_by_its_ids(self):
        served = self.serve(self.AUTH + "log: {format: json, requests: true}\n")
        parent = f"00-{TRACE}-00f067aa0ba902b7-01"
        status, fields, _ = served.call("GET", "/streams/secret-name", token=jwt(sub="ann"),
                                        headers={"X-Request-Id": "r-1", "traceparent": parent})
        self.assertEqual((status, fields["X-Request-Id"]), (404, "r-1"))
        self.assertRegex(fields["traceparent"], f"^00-{TRACE}-[0-9a-f]{{16}}-01$")
        made = served.call("GET", "/nowhere", headers={"X-Request-Id": "two words"})[1]
        self.assertRegex(made["X-Request-Id"], "^[0-9a-f]{16}$")
        served.wait_for_log('"request"', 2)
        lines = [json.loads(line) for line in served.text().splitlines()]
        line = next(line for line in lines if line.get("request") == "r-1")
        self.assertEqual((line["trace"], line["tenant"], line["subject"], line["status"]),
                         (TRACE, "acme", "ann", 404))
        self.assertEqual(line["route"], "/api/v1/streams/{stream}")
        self.assertNotIn("secret-name", served.text())

    def test_levels(self):
        served = self.serve(self.AUTH + "log: {level: error, requests: true}\n")
        served.call("GET", "/streams", token="x")
        served.call("GET", "/streams", token=jwt())
        served.stop()
        self.assertEqual(served.text(), "")


if __name__ == "__main__":
    unittest.main(verbosity=2)
