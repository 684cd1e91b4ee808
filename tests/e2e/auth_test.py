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
        claim = ("POST", "/claims/pay/o-1", {"owner": "w"})
        fence = served.call(*claim, token=jwt())[2]["fence"]
        served.call("POST", "/claims/pay/o-1/settle",
                    {"fence": fence, "status": 200, "body": "card 4242"}, token=jwt())
        status, _, body = served.call(*claim, token=jwt())
        self.assertIn("card 4242", str(body))
        status, _, body = served.call(*claim, token=jwt(roles=["produce"]))
        self.assertEqual((status, body["verdict"]), (200, "duplicate"))
        self.assertNotIn("card 4242", str(body))
        said = self.client(served, jwt(roles=["produce"]))("HX.CLAIM", "pay", "o-1", "OWNER", "w")
        self.assertNotIn("card 4242", str(said))


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

    def test_a_session_ends_with_its_credential(self):
        client = self.client(self.serve(), jwt(seconds=1.5))
        self.assertEqual(client("PING"), "PONG")
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
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.AUTH + "server: {http: {address: ':7171'}}\n")
        done = subprocess.run([self.HAPAX, "check", path], capture_output=True, text=True,
                              timeout=60, cwd=self.folder)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main(verbosity=2)
