"""The commands that ask a server or a data folder, as a user types them.
Usage: cli_test.py HAPAX SOURCE_TREE"""
import http.server
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import unittest

import running

HAPAX, SOURCE = running.arguments()

USAGE, DAMAGED, MISSING, UNREACHABLE, CONTRADICTED, LATER, STRANGER, FORBIDDEN = (
    64, 65, 66, 69, 73, 75, 76, 77)


def hapax(*arguments, url=None, token=None, stdin="", **options):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("HAPAX_")}
    if url:
        clean["HAPAX_URL"] = url
    if token:
        clean["HAPAX_TOKEN"] = token
    return subprocess.run([HAPAX, *arguments], capture_output=True, text=True, timeout=60,
                          input=stdin, env=clean, **options)


class Commands:
    """Everything that works alike on a server and on a folder; `self.run` says which."""

    def good(self, *arguments, **options):
        done = self.run_hapax(*arguments, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def told(self, *arguments, **options):
        return json.loads(self.good(*arguments, "--json", **options))

    def bad(self, code, *arguments, **options):
        done = self.run_hapax(*arguments, **options)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stderr

    def test_a_command_that_is_not_there_is_told_the_nearest(self):
        done = subprocess.run([HAPAX, "sevre"], capture_output=True, text=True, timeout=60,
                              check=False)
        self.assertEqual(done.returncode, 64)
        self.assertIn("did you mean 'serve'?", done.stderr)
        self.assertIn("no command 'hapax workflows lst'; did you mean 'list'? "
                      "(see hapax workflows --help)", self.bad(USAGE, "workflows", "lst"))
        self.assertIn("'hapax blocked' needs one of: list retry park drop",
                      hapax("blocked").stderr)

    def test_streams(self):
        self.assertEqual(self.good("stream", "create", "orders", "--window", "24h"), "done\n")
        self.assertEqual(self.told("stream", "create", "mail")["verdict"], "done")
        self.assertEqual(self.told("stream", "list"), {"streams": ["mail", "orders"]})
        table = self.good("stream", "list").splitlines()
        self.assertEqual(table[0].split()[:3], ["stream", "first", "last"])
        self.assertEqual(table[2].split()[0], "orders")
        self.good("stream", "configure", "orders", "--retention-count", "5", "--track-groups")
        settings = self.told("stream", "show", "orders")["settings"]
        self.assertEqual((settings["window_s"], settings["retention_count"]), (86400, 5))
        self.assertTrue(settings["track_groups"])
        self.good("stream", "configure", "orders", "--no-track-groups")
        settings = self.told("stream", "show", "orders")["settings"]
        self.assertEqual((settings["window_s"], settings["retention_count"]), (86400, 5))
        self.assertFalse(settings["track_groups"])
        self.assertRegex(self.good("stream", "show", "orders"), r"retention count +5\n")
        self.good("append", "orders", "a")
        self.good("append", "orders", "b")
        self.good("stream", "trim", "orders", "2")
        self.assertEqual(self.told("stream", "show", "orders")["first"], 2)
        self.good("stream", "delete", "orders")
        self.assertIn("HX1003", self.bad(MISSING, "stream", "show", "orders"))
        self.assertIn("span of time", self.bad(USAGE, "stream", "create", "x", "--window", "3"))
        self.bad(USAGE, "stream", "create", "x", "--id-scope", "nowhere")
        self.bad(USAGE, "stream", "trim", "mail", "-x")

    def test_append_and_tail(self):
        self.good("stream", "create", "orders")
        fresh = self.told("append", "orders", '{"total":12}', "--id", "o-1", "--group", "ann",
                          "--header", "a=b", "--header", "c=d=e")
        self.assertEqual(fresh, {"verdict": "fresh", "sequence": 1})
        again = self.good("append", "orders", '{"total":12}', "--id", "o-1", "--group", "ann",
                          "--header", "a=b", "--header", "c=d=e")
        self.assertRegex(again, r"^duplicate  sequence 1  first seen 20")
        done = self.run_hapax("append", "orders", "other", "--id", "o-1", "--json")
        self.assertEqual(done.returncode, CONTRADICTED)
        self.assertEqual(json.loads(done.stdout)["verdict"], "conflict")
        self.assertIn("conflict: the id or key is known with other content", done.stderr)
        with open(os.path.join(self.folder, "payload"), "wb") as file:
            file.write(b"\xff\x00raw")
        self.good("append", "orders", "--file", os.path.join(self.folder, "payload"))
        self.assertEqual(self.told("append", "orders", "--file", "-", stdin="a\nb")["sequence"], 3)
        records = [json.loads(line)
                   for line in self.good("tail", "orders", "--json").splitlines()]
        self.assertEqual(records[0]["payload"], '{"total":12}')
        self.assertEqual(records[0]["headers"], [["a", "b"], ["c", "d=e"]])
        self.assertEqual(records[1]["payload_base64"], "/wByYXc=")
        self.assertEqual(records[2]["payload"], "a\nb")
        self.assertRegex(self.good("tail", "orders", "-n", "1"),
                         r"^ +3  20\S+Z  -  +-  +a\\x0ab\n$")
        self.assertEqual(self.good("tail", "orders", "--from", "1", "--max", "1", "--payload"),
                         '{"total":12}\n')
        for word in ("records", "verdicts"):  # whatever the content is called
            self.good("append", "orders", "tea", "--id", word)
            self.assertIn("conflict", self.bad(CONTRADICTED, "append", "orders", "gin", "--id",
                                               word))
        self.bad(USAGE, "append", "orders", "x", "--header", "novalue")
        self.bad(MISSING, "append", "nowhere", "x")
        self.bad(MISSING, "tail", "nowhere")

    def test_lines(self):
        self.good("stream", "create", "orders")
        lines = "".join("line %d\n" % n for n in range(2500))
        self.assertEqual(self.good("append", "orders", "--id", "import", stdin=lines),
                         "2500 fresh\n")
        self.assertEqual(self.good("append", "orders", "--id", "import", stdin=lines),
                         "2500 duplicate\n")
        self.assertEqual(len(self.good("tail", "orders", "--from", "1").splitlines()), 2500)
        self.assertIn("--id is empty", self.bad(USAGE, "append", "orders", "--id", "", stdin=lines))
        self.assertIn("group is empty",
                      self.bad(USAGE, "append", "orders", "x", "--id", "a", "--group", ""))
        self.assertEqual(self.good("append", "orders", stdin=""), "no lines\n")
        ndjson = '{"id":"a","payload":{"x":1}}\n{"id":"a","payload":2}\n'
        done = self.run_hapax("append", "orders", "--ndjson", stdin=ndjson)
        self.assertEqual((done.returncode, done.stdout), (CONTRADICTED, "1 conflict, 1 fresh\n"))
        self.assertIn("line 2: conflict", done.stderr)
        self.assertIn("nothing of lines 1 to 1",
                      self.bad(USAGE, "append", "orders", "--ndjson", stdin="broken\n"))
        self.assertEqual(self.good("append", "orders", "--producer", "p", stdin="a\nb"),
                         "2 fresh\n")
        self.assertEqual(
            self.good("append", "orders", "--producer", "p", "--producer-epoch", "1", stdin="a\nb"),
            "2 duplicate\n")
        self.good("producer", "open", "orders", "p")
        self.assertIn("fenced", self.bad(CONTRADICTED, "append", "orders", "--producer", "p",
                                         "--producer-epoch", "1", stdin="c\n"))
        self.good("producer", "retire", "orders", "p", "--reason", "a test")

    def test_consumers(self):
        self.good("stream", "create", "orders")
        self.good("consumer", "create", "orders", "mail", "--attempts-max", "2")
        for text in "abc":
            self.good("append", "orders", text, "--id", text)
        received = self.told("receive", "orders", "mail", "--max", "2", "--lease", "60s")
        receipts = [record["receipt"] for record in received["records"]]
        self.assertEqual(len(receipts), 2)
        self.assertIn("done", self.good("extend", "orders", "mail", receipts[0], "--lease", "2m"))
        self.assertEqual(self.good("ack", "orders", "mail", *receipts).count("done"), 2)
        self.assertIn("c", self.good("receive", "orders", "mail", "--ack"))
        self.assertEqual(self.good("receive", "orders", "mail", "--wait", "50ms"),
                         "nothing to hand out\n")
        self.good("consumer", "seek", "orders", "mail", "3")
        for _ in range(2):
            receipt = self.told("receive", "orders", "mail")["records"][0]["receipt"]
            self.good("nack", "orders", "mail", receipt, "--reason", "mail is down")
        self.bad(CONTRADICTED, "ack", "orders", "mail", receipt)
        dead = json.loads(self.good("tail", "orders.dead", "--json"))
        self.assertEqual(dead["lineage"]["reason"], "mail is down")
        self.good("redrive", "orders.dead", "1")
        self.assertIn("mail", self.good("stream", "show", "orders"))
        self.good("consumer", "delete", "orders", "mail")
        self.bad(MISSING, "receive", "nowhere", "mail")
        self.bad(USAGE, "receive", "orders", "mail", "--wait", "2h")

    def test_claims(self):
        fence = str(self.told("claim", "payments", "o/1", "--lease", "30s")["fence"])
        self.assertIn("in_progress", self.bad(LATER, "claim", "payments", "o/1"))
        self.assertIn("fenced", self.bad(CONTRADICTED, "settle", "payments", "o/1", "999"))
        self.good("renew", "payments", "o/1", fence, "--lease", "1m")
        self.assertEqual(self.told("status", "payments", "o/1")["state"], "processing")
        self.good("settle", "payments", "o/1", fence, "--status", "201", "--body", "paid")
        self.assertRegex(self.good("claim", "payments", "o/1"), "^duplicate  .*body paid")
        self.assertRegex(self.good("status", "payments", "o/1"), r"(?s)^claim payments/o/1\n.*paid")
        fence = str(self.told("claim", "payments", "o-2")["fence"])
        self.good("settle", "payments", "o-2", fence, "--outcome", "unknown", "--reason", "silence")
        self.assertIn("unknown", self.bad(CONTRADICTED, "claim", "payments", "o-2"))
        self.good("resolve", "payments", "o-2", "not_applied", "--reason", "asked the bank")
        self.assertEqual(self.told("claim", "payments", "o-2")["verdict"], "fresh")
        self.good("forget", "payments", "o/1", "--reason", "a test")
        self.bad(MISSING, "status", "payments", "o/1")
        self.good("stream", "create", "orders")
        self.good("append", "orders", "x", "--id", "o-3")
        self.assertRegex(self.good("status", "orders", "o-3"), r"^message id orders/o-3\n")
        self.bad(USAGE, "settle", "payments", "o-2")
        self.good("claim", "payments", "o-4", "--lease", "1ms", "--on-lapse", "unknown")
        running.wait_for(lambda: self.told("status", "payments", "o-4")["state"] == "unknown",
                         "the end of the lease")
        self.assertIn("ran out at", self.bad(CONTRADICTED, "claim", "payments", "o-4"))

    def test_an_id_of_a_group_is_not_said_to_be_unknown(self):
        self.good("stream", "create", "grouped", "--id-scope", "group")
        self.good("append", "grouped", "x", "--id", "o-1", "--group", "ann")
        self.assertIn("unique per group", self.bad(USAGE, "status", "grouped", "o-1"))
        self.good("status", "grouped", "o-1", "--group", "ann")
        done = self.run_hapax("trace", "o-1")
        self.assertIn("not looked at: message ids", done.stdout)
        self.assertIn("stored in stream grouped as sequence 1",
                      self.good("trace", "o-1", "--group", "ann"))

    def test_trace(self):
        self.good("stream", "create", "orders")
        self.good("append", "orders", "tea", "--id", "o-1")
        self.good("consumer", "create", "orders", "mail", "--attempts-max", "1")
        receipt = self.told("receive", "orders", "mail", "--owner", "ann")["records"][0]["receipt"]
        self.good("nack", "orders", "mail", receipt, "--reason", "mail is down")
        fence = str(self.told("claim", "payments", "o-1")["fence"])
        self.good("settle", "payments", "o-1", fence, "--outcome", "unknown", "--reason", "silence")
        self.assertIn("hapax resolve payments o-1", self.good("trace", "payments/o-1"))
        self.good("resolve", "payments", "o-1", "completed", "--reason", "asked", "--actor", "bob")
        life = self.good("trace", "o-1")
        for line in ("stored in stream orders as sequence 1", "handed out to ann, attempt 1",
                     "attempt 1 ended: nacked mail is down", "dead letter 1 of consumer mail",
                     "claim payments/o-1: completed, fence " + fence, ", owner ",
                     "the claim is forgotten",
                     "resolve-completed payments/o-1 by bob, because asked",
                     "the id is forgotten in stream orders", "knows every id since 20"):
            self.assertIn(line, life)
        told = self.told("trace", "o-1")
        self.assertEqual([len(told[kind]) for kind in
                          ("claims", "ids", "records", "dead_letters", "registers", "audit")],
                         [1, 1, 1, 1, 0, 1])
        self.assertEqual(told["claims"][0]["scope"], "payments")
        self.assertIn("nothing is known of 'o-9'", self.bad(MISSING, "trace", "o-9"))

    def test_stats(self):
        self.good("stream", "create", "orders")
        self.good("consumer", "create", "orders", "mail")
        self.good("append", "orders", "tea", "--id", "o-1")
        told = self.told("stats")
        self.assertEqual(told["store"]["ids"], 1)
        self.assertEqual(told["streams"][0]["last"], 1)
        self.assertRegex(self.good("stats"), r"(?m)^orders +1 +\d+ +1 +mail +1 +0 +0 +0$")
        watched = self.good("stats", "--watch", "--every", "20ms", "--times", "3", "--json")
        self.assertEqual(len(watched.splitlines()), 3)
        self.assertIn("commits per second",
                      self.good("stats", "--watch", "--every", "20ms", "--times", "2"))
        self.bad(USAGE, "stats", "--every", "often")

    def test_doctor(self):
        self.assertNotIn("FAILED", self.good("doctor"))
        checks = {check["check"]: check["state"] for check in self.told("doctor")["checks"]}
        for check in ("reach", "ready", "credential", "version", "clock", "store"):
            self.assertEqual(checks[check], "ok")
        fence = str(self.told("claim", "payments", "o-1")["fence"])
        self.good("settle", "payments", "o-1", fence, "--outcome", "unknown", "--reason", "silence")
        self.assertRegex(self.good("doctor"), r"(?s)warning +claims +1 have.*do: .*hapax resolve")
        config = os.path.join(self.folder, "hapax.yaml")
        with open(config, "w", encoding="utf-8") as file:
            file.write("server: {lops: 1}\n")
        done = self.run_hapax("doctor", "--config", config)
        self.assertEqual(done.returncode, USAGE)
        self.assertIn("do: hapax check " + config, done.stdout)


class OnServer(Commands, running.ServerTest):
    def run_hapax(self, *arguments, **options):
        return hapax(*arguments, url=self.server.url, **options)

    def test_follow(self):
        self.good("stream", "create", "orders")
        tail = subprocess.Popen([HAPAX, "tail", "orders", "--follow", "--max", "2", "--payload",
                                 "--url", self.server.url], stdout=subprocess.PIPE, text=True)
        self.addCleanup(tail.stdout.close)
        self.addCleanup(tail.kill)
        self.good("append", "orders", "first")
        self.assertEqual(tail.stdout.readline(), "first\n")
        self.good("append", "orders", "second")
        self.assertEqual(tail.stdout.readline(), "second\n")
        self.assertEqual(tail.wait(timeout=30), 0)

    def test_waits_for_records(self):
        self.good("stream", "create", "orders")
        self.good("consumer", "create", "orders", "mail")
        waiting = subprocess.Popen([HAPAX, "receive", "orders", "mail", "--wait", "30s", "--json",
                                    "--url", self.server.url], stdout=subprocess.PIPE, text=True)
        self.addCleanup(waiting.kill)
        self.good("append", "orders", "x")
        out, _ = waiting.communicate(timeout=30)
        self.assertEqual(json.loads(out)["records"][0]["payload"], "x")

    def test_a_folder_in_use_names_the_server(self):
        said = hapax("stream", "list", "--data", os.path.join(self.folder, "data"))
        self.assertEqual(said.returncode, LATER)
        self.assertIn("HX1023", said.stderr)
        self.assertIn("HAPAX_URL", said.stderr)

    def test_a_lost_answer_is_asked_for_again(self):
        self.good("stream", "create", "orders")
        proxy = LosingProxy(self.server, losses=2)
        self.addCleanup(proxy.close)
        done = hapax("append", "orders", "once", "--json", "--url", proxy.url)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout), {"verdict": "fresh", "sequence": 1})
        self.assertEqual(proxy.served, 3)
        self.assertEqual(self.told("stream", "show", "orders")["last"], 1)


