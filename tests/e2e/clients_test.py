"""Clients as they are: many at once, in a hurry, slow, half gone, and wrong in every way."""

import collections
import os
import re
import socket
import subprocess
import threading
import time
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

    # A list, a receive and a read are no part of the commit that single operations share.
    def test_pipelined_requests_happen_in_their_order(self):
        self.call("PUT", "/streams/s")
        self.call("PUT", "/streams/s/consumers/c")
        for number in range(1, 21):
            one = post("/streams/s/records", b'{"payload":"a"}')
            many = post("/streams/s/records", b'{"records":[{"payload":"b"}]}')
            receive = post("/streams/s/consumers/c/receive", b'{"max":9}')
            look = b"GET /api/v1/streams/s HTTP/1.1\r\nHost: localhost\r\n\r\n"
            answers = self.server.raw(one + many + one + look + receive)
            told = [int(last) for last in re.findall(rb'"(?:sequence|last)":(\d+)', answers)]
            last = 3 * number
            self.assertEqual(told, [last - 2, last - 1, last, last, last - 2, last - 1, last])


def read_all(link):
    got = b""
    while piece := link.recv(65536):
        got += piece
    return got


class SlowClients(running.ServerTest):
    CONFIG = "limits: {http: {header_time: 1s, body_time: 1s, idle_time: 1s}}\n"

    def test_a_header_that_never_ends_is_408(self):
        with self.server.connect() as link:
            link.sendall(b"GET /api/v1/streams HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
            self.assertIn(b"HTTP/1.1 408", read_all(link))

    def test_a_body_that_never_ends_is_408(self):
        with self.server.connect() as link:
            link.sendall(post("/streams/s/records", b"x" * 10)[:-5])
            self.assertIn(b"HTTP/1.1 408", read_all(link))

    def test_who_says_nothing_is_let_go(self):
        with self.server.connect() as link:
            self.assertEqual(read_all(link), b"")
        with self.server.connect() as link:
            link.sendall(b"GET /api/v1/streams HTTP/1.1\r\nHost: localhost\r\n\r\n")
            self.assertIn(b"HTTP/1.1 200", read_all(link))

    def test_who_sends_an_empty_line_behind_a_request_is_let_go(self):
        with self.server.connect() as link:
            link.sendall(b"GET /api/v1/streams HTTP/1.1\r\nHost: localhost\r\n\r\n\r\n")
            self.assertIn(b"HTTP/1.1 200", read_all(link))

    def test_others_are_served_meanwhile(self):
        slow = []
        for _ in range(200):
            slow.append(self.server.connect())
            slow[-1].sendall(b"POST /api/v1/streams HTTP/1.1\r\n")
        self.assertEqual(self.call("GET", "/streams").status, 200)
        for link in slow:
            self.assertIn(b" 408 ", read_all(link))
            link.close()


class SlowRespClients(running.ServerTest):
    CONFIG = "limits: {resp: {command_time: 1s, idle_time: 1s}}\n"

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.server.resp_port), 30)

    def test_a_command_that_never_ends_is_given_up(self):
        with self.connect() as link:
            link.sendall(b"PING\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100\r\nx")
            self.assertEqual(read_all(link), b"+PONG\r\n-ERR Protocol error: the command took "
                                             b"too long to arrive\r\n")

    def test_who_says_nothing_is_let_go(self):
        with self.connect() as link:
            self.assertEqual(read_all(link), b"")
        with self.connect() as link:
            link.sendall(b"PING\r\n")
            self.assertEqual(read_all(link), b"+PONG\r\n")

    def test_others_are_served_meanwhile(self):
        slow = []
        for _ in range(200):
            slow.append(self.connect())
            slow[-1].sendall(b"*3\r\n$3\r\nSET\r\n")
        client = self.client(self.server)
        self.assertEqual(client("SET", "k", "v"), "OK")
        for link in slow:
            self.assertIn(b"-ERR Protocol error", read_all(link))
            link.close()


