"""A shop that tells others what happened: three workflows, one process, kill -9 in between.

    python3 examples/retail/retail.py --hapax build/hapax

Starts a receiver and `hapax serve`, publishes orders, changes of products and audit events, kills
both again and again, and at the end compares what the receiver has with what was published.
"""

import argparse
import collections
import contextlib
import http.client
import json
import os
import re
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PATIENCE = 120  # seconds until the receiver must have everything


def free_ports(count):
    """Of this moment; held until all are known, so no two are the same."""
    with contextlib.ExitStack() as held:
        found = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in found:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in found]


class Part:
    """A process that may be killed at any time and is started again with the same words."""

    def __init__(self, words, ready, log):
        self.words, self.ready, self.log = words, ready, log
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.words, stdout=subprocess.PIPE, stderr=self.log,
                                        text=True)
        for line in self.process.stdout:
            if self.ready in line:
                return
        raise SystemExit(f"{self.words[:2]} did not start; its log is {self.log.name}")

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def restart(self):
        self.kill()
        self.start()


class Shop:
    """Publishes over HTTP. Without an answer it sends again under the same id."""

    def __init__(self, port):
        self.port = port

    def post(self, path, body):
        until = time.monotonic() + PATIENCE
        while True:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
            with contextlib.suppress(OSError, http.client.HTTPException):
                connection.request("POST", path, json.dumps(body))
                answer = connection.getresponse()
                text = answer.read().decode()
                if answer.status < 300:
                    return
                if answer.status < 500:
                    raise SystemExit(f"POST {path}: {answer.status} {text}")
            connection.close()
            if time.monotonic() > until:
                raise SystemExit(f"no answer to POST {path}")
            time.sleep(0.05)

    def order(self, number):
        order = {"id": f"order-{number}", "amount": number * 10}
        self.post("/api/v1/streams/orders/records",
                  {"id": order["id"], "group": f"customer-{number % 7}",
                   "headers": [["event_type", "OrderPlaced"]], "payload": json.dumps(order)})

    def product(self, number):
        sku, version = f"sku-{number % 20}", number
        product = {"sku": sku, "version": version, "name": f"Tea {version}", "internal": True}
        self.post("/api/v1/streams/products/records",
                  {"id": f"{sku}-{version}", "group": sku,
                   "headers": [["event_type", "ProductChanged"]], "payload": json.dumps(product)})

    def audit(self, number):
        event = {"id": f"login-{number}", "user": f"user-{number % 5}"}
        self.post("/api/v1/workflows/audit-logs-to-warehouse/events",
                  {"id": event["id"], "type": "UserLoggedIn", "payload": json.dumps(event)})


def write_config(folder, port):
    with open(os.path.join(HERE, "hapax.yaml"), encoding="utf-8") as file:
        text = file.read()
    path = os.path.join(folder, "hapax.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(re.sub(r"127\.0\.0\.1:9000", f"127.0.0.1:{port}", text))
    return path


def rows(path, question):
    with contextlib.closing(sqlite3.connect(path, timeout=60)) as database:
        return database.execute(question).fetchall()


def missing(database, count):
    """What was published and is not at the receiver yet."""
    effects = collections.Counter(rows(database, "SELECT path, id FROM effects"))
    wanted = [("/orders", f"order-{n}") for n in range(count)]
    wanted += [("/audit", f"login-{n}") for n in range(count)]
    products = dict(rows(database, "SELECT id, version FROM products"))
    newest = {f"sku-{n % 20}": n for n in range(count)}
    behind = [sku for sku, version in newest.items() if products.get(sku) != version]
    return [each for each in wanted if not effects[each]] + behind


def doubled(database):
    return rows(database, "SELECT path, id FROM effects GROUP BY path, id HAVING count(*) > 1")


def publish(shop, count, at):
    for number in range(count):
        shop.order(number)
        shop.product(number)
        shop.audit(number)
        at(number)


def report(database, count):
    print(f"{'workflow':26} {'published':>9} {'requests':>9} {'repeated':>9} {'effects':>8}")
    for name, path in (("sales-orders-to-erp", "/orders"), ("product-sync-to-search", "/products"),
                       ("audit-logs-to-warehouse", "/audit")):
        keys = [key for key, in rows(database, f"SELECT key FROM requests WHERE path = '{path}'")]
        effects = (f"SELECT count(*) FROM effects WHERE path = '{path}'" if path != "/products"
                   else "SELECT count(*) FROM products")
        (number,), = rows(database, effects)
        print(f"{name:26} {count:9} {len(keys):9} {len(keys) - len(set(keys)):9} {number:8}")


def run(hapax, count, folder):
    database = os.path.join(folder, "receiver.db")
    receiver_port, http_port, resp_port = free_ports(3)
    with open(os.path.join(folder, "log"), "w", encoding="utf-8") as log, \
            contextlib.ExitStack() as ends:
        receiver = Part([sys.executable, os.path.join(HERE, "receiver.py"), database,
                         str(receiver_port)], "listening", log)
        ends.callback(receiver.kill)
        server = Part([hapax, "serve", "--config", write_config(folder, receiver_port),
                       "--data", os.path.join(folder, "data"),
                       "--http", f"127.0.0.1:{http_port}", "--resp", f"127.0.0.1:{resp_port}"],
                      "RESP", log)
        ends.callback(server.kill)

        def strike(number):
            if number in (count // 4, count // 2):
                server.restart()
            if number in (count // 3, 2 * count // 3):
                receiver.restart()
        publish(Shop(http_port), count, strike)
        until = time.monotonic() + PATIENCE
        while missing(database, count) and time.monotonic() < until:
            time.sleep(0.1)
        report(database, count)
        lost, twice = missing(database, count), doubled(database)
        print(f"killed: hapax 2 times, the receiver 2 times; lost {len(lost)}, "
              f"taken twice {len(twice)}")
        return 1 if lost or twice else 0


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    arguments.add_argument("--hapax", default="hapax", help="the command")
    arguments.add_argument("--count", type=int, default=200, help="of each kind")
    chosen = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="retail-") as folder:
        sys.exit(run(chosen.hapax, chosen.count, folder))


if __name__ == "__main__":
    main()
