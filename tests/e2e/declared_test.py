"""Workflows that come, change and go while the server runs, over the API and by the command."""

import json
import os
import subprocess
import unittest

import delivering
from running import arguments, wait_for

CONFIG = """
server: {endpoints: {allow: ["127.0.0.1"]}}
streams: [{stream: orders}]
"""


class DeclaredTest(delivering.DeliveryTest):
    def setUp(self):
        super().setUp()
        self.receiver = self.endpoint()

    def declaration(self, url=None, **more):
        return {"id": "erp", "source": {"type": "stream", "stream": "orders"},
                "endpoint": {"url": url or self.receiver.url}, **more}

    def put(self, server, declaration, query="", status=200):
        answer = server.call("PUT", f"/workflows/{declaration['id']}{query}", declaration)
        self.assertEqual(answer.status, status, answer.body)
        return answer.json

    def show(self, server, workflow="erp"):
        return server.call("GET", "/workflows/" + workflow)

    def is_gone(self, server, workflow="erp"):
        wait_for(lambda: self.show(server, workflow).status == 404,
                 lambda: f"{workflow} to go; it is {self.show(server, workflow).body}")

    def streams(self, server):
        return server.call("GET", "/streams").json["streams"]


class OverTheApi(DeclaredTest):
    def test_a_workflow_comes_changes_and_outlives_a_kill(self):
        server = self.serve(CONFIG)
        made = self.put(server, self.declaration())
        self.assertEqual((made["outcome"], made["differences"]), ("created", []))
        self.publish(server, "o1")
        self.arrives(self.receiver, "o1")
        again = self.put(server, self.declaration())
        self.assertEqual((again["outcome"], again["version"]), ("unchanged", made["version"]))
        other = self.endpoint()
        dry = self.put(server, self.declaration(other.url), "?dry_run=true")
        self.assertEqual((dry["outcome"], dry["version"]), ("changed", made["version"]))
        changed = self.put(server, self.declaration(other.url))
        self.assertEqual(changed["differences"], [
            {"path": "endpoint.url", "before": self.receiver.url, "after": other.url}])
        self.publish(server, "o2")
        self.arrives(other, "o2")
        server.restart()
        self.publish(server, "o3")
        self.arrives(other, "o3")
        told = self.show(server).json
        self.assertEqual((told["origin"], told["state"], told["version"]),
                         ("api", "running", changed["version"]))
        self.assertEqual(told["declaration"]["endpoint"]["url"], other.url)
        self.assertEqual(self.orders(self.receiver), ["o1"])

    def test_an_answer_under_way_is_awaited_before_the_changed_one_begins(self):
        held, later = self.endpoint(), self.endpoint()
        server = self.serve(CONFIG)

        def hook(_):
            held.closing.wait(30)
            return 200
        held.hook = hook
        self.put(server, self.declaration(held.url))
        self.publish(server, "o1", group="ann")
        wait_for(lambda: held.came, "o1 to be under way")
        self.put(server, self.declaration(later.url))
        self.publish(server, "o2", group="ann")
        self.assertEqual(later.came, [])
        held.closing.set()
        self.arrives(later, "o2")
        self.assertEqual(self.orders(held), ["o1"])
        self.assertEqual(self.orders(later), ["o2"])

    def test_what_is_posted_is_taken_at_once(self):
        server = self.serve(CONFIG)
        shop = {"id": "shop", "source": {"type": "http"}, "endpoint": {"url": self.receiver.url}}
        self.put(server, shop)
        event = {"id": "e1", "payload": json.dumps({"order": "e1"})}
        self.assertEqual(server.call("POST", "/workflows/shop/events", event).status, 201)
        self.arrives(self.receiver, "e1")

    def test_of_two_changes_one_counts(self):
        server = self.serve(CONFIG)
        made = self.put(server, self.declaration())
        first = self.put(server, self.declaration(enabled=False), f"?version={made['version']}")
        refused = self.put(server, self.declaration(self.endpoint().url),
                           f"?version={made['version']}", 412)
        self.assertIn(f"has version {first['version']} now", refused["detail"])
        refused = self.put(server, self.declaration(self.endpoint().url), "?version=0", 412)
        self.assertIn(f"has version {first['version']} now", refused["detail"])
        # A repetition of what holds is no conflict.
        again = self.put(server, self.declaration(enabled=False), f"?version={made['version']}")
        self.assertEqual(again["outcome"], "unchanged")
        self.assertEqual(self.show(server).json["state"], "not_running")

    def test_what_is_wrong_is_told_and_changes_nothing(self):
        server = self.serve(CONFIG)
        wrong = {**self.declaration(), "endpont": {}, "deliveri": {}}
        detail = self.put(server, wrong, status=400)["detail"]
        self.assertIn("endpont is not known; did you mean 'endpoint'?", detail)
        self.assertIn("deliveri", detail)
        for more, what in (
                ({"endpoint": {"url": self.receiver.url, "auth": {
                    "type": "bearer", "token": "${env:HOME}"}}}, "refers to a variable or a file"),
                ({"endpoint": {"url": self.receiver.url, "auth": {
                    "type": "bearer", "token": "hunter2"}}}, "is a secret in clear text"),
                ({"endpoint": {"url": self.receiver.url, "tls": {"caFile": "/etc/passwd"}}},
                 "tls.caFile"),
                ({"source": {"type": "outbox", "database": "sqlite:/etc/passwd"}},
                 "source.type is outbox")):
            answer = server.call("PUT", "/workflows/erp", self.declaration(**more))
            self.assertIn(answer.status, (400, 403), answer.body)
            self.assertIn(what, answer.json["detail"])
            self.assertNotIn("hunter2", answer.json["detail"])
        answer = server.call("PUT", "/workflows/other", self.declaration())
        self.assertEqual(answer.status, 400)
        self.assertEqual(self.show(server).status, 404)
        bad = self.declaration(transform={"jq": ".["})
        self.assertEqual(server.call("PUT", "/workflows/erp", bad).status, 400)
        self.assertEqual(server.call("GET", "/workflows").json["workflows"], [])

    def test_the_place_in_the_source_and_what_waits_are_kept(self):
        server = self.serve(CONFIG)
        self.put(server, self.declaration(transform={"jq": "."}))
        moved = self.declaration(transform={"jq": "."})
        moved["source"] = {"type": "stream", "stream": "others"}
        self.assertIn("keeps its place", self.put(server, moved, status=412)["detail"])
        to_stream = self.declaration(transform={"jq": "."}, endpoint={"stream": "others"})
        draft = self.declaration(transform={"jq": "."})
        del draft["endpoint"]
        for changed in (self.declaration(), to_stream, draft):
            self.assertIn("'erp.outbox'", self.put(server, changed, status=412)["detail"])

    def test_a_tenant_has_limits(self):
        server = self.serve(CONFIG + "tenants: {default: {workflows_max: 2, endpoints_max: 3}}\n")
        self.put(server, self.declaration())
        self.put(server, {**self.declaration(), "id": "b"})
        refused = self.put(server, {**self.declaration(), "id": "c"}, status=413)
        self.assertIn("tenants: workflows_max would be 3; the most is 2", refused["detail"])
        wide = {**self.declaration(), "id": "b"}
        del wide["endpoint"]
        wide["endpoints"] = [{"name": f"e{n}", "url": self.receiver.url} for n in range(3)]
        refused = self.put(server, wide, status=413)
        self.assertIn("tenants: endpoints_max would be 4; the most is 3", refused["detail"])
        self.put(server, self.declaration(enabled=False))


