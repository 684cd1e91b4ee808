"""Failure scenarios of a delivery, each against a client that keeps its work and the key of the
request in one transaction: the network is cut, the client dies, Hapax dies."""

import contextlib
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import unittest

from running import FolderTest, arguments, wait_for

WORKFLOW = """
streams: [{{stream: orders}}]
workflows:
  - id: sales-orders-to-erp
    source: {{type: stream, stream: orders}}
    endpoint: {{url: "http://127.0.0.1:{port}/events", nature: idempotent}}
    delivery:
      guarantee: {guarantee}
      retries: {{maxAttempts: 50, backoffMs: [50, 100], giveUpAfter: 1h}}
"""


class Ledger:
    """The database of the client. Each request and each effect is a row."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "client.db")
        with self.opened() as database:
            database.executescript(
                "CREATE TABLE keys (key TEXT PRIMARY KEY); CREATE TABLE effects (body TEXT);")

    @contextlib.contextmanager
    def opened(self):
        database = sqlite3.connect(self.path, timeout=60)
        try:
            with database:
                yield database
        finally:
            database.close()

    def take(self, key, body):
        """Whether it is new. Work and key are one transaction."""
        with self.opened() as database:
            fresh = database.execute("INSERT INTO keys VALUES (?) ON CONFLICT DO NOTHING",
                                     (key,)).rowcount
            if fresh:
                database.execute("INSERT INTO effects VALUES (?)", (body,))
            return bool(fresh)

    def effects(self):
        with self.opened() as database:
            return [body for body, in database.execute("SELECT body FROM effects")]


class Client:
    """An HTTP server with its hands on the socket: what it answers, and when, is the test's."""

    def __init__(self, act):
        self.act, self.requests = act, []
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = self.listening.getsockname()[1]
        self.thread = threading.Thread(target=self.accept)
        self.thread.start()

    def accept(self):
        while True:
            connection, _ = self.listening.accept()
            with connection:
                connection.settimeout(60)
                if not self.serve(connection):
                    return

    def serve(self, connection):
        """One request for each connection. An empty one ends the client."""
        with connection.makefile("rb") as stream:
            if not stream.readline():
                return not self.closing
            head = {}
            for line in iter(stream.readline, b"\r\n"):
                name, value = line.decode().split(":", 1)
                head[name.lower()] = value.strip()
            body = stream.read(int(head["content-length"])).decode()
        self.requests.append((head["idempotency-key"], body))
        self.act(self, connection, head["idempotency-key"], body)
        return True

    closing = False

    def close(self):
        self.closing = True
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", self.port), timeout=5).close()
        self.thread.join(60)
        self.listening.close()


def answer_ok(connection):
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


class Scenarios(FolderTest):
    def endpoint(self, act):
        client = Client(act)
        self.addCleanup(client.close)
        return client

    def workflow(self, port, guarantee="idempotent-keys"):
        return self.serve(WORKFLOW.format(port=port, guarantee=guarantee))

    def publish(self, server, order):
        status, _, text = server.call(
            "POST", "/api/v1/streams/orders/records",
            {"id": order, "payload": json.dumps({"order": order})})
        self.assertIn(status, (200, 201), text)

    def settled(self, server):
        _, _, told = server.call("GET", "/api/v1/streams/orders")
        return [each["floor"] for each in told["consumers"]] == [told["last"]]

    def test_1_network_partition_during_delivery(self):
        """The client commits, and its answer is lost. The retry has the same key: one effect."""
        ledger = Ledger(self.folder)

        def act(client, connection, key, body):
            ledger.take(key, body)
            if len(client.requests) > 1:
                answer_ok(connection)  # Otherwise the connection is cut here.
        client = self.endpoint(act)
        server = self.workflow(client.port)
        self.publish(server, "o1")
        wait_for(lambda: len(client.requests) == 2 and self.settled(server), "the confirmation")
        self.assertEqual(len({key for key, _ in client.requests}), 1)
        self.assertEqual(len(ledger.effects()), 1)

    def test_2_client_crash_mid_processing(self):
        """The client dies within its transaction, which is rolled back. The retry has an effect."""
        ledger = Ledger(self.folder)
        died = []

        def act(_, connection, key, body):
            if not died:
                died.append(self.die_within_a_transaction(ledger, key, body))
                return  # A process that died answers nothing.
            ledger.take(key, body)
            answer_ok(connection)
        client = self.endpoint(act)
        server = self.workflow(client.port)
        self.publish(server, "o1")
        wait_for(lambda: ledger.effects() and self.settled(server), "the effect")
        self.assertEqual(died, [-signal.SIGKILL])
        self.assertEqual(len(client.requests), 2)
        self.assertEqual(len(ledger.effects()), 1)

    @staticmethod
    def die_within_a_transaction(ledger, key, body):
        """A process of its own, so that it really dies."""
        program = ("import os, signal, sqlite3, sys\n"
                   "database = sqlite3.connect(sys.argv[1])\n"
                   "database.execute('INSERT INTO keys VALUES (?)', (sys.argv[2],))\n"
                   "database.execute('INSERT INTO effects VALUES (?)', (sys.argv[3],))\n"
                   "os.kill(os.getpid(), signal.SIGKILL)\n")
        return subprocess.run([sys.executable, "-c", program, ledger.path, key, body],
                              timeout=60, check=False).returncode

    def test_3_crash_of_hapax_after_delivery_before_its_commit(self):
        """The client answered, and Hapax dies before it reads that. The restart repeats the key."""
        ledger = Ledger(self.folder)
        answered = threading.Event()

        def act(client, connection, key, body):
            ledger.take(key, body)
            if len(client.requests) == 1:
                server.process.send_signal(signal.SIGSTOP)  # It cannot read the answer.
                os.waitpid(server.process.pid, os.WUNTRACED)
                answer_ok(connection)
                answered.set()
                return
            answer_ok(connection)
        client = self.endpoint(act)
        server = self.workflow(client.port)
        self.publish(server, "o1")
        self.assertTrue(answered.wait(60))
        server.restart()
        wait_for(lambda: len(client.requests) == 2 and self.settled(server), "the confirmation")
        self.assertEqual(len({key for key, _ in client.requests}), 1)
        self.assertEqual(len(ledger.effects()), 1)


if __name__ == "__main__":
    arguments()
    unittest.main()
