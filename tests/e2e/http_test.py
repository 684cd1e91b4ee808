"""The HTTP door, route by route, as docs/reference/http.md describes it."""

import base64
import email.utils
import gzip
import http.client
import json
import os
import re
import socket
import struct
import threading
import time
import unittest
import urllib.parse

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

    def test_an_empty_id_is_refused_everywhere(self):
        records = "/streams/orders/records"
        for body in ({"id": ""}, {"id": None}, {"id_base64": ""}, {"group": ""}, {"group": None},
                     {"producer": "", "producer_epoch": 1, "producer_sequence": 0}):
            answer = self.call("POST", records, {"payload": "x", **body})
            self.assertEqual((answer.status, answer.json["code"]), (400, "HX1001"), body)
        op = {"op": "append", "stream": "orders", "payload": "x"}
        for body in ({"id": "", "ops": [op]}, {"id": None, "ops": [op]},
                     {"id_base64": "", "ops": [op]}):
            answer = self.call("POST", "/commit", body)
            self.assertEqual((answer.status, answer.json["code"]), (400, "HX1001"), body)
        for key in ("", '""'):
            answer = self.call("POST", records, {"payload": "x"}, headers={"Idempotency-Key": key})
            self.assertEqual(answer.status, 400, key)
        self.assertEqual(self.call("GET", "/streams/orders/ids/a?group=").status, 400)
        self.assertEqual(self.call("GET", "/streams/orders").json["last"], 0)

    def test_a_lapse_may_be_an_unknown_outcome(self):
        body = {"owner": "a", "lease_ms": 1, "on_lapse": "unknown"}
        first = self.call("POST", "/claims/pay/o-1", body).json
        self.assertEqual((first["verdict"], first["former"]), ("fresh", "none"))
        running.wait_for(lambda: self.call("GET", "/claims/pay/o-1").json["state"] == "unknown",
                         "the end of the lease")
        told = self.call("POST", "/claims/pay/o-1", {"owner": "b"})
        self.assertEqual((told.status, told.json["title"]), (409, "unknown"))
        self.assertIn("the lease of owner 'a' ran out at", told.json["reason"])

    def test_mistakes_are_told_so_that_they_can_be_mended(self):
        key = {"Idempotency-Key": "once"}
        for payload, status in (("a", 201), ("b", 422)):
            answer = self.call("POST", "/streams/orders/records", {"payload": payload}, headers=key)
            self.assertEqual(answer.status, status)
        self.assertIn("the id 'once' (Idempotency-Key", answer.json["detail"])
        for status in (200, 412):
            answer = self.call("PUT", "/registers/x", {"value": "1"})
            self.assertEqual(answer.status, status)
        self.assertIn('mode to "always"', answer.json["detail"])
        answer = self.call("PUT", "/registers/y", {"value": "1", "mode": "always"})
        self.assertNotIn("number", answer.json)
        self.assertEqual(self.call("POST", "/registers/n/add", {"by": 0}).json["number"], 0)
        answer = self.call("DELETE", "/claims/pay/o-1")
        self.assertEqual(answer.status, 400)
        self.assertIn("actor and reason are missing", answer.json["detail"])
        for lease in (0, -5):
            answer = self.call("POST", "/claims/pay/o-1", {"lease_ms": lease})
            self.assertEqual(answer.status, 400)
            self.assertIn(f"lease is {lease} ms; it must be between 1 and", answer.json["detail"])

    def test_a_fence_that_is_not_the_current_one_is_told_why(self):
        first = self.call("POST", "/claims/pay/o-1", {"owner": "a", "lease_ms": 1}).json["fence"]

        def take_over():
            return self.call("POST", "/claims/pay/o-1", {"owner": "b"}).status == 200

        running.wait_for(take_over, "the end of the lease")
        for fence, why in ((first, "somebody newer"), (first + 1000, "never given")):
            answer = self.call("POST", "/claims/pay/o-1/settle", {"fence": fence})
            self.assertEqual((answer.status, answer.headers["Hapax-Verdict"]), (409, "fenced"))
            self.assertIn(why, answer.json["detail"])

    def test_an_id_of_any_bytes_is_found(self):
        every = bytes(range(2, 256))
        for number in range(0, len(every), 127):
            raw = every[number:number + 127] + b"\0\xff+/"
            plain = base64.b64encode(raw).decode()
            record = {"id_base64": plain, "payload": "x"}
            sequence = self.call("POST", "/streams/orders/records", record).json["sequence"]
            for path in ("/streams/orders/ids/" + urllib.parse.quote(raw, safe=""),
                         "/streams/orders/ids?id=" + urllib.parse.quote(raw, safe=""),
                         "/streams/orders/ids?id_base64=" + urllib.parse.quote(plain, safe=""),
                         "/streams/orders/ids?id_base64=" + plain,
                         "/streams/orders/ids?id_base64=" + base64.urlsafe_b64encode(raw).decode()):
                answer = self.call("GET", path)
                self.assertEqual((answer.status, answer.json["sequence"]), (200, sequence), path)
        for query in ("", "?id_base64=!", "?id=a&id_base64=YQ"):
            answer = self.call("GET", "/streams/orders/ids" + query)
            self.assertEqual((answer.status, answer.json["code"]), (400, "HX1001"), query)

    def test_a_name_has_any_bytes(self):
        for path in ("/streams/a%00%2fb", "/registers/a%00%2f%ff"):
            body = {"value": "1"} if "registers" in path else {}
            self.assertEqual(self.call("PUT", path, body).status, 200, path)
            self.assertEqual(self.call("GET", path).status, 200, path)
            self.assertEqual(self.call("GET", path + "%00").json["code"], "HX1003")

    def test_every_answer_has_its_date_and_no_way_is_a_dead_end(self):
        for method, path in (("GET", "/streams"), ("HEAD", "/streams"), ("GET", "/health/live"),
                             ("GET", "/nothing"), ("PUT", "/streams/s?no=1")):
            date = email.utils.parsedate_to_datetime(self.call(method, path).headers["Date"])
            self.assertLess(abs(date.timestamp() - time.time()), 60)
        self.assertIn("/openapi.json", self.call("GET", "/nothing").json["detail"])
        answer = self.call("DELETE", "/streams")
        self.assertEqual((answer.status, answer.headers["Allow"]), (405, "GET, HEAD"))

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
        events = running.Events(self.server, path, *headers)
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

    def make_again(self, *payloads):
        ops = [{"op": "delete_stream", "stream": "orders"},
               {"op": "create_stream", "stream": "orders"}]
        ops += [{"op": "append", "stream": "orders", "payload": payload} for payload in payloads]
        self.assertTrue(self.call("POST", "/commit", {"ops": ops}).json["committed"])

    def test_a_stream_that_is_made_again_is_another_one(self):
        events = self.events(self.PATH + "?from=4")
        self.make_again(*"ABCDE")
        told = events.next()
        self.assertEqual((told.get("event"), json.loads(told["data"])["code"]), ("error", "HX1003"))
        self.assertEqual(events.chunk(), "")

    def test_who_waits_for_a_stream_gets_no_record_of_another_one(self):
        def status():
            self.make_again()
            with self.server.connect() as link:
                link.sendall((f"GET /api/v1{self.PATH}?wait_ms=30000 HTTP/1.1\r\n"
                              "Host: localhost\r\n\r\n").encode())
                self.make_again("A")
                return link.makefile("rb").readline().split()[1]
        # A request that comes too late is answered with the record.
        running.wait_for(lambda: status() == b"404", "an answer to one that came in time")

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


