"""The HTTP door, route by route, as docs/reference/http.md describes it."""

import gzip
import http.client
import os
import re
import socket
import struct
import threading
import unittest

import running

_, SOURCE = running.arguments()
FRAMES = "application/vnd.hapax.records"
ZSTD = bytes.fromhex(  # {"payload": "x", "id": "a"}
    "28b52ffd0458d900007b227061796c6f6164223a202278222c20226964223a202261227dd36cc6c9")


def text(value):
    return struct.pack("<I", len(value)) + value


def frame(payload, message_id=b""):
    body = bytes([2 if message_id else 0]) + (text(message_id) if message_id else b"") + payload
    return text(body)


class Events:
    """A client of server-sent events that reads one at a time."""

    def __init__(self, server, path, *headers):
        self.link = server.connect()
        head = [f"GET /api/v1{path} HTTP/1.1", "Host: localhost", "Accept: text/event-stream",
                *headers]
        self.link.sendall(("\r\n".join(head) + "\r\n\r\n").encode())
        self.file = self.link.makefile("rb")
        self.status = self.file.readline().split()[1]
        while self.file.readline().strip():
            pass

    def chunk(self):
        size = int(self.file.readline(), 16)
        data = self.file.read(size)
        self.file.readline()
        return data.decode()

    def next(self):
        """Fields of the next event that has data."""
        while True:
            for one in self.events():
                if "data" in one:
                    return one

    def events(self):
        if getattr(self, "left", None):
            taken, self.left = self.left[:1], self.left[1:]
            return taken
        parts = self.chunk().split("\n\n")
        all_events = [dict(line.split(": ", 1) for line in part.split("\n")) for part in parts
                      if part]
        self.left = all_events[1:]
        return all_events[:1]

    def close(self):
        self.file.close()
        self.link.close()


class Reads(running.ServerTest):
    def setUp(self):
        super().setUp()
        self.assertEqual(self.call("PUT", "/streams/orders", {"track_groups": True}).status, 200)

    def test_a_claim_is_told_with_its_state(self):
        self.assertEqual(self.call("GET", "/claims/pay/o-1").status, 404)
        fence = self.call("POST", "/claims/pay/o-1", {"owner": "me"}).json["fence"]
        claim = self.call("GET", "/claims/pay/o-1").json
        self.assertEqual((claim["state"], claim["owner"], claim["fence"]),
                         ("processing", "me", fence))
        self.call("POST", "/claims/pay/o-1/settle", {"fence": fence, "status": 201, "body": "ok"})
        claim = self.call("GET", "/claims/pay/o-1").json
        self.assertEqual((claim["state"], claim["status"], claim["body"]), ("completed", 201, "ok"))

    def test_registers_positions_producers_ids_and_the_horizon(self):
        self.call("PUT", "/registers/leader", {"value": "a"})
        register = self.call("GET", "/registers/leader").json
        self.assertEqual((register["value"], register["version"]), ("a", 1))
        self.call("PUT", "/positions/kafka%2F0", {"to": "17", "epoch": 2})
        position = self.call("GET", "/positions/kafka%2F0").json
        self.assertEqual(position, {"position": "17", "epoch": 2})
        self.call("POST", "/streams/orders/records",
                  {"payload": "x", "id": "o-1", "producer": "p", "producer_epoch": 3,
                   "producer_sequence": 0})
        producer = self.call("GET", "/streams/orders/producers/p").json
        self.assertEqual(producer, {"producer_epoch": 3, "next": 1, "retired": False})
        known = self.call("GET", "/streams/orders/ids/o-1").json
        self.assertEqual(known["sequence"], 1)
        self.assertGreater(known["expires_at_ms"], known["first_seen_ms"])
        self.assertLessEqual(self.call("GET", "/streams/orders/horizon").json["horizon_ms"],
                             known["first_seen_ms"])
        for path in ("/registers/none", "/positions/none", "/streams/orders/producers/none",
                     "/streams/orders/ids/none", "/streams/none/horizon"):
            answer = self.call("GET", path)
            self.assertEqual((answer.status, answer.json["code"]), (404, "HX1003"), path)

    def test_consumers_and_statistics(self):
        self.call("POST", "/streams/orders/records", {"payload": "x", "id": "a"})
        self.call("PUT", "/streams/orders/consumers/mail")
        self.call("POST", "/streams/orders/consumers/mail/receive")
        listed = self.call("GET", "/streams/orders/consumers").json["consumers"]
        self.assertEqual([one["consumer"] for one in listed], ["mail"])
        self.assertEqual(self.call("GET", "/streams/orders/consumers/mail").json, listed[0])
        self.assertEqual(listed[0]["in_flight"], 1)
        self.assertEqual(self.call("GET", "/streams/orders/consumers/no").status, 404)
        figures = self.call("GET", "/statistics").json
        self.assertEqual((figures["streams"], figures["ids"]), (1, 1))

    def test_a_name_cannot_reach_into_another_tenant(self):
        for path in ("/streams/%01t%01s", "/streams/%01t%01s/records", "/claims/%01t%01s/k",
                     "/registers/%01t%01s"):
            self.assertEqual(self.call("GET", path).status, 400, path)
        for path in ("/dedup/stats?queue=%01t%01s", "/dedup/keys/dedup:%01t%01s:job/status",
                     "/outbox/stats?table=%01t%01s"):
            answer = self.call("GET", path)
            self.assertTrue(answer.status in (400, 404) or answer.json.get("pending") == 0 or
                            answer.json.get("status") == "not_seen", answer.body)

    def test_what_a_verdict_says_in_numbers_is_in_headers_too(self):
        body = {"payload": "x", "id": "a"}
        fresh = self.call("POST", "/streams/orders/records", body)
        self.assertEqual((fresh.headers["Hapax-Verdict"], fresh.headers["Hapax-Sequence"]),
                         ("fresh", "1"))
        again = self.call("POST", "/streams/orders/records", body)
        told = again.json
        self.assertEqual(again.headers["Hapax-Verdict"], "duplicate")
        self.assertEqual(again.headers["Hapax-First-Seen-Ms"], str(told["first_seen_ms"]))
        self.assertEqual(again.headers["Hapax-Expires-At-Ms"], str(told["expires_at_ms"]))
        old = self.call("POST", "/streams/orders/records",
                        {"payload": "y", "id": "b", "first_sent_ms": 1})
        self.assertEqual(old.status, 412)
        self.assertEqual(old.headers["Hapax-Horizon-Ms"], str(old.json["horizon_ms"]))


