"""Who may come in, over HTTP and RESP, and what changes while the server runs."""

import os
import subprocess
import unittest

import running
from running import jwt, wait_for

running.arguments()


class Http(running.SignedInTest):
    def test_a_call_needs_a_credential_and_the_right(self):
        served = self.serve()
        status, fields, body = served.call("PUT", "/streams/orders")
        self.assertEqual((status, body["code"]), (401, "HX1013"))
        self.assertEqual(fields["Content-Type"], "application/problem+json")
        self.assertEqual(fields["WWW-Authenticate"], 'Bearer realm="hapax"')
        self.assertEqual(served.call("GET", "/nowhere")[0], 401)
        status, fields, _ = served.call("PUT", "/streams/orders", token=jwt() + "x")
        self.assertEqual(status, 401)
        self.assertIn('error="invalid_token"', fields["WWW-Authenticate"])
        basic = {"Authorization": "Basic " + jwt()}
        self.assertEqual(served.call("GET", "/streams", headers=basic)[0], 401)
        status, _, body = served.call("PUT", "/streams/orders", token=jwt(roles=["produce"]))
        self.assertEqual((status, body["code"]), (403, "HX1014"))
        self.assertIn("admin", body["detail"])
        self.assertEqual(served.call("PUT", "/streams/orders", token=jwt())[0], 200)
        self.assertIn("orders", served.call("GET", "/streams", token=jwt())[2]["streams"])

    def test_the_configuration_names_the_claims_and_the_type(self):
        served = self.serve("auth: {jwt: {keys: [{file: secret, algorithm: HS256}], type: JWT, "
                            "tenant_claim: org, roles_claim: groups}}\n")
        good = jwt("ignored", roles=[], org="shop", groups=["admin"])
        self.assertEqual(served.call("PUT", "/streams/a", token=good)[0], 200)
        self.assertEqual(served.call("GET", "/streams", token=jwt("shop"))[0], 403)
        served.write("auth: {jwt: {keys: [{file: secret, algorithm: HS256}], type: at+jwt}}\n")
        served.reload()
        self.assertEqual(served.call("GET", "/streams", token=jwt("shop"))[0], 401)

    def test_the_log_has_the_reason_and_never_the_credential(self):
        served = self.serve()
        secret = jwt(seconds=-60)
        self.assertEqual(served.call("GET", "/streams", token=secret)[0], 401)
        self.client(served)("AUTH", "hunter2-is-my-password")
        served.wait_for_log("sign-in refused", 2)
        self.assertIn("reason=", served.text())
        self.assertNotIn(secret.split(".")[2], served.text())
        self.assertNotIn("hunter2", served.text())

    def test_stored_results_are_for_those_who_may_read_bodies(self):
        served = self.serve()
        for key, size in (("small", 1), ("large", 1_000)):
            path = f"/claims/pay/{key}"
            fence = served.call("POST", path, {"owner": "w"}, token=jwt())[2]["fence"]
            served.call("POST", path + "/settle",
                        {"fence": fence, "status": 200, "body": "card 4242" * size}, token=jwt())
            for token, sees in ((jwt(), True), (jwt(roles=["produce"]), False)):
                status, _, body = served.call("POST", path, {"owner": "w"}, token=token)
                self.assertEqual((status, body["verdict"]), (200, "duplicate"))
                self.assertEqual("card 4242" * size in str(body), sees)
                self.assertTrue(body["result_kept"])
                self.assertTrue(served.call("GET", path, token=token)[2]["result_kept"])
                said = self.client(served, token)("HX.CLAIM", "pay", key, "OWNER", "w")
                self.assertIn("duplicate", said)
                self.assertEqual("card 4242" * size in str(said), sees)
                self.assertEqual(said[said.index("result_kept") + 1], 1)


