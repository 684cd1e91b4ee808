"""Client libraries of Redis, each as its users use it: one program a library, the same steps.

Each signs in, sets, asks, pipelines, scans, does MULTI … EXEC, appends twice, claims and settles,
hears a refusal, and runs the sequence of the design "Exactly Once Patterns" (SETNX, then SET … EX).
Then the server is killed and started again, and what was answered is still there for the library's
own way of coming back. The programs are in libraries/, with HOST PORT TOKEN as arguments.
"""

import os
import pty
import select
import shutil
import struct
import subprocess
import termios
import threading
import unittest
from fcntl import ioctl

import running

_, SOURCE = running.arguments()
PROGRAMS = os.path.join(SOURCE, "tests/e2e/libraries")
DEBIAN_PYTHON = "/usr/bin/python3"  # Another one in the path does not see Debian's modules.
DEBIAN_GO = "/usr/bin/go"
GO_PATH = "/usr/share/gocode"
NODE_PATH = "/usr/share/nodejs"


def missing(package, *files):
    """Skips the test unless the package's files are there."""
    absent = next((file for file in files if not os.path.exists(file)), None)
    return unittest.skipIf(absent, f"{package} is not installed: no {absent}")


class Libraries(running.SignedInTest):
    def setUp(self):
        super().setUp()
        self.server = self.serve()

    def check(self, *command, **environment):
        """Runs the program, restarts the server when it asks for it, and wants it to be content."""
        program = subprocess.Popen(
            [*command, "127.0.0.1", str(self.server.resp_port), running.jwt()],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, **environment})
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        patience = threading.Timer(60, program.kill)
        self.addCleanup(patience.cancel)
        patience.start()
        if program.stdout.readline() == "restart\n":
            self.server.restart()
        said, errors = program.communicate("\n")
        self.assertEqual((said, program.returncode), ("done\n", 0), errors)

    @missing("libhiredis-dev", "/usr/include/hiredis/hiredis.h")
    def test_hiredis(self):
        program = os.path.join(self.folder, "hiredis")
        subprocess.run(["gcc", "-std=c11", "-Wall", os.path.join(PROGRAMS, "hiredis.c"),
                        "-o", program, "-lhiredis"], check=True, timeout=60)
        self.check(program)

    @missing("python3-redis", "/usr/lib/python3/dist-packages/redis", DEBIAN_PYTHON)
    def test_redis_py(self):
        self.check(DEBIAN_PYTHON, "-B", os.path.join(PROGRAMS, "redis_py.py"))

    @missing("golang-github-gomodule-redigo-dev or golang-go", DEBIAN_GO,
             GO_PATH + "/src/github.com/gomodule/redigo")
    def test_redigo(self):
        program = os.path.join(self.folder, "redigo")
        away = {**os.environ, "GOPATH": GO_PATH, "GO111MODULE": "off", "GOFLAGS": "",
                "GOCACHE": os.path.join(self.folder, "cache")}
        away.pop("GOROOT", None)  # It may be that of another Go.
        subprocess.run([DEBIAN_GO, "build", "-o", program, os.path.join(PROGRAMS, "redigo.go")],
                       check=True, timeout=200, cwd=self.folder, env=away)
        self.check(program)

    @missing("node-redis", NODE_PATH + "/redis", "/usr/bin/node")
    def test_node_redis(self):
        self.check("/usr/bin/node", os.path.join(PROGRAMS, "node_redis.js"), NODE_PATH=NODE_PATH)


class Terminal:
    """redis-cli on a terminal of 200 columns."""

    def __init__(self, port):
        self.process, self.file = pty.fork()
        if self.process == 0:
            os.environ["TERM"] = "xterm"
            os.execvp("redis-cli", ["redis-cli", "-p", str(port)])
        ioctl(self.file, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 200, 0, 0))

    def type(self, text):
        os.write(self.file, text.encode())

    def read_until(self, text):
        got = b""
        while text.encode() not in got and select.select([self.file], [], [], 20)[0]:
            got += os.read(self.file, 4096)
        return got.decode(errors="replace")

    def end(self):
        os.close(self.file)
        os.waitpid(self.process, 0)


@unittest.skipUnless(shutil.which("redis-cli"), "redis-tools is not installed")
class RedisCli(running.ServerTest):
    def cli(self, *words):
        done = subprocess.run(["redis-cli", "-e", "-p", str(self.server.resp_port), *words],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def test_it_speaks_both_protocols(self):
        for version in ("-2", "-3"):
            self.assertEqual(self.cli(version, "SET", "a" + version, "1", "NX", "EX", "100"), "OK")
            self.assertEqual(self.cli(version, "SET", "a" + version, "1", "NX", "EX", "100"), "")
            self.assertEqual(self.cli(version, "GET", "a" + version), "1")
        self.assertEqual(self.cli("INCR", "a-2"), "2")
        self.assertEqual(set(self.cli("--scan", "--pattern", "a*").split()), {"a-2", "a-3"})
        self.assertEqual(self.cli("DBSIZE"), "2")

    def test_it_knows_our_commands(self):
        self.assertIn("stream payload [ID value]", self.cli("help", "HX.APPEND"))
        self.assertIn("key [key ...]", self.cli("help", "DEL"))
        terminal = Terminal(self.server.resp_port)
        self.addCleanup(terminal.end)
        terminal.read_until("> ")
        terminal.type("hx.app\t")
        self.assertIn("HX.APPEND", terminal.read_until("HX.APPEND"))


@unittest.skipUnless(shutil.which("redis-benchmark"), "redis-tools is not installed")
class RedisBenchmark(running.ServerTest):
    def bench(self, *words):
        done = subprocess.run(
            ["redis-benchmark", "-p", str(self.server.resp_port), "-n", "2000", "-c", "20",
             "-r", "1000000", "-q", *words], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("WARNING", done.stderr)
        return done.stdout

    def test_its_own_tests_that_we_know(self):
        said = self.bench("-t", "ping_inline,ping_mbulk,set,get,incr", "-P", "10")
        self.assertEqual(said.count("requests per second"), 5, said)

    def test_a_command_of_the_user(self):
        self.call("PUT", "/streams/s")
        for command in ("SET key:__rand_int__ v NX EX 100", "HX.APPEND s x ID i-__rand_int__"):
            self.assertIn("requests per second", self.bench(*command.split()))
        self.assertGreater(self.call("GET", "/streams/s").json["last"], 1900)


if __name__ == "__main__":
    unittest.main(verbosity=2)
