"""`hapax token` on real files. Usage: token_test.py HAPAX SOURCE_TREE"""
import base64
import hashlib
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

HAPAX = sys.argv.pop(1)
sys.argv.pop(1)


def token(*arguments):
    return subprocess.run([HAPAX, "token", *arguments], capture_output=True, text=True, timeout=60)


class Token(unittest.TestCase):
    def setUp(self):
        self.top = tempfile.mkdtemp(prefix="hapax-e2e-")
        self.file = os.path.join(self.top, "tokens")
        self.addCleanup(shutil.rmtree, self.top, ignore_errors=True)

    def make(self, *more):
        done = token("make", "--tenant", "acme", "--roles", "produce,consume", "--file", self.file,
                     "--json", *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def listed(self):
        done = token("list", "--file", self.file, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["tokens"]

    def read(self):
        with open(self.file, encoding="utf-8") as lines:
            return lines.read()

    def test_a_token_is_printed_once_and_stored_as_a_hash(self):
        done = token("make", "--tenant", "acme", "--roles", "produce", "--file", self.file)
        self.assertEqual(done.returncode, 0, done.stderr)
        text = done.stdout.strip()  # alone on standard output, for $(...)
        self.assertRegex(text, r"^hx_[0-9a-f]{16}_[A-Za-z0-9_-]{49}$")
        self.assertNotIn(text[20:], done.stderr)
        self.assertEqual(stat.S_IMODE(os.stat(self.file).st_mode), 0o600)
        self.assertEqual(os.listdir(self.top), ["tokens"])
        stored = json.loads(self.read())
        secret = base64.urlsafe_b64decode(text[20:63] + "=")
        digest = base64.urlsafe_b64encode(hashlib.sha256(secret).digest()).decode().rstrip("=")
        self.assertEqual(stored["sha256"], digest)
        self.assertNotIn(text[20:63], self.read())

    def test_tokens_are_listed_without_their_hashes(self):
        first = self.make("--subject", "billing", "--expires", "90d", "--note", "the nightly job")
        self.make()
        tokens = self.listed()
        self.assertEqual([t["state"] for t in tokens], ["valid", "valid"])
        self.assertEqual(tokens[0]["id"], first["id"])
        self.assertEqual(tokens[0]["expires_ms"] - tokens[0]["created_ms"], 90 * 86_400_000)
        self.assertEqual((tokens[0]["subject"], tokens[1]["subject"]), ("billing", "acme"))
        self.assertNotIn("expires_ms", tokens[1])
        self.assertNotIn("sha256", tokens[0])
        table = token("list", "--file", self.file)
        self.assertIn("the nightly job", table.stdout)
        self.assertIn("never", table.stdout)

    def test_a_revoked_token_stays_in_the_list(self):
        first, second = self.make(), self.make()
        with open(self.file, "a", encoding="utf-8") as file:
            file.write("# a note of mine\n")
        done = token("revoke", first["id"], "--file", self.file)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = token("revoke", second["token"], "--file", self.file, "--json")
        self.assertEqual(json.loads(done.stdout), {"revoked": second["id"]})
        self.assertEqual([t["state"] for t in self.listed()], ["revoked", "revoked"])
        self.assertIn("# a note of mine\n", self.read())

    def test_what_is_wrong_is_said_and_changes_nothing(self):
        self.make()
        before = self.read()
        wrong = [
            (("make", "--tenant", "a b", "--roles", "admin"), 64, "tenant"),
            (("make", "--tenant", "a", "--roles", "admn"), 64, "did you mean 'admin'?"),
            (("make", "--tenant", "a", "--roles", "admin", "--expires", "soon"), 64, "90d"),
            (("make", "--tenant", "a", "--roles", "admin", "--expires", "0d"), 64, "90d"),
            (("make", "--tenant", "a", "--roles", "admin", "--expires", "9" * 18 + "w"), 64, "90d"),
            (("make", "--roles", "admin"), 64, "--tenant"),
            (("revoke", "0123456789abcdef"), 1, "HX1003"),
            ((), 64, "needs one of: make list revoke"),
        ]
        for arguments, code, said in wrong:
            done = token(*arguments, *(("--file", self.file) if arguments else ()))
            self.assertEqual(done.returncode, code, arguments)
            self.assertIn(said, done.stderr)
        self.assertEqual(self.read(), before)
        missing = os.path.join(self.top, "missing")
        for arguments in (("list",), ("revoke", "0123456789abcdef")):
            done = token(*arguments, "--file", missing)
            self.assertEqual(done.returncode, 1)
            self.assertIn("HX1003", done.stderr)
        self.assertFalse(os.path.exists(missing))

    def test_a_broken_file_is_left_alone_and_the_line_is_named(self):
        self.make()
        with open(self.file, "a", encoding="utf-8") as file:
            file.write("{}\n")
        before = self.read()
        for arguments in (("list",), ("make", "--tenant", "a", "--roles", "admin")):
            done = token(*arguments, "--file", self.file)
            self.assertEqual(done.returncode, 64)
            self.assertIn("line 2", done.stderr)
        self.assertEqual(self.read(), before)

    def test_nothing_is_lost_when_many_make_tokens_at_once(self):
        makers = [subprocess.Popen([HAPAX, "token", "make", "--tenant", "acme", "--roles", "admin",
                                    "--file", self.file], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL) for _ in range(16)]
        self.assertEqual([maker.wait(60) for maker in makers], [0] * 16)
        self.assertEqual(len(self.listed()), 16)

    def test_help_has_examples(self):
        for command in ((), ("make",), ("list",), ("revoke",)):
            done = token(*command, "--help")
            self.assertEqual(done.returncode, 0)
            self.assertIn("Example: hapax token", done.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