class OneOrMany(running.ServerTest):
    """One object is answered with its verdict, a list with a list, whatever the content is."""

    def setUp(self):
        super().setUp()
        self.call("PUT", "/streams/orders")

    def test_the_content_of_a_record_does_not_make_it_a_list(self):
        path = "/streams/orders/records"
        self.call("POST", path, {"id": "a", "payload": "first"})
        for body in ({"payload": {"records": 1}}, {"payload": "x", "headers": {"records": "1"}},
                     {"payload": "\"records\""}, {"payload": {"a": {"records": []}}}):
            answer = self.call("POST", path, {"id": "a", **body})
            self.assertEqual((answer.status, answer.headers["Hapax-Verdict"],
                              answer.json["verdict"]), (422, "conflict", "conflict"), body)
        self.assertEqual(self.call("POST", path, {"id": "records", "payload": "x"}).status, 201)
        answer = self.call("POST", path, {"id": "records", "payload": "y"})
        self.assertEqual((answer.status, answer.json["verdict"]), (422, "conflict"))
        told = self.call("POST", path, {"records": [{"id": "records", "payload": "z"}]})
        self.assertEqual((told.status, told.json["verdicts"][0]["verdict"]), (200, "conflict"))

    def test_nor_does_that_of_an_ack_a_nack_or_an_extend(self):
        consumer = "/streams/orders/consumers/mail"
        self.call("PUT", consumer)
        for act, more in (("ack", {}), ("nack", {"reason": "\"nacks\""}), ("extend", {})):
            answer = self.call("POST", f"{consumer}/{act}", {"receipt": "9-9", **more})
            self.assertNotIn("verdicts", answer.json, act)
            self.assertGreaterEqual(answer.status, 400, act)
            told = self.call("POST", f"{consumer}/{act}", {act + "s": [{"receipt": "9-9"}]})
            self.assertEqual((told.status, len(told.json["verdicts"])), (200, 1), act)

    def test_a_repeated_list_says_so_in_its_header_too(self):
        path = "/streams/orders/records"
        one = {"payload": "x"}
        for name, where, body, media in (
                ("array", path, json.dumps([one, one]).encode(), "application/json"),
                ("records", path, json.dumps({"records": [one]}).encode(), "application/json"),
                ("atomic", path, json.dumps({"mode": "atomic", "records": [one, one]}).encode(),
                 "application/json"),
                ("lines", path, b'{"payload":"x"}\n{"payload":"y"}\n', "application/x-ndjson"),
                ("frames", path, b"HXR1" + frame(b"x") + frame(b"y"), FRAMES),
                ("commit", "/commit", json.dumps(
                    {"ops": [{"op": "append", "stream": "orders", **one}]}).encode(),
                 "application/json")):
            for replayed in (None, "true"):
                answer = self.call("POST", where, body,
                                   {"Idempotency-Key": name, "Content-Type": media})
                self.assertEqual((answer.status, answer.json["repeated"],
                                  answer.headers["Idempotent-Replayed"]),
                                 (200, replayed is not None, replayed), name)

    def test_what_stands_twice_is_refused(self):
        path = "/streams/orders/records"
        for body, why in ((b'{"id":"a","id":"b","payload":"1"}', "id: stands twice"),
                          (b'{"payload":"1","payload_base64":"Mg=="}', "exclude each other"),
                          (b'{"records":[],"records":[{"payload":"1"}]}', "records: stands twice")):
            answer = self.call("POST", path, body)
            self.assertEqual((answer.status, answer.json["code"]), (400, "HX1001"), body)
            self.assertIn(why, answer.json["detail"])
        self.assertEqual(self.call("GET", path).json["records"], [])