class StuckClients(running.ServerTest):
    CONFIG = "limits: {unsent_time: 300ms}\n"

    def connections(self):
        text = self.call("GET", "/metrics").body.decode()
        return int(re.search(r"^hapax_connections (\d+)$", text, re.MULTILINE)[1])

    def test_who_takes_no_answers_is_let_go(self):
        idle = self.client(self.server)
        self.assertEqual(idle("SET", "k", "v" * 65_000), "OK")
        before = self.connections()
        stuck = self.client(self.server)
        self.assertEqual(stuck("PING"), "PONG")
        stuck.socket.sendall(b"GET k\r\n" * 1_000)
        self.call("PUT", "/streams/s")
        for _ in range(8):
            self.call("POST", "/streams/s/records", {"payload": "x" * 1_000_000})
        with self.server.connect() as link:
            link.sendall(b"GET /api/v1/streams/s/records HTTP/1.1\r\nHost: localhost\r\n\r\n" * 10)
            self.assertEqual(link.recv(8), b"HTTP/1.1")
            running.wait_for(lambda: self.connections() == before, "those who took nothing to go")
        self.assertEqual(idle("STRLEN", "k"), 65_000)


class Strangers(running.SignedInTest):
    """Who has still to sign in."""

    def connect(self, server):
        link = socket.create_connection(("127.0.0.1", server.resp_port), 30)
        self.addCleanup(link.close)
        return link

    def test_no_more_is_taken_than_signing_in_needs(self):
        server = self.serve()
        for data, told in ((b"*11\r\n", b"unauthenticated multibulk length"),
                           (b"*4\r\n$15000000\r\n", b"unauthenticated bulk length")):
            link = self.connect(server)
            link.sendall(data)
            self.assertEqual(read_all(link), b"-ERR Protocol error: " + told + b"\r\n")
        client = self.client(server, running.jwt())
        self.assertEqual(client("SET", "k", "v" * 20_000), "OK")
        self.assertEqual(client("DEL", *"abcdefghijlmno"), 0)

    def test_who_does_not_sign_in_is_let_go(self):
        server = self.serve(self.AUTH + "limits: {resp: {command_time: 1s}}\n")
        signed_in = self.client(server, running.jwt())
        self.assertEqual(read_all(self.connect(server)), b"")
        half = self.connect(server)
        half.sendall(b"*2\r\n$4\r\nAUTH\r\n")
        self.assertIn(b"-ERR Protocol error", read_all(half))
        self.assertEqual(signed_in("PING"), "PONG")

    def test_asking_for_this_and_that_gives_no_more_time(self):
        server = self.serve(self.AUTH + "limits: {resp: {command_time: 500ms}}\n")
        link = self.connect(server)
        link.settimeout(0.05)
        until = time.monotonic() + 30
        while time.monotonic() < until:
            try:
                link.sendall(b"PING\r\n")
                if link.recv(100) == b"":
                    return
            except TimeoutError:
                continue
            except OSError:
                return
        self.fail("the stranger is still there")


class GoneClients(running.ServerTest):
    def test_they_are_asked_for_a_sign_of_life(self):
        for port in (self.server.port, self.server.resp_port):
            with socket.create_connection(("127.0.0.1", port), 30) as link:
                ours = f":{port:04X}", f":{link.getsockname()[1]:04X}"

                def timer():
                    with open("/proc/net/tcp", encoding="ascii") as file:
                        lines = [line.split() for line in file]
                    return [line[5][:2] for line in lines
                            if line[1].endswith(ours[0]) and line[2].endswith(ours[1])]

                running.wait_for(lambda: timer() == ["02"], "the timer of keepalive")