class Tried(DeclaredTest):
    EVENT = {"id": "e1", "type": "OrderCreated", "key": "ann", "payload": '{"order": "e1"}',
             "headers": [["traceparent", "00-ab"]]}

    def trial(self, server, query="", **event):
        answer = server.call("POST", "/workflows/erp/test" + query, {**self.EVENT, **event})
        self.assertEqual(answer.status, 200, answer.body)
        return answer.json

    def test_a_dry_trial_shows_the_request_and_sends_nothing(self):
        config = CONFIG + f"""
workflows:
  - id: erp
    source: {{type: stream, stream: orders}}
    endpoint:
      url: "{self.receiver.url}"
      auth: {{type: bearer, token: "${{env:ERP}}"}}
      headers: {{X-Shop: "berlin", X-Api-Key: "${{env:ERP}}-clear"}}
      signing: {{keys: [{{key: "${{env:SIGN}}"}}]}}
"""
        server = self.serve(config, {"ERP": "t0k-secret",
                                     "SIGN": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"})
        told = self.trial(server)
        self.assertEqual(told["outputs"], [{"payload": '{"order": "e1"}'}])
        request, = told["requests"]
        self.assertEqual((request["method"], request["url"]), ("POST", self.receiver.url))
        head = {name: value for name, value in request["headers"]}
        self.assertEqual(head["Authorization"], "Bearer ${env:ERP}")
        self.assertEqual((head["X-Shop"], head["traceparent"]), ("berlin", "00-ab"))
        self.assertIn("${env:ERP}", head["X-Api-Key"])
        self.assertEqual(head["webhook-id"], request["key"])
        self.assertIn("webhook-signature", head)
        self.assertEqual(json.loads(request["body"])["data"], {"order": "e1"})
        for hidden in ("t0k-secret", "MfKQ9r8", "-clear"):
            self.assertNotIn(hidden, json.dumps(told))
        self.assertEqual(self.receiver.came, [])
        # The key is that which the record has when it comes.
        self.publish(server, "e1")
        wait_for(lambda: self.receiver.got, "e1")
        self.assertEqual(self.receiver.got[0][0]["webhook-id"], request["key"])
        self.assertEqual(server.call("POST", "/workflows/none/test", self.EVENT).status, 404)

    def test_the_outputs_of_a_transform_and_what_it_fails_over(self):
        server = self.serve(CONFIG)
        self.put(server, self.declaration(transform={"jq": ".lines[] | {n: .}"}))
        told = self.trial(server, payload={"lines": [1, 2]})
        self.assertEqual([each["payload"] for each in told["outputs"]], ['{"n":1}', '{"n":2}'])
        self.assertEqual(len({each["key"] for each in told["requests"]}), 2)
        told = self.trial(server, payload={"lines": 7})
        self.assertIn("transform", told["dead_letter"])
        self.assertEqual(self.trial(server, payload={"lines": []})["requests"], [])

    def test_what_is_too_large_for_one_answer_is_not_sent(self):
        server = self.serve(CONFIG)
        declaration = self.declaration(endpoints=[
            {"name": f"e{n}", "url": self.receiver.url} for n in range(9)])
        del declaration["endpoint"]
        self.put(server, declaration)
        self.assertEqual(len(self.trial(server, payload="x" * 1000)["requests"]), 9)
        event = {**self.EVENT, "payload": "x" * 4_000_000}
        answer = server.call("POST", "/workflows/erp/test?send=true", event)
        self.assertIn("larger than 32 MiB; nothing was sent", answer.json["detail"])
        self.assertEqual(self.orders(self.receiver), [])

    def test_it_is_sent_once_if_somebody_says_so(self):
        server = self.serve(CONFIG)
        self.put(server, self.declaration())
        sent = self.trial(server, "?send=true")["requests"][0]["sent"]
        self.assertEqual((sent["outcome"], sent["status"]), ("delivered", 200))
        self.receiver.hook = lambda _: (422, {}, b"no such order")
        sent = self.trial(server, "?send=true")["requests"][0]["sent"]
        self.assertEqual((sent["outcome"], sent["status"]), ("rejected", 422))
        self.assertEqual(sent["answer"], "no such order")
        self.assertEqual(len(self.receiver.came), 2)
        self.assertEqual(self.show(server).json["waiting"], 0)


class Removed(DeclaredTest):
    def remove(self, server, query="", status=200):
        answer = server.call("DELETE", "/workflows/erp" + query)
        self.assertEqual(answer.status, status, answer.body)
        return answer.json

    def consumers(self, server):
        told = server.call("GET", "/streams/orders").json
        return [each["consumer"] for each in told["consumers"]]

    def test_nothing_of_it_stays_and_it_can_come_again(self):
        server = self.serve(CONFIG)
        self.put(server, self.declaration(transform={"jq": "."}))
        self.publish(server, "o1")
        self.arrives(self.receiver, "o1")
        wait_for(lambda: self.show(server).json["waiting"] == 0, "its settlement")
        self.assertIn("erp.outbox", self.streams(server))
        self.assertEqual(self.consumers(server), ["erp"])
        self.assertEqual(self.remove(server)["id"], "erp")
        self.is_gone(server)
        self.assertEqual(self.streams(server), ["orders"])
        self.assertEqual(self.consumers(server), [])
        self.assertEqual(server.call("GET", "/registers").json["registers"], [])
        self.assertEqual(self.remove(server, status=404)["status"], 404)
        self.put(server, self.declaration())
        self.publish(server, "o2")
        # It begins with the oldest record again.
        self.arrives(self.receiver, "o2")

    def test_what_waits_and_what_was_given_up_is_not_dropped_unasked(self):
        self.receiver.hook = lambda request: 422 if b"poison" in request[1] else 500
        server = self.serve(CONFIG)
        self.put(server, self.declaration(delivery={"retries": {"maxAttempts": 1}}))
        self.publish(server, "poison")
        self.dead_letter(server)
        self.assertIn("0 records wait, and 1 dead letter is kept",
                      self.remove(server, status=412)["detail"])
        self.assertEqual(self.show(server).json["state"], "running")
        self.publish(server, "o2")
        self.remove(server, "?drop_undelivered=true")
        self.is_gone(server)
        self.assertEqual(self.streams(server), ["orders"])
        # Records of a stream that is not its own stay there.
        self.assertEqual(len(server.call("GET", "/streams/orders/records").json["records"]), 2)

    def test_a_kill_in_between_is_made_good(self):
        self.receiver.hook = lambda _: self.receiver.closing.wait(60) and 200 or 200
        server = self.serve(CONFIG)
        self.put(server, self.declaration())
        self.publish(server, "o1")
        wait_for(lambda: self.receiver.came, "o1 to be under way")
        told = self.remove(server, "?drop_undelivered=true")
        self.assertEqual(told["state"], "removing")
        told = self.show(server).json
        self.assertEqual((told["state"], told["reason"]), ("removing", "is being removed"))
        self.put(server, self.declaration(), status=412)
        server.restart()
        self.is_gone(server)
        self.assertEqual(self.streams(server), ["orders"])


class OfTheFile(DeclaredTest):
    def test_it_changes_there_only_and_stays_when_it_leaves(self):
        config = CONFIG + f"""
workflows:
  - id: erp
    source: {{type: stream, stream: orders}}
    endpoint: {{url: "{self.receiver.url}"}}
"""
        server = self.serve(config)
        for answer in (server.call("PUT", "/workflows/erp", self.declaration()),
                       server.call("DELETE", "/workflows/erp")):
            self.assertEqual(answer.status, 412, answer.body)
            self.assertIn("is declared in the configuration of the server", answer.json["detail"])
        self.assertEqual(self.show(server).json["origin"], "file")
        self.publish(server, "o1")
        self.arrives(self.receiver, "o1")
        wait_for(lambda: self.show(server).json["waiting"] == 0, "its settlement")
        wait_for(lambda: "version" in self.show(server).json, "the store to know it")
        server.restart(lambda: server.write(CONFIG))
        told = self.show(server).json
        self.assertEqual((told["origin"], told["state"]), ("file", "disabled"))
        self.assertIn("not in the configuration of the server any more", told["reason"])
        self.assertIn("erp.attempts", self.streams(server))
        answer = server.call("DELETE", "/workflows/erp")
        self.assertEqual(answer.status, 200, answer.body)
        self.is_gone(server)
        self.assertEqual(self.streams(server), ["orders"])


class Reloaded(DeclaredTest):
    SAID = "workflows were read anew"

    def config(self, *flows, more=""):
        lines = [f"  - {{id: {each}, source: {{type: stream, stream: orders}}, "
                 f"endpoint: {{url: \"{url}\"}}}}\n" for each, url in flows]
        return CONFIG + more + "workflows:\n" + "".join(lines)

    def test_sighup_takes_new_changed_and_gone_workflows(self):
        other = self.endpoint()
        server = self.serve(self.config(("erp", self.receiver.url), ("crm", self.receiver.url)))
        self.publish(server, "o1")
        wait_for(lambda: len(self.receiver.got) == 2, "o1 by both")
        server.write(self.config(("erp", other.url), ("new", other.url)))
        server.reload(self.SAID)
        self.publish(server, "o2")
        # The new one begins with the oldest record.
        wait_for(lambda: sorted(self.orders(other)) == ["o1", "o2", "o2"],
                 lambda: f"them at the other; it has {self.orders(other)}")
        told = {each["id"]: each["state"]
                for each in server.call("GET", "/workflows").json["workflows"]}
        self.assertEqual(told, {"erp": "running", "new": "running", "crm": "disabled"})
        server.write(self.config(("crm", self.receiver.url)))
        server.reload(self.SAID)
        wait_for(lambda: self.orders(self.receiver).count("o2") == 1, "o2 by crm, from its place")

    def test_a_file_with_errors_changes_nothing_and_is_logged_with_its_lines(self):
        server = self.serve(self.config(("erp", self.receiver.url)))
        server.write(self.config(("erp", "no url")) + "  - {id: b, sorce: {}}\n")
        server.reload("reload failed")
        self.assertIn("hapax.yaml:5:", server.text())
        self.assertIn("hapax.yaml:6:13: workflows.1.sorce is not known", server.text())
        bad = self.config(("erp", self.endpoint().url), ("b", self.receiver.url))
        server.write(bad.replace("stream: orders}, endpoint", "stream: orders}, "
                                 "transform: {jq: '.['}, endpoint"))
        server.reload("no workflow was changed")
        self.publish(server, "o1")
        self.arrives(self.receiver, "o1")
        self.assertEqual(len(server.call("GET", "/workflows").json["workflows"]), 1)

    def test_what_only_a_start_takes_is_named(self):
        server = self.serve(self.config(("erp", self.receiver.url)))
        server.write(self.config(("erp", self.receiver.url),
                                 more="metrics: {endpoints_max: 7}\nlog: {level: debug}\n"))
        server.reload("the configuration changed where only a start takes it")
        self.assertIn("block=metrics", server.text())
        self.assertNotIn("block=log", server.text())


class Command(DeclaredTest):
    def setUp(self):
        super().setUp()
        self.server = self.serve(CONFIG)

    def write(self, *ids, more=""):
        path = os.path.join(self.folder, "flows.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write("workflows:\n")
            for each in ids:
                file.write(f"  - id: {each}\n    source: {{type: stream, stream: orders}}\n"
                           f"    endpoint: {{url: \"{self.receiver.url}\"}}\n{more}")
        return path

    def run_it(self, *words, code=0):
        done = subprocess.run([self.HAPAX, "workflows", *words, "--url", self.server.url],
                              capture_output=True, text=True, timeout=120, cwd=self.folder,
                              stdin=subprocess.DEVNULL, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_apply_shows_the_difference_first_and_is_idempotent(self):
        path = self.write("erp", "crm")
        self.assertEqual(self.run_it("apply", path, "--dry-run"), "erp: created\ncrm: created\n")
        self.assertIn("say --yes", self.run_it("apply", path, code=64))
        self.assertEqual(self.server.call("GET", "/workflows").json["workflows"], [])
        self.assertTrue(self.run_it("apply", path, "--yes").endswith("applied\n"))
        self.publish(self.server, "o1")
        wait_for(lambda: len(self.receiver.got) == 2, "o1 by both")
        self.assertEqual(self.run_it("apply", path), "erp: unchanged\ncrm: unchanged\n")
        path = self.write("erp", more="    ordering: {key: none}\n")
        self.assertIn('  ordering.key: (not set) -> "none"\n', self.run_it("apply", path, "--yes"))
        told = json.loads(self.run_it("apply", path, "--json"))
        self.assertEqual([each["outcome"] for each in told["workflows"]], ["unchanged"])
        self.assertEqual(self.show(self.server, "crm").json["state"], "running")

    def test_add_takes_new_ones_only(self):
        path = self.write("erp")
        self.assertEqual(self.run_it("add", path), "erp: created\n")
        self.assertEqual(self.run_it("add", path), "erp: unchanged\n")
        path = self.write("erp", more="    enabled: false\n")
        self.assertIn("has version", self.run_it("add", path, code=73))

    def test_a_file_with_errors_changes_nothing(self):
        path = self.write("erp", more="    orderin: {}\n")
        told = self.run_it("apply", path, "--yes", code=64)
        self.assertIn("flows.yaml:5:5: workflows.0.orderin is not known", told)
        path = self.write("erp")
        with open(path, "a", encoding="utf-8") as file:
            file.write('  - {id: db, source: {type: outbox, database: "sqlite:a"}, '
                       'endpoint: {url: "https://a.example"}}\n')
        self.assertIn("source.type is outbox", self.run_it("apply", path, "--yes", code=64))
        self.assertEqual(self.server.call("GET", "/workflows").json["workflows"], [])

    def test_a_sample_is_tried(self):
        self.run_it("add", self.write("erp"))
        told = self.run_it("test", "erp", '{"order": "x"}', "--type", "OrderCreated")
        self.assertIn(f"  POST {self.receiver.url}\n", told)
        self.assertIn('output: {"order": "x"}\n', told)
        self.assertIn("webhook-id: ", told)
        self.assertEqual(self.receiver.came, [])
        self.assertIn("sent: delivered, status 200", self.run_it("test", "erp", "--send"))
        self.receiver.hook = lambda _: 500
        self.assertIn("sent: try-later, status 500", self.run_it("test", "erp", "--send", code=1))

    def test_remove_says_what_would_be_lost_and_waits_for_the_end(self):
        self.receiver.hook = lambda _: 422
        self.run_it("add", self.write("erp", more="    delivery: {retries: {maxAttempts: 1}}\n"))
        self.publish(self.server, "o1")
        self.dead_letter(self.server)
        self.assertIn("1 dead letter is kept", self.run_it("remove", "erp", code=73))
        self.assertEqual(self.run_it("remove", "erp", "--drop-undelivered"), "erp: removed\n")
        self.assertEqual(self.streams(self.server), ["orders"])
        self.run_it("remove", "erp", code=66)


if __name__ == "__main__":
    arguments()
    unittest.main()