class Resp(running.SignedInTest):
    def test_three_ways_to_sign_in(self):
        served = self.serve()
        client = self.client(served)
        self.assertTrue(client("PING").startswith("-NOAUTH"))
        self.assertTrue(client("HELLO", "2").startswith("-NOAUTH"))
        self.assertTrue(client("AUTH", "wrong").startswith("-WRONGPASS"))
        self.assertEqual(client("AUTH", jwt()), "OK")
        self.assertEqual(client("PING"), "PONG")
        self.assertEqual(client("RESET"), "RESET")
        self.assertTrue(client("PING").startswith("-NOAUTH"))
        self.assertEqual(client("AUTH", "default", jwt()), "OK")
        other = self.client(served)
        self.assertIn("hapax", other("HELLO", "2", "AUTH", "me", jwt(roles=["consume"])))
        self.assertTrue(other("HX.CREATE_STREAM", "s").startswith("-NOPERM"))

    def test_a_register_is_looked_at_with_one_right_however_it_is_asked_for(self):
        served = self.serve()
        writer = self.client(served, jwt(roles=["produce"]))
        self.assertEqual(writer("SET", "k", "v"), "OK")
        for words in (("GET", "k"), ("SCAN", "0"), ("HX.FIND_REGISTER", "k"),
                      ("HX.SCAN_REGISTERS", "0")):
            self.assertTrue(str(writer(*words)).startswith("-NOPERM"), words)
        reader = self.client(served, jwt(roles=["consume"]))
        self.assertIn("v", reader("HX.FIND_REGISTER", "k"))
        for path in ("/registers", "/registers/k"):
            self.assertEqual(served.call("GET", path, token=jwt(roles=["produce"])).status, 403)
            self.assertEqual(served.call("GET", path, token=jwt(roles=["consume"])).status, 200)

    def test_a_session_ends_with_its_credential(self):
        client = self.client(self.serve())
        wait_for(lambda: client("AUTH", jwt(seconds=1.5)) == "OK" and client("PING") == "PONG",
                 "a credential that lasts so long")
        wait_for(lambda: client("PING") != "PONG", "the end of the credential")
        self.assertTrue(client("PING").startswith("-NOAUTH"))
        self.assertEqual(client("AUTH", jwt()), "OK")
        self.assertEqual(client("PING"), "PONG")

    def test_answers_are_in_the_names_of_who_asked(self):
        client = self.client(self.serve())
        for words in (("AUTH", jwt("a")), ("HX.APPEND", "none", "x"), ("AUTH", jwt("b")),
                      ("HX.APPEND", "none", "x"), ("RESET",)):
            client.send(*words)
        said = [client.answer() for _ in range(5)]
        self.assertEqual((said[0], said[2], said[4]), ("OK", "OK", "RESET"))
        for refused in (said[1], said[3]):
            self.assertIn("none", str(refused))
            self.assertNotIn("\x01", str(refused))


