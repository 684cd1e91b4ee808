"""The design document "Exactly Once Patterns", pasted: its configuration as it stands, and under it
its commands and figures in the order in which the document has them."""

import http.client
import json
import unittest

import running

running.arguments()

CONFIG = """
exactly_once_config:
  enabled: true

  deduplication:
    redis_cluster: "redis://redis-cluster:6379"
    default_ttl: "1h"
    max_ttl: "24h"
    key_prefix: "dedup"

  outbox:
    enabled: true
    table_name: "outbox_events"
    batch_size: 100
    poll_interval: "5s"
    max_retries: 3

  monitoring:
    metrics_enabled: true
    prometheus_endpoint: ":9090"
    log_level: "info"

  security:
    require_auth: true
    storage_quota_mb: 100
"""
SLOS = """
performance_slos:
  idempotency_check_latency_p99: 5ms
  dedup_key_write_latency_p99: 10ms
  outbox_processing_latency_p95: 50ms
  storage_utilization_threshold: 80%
  hit_rate_target: 95%
"""
OUTBOX = "/streams/outbox_events"


class Document(running.SignedInTest):
    """What the document leaves open is said beside the block: who signs in, and a port that is
    free."""

    def paste(self, block=CONFIG, more=""):
        self.metrics = running.free_port()
        served = self.serve(f"{self.AUTH}{block}{more}"
                            f"metrics: {{address: '127.0.0.1:{self.metrics}'}}\n")
        self.token = running.jwt()
        self.call = lambda *words, **more: served.call(*words, token=self.token, **more)
        self.redis = self.client(served, self.token)
        return served

    def figures(self):
        """name{labels} to value, as they are told on the endpoint of Prometheus."""
        link = http.client.HTTPConnection("127.0.0.1", self.metrics, timeout=30)
        link.request("GET", "/metrics")
        text = link.getresponse().read().decode()
        link.close()
        lines = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
        return {name: float(value) for name, value in lines}

    def total(self, name, *labels):
        return sum(value for key, value in self.figures().items()
                   if key.split("{")[0] == name and all(label in key for label in labels))

    def status(self, key):
        return self.call("GET", f"/dedup/keys/{running.quote(key)}/status").json

    def stats(self, queue):
        return self.call("GET", f"/dedup/stats?queue={queue}").json

    def test_idempotency_check_flow(self):
        served = self.paste()
        key = "dedup:queue:job-123"
        self.assertEqual(self.redis("SETNX", key, "processing"), 1)
        self.assertIn(self.redis("TTL", key), range(3500, 3601))
        self.assertEqual(self.redis("SETNX", key, "processing"), 0)
        self.assertEqual(self.status(key)["status"], "processing")
        self.assertEqual(self.redis("SET", key, "completed", "EX", "3600"), "OK")
        self.assertEqual(self.redis("SETNX", key, "processing"), 0)
        self.assertEqual(self.status(key)["status"], "completed")
        self.assertEqual(self.redis("INCR", "attempts"), 1)
        self.assertIn(self.redis("TTL", "attempts"), range(3500, 3601))
        told = self.stats("queue")
        self.assertAlmostEqual(told.pop("hit_rate_24h"), 2 / 3, places=2)
        self.assertLessEqual(told.pop("storage_size_mb"), 0.001)  # 1 MB per 1,000 keys
        self.assertEqual(told, {"queue_name": "queue", "total_keys": 1,
                                "duplicate_jobs_blocked": 2,
                                "ttl_distribution": {"0-1h": 1, "1-6h": 0, "6-24h": 0}})
        self.assertNotIn("default_ttl", served.text())

    def test_outbox_pattern_flow(self):
        self.paste(more="tenants: {acme: {rate: 0}}\n")
        event = {"id": "e-1", "group": "order-7", "payload": {"total": 3},
                 "headers": {"event_type": "OrderPaid", "correlation_id": "req-456"}}
        self.assertEqual(self.call("POST", OUTBOX + "/records", event).json["verdict"], "fresh")
        self.assertEqual(self.call("POST", OUTBOX + "/records", event).json["verdict"],
                         "duplicate")
        settings = self.call("GET", OUTBOX).json["settings"]
        self.assertEqual((settings["retention_acked_by_all"], settings["retention_age_ms"],
                          settings["window_s"]), (True, 7 * 86_400_000, 3600))
        self.assertEqual(self.call("GET", "/outbox/pending").json["pending"], 1)
        received = self.call("POST", OUTBOX + "/consumers/relay/receive").json["records"]
        self.call("POST", OUTBOX + "/consumers/relay/ack", {"receipt": received[0]["receipt"]})
        told = self.call("GET", "/outbox/stats").json
        self.assertEqual((told["pending"], told["published"], told["failed"]), (0, 1, 0))

    def test_the_helper_of_workers(self):
        self.paste()
        claim = self.call("POST", "/claims/queue/job-1", {"owner": "worker-001"}).json
        self.assertEqual(claim["verdict"], "fresh")
        self.assertEqual(self.call("POST", "/claims/queue/job-1").json["verdict"], "in_progress")
        self.assertEqual(self.status("dedup:queue:job-1")["status"], "processing")
        self.call("POST", "/claims/queue/job-1/settle", {"fence": claim["fence"]})
        self.assertEqual(self.status("dedup:queue:job-1")["status"], "completed")
        again = self.call("POST", "/claims/queue/job-1").json
        self.assertEqual(again["verdict"], "duplicate")
        self.assertEqual(again["expires_at_ms"] - again["settled_at_ms"], 3_600_000)
        failed = self.call("POST", "/claims/queue/job-2").json
        self.call("POST", "/claims/queue/job-2/settle",
                  {"fence": failed["fence"], "outcome": "failed", "reason": "no"})
        self.assertEqual(self.status("dedup:queue:job-2")["status"], "failed")
        self.assertEqual(self.status("dedup:queue:job-3")["status"], "not_seen")
        told = self.stats("queue")
        self.assertEqual((told["total_keys"], told["duplicate_jobs_blocked"]), (2, 1))
        self.assertEqual(told["ttl_distribution"], {"0-1h": 2, "1-6h": 0, "6-24h": 0})
        self.assertAlmostEqual(told["hit_rate_24h"], 1 / 3, places=2)

    def test_data_models(self):
        self.paste()
        value = {"status": "completed", "processed_at": "2025-09-14T19:41:47Z",
                 "worker_id": "worker-001", "attempt_count": 1,
                 "metadata": {"correlation_id": "req-456", "tenant_id": "tenant-123"}}
        self.assertEqual(self.redis("SET", "dedup:queue:job-5", json.dumps(value)), "OK")
        self.assertIn(self.redis("TTL", "dedup:queue:job-5"), range(3500, 3601))
        self.assertEqual(self.status("dedup:queue:job-5"), {"key": "dedup:queue:job-5", **value})
        self.assertTrue(self.call("DELETE", "/dedup/keys/dedup:queue:job-5").json["deleted"])

    def test_metrics_and_alerts(self):
        self.paste(more="tenants: {acme: {rate: 0}}\n" + SLOS)
        for number in range(10):
            self.redis("SETNX", f"dedup:queue:{number}", "processing")
            self.call("POST", f"/claims/other/{number}")
        for number in range(2):
            self.redis("SETNX", f"dedup:queue:{number}", "processing")
        self.call("POST", OUTBOX + "/records", {"payload": "x"})
        checks = self.total("idempotency_checks_total", 'queue="queue"')
        duplicates = self.total("duplicate_jobs_blocked_total", 'queue="queue"')
        self.assertEqual((checks, duplicates), (12, 2))
        self.assertGreater(duplicates / checks, 0.1)  # high_duplicate_rate
        self.assertEqual(
            self.total("idempotency_checks_total", 'queue="queue"', 'result="duplicate"'), 2)
        self.assertEqual(self.total("idempotency_checks_total", 'queue="other"'), 10)
        for queue in ("queue", "other"):
            self.assertGreater(self.total("dedup_storage_size_bytes", f'queue="{queue}"'), 800)
        self.assertEqual(self.total("hapax_verdicts_total", 'op="set"', 'verdict="done"'), 10)
        self.assertEqual(self.total("hapax_verdicts_total", 'op="set"', 'verdict="unchanged"'), 2)
        running.wait_for(lambda: self.total("outbox_events_pending") == 1, "an event that waits")
        running.wait_for(  # storage_quota_exceeded
            lambda: 0 < self.total("hapax_tenant_total_bytes", 'tenant="acme"') /
            self.total("hapax_tenant_total_max_bytes", 'tenant="acme"') < 0.8, "figures of acme")
        targets = {"idempotency_check_latency_p99": 0.005, "dedup_key_write_latency_p99": 0.01,
                   "outbox_processing_latency_p95": 0.05, "storage_utilization_threshold": 0.8,
                   "hit_rate_target": 0.95}
        for slo, target in targets.items():
            self.assertEqual(self.total("hapax_slo_target", f'slo="{slo}"'), target)

    def test_security(self):
        served = self.paste()
        self.assertEqual(served.call("GET", "/dedup/stats").status, 401)
        self.assertEqual(self.redis("SETNX", "dedup:queue:job-123", "processing"), 1)
        other = self.client(served, running.jwt("shop"))
        self.assertEqual(other("SETNX", "dedup:queue:job-123", "processing"), 1)
        self.assertEqual(self.stats("queue")["total_keys"], 1)
        self.assertIn("HX1002", str(self.redis("SET", "dedup:queue:j", "x", "EX", "86401")))
        too_long = self.call("POST", "/claims/queue/j", {"tombstone_s": 86401})
        self.assertEqual((too_long.status, too_long.json["code"]), (413, "HX1002"))

    def test_a_limit_below_a_day_refuses_nobody_who_says_nothing(self):
        self.paste("exactly_once_config: {deduplication: {max_ttl: 12h}}\n")
        self.assertEqual(self.call("PUT", "/streams/s").status, 200)
        self.assertEqual(self.call("GET", "/streams/s").json["settings"]["window_s"], 12 * 3600)
        fence = self.call("POST", "/claims/q/1").json["fence"]
        self.call("POST", "/claims/q/1/settle", {"fence": fence})
        again = self.call("POST", "/claims/q/1").json
        self.assertEqual(again["expires_at_ms"] - again["settled_at_ms"], 12 * 3_600_000)
        map_of = self.redis("HX.CLAIM", "q", "2")
        self.assertEqual(map_of[1], "fresh")
        commit = {"ops": [{"op": "claim", "scope": "q", "key": "3"}]}
        self.assertEqual(self.call("POST", "/commit", commit).json["verdicts"][0]["verdict"],
                         "fresh")

    def test_the_quota_covers_what_is_remembered(self):
        self.paste("exactly_once_config: {security: {storage_quota_mb: 2}}\n")
        self.call("PUT", "/streams/ids")
        stored = 0
        for batch in range(20):
            lines = "".join(f'{{"id":"{batch}-{number}","payload":""}}\n'
                            for number in range(5_000))
            answer = self.call("POST", "/streams/ids/records", lines.encode(),
                               headers={"Content-Type": "application/x-ndjson"}).json
            verdicts = [one["verdict"] for one in answer["verdicts"]]
            stored += verdicts.count("fresh")
            if "refused" in verdicts:
                self.assertEqual(answer["verdicts"][-1]["code"], "HX1006")
                break
            self.call("POST", "/streams/ids/trim", {"before": stored + 1})  # Their ids stay.
        self.assertLess(stored, 40_000)
        self.assertGreater(stored, 20_000)
        # The answers of the batches, 5 kB each, count for a moment only, so there may be a little
        # room again.
        self.assertIn("HX1006", str(self.redis("SETNX", "dedup:q:1", "x" * 60_000)))

    def test_acked_events_make_room(self):
        self.paste(CONFIG.replace("storage_quota_mb: 100", "storage_quota_mb: 1"),
                   "tenants: {acme: {rate: 0}}\n")
        body = "x" * 1_000
        for batch in range(20):
            lines = "".join(json.dumps({"payload": body}) + "\n" for _ in range(100))
            answer = self.call("POST", OUTBOX + "/records", lines.encode(),
                               headers={"Content-Type": "application/x-ndjson"}).json
            self.assertEqual({one["verdict"] for one in answer["verdicts"]}, {"fresh"}, batch)
            received = self.call("POST", OUTBOX + "/consumers/relay/receive", {"max": 100}).json
            acks = [{"receipt": one["receipt"]} for one in received["records"]]
            self.assertEqual(len(acks), 100)
            self.call("POST", OUTBOX + "/consumers/relay/ack", {"acks": acks})

    def test_max_retries_of_the_outbox(self):
        self.paste()
        self.call("PUT", OUTBOX)  # Of a tenant that the configuration does not name.
        self.assertTrue(self.call("GET", OUTBOX).json["settings"]["retention_acked_by_all"])
        self.call("POST", OUTBOX + "/records", {"payload": "x"})
        self.call("PUT", OUTBOX + "/consumers/made")
        for consumer in ("relay", "made"):
            path = f"{OUTBOX}/consumers/{consumer}"
            for _ in range(4):  # and three retries
                records = self.call("POST", path + "/receive").json["records"]
                self.call("POST", path + "/nack", {"receipt": records[0]["receipt"]})
            self.assertEqual(self.call("POST", path + "/receive").json["records"], [])
        self.assertEqual(self.call("GET", "/outbox/stats").json["failed"], 1)

    def test_complete_job_lifecycle_and_a_restart(self):
        served = self.paste()
        self.redis("SETNX", "dedup:queue:job-123", "processing")
        self.redis("SETNX", "dedup:queue:job-123", "processing")
        claim = self.call("POST", "/claims/queue/job-4").json
        self.call("POST", "/claims/queue/job-4/settle", {"fence": claim["fence"]})
        self.call("POST", "/claims/queue/job-4")
        before = self.stats("queue")
        self.assertEqual((before["total_keys"], before["hit_rate_24h"],
                          before["duplicate_jobs_blocked"]), (2, 0.5, 2))
        self.assertEqual(served.stop(), 0)
        served.restart()
        self.assertEqual(self.stats("queue"), before)
        self.redis = self.client(served, self.token)
        self.assertEqual(self.redis("SETNX", "dedup:queue:job-123", "processing"), 0)
        self.assertEqual(self.stats("queue")["duplicate_jobs_blocked"], 3)
        self.assertEqual(self.redis("DBSIZE"), 1)
        self.assertEqual(self.redis("SCAN", "0", "COUNT", "1000"), ["0", ["dedup:queue:job-123"]])

    def test_failure_recovery(self):
        self.paste()
        crashed = self.call("POST", "/claims/queue/job-9", {"owner": "a", "lease_ms": 1}).json
        taken = {}

        def take_over():
            taken.update(self.call("POST", "/claims/queue/job-9", {"owner": "b"}).json)
            return taken["verdict"] == "fresh"
        running.wait_for(take_over, "the lease to run out")
        self.assertEqual(taken["attempt"], 2)
        late = self.call("POST", "/claims/queue/job-9/settle", {"fence": crashed["fence"]})
        self.assertEqual(late.json["verdict"], "fenced")
        self.call("POST", "/claims/queue/job-9/settle", {"fence": taken["fence"]})
        self.assertEqual(self.call("POST", "/claims/queue/job-9").json["verdict"], "duplicate")


if __name__ == "__main__":
    unittest.main(verbosity=2)
