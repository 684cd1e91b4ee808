"""A running `hapax serve` and clients for it: what the end-to-end tests share."""

import base64
import hashlib
import hmac
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.parse

SECRET = b"0123456789abcdef0123456789abcdef-of-the-tests"
WHOLE_PATHS = ("/api", "/openapi", "/health", "/metrics")


def arguments():
    """The command and the source tree, which ctest names before what unittest reads."""
    FolderTest.HAPAX, source = (os.path.abspath(sys.argv.pop(1)) for _ in range(2))
    return FolderTest.HAPAX, source


def quote(text):
    return urllib.parse.quote(text, safe="")


def encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def jwt(tenant="acme", roles=("produce", "consume", "admin", "read-bodies"), seconds=3600, **more):
    claims = {"tenant": tenant, "roles": list(roles), "exp": time.time() + seconds, "aud": "hapax",
              "sub": more.pop("sub", "tester"), **more}
    head = encode(b'{"alg":"HS256","typ":"JWT"}')
    text = head + "." + encode(json.dumps(claims).encode())
    return text + "." + encode(hmac.new(SECRET, text.encode(), hashlib.sha256).digest())


def wait_for(holds, what, seconds=30):
    until = time.monotonic() + seconds
    pause = threading.Event()
    while not holds():
        if time.monotonic() > until:
            raise AssertionError("waited in vain for " + (what() if callable(what) else what))
        pause.wait(0.02)


HELD = []


def free_port():
    """Who asks for any free port is not given this one, while this process lives: it is bound, and
    whoever sets SO_REUSEADDR can bind and listen beside it. Until then nobody listens there."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    HELD.append(held)
    return held.getsockname()[1]


class Answer:
    """Unpacks into status, header fields, and the body: read as JSON if it is, else text."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    def __iter__(self):
        is_json = "json" in self.headers.get("Content-Type", "")
        yield from (self.status, self.headers, self.json if is_json else self.body.decode())

    def __getitem__(self, index):
        return tuple(self)[index]


class Server:
    """`hapax serve` with its data, log and configuration in a folder, on free ports."""

    def __init__(self, hapax, folder, *more, config=None, environment=None):
        self.hapax, self.folder, self.more = hapax, folder, more
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("HAPAX_")}
        self.environment.update(environment or {})
        self.path = os.path.join(folder, "hapax.yaml")
        if config is not None:
            self.write(config)
            self.more = ("--config", self.path, *more)
        self.log = open(os.path.join(folder, "log"), "a", encoding="utf-8")
        self.start(*(f"127.0.0.1:{free_port()}" for _ in range(2)))  # The same when it restarts.

    def write(self, config):
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(config)

    def start(self, http_address, resp_address):
        self.process = subprocess.Popen(
            [self.hapax, "serve", "--data", os.path.join(self.folder, "data"),
             "--http", http_address, "--resp", resp_address, *self.more],
            stdout=subprocess.PIPE, stderr=self.log, text=True, cwd=self.folder,
            env=self.environment)
        lines = {}
        for line in self.process.stdout:
            name, value = line.split(None, 1)
            lines[name] = value.strip()
            if name == "RESP":
                break
        if "RESP" not in lines:
            raise AssertionError("the server did not start: " + self.text())
        self.url = lines["HTTP"]
        self.resp = lines["RESP"].split("//")[1].rsplit(":", 1)

    @property
    def host(self):
        return urllib.parse.urlsplit(self.url).hostname

    @property
    def port(self):
        return urllib.parse.urlsplit(self.url).port

    @property
    def resp_port(self):
        return int(self.resp[1])

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def restart(self, while_down=lambda: None):
        """Kills it, and starts it again at the same addresses."""
        self.kill()
        while_down()
        self.start(f"{self.host}:{self.port}", ":".join(self.resp))

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)

    def end(self):
        self.kill()
        self.log.close()

    def reload(self, said="keys and tokens were read anew"):
        before = self.text().count(said)
        self.process.send_signal(signal.SIGHUP)
        self.wait_for_log(said, before + 1)

    def text(self):
        """What it has logged."""
        with open(self.log.name, encoding="utf-8") as file:
            return file.read()

    def wait_for_log(self, text, times=1):
        wait_for(lambda: self.text().count(text) >= times, f"'{text}' in the log")

    def call(self, method, path, body=None, headers=None, token=None):
        """A JSON body unless it is bytes. Paths that are not the server's own are below /api/v1."""
        if not path.startswith(WHOLE_PATHS) and path != "/":
            path = "/api/v1" + path
        fields = dict(headers or {})
        if token:
            fields["Authorization"] = "Bearer " + token
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            fields.setdefault("Content-Type", "application/json")
        link = http.client.HTTPConnection(self.host, self.port, timeout=60)
        try:
            link.request(method, path, body, fields)
            answer = link.getresponse()
            return Answer(answer.status, answer.headers, answer.read())
        finally:
            link.close()

    def connect(self):
        return socket.create_connection((self.host, self.port), timeout=30)

    def raw(self, data):
        """Sends the bytes and reads until the server closes."""
        with self.connect() as link:
            link.sendall(data)
            link.shutdown(socket.SHUT_WR)
            got = b""
            while piece := link.recv(65536):
                got += piece
            return got

    def client(self):
        return Client(self.resp_port)


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


