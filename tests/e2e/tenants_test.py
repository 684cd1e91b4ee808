"""Tenants on one server: the four threats of a dedup service, tried as attacks, and the limits."""

import json
import unittest

import running
from running import jwt, wait_for

running.arguments()

VICTIM = jwt("victim", sub="billing")
THIEF = jwt("thief", sub="mallory")
WRITER = jwt("victim", roles=["produce"], sub="worker")


class Threats(running.SignedInTest):
    def setUp(self):
        super().setUp()
        self.served = self.serve()
        for token in (VICTIM, THIEF):
            self.served.call("PUT", "/streams/orders", token=token)

    def call(self, *arguments, token, **more):
        return self.served.call(*arguments, token=token, **more)

    def test_poisoning_a_key_before_its_owner_comes(self):
        order = {"id": "o-1", "payload": "poison"}
        claim = {"owner": "mallory", "lease_ms": 600000}
        self.assertEqual(self.call("POST", "/streams/orders/records", order, token=THIEF)[0], 201)
        self.assertEqual(self.call("POST", "/claims/pay/o-1", claim, token=THIEF)[0], 200)
        headers = {"Idempotency-Key": "k-1"}
        self.call("POST", "/claims/pay/o-2", claim, token=THIEF, headers=headers)
        thief = self.client(self.served, THIEF)
        for name in ("\x01victim\x01orders", "\x01victim\x01pay"):
            refused = thief("HX.APPEND", name, "poison", "ID", "o-1")
            self.assertTrue(refused.startswith("-"), refused)
            refused = thief("HX.CLAIM", name, "o-1", "OWNER", "mallory")
            self.assertTrue(refused.startswith("-"), refused)
        order = {"id": "o-1", "payload": "real"}
        status, _, body = self.call("POST", "/streams/orders/records", order, token=VICTIM)
        self.assertEqual((status, body["verdict"], body["sequence"]), (201, "fresh", 1))
        status, _, body = self.call("POST", "/claims/pay/o-1", {"owner": "me"}, token=VICTIM,
                                    headers=headers)
        self.assertEqual((status, body["verdict"]), (200, "fresh"))

    def test_tampering_with_what_another_stored(self):
        self.call("POST", "/streams/orders/records", {"id": "o-1", "payload": "real"},
                  token=VICTIM)
        before = self.call("GET", "/streams/orders/records", token=VICTIM)[2]
        encoded = "/streams/%01victim%01orders"
        for method, path in (("DELETE", encoded), ("POST", encoded + "/trim"),
                             ("PATCH", encoded), ("GET", encoded + "/records"),
                             ("DELETE", "/claims/%01victim%01pay/o-1")):
            status = self.call(method, path, {"before": 2} if method == "POST" else None,
                               token=THIEF)[0]
            self.assertIn(status, (400, 404), path)
        # A worker of the tenant itself writes, and does not change what was written.
        for method, path in (("DELETE", "/streams/orders"), ("PATCH", "/streams/orders"),
                             ("DELETE", "/claims/pay/o-1")):
            status = self.call(method, path, {} if method == "PATCH" else None, token=WRITER)[0]
            self.assertEqual(status, 403, path)
        status = self.call("POST", "/streams/orders/records", {"id": "o-1", "payload": "forged"},
                           token=WRITER)[0]
        self.assertEqual(status, 422)
        self.assertEqual(self.call("GET", "/streams/orders/records", token=VICTIM)[2], before)

    def test_replaying_what_was_captured(self):
        # The credential is over, and so is what was captured with it.
        old = jwt("victim", seconds=-1)
        self.assertEqual(self.call("POST", "/claims/pay/o-1", {"owner": "w"}, token=old)[0], 401)
        # A request that is sent again has the effect it had: none the second time.
        order = {"id": "o-9", "payload": "real"}
        self.assertEqual(self.call("POST", "/streams/orders/records", order, token=VICTIM)[0], 201)
        _, _, body = self.call("POST", "/streams/orders/records", order, token=VICTIM)
        self.assertEqual(body["verdict"], "duplicate")
        # The same key and Idempotency-Key under another tenant are another's: no stored answer.
        fence = self.call("POST", "/claims/pay/o-1", {"owner": "w"}, token=VICTIM,
                          headers={"Idempotency-Key": "k"})[2]["fence"]
        settled = {"fence": fence, "status": 200, "body": "card 4242"}
        self.assertEqual(self.call("POST", "/claims/pay/o-1/settle", settled, token=VICTIM)[0], 200)
        status, fields, body = self.call("POST", "/claims/pay/o-1", {"owner": "w"}, token=THIEF,
                                         headers={"Idempotency-Key": "k"})
        self.assertEqual(body["verdict"], "fresh")
        self.assertNotIn("Idempotent-Replayed", fields)
        self.assertNotIn("4242", json.dumps(body))
        # An old fence changes nothing any more.
        self.call("POST", "/claims/pay/o-1/settle", {**settled, "body": "other"}, token=VICTIM)
        body = self.call("POST", "/claims/pay/o-1", {"owner": "w"}, token=VICTIM)[2]
        self.assertIn("4242", json.dumps(body))

    def test_no_answer_names_another_tenant(self):
        self.call("PUT", "/streams/secret-plans", token=VICTIM)
        listed = self.call("GET", "/streams", token=THIEF)[2]
        self.assertEqual(listed, {"streams": ["$audit", "orders"]})
        seen = []
        for method, path in (("GET", "/streams"), ("GET", "/streams/secret-plans"),
                             ("GET", "/streams/secret-plans/records"),
                             ("POST", "/streams/secret-plans/records"),
                             ("POST", "/streams/secret-plans/consumers/c/receive"),
                             ("DELETE", "/streams/secret-plans")):
            body = {"payload": "x"} if path.endswith("records") and method == "POST" else None
            status, _, answer = self.call(method, path, body, token=THIEF)
            self.assertIn(status, (200, 404), path)
            seen.append(json.dumps(answer))
        client = self.client(self.served, THIEF)
        seen.append(str(client("HX.APPEND", "secret-plans", "x")))
        seen.append(str([client("MULTI"), client("HX.APPEND", "secret-plans", "x"),
                         client("EXEC")]))
        self.assertNotIn("victim", "".join(seen))
        self.assertNotIn("\\u0001", "".join(seen))

    def test_looking_at_what_another_stored(self):
        victim, thief = self.client(self.served, VICTIM), self.client(self.served, THIEF)
        victim("HX.APPEND", "orders", "secret", "ID", "o-1")
        victim("HX.CLAIM", "pay", "o-1", "OWNER", "billing")
        victim("SET", "card", "4711")
        looks = (("HX.READ", "{}orders"), ("HX.FIND_ID", "{}orders", "o-1"),
                 ("HX.FIND_CLAIM", "{}pay", "o-1"), ("HX.FIND_REGISTER", "{}card"),
                 ("HX.DESCRIBE", "{}orders"), ("HX.SCAN_REGISTERS", "0", "PREFIX", "{}"),
                 ("HX.STREAMS",))
        for look in looks:
            own = victim(*(word.format("") for word in look))
            self.assertIsInstance(own, list, look)
            self.assertNotIn("\x01", str(own))
            for prefix in ("", "\x01victim\x01"):
                seen = str(thief(*(word.format(prefix) for word in look)))
                for secret in ("secret", "billing", "4711", "card", "\\x01"):
                    self.assertNotIn(secret, seen, look)
        for look in (("HX.STATISTICS",), ("HX.READ", "$audit")):
            self.assertTrue(self.client(self.served, WRITER)(*look).startswith("-NOPERM"), look)
        self.assertIsInstance(victim("HX.READ", "$audit"), list)

    def test_no_message_shows_what_the_store_calls_a_name(self):
        client = self.client(self.served, VICTIM)
        told = [self.call("GET", "/streams/b%C3%BCcher", token=VICTIM),
                self.call("DELETE", "/claims/s/k?actor=a&reason=b", token=VICTIM),
                client("HX.READ", "nosuch"), client("HX.APPEND", "nosuch", "x")]
        text = str([one if isinstance(one, (str, list)) else one[2] for one in told])
        self.assertIn("there is no stream 'b\u00fccher'", text)
        self.assertIn("claim 's/k' is not known", text)
        for secret in ("victim", "x01", "?"):
            self.assertNotIn(secret, text)

    def test_names_are_as_long_as_without_tenants(self):
        name = "n" * 255
        self.assertEqual(self.call("PUT", "/streams/" + name, token=VICTIM)[0], 200)
        for _ in range(2):
            answer = self.call("POST", "/claims/" + name + "/" + name, {"owner": "w"},
                               token=VICTIM, headers={"Idempotency-Key": name})
            self.assertEqual((answer[0], answer[2]["verdict"]), (200, "fresh"))
        commit = {"id": "y" * 255, "ops": [{"op": "set", "name": "a" * 512, "value": "b"}]}
        self.assertEqual(self.call("POST", "/commit", commit, token=VICTIM)[0], 200)
        status, _, body = self.call("PUT", "/streams/" + name + "n", token=VICTIM)
        self.assertEqual((status, body["code"]), (413, "HX1002"))
        self.assertIn("has 256; the most is 255", body["detail"])

    def test_reading_records_without_the_right_to(self):
        self.call("POST", "/streams/orders/records", {"payload": "secret"}, token=VICTIM)
        admin = jwt("victim", roles=["admin"])
        consumer = jwt("victim", roles=["consume"])
        for path in ("/streams/orders/records", "/outbox/pending?table=orders"):
            self.assertEqual(self.call("GET", path, token=admin)[0], 403, path)
            self.assertIn("secret", str(self.call("GET", path, token=consumer)[2]), path)
        self.assertEqual(self.call("GET", "/outbox/stats?table=orders", token=admin)[0], 200)
        for path in ("/streams/$audit/records", "/outbox/pending?table=$audit"):
            self.assertEqual(self.call("GET", path, token=consumer)[0], 403, path)

    def test_what_others_have_does_not_show_in_what_one_counts(self):
        victim, thief = self.client(self.served, VICTIM), self.client(self.served, THIEF)
        for i in range(500):
            victim.send("SET", f"k{i}", "v")
        self.assertEqual({victim.answer() for _ in range(500)}, {"OK"})
        thief("SET", "mine", "v")
        self.assertEqual((victim("DBSIZE"), thief("DBSIZE")), (500, 1))
        cursor, keys, pages = "0", [], 0
        while pages == 0 or cursor != "0":
            cursor, page = thief("SCAN", cursor)
            keys += page
            pages += 1
        self.assertEqual(keys, ["mine"])
        self.assertLessEqual(pages, 3)


