"""`hapax check` and `hapax serve --config`, and the pages that are made from the table of keys."""

import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request

HAPAX = os.path.abspath(sys.argv.pop(1))
SOURCE = os.path.abspath(sys.argv.pop(1))
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("HAPAX_")}


def hapax(*arguments, **variables):
    return subprocess.run([HAPAX, *arguments], capture_output=True, text=True, timeout=60,
                          env={**CLEAN, **variables})


def page(name):
    with open(os.path.join(SOURCE, "docs/reference", name), encoding="utf-8") as file:
        return file.read()


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="hapax-e2e-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def write(self, text, name="hapax.yaml"):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path


class Check(Folder):
    def check_refused(self, text, *why):
        path = self.write(text)
        done = subprocess.run([HAPAX, "check", path], capture_output=True, text=True, timeout=60,
                              env=CLEAN, cwd=self.folder)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        for words in ("A start is refused", *why):
            self.assertIn(words, done.stderr)

    def test_check_compiles_transforms_and_looks_for_secrets(self):
        path = self.write("""
streams: [{stream: orders}]
workflows:
  - id: erp
    source: {type: stream, stream: orders}
    transform: {jq: ".lines[] |"}
    endpoint: {url: "https://erp.example/", auth: {type: bearer, token: "${env:NO_SUCH_TOKEN}"}}
  - id: good
    source: {type: stream, stream: orders}
    transform: {jq: ".lines"}
    endpoint: {url: "https://erp.example/", auth: {type: bearer, token: "${env:PATH}"}}
""", "flows.yaml")
        done = hapax("check", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("workflow 'erp': ${env:NO_SUCH_TOKEN} is not there", done.stderr)
        self.assertIn("workflow 'erp': transform.jq: ", done.stderr)
        self.assertNotIn("workflow 'good'", done.stderr)
        self.assertNotIn(os.environ["PATH"], done.stderr)
        told = json.loads(hapax("check", path, "--json").stdout)
        self.assertEqual(len(told["missing_here"]), 2)

    def test_what_could_not_start_is_refused(self):
        tls = "server: {http: {tls: {certificate: cert.pem, key: key.pem}}}\n"
        self.check_refused(tls, "cert.pem")
        self.check_refused("auth: {tokens_file: tokens}\n", "tokens")
        key = "auth: {jwt: {keys: [{file: key.pem, algorithm: %s}], audience: a}}\n"
        self.check_refused(key % "ES256", "key.pem")
        subprocess.run(["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out",
                        "key.pem"], cwd=self.folder, check=True, capture_output=True, timeout=60)
        self.check_refused(key % "ES256", "key.pem", "a private key")
        self.check_refused(key % "HS256", "algorithm", "ES256")
        self.check_refused("tenants: {'acme corp': {rate: 1}}\n", "no token can have", "acme corp")
        self.check_refused("streams: [{stream: s, tenant: 'a b'}]\n", "no token can have", "a b")

    def test_a_secret_that_everybody_reads_is_warned_of(self):
        secret = self.write("0123456789abcdef" * 4, "secret")
        path = self.write(f"auth: {{jwt: {{keys: [{{file: {secret}, algorithm: HS256}}]}}}}\n")
        for mode, warns in ((0o644, True), (0o640, False)):
            os.chmod(secret, mode)
            done = hapax("check", path)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(f"can read {secret}" in done.stderr, warns, done.stderr)
            told = json.loads(hapax("check", path, "--json").stdout)
            self.assertEqual(len(told["loose_secrets"]), 1 if warns else 0)

    def test_a_password_is_not_shown(self):
        for uri in ("postgres://u:topsecret@h/db", "postgres:///db?password=topsecret"):
            path = self.write(f"server: {{store: '{uri}'}}\n")
            for done in (hapax("check", path), hapax("check", path, "--json")):
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertNotIn("topsecret", done.stdout + done.stderr)

    def test_every_error_is_told_with_its_place(self):
        path = self.write("server:\n  htpp: {}\n  loops: many\nlog: {level: inform}\n")
        done = hapax("check", path)
        self.assertEqual(done.returncode, 64)
        self.assertEqual(done.stdout, "")
        self.assertIn(f"{path}:2:3: server.htpp is not known; did you mean 'http'?", done.stderr)
        self.assertIn(f"{path}:3:10: server.loops must be a whole number", done.stderr)
        self.assertIn(f"{path}:4:14: log.level must be one of", done.stderr)
        told = json.loads(hapax("check", path, "--json").stdout)
        self.assertEqual((told["valid"], len(told["errors"])), (False, 3))
        self.assertEqual((told["errors"][0]["line"], told["errors"][0]["column"]), (2, 3))

    def test_a_good_file_is_summed_up(self):
        path = self.write("server: {loops: 2}\nstreams: [{stream: orders}]\n")
        done = hapax("check", path)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("orders", done.stdout)
        told = json.loads(hapax("check", path, "--json", HAPAX_SERVER_LOOPS="3").stdout)
        self.assertEqual(told["config"]["server"]["loops"], 3)

    def test_what_cannot_be_done_is_no(self):
        done = hapax("check", self.write("server: {http: {address: ':80'}}\n"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("A start is refused", done.stderr)

    def test_wrong_arguments(self):
        self.assertEqual(hapax("check").returncode, 64)
        self.assertEqual(hapax("check", self.folder).returncode, 64)
        self.assertEqual(hapax("check", self.folder + "/none").returncode, 64)


class Workflows(Folder):
    GOOD = ("workflows:\n  - id: orders\n    source: {type: stream, stream: orders}\n"
            "    endpoint: {url: 'https://erp.example', auth: {type: bearer, token: %s}}\n")

    def test_what_is_unsafe_is_refused_with_its_place_and_its_arithmetic(self):
        path = self.write("workflows:\n  - id: orders\n    source: {type: stream, stream: orders}\n"
                          "    endpoint: {url: 'https://erp.example'}\n"
                          "    delivery: {deduplication: {ttl: 1m}}\n")
        done = hapax("check", path)
        self.assertEqual(done.returncode, 64)
        self.assertIn(f"{path}:5:32: workflows.0.delivery.deduplication.ttl 1m is shorter",
                      done.stderr)
        self.assertIn("2m18s", done.stderr)
        told = json.loads(hapax("check", path, "--json").stdout)
        self.assertEqual((told["valid"], told["errors"][0]["line"]), (False, 5))
        served = hapax("serve", "--config", path, "--data", self.folder + "/d")
        self.assertEqual(served.returncode, 64)

    def test_a_warning_changes_no_exit_code_and_shows_no_secret(self):
        path = self.write(self.GOOD % "hunter2")
        for arguments in (("check", path), ("check", path, "--json"), ("explain", "--file", path)):
            done = hapax(*arguments)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn("hunter2", done.stdout + done.stderr)
        done = hapax("check", path)
        self.assertIn("is a secret in clear text", done.stderr)
        self.assertIn("orders (idempotent-keys)", done.stdout)
        told = json.loads(hapax("check", path, "--json").stdout)
        self.assertEqual(told["workflows"][0]["delivery"]["retries"]["maxAttempts"], 5)
        self.assertEqual(len(told["warnings"]), 1)

    def test_a_workflow_is_explained(self):
        path = self.write(self.GOOD % "'${env:T}'")
        done = hapax("explain", "orders", "--file", path)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for words in ("orders: from stream 'orders' to https://erp.example, idempotent-keys",
                      "What is guaranteed", "Which crash windows remain", "What the client must do",
                      "Latency"):
            self.assertIn(words, done.stdout)
        self.assertLessEqual(max(map(len, done.stdout.splitlines())), 100)
        told = json.loads(hapax("explain", "orders", "--file", path, "--json").stdout)
        self.assertIn("The client must", told["workflows"][0]["endpoints"][0]["client"])

    def test_what_is_not_there_or_refused_is_told(self):
        path = self.write(self.GOOD % "'${env:T}'")
        done = hapax("explain", "order", "--file", path)
        self.assertEqual(done.returncode, 66)
        self.assertIn("did you mean 'orders'?", done.stderr)
        self.assertEqual(hapax("explain", "a", "--file", self.folder + "/none").returncode, 64)
        path = self.write("workflows: [{id: a, delivery: {deduplication: {keyFields: [table]}}}]\n")
        done = hapax("explain", "a", "--file", path)
        self.assertEqual(done.returncode, 64)
        self.assertIn("lacks primaryKey", done.stderr)
        self.assertIn("What is guaranteed", done.stdout)


class Pages(Folder):
    def test_the_schema_is_what_the_program_prints(self):
        printed = hapax("check", "--schema").stdout
        self.assertEqual(page("hapax.schema.json"), printed,
                         "make it anew: hapax check --schema > docs/reference/hapax.schema.json")
        json.loads(printed)

    def test_the_tables_are_what_the_program_prints(self):
        between = re.search(r"<!-- keys -->\n\n(.*)<!-- end of keys -->", page("config.md"), re.S)
        self.assertEqual(between.group(1), hapax("check", "--keys").stdout,
                         "put the output of hapax check --keys between the marks")

    def test_every_example_of_the_page_is_valid(self):
        pages = page("config.md") + page("workflows.md") + page("alerts.md")
        examples = re.findall(r"^```yaml\n(.*?)^```", pages, re.S | re.M)
        self.assertGreaterEqual(len(examples), 3)
        for example in examples:
            told = json.loads(hapax("check", self.write(example), "--json").stdout)
            self.assertEqual(told["errors"], [], example)


class Serve(Folder):
    def start(self, *arguments, **variables):
        process = subprocess.Popen([HAPAX, "serve", *arguments], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, cwd=self.folder,
                                   env={**CLEAN, **variables})
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        address = process.stdout.readline().split()[1]
        process.stdout.readline()
        return process, address + "/api/v1"

    def stop(self, process):
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=60), 0)

    def get(self, url):
        with urllib.request.urlopen(url, timeout=30) as answer:
            return json.load(answer)

    def test_flags_win_over_the_environment_over_the_file(self):
        path = self.write("server: {data: of-file, http: {address: '127.0.0.1:1'},"
                          " resp: {address: '127.0.0.1:0'}}\n")
        process, _ = self.start("--config", path, "--http", "127.0.0.1:0",
                                HAPAX_SERVER_DATA="of-environment", HAPAX_SERVER_HTTP_ADDRESS=":1")
        self.stop(process)
        self.assertTrue(os.path.isdir(os.path.join(self.folder, "of-environment")))
        self.assertFalse(os.path.exists(os.path.join(self.folder, "of-file")))

    def test_streams_are_there_and_follow_the_file(self):
        head = "server: {data: d, http: {address: '127.0.0.1:0'}, resp: {address: ''}}\nstreams:\n"
        for seconds in (60, 60, 120):
            path = self.write(head + f"  - {{stream: orders, window_s: {seconds}}}\n")
            process, url = self.start("--config", path)
            self.assertIn(str(seconds), json.dumps(self.get(url + "/streams/orders")))
            self.stop(process)

    def test_limits_of_the_file_hold(self):
        path = self.write("server: {data: d, http: {address: '127.0.0.1:0'}, resp: {address: ''}}\n"
                          "limits: {http: {body_bytes_max: 1KiB}}\nstreams: [{stream: s}]\n")
        _, url = self.start("--config", path)
        body = json.dumps({"payload": "x" * 2000}).encode()
        with self.assertRaises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(url + "/streams/s/records", body, timeout=30)
        self.assertEqual(refused.exception.code, 413)
        refused.exception.close()

    EC = ("ec", "-pkeyopt", "ec_paramgen_curve:P-256")

    def make_certificate(self, kind=EC):
        subprocess.run(["openssl", "req", "-x509", "-newkey", *kind, "-nodes", "-days", "2",
                        "-subj", "/CN=localhost",
                        "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem",
                        "-out", "cert.pem"],
                       cwd=self.folder, check=True, capture_output=True, timeout=60)

    def serial(self, url):
        """The serial number of the certificate it shows, verified against the file."""
        host, port = url.removeprefix("https://").split("/")[0].split(":")
        context = ssl.create_default_context(cafile=os.path.join(self.folder, "cert.pem"))
        with socket.create_connection((host, int(port)), timeout=30) as plain:
            with context.wrap_socket(plain, server_hostname=host) as link:
                return link.getpeercert()["serialNumber"]

    def test_a_front_door_speaks_tls_and_takes_a_new_certificate(self):
        self.make_certificate()
        path = self.write("server:\n  data: d\n  resp: {address: ''}\n"
                          "  http: {address: '127.0.0.1:0',"
                          " tls: {certificate: cert.pem, key: key.pem}}\n"
                          "streams: [{stream: s}]\n")
        process, url = self.start("--config", path)
        self.assertTrue(url.startswith("https://"))
        context = ssl.create_default_context(cafile=os.path.join(self.folder, "cert.pem"))
        with urllib.request.urlopen(url + "/streams/s", timeout=30, context=context) as answer:
            self.assertEqual(answer.status, 200)
        first = self.serial(url)
        self.make_certificate()
        process.send_signal(signal.SIGHUP)
        self.assertIn("certificates were read anew", process.stderr.readline())
        self.assertNotEqual(self.serial(url), first)
        self.stop(process)

    def test_tls_1_2_has_no_static_rsa_and_no_cbc(self):
        self.make_certificate(("rsa:2048",))
        path = self.write("server:\n  data: d\n  resp: {address: ''}\n"
                          "  http: {address: '127.0.0.1:0',"
                          " tls: {certificate: cert.pem, key: key.pem}}\n")
        process, url = self.start("--config", path)
        host, port = url.removeprefix("https://").split("/")[0].split(":")

        def speaks(suite):
            context = ssl.create_default_context(cafile=os.path.join(self.folder, "cert.pem"))
            context.maximum_version = ssl.TLSVersion.TLSv1_2
            context.set_ciphers(suite)
            with socket.create_connection((host, int(port)), timeout=30) as plain:
                try:
                    with context.wrap_socket(plain, server_hostname=host) as link:
                        return link.cipher()[0] == suite
                except ssl.SSLError:
                    return False

        self.assertTrue(speaks("ECDHE-RSA-AES128-GCM-SHA256"))
        self.assertTrue(speaks("ECDHE-RSA-CHACHA20-POLY1305"))
        for suite in ("AES128-GCM-SHA256", "AES256-SHA", "ECDHE-RSA-AES128-SHA",
                      "ECDHE-RSA-AES256-SHA384", "AES128-SHA256"):
            self.assertFalse(speaks(suite), suite)
        self.stop(process)

    def test_a_wrong_file_or_variable_or_missing_keys_refuse_the_start(self):
        data = ("--data", self.folder + "/d")
        path = self.write("server: {lops: 1}\n")
        self.assertEqual(hapax("serve", *data, "--config", path).returncode, 64)
        done = hapax("serve", *data, HAPAX_SERVER_LOPS="1")
        self.assertEqual(done.returncode, 64)
        self.assertIn("HAPAX_SERVER_LOOPS", done.stderr)
        done = hapax("serve", *data, "--config", self.write("auth: {tokens_file: t}\n"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("/t", done.stderr)
        self.assertFalse(os.path.exists(self.folder + "/d"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
