"""The command lines of README.md and of the pages in docs, run in order as a reader would.

Blocks marked `sh` are for a shell, blocks marked `redis` for redis-cli. Lines that begin with #
below a command are what it prints, … stands for anything; without them it must succeed. Blocks
marked `yaml` or `python` whose first line is a comment with a path are written there first. Each
page has a shell, a folder and a server of its own; the standard ports and folders are replaced by
free ones.
"""

import base64
import glob
import os
import re
import subprocess
import unittest
from typing import NamedTuple

import running
from postgres import Cluster

HAPAX, SOURCE = running.arguments()

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
COMMAND = re.compile(r"^\s*(?:\S*hapax|curl|redis-cli|openssl|kill|psql|sqlite3|python3)\b", re.M)
PATH = re.compile(r"# (\S+\.(?:yaml|py))\n")

# A workflow that some pages want.
SHOP = ("workflows: [{id: shop, source: {type: http}, "
        'endpoint: {url: "http://127.0.0.1:1/hook"}}]\n')

# What is not run here, with the reason.
EXCLUDED = {
    "./dev ": "builds this tree; dev_test.py",
    "git clone ": "there is no network",
    "c++ ": "needs an installed library; tests/install",
    "cmake ": "needs an installed library; tests/install",
    "useradd ": "changes the machine",
    "chown ": "changes the machine",
    "systemctl ": "changes the machine",
    "journalctl ": "changes the machine",
}

# A refusal counts as failure, although curl and redis-cli only print it.
PROLOGUE = r"""
set -o pipefail
trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT
curl() {
  if [[ $1 == -sf ]]; then command curl "$@"; else command curl -sS --fail-with-body "$@"; fi
}
redis-cli() { command redis-cli -e "$@"; }
psql() { command psql -X -v ON_ERROR_STOP=1 "$@"; }
told_its_addresses() {
  for _ in {1..600}; do
    if grep -q ^RESP "$1"; then return; fi
    sleep 0.05
  done
  false
}
"""


class Command(NamedTuple):
    line: int
    text: str
    prints: str  # empty: whatever it likes


def read(path):
    with open(os.path.join(SOURCE, path), encoding="utf-8") as file:
        return file.read()


def blocks(text):
    for found in BLOCK.finditer(text):
        yield text.count("\n", 0, found.start()) + 2, found.group(1), found.group(2)


def commands(first, block, before=""):
    """A command ends with the line that has no backslash at its end."""
    line, text, prints = first, "", ""
    for number, piece in enumerate(block.splitlines(), first):
        if piece.startswith("# ") and not text.endswith("\\\n"):
            prints += piece[2:] + "\n"
            continue
        if text and not text.endswith("\\\n"):
            yield Command(line, before + text, prints)
            text, prints = "", ""
        if not text:
            line = number
        text += piece + "\n" * piece.endswith("\\")
    if text:
        yield Command(line, before + text, prints)


def commands_of(text):
    for line, language, block in blocks(text):
        if language == "sh":
            yield from commands(line, block)
        if language == "redis":
            yield from commands(line, block, "redis-cli -p 7172 ")


def excluded(command):
    return command.text.startswith(tuple(EXCLUDED))


def fits(expected, got):
    pattern = ".*?".join(re.escape(part) for part in expected.strip().split("…"))
    return re.fullmatch(re.sub(r"(?:\\ )+", r"\\s+", pattern), got.strip(), re.S)


