"""`./dev run` with this build's command: the demo, then a server that ends in order.

The script runs in a folder of its own whose cmake does nothing, so that the test builds nothing.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest
import urllib.request

HAPAX = os.path.abspath(sys.argv.pop(1))
SOURCE = os.path.abspath(sys.argv.pop(1))
FREE_PORTS = {"HAPAX_SERVER_HTTP_ADDRESS": "127.0.0.1:0",
              "HAPAX_SERVER_RESP_ADDRESS": "127.0.0.1:0"}


class Run(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="hapax-e2e-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        for name in ("tools", "stubs", "build/release/bin"):
            os.makedirs(os.path.join(self.folder, name))
        shutil.copy(os.path.join(SOURCE, "dev"), self.folder)
        self.write("tools/packages.txt", "[build]\n")
        self.write("stubs/cmake", "#!/bin/sh\n")
        os.symlink(HAPAX, os.path.join(self.folder, "build/release/bin/hapax"))

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)
            os.fchmod(file.fileno(), 0o755)

    def dev(self, *arguments, **environment):
        clean = {k: v for k, v in os.environ.items() if not k.startswith("HAPAX_")}
        clean["PATH"] = os.path.join(self.folder, "stubs") + ":" + clean["PATH"]
        run = subprocess.Popen([os.path.join(self.folder, "dev"), "run", *arguments],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, env={**clean, **environment})
        self.addCleanup(run.communicate)
        self.addCleanup(run.kill)
        return run

    def until(self, run, word):
        """The lines up to the one that begins with the word."""
        lines = []
        for line in run.stdout:
            lines.append(line)
            if line.startswith(word):
                return lines
        self.fail(f"no line {word} in {lines}: {run.stderr.read()}")

    def test_it_shows_the_demo_and_serves_until_it_is_interrupted(self):
        run = self.dev(**FREE_PORTS)
        lines = self.until(run, "RESP")
        self.assertIn("every order, once\n", lines)
        address = next(line for line in lines if line.startswith("HTTP")).split()[1]
        tried = next(line for line in lines if line.startswith("try")).split(None, 1)[1]
        self.assertTrue(tried.startswith("curl -X PUT " + address), tried)
        request = urllib.request.Request(tried.split()[-1], method="PUT")
        with urllib.request.urlopen(request, timeout=30) as answer:
            self.assertEqual(answer.status, 200)
        self.assertTrue(os.path.isdir(os.path.join(self.folder, "build/hapax-data")))
        run.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(timeout=60), 0)

    def test_a_taken_port_is_named_with_the_way_out(self):
        with socket.create_server(("127.0.0.1", 0)) as other:
            taken = "127.0.0.1:%d" % other.getsockname()[1]
            run = self.dev(**{**FREE_PORTS, "HAPAX_SERVER_HTTP_ADDRESS": taken})
            said, wrong = run.communicate(timeout=120)
        self.assertEqual(run.returncode, 1)
        self.assertIn("every order, once", said)
        self.assertIn("./dev run serve --http", said)
        self.assertIn(f"cannot listen on {taken}: Address already in use", wrong)

    def test_a_command_runs_alone(self):
        said, wrong = self.dev("demo", "--orders", "50", "--json").communicate(timeout=120)
        self.assertIn('"stored_once":50', said.replace(" ", ""), wrong)
        self.assertNotIn("HTTP", said)
        run = self.dev("serve", "--http", "127.0.0.1:0", "--resp", "127.0.0.1:0")
        self.assertNotIn("every order, once\n", self.until(run, "RESP"))
        run.send_signal(signal.SIGTERM)
        self.assertEqual(run.wait(timeout=60), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
