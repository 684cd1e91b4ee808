"""Workflows of `hapax serve` from outboxes of PostgreSQL and SQLite to an endpoint."""

import contextlib
import datetime
import hashlib
import json
import os
import signal
import sqlite3
import subprocess
import threading
import unittest

from relaying import RelayCase, label
from running import Server, arguments, wait_for


def netstrings(*parts):
    return b"".join(b"%d:%s," % (len(part.encode()), part.encode()) for part in parts)


def delivery_key(uid, outbox, name):
    """As docs/reference/delivery-keys.md has it."""
    text = netstrings("hapax-key-1", "outbox", uid, outbox, name, "")
    return hashlib.sha256(text).hexdigest()


class OutboxWorkflowsTest(RelayCase):
    def config(self, receiver, more="", endpoint="", source="", name="shop"):
        return f"""
workflows:
  - id: {name}
    source: {{type: outbox, database: "${{env:SHOP}}"{source}}}
    endpoint: {{url: "{receiver.url}"{endpoint}}}
{more}
"""

    def start(self, config, database=None):
        return self.serve(config, {"SHOP": database or self.cluster.uri()})

    def publish(self, *names, key="NULL", event_type="OrderCreated", more=""):
        quoted = key if key == "NULL" else f"'{key}'"
        self.cluster.psql("".join(
            f"SELECT hapax.publish('{event_type}', '{{\"order\": \"{name}\"}}', {quoted}, '{name}'"
            f"{more});\n" for name in names))

    def orders(self, receiver):
        return [json.loads(body)["data"]["order"] for _, body, _ in list(receiver.got)]

    def arrive(self, receiver, *orders, seconds=60):
        wait_for(lambda: set(self.orders(receiver)) >= set(orders),
                 lambda: f"{orders} at the endpoint, which has {self.orders(receiver)}", seconds)

    def settled(self, source=None):
        def nothing_waits():
            told = self.status(source)
            return told["waiting"] == 0 and told["retries"] == 0
        wait_for(nothing_waits, "all to be settled")

    def test_dead_letters_in_the_database_are_listed_and_replayed_through_the_server(self):
        receiver = self.receiver()
        refuses = threading.Event()
        refuses.set()

        def hook(request, *_):
            if not refuses.is_set():
                return False
            request.send_response(422)
            request.send_header("Content-Length", "0")
            request.end_headers()
            return True
        receiver.hook = hook
        more = "    delivery: {retries: {maxAttempts: 1, backoffMs: [10]}}"
        server = self.start(self.config(receiver, more))
        self.publish("o1", "o2", "o3")
        wait_for(lambda: self.status()["dead_letters"] == 3, "three dead letters")
        told = server.call("GET", "/workflows/shop/dead?status=4xx").json
        self.assertEqual(sorted(each["id"] for each in told["database"]), ["o1", "o2", "o3"])
        self.assertEqual(server.call("GET", "/workflows/shop/dead?status=500").json["database"], [])
        where = ("--url", server.url)
        listed = self.hapax("dead", "list", "shop", "--id", "o2", *where)
        self.assertIn("o2", listed)
        self.assertIn("HTTP 422", listed)
        self.assertNotIn("o3", listed)
        refuses.clear()
        self.assertIn("1 would be put back",
                      self.hapax("dead", "replay", "shop", "--id", "o2", "--dry-run", *where))
        self.assertIn("1 put back", self.hapax("dead", "replay", "shop", "--id", "o2", *where))
        self.arrive(receiver, "o2")
        self.assertIn("2 put back",
                      self.hapax("dead", "replay", "shop", "--all", "--rate", "100/s", *where))
        self.arrive(receiver, "o1", "o3")
        self.settled()
        self.assertEqual(self.status()["dead_letters"], 0)
        answer = server.call("POST", "/workflows/shop/dead/replay",
                             {"database": True, "jq": ".", "dry_run": True})
        self.assertEqual(answer.status, 400)

    def cleans(self, database, age, left):
        """The workflow keeps a day of what was delivered: the next process forgets the rest."""
        receiver = self.receiver()
        more = "    retention: {delivered: 1d}"
        server = self.start(self.config(receiver, more), database)
        self.arrive(receiver, "o1", "o2")
        self.settled(database)
        self.assertEqual(left(), ["o1", "o2"])
        self.assertEqual(server.stop(), 0)
        age("o1")
        server.restart()
        wait_for(lambda: left() == ["o2"], lambda: f"o1 to be forgotten; there are {left()}")
        self.assertEqual(sorted(self.orders(receiver)), ["o1", "o2"])

    def test_postgres_forgets_what_was_delivered_when_the_workflow_says(self):
        self.publish("o1", "o2", key="c1")

        def age(name):  # Into a partition that rests.
            self.cluster.psql("UPDATE hapax.outbox SET part = (hapax.outbox_part() + 16) % 32, "
                              "created_at = created_at - interval '2 days' "
                              f"WHERE id = '{name}'")
        self.cleans(None, age, lambda: self.cluster.psql(
            "SELECT id FROM hapax.outbox ORDER BY seq").split())

    def test_postgres_keeps_what_it_was_told_to_if_the_workflow_does_not_say(self):
        self.hapax("migrate", self.cluster.uri(), "--retention", "90d")
        self.publish("old", "older", key="c1")
        receiver = self.receiver()
        server = self.start(self.config(receiver))
        self.arrive(receiver, "old", "older")
        self.settled()
        self.assertEqual(server.stop(), 0)

        def age(name, days, which):  # Into a partition that rests; lower ones are emptied first.
            parts = ", ".join(f"(hapax.outbox_part() + {rests}) % 32" for rests in (15, 17))
            self.cluster.psql(f"UPDATE hapax.outbox SET part = {which}({parts}), "
                              f"created_at = created_at - interval '{days} days' "
                              f"WHERE id = '{name}'")
        age("old", 60, "least")
        age("older", 120, "greatest")
        server.restart()
        wait_for(lambda: self.ids() == ["old"], lambda: f"older to be forgotten: {self.ids()}")

    def ids(self):
        return self.cluster.psql("SELECT id FROM hapax.outbox ORDER BY seq").split()

    def test_sqlite_forgets_what_was_delivered_when_the_workflow_says(self):
        source, _ = self.sqlite()

        def ask(sql):
            file = source.removeprefix("sqlite:")
            with contextlib.closing(sqlite3.connect(file, timeout=30)) as link, link:
                return link.execute(sql).fetchall()
        for name in ("o1", "o2"):
            ask("INSERT INTO hapax_outbox (id, type, payload, key) "
                f"VALUES ('{name}', 't', '{{\"order\": \"{name}\"}}', 'c1')")
        self.cleans(source,
                    lambda name: ask("UPDATE hapax_outbox SET created_at = created_at - 172800000 "
                                     f"WHERE id = '{name}'"),
                    lambda: [each[0] for each in ask("SELECT id FROM hapax_outbox ORDER BY seq")])

    def test_a_record_arrives_with_key_envelope_and_time(self):
        receiver = self.receiver()
        self.publish("o1", key="c1", more=", headers => '[[\"traceparent\", \"00-ab-cd-01\"]]', "
                                          "correlation_id => 'call-7'")
        self.start(self.config(receiver))
        self.arrive(receiver, "o1")
        head, (key, body, _) = receiver.heads[0], receiver.got[0]
        told = json.loads(body)
        self.assertEqual(list(told), ["idempotencyKey", "eventType", "timestamp", "data"])
        self.assertEqual(told["eventType"], "OrderCreated")
        uid = self.cluster.psql("SELECT uid FROM hapax.outbox_uid")
        self.assertEqual(told["idempotencyKey"], delivery_key(uid, "hapax.outbox", "o1"))
        self.assertEqual((head["webhook-id"], key), (told["idempotencyKey"],) * 2)
        self.assertEqual(head["traceparent"], "00-ab-cd-01")
        self.assertEqual(head["correlation_id"], "call-7")
        at = float(self.cluster.psql("SELECT date_part('epoch', created_at) FROM hapax.outbox"))
        said = datetime.datetime.fromisoformat(told["timestamp"].replace("Z", "+00:00"))
        self.assertAlmostEqual(said.timestamp(), at, delta=0.002)
        self.settled()
        self.assertEqual(self.status()["delivered"], 1)

    def test_from_an_sqlite_file(self):
        receiver = self.receiver()
        file, publish = self.sqlite()
        publish("o1")
        server = self.start(
            self.config(receiver, more="    delivery: {guarantee: at-least-once}"), file)
        publish("o2")
        with contextlib.closing(sqlite3.connect(file[7:])) as app:
            uid = app.execute("SELECT uid FROM hapax_outbox_uid").fetchone()[0]
        wait_for(lambda: len(receiver.got) == 2, "both records")
        # Records without a group may overtake each other.
        self.assertEqual({(key, body) for key, body, _ in receiver.got},
                         {(delivery_key(uid, "hapax_outbox", name), "x") for name in ("o1", "o2")})
        self.settled(file)

        def attempts():
            lines = self.hapax("attempts", "shop", "--json", "--url", server.url).splitlines()
            return {(each["key"], each["outcome"]) for each in map(json.loads, lines)}
        wait_for(lambda: attempts() == {(delivery_key(uid, "hapax_outbox", name), "delivered")
                                        for name in ("o1", "o2")}, "the attempts in the log")

    def test_a_key_of_its_own(self):
        receiver = self.receiver()
        form = "{payload:/order}:{header:x-shop}"
        self.publish("o1", more=", headers => '[[\"X-Shop\", \"north\"]]'")
        self.publish("o2")
        self.start(self.config(
            receiver, more=f"    delivery: {{idempotencyKey: {{format: '{form}'}}}}"))
        self.arrive(receiver, "o1")
        text = netstrings("hapax-key-1", "format", form, "o1", "north")
        self.assertEqual(receiver.got[0][0], hashlib.sha256(text).hexdigest())
        wait_for(lambda: self.status()["dead_letters"] == 1, "the one without a header to be dead")
        self.assertEqual(self.orders(receiver), ["o1"])

    def test_only_its_event_types_go_to_an_endpoint(self):
        receiver = self.receiver()
        self.publish("p1", "p2", event_type="ProductMade")
        self.start(self.config(receiver, endpoint=', eventTypes: ["Order*"]'))
        self.publish("p3", event_type="ProductMade")
        self.publish("o1")
        self.arrive(receiver, "o1")
        self.settled()
        self.assertEqual(self.orders(receiver), ["o1"])

    def killed_again_and_again(self, publish, database, source=None):
        receiver = self.receiver()
        receiver.hook = lambda *_: receiver.closing.wait(0.02)  # It answers itself after that.
        server = self.start(self.config(receiver), database)
        orders = [f"o{n}" for n in range(120)]
        for i, order in enumerate(orders):
            publish(order, f"c{i % 10}")
            if i in (40, 80):
                wait_for(lambda: len(receiver.got) > i // 2, "some to arrive")
                server.restart()
        self.arrive(receiver, *orders, seconds=120)
        bodies = {}
        for key, body, _ in receiver.got:
            bodies.setdefault(key, set()).add(body)
        self.assertEqual(len(bodies), len(orders))
        self.assertTrue(all(len(each) == 1 for each in bodies.values()))
        firsts = list(dict.fromkeys(self.orders(receiver)))
        for customer in range(10):
            mine = [each for each in firsts if int(each[1:]) % 10 == customer]
            self.assertEqual(mine, [each for each in orders if int(each[1:]) % 10 == customer])
        self.settled(source)
        self.assertEqual(self.status(source)["dead_letters"], 0)

    def test_kill_9_loses_nothing_and_repeats_under_the_same_key(self):
        self.killed_again_and_again(lambda name, key: self.publish(name, key=key), None)

    def test_kill_9_over_an_sqlite_file(self):
        file, _ = self.sqlite()

        def publish(name, key):
            with contextlib.closing(sqlite3.connect(file[7:], timeout=30)) as app, app:
                app.execute("INSERT INTO hapax_outbox (id, type, key, payload) VALUES "
                            "(?, 't', ?, ?)", (name, key, json.dumps({"order": name})))
        self.killed_again_and_again(publish, file, file)

    def test_a_database_that_is_away_holds_up_nobody_else(self):
        receiver, other = self.receiver(), self.receiver()
        self.publish("o1")
        self.cluster.stop()
        try:
            server = self.start("streams: [{stream: orders}]\n" + self.config(receiver) + f"""
  - id: other
    source: {{type: stream, stream: orders}}
    endpoint: {{url: "{other.url}"}}
""")
            server.wait_for_log("connect to PostgreSQL")
            server.call("POST", "/streams/orders/records",
                        {"id": "s1", "payload": '{"order": "s1"}'})
            self.arrive(other, "s1")
            self.assertEqual(server.call("GET", "/health/ready").status, 200)
        finally:
            self.cluster.start()
        self.arrive(receiver, "o1")
        server.wait_for_log("runs again")
        self.cluster.stop()
        self.cluster.start()
        self.publish("o2")
        self.arrive(receiver, "o2")
        self.assertEqual(set(self.orders(receiver)), {"o1", "o2"})

    def test_the_server_tells_how_the_outbox_does(self):
        receiver = self.receiver()
        server = self.start(self.config(receiver))
        server.call("POST", "/workflows/shop/pause")
        server.wait_for_log('what="is paused"')
        self.publish("o1", "o2")

        def told(path="/outbox/stats"):
            return server.call("GET", path).json

        def metrics():
            return server.call("GET", "/metrics").body.decode().splitlines()
        wait_for(lambda: told()["pending"] == 2, lambda: f"two events; there is {told()}")
        each = told()["outboxes"][0]
        self.assertEqual((each["workflow"], each["pending"], each["failed"]), ("shop", 2, 0))
        self.assertIsNotNone(told()["oldest_pending_at"])
        self.assertEqual(told("/outbox/pending")["pending"], 2)
        self.assertNotIn("outboxes", told("/outbox/stats?table=outbox_events"))
        wait_for(lambda: 'hapax_delivery_lag_records{workflow="shop"} 2' in metrics(),
                 lambda: f"two records that wait; there is {metrics()}")
        self.assertIn("outbox_events_pending 2", metrics())
        # A database that is away is told as it was, and holds up nobody.
        self.cluster.stop()
        try:
            wait_for(lambda: "error" in told()["outboxes"][0], "the database to be missed")
            self.assertEqual(told()["pending"], 2)
            self.assertIn('hapax_outbox_reachable{workflow="shop"} 0', metrics())
        finally:
            self.cluster.start()
        server.call("POST", "/workflows/shop/resume")
        self.arrive(receiver, "o1", "o2")
        wait_for(lambda: (told()["pending"], told()["published"]) == (0, 2),
                 lambda: f"both to be published; there is {told()}")

    def test_tables_that_are_missing_are_told_and_waited_for(self):
        receiver = self.receiver()
        self.cluster.psql("DROP SCHEMA hapax CASCADE")
        server = self.start(self.config(receiver))
        server.wait_for_log("hapax migrate")
        self.hapax("migrate", self.cluster.uri())
        self.publish("o1")
        self.arrive(receiver, "o1")

    def test_what_is_given_up_is_a_dead_letter_in_the_database(self):
        receiver = self.receiver()
        refuses = threading.Event()
        refuses.set()
        tried = []

        def hook(request, key, body):
            if not refuses.is_set() or "poison" not in body:
                return False
            tried.append(key)
            request.send_response(422)
            request.send_header("Content-Length", "0")
            request.end_headers()
            return True
        receiver.hook = hook
        self.publish("poison", "o2", key="c1")
        self.publish("o3")
        self.start(self.config(
            receiver, more="    delivery: {retries: {maxAttempts: 3, backoffMs: [10]}}"))
        self.arrive(receiver, "o2", "o3")
        wait_for(lambda: self.status()["dead_letters"] == 1, "the dead letter")
        self.assertEqual((len(tried), len(set(tried))), (3, 1))
        told = json.loads(self.hapax("relay", "--from", self.cluster.uri(), "--dead-letters",
                                     "--json"))
        self.assertEqual((told["id"], told["attempts"]), ("poison", 3))
        self.assertIn("HTTP 422", told["reason"])
        refuses.clear()
        self.hapax("relay", "--from", self.cluster.uri(), "--redrive", "poison")
        self.arrive(receiver, "poison")
        self.assertIn(tried[0], [key for key, _, _ in receiver.got])

    def redriven_twice(self, publish, database, source=None):
        receiver, came = self.receiver(), []

        def hook(request, *_):
            came.append(request.headers)
            if len(came) > 2:
                return False
            request.send_response(422)
            request.send_header("Content-Length", "0")
            request.end_headers()
            return True
        receiver.hook = hook
        publish()
        once = "    delivery: {retries: {enabled: false}}"
        self.start(self.config(receiver, more=once), database)
        for times in (1, 2):
            wait_for(lambda: self.status(source)["dead_letters"] == 1, "the dead letter")
            self.hapax("relay", "--from", source or self.cluster.uri(), "--redrive-all")
            wait_for(lambda: len(came) > times, "it to be sent again")
        wait_for(lambda: receiver.got, "it to arrive")
        self.assertEqual([head["Hapax-Replay"] for head in came], [None, "1", "2"])
        self.assertEqual(len({head["webhook-id"] for head in came}), 1)
        return came[-1]

    def test_a_redriven_record_says_how_often_it_was(self):
        head = self.redriven_twice(
            lambda: self.publish("o1", more=", headers => '[[\"traceparent\", \"00-ab\"]]'"), None)
        self.assertEqual(head["traceparent"], "00-ab")

    def test_a_redriven_record_of_an_sqlite_file_says_how_often_it_was(self):
        file, publish = self.sqlite()
        self.redriven_twice(lambda: publish("o1"), file, file)

    def test_an_outbox_has_one_sender(self):
        receiver, other = self.receiver(), self.receiver()
        relay = self.relay(other.url, "--lease", "3s", "--name", "r")
        wait_for(lambda: set(map(label, self.status()["lanes"])) == {"r"}, "the relay to hold all")
        server = self.start(self.config(receiver))
        server.wait_for_log("'r' sends from this outbox")
        self.publish("o1", "o2")
        wait_for(lambda: len(other.got) == 2, "the relay to send both")
        relay.send_signal(signal.SIGTERM)
        self.assertEqual(relay.wait(timeout=30), 0)
        self.publish("o3")
        self.arrive(receiver, "o3")
        self.assertEqual(self.orders(receiver), ["o3"])
        relay = self.relay(other.url, "--lease", "1s")
        self.assertEqual(relay.wait(timeout=60), 73, self.log_text())
        self.assertIn("'workflow shop@", self.log_text())
        self.assertIn("disable the workflow, or do without the relay", self.log_text())

    def test_sigterm_waits_for_the_answer_and_gives_back(self):
        receiver = self.receiver()
        came, answer = threading.Event(), threading.Event()

        def hook(*_):
            came.set()
            answer.wait(30)
            return False
        receiver.hook = hook
        self.addCleanup(answer.set)
        server = self.start(self.config(receiver))
        self.publish("o1")
        self.assertTrue(came.wait(30))
        server.process.terminate()
        server.wait_for_log("stopping")
        answer.set()
        self.assertEqual(server.process.wait(30), 0)
        server.process.stdout.close()
        self.assertEqual({lane["owner"] for lane in self.status()["lanes"]}, {None})
        self.assertEqual(self.status()["waiting"], 0)
        server.start(f"{server.host}:{server.port}", ":".join(server.resp))
        self.publish("o2")
        self.arrive(receiver, "o2")
        self.assertEqual(self.orders(receiver), ["o1", "o2"])

    def test_processes_of_one_store_share_the_work(self):
        receiver = self.receiver()
        self.cluster.psql("DROP DATABASE IF EXISTS store", "postgres")
        self.cluster.psql("CREATE DATABASE store", "postgres")
        servers = []
        for number in range(2):
            folder = os.path.join(self.folder, str(number))
            os.makedirs(folder)
            server = Server(self.HAPAX, folder, "--store", self.cluster.uri("store"),
                            config=self.config(receiver), environment={"SHOP": self.cluster.uri()})
            self.addCleanup(server.end)
            servers.append(server)
        wait_for(lambda: len({lane["owner"] for lane in self.status()["lanes"]} - {None}) == 2,
                 "both to hold lanes")
        self.assertEqual(len(set(map(label, self.status()["lanes"]))), 1)
        names = [f"o{n}" for n in range(100)]
        for name in names[:50]:
            self.publish(name, key=name)
        self.arrive(receiver, *names[:50])
        self.assertEqual(len(receiver.got), 50)
        servers[0].kill()
        for name in names[50:]:
            self.publish(name, key=name)
        self.arrive(receiver, *names)
        self.assertNotIn("sends from this outbox", servers[1].text())

    def test_two_workflows_of_one_outbox_are_refused(self):
        path = os.path.join(self.folder, "hapax.yaml")
        receiver = self.receiver()
        config = self.config(receiver) + self.config(receiver, name="again").split("workflows:")[1]
        with open(path, "w", encoding="utf-8") as file:
            file.write(config)
        done = subprocess.run([self.HAPAX, "check", path], capture_output=True, text=True,
                              timeout=60, check=False)
        self.assertEqual(done.returncode, 64, done.stdout)
        self.assertIn("is the outbox of workflow 'shop', too", done.stderr)

    def test_a_reference_that_is_of_no_database_is_told_at_the_start(self):
        path = os.path.join(self.folder, "hapax.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.config(self.receiver()))
        for environment, words in (({}, "the environment has no variable SHOP"),
                                   ({"SHOP": "mysql://u:secret@h"}, "stands for no database")):
            done = subprocess.run(
                [self.HAPAX, "serve", "--config", path, "--data",
                 os.path.join(self.folder, "data"), "--http", "127.0.0.1:0", "--resp",
                 "127.0.0.1:0"], capture_output=True, text=True, timeout=60, check=False,
                env={**os.environ, **environment})
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("workflow 'shop': ", done.stderr)
            self.assertIn(words, done.stderr)
            self.assertNotIn("secret@", done.stderr)


if __name__ == "__main__":
    OutboxWorkflowsTest.HAPAX, _ = arguments()
    unittest.main()
