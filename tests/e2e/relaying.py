"""A PostgreSQL with an outbox, relays, and an endpoint: what tests of `hapax relay` share."""

import contextlib
import http.server
import json
import os
import sqlite3
import subprocess
import threading

from postgres import Cluster
from running import FolderTest


class Receiver(http.server.BaseHTTPRequestHandler):
    """Takes a record per request; what fails is told by its payload. A hook may answer instead."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        if self.server.hook and self.server.hook(self, self.headers["Idempotency-Key"], body):
            return
        status = int(body) if body.isdigit() else 200
        self.server.heads.append(self.headers)
        if self.path == "/hangs":
            self.server.hanging.append(self.headers["Idempotency-Key"])
            self.server.closing.wait()
        if body == "slow" and not self.server.hanging:
            self.server.hanging.append(self.headers["Idempotency-Key"])
            self.server.closing.wait()
        if status == 200:
            self.server.got.append((self.headers["Idempotency-Key"], body,
                                    self.headers["Hapax-Type"]))
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def label(lane):
    """The name of the relay that holds a lane, without the key of its process."""
    return lane["owner"] and lane["owner"].partition("#")[0]


class RelayCase(FolderTest):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()

    @classmethod
    def tearDownClass(cls):
        cls.cluster.end()

    def setUp(self):
        super().setUp()
        self.cluster.psql("DROP DATABASE IF EXISTS shop", "postgres")
        self.cluster.psql("CREATE DATABASE shop", "postgres")
        self.hapax("migrate", self.cluster.uri())
        self.relays = []
        self.addCleanup(self.end_relays)

    def end_relays(self):
        for relay in self.relays:
            relay.kill()
            relay.wait()

    def relay(self, to, *more, source=None):
        log = open(os.path.join(self.folder, "relay.log"), "a", encoding="utf-8")
        relay = subprocess.Popen([self.HAPAX, "relay", "--from", source or self.cluster.uri(),
                                  "--to", to, *more], stdout=log, stderr=log, cwd=self.folder)
        log.close()
        self.relays.append(relay)
        return relay

    def log_text(self):
        with open(os.path.join(self.folder, "relay.log"), encoding="utf-8") as file:
            return file.read()

    def status(self, source=None):
        return json.loads(self.hapax("relay", "--from", source or self.cluster.uri(), "--status",
                                     "--json"))

    def once(self, source, to, *more):
        return subprocess.run([self.HAPAX, "relay", "--from", source, "--to", to, "--once", *more],
                              capture_output=True, text=True, timeout=60, cwd=self.folder)

    def sqlite(self):
        """A file with our tables, and how to publish there."""
        file = os.path.join(self.folder, "app.db")
        self.hapax("migrate", "sqlite:" + file)

        def publish(name):
            with contextlib.closing(sqlite3.connect(file)) as app, app:
                app.execute("INSERT INTO hapax_outbox (id, type, payload) VALUES (?, 't', 'x')",
                            (name,))
        return "sqlite:" + file, publish

    def receiver(self):
        receiver = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
        receiver.got, receiver.heads, receiver.hanging = [], [], []
        receiver.hook = None
        receiver.closing = threading.Event()
        receiver.url = f"http://127.0.0.1:{receiver.server_port}/in"
        thread = threading.Thread(target=receiver.serve_forever)
        thread.start()
        self.addCleanup(receiver.server_close)
        self.addCleanup(thread.join)
        self.addCleanup(receiver.shutdown)
        self.addCleanup(receiver.closing.set)
        return receiver
