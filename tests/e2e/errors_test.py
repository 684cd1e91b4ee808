"""Every error that a client can meet, met: its status, its problem document, its page. And who is
turned away at the door."""

import glob
import os
import re
import resource
import socket
import unittest

import running
from running import jwt

_, TREE = running.arguments()

# Codes that no client of a running server can meet at will, and why.
OUT_OF_REACH = {
    "HX1009": "only while the journal is read at start, or with thousands of reads waiting; a "
              "unit test of the door meets it",
    "HX1010": "reserved: a server that stops answers what it took and takes no more",
    "HX1020": "a failing disk ends the process; nobody is answered",
    "HX1022": "a store of a newer version does not open, so there is no server",
    "HX1023": "a locked store does not open, so there is no server",
}


def known_errors():
    with open(os.path.join(TREE, "include/hapax/errors.def"), encoding="utf-8") as file:
        found = re.findall(r'^HAPAX_ERROR\(\w+, (\d+), "(\w+)", (\d+), k(\w+)\)', file.read(), re.M)
    return {"HX" + number: (word, int(status), retry.lower())
            for number, word, status, retry in found}


class Errors(running.SignedInTest):
    KNOWN = known_errors()
    MET = set()

    def check(self, code, answer):
        status, headers, body = answer
        word, expected, retry = self.KNOWN[code]
        self.assertEqual((status, body["code"]), (expected, code), body)
        self.assertEqual(headers["Content-Type"], "application/problem+json")
        self.assertEqual((body["type"], body["title"], body["status"], body["retry"]),
                         ("urn:hapax:error:" + code, word, expected, retry))
        self.assertTrue(body["detail"])
        self.assertEqual("Retry-After" in headers, retry == "later")
        self.MET.add(code)

    def test_of_requests(self):
        served = self.serve("")
        call = served.call
        call("PUT", "/streams/s", {"window_s": 60})
        call("PUT", "/api/v1/registers/text", {"value": "text"})
        key = {"Idempotency-Key": "k"}
        call("POST", "/streams/s/records", {"payload": "a"}, headers=key)
        call("PUT", "/streams/full", {"quota_bytes": 1000, "record_bytes_max": 900})
        call("POST", "/streams/full/records", {"payload": "x" * 900})
        records = "/streams/s/records"
        self.check("HX1001", call("POST", records, {"payload": "a", "idd": "b"}))
        self.check("HX1002", call("POST", records, {"payload": "a", "id": "x" * 256}))
        self.check("HX1003", call("GET", "/streams/none"))
        self.check("HX1004", call("PUT", "/streams/s", {"window_s": 61}))
        self.check("HX1005", call("POST", records, {"payload": "b"}, headers=key))
        self.check("HX1006", call("POST", "/streams/full/records", {"payload": "x" * 900}))
        self.check("HX1012", call("POST", "/api/v1/registers/text/add", {}))
        self.check("HX1014", call("GET", "/streams", headers={"Sec-Fetch-Site": "cross-site"}))
        self.check("HX1016", call("POST", records, {"payload": "a"},
                                  headers={"Content-Type": "text/plain"}))

    def test_of_credentials(self):
        served = self.serve(self.AUTH + "tenants: {busy: {rate: 1, burst: 1}}\n")
        self.check("HX1013", served.call("GET", "/streams"))
        self.check("HX1014", served.call("PUT", "/streams/s", token=jwt(roles=["consume"])))
        for _ in range(20):
            answer = served.call("GET", "/streams", token=jwt("busy"))
            if answer[0] != 200:
                break
        self.check("HX1015", answer)

    def test_of_memory(self):
        served = self.serve("store: {memory_max: 1MiB}\n")
        for number in range(200):
            answer = served.call("PUT", f"/api/v1/registers/r{number}", {"value": "x" * 60000})
            if answer[0] != 200:
                break
        self.check("HX1007", answer)

    def test_of_a_full_disk(self):
        served = self.serve("store: {segment_bytes: 1MiB}\n")
        served.call("PUT", "/streams/s")
        resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE, (64 << 10, 64 << 10))
        for _ in range(20):
            answer = served.call("POST", "/streams/s/records", {"payload": "x" * 900000})
            if answer[0] != 201:
                break
        self.check("HX1008", answer)

    def damaged(self):
        """A server under which a record was damaged."""
        served = self.serve("")
        served.call("PUT", "/streams/s")
        served.call("POST", "/streams/s/records", {"payload": "to be damaged" * 1000})
        hit = 0
        for path in glob.glob(os.path.join(self.folder, "data", "**"), recursive=True):
            if not os.path.isfile(path):
                continue
            with open(path, "r+b") as file:
                at = file.read().find(b"to be damagedto be")
                if at >= 0:
                    file.seek(at)
                    file.write(b"TO BE")
                    hit += 1
        self.assertGreater(hit, 0)
        return served

    def test_of_damage_that_a_commit_meets(self):
        self.check("HX1011", self.damaged().call("POST", "/streams/s/consumers/c/receive", {}))

    def test_of_damage_that_a_read_meets(self):
        self.check("HX1021", self.damaged().call("GET", "/streams/s/records"))

    @classmethod
    def tearDownClass(cls):
        left = cls.KNOWN.keys() - cls.MET - OUT_OF_REACH.keys()
        assert not left, f"no test meets {sorted(left)}"
        assert not cls.MET & OUT_OF_REACH.keys(), "what was met is not out of reach"

    def test_every_code_has_its_page(self):
        for code, (word, _, _) in self.KNOWN.items():
            path = os.path.join(TREE, "docs/errors", code + ".md")
            with open(path, encoding="utf-8") as file:
                self.assertEqual(file.readline().strip(), f"# {code} {word}")


