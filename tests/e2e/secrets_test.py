"""Secrets that are stored over the API: nobody reads them but the endpoints of workflows."""

import base64
import json
import os
import subprocess
import unittest

import delivering
import running
from running import jwt, wait_for

running.arguments()

KEY = base64.b64encode(b"k" * 32).decode()
SECRET = "t0k-very-secret"


def declared(url):
    return f"""
server: {{secrets_key: "${{env:SEAL}}"}}
workflows:
  - id: shop
    source: {{type: http}}
    endpoint: {{url: "{url}", auth: {{type: bearer, token: "${{secret:SHOP}}"}}}}
"""


class Secrets(delivering.DeliveryTest):
    def shop(self):
        self.receiver = self.endpoint()
        return self.serve(declared(self.receiver.url), {"SEAL": KEY})

    def post(self, server, *events):
        for each in events:
            answer = server.call("POST", "/workflows/shop/events",
                                 {"id": each, "payload": json.dumps({"order": each})})
            self.assertEqual(answer.status, 201, answer.body)

    def tokens(self):
        with self.receiver.lock:
            return {json.loads(body)["data"]["order"]: head["Authorization"]
                    for head, body in self.receiver.got}

    def set(self, server, value, name="SHOP"):
        done = subprocess.run([self.HAPAX, "secrets", "set", name, "--url", server.url],
                              input=value + "\n", capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout), (0, name + " is stored\n"), done.stderr)

    def everything_kept(self, server):
        found = server.text().encode()
        for folder, _, files in os.walk(os.path.join(self.folder, "data")):
            for name in files:
                with open(os.path.join(folder, name), "rb") as file:
                    found += file.read()
        return found

    def test_a_workflow_waits_for_its_secret_and_follows_its_changes(self):
        server = self.shop()
        self.post(server, "e1")
        server.wait_for_log("secret SHOP is not stored; store it with 'hapax secrets set SHOP'")
        self.set(server, SECRET)
        self.arrives(self.receiver, "e1")
        self.assertEqual(self.tokens()["e1"], "Bearer " + SECRET)
        self.set(server, SECRET + "-2")
        last = ""

        def follows():
            nonlocal last
            last += "e"
            self.post(server, last)
            self.arrives(self.receiver, last)
            return self.tokens()[last] == "Bearer " + SECRET + "-2"

        wait_for(follows, "the changed secret at the endpoint", seconds=10)
        server.restart()
        self.post(server, "after")
        self.arrives(self.receiver, "after")
        self.assertEqual(self.tokens()["after"], "Bearer " + SECRET + "-2")
        told = server.call("GET", "/workflows/shop").json
        self.assertEqual(told["dead_letters"], 0)
        self.assertIn("${secret:SHOP}", json.dumps(told["declaration"]))
        self.assertNotIn(SECRET.encode(), self.everything_kept(server))

    def test_the_api_tells_names_and_never_a_value(self):
        server = self.shop()
        self.assertEqual(server.call("GET", "/secrets").json, {"secrets": []})
        stored = server.call("PUT", "/secrets/SHOP", {"value": SECRET})
        self.assertEqual((stored.status, stored.json["name"]), (200, "SHOP"))
        for answer in (stored, server.call("GET", "/secrets"),
                       server.call("PUT", "/secrets/SHOP", {"value": SECRET, "why": SECRET}),
                       server.call("PUT", "/secrets/SHOP", ("{" + SECRET).encode())):
            self.assertNotIn(SECRET.encode(), answer.body)
        self.assertEqual([each["name"] for each in server.call("GET", "/secrets").json["secrets"]],
                         ["SHOP"])
        self.assertEqual(server.call("GET", "/secrets/SHOP").status, 405)
        for name, value in (("SH-OP", "x"), ("SHOP", ""), ("SHOP", "a\nb"), ("SHOP", 7)):
            answer = server.call("PUT", f"/secrets/{name}", {"value": value})
            self.assertEqual(answer.status, 400, answer.body)
        where = ("--url", server.url)
        self.assertIn("SHOP", self.hapax("secrets", "list", *where))
        self.assertEqual(self.hapax("secrets", "remove", "SHOP", *where), "SHOP is removed")
        self.assertEqual(self.hapax("secrets", "list", *where), "no secrets")
        self.assertEqual(server.call("DELETE", "/secrets/SHOP").status, 404)

    def test_without_a_key_none_are_kept(self):
        server = self.serve("")
        answer = server.call("PUT", "/secrets/SHOP", {"value": SECRET})
        self.assertEqual(answer.status, 412)
        self.assertIn("server.secrets_key", answer.json["detail"])
        self.assertNotIn(SECRET.encode(), self.everything_kept(server))

    def test_a_key_that_is_no_key_is_refused_without_a_word_of_it(self):
        for value, words in ((SECRET, "is not 32 bytes in base64"), ("", "there is no key")):
            path = os.path.join(self.folder, "hapax.yaml")
            with open(path, "w", encoding="utf-8") as file:
                file.write('server: {secrets_key: "${env:SEAL}", http: {address: "127.0.0.1:0"}}')
            done = subprocess.run([self.HAPAX, "serve", "--config", path], capture_output=True,
                                  text=True, timeout=60, cwd=self.folder,
                                  env={**os.environ, "SEAL": value})
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(words, done.stderr)
            self.assertNotIn(SECRET, done.stderr)
        with open(path, "w", encoding="utf-8") as file:
            file.write(f'server: {{secrets_key: "{SECRET}"}}')
        done = subprocess.run([self.HAPAX, "check", path], capture_output=True, text=True,
                              timeout=60)
        self.assertEqual(done.returncode, 64)
        self.assertIn("server.secrets_key must be a reference", done.stderr)
        self.assertNotIn(SECRET, done.stdout + done.stderr)


class OfTenants(running.SignedInTest):
    def test_a_tenant_has_secrets_of_its_own_and_an_audit(self):
        server = self.serve(environment={"SEAL": KEY}, config=self.AUTH +
                            'server: {secrets_key: "${env:SEAL}"}\n')
        put = server.call("PUT", "/secrets/SHOP", {"value": SECRET}, token=jwt("acme"))
        self.assertEqual(put.status, 200, put.body)
        self.assertEqual(server.call("GET", "/secrets", token=jwt("globex")).json, {"secrets": []})
        self.assertEqual(server.call("DELETE", "/secrets/SHOP", token=jwt("globex")).status, 404)
        for method in ("PUT", "DELETE"):
            answer = server.call(method, "/secrets/SHOP", {"value": "x"},
                                 token=jwt("acme", roles=["produce", "consume"]))
            self.assertEqual(answer.status, 403)
        self.assertEqual(server.call("GET", "/registers", token=jwt("acme")).json["registers"], [])
        self.assertEqual(server.call("DELETE", "/secrets/SHOP", token=jwt("acme")).status, 200)
        lines = server.call("GET", "/streams/$audit/records", token=jwt("acme"))
        self.assertIn("put_secret", lines.body.decode())
        self.assertIn("remove_secret", lines.body.decode())
        self.assertNotIn(SECRET, lines.body.decode())


if __name__ == "__main__":
    unittest.main(verbosity=2)