class Reload(running.SignedInTest):
    def make(self, *more):
        return self.hapax("token", "make", "--tenant", "acme", "--roles", "produce,consume,admin",
                          "--file", "tokens", *more)

    def test_tokens_come_and_go_with_a_reload(self):
        first = self.make()
        served = self.serve()
        client = self.client(served, first)
        second = self.make()
        self.assertEqual(served.call("GET", "/streams", token=second)[0], 401)
        served.reload()
        self.assertEqual(served.call("GET", "/streams", token=second)[0], 200)
        self.assertEqual(client("PING"), "PONG")  # still good, and not asked again
        self.hapax("token", "revoke", first, "--file", "tokens")
        served.reload()
        self.assertTrue(client("PING").startswith("-NOAUTH"))
        self.assertEqual(served.call("GET", "/streams", token=first)[0], 401)

    def revoke(self, served, token):
        self.hapax("token", "revoke", token, "--file", "tokens")
        served.reload()

    def begin(self, served, line, token):
        link = served.connect()
        self.addCleanup(link.close)
        link.sendall(f"{line} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n"
                     f"Authorization: Bearer {token}\r\n\r\n".encode())
        answer = link.makefile("rb")
        self.addCleanup(answer.close)
        return answer

    def listen(self, served, token):
        events = running.Events(served, "/streams/orders/records", "Authorization: Bearer " + token)
        self.addCleanup(events.close)
        return events

    def test_who_waits_is_shut_out_too(self):
        token = self.make()
        served = self.serve()
        served.call("PUT", "/streams/orders", token=jwt())
        events = self.listen(served, token)
        consumer = "/streams/orders/consumers/mail"
        waiting = [self.begin(served, line + "?wait_ms=30000", token)
                   for line in ("GET /api/v1/streams/orders/records",
                                f"POST /api/v1{consumer}/receive")]
        wait_for(lambda: served.call("GET", consumer, token=jwt()).status == 200, "the receive")
        self.revoke(served, token)
        served.call("POST", "/streams/orders/records", {"payload": "secret"}, token=jwt())
        told = events.next()
        self.assertEqual(told.get("event"), "error", told)
        self.assertIn("HX1013", told["data"])
        self.assertEqual(events.chunk(), "")
        for answer in waiting:
            self.assertEqual(answer.readline().split()[1], b"401")
        self.assertEqual(served.call("GET", consumer, token=jwt()).json["in_flight"], 0)

    def test_who_waits_and_is_not_concerned_goes_on(self):
        token = self.make()
        served = self.serve()
        served.call("PUT", "/streams/orders", token=jwt())
        events = self.listen(served, jwt())
        self.revoke(served, token)
        served.call("POST", "/streams/orders/records", {"payload": "x"}, token=jwt())
        self.assertEqual(events.next().get("id"), "1")

    def test_events_end_with_their_credential(self):
        served = self.serve()
        served.call("PUT", "/streams/orders", token=jwt())
        events = self.listen(served, jwt(seconds=3))
        while events.status != b"200":
            events = self.listen(served, jwt(seconds=3))
        told = events.next()
        self.assertEqual(told.get("event"), "error", told)
        self.assertIn("HX1013", told["data"])

    def test_what_was_queued_ends_with_its_credential(self):
        token = self.make()
        served = self.serve()
        clients = [self.client(served, token) for _ in range(2)]
        for client in clients:
            self.assertEqual((client("MULTI"), client("SET", "k", "v")), ("OK", "QUEUED"))
        self.revoke(served, token)
        self.assertTrue(clients[0]("EXEC").startswith("-NOAUTH"))
        for client in clients:
            self.assertEqual(client("AUTH", jwt()), "OK")
            self.assertIn("EXEC without MULTI", client("EXEC"))
            self.assertIsNone(client("GET", "k"))

    def test_what_was_queued_is_for_the_tenant_who_queued_it(self):
        served = self.serve()
        client = self.client(served, jwt("acme", org="other"))
        self.assertEqual((client("MULTI"), client("SET", "k", "v")), ("OK", "QUEUED"))
        served.write(self.AUTH.replace("jwt: {", "jwt: {tenant_claim: org, "))
        served.reload()
        self.assertTrue(client("EXEC").startswith("-EXECABORT"))
        self.assertIsNone(client("GET", "k"))

    def test_what_cannot_be_read_leaves_the_old_in_use(self):
        token = self.make()
        served = self.serve()
        with open(os.path.join(self.folder, "tokens"), "w", encoding="utf-8") as file:
            file.write("{broken\n")
        served.reload("the old stays in use")
        self.assertEqual(served.call("GET", "/streams", token=token)[0], 200)
        served.write("auth: {nonsense: 1}\n")
        served.reload("nonsense")
        self.assertEqual(served.call("GET", "/streams", token=token)[0], 200)

    def test_it_may_listen_beyond_this_machine(self):
        served = self.serve(self.AUTH + "server: {drain: 1s}\n", {"HAPAX_X": "1"})
        self.assertEqual(served.stop(), 0)
        path = os.path.join(self.folder, "open.yaml")
        os.chmod(os.path.join(self.folder, "secret"), 0o600)
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.AUTH + "server: {http: {address: ':7171'}}\n")
        done = subprocess.run([self.HAPAX, "check", path], capture_output=True, text=True,
                              timeout=60, cwd=self.folder)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main(verbosity=2)
