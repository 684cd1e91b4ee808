"""A property-based client makes requests from /openapi.json, and compares every answer with it.

The client is schemathesis, in a folder of its own below the user's cache. A machine that cannot get
it skips the test, unless it is one of CI.
"""

import os
import subprocess
import unittest

import pypi
import running

running.arguments()

# Both decide what is made from the seed.
PINNED = ("schemathesis==4.32.5", "hypothesis==6.170.15")
# Well-formed requests may speak of what is not there (404), is held by another or exists otherwise
# (409), is not where it was expected (412), or is known with other content (422); never 400 or 413.
# What breaks the schema is refused, and is not merely something that does not hold.
CONFIG = """
[checks]
positive_data_acceptance.expected-statuses = ["2xx", "404", "409", "412", "422"]
negative_data_rejection.expected-statuses = ["400", "404", "405", "409", "413", "415"]
"""


class Schemathesis(running.ServerTest):
    CONFIG = ("workflows: [{id: '0', source: {type: http}, "
              'endpoint: {url: "http://127.0.0.1:1/hook"}}]\n'
              'server: {secrets_key: "${env:SEAL}"}\n')
    ENVIRONMENT = {"SEAL": "a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s="}

    def prepare(self):
        """Names that the client makes often, so that it comes further than "there is no such"."""
        for name in ("0", "00"):
            self.call("PUT", "/streams/" + name, {})
            self.call("POST", f"/streams/{name}/records", {"payload": "x", "id": "0"})
            self.call("PUT", f"/streams/{name}/consumers/0", {})
        with open(os.path.join(self.folder, "schemathesis.toml"), "w", encoding="utf-8") as file:
            file.write(CONFIG)

    def test_nothing_is_found(self):
        command = pypi.wanted(self, PINNED) + "/bin/schemathesis"
        self.prepare()
        hooks = {"SCHEMATHESIS_HOOKS": "schemathesis_hooks", "PYTHONDONTWRITEBYTECODE": "1",
                 "PYTHONPATH": os.path.dirname(os.path.abspath(__file__))}
        done = subprocess.run(
            [command, "run", self.server.url + "/openapi.json", "--url", self.server.url,
             "--seed", "1", "--max-examples", "3", "--phases", "examples,coverage,fuzzing,stateful",
             # The checks of the hooks ask them, where a schema can tell.
             "--exclude-checks", "positive_data_acceptance,negative_data_rejection",
             "--continue-on-failure", "--request-timeout", "70", "--warnings", "off", "--no-color"],
            capture_output=True, text=True, timeout=600, cwd=self.folder, check=False,
            env={**os.environ, **hooks})
        found = done.stdout.partition("= FAILURES =")
        self.assertEqual(done.returncode, 0, (found[2] or found[0]) + done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