class JsonContent(running.ServerTest):
    """A JSON value that stands as content is kept byte for byte, and compared as such."""

    VALUES = (b"12345678901234567890123", b"12345678901234567890199", b"18446744073709551616",
              b"-0", b"0.1", b"1.10", b"1e400", b'{"a": [1.0 , 2]}', b'{"a":[1.0,2]}', b"false")

    def test_of_records(self):
        path = "/streams/num/records"
        self.call("PUT", "/streams/num")
        for number, value in enumerate(self.VALUES):
            body = b'{"id": "%d", "payload": %b }' % (number, value)
            for status, verdict in ((201, "fresh"), (200, "duplicate")):
                answer = self.call("POST", path, body)
                self.assertEqual((answer.status, answer.json["verdict"]), (status, verdict), value)
            other = b'{"id": "%d", "payload": %b }' % (number, self.VALUES[number - 1])
            answer = self.call("POST", path, other)
            self.assertEqual((answer.status, answer.json["verdict"]), (422, "conflict"), value)
        lines = b"".join(b'{"payload": %b}\n' % value for value in self.VALUES)
        self.call("POST", path, lines, {"Content-Type": "application/x-ndjson"})
        self.call("POST", path, b'{"records":[{"payload":"x"},{"payload": 1.50}]}')
        told = [record["payload"] for record in self.call("GET", path).json["records"]]
        values = [value.decode() for value in self.VALUES]
        self.assertEqual(told, 2 * values + ["x", "1.50"])

    def test_of_registers_and_claims(self):
        self.call("PUT", "/registers/r", b'{"value": 1.10, "mode": "always"}')
        self.assertEqual(self.call("GET", "/registers/r").json["value"], "1.10")
        claim = b'{"content": 1234567890123456789012%d}'
        fence = self.call("POST", "/claims/s/k", claim % 3).json["fence"]
        answer = self.call("POST", "/claims/s/k", claim % 4)
        self.assertEqual((answer.status, answer.json["verdict"]), (422, "conflict"))
        self.call("POST", "/claims/s/k/settle", b'{"fence": %d, "body": {"n": 0.10}}' % fence)
        self.assertEqual(self.call("POST", "/claims/s/k", claim % 3).json["body"], '{"n": 0.10}')

    def test_of_the_outbox(self):
        self.call("PUT", "/streams/outbox_events")
        self.call("POST", "/streams/outbox_events/records", b'{"payload": {"total": 1.10}}')
        self.assertIn(b'"data":{"total": 1.10},', self.call("GET", "/outbox/pending").body)


class Queries(running.ServerTest):
    def test_what_a_route_does_not_know_is_refused(self):
        self.call("PUT", "/streams/orders")
        self.call("POST", "/claims/p/k", {"owner": "w"})
        for method, path, why in (
                ("GET", "/streams/orders/records?form=3", "form: this route knows no such field of "
                 "a query; did you mean 'from'?"),
                ("GET", "/streams/orders/records?from=1&from=2", "from: stands twice in the query"),
                ("DELETE", "/claims/p/k?actor=a&reson=b", "reson: this route knows no such field "
                 "of a query; did you mean 'reason'?"),
                ("DELETE", "/claims/p/k?reason=b&reason=c", "reason: stands twice in the query"),
                ("DELETE", "/claims/p/k?scope=q", "scope: this route knows no such field of a "
                 "query; known are 'actor', 'reason'"),
                ("GET", "/streams?max=3", "max: this route knows no such field of a query"),
                ("PUT", "/streams/%ff%fe", "stream: expected UTF-8, got '\ufffd\ufffd'"),
                ("PUT", "/streams/orders/consumers/%ff", "consumer: expected UTF-8, got '\ufffd'")):
            answer = self.call(method, path)
            self.assertEqual((answer.status, answer.json["code"], answer.json["detail"]),
                             (400, "HX1001", why))
        self.assertEqual(self.call("GET", "/health/live?probe=1").status, 200)
        self.assertEqual(self.call("GET", "/metrics?x=1").status, 200)
        self.assertEqual(self.call("POST", "/claims/p/%ff", {"owner": "w"}).status, 200)


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
