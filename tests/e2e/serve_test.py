"""`hapax serve` as its page in docs/reference/cli.md shows it: HTTP, RESP, and an orderly end."""

import re
import signal
import subprocess
import threading
import unittest

import running

running.arguments()


class Serve(running.ServerTest):
    def commands(self, text):
        """Sends line commands and reads until the server closes."""
        client = self.client(self.server)
        client.socket.sendall(text.encode())
        return b"".join(iter(client.file.readline, b"")).decode()

    def test_http_answers_verdicts_and_problems_and_keeps_them_over_a_kill(self):
        call = self.call
        self.assertEqual(call("PUT", "/streams/orders")[0], 200)
        record = {"id": "o-1", "payload": {"total": 12}}
        status, headers, body = call("POST", "/streams/orders/records", record)
        self.assertEqual((status, headers["Hapax-Verdict"], body["sequence"]), (201, "fresh", 1))
        self.server.restart()
        status, headers, body = call("POST", "/streams/orders/records", record)
        self.assertEqual((status, body["verdict"], body["sequence"]), (200, "duplicate", 1))
        status, headers, body = call("POST", "/streams/orders/records",
                                     {"id": "o-1", "payload": "other"})
        self.assertEqual((status, body["verdict"]), (422, "conflict"))
        self.assertEqual(headers["Content-Type"], "application/problem+json")
        status, _, body = call("POST", "/streams/none/records", {"payload": "x"})
        self.assertEqual((status, body["code"]), (404, "HX1003"))
        self.assertEqual(call("GET", "/nothing")[0], 404)
        self.assertEqual(call("POST", "/streams")[0], 405)
        self.assertEqual(self.server.stop(), 0)

    def test_an_idempotency_key_repeats_the_first_answer(self):
        claim = ("POST", "/claims/payments/o-1", {"owner": "me"}, {"Idempotency-Key": "k"})
        _, headers, first = self.server.call(*claim)
        self.assertNotIn("Idempotent-Replayed", headers)
        _, headers, again = self.server.call(*claim)
        self.assertEqual(headers["Idempotent-Replayed"], "true")
        self.assertEqual(again, first)

    def test_resp_and_http_see_one_store_and_an_append_wakes_who_waits(self):
        self.server.call("PUT", "/streams/orders")
        read = []
        path = "/streams/orders/records?from=1&wait_ms=30000"
        waits = threading.Thread(target=lambda: read.append(self.server.call("GET", path)))
        waits.start()
        said = self.commands("HX.APPEND orders twelve ID o-1\r\nQUIT\r\n")
        self.assertIn("fresh", said)
        waits.join()
        self.assertEqual(read[0][2]["records"][0]["payload"], "twelve")

    def test_exec_is_all_or_nothing(self):
        self.server.call("PUT", "/streams/orders")
        said = self.commands(
            "MULTI\r\nHX.APPEND orders a\r\nHX.APPEND none b\r\nEXEC\r\nQUIT\r\n")
        self.assertIn("-EXECABORT Transaction discarded: operation 2 was refused: HX1003", said)
        self.assertEqual(self.server.call("GET", "/streams/orders")[2]["last"], 0)

    def test_a_second_signal_does_not_wait_for_what_was_begun(self):
        with self.server.connect() as link:
            link.sendall(b"GET / HTTP/1.1\r\n")  # and no more
            ends = (signal.SIGTERM, signal.SIGINT)
            running.wait_for(lambda: self.figure("hapax_connections") == 2, "the connection")
            self.server.process.send_signal(ends[0])
            self.server.wait_for_log("stopping")
            self.server.process.send_signal(ends[1])
            self.assertEqual(self.server.process.wait(timeout=60), -ends[1])

    def figure(self, name):
        text = self.call("GET", "/metrics").body.decode()
        return int(re.search(rf"(?m)^{name} (\d+)$", text).group(1))

    def test_a_server_listens_somewhere(self):
        done = subprocess.run([self.HAPAX, "serve", "--http", "", "--resp", ""], timeout=60,
                              capture_output=True, text=True, check=False, cwd=self.folder)
        self.assertEqual(done.returncode, 64)
        self.assertIn("neither HTTP nor RESP has an address", done.stderr)

    def test_an_address_others_can_reach_is_refused_without_authentication(self):
        done = subprocess.run([self.HAPAX, "serve", "--data", "other", "--http", "0.0.0.0:0"],
                              capture_output=True, text=True, timeout=60, cwd=self.folder)
        self.assertEqual(done.returncode, 64)
        self.assertIn("--open-to-all", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