class Bench(running.ServerTest):
    def bench(self, *arguments):
        done = hapax("bench", "--json", "--connections", "8", *arguments, url=self.server.url)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_every_profile(self):
        expected = {"idempotency_baseline": {"claim fresh": 200, "settle done": 200},
                    "outbox_processing": {"claim fresh": 200, "commit committed": 200},
                    "expiry_storm": {"set done": 200}}
        for profile in ("idempotency_baseline", "duplicate_detection", "outbox_processing",
                        "expiry_storm", "heavy_duplicates"):
            told = self.bench("--profile", profile, "--rate", "200", "--seconds", "1")
            self.assertEqual([told[k] for k in ("due", "unsent", "failed", "wrong")],
                             [200, 0, 0, 0])
            job = next(step for step in told["steps"] if step["step"] == "job")
            self.assertEqual(job["count"], 200)
            self.assertLessEqual(job["p50_ms"], job["p999_ms"])
            self.assertEqual(told["relayed"], 600 if profile == "outbox_processing" else 0)
            verdicts = told["verdicts"]
            self.assertEqual(sum(verdicts.values()), sum(expected.get(profile, {0: 200}).values()))
            if profile in expected:
                self.assertEqual(verdicts, expected[profile])
            else:
                share = verdicts["append duplicate"] / 200
                self.assertAlmostEqual(share, 0.6 if "heavy" in profile else 0.2, delta=0.15)
        self.assertEqual(json.loads(hapax("stream", "list", "--json", url=self.server.url).stdout),
                         {"streams": []})

    def test_a_stall_counts_for_every_job_that_was_due_in_it(self):
        bench = subprocess.Popen(
            [HAPAX, "bench", "--rate", "100", "--seconds", "3", "--connections", "1", "--url",
             self.server.url], stdout=subprocess.PIPE, text=True)
        self.addCleanup(bench.kill)
        self.assertIn("100 a second for 3 s on 1 connections", bench.stdout.readline())
        running.wait_for(lambda: b'hapax_verdicts_total{op="claim",verdict="fresh"}' in
                         self.server.call("GET", "/metrics").body, "the first job")
        self.server.process.send_signal(signal.SIGSTOP)
        threading.Event().wait(1.5)
        self.server.process.send_signal(signal.SIGCONT)
        out, _ = bench.communicate(timeout=60)
        rows = {line.split()[0]: line.split() for line in out.splitlines() if line.strip()}
        self.assertEqual(rows["job"][1], "300")
        # Of 300 jobs 150 were due in the stall. Measured from when it was sent, one was slow.
        p90 = float(rows["job"][rows["ms"].index("p90")])
        self.assertGreater(p90, 500)

    def test_refuses_what_it_does_not_know(self):
        self.assertEqual(hapax("bench", "--profile", "nonsense").returncode, USAGE)
        self.assertEqual(hapax("bench", "--rate", "0").returncode, USAGE)
        self.assertIn("expiry_storm", hapax("bench", "--help").stdout)
        url = f"http://127.0.0.1:{running.free_port()}"
        self.assertEqual(hapax("bench", "--seconds", "1", url=url).returncode, UNREACHABLE)