class Receives(running.ServerTest):
    PATH = "/streams/orders/consumers/mail/receive"

    def setUp(self):
        super().setUp()
        self.call("PUT", "/streams/orders")
        self.call("PUT", "/streams/orders/consumers/mail")

    def append(self, payload):
        self.call("POST", "/streams/orders/records", {"payload": payload})

    def waiting(self, headers=None):
        got = []
        thread = threading.Thread(target=lambda: got.append(
            self.call("POST", self.PATH + "?wait_ms=30000", {}, headers)))
        thread.start()
        return thread, got

    def test_a_receive_waits_for_a_record(self):
        self.assertEqual(self.call("POST", self.PATH + "?wait_ms=1").json["records"], [])
        thread, got = self.waiting()
        self.append("one")
        thread.join()
        self.assertEqual([r["payload"] for r in got[0].json["records"]], ["one"])

    def test_a_lost_answer_is_found_again_under_its_key(self):
        key = {"Idempotency-Key": "r-1"}
        thread, got = self.waiting(key)
        self.append("one")
        thread.join()
        again = self.call("POST", self.PATH + "?wait_ms=30000", {}, key)
        self.assertEqual(again.json["records"], got[0].json["records"])
        self.assertEqual(again.headers["Idempotent-Replayed"], "true")

    def test_nothing_is_leased_to_a_client_that_left(self):
        with self.server.connect() as link:
            link.sendall((f"POST /api/v1{self.PATH}?wait_ms=30000 HTTP/1.1\r\nHost: localhost\r\n"
                          "Content-Length: 0\r\n\r\n").encode())
            link.shutdown(socket.SHUT_WR)
            answer = link.makefile("rb").read()
        self.assertIn(b'"records":[]', answer)
        self.append("one")
        self.assertEqual(self.call("GET", "/streams/orders/consumers/mail").json["in_flight"], 0)
        self.assertEqual(self.call("POST", self.PATH).json["records"][0]["attempt"], 1)

    def test_a_stop_answers_who_waits(self):
        with self.server.connect() as link:
            link.sendall((f"POST /api/v1{self.PATH}?wait_ms=30000 HTTP/1.1\r\nHost: localhost\r\n"
                          "Content-Length: 0\r\n\r\n").encode())
            # Ordered behind it on the same loop.
            self.call("GET", "/streams")
            self.assertEqual(self.server.stop(), 0)
            self.assertIn(b'"records":[]', link.makefile("rb").read())