class Pages(running.FolderTest):
    def setUp(self):
        super().setUp()
        for name in ("build", "bin", "etc/hapax", "var/lib"):
            os.makedirs(self.path(name))
        for name in ("build/hapax", "bin/hapax"):
            os.symlink(HAPAX, self.path(name))
        os.symlink("/usr/bin/python3", self.path("bin/python3"))  # Debian's, with its packages.
        self.http, self.resp = running.free_port(), running.free_port()
        self.second = running.free_port(), running.free_port()
        self.receiver = running.free_port()

    def path(self, name):
        return os.path.join(self.folder, name)

    def here(self, text):
        text = re.sub(r"(?<![\w.])/(etc|var/lib)/hapax", rf"{self.folder}/\1/hapax", text)
        text = re.sub(r"\b7271\b", str(self.second[0]), text)
        text = re.sub(r"\b7272\b", str(self.second[1]), text)
        text = re.sub(r"\b9000\b", str(self.receiver), text)
        text = re.sub(r"\b7171\b", str(self.http), text)
        return re.sub(r"\b7172\b", str(self.resp), text)

    def write_files(self, text):
        for _, language, block in blocks(text):
            named = PATH.match(block) if language in ("yaml", "python") else None
            if named:
                path = self.path(self.here(named.group(1)))
                with open(path, "w", encoding="utf-8") as file:
                    file.write(self.here(block))

    def make_certificate(self):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=localhost",
                        "-keyout", self.path("etc/hapax/key.pem"),
                        "-out", self.path("etc/hapax/cert.pem")], capture_output=True, check=True)

    def serve(self, config=None, environment=None):
        server = super().serve(config, environment)
        self.http, self.resp = server.port, server.resp_port

    def run_all(self, told, **variables):
        """Runs them in one shell, which notes the output and the exit code of each."""
        script = PROLOGUE
        for number, command in enumerate(told):
            script += f"{{ {self.here(command.text)}\n}} "
            script += f">out.{number} 2>errors.{number}\necho $? >code.{number}\n"
            waits = any("/health/ready" in later.text for later in told[number + 1:number + 3])
            if re.search(r"hapax serve\b.*&$", command.text) and not waits:
                script += f"told_its_addresses out.{number} || echo 1 >code.{number}\n"
        clean = {k: v for k, v in os.environ.items() if not k.startswith("HAPAX_")}
        environment = {**clean, **variables, "PATH": self.path("bin") + ":" + clean["PATH"],
                       "HAPAX_SERVER_HTTP_ADDRESS": f"127.0.0.1:{self.http}",
                       "HAPAX_SERVER_RESP_ADDRESS": f"127.0.0.1:{self.resp}"}
        subprocess.run(["bash", "-c", script], cwd=self.folder, env=environment, timeout=200,
                       stdin=subprocess.DEVNULL, check=False)

    def check_page(self, page, **variables):
        text = read(page)
        told = [command for command in commands_of(text) if not excluded(command)]
        self.write_files(text)
        self.run_all(told, **variables)
        for number, command in enumerate(told):
            with self.subTest(f"{page}:{command.line}", command=command.text):
                noted = [self.noted(name, number) for name in ("out", "errors", "code")]
                self.check(command, *noted)

    def noted(self, name, number):
        with open(self.path(f"{name}.{number}"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def check(self, command, output, errors, code):
        if not command.prints:
            self.assertEqual(code.strip(), "0", output + errors)
        elif not fits(command.prints, output):
            self.fail(f"it printed\n{output}{errors}\nand the page shows\n{command.prints}")

    # Pages that start their server themselves.

    def test_readme(self):
        self.check_page("README.md")

    def test_running(self):
        self.make_certificate()
        self.check_page("docs/guide/running.md")

    def test_delivery_keys(self):
        self.check_page("docs/reference/delivery-keys.md")

    def test_event_signatures(self):
        self.check_page("docs/reference/event-signatures.md")

    def test_configuration(self):
        self.make_certificate()
        self.check_page("docs/reference/config.md")

    def test_alerts(self):
        self.check_page("docs/reference/alerts.md")

    def test_workflows(self):
        self.check_page("docs/reference/workflows.md")

    def test_webhooks(self):
        self.check_page("docs/guide/webhooks.md", HAPAX_URL=f"http://127.0.0.1:{self.http}")

    def test_choose_a_guarantee(self):
        self.check_page("docs/guide/choose-a-guarantee.md")

    # Pages on an application's database.

    def check_database_page(self, page, **variables):
        cluster = Cluster()
        self.addCleanup(cluster.end)
        cluster.psql("CREATE DATABASE shop", "postgres")
        self.check_page(page, PGHOST=cluster.folder, PGUSER="postgres", PGDATABASE="shop",
                        **variables)

    def test_outbox(self):
        self.check_database_page("docs/guide/outbox.md")

    def test_inbox(self):
        self.check_database_page("docs/guide/inbox.md")

    def test_operations(self):
        self.check_database_page("docs/guide/operations.md")

    def test_python(self):
        self.check_database_page("docs/guide/python.md")

    def test_relay(self):
        self.check_database_page("docs/guide/relay.md", HAPAX_URL=f"http://127.0.0.1:{self.http}")

    def test_shared_store(self):
        self.check_database_page("docs/guide/shared-store.md")

    # Pages that say "against a server".

    def test_command(self):
        self.serve(SHOP)
        files = {"order.bin": "\0", "orders.txt": "one\ntwo\n",
                 "records.ndjson": '{"payload":"three"}\n{"payload":"four"}\n'}
        for name, content in files.items():
            with open(self.path(name), "w", encoding="utf-8") as file:
                file.write(content)
        self.check_page("docs/reference/cli.md", HAPAX_URL=f"http://127.0.0.1:{self.http}")

    def test_http(self):
        seal = base64.b64encode(bytes(range(32))).decode()
        self.serve(SHOP + 'server: {secrets_key: "${env:SEAL}"}\n', {"SEAL": seal})
        self.check_page("docs/reference/http.md")

    def test_resp(self):
        self.serve()
        self.check_page("docs/reference/resp.md")

    def test_authentication(self):
        token = self.hapax("token", "make", "--tenant", "acme", "--roles", "consume,admin",
                           "--file", "known")
        self.serve("auth: {tokens_file: known}\n")
        self.check_page("docs/reference/auth.md", HAPAX_TOKEN=token)


class Everything(unittest.TestCase):
    """No command line of a page is left out by mistake."""

    PAGES = ("README.md", *(os.path.relpath(path, SOURCE) for folder in ("guide", "reference")
                            for path in sorted(glob.glob(f"{SOURCE}/docs/{folder}/*.md"))))

    def test_every_block_with_commands_is_marked(self):
        for page in self.PAGES:
            for line, language, block in blocks(read(page)):
                if not language and COMMAND.search(block):
                    self.fail(f"{page}:{line}: mark the block as sh, redis or text")

    def test_every_page_with_commands_is_run(self):
        with open(__file__, encoding="utf-8") as file:
            runs = set(re.findall(r'check_(?:database_)?page\("(.+?)"', file.read()))
        for page in self.PAGES:
            if not all(excluded(command) for command in commands_of(read(page))):
                self.assertIn(page, runs)

    def test_a_command_that_lies_is_noticed(self):
        self.assertTrue(fits('{"sequence":1,…}', '{"sequence":1,"first_seen_ms":17}\n'))
        self.assertTrue(fits("a  1   … b\nc", "a    1 x b\nc\n"))
        self.assertFalse(fits('{"sequence":1,…}', '{"sequence":2,"first_seen_ms":17}\n'))
        self.assertFalse(fits("a", "a\nb"))
        two = list(commands(5, "curl a \\\n  -d b\n# printed\nkill %1\n"))
        self.assertEqual(two, [(5, "curl a \\\n  -d b", "printed\n"), (8, "kill %1", "")])


if __name__ == "__main__":
    unittest.main(verbosity=2)