class Exhaustion(running.SignedInTest):
    def limited(self, text, more=""):
        return self.serve(self.AUTH + more + "tenants:\n  thief: {" + text + "}\n")

    def figure(self, served, name, tenant):
        page = served.call("GET", "/metrics", token=tenant).body.decode()
        found = [line.split()[-1] for line in page.split("\n") if line.startswith(name + "{")]
        return int(found[0]) if found else None

    def fill(self, client, value):
        """Sets keys until one is refused; answers why."""
        for i in range(100000):
            answer = client("SET", f"k{i}", value)
            if answer != "OK":
                return i, answer
        self.fail("nothing was refused")

    def test_memory_without_any_setting(self):
        served = self.serve(self.AUTH + "store: {memory_max: 2MiB}\n")
        victim = self.client(served, VICTIM)
        count, why = self.fill(self.client(served, THIEF), "x" * 1000)
        self.assertGreater(count, 100)
        self.assertIn("HX1007", why)
        self.assertIn("memory_max", why)
        self.assertEqual(victim("SET", "mine", "x" * 1000), "OK")
        self.assertEqual(served.call("PUT", "/streams/s", token=VICTIM)[0], 200)
        self.assertEqual(served.call("POST", "/streams/s/records", {"id": "i", "payload": "p"},
                                     token=VICTIM)[0], 201)
        self.assertEqual(served.call("POST", "/claims/a/b", {"owner": "w"}, token=VICTIM)[0], 200)
        wait_for(lambda: self.figure(served, "hapax_tenant_memory_bytes", THIEF) > 100000,
                 "the figures of what the tenant has")
        self.assertLess(self.figure(served, "hapax_tenant_memory_bytes", THIEF), 1 << 20)
        self.assertLess(self.figure(served, "hapax_tenant_memory_max_bytes", THIEF), 1 << 20)

    def test_transactions_without_any_setting(self):
        served = self.serve()
        thief = self.client(served, THIEF)
        for i in range(1000):
            thief.send("HX.BEGIN", f"t{i}", "TIMEOUT_MS", 900000)
        answers = [thief.answer() for _ in range(1000)]
        self.assertIn("HX1015", answers[-1])
        status, _, body = served.call("POST", "/transactions/mine", {}, token=VICTIM)
        self.assertEqual((status, body["verdict"]), (200, "done"))
        status, _, body = served.call("POST", "/transactions/one-more", {}, token=THIEF)
        self.assertEqual((status, body["code"], body["retry"]), (429, "HX1015", "later"))

    def test_streams_and_a_reload(self):
        served = self.limited("streams_max: 2")
        codes = [served.call("PUT", f"/streams/s{i}", token=THIEF)[0] for i in range(3)]
        self.assertEqual(codes, [200, 200, 413])  # The audit is the server's.
        self.assertEqual(served.call("PUT", "/streams/s9", token=VICTIM)[0], 200)
        served.write(self.AUTH + "tenants:\n  thief: {streams_max: 3}\n")
        served.reload()
        self.assertEqual(served.call("PUT", "/streams/s2", token=THIEF)[0], 200)

    def test_keys_count_as_storage(self):
        served = self.limited("storage_max: 100kB")
        count, why = self.fill(self.client(served, THIEF), "x" * 10000)
        self.assertEqual(count, 9)
        self.assertIn("HX1006", why)
        self.assertEqual(self.client(served, VICTIM)("SET", "k", "v"), "OK")

    def test_results_that_were_not_stored_take_no_room(self):
        served = self.limited("storage_max: 100kB")
        fence = served.call("POST", "/claims/p/k", {"owner": "w"}, token=THIEF)[2]["fence"]
        settle = {"fence": fence + 1000, "body": "y" * 40000}
        for _ in range(4):
            status = served.call("POST", "/claims/p/k/settle", settle, token=THIEF)[0]
            self.assertEqual(status, 409)
        client = self.client(served, THIEF)
        for _ in range(4):
            client("MULTI")
            self.assertEqual(client("HX.SETTLE", "p", "k", fence, "BODY", "y" * 40000), "QUEUED")
            client("DISCARD")
        settle["fence"] = fence
        status = served.call("POST", "/claims/p/k/settle", settle, token=THIEF)[0]
        self.assertEqual(status, 200)
        fence = served.call("POST", "/claims/p/j", {"owner": "w"}, token=THIEF)[2]["fence"]
        settle = {"fence": fence, "body": "y" * 70000}
        status, _, body = served.call("POST", "/claims/p/j/settle", settle, token=THIEF)
        self.assertEqual((status, body["code"]), (507, "HX1006"))

    def test_names_in_the_metrics(self):
        served = self.serve()
        thief = self.client(served, THIEF)
        for i in range(1100):
            thief.send("HX.CLAIM", f"scope{i}", "k", "OWNER", "x", "LEASE_MS", 1000)
        for _ in range(1100):
            thief.answer()
        self.client(served, VICTIM)("HX.CLAIM", "pay", "k", "OWNER", "x")
        page = served.call("GET", "/metrics", token=VICTIM).body.decode()
        self.assertIn('idempotency_checks_total{tenant="victim",queue="pay",result="fresh"} 1',
                      page)
        page = served.call("GET", "/metrics", token=THIEF).body.decode()
        self.assertIn('{tenant="thief",queue="(others)",result="fresh"} 100', page)

    def test_storage(self):
        served = self.limited("storage_max: 10kB")
        served.call("PUT", "/streams/s", token=THIEF)
        served.call("PUT", "/streams/s", token=VICTIM)
        big = {"payload": "x" * 4000}
        codes = [served.call("POST", "/streams/s/records", big, token=THIEF)[0] for _ in range(4)]
        self.assertEqual(codes, [201, 201, 507, 507])
        self.assertEqual(served.call("POST", "/streams/s/records", big, token=VICTIM)[0], 201)
        self.assertEqual(served.stop(), 0)
        served = self.limited("storage_max: 10kB")  # It is counted, not only remembered.
        status, _, body = served.call("POST", "/streams/s/records", big, token=THIEF)
        self.assertEqual((status, body["code"]), (507, "HX1006"))
        served.call("DELETE", "/streams/s", token=THIEF)
        served.call("PUT", "/streams/s", token=THIEF)
        wait_for(lambda: served.call("POST", "/streams/s/records", big, token=THIEF)[0] == 201,
                 "the count after the deletion")

    def test_storage_binds_what_the_server_writes(self):
        served = self.limited("storage_max: 10kB")
        served.call("PUT", "/streams/s", token=THIEF)
        served.call("PUT", "/streams/s/consumers/c", {"attempts_max": 1}, token=THIEF)
        served.call("POST", "/streams/s/records", {"payload": "x" * 6000}, token=THIEF)
        _, _, got = served.call("POST", "/streams/s/consumers/c/receive", {}, token=THIEF)
        nack = {"receipt": got["records"][0]["receipt"]}
        status, _, body = served.call("POST", "/streams/s/consumers/c/nack", nack, token=THIEF)
        self.assertEqual((status, body["code"]), (507, "HX1006"))  # No room for the dead letter.
        made = 0
        while made < 200:
            path = f"/streams/s/consumers/c{made}"
            status, _, body = served.call("PUT", path, {}, token=THIEF)
            if status != 200:
                break
            made += 1
        self.assertEqual((status, body["code"]), (507, "HX1006"))  # No room for the audit.
        consumers = served.call("GET", "/streams/s/consumers", token=THIEF)[2]["consumers"]
        self.assertEqual(len(consumers), made + 1)
        for path in ("/streams/s/consumers/c0", "/streams/s"):
            self.assertEqual(served.call("DELETE", path, token=THIEF)[0], 200)
        self.assertEqual(served.call("PUT", "/streams/s", token=THIEF)[0], 200)

    def test_rate(self):
        served = self.limited("rate: 1, burst: 3")
        ops = {"ops": [{"op": "get", "name": "r"}] * 100}  # A debt of more than a minute.
        answers = [served.call(*call, token=THIEF) for call in
                   [("GET", "/streams")] * 2 + [("POST", "/commit", ops), ("GET", "/streams")]]
        self.assertEqual([answer[0] for answer in answers[:3]], [200, 200, 200])
        status, fields, body = answers[3]
        self.assertEqual((status, body["code"]), (429, "HX1015"))
        self.assertGreaterEqual(int(fields["Retry-After"]), 1)
        self.assertIn("rate", self.client(served, THIEF)("PING"))
        self.assertEqual(served.call("GET", "/streams", token=VICTIM)[0], 200)
        served.write(self.AUTH)
        served.reload()
        self.assertEqual(served.call("GET", "/streams", token=THIEF)[0], 200)

    def test_time(self):
        served = self.limited("ttl_max: 2h")
        status, _, body = served.call("PUT", "/streams/s", {"window_s": 86400}, token=THIEF)
        self.assertEqual((status, body["code"]), (413, "HX1002"))
        self.assertEqual(served.call("PUT", "/streams/s", {"window_s": 7200}, token=THIEF)[0], 200)
        claim = {"owner": "w", "retention_s": 60, "tombstone_s": "forever"}
        self.assertEqual(served.call("POST", "/claims/a/b", claim, token=THIEF)[0], 413)
        self.assertEqual(served.call("POST", "/claims/a/b", claim, token=VICTIM)[0], 200)
        # Whoever cannot say how long its key is remembered asks for no longer than it may.
        status = served.call("POST", "/streams/s/records", {"payload": "x"}, token=THIEF,
                             headers={"Idempotency-Key": "k"})[0]
        self.assertEqual(status, 201)
        commit = {"id": "c", "id_window_s": 86400, "ops": [{"op": "add", "name": "n"}]}
        self.assertEqual(served.call("POST", "/commit", commit, token=THIEF)[0], 413)

    def test_time_of_keys(self):
        served = self.limited("ttl_max: 2h")
        client = self.client(served, THIEF)
        for words in (("SET", "k", "v"), ("SET", "k", "v", "EX", "1000000000"), ("INCR", "k"),
                      ("SET", "k", "v", "KEEPTTL")):
            self.assertIn("ttl_max", client(*words), words)
        status, _, body = served.call("PUT", "/registers/k", {"value": "v",
                                      "expires_in_ms": 10 ** 12}, token=THIEF)
        self.assertEqual((status, body["code"]), (413, "HX1002"))
        self.assertEqual(client("SET", "k", "1", "EX", "7200"), "OK")
        self.assertEqual(client("INCR", "k"), 2)
        self.assertEqual(client("SET", "k", "1", "KEEPTTL"), "OK")
        for words in (("PERSIST", "k"), ("EXPIRE", "k", "7300"), ("GETSET", "k", "v")):
            self.assertTrue(str(client(*words)).startswith("-"), words)
        self.assertEqual(client("EXPIRE", "k", "60"), 1)
        self.assertLessEqual(client("TTL", "k"), 60)
        self.assertEqual(self.client(served, VICTIM)("SET", "k", "v"), "OK")

    def test_connections(self):
        served = self.limited("connections_max: 2")
        clients = [self.client(served, THIEF) for _ in range(2)]
        self.assertEqual([client("PING") for client in clients], ["PONG", "PONG"])
        third = self.client(served, THIEF)
        self.assertIn("connections", third("PING"))
        self.assertEqual(served.call("GET", "/streams", token=THIEF)[0], 429)
        self.assertEqual(self.client(served, VICTIM)("PING"), "PONG")
        clients[0].close()
        wait_for(lambda: third("PING") == "PONG", "a free place")


if __name__ == "__main__":
    unittest.main(verbosity=2)
