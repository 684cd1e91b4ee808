"""The endpoints of "Exactly Once Patterns": dedup keys, figures of queues, and the outbox."""

import json
import unittest

import running

running.arguments()


class ExactlyOnceDocument(running.ServerTest):
    """The endpoints of the design document "Exactly Once Patterns", member by member."""

    def test_statistics_of_a_queue(self):
        nothing = {"total_keys": 0, "hit_rate_24h": 0, "duplicate_jobs_blocked": 0,
                   "storage_size_mb": 0, "ttl_distribution": {"0-1h": 0, "1-6h": 0, "6-24h": 0}}
        for query, name in (("", "default"), ("?queue=mail", "mail")):
            self.assertEqual(self.call("GET", "/dedup/stats" + query).json,
                             {"queue_name": name, **nothing})
        fence = self.call("POST", "/claims/jobs/1", {"owner": "w"}).json["fence"]
        self.call("POST", "/claims/jobs/1/settle", {"fence": fence})
        self.call("POST", "/claims/jobs/1", {"owner": "w"})
        self.assertEqual(self.call("GET", "/dedup/stats?queue=jobs").json,
                         {"queue_name": "jobs", **nothing, "total_keys": 1, "hit_rate_24h": 0.5,
                          "duplicate_jobs_blocked": 1,
                          "ttl_distribution": {"0-1h": 0, "1-6h": 0, "6-24h": 1}})
        self.call("PUT", "/streams/mail")
        for number in (1, 2, 3, 1):
            self.call("POST", "/streams/mail/records", {"id": f"job-{number}", "payload": "x"})
        self.assertEqual(self.call("GET", "/dedup/stats?queue=mail").json, {
            "queue_name": "mail", "total_keys": 3, "hit_rate_24h": 0.25,
            "duplicate_jobs_blocked": 1, "storage_size_mb": 0.0,
            "ttl_distribution": {"0-1h": 0, "1-6h": 0, "6-24h": 3}})
        self.call("PUT", "/streams/default", {"window_s": 1800})
        self.call("POST", "/streams/default/records", {"id": "a", "payload": "x"})
        told = self.call("GET", "/dedup/stats").json
        self.assertEqual(told["queue_name"], "default")
        self.assertEqual(told["ttl_distribution"], {"0-1h": 1, "1-6h": 0, "6-24h": 0})
        self.call("PUT", "/streams/years", {"window_s": 30_000_000})
        self.call("POST", "/streams/years/records", {"id": "a", "payload": "x"})
        told = self.call("GET", "/dedup/stats?queue=years").json
        self.assertEqual(told["ttl_distribution"]["24h+"], 1)

    def test_an_id_of_this_millisecond_has_no_more_than_its_window_left(self):
        self.call("PUT", "/streams/mail")
        body = b'{"payload": "x", "id": "%d"}'
        ask = b"GET /api/v1/dedup/stats?queue=mail HTTP/1.1\r\nHost: localhost\r\n\r\n"
        sent = b""
        for number in range(100):  # pipelined: most are asked for in the millisecond they came in
            one = body % number
            sent += (b"POST /api/v1/streams/mail/records HTTP/1.1\r\nHost: localhost\r\n"
                     b"Content-Type: application/json\r\n"
                     b"Content-Length: %d\r\n\r\n%b" % (len(one), one)) + ask
        told = self.server.raw(sent[:-2] + b"Connection: close\r\n\r\n")
        self.assertEqual(told.count(b'"total_keys"'), 100)
        self.assertNotIn(b"24h+", told)

    def test_status_and_deletion_of_a_key(self):
        path = "/dedup/keys/" + running.quote("dedup:mail:job-123")
        status = path + "/status"
        self.assertEqual(self.call("GET", status).json["status"], "not_seen")
        claim = self.call("POST", "/claims/mail/job-123", {"owner": "worker-001"}).json
        told = self.call("GET", status).json
        self.assertEqual((told["status"], told["worker_id"], told["attempt_count"]),
                         ("processing", "worker-001", 1))
        self.assertIsNone(told["processed_at"])
        self.call("POST", "/claims/mail/job-123/settle", {"fence": claim["fence"]})
        told = self.call("GET", "/dedup/keys/job-123/status?queue=mail").json
        self.assertEqual(told["status"], "completed")
        self.assertRegex(told["processed_at"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertEqual(self.call("DELETE", path).json,
                         {"key": "dedup:mail:job-123", "deleted": True})
        self.assertEqual(self.call("GET", status).json["status"], "not_seen")
        self.assertEqual(self.call("DELETE", path).status, 404)

    def test_a_completed_key_tells_who_did_it_and_what_belongs_to_it(self):
        claim = self.call("POST", "/claims/mail/job-7", {"owner": "worker-001"}).json
        value = {"status": "completed", "metadata": {"correlation_id": "req-456"}}
        self.call("POST", "/claims/mail/job-7/settle", {"fence": claim["fence"], "body": value})
        told = self.call("GET", "/dedup/keys/dedup:mail:job-7/status").json
        self.assertEqual((told["status"], told["worker_id"], told["metadata"]),
                         ("completed", "worker-001", value["metadata"]))

    def test_not_seen_is_never_said_of_what_was_not_looked_for(self):
        claim = self.call("POST", "/claims/mail/job-8", {"owner": "w"}).json
        self.call("POST", "/claims/mail/job-8/settle", {"fence": claim["fence"]})
        for key in ("dedup:mail:tenant-1:job-8", "jobs:mail:job-8", "jobs:mail:tenant-1:job-8"):
            answer = self.call("GET", f"/dedup/keys/{key}/status")
            self.assertEqual(answer.status, 400, key)
            self.assertIn("ask for dedup:mail:job-8", answer.json["detail"])
        self.assertEqual(self.call("GET", "/dedup/keys/dedup:mail:t:job-9/status").json["status"],
                         "not_seen")
        self.call("PUT", "/streams/grouped", {"id_scope": "group"})
        self.call("POST", "/streams/grouped/records", {"id": "a", "group": "g", "payload": "x"})
        path = "/dedup/keys/dedup:grouped:a/status"
        answer = self.call("GET", path)
        self.assertEqual(answer.status, 400)
        self.assertIn("unique per group", answer.json["detail"])
        self.assertEqual(self.call("GET", path + "?group=g").json["status"], "completed")
        self.assertEqual(self.call("GET", path + "?group=h").json["status"], "not_seen")

    def test_a_key_may_be_a_message_id_or_a_plain_key(self):
        self.call("PUT", "/streams/mail")
        self.call("POST", "/streams/mail/records", {"id": "job-9", "payload": "x"})
        self.assertEqual(self.call("GET", "/dedup/keys/mail:job-9/status").json["status"],
                         "completed")
        self.assertEqual(self.call("DELETE", "/dedup/keys/mail:job-9").status, 404)
        path = "/dedup/keys/dedup:q:j"
        client = self.client(self.server)
        self.assertEqual(client("SETNX", "dedup:q:j", "processing"), 1)
        self.assertEqual(self.call("GET", path + "/status").json["status"], "processing")
        key = {"Idempotency-Key": "d"}
        for replayed in (None, "true"):
            answer = self.call("DELETE", path, headers=key)
            self.assertEqual(answer.json, {"key": "dedup:q:j", "deleted": True})
            self.assertEqual(answer.headers["Idempotent-Replayed"], replayed)
        self.assertEqual(self.call("GET", path + "/status").json["status"], "not_seen")
        self.assertEqual(client("EXISTS", "dedup:q:j"), 0)
        self.assertEqual(self.call("DELETE", path).status, 404)

    def test_a_plain_key_may_say_everything_of_its_job(self):
        client = self.client(self.server)
        path = "/dedup/keys/dedup:queue:job-12"
        nothing = {"processed_at": None, "worker_id": None, "attempt_count": 1, "metadata": {}}
        full = {"status": "failed", "processed_at": "2025-09-14T19:41:47Z",
                "worker_id": "worker-001", "attempt_count": 3,
                "metadata": {"correlation_id": "req-456", "tries": [1, {"n": 2}]}}
        for value, told in (
                (json.dumps(full), full),
                ('{"status":"processing","attempt_count":"2","metadata":[]}',
                 {"status": "processing", **nothing}),
                ('{"metadata":{"sum": 1.10},"status":"completed","processed_at":null}',
                 {"status": "completed", **nothing, "metadata": {"sum": 1.1}}),
                ('{"state":"failed"}', {"status": "completed", **nothing}),
                ('{"status":"failed"', {"status": "completed", **nothing}),
                ('{"status":7}', {"status": "completed", **nothing}),
                ("failed", {"status": "failed", **nothing})):
            self.assertEqual(client("SET", "dedup:queue:job-12", value, "EX", "100"), "OK")
            answer = self.call("GET", path + "/status")
            self.assertEqual(answer.json, {"key": "dedup:queue:job-12", **told}, value)

    def test_the_outbox_is_a_stream_and_its_relay_a_consumer(self):
        empty = {"pending": 0, "published": 0, "failed": 0, "oldest_pending_at": None,
                 "lag_seconds": 0}
        self.assertEqual(self.call("GET", "/outbox/stats").json, empty)
        self.assertEqual(self.call("GET", "/outbox/pending").json, {"pending": 0, "events": []})
        self.call("PUT", "/streams/outbox_events")
        for number in (1, 2):
            self.call("POST", "/streams/outbox_events/records", {
                "id": f"e-{number}", "group": "order-7", "payload": {"total": number},
                "headers": {"event_type": "OrderPaid", "tenant_id": "t"}})
        events = self.call("GET", "/outbox/pending?max=1").json
        created = events["events"][0].pop("created_at")
        self.assertEqual(events, {"pending": 2, "events": [{
            "id": "e-1", "event_type": "OrderPaid", "aggregate_id": "order-7",
            "data": {"total": 1}, "metadata": {"tenant_id": "t"}, "status": "pending",
            "published_at": None}]})
        relay = "/streams/outbox_events/consumers/relay"
        self.call("PUT", relay)
        receipt = self.call("POST", relay + "/receive").json["records"][0]["receipt"]
        self.assertEqual(self.call("GET", "/outbox/stats").json["oldest_pending_at"], created)
        self.call("POST", relay + "/ack", {"receipt": receipt})
        told = self.call("GET", "/outbox/stats").json
        self.assertEqual((told["pending"], told["published"], told["failed"]), (1, 1, 0))
        self.assertEqual([e["id"] for e in self.call("GET", "/outbox/pending").json["events"]],
                         ["e-2"])


    def test_an_event_that_is_not_text_comes_in_base64(self):
        self.call("PUT", "/streams/outbox_events")
        self.call("POST", "/streams/outbox_events/records", {
            "id_base64": "/w==", "group_base64": "/v4=", "payload_base64": "AP8="})
        event = self.call("GET", "/outbox/pending").json["events"][0]
        del event["created_at"]
        self.assertEqual(event, {
            "id_base64": "/w==", "event_type": "", "aggregate_id_base64": "/v4=",
            "data_base64": "AP8=", "metadata": {}, "status": "pending", "published_at": None})

    def test_the_document_says_what_takes_an_idempotency_key(self):
        route = self.call("GET", "/openapi.json").json["paths"]["/api/v1/dedup/keys/{key}"]
        self.assertIn("Idempotency-Key", [p["name"] for p in route["delete"]["parameters"]])


class Rights(running.SignedInTest):
    def test_what_a_plain_key_says_beside_its_status_is_a_body(self):
        served = self.serve()
        value = {"status": "failed", "processed_at": "2025-09-14T19:41:47Z", "worker_id": "w",
                 "attempt_count": 3, "metadata": {"tenant_id": "t"}}
        served.call("PUT", "/registers/dedup:q:j", {"value": json.dumps(value), "mode": "always"},
                    token=running.jwt())

        def told(*roles):
            return served.call("GET", "/dedup/keys/dedup:q:j/status",
                               token=running.jwt(roles=roles)).json
        self.assertEqual(told("admin", "read-bodies"), {"key": "dedup:q:j", **value})
        self.assertEqual(told("admin"), {
            "key": "dedup:q:j", "status": "failed", "processed_at": None, "worker_id": None,
            "attempt_count": 1, "metadata": {}})


class Tenants(running.SignedInTest):
    def test_a_key_may_name_the_tenant_of_its_caller(self):
        served = self.serve()
        acme, shop = running.jwt("acme"), running.jwt("shop")
        claim = served.call("POST", "/claims/mail/job-1", {"owner": "w"}, token=acme).json
        served.call("POST", "/claims/mail/job-1/settle", {"fence": claim["fence"]}, token=acme)
        path = "/dedup/keys/dedup:mail:acme:job-1/status"
        self.assertEqual(served.call("GET", path, token=acme).json["status"], "completed")
        self.assertEqual(served.call("GET", path, token=shop).json["status"], "not_seen")

    def test_who_is_signed_in_need_not_say_so(self):
        served = self.serve()
        admin = running.jwt(sub="ann")
        claim = served.call("POST", "/claims/pay/k", {}, token=admin).json
        served.call("POST", "/claims/pay/k/settle",
                    {"fence": claim["fence"], "outcome": "unknown"}, token=admin)
        answer = served.call("POST", "/claims/pay/k/resolve",
                             {"resolution": "completed", "reason": "asked"}, token=admin)
        self.assertEqual(answer.status, 200, answer.json)
        answer = served.call("DELETE", "/claims/pay/k?reason=test", token=admin)
        self.assertEqual(answer.status, 200, answer.json)
        records = served.call("GET", "/streams/$audit/records", token=admin).json["records"]
        acts = [json.loads(record["payload"]) for record in records]
        self.assertEqual({act["actor"] for act in acts if act["subject"] == "pay/k"}, {"ann"})


class OutboxTable(running.SignedInTest):
    BLOCK = "exactly_once_config: {outbox: {enabled: true, table_name: my_outbox}}\n"

    def pending(self, served, token=None):
        told = [served.call("GET", path, token=token).json["pending"]
                for path in ("/outbox/pending", "/outbox/stats")]
        self.assertEqual(told[0], told[1])
        return told[0]

    def append(self, served, token=None):
        return served.call("POST", "/streams/my_outbox/records", {"payload": "x"},
                           token=token).status

    def test_it_is_the_one_that_the_configuration_names(self):
        served = self.serve(self.BLOCK)
        self.assertEqual(self.append(served), 201)
        self.assertEqual(self.pending(served), 1)
        self.assertEqual(served.call("GET", "/outbox/stats?table=other").json["pending"], 0)

    def test_every_tenant_of_the_configuration_has_its_own(self):
        served = self.serve(self.AUTH + self.BLOCK +
                            "tenants: {acme: {rate: 0}, shop: {rate: 0}}\n")
        acme, shop, other = (running.jwt(name) for name in ("acme", "shop", "other"))
        self.assertEqual(self.append(served, acme), 201)
        self.assertEqual([self.pending(served, token) for token in (acme, shop, other)], [1, 0, 0])
        self.assertEqual(self.append(served, other), 404)
        self.assertNotIn("nobody can reach", served.text())

    def test_an_administrator_may_delete_a_plain_key_and_it_is_audited(self):
        served = self.serve()
        maker, admin = running.jwt(roles=["produce"]), running.jwt(roles=["admin"], sub="ann")
        served.call("PUT", "/registers/dedup:q:j", {"value": "1"}, token=maker)
        self.assertEqual(served.call("DELETE", "/dedup/keys/dedup:q:j?reason=stuck",
                                     token=maker).status, 403)
        self.assertEqual(served.call("DELETE", "/dedup/keys/dedup:q:j?reason=stuck",
                                     token=admin).status, 200)
        reader = running.jwt(roles=["admin", "consume"])

        def audited():
            records = served.call("GET", "/streams/$audit/records", token=reader).json["records"]
            return [record["payload"] for record in records]
        running.wait_for(lambda: '{"act":"unset","subject":"dedup:q:j","actor":"ann",'
                                 '"reason":"stuck"}' in audited(), "a line of the audit")


if __name__ == "__main__":
    unittest.main(verbosity=2)
