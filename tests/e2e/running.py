"""A running `hapax serve` on free ports, for the end-to-end tests of its doors."""

import http.client
import json
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest
import urllib.parse


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)


class Server:
    def __init__(self, hapax, folder, *arguments):
        self.process = subprocess.Popen(
            [hapax, "serve", "--data", folder, "--http", "127.0.0.1:0", "--resp", "127.0.0.1:0",
             *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        lines = [self.process.stdout.readline().split() for _ in range(3)]
        self.url = lines[0][1]
        self.host, port = self.url.removeprefix("http://").rsplit(":", 1)
        self.port = int(port)
        self.resp = lines[2][1].removeprefix("redis://").rsplit(":", 1)

    def connect(self):
        return socket.create_connection((self.host, self.port), timeout=30)

    def call(self, method, path, body=None, headers=None):
        """A JSON body unless it is bytes. Paths without a leading /api are below /api/v1."""
        if not path.startswith(("/api", "/openapi")) and path != "/":
            path = "/api/v1" + path
        headers = dict(headers or {})
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            headers.setdefault("Content-Type", "application/json")
        link = http.client.HTTPConnection(self.host, self.port, timeout=60)
        try:
            link.request(method, path, body, headers)
            answer = link.getresponse()
            return Answer(answer.status, answer.headers, answer.read())
        finally:
            link.close()

    def raw(self, data):
        """Sends the bytes and reads until the server closes."""
        with self.connect() as link:
            link.sendall(data)
            link.shutdown(socket.SHUT_WR)
            got = b""
            while piece := link.recv(65536):
                got += piece
            return got

    def end(self):
        self.process.kill()
        if not self.process.stdout.closed:
            self.process.communicate()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=60)
        return self.process.returncode


class ServerTest(unittest.TestCase):
    HAPAX = ""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="hapax-e2e-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.server = Server(self.HAPAX, self.folder)
        self.addCleanup(self.server.end)
        self.call = self.server.call


def quote(text):
    return urllib.parse.quote(text, safe="")