class GreedyClients(running.ServerTest):
    """Few bytes that ask for many. However many are asked for, few are held at once."""

    ROOM = 150 << 20

    def setUp(self):
        super().setUp()
        self.call("PUT", "/streams/s")
        for _ in range(8):
            self.call("POST", "/streams/s/records", {"payload": "x" * 1_000_000})
        self.link = self.client(self.server)
        self.before = self.peak()

    def peak(self):
        with open(f"/proc/{self.server.process.pid}/status", encoding="ascii") as file:
            return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmHWM"))

    def check(self, asked):
        self.assertGreater(asked, 2 * self.ROOM)
        self.assertLess(self.peak() - self.before, self.ROOM)

    def lengths(self, count):
        return sum(len(self.link.reply()) for _ in range(count))

    def test_pipelined_receives(self):
        commands = [f"HX.RECEIVE s c{n} MAX 100\r\n" for n in range(400)]
        self.link.socket.sendall("".join(commands).encode())
        self.check(self.lengths(400))

    def test_pipelined_receives_of_large_records(self):
        self.call("PUT", "/streams/large", {"record_bytes_max": 8 << 20})
        self.call("POST", "/streams/large/records", {"payload": "x" * 6_000_000})
        self.before = self.peak()
        commands = [f"HX.RECEIVE large c{n}\r\n" for n in range(60)]
        self.link.socket.sendall("".join(commands).encode())
        self.check(self.lengths(60))

    def test_pipelined_gets(self):
        self.link("SET", "k", "v" * 65_000)
        self.link.socket.sendall(b"GET k\r\n" * 5_000)
        self.check(self.lengths(5_000))

    def settle(self, key, size):
        fence = self.call("POST", f"/claims/pay/{key}", {"owner": "w"}).json["fence"]
        self.call("POST", f"/claims/pay/{key}/settle",
                  {"fence": fence, "status": 200, "body": "r" * size})

    def test_pipelined_claims_with_large_results(self):
        self.settle("large", 4_000_000)
        self.before = self.peak()
        self.link.socket.sendall(b"HX.CLAIM pay large\r\n" * 100)
        self.check(self.lengths(100))

    # The operations of all connections of a loop are one commit; here one connection is several.
    def test_large_results_cost_their_neighbours_nothing(self):
        self.settle("large", 4_000_000)
        self.settle("small", 5_000)
        self.link.socket.sendall(
            b"HX.CLAIM pay large\r\nHX.CLAIM pay small\r\nSET k v\r\n" * 30)
        for _ in range(30):
            self.assertTrue(b"r" * 4_000_000 in self.link.reply())
            self.assertTrue(b"r" * 5_000 in self.link.reply())
            self.assertEqual(self.link.reply(), b"+OK\r\n")

    def test_a_transaction_that_is_never_carried_out(self):
        self.link("MULTI")
        one = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$60000\r\n" + b"x" * 60_000 + b"\r\n"
        told = []
        for _ in range(60):
            self.link.socket.sendall(one * 100)
            told += [self.link.reply() for _ in range(100)]
        self.check(60 * 100 * len(one))
        self.assertEqual(sum(reply.startswith(b"-ERR HX1002") for reply in told), 1)
        self.assertTrue(self.link("EXEC").startswith("-EXECABORT"))
        self.assertEqual(self.link("EXISTS", "k"), 0)

    def test_a_transaction_with_large_replies(self):
        self.link("SET", "k", "v" * 65_000)
        self.link.socket.sendall(b"MULTI\r\n" + b"GET k\r\n" * 5_000 + b"EXEC\r\n")
        replies = [self.link.reply() for _ in range(5_002)]
        self.assertIn(b"EXECABORT", replies[-1])
        self.check(5_000 * 65_000)

    def test_pipelined_reads_over_http(self):
        with self.server.connect() as link, link.makefile("rb") as file:
            link.sendall(b"GET /api/v1/streams/s/records HTTP/1.1\r\nHost: localhost\r\n\r\n" * 80)
            asked = 0
            for _ in range(80):
                self.assertIn(b" 200 ", file.readline())
                while (line := file.readline()) != b"\r\n":
                    if line.startswith(b"Content-Length"):
                        size = int(line.split()[1])
                asked += len(file.read(size))
        self.check(asked)

    def test_a_commit_with_large_answers(self):
        self.link("SET", "k", "v" * 65_000)
        ops = [{"op": "get", "name": "k"}] * 5_000
        answer = self.call("POST", "/commit", {"mode": "each", "ops": ops})
        told = collections.Counter(verdict["verdict"] for verdict in answer.json["verdicts"])
        self.assertEqual(set(told), {"done", "refused"})
        self.check(5_000 * 65_000)

    # The operations of all connections of a loop are one commit; these are two of one connection.
    def test_what_is_too_much_costs_its_neighbours_nothing(self):
        greedy = ["HX.RECEIVE s c MAX 4294967295"] + ["HX.RECEIVE none c MAX 10000"] * 500
        self.link.socket.sendall("".join(
            f"SET k {n}\r\n{line}\r\n" for n, line in enumerate(greedy)).encode())
        for _ in greedy:
            self.assertEqual(self.link.reply(), b"+OK\r\n")
            self.assertIn(b"refused", self.link.reply())


