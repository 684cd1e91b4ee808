"""A server with a configuration, and clients for it: what the tests of the front doors share."""

import base64
import hashlib
import hmac
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

SECRET = b"0123456789abcdef0123456789abcdef-of-the-tests"


def encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def jwt(tenant="acme", roles=("produce", "consume", "admin", "read-bodies"), seconds=3600, **more):
    claims = {"tenant": tenant, "roles": list(roles), "exp": time.time() + seconds, "aud": "hapax",
              "sub": more.pop("sub", "tester"), **more}
    head = encode(b'{"alg":"HS256","typ":"JWT"}')
    text = head + "." + encode(json.dumps(claims).encode())
    return text + "." + encode(hmac.new(SECRET, text.encode(), hashlib.sha256).digest())


class Server:
    """`hapax serve` with a configuration; `text` is what it has besides addresses and data."""

    def __init__(self, hapax, folder, text="", environment=None):
        self.folder = folder
        self.path = os.path.join(folder, "hapax.yaml")
        self.write(text)
        clean = {k: v for k, v in os.environ.items() if not k.startswith("HAPAX_")}
        self.log = open(os.path.join(folder, "log"), "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [hapax, "serve", "--config", self.path, "--data", os.path.join(folder, "data"),
             "--http", "127.0.0.1:0", "--resp", "127.0.0.1:0"],
            stdout=subprocess.PIPE, stderr=self.log, text=True, cwd=folder,
            env={**clean, **(environment or {})})
        lines = {}
        for line in iter(self.process.stdout.readline, ""):
            name, value = line.split(None, 1)
            lines[name] = value.strip()
            if name == "RESP":
                break
        self.http = lines["HTTP"]
        self.resp = lines["RESP"].removeprefix("redis://").rsplit(":", 1)
        self.lines = lines

    def write(self, text):
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(text)

    def call(self, method, path, body=None, token=None, headers=None):
        """Status, header fields, body (read as JSON if it is)."""
        fields = dict(headers or {})
        if token:
            fields["Authorization"] = "Bearer " + token
        data = None if body is None else json.dumps(body).encode()
        if path.startswith("/streams") or path.startswith("/claims"):
            path = "/api/v1" + path
        request = urllib.request.Request(self.http + path, data, fields, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, answer.headers, read(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.headers, read(error)

    def client(self):
        return Client(self.resp)

    def text(self):
        self.log.flush()
        with open(self.log.name, encoding="utf-8") as file:
            return file.read()

    def wait_for_log(self, text, times=1):
        wait_for(lambda: self.text().count(text) >= times, "'%s' in the log" % text)

    def reload(self, said="keys and tokens were read anew"):
        before = self.text().count(said)
        self.process.send_signal(signal.SIGHUP)
        self.wait_for_log(said, before + 1)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.log.close()


def read(answer):
    text = answer.read().decode()
    return json.loads(text) if "json" in answer.headers.get("Content-Type", "") else text


def wait_for(holds, what):
    until = time.monotonic() + 30
    pause = threading.Event()
    while not holds():
        if time.monotonic() > until:
            raise AssertionError("waited in vain for " + what)
        pause.wait(0.02)


class Client:
    """A client of RESP2 that says what it got: errors as text that begins with '-'."""

    def __init__(self, address):
        self.socket = socket.create_connection((address[0], int(address[1])), timeout=30)
        self.file = self.socket.makefile("rb")

    def send(self, *words):
        out = b"*%d\r\n" % len(words)
        for word in words:
            raw = word if isinstance(word, bytes) else str(word).encode()
            out += b"$%d\r\n%s\r\n" % (len(raw), raw)
        self.socket.sendall(out)

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

    def close(self):
        self.file.close()
        self.socket.close()


class ServerTest(unittest.TestCase):
    HAPAX = ""
    AUTH = ("auth:\n"
            "  jwt: {keys: [{file: secret, algorithm: HS256}], audience: hapax, leeway: 0s}\n"
            "  tokens_file: tokens\n")

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="hapax-e2e-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        with open(os.path.join(self.folder, "secret"), "wb") as file:
            file.write(SECRET)
        with open(os.path.join(self.folder, "tokens"), "w", encoding="utf-8"):
            pass

    def serve(self, text=None, environment=None):
        server = Server(self.HAPAX, self.folder, self.AUTH if text is None else text, environment)
        self.addCleanup(server.end)
        return server

    def client(self, server, token=None):
        client = server.client()
        self.addCleanup(client.close)
        if token:
            self.assertEqual(client("AUTH", token), "OK")
        return client

    def hapax(self, *arguments):
        done = subprocess.run([self.HAPAX, *arguments], capture_output=True, text=True, timeout=60,
                              cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()