class Link:
    """A connection that speaks RESP and keeps the replies as bytes."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.file = self.socket.makefile("rb")

    def close(self):
        self.file.close()
        self.socket.close()

    def send(self, *words):
        parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        out = b"*%d\r\n" % len(parts)
        out += b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)
        self.socket.sendall(out)

    def reply(self):
        line = self.file.readline()
        if line[:1] in b"$=" and int(line[1:]) >= 0:
            return line + self.file.read(int(line[1:]) + 2)
        if line[:1] in b"*~%" and int(line[1:]) >= 0:
            items = int(line[1:]) * (2 if line[:1] == b"%" else 1)
            return line + b"".join(self.reply() for _ in range(items))
        return line

    def ask(self, *words):
        self.send(*words)
        return self.reply()


class Client(Link):
    """A client of RESP2 that says what it got: errors as text that begins with '-'."""

    def __call__(self, *words):
        self.send(*words)
        return self.answer()

    def answer(self):
        line = self.file.readline().decode().rstrip("\r\n")
        if not line:
            raise EOFError
        kind, rest = line[0], line[1:]
        if kind == "+":
            return rest
        if kind == "-":
            return line
        if kind == ":":
            return int(rest)
        if kind == "$":
            return None if rest == "-1" else self.file.read(int(rest) + 2)[:-2].decode()
        return None if rest == "-1" else [self.answer() for _ in range(int(rest))]


def mount_small_disk(test, folder):
    """A file system of 3 MiB at the folder while the test runs; skips where none can be mounted."""
    os.mkdir(folder)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", folder],
                             capture_output=True)
    if mounted.returncode != 0:
        test.skipTest("a small file system cannot be mounted here")
    test.addCleanup(subprocess.run, ["umount", "-l", folder])


class FolderTest(unittest.TestCase):
    """Servers that are started by the test, in a folder of its own."""

    HAPAX = ""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="hapax-e2e-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def serve(self, config=None, environment=None):
        server = Server(self.HAPAX, self.folder, config=config, environment=environment)
        self.addCleanup(server.end)
        return server

    def client(self, server, token=None):
        client = server.client()
        self.addCleanup(client.close)
        if token:
            self.assertEqual(client("AUTH", token), "OK")
        return client

    def hapax(self, *words):
        done = subprocess.run([self.HAPAX, *words], capture_output=True, text=True, timeout=60,
                              cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()


class ServerTest(FolderTest):
    """A server that runs when the test begins, open to everybody on this machine."""

    CONFIG = None
    ENVIRONMENT = None

    def setUp(self):
        super().setUp()
        self.server = self.serve(self.CONFIG, self.ENVIRONMENT)
        self.call = self.server.call


class SignedInTest(FolderTest):
    """Servers that want to know who calls."""

    AUTH = ("auth:\n"
            "  jwt: {keys: [{file: secret, algorithm: HS256}], audience: hapax, leeway: 0s}\n"
            "  tokens_file: tokens\n")

    def setUp(self):
        super().setUp()
        with open(os.path.join(self.folder, "secret"), "wb") as file:
            file.write(SECRET)
        with open(os.path.join(self.folder, "tokens"), "w", encoding="utf-8"):
            pass

    def serve(self, config=None, environment=None):
        return super().serve(self.AUTH if config is None else config, environment)