class Doors(running.SignedInTest):
    def raw(self, served, head):
        host, port = served.url.removeprefix("http://").rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=30) as link:
            link.sendall("\r\n".join([*head, "", ""]).encode())
            answer = b""
            while piece := link.recv(65536):
                answer += piece
        return answer.decode()

    def test_a_body_is_not_read_from_who_may_not_come_in(self):  # A10
        served = self.serve()
        head = ["POST /api/v1/streams/s/records HTTP/1.1", "Host: localhost",
                "Expect: 100-continue"]
        for length in ("Content-Length: 1000000", "Transfer-Encoding: chunked"):
            for credential in ([], ["Authorization: Bearer wrong"]):
                answer = self.raw(served, [*head, length, *credential])
                self.assertTrue(answer.startswith("HTTP/1.1 401 "), answer)
                self.assertIn("Connection: close", answer)
                self.assertIn("WWW-Authenticate: Bearer", answer)
                self.assertIn("HX1013", answer)
        self.assertEqual(served.call("PUT", "/streams/s", {"window_s": 60}, token=jwt())[0], 200)

    def test_a_page_of_another_site_does_nothing(self):  # A9
        served = self.serve("")
        served.call("PUT", "/streams/s")
        port = served.url.rsplit(":", 1)[1]
        head = ["POST /api/v1/streams/s/records HTTP/1.1", "Content-Length: 15",
                "Content-Type: text/plain"]
        for fields in (["Host: 127.0.0.1:" + port, "Origin: https://evil.example"],
                       ["Host: 127.0.0.1:" + port, "Origin: null"],
                       ["Host: 127.0.0.1:" + port, "Sec-Fetch-Site: cross-site"],
                       ["Host: 127.0.0.1:" + port, "Origin: http://127.0.0.1:" + port,
                        "Origin: https://evil.example"],
                       ["Host: evil.example:" + port],
                       ["Host: evil.example:" + port, "Origin: http://evil.example:" + port]):
            answer = self.raw(served, [*head, *fields])
            self.assertTrue(answer.startswith("HTTP/1.1 403 "), answer)
            self.assertIn("HX1014", answer)
        absolute = f"GET http://evil.example:{port}/api/v1/streams HTTP/1.1"
        for host, status in (("127.0.0.1", 400), ("evil.example", 403)):
            answer = self.raw(served, [absolute, f"Host: {host}:{port}", "Connection: close"])
            self.assertTrue(answer.startswith(f"HTTP/1.1 {status} "), answer)
        own = {"Origin": served.url, "Sec-Fetch-Site": "same-origin"}
        self.assertEqual(
            served.call("POST", "/streams/s/records", {"payload": "x"}, headers=own)[2]["sequence"],
            1)

    def test_credentials_are_enough(self):
        served = self.serve()
        far = {"Origin": "https://app.example", "Sec-Fetch-Site": "cross-site"}
        self.assertEqual(served.call("GET", "/streams", token=jwt(), headers=far)[0], 200)


if __name__ == "__main__":
    unittest.main(verbosity=2)