class Streaming(running.ServerTest):
    PATH = "/streams/orders/records"

    def setUp(self):
        super().setUp()
        self.call("PUT", "/streams/orders")
        for name in "abc":
            self.call("POST", self.PATH, {"payload": name})

    def events(self, path, *headers):
        events = Events(self.server, path, *headers)
        self.addCleanup(events.close)
        return events

    def test_events_have_the_sequence_as_id_and_go_on_with_new_records(self):
        events = self.events(self.PATH + "?from=2")
        self.assertEqual(events.status, b"200")
        self.assertEqual([events.next()["id"] for _ in range(2)], ["2", "3"])
        self.call("POST", self.PATH, {"payload": "d"})
        event = events.next()
        self.assertEqual(event["id"], "4")
        self.assertIn('"payload":"d"', event["data"])

    def test_last_event_id_resumes(self):
        events = self.events(self.PATH, "Last-Event-ID: 2")
        self.assertEqual(events.next()["id"], "3")
        self.assertEqual(self.events(self.PATH, "Last-Event-ID: x").status, b"400")
        self.assertEqual(self.events("/streams/none/records").status, b"404")

    def test_trimmed_records_are_told(self):
        self.call("POST", "/streams/orders/trim", {"before": 3})
        events = self.events(self.PATH + "?from=1")
        told = events.next()
        self.assertEqual((told["event"], told["data"]), ("trimmed", '{"expected":1,"first":3}'))
        self.assertEqual(events.next()["id"], "3")

    def test_a_client_that_does_not_read_holds_up_nothing_but_itself(self):
        big = "x" * 500_000
        for _ in range(60):
            self.call("POST", self.PATH, {"payload": big})
        slow = self.events(self.PATH)
        self.assertEqual(self.call("GET", "/streams").status, 200)  # It takes nothing yet.
        self.assertEqual([slow.next()["id"] for _ in range(63)], [str(n) for n in range(1, 64)])

    def test_a_deleted_stream_ends_its_events(self):
        events = self.events(self.PATH + "?from=4")
        self.call("DELETE", "/streams/orders")
        self.assertEqual(events.next()["event"], "error")
        self.assertEqual(events.chunk(), "")

    def test_http_1_0_gets_no_chunks(self):
        got = self.server.raw(b"GET /api/v1" + self.PATH.encode() + b" HTTP/1.0\r\n"
                              b"Accept: text/event-stream\r\n\r\n")
        head, body = got.split(b"\r\n\r\n", 1)
        self.assertNotIn(b"chunked", head)
        self.assertTrue(body.startswith(b"retry: 1000\n\n"))

    def test_a_stop_ends_events(self):
        events = self.events(self.PATH)
        events.next()
        self.assertEqual(self.server.stop(), 0)
        while events.chunk():
            pass


class Frames(running.ServerTest):
    PATH = "/streams/orders/records"

    def setUp(self):
        super().setUp()
        self.call("PUT", "/streams/orders")

    def test_frames_are_appended_and_read(self):
        body = b"HXR1" + frame(b"one\0", b"a") + frame(b"two") + frame(b"one\0", b"a")
        answer = self.call("POST", self.PATH, body, {"Content-Type": FRAMES})
        self.assertEqual([v["verdict"] for v in answer.json["verdicts"]],
                         ["fresh", "fresh", "duplicate"])
        read = self.call("GET", self.PATH, None, {"Accept": FRAMES})
        self.assertEqual((read.headers["Content-Type"], read.headers["Hapax-Last"]), (FRAMES, "2"))
        self.assertEqual(read.body[:4], b"HXR1")
        size, flags, sequence = struct.unpack_from("<IBQ", read.body, 4)
        self.assertEqual((flags, sequence), (3, 1))
        self.assertEqual(read.body[8:8 + size][-4:], b"one\0")

    def test_broken_frames_are_refused_whole(self):
        for body in (b"", b"HXR2", b"HXR1\5\0\0\0\0", b"HXR1" + frame(b"x") + text(b"\x40"),
                     b"HXR1" + text(b"\x02" + text(b"")), b"HXR1" + text(b""),
                     b"HXR1" + text(b"\x01" + bytes(16))):
            answer = self.call("POST", self.PATH, body, {"Content-Type": FRAMES})
            self.assertEqual((answer.status, answer.json["code"]), (400, "HX1001"), body)
        self.assertEqual(self.call("GET", "/streams/orders").json["last"], 0)


