"""A property-based client makes requests from /openapi.json, and compares every answer with it.

The client is schemathesis, in a folder of its own below the user's cache. A machine that cannot get
it skips the test, unless it is one of CI.
"""

import fcntl
import os
import subprocess
import sys
import unittest

import running

running.arguments()

# Both decide what is made from the seed.
PINNED = ("schemathesis==4.32.5", "hypothesis==6.170.15")
CACHE = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
FOLDER = os.path.join(CACHE, "hapax", "-".join(PINNED).replace("=", ""))


def install():
    """The path of the command. Whoever comes at the same time waits."""
    os.makedirs(FOLDER, exist_ok=True)
    done = os.path.join(FOLDER, "installed")
    with open(os.path.join(FOLDER, "lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(done):
            for command in ([sys.executable, "-m", "venv", "--clear", FOLDER + "/venv"],
                            [FOLDER + "/venv/bin/pip", "install", "--quiet", *PINNED]):
                subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
            with open(done, "w", encoding="utf-8"):
                pass
    return FOLDER + "/venv/bin/schemathesis"


class Schemathesis(running.ServerTest):
    def command(self):
        try:
            return install()
        except (OSError, subprocess.SubprocessError) as error:
            why = f"{PINNED[0]} could not be installed: {getattr(error, 'stderr', None) or error}"
            if os.environ.get("CI") == "true":
                self.fail(why)
            self.skipTest(why)

    def test_nothing_is_found(self):
        # Limits of values are not in the document: what it allows may still be refused (4xx).
        done = subprocess.run(
            [self.command(), "run", self.server.url + "/openapi.json", "--url", self.server.url,
             "--seed", "1", "--max-examples", "5", "--phases", "fuzzing",
             "--exclude-checks", "positive_data_acceptance", "--request-timeout", "70",
             "--no-color"],
            capture_output=True, text=True, timeout=600, cwd=self.folder, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
