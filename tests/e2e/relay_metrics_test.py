"""hapax relay --metrics and --log: how a relay does, for those who watch it."""

import http.client
import json
import unittest

from relaying import RelayCase
from running import arguments, free_port, wait_for

arguments()


class RelayMetricsTest(RelayCase):
    def ask(self, port, path):
        link = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        try:
            link.request("GET", path)
            answer = link.getresponse()
            return answer.status, answer.read().decode()
        except OSError:
            return 0, ""  # It does not listen yet.
        finally:
            link.close()

    def figure(self, port, name):
        lines = self.ask(port, "/metrics")[1].splitlines()
        return [float(line.rsplit(" ", 1)[1]) for line in lines
                if line.startswith((name + " ", name + "{"))]

    def watched(self, *more, source=None):
        receiver, port = self.receiver(), free_port()
        relay = self.relay(receiver.url, "--metrics", f"127.0.0.1:{port}", *more, source=source)
        return receiver, port, relay

    def ready(self, port, status):
        wait_for(lambda: self.ask(port, "/health/ready")[0] == status,
                 lambda: f"{status} of /health/ready, which says {self.ask(port, '/health/ready')}")

    def tells(self, source, publish):
        receiver, port, relay = self.watched(source=source)
        self.ready(port, 200)
        self.assertEqual(self.ask(port, "/health/live")[0], 200)
        publish("m1")
        wait_for(lambda: receiver.got, "the record")
        wait_for(lambda: self.figure(port, "hapax_outbox_published") == [1.0],
                 lambda: "one published; " + self.ask(port, "/metrics")[1])
        self.assertEqual(self.figure(port, "outbox_events_pending"), [0.0])
        self.assertEqual(self.figure(port, "hapax_outbox_reachable"), [1.0])
        self.assertEqual(self.figure(port, "hapax_delivery_dead_letters"), [0.0])
        status, told = self.ask(port, "/api/v1/streams")
        self.assertEqual(status, 503, told)
        self.assertIn("nothing else", told)
        relay.terminate()
        self.assertEqual(relay.wait(timeout=60), 0, self.log_text())

    def test_a_relay_of_postgres_tells_how_it_does(self):
        self.tells(None, lambda name: self.cluster.psql(
            f"SELECT hapax.publish('t', 'x', 'k', '{name}')"))

    def test_a_relay_of_sqlite_tells_how_it_does(self):
        self.tells(*self.sqlite())

    def test_what_waits_is_counted_and_no_password_is_told(self):
        receiver, port = self.receiver(), free_port()
        receiver.url = receiver.url.replace("/in", "/hangs")
        self.cluster.psql("SELECT hapax.publish('t', 'x', 'k', 'm' || n) "
                          "FROM generate_series(1, 3) AS n")
        self.relay(receiver.url, "--metrics", f"127.0.0.1:{port}")
        wait_for(lambda: self.figure(port, "outbox_events_pending") == [3.0],
                 lambda: "three that wait; " + self.ask(port, "/metrics")[1])
        self.assertNotIn("password", self.ask(port, "/metrics")[1])
        receiver.closing.set()

    def test_lines_of_the_log_are_json(self):
        _, port, relay = self.watched("--log", "json")
        self.ready(port, 200)
        relay.terminate()
        self.assertEqual(relay.wait(timeout=60), 0, self.log_text())
        lines = [line for line in self.log_text().splitlines() if line.startswith("{")]
        self.assertGreaterEqual(len(lines), 2, self.log_text())
        told = [json.loads(line) for line in lines]
        self.assertTrue(any("metrics and health at http://" in str(each) for each in told), told)

    def test_wrong_words_are_refused(self):
        receiver, port = self.receiver(), free_port()
        uri = self.cluster.uri()
        for words in (("--log", "xml"), ("--metrics", "nowhere:x")):
            self.assertNotEqual(self.once(uri, receiver.url, *words).returncode, 0, words)
        first = self.relay(receiver.url, "--metrics", f"127.0.0.1:{port}", "--name", "a")
        self.ready(port, 200)
        done = self.once(uri, receiver.url, "--metrics", f"127.0.0.1:{port}", "--name", "b")
        self.assertNotEqual(done.returncode, 0, done.stderr)
        self.assertIn(str(port), done.stderr)
        self.assertIsNone(first.poll())


if __name__ == "__main__":
    unittest.main(verbosity=2)
