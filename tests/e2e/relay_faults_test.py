"""`hapax relay` where it is killed, ended, misused, or has an endpoint that misbehaves."""

import json
import os
import signal
import subprocess
import threading
import time
import unittest

from relaying import RelayCase, label
from running import arguments, wait_for


def peak_kib(process):
    with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
        return int(next(line for line in file if line.startswith("VmHWM")).split()[1])


def is_pending(process, number):
    """Whether the process has not taken that signal yet."""
    with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
        sets = [line.split()[1] for line in file if line.startswith(("SigPnd", "ShdPnd"))]
    return any(int(each, 16) >> (number - 1) & 1 for each in sets)


class RelayFaultsTest(RelayCase):
    def publish(self, *ids, body="x"):
        self.cluster.psql("".join(
            f"SELECT hapax.publish('t', '{body}', 'k{each}', '{each}');\n" for each in ids))

    def is_drained(self):
        status = self.status()
        return status["waiting"] == 0 and status["retries"] == 0

    def dead_letters(self):
        lines = self.hapax("relay", "--from", self.cluster.uri(), "--dead-letters", "--json")
        return [json.loads(line)["id"] for line in lines.splitlines()]

    def test_of_records_only_the_one_that_kills_is_a_dead_letter(self):
        receiver = self.receiver()

        def hook(_, key, __):
            if key == "poison":
                self.relays[-1].kill()
            return key == "poison"
        receiver.hook = hook
        others = [f"o{n}" for n in range(12)]
        self.publish(*others[:6], "poison", *others[6:])
        lives = 0
        while not self.is_drained():
            lives += 1
            self.assertLess(lives, 30)
            relay = self.relay(receiver.url, "--lease", "1s", "--attempts", "3")
            wait_for(lambda: relay.poll() is not None or self.is_drained(), "it to die, or be done")
        self.assertEqual(self.dead_letters(), ["poison"])
        self.assertEqual({each[0] for each in receiver.got}, set(others))

    def test_kills_from_outside_make_no_dead_letters(self):
        receiver = self.receiver()
        begun = []

        def hook(_, key, __):
            begun.append(key)
            receiver.closing.wait()
            return True
        receiver.hook = hook
        ids = [f"e{n}" for n in range(20)]
        self.publish(*ids)
        for _ in range(12):
            begun.clear()
            relay = self.relay(receiver.url, "--lease", "1s")
            wait_for(lambda: begun, "a request")
            relay.kill()
            relay.wait()
        receiver.hook = None
        self.relay(receiver.url, "--lease", "1s")
        wait_for(self.is_drained, "the outbox to be drained")
        self.assertEqual(self.dead_letters(), [])
        self.assertEqual({each[0] for each in receiver.got}, set(ids))

    def test_sigterm_begins_no_further_request(self):
        receiver = self.receiver()
        begun, answers = [], threading.Event()

        def hook(_, key, __):
            begun.append(key)
            if len(begun) == 3:
                answers.wait(30)
            return False
        receiver.hook = hook
        self.publish(*[f"e{n}" for n in range(60)])
        relay = self.relay(receiver.url, "--lease", "60s", "--concurrency", "1")
        wait_for(lambda: len(begun) == 3, "the request that takes its time")
        relay.send_signal(signal.SIGTERM)
        wait_for(lambda: not is_pending(relay, signal.SIGTERM), "it to be told")
        answers.wait(0.5)
        self.assertIsNone(relay.poll(), "it waits for the answer")
        answers.set()
        self.assertEqual(relay.wait(timeout=8), 0)
        self.assertEqual(len(begun), 3)
        status = self.status()
        self.assertEqual((status["waiting"], status["delivered"]), (57, 3))
        self.assertEqual({lane["owner"] for lane in status["lanes"]}, {None})
        receiver.hook = None
        self.assertIn("57 accepted", self.once(self.cluster.uri(), receiver.url).stdout)

    def test_an_endless_answer_takes_no_memory(self):
        receiver = self.receiver()
        written = []

        def hook(handler, _, __):
            handler.send_response(200)
            handler.send_header("Transfer-Encoding", "chunked")
            handler.end_headers()
            piece = b"100000\r\n" + b"x" * 0x100000 + b"\r\n"
            try:
                while sum(written) < 400 << 20 and not receiver.closing.is_set():
                    handler.wfile.write(piece)
                    written.append(len(piece))
            except OSError:
                pass
            handler.close_connection = True
            return True
        receiver.hook = hook
        self.publish("e1")
        relay = self.relay(receiver.url)
        wait_for(lambda: self.status()["delivered"] == 1, "it to be delivered")
        self.assertLess(peak_kib(relay), 100 << 10)
        self.assertLess(sum(written), 400 << 20)

    def test_retry_after_is_kept(self):
        receiver = self.receiver()
        times = []

        def hook(handler, _, __):
            times.append(time.monotonic())
            if len(times) > 1:
                return False
            handler.send_response(429)
            handler.send_header("Retry-After", "2")
            handler.send_header("Content-Length", "0")
            handler.end_headers()
            return True
        receiver.hook = hook
        self.publish("e1", "e2", "e3")
        self.relay(receiver.url, "--concurrency", "1")
        wait_for(lambda: len(receiver.got) == 3, "the records")
        self.assertGreaterEqual(times[1] - times[0], 1.9)
        self.assertEqual(len(times), 4)

    def test_what_others_wrote_does_not_reach_the_terminal_as_it_is(self):
        receiver = self.receiver()

        def hook(handler, _, __):
            text = b"\x1b[31mno\nhapax relay: forged\x07"
            handler.send_response(422)
            handler.send_header("Content-Length", str(len(text)))
            handler.end_headers()
            handler.wfile.write(text)
            return True
        receiver.hook = hook
        self.cluster.psql("SELECT hapax.publish(E't\\x1b[2J', 'x', 'k', E'a\\x1b[2J\\nforged')")
        done = self.once(self.cluster.uri(), receiver.url, "--attempts", "1")
        self.assertIn("record a\\x1b[2J\\x0aforged is a dead letter after 1 attempts: HTTP 422",
                      done.stderr)
        self.assertIn("no\\x0ahapax relay: forged\\x07", done.stderr)
        listed = self.hapax("relay", "--from", self.cluster.uri(), "--dead-letters")
        self.assertIn("a\\x1b[2J\\x0aforged  t\\x1b[2J", listed)
        for text in (done.stderr, listed):
            self.assertEqual(text.strip().count("\n"), 0, text)
            self.assertNotIn("\x1b", text)

    def test_an_endpoint_may_have_a_query(self):
        receiver = self.receiver()
        paths = []

        def hook(handler, _, __):
            paths.append(handler.path)
            return False
        receiver.hook = hook
        self.publish("e1")
        url = receiver.url + "/streams/x?key=1&to=a%20b/streams/c"
        self.assertEqual(self.once(self.cluster.uri(), url).returncode, 0)
        self.assertEqual(paths, ["/in/streams/x?key=1&to=a%20b/streams/c"])

    def test_a_stream_that_forgets_ids_too_soon_is_refused(self):
        folder = os.path.join(self.folder, "own")
        self.hapax("stream", "create", "short", "--window", "8m", "--data", folder)
        self.hapax("stream", "create", "long", "--window", "526s", "--data", folder)
        self.hapax("stream", "create", "endless", "--window", "forever", "--data", folder)
        server = self.serve()
        for name, window in (("short", 480), ("long", 526), ("endless", "forever")):
            server.call("PUT", "/streams/" + name, {"window_s": window})
        self.publish("e1")
        for place in (server.url, folder):
            told = self.once(self.cluster.uri(), place + "/streams/short")
            self.assertEqual(told.returncode, 64, told.stderr)
            self.assertIn(
                "stream short remembers ids for 480 s, but this relay may send a record again "
                "526 s after it was stored (9 waits between 10 attempts, of 1 s to 256 s, and a "
                "lease = 511 s + 15 s)", told.stderr)
            self.assertIn("hapax stream configure short --window 526s", told.stderr)
            self.assertEqual(self.status()["delivered"], 0)
        for name, *more in (("long",), ("endless", "--attempts", "1000"),
                            ("short", "--attempts", "9")):
            for place in (server.url, folder):
                told = self.once(self.cluster.uri(), f"{place}/streams/{name}", *more)
                self.assertEqual((told.returncode, told.stderr), (0, ""))
        # Nobody is there to be asked: that is said, and it is tried again later.
        told = self.once(self.cluster.uri(), "http://127.0.0.1:1/streams/short")
        self.assertIn("for how long stream short remembers ids is not known", told.stderr)

    def test_trace_tells_where_an_event_is(self):
        def trace(key, *more):
            words = [self.HAPAX, "trace", key, *more]
            done = subprocess.run(words, capture_output=True, text=True, timeout=60,
                                  cwd=self.folder, env={**os.environ, "HAPAX_URL": ""})
            return done.returncode, done.stdout

        file, publish = self.sqlite()
        self.cluster.psql("SELECT hapax.publish('t', '422', 'k', 'm1'), "
                          "hapax.publish('t', 'x', 'k', 'm2')")
        source = ("--from", self.cluster.uri())
        self.assertRegex(trace("m1", *source)[1], "number 1 waits in lane [0-9]+; no relay holds")
        publish("s1")
        code, told = trace("s1", *source, "--from", file)
        self.assertIn("not there", told)
        self.assertIn("number 1 waits in lane 0", told)
        self.assertEqual((code, trace("m3", *source)[0]), (0, 66))
        receiver = self.receiver()
        self.once(self.cluster.uri(), receiver.url)
        self.assertRegex(trace("m1", *source)[1], "was refused, 1 attempts; the next 2.*: HTTP 422")
        self.assertIn("behind an earlier one of its key", trace("m2", *source)[1])
        self.cluster.psql("UPDATE hapax.outbox_retry SET next_at = now() WHERE next_at > now()")
        self.once(self.cluster.uri(), receiver.url, "--attempts", "1")
        self.assertIn("is a dead letter after 2 attempts: HTTP 422", trace("m1", *source)[1])
        self.assertIn("number 2 was sent", trace("m2", *source)[1])
        found = json.loads(trace("m1", *source, "--json")[1])
        self.assertEqual((found["outbox"][0]["state"], found["outbox"][0]["attempts"],
                          found["records"]), ("dead letter", 2, []))
        # Together with the streams of a server.
        server = self.serve()
        server.call("PUT", "/streams/orders", {})
        self.once(file, server.url + "/streams/orders")
        told = trace("s1", "--from", file, "--url", server.url)[1]
        self.assertIn("number 1 was sent", told)
        self.assertIn("stored in stream orders as sequence 1", told)

    def test_redrive_has_a_pace_a_since_and_a_dry_run(self):
        self.cluster.psql(
            "INSERT INTO hapax.outbox_dead (seq, id, type, payload, created_at, attempts, reason, "
            "died_at) SELECT 1000 + n, 'd' || n, 't', 'x', now(), 3, 'no', "
            "now() - CASE WHEN n <= 10 THEN interval '3 hours' ELSE interval '1 minute' END "
            "FROM generate_series(1, 40) AS n")

        def redrive(*words):
            return subprocess.run([self.HAPAX, "relay", "--from", self.cluster.uri(), *words],
                                  capture_output=True, text=True, timeout=60, cwd=self.folder)

        told = redrive("--redrive-all", "--since", "2h", "--dry-run")
        self.assertIn("30 would be published again", told.stdout)
        self.assertEqual(told.stdout.count("3 attempts  no"), 30)
        told = redrive("--redrive", "d1", "--redrive", "d40", "--since", "2h", "--dry-run",
                       "--json")
        self.assertEqual(json.loads(told.stdout)["ids"], ["d40"])
        self.assertEqual(redrive("--redrive", "none", "--dry-run").returncode, 66)
        self.assertEqual(len(self.dead_letters()), 40, "a dry run changes nothing")

        begun = time.monotonic()
        told = redrive("--redrive-all", "--since", "2h", "--rate", "20/s")
        self.assertIn("30 published again", told.stdout)
        self.assertGreaterEqual(time.monotonic() - begun, 1.3)
        self.assertEqual(set(self.dead_letters()), {f"d{n}" for n in range(1, 11)})
        # Killed in between, it goes on with what is left.
        slow = subprocess.Popen([self.HAPAX, "relay", "--from", self.cluster.uri(),
                                 "--redrive-all", "--rate", "2"], stdout=subprocess.DEVNULL)
        self.relays.append(slow)
        wait_for(lambda: len(self.dead_letters()) <= 8, "some of them")
        slow.kill()
        slow.wait()
        left = len(self.dead_letters())
        self.assertGreater(left, 0)
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 7200))
        self.assertIn(": 0 published", redrive("--redrive-all", "--since", moment).stdout)
        self.assertIn(f": {left} published", redrive("--redrive-all").stdout)
        self.assertEqual(self.cluster.psql("SELECT count(*), count(DISTINCT id) FROM hapax.outbox"),
                         "40|40")
        for words in (["--redrive-all", "--rate", "0"], ["--redrive-all", "--since", "soon"],
                      ["--status", "--dry-run"], ["--rate", "1/s", "--to", "http://127.0.0.1:1/"]):
            self.assertEqual(redrive(*words).returncode, 64, words)

    def test_a_second_relay_of_a_name_is_refused(self):
        receiver = self.receiver()

        def hook(_, __, ___):
            receiver.closing.wait(0.05)
            return False
        receiver.hook = hook
        self.publish(*[f"e{n}" for n in range(80)])
        first = self.relay(receiver.url, "--name", "twin", "--lease", "3s")
        wait_for(lambda: receiver.got, "the first record")
        second = subprocess.run(
            [self.HAPAX, "relay", "--from", self.cluster.uri(), "--to", receiver.url, "--name",
             "twin", "--lease", "3s"], capture_output=True, text=True, timeout=60, cwd=self.folder)
        self.assertEqual(second.returncode, 73, second.stderr)
        self.assertIn("another relay named 'twin' is running; give every relay a --name of its own",
                      second.stderr)
        self.assertEqual(second.stderr.count("holds lanes for"), 1, second.stderr)
        wait_for(self.is_drained, "the records")
        self.assertEqual(len(receiver.got), 80)
        self.assertEqual(len({each[0] for each in receiver.got}), 80)

        first.kill()
        first.wait()
        self.publish("after")
        self.relay(receiver.url, "--name", "twin", "--lease", "3s")
        wait_for(lambda: receiver.got[-1][0] == "after", "one whose namesake is dead")
        self.assertEqual(set(map(label, self.status()["lanes"])), {"twin"})


if __name__ == "__main__":
    arguments()
    unittest.main()
