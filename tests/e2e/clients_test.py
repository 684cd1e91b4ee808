"""Clients as they are: many at once, in a hurry, slow, half gone, and wrong in every way."""

import collections
import os
import re
import socket
import threading
import unittest

import running

_, SOURCE = running.arguments()


def post(path, body, *headers):
    lines = [f"POST /api/v1{path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}",
             *headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


class AtOnce(running.ServerTest):
    MANY = 100

    def at_once(self, *arguments):
        """The answers of that many clients who send the same at the same time."""
        answers = []
        start = threading.Barrier(self.MANY)

        def send():
            start.wait()
            answers.append(self.call(*arguments))

        threads = [threading.Thread(target=send) for _ in range(self.MANY)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(answers), self.MANY)
        return answers

    def test_an_append_is_stored_once(self):
        self.call("PUT", "/streams/s")
        answers = self.at_once("POST", "/streams/s/records", {"id": "a", "payload": "x"})
        told = collections.Counter(answer.headers["Hapax-Verdict"] for answer in answers)
        self.assertEqual(told, {"fresh": 1, "duplicate": self.MANY - 1})
        self.assertEqual({answer.json["sequence"] for answer in answers}, {1})
        self.assertEqual(self.call("GET", "/streams/s").json["last"], 1)

    def test_a_claim_is_given_to_one(self):
        answers = self.at_once("POST", "/claims/pay/o-1", {"owner": "w"})
        told = collections.Counter((answer.status, answer.json["verdict"]) for answer in answers)
        self.assertEqual(told, {(200, "fresh"): 1, (409, "in_progress"): self.MANY - 1})

    def test_a_commit_under_one_key_happens_once(self):
        self.call("PUT", "/streams/s")
        answers = self.at_once("POST", "/commit",
                               {"ops": [{"op": "append", "stream": "s", "payload": "x"}]},
                               {"Idempotency-Key": "k"})
        self.assertEqual({answer.json["verdicts"][0]["sequence"] for answer in answers}, {1})
        self.assertEqual(sum(not answer.json["repeated"] for answer in answers), 1)
        self.assertEqual(self.call("GET", "/streams/s").json["last"], 1)

    def test_a_record_is_handed_to_one(self):
        self.call("PUT", "/streams/s")
        self.call("PUT", "/streams/s/consumers/c")
        self.call("POST", "/streams/s/records", {"payload": "x"})
        answers = self.at_once("POST", "/streams/s/consumers/c/receive", {})
        self.assertEqual(sum(len(answer.json["records"]) for answer in answers), 1)


class Pipelines(running.ServerTest):
    def test_answers_come_in_the_order_of_the_requests(self):
        self.call("PUT", "/streams/s")
        many = 300  # More than are worked on at once.
        requests = [post("/streams/s/records", b'{"payload":"%d"}' % n) if n % 3 else
                    b"GET /api/v1/streams/s HTTP/1.1\r\nHost: [::1]\r\n\r\n" for n in range(many)]
        answers = self.server.raw(b"".join(requests))
        statuses = re.findall(rb"HTTP/1.1 (\d+)", answers)
        self.assertEqual(statuses, [b"201" if n % 3 else b"200" for n in range(many)])
        records = self.call("GET", f"/streams/s/records?max={many}").json["records"]
        self.assertEqual([int(record["payload"]) for record in records],
                         [n for n in range(many) if n % 3])

    def test_a_broken_request_is_answered_behind_the_good_ones_and_ends_the_connection(self):
        answers = self.server.raw(b"GET /api/v1/streams HTTP/1.1\r\nHost: localhost\r\n\r\n"
                                  b"GET / HTTP/1.1\r\nHost : h\r\n\r\n"
                                  b"GET /api/v1/streams HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self.assertEqual(re.findall(rb"HTTP/1.1 (\d+)", answers), [b"200", b"400"])
        self.assertIn(b"Connection: close", answers)


class SlowClients(running.ServerTest):
    CONFIG = "limits: {http: {header_time: 200ms, body_time: 300ms, idle_time: 400ms}}\n"

    def read_all(self, link):
        got = b""
        while piece := link.recv(65536):
            got += piece
        return got

    def test_a_header_that_never_ends_is_408(self):
        with self.server.connect() as link:
            link.sendall(b"GET /api/v1/streams HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
            self.assertIn(b"HTTP/1.1 408", self.read_all(link))

    def test_a_body_that_never_ends_is_408(self):
        with self.server.connect() as link:
            link.sendall(post("/streams/s/records", b"x" * 10)[:-5])
            self.assertIn(b"HTTP/1.1 408", self.read_all(link))

    def test_who_says_nothing_is_let_go(self):
        with self.server.connect() as link:
            self.assertEqual(self.read_all(link), b"")
        with self.server.connect() as link:
            link.sendall(b"GET /api/v1/streams HTTP/1.1\r\nHost: localhost\r\n\r\n")
            self.assertIn(b"HTTP/1.1 200", self.read_all(link))

    def test_others_are_served_meanwhile(self):
        slow = [self.server.connect() for _ in range(200)]
        for link in slow:
            link.sendall(b"POST /api/v1/streams HTTP/1.1\r\n")
        self.assertEqual(self.call("GET", "/streams").status, 200)
        for link in slow:
            self.assertIn(b" 408 ", self.read_all(link))
            link.close()


class HalfOpenClients(running.ServerTest):
    def test_who_closed_its_side_still_gets_every_answer(self):
        self.call("PUT", "/streams/s")
        answers = self.server.raw(post("/streams/s/records", b'{"payload":"a"}') * 3)
        self.assertEqual(answers.count(b"201 Created"), 3)

    def test_half_a_request_changes_nothing(self):
        self.call("PUT", "/streams/s")
        whole = post("/streams/s/records", b'{"payload":"a"}')
        for size in range(1, len(whole), 7):
            with self.server.connect() as link:
                link.sendall(whole[:size])
        self.assertEqual(self.call("GET", "/streams/s").json["last"], 0)

    def test_who_is_reset_in_the_middle_of_an_answer_harms_nobody(self):
        self.call("PUT", "/streams/s", {"record_bytes_max": 4_000_000})
        for _ in range(4):
            self.call("POST", "/streams/s/records", {"payload": "x" * 2_000_000})
        for _ in range(20):
            link = self.server.connect()
            link.sendall(b"GET /api/v1/streams/s/records HTTP/1.1\r\nHost: localhost\r\n\r\n")
            link.recv(10)
            link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            link.close()  # With a reset.
        self.assertEqual(self.call("GET", "/streams/s").json["last"], 4)

    def test_an_expectation_is_answered_before_the_body(self):
        self.call("PUT", "/streams/s")
        whole = post("/streams/s/records", b'{"payload":"a"}', "Expect: 100-continue",
                     "Connection: close")
        head, body = whole.split(b"\r\n\r\n", 1)
        with self.server.connect() as link:
            link.sendall(head + b"\r\n\r\n")
            self.assertEqual(link.recv(100), b"HTTP/1.1 100 Continue\r\n\r\n")
            link.sendall(body)
            self.assertIn(b"201 Created", link.makefile("rb").read())


class Errors(running.ServerTest):
    """Every code of errors.def: provoked here, or named with the reason why not."""

    CONFIG = "store: {memory_max: 1MiB}\n"
    ELSEWHERE = {
        "HX1008": "needs a full disk: engine tests",
        "HX1009": "needs ten thousand waiting reads, or a folder that is gone",
        "HX1010": "the doors are closed before the store is: engine tests",
        "HX1011": "needs a crash between commit and answer: engine tests",
        "HX1013": "needs a server with authentication",
        "HX1014": "needs a server with authentication",
        "HX1015": "needs a server with rates",
        "HX1020": "needs a failing disk: engine tests",
        "HX1021": "needs a damaged disk: engine tests",
        "HX1022": "refuses the start: tests of the data folder",
        "HX1023": "refuses the start: tests of the data folder",
    }

    def provoke(self, code, *arguments, status):
        answer = self.call(*arguments)
        problem = answer.json
        self.assertEqual((answer.status, problem.get("code")), (status, code), answer.body)
        self.assertEqual(answer.headers["Content-Type"], "application/problem+json")
        self.assertEqual(answer.headers["Cache-Control"], "no-store")
        self.assertEqual((problem["type"], problem["status"]),
                         (f"urn:hapax:error:{code}", status))
        self.assertTrue(problem["detail"])
        page = os.path.join(SOURCE, "docs/errors", code + ".md")
        with open(page, encoding="utf-8") as file:
            self.assertTrue(file.readline().startswith(f"# {code} {problem['title']}"))
        self.provoked.add(code)

    def fill_memory(self):
        """Until claims are refused; each may be as long as the limits let it."""
        for number in range(200):
            ops = [{"op": "claim", "scope": "m", "key": f"{number}-{n}", "owner": "o" * 200}
                   for n in range(200)]
            answer = self.call("POST", "/commit", {"mode": "each", "ops": ops})
            if any(verdict["verdict"] == "refused" for verdict in answer.json["verdicts"]):
                return
        self.fail("the budget of memory was never full")

    def test_every_code_has_its_status_and_its_page(self):
        self.provoked = set()
        self.call("PUT", "/streams/s", {"window_s": 60, "quota_bytes": 1000})
        self.provoke("HX1001", "POST", "/streams/s/records", {"pay": 1}, status=400)
        self.provoke("HX1001", "POST", "/streams/s/records", b"{", status=400)
        self.provoke("HX1001", "POST", "/commit", {"ops": []}, status=400)
        self.provoke("HX1001", "POST", "/commit", {"ops": []}, {"Idempotency-Key": "a, b"},
                     status=400)
        self.provoke("HX1002", "POST", "/streams/s/records",
                     {"payload": "x", "id": "i" * 256}, status=413)
        self.provoke("HX1003", "GET", "/streams/none", status=404)
        self.provoke("HX1004", "PUT", "/streams/s", {"window_s": 61}, status=409)
        ops = {"ops": [{"op": "set", "name": "r", "value": "1"}]}
        self.call("POST", "/commit", {"id": "c", **ops})
        self.provoke("HX1005", "POST", "/commit",
                     {"id": "c", "ops": [{"op": "set", "name": "r", "value": "2"}]}, status=409)
        self.provoke("HX1006", "POST", "/streams/s/records", {"payload": "x" * 2000}, status=507)
        self.provoke("HX1016", "POST", "/commit", b"<xml/>", {"Content-Type": "text/xml"},
                     status=415)
        self.resolve_what_is_not_unknown()
        self.fill_memory()
        self.provoke("HX1007", "POST", "/claims/m/one-more", {"owner": "o" * 200}, status=507)
        with open(os.path.join(SOURCE, "include/hapax/errors.def"), encoding="utf-8") as file:
            known = {"HX" + number for number in
                     re.findall(r"^HAPAX_ERROR\(\w+, (\d+)", file.read(), re.M)}
        self.assertEqual(known - self.provoked, set(self.ELSEWHERE))

    def resolve_what_is_not_unknown(self):
        self.call("POST", "/claims/pay/k", {})
        self.provoke("HX1012", "POST", "/claims/pay/k/resolve",
                     {"resolution": "release", "actor": "me", "reason": "no"}, status=412)

    def test_what_http_itself_refuses_has_a_problem_too(self):
        for data, status in (
                (b"GET /api/v1/nothing HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
                (b"DELETE /api/v1/streams HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
                (b"GET / HTTP/1.1\r\n\r\n", 400),
                (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 40_000 + b"\r\n\r\n", 431),
                (b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n", 413),
                (b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
                (b"POST / HTTP/1.1\r\nHost: localhost\r\nExpect: money\r\n\r\n", 417)):
            answer = self.server.raw(data)
            self.assertIn(b"HTTP/1.1 %d " % status, answer)
            self.assertIn(b"application/problem+json", answer)
        self.assertIn(b"Allow: GET", self.server.raw(
            b"DELETE /api/v1/streams HTTP/1.1\r\nHost: localhost\r\n\r\n"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