class LosingProxy:
    """Brings requests to the server, and loses its first answers."""

    def __init__(self, target, losses):
        self.target, self.losses, self.served = target, losses, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                link, _ = self.listener.accept()
            except OSError:
                return
            with link, self.target.connect() as onward:
                onward.sendall(link.recv(65536))
                answer = onward.recv(65536)
                self.served += 1
                if self.served > self.losses:
                    link.sendall(answer)

    def close(self):
        self.listener.close()


class OnFolder(Commands, unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="hapax-e2e-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.data = os.path.join(self.folder, "data")
        # Only this command makes a folder; the claims' test does not begin with it.
        self.good("stream", "create", "first")
        self.good("stream", "delete", "first")

    def run_hapax(self, *arguments, **options):
        return hapax(*arguments, "--data", self.data, **options)

    def test_a_folder_without_a_store_is_left_alone(self):
        missing = os.path.join(self.folder, "typo")
        done = hapax("stream", "list", "--data", missing)
        self.assertEqual(done.returncode, MISSING)
        self.assertFalse(os.path.exists(missing))

    def test_what_was_done_is_in_the_folder(self):
        self.good("stream", "create", "orders")
        self.good("append", "orders", "x", "--id", "o-1")
        done = subprocess.run([HAPAX, "inspect", self.data, "--json"], capture_output=True,
                              text=True, timeout=60)
        told = json.loads(done.stdout)
        self.assertTrue(told["clean"])
        self.assertEqual([s["last"] for s in told["streams"] if s["stream"] == "orders"], [1])


class Errors(unittest.TestCase):
    def test_nobody_listens(self):
        url = f"http://127.0.0.1:{running.free_port()}"
        done = hapax("stream", "list", "--url", url)
        self.assertEqual(done.returncode, UNREACHABLE)
        self.assertIn("nobody listens on 127.0.0.1:", done.stderr)
        self.assertIn("hapax serve", done.stderr)
        self.assertEqual(done.stdout, "")

    def test_an_address_that_is_none(self):
        done = hapax("stream", "list", url="localhost:7171")
        self.assertEqual(done.returncode, USAGE)
        self.assertIn("http://127.0.0.1:7171", done.stderr)

    def test_somebody_else_answers(self):
        class Other(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(b"<html>")

            def log_message(self, *_):
                pass

        other = http.server.HTTPServer(("127.0.0.1", 0), Other)
        self.addCleanup(other.server_close)
        threading.Thread(target=other.serve_forever, daemon=True).start()
        self.addCleanup(other.shutdown)
        done = hapax("stream", "list", "--url", "http://127.0.0.1:%d" % other.server_port)
        self.assertEqual(done.returncode, STRANGER)
        self.assertIn("no Hapax server", done.stderr)

    def test_doctor_says_what_to_do(self):
        url = f"http://127.0.0.1:{running.free_port()}"
        done = hapax("doctor", url=url)
        self.assertEqual(done.returncode, UNREACHABLE)
        self.assertRegex(done.stdout,
                         r"FAILED +reach +.*nobody listens.*\n +do: start `hapax serve`")
        done = hapax("doctor", "--json", url=url)
        self.assertFalse(json.loads(done.stdout)["healthy"])

    def test_completion(self):
        for shell in ("bash", "zsh", "fish"):
            done = hapax("completion", shell)
            self.assertEqual(done.returncode, 0)
            self.assertIn("stream", done.stdout)
            self.assertNotIn("demo-store", done.stdout)
        self.assertEqual(hapax("completion", "csh").returncode, USAGE)
        asked = {"hapax str": "stream", "hapax stream cr": "create",
                 "hapax stream create orders --wi": "--window --window-start",
                 "hapax append --file x --i": "--id", "hapax completion ": "--help"}
        for line, expected in asked.items():
            words = line.split(" ")
            script = ("source <('%s' completion bash); COMP_WORDS=(%s); COMP_CWORD=%d; _hapax;"
                      "echo ${COMPREPLY[@]}" % (HAPAX, " ".join("'%s'" % w for w in words),
                                                len(words) - 1))
            self.assertEqual(self.shell("bash", "-c", script), expected, line)

    def shell(self, *words):
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.strip()

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
    def test_completion_in_zsh(self):
        # What the completion system of an interactive shell does with the words is its own affair.
        stubs = "compdef() {}; _files() {}; compadd() { shift; print -r -- $@ };"
        asked = {"hapax ": "stream", "hapax stream ": "create",
                 "hapax stream create orders ": "--window", "hapax append --file x ": "--id"}
        for line, expected in asked.items():
            words = line.split(" ")
            offered = self.shell("zsh", "-f", "-c", "%s source <('%s' completion zsh); words=(%s); "
                                 "CURRENT=%d; _hapax" % (
                                     stubs, HAPAX, " ".join("'%s'" % word for word in words),
                                     len(words))).split()
            self.assertIn(expected, offered, line)
            self.assertEqual("doctor" in offered, line == "hapax ", line)

    @unittest.skipUnless(shutil.which("fish"), "fish is not installed")
    def test_completion_in_fish(self):
        asked = {"hapax str": ["stream"], "hapax stream cr": ["create"],
                 "hapax stream create orders --wi": ["--window", "--window-start"],
                 "hapax append --file x --i": ["--id"]}
        for line, expected in asked.items():
            told = self.shell("fish", "--no-config", "-c", "'%s' completion fish | source; "
                              "complete -C '%s'" % (HAPAX, line))
            self.assertEqual([one.split("\t")[0] for one in told.splitlines()], expected, line)

    def test_wrong_arguments(self):
        for arguments in (["stream"], ["stream", "create"], ["append"], ["claim", "a"],
                          ["claim", "a", "b", "c"], ["tail", "a", "--from", "0"],
                          ["stream", "list", "--url", "http://a", "--data", "b"],
                          ["append", "a", "b", "--file", "c"], ["nonsense"]):
            self.assertEqual(hapax(*arguments).returncode, USAGE, arguments)

    def test_every_command_is_in_the_reference(self):
        with open(os.path.join(SOURCE, "docs", "reference", "cli.md"), encoding="utf-8") as file:
            headings = " ".join(line for line in file if line.startswith("## "))
        commands = re.findall(r"(?m)^  (\w+) {3,}[A-Z]", hapax("help").stdout)
        self.assertGreaterEqual(len(commands), 30)
        for command in set(commands) - {"help", "version"}:
            self.assertRegex(headings, r"\b%s\b" % command)

    def test_help_has_an_example(self):
        for command in ("stream create", "stream list", "stream show", "stream configure",
                        "stream trim", "stream delete", "append", "tail", "receive", "ack", "nack",
                        "extend", "claim", "renew", "settle", "resolve", "forget", "status",
                        "consumer create", "producer open", "redrive", "trace", "stats", "doctor",
                        "bench", "copy", "serve", "check", "explain", "demo", "inspect", "verify",
                        "repair",
                        "consumer", "producer", "stream", "token", "token make", "migrate",
                        "relay", "completion"):
            done = hapax(*command.split(), "--help")
            self.assertEqual(done.returncode, 0)
            self.assertIn("Example: hapax " + command, done.stdout.replace(
                "\n         hapax", "\nExample: hapax"), command)


class Credentials(running.SignedInTest):
    def test_tokens(self):
        server = self.serve()
        url = server.url
        done = hapax("stream", "list", url=url)
        self.assertEqual(done.returncode, FORBIDDEN)
        self.assertIn("HX1013", done.stderr)
        self.assertIn("HAPAX_TOKEN", done.stderr)
        self.assertEqual(hapax("stream", "list", url=url, token="wrong").returncode, FORBIDDEN)
        done = hapax("doctor", url=url, token="wrong")
        self.assertEqual(done.returncode, FORBIDDEN)
        self.assertIn("hapax token make", done.stdout)
        token = running.jwt()
        self.assertEqual(hapax("stream", "create", "a", url=url, token=token).returncode, 0)
        file = os.path.join(self.folder, "mine")
        with open(file, "w", encoding="utf-8") as out:
            out.write(token + "\n")
        done = hapax("stream", "list", "--json", "--token-file", file, url=url, token="wrong")
        self.assertEqual(json.loads(done.stdout), {"streams": ["$audit", "a"]})
        reader = running.jwt(roles=["consume"])
        done = hapax("append", "a", "x", url=url, token=reader)
        self.assertEqual(done.returncode, FORBIDDEN)
        self.assertIn("HX1014", done.stderr)


class TenantsOfAFolder(running.SignedInTest):
    def test_a_folder_is_seen_with_the_eyes_of_a_tenant(self):
        served = self.serve()
        token = running.jwt("acme")
        served.call("PUT", "/streams/orders", token=token)
        served.call("POST", "/streams/orders/records", {"id": "o-1", "payload": "tea"},
                    token=token)
        served.call("POST", "/claims/pay/o-1", {"owner": "w"}, token=token)
        self.assertEqual(served.stop(), 0)
        folder = ("--data", os.path.join(self.folder, "data"))
        tenant = (*folder, "--tenant", "acme")
        for arguments, code in ((("stream", "list"), 0), (("tail", "orders"), MISSING),
                                (("stream", "list", "--json"), 0), (("trace", "o-1"), MISSING),
                                (("stream", "show", "orders"), MISSING)):
            done = hapax(*arguments, *folder)
            self.assertEqual(done.returncode, code, arguments)
            self.assertIn("--tenant NAME shows: acme\n", done.stderr, arguments)
            done = hapax(*arguments, *tenant)
            self.assertEqual((done.returncode, done.stderr), (0, ""), arguments)
        self.assertIn("orders", hapax("stream", "list", *tenant).stdout)
        self.assertIn("tea", hapax("tail", "orders", *tenant).stdout)
        self.assertIn("w", hapax("trace", "o-1", "--scope", "pay", *tenant).stdout)
        self.assertEqual(hapax("append", "orders", "gin", "--id", "o-2", *tenant).returncode, 0)
        for command in ("stats", "doctor"):
            done = hapax(command, *tenant)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(hapax("stream", "list", *folder, "--tenant", "a/b").returncode, USAGE)
        self.assertEqual(hapax("stream", "list", "--tenant", "acme").returncode, USAGE)
        served.process.stdout.close()
        served.start("127.0.0.1:0", "127.0.0.1:0")
        self.assertEqual(len(served.call("GET", "/streams/orders/records",
                                         token=token).json["records"]), 2)


class Encrypted(running.SignedInTest):
    def test_certificates_are_checked(self):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=hapax",
                        "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem",
                        "-out", "cert.pem"],
                       cwd=self.folder, check=True, capture_output=True, timeout=60)
        url = self.serve("server: {http: {tls: {certificate: cert.pem, key: key.pem}}}\n").url
        self.assertTrue(url.startswith("https://"))
        file = os.path.join(self.folder, "cert.pem")
        done = hapax("stream", "list", "--json", "--ca-file", file, url=url)
        self.assertEqual((done.returncode, done.stdout), (0, '{"streams":[]}\n'), done.stderr)
        unknown = hapax("stream", "list", url=url)
        self.assertEqual(unknown.returncode, UNREACHABLE)
        self.assertIn("certificate verify failed", unknown.stderr)
        other_name = hapax("stream", "list", "--ca-file", file,
                           url=url.replace("127.0.0.1", "localhost"))
        self.assertEqual(other_name.returncode, UNREACHABLE)
        self.assertIn("certificate", other_name.stderr)
        no_file = hapax("stream", "list", "--ca-file", "/nowhere", url=url)
        self.assertEqual(no_file.returncode, USAGE)
        plain = hapax("stream", "list", url=url.replace("https", "http"))
        self.assertIn(plain.returncode, (UNREACHABLE, STRANGER))


if __name__ == "__main__":
    unittest.main()