class FullDisk(running.FolderTest):
    # L18: the reserve is for what frees space, also beside others who would fill it.
    def test_what_frees_space_shares_no_commit_with_what_needs_it(self):
        running.mount_small_disk(self, os.path.join(self.folder, "data"))
        server = self.serve()
        server.call("PUT", "/streams/s")
        body = b'{"payload":"' + b"y" * 60_000 + b'"}'
        while server.call("POST", "/streams/s/records", body).status == 201:
            pass
        answers = server.raw(post("/streams/s/records", body) +
                             post("/streams/s/trim", b'{"before":3}'))
        self.assertEqual(re.findall(rb"HTTP/1.1 (\d+)", answers), [b"507", b"200"])


class HalfOpenClients(running.ServerTest):
    def test_who_closed_its_side_still_gets_every_answer(self):
        self.call("PUT", "/streams/s")
        answers = self.server.raw(post("/streams/s/records", b'{"payload":"a"}') * 3)
        self.assertEqual(answers.count(b"201 Created"), 3)

    def test_who_closed_its_side_still_gets_every_reply(self):
        with socket.create_connection(("127.0.0.1", self.server.resp_port), 30) as link:
            link.sendall(b"SET k v\r\nDEL a b\r\nDBSIZE\r\n" + b"GET k\r\n" * 1_000)
            link.shutdown(socket.SHUT_WR)
            self.assertEqual(read_all(link), b"+OK\r\n:0\r\n:1\r\n" + b"$1\r\nv\r\n" * 1_000)

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
                     {"id": "c", "ops": [{"op": "set", "name": "r", "value": "2"}]}, status=422)
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
                (b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: br\r\n"
                 b"Content-Length: 1\r\n\r\nx", 415),
                (b"GET / HTTP/1.2\r\nHost: localhost\r\n\r\n", 505),
                (b"GET / HTTP/2.0\r\nHost: localhost\r\n\r\n", 505),
                (b"GET / HTTP/x\r\nHost: localhost\r\n\r\n", 400),
                (b"POST / HTTP/1.1\r\nHost: localhost\r\nExpect: money\r\n\r\n", 417)):
            answer = self.server.raw(data)
            self.assertIn(b"HTTP/1.1 %d " % status, answer)
            self.assertIn(b"application/problem+json", answer)
            self.assertIn(b"X-Request-Id: ", answer)
            self.assertEqual(b'"code":"HX1002"' in answer, status == 413)
        self.assertIn(b"X-Request-Id: mine\r\n", self.server.raw(
            b"POST / HTTP/1.1\r\nX-Request-Id: mine\r\n\r\n"))
        self.assertIn(b"Allow: GET", self.server.raw(
            b"DELETE /api/v1/streams HTTP/1.1\r\nHost: localhost\r\n\r\n"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