class Bodies(running.ServerTest):
    PATH = "/streams/orders/records"

    def setUp(self):
        super().setUp()
        self.call("PUT", "/streams/orders")

    def send(self, body, **headers):
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.call("POST", self.PATH, body, names)

    def test_gzip_and_zstd_are_inflated(self):
        body = b'{"payload": "x", "id": "a"}'
        self.assertEqual(self.send(gzip.compress(body), Content_Encoding="gzip").status, 201)
        self.assertEqual(self.send(ZSTD, Content_Encoding="zstd").json["verdict"], "duplicate")
        self.assertEqual(self.send(body, Content_Encoding="identity").status, 200)

    def test_what_is_not_understood_is_415(self):
        for encoding in ("br", "gzip, gzip", "deflate", ""):
            answer = self.send(b"{}", Content_Encoding=encoding)
            self.assertEqual((answer.status, answer.json["code"]), (415, "HX1016"), encoding)
            self.assertEqual(answer.headers["Accept-Encoding"], "gzip, zstd")
        for kind in ("text/xml", "text/plain", "application/octet-stream"):
            answer = self.send(b'{"payload": "x"}', Content_Type=kind)
            self.assertEqual((answer.status, answer.json["code"]), (415, "HX1016"), kind)
        for kind in ("application/json; charset=utf-8", "application/vnd.mine+json"):
            self.assertEqual(self.send(b'{"payload": "x"}', Content_Type=kind).status, 201, kind)

    def test_a_bomb_is_413_and_the_connection_lives(self):
        bomb = gzip.compress(bytes(100_000_000))
        link = http.client.HTTPConnection(self.server.host, self.server.port, timeout=60)
        self.addCleanup(link.close)
        for body, status in ((bomb, 413), (gzip.compress(b'{"payload": "x"}'), 201)):
            link.request("POST", "/api/v1" + self.PATH, body, {"Content-Encoding": "gzip"})
            answer = link.getresponse()
            answer.read()
            self.assertEqual(answer.status, status)

    def test_a_broken_body_is_400(self):
        whole = gzip.compress(b'{"payload": "x"}')
        for body in (whole[:-1], whole + b"x", b"", b"nothing"):
            self.assertEqual(self.send(body, Content_Encoding="gzip").status, 400, body)


class ExactlyOnceDocument(running.ServerTest):
    """The endpoints of the design document "Exactly Once Patterns", member by member."""

    def test_statistics_of_a_queue(self):
        self.assertEqual(self.call("GET", "/dedup/stats?queue=mail").status, 404)
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

    def test_a_key_may_be_a_message_id_or_a_plain_key(self):
        self.call("PUT", "/streams/mail")
        self.call("POST", "/streams/mail/records", {"id": "job-9", "payload": "x"})
        self.assertEqual(self.call("GET", "/dedup/keys/mail:job-9/status").json["status"],
                         "completed")
        self.call("PUT", "/registers/dedup:q:j", {"value": "processing"})
        self.assertEqual(self.call("GET", "/dedup/keys/dedup:q:j/status").json["status"],
                         "processing")

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


class Page(running.ServerTest):
    def check_route(self, pattern, methods, script):
        path = re.sub(r"\{\w+\}", r"[\\w.:-]+", pattern.removeprefix("/api/v1"))
        lines = re.findall(rf"^.*\$HAPAX{path}(?=[?\s\")]).*$", script, re.M)
        known = {"get": lambda line: "-d" not in line and "-X" not in line,
                 "post": lambda line: "-d" in line or "--data" in line or "-X POST" in line}
        for method in methods:
            fits = known.get(method, lambda line: f"-X {method.upper()} " in line)
            self.assertTrue(any(map(fits, lines)), f"{method} {pattern} has no line on the page")

    def test_the_page_has_a_line_for_every_route(self):
        with open(os.path.join(SOURCE, "docs/reference/http.md"), encoding="utf-8") as page:
            blocks = re.findall(r"^```sh\n(.*?)^```$", page.read(), re.M | re.S)
        for pattern, methods in self.call("GET", "/openapi.json").json["paths"].items():
            if pattern.startswith("/api/v1"):
                self.check_route(pattern, methods, "".join(blocks))


if __name__ == "__main__":
    unittest.main(verbosity=2)
