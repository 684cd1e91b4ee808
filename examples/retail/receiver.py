"""A receiver of webhooks that takes every record once, however often it arrives.

    python3 receiver.py DATABASE PORT

It stores the key of a request in the transaction of what the request causes. A key that is already
there is a repetition: nothing happens again, and the sender is told success. Whoever copies one
idea from here should copy that one.
"""

import http.server
import json
import sqlite3
import sys

TABLES = """
CREATE TABLE IF NOT EXISTS requests (number INTEGER PRIMARY KEY, path TEXT, key TEXT);
CREATE TABLE IF NOT EXISTS keys (key TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS effects (path TEXT, id TEXT, body TEXT);
CREATE TABLE IF NOT EXISTS products (id TEXT PRIMARY KEY, version INTEGER, name TEXT);
"""


def order_arrives(database, path, key, body):
    """Something that must happen once. Answers whether it happened now."""
    fresh = database.execute("INSERT INTO keys VALUES (?) ON CONFLICT DO NOTHING", (key,)).rowcount
    if fresh:
        data = json.loads(body)["data"]
        database.execute("INSERT INTO effects VALUES (?, ?, ?)", (path, data["id"], body))
    return bool(fresh)


def product_arrives(database, body):
    """Harmless to repeat, without any key: the newest version stays."""
    product = json.loads(body)
    database.execute(
        "INSERT INTO products VALUES (:id, :version, :name) ON CONFLICT (id) DO UPDATE "
        "SET version = excluded.version, name = excluded.name WHERE version < excluded.version",
        product)


class Receiver(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    database = None  # its path

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        key = self.headers["Idempotency-Key"]
        database = sqlite3.connect(self.database, timeout=60)
        with database:  # One transaction: all of it, or nothing.
            database.execute("INSERT INTO requests (path, key) VALUES (?, ?)", (self.path, key))
            if self.path == "/products":
                product_arrives(database, body.decode())
                fresh = True
            else:
                fresh = order_arrives(database, self.path, key, body.decode())
        database.close()
        answer = json.dumps({"repeated": not fresh}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


def main(database, port):
    Receiver.database = database
    with sqlite3.connect(database) as made:
        made.execute("PRAGMA journal_mode = WAL")
        made.executescript(TABLES)
    with http.server.ThreadingHTTPServer(("127.0.0.1", int(port)), Receiver) as server:
        print(f"listening on 127.0.0.1:{server.server_port}", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
