"""packaging/hapax.rules.yml: what it asks for is on the pages of the programs."""

import os
import re
import shutil
import subprocess
import unittest

import delivering
import running

_, SOURCE = running.arguments()
RULES = os.path.join(SOURCE, "packaging", "hapax.rules.yml")

CONFIG = """
metrics: {{open: true}}
workflows:
  - id: shop
    tenant: acme
    source: {{type: http}}
    endpoint: {{url: "{url}"}}
"""


def expressions():
    """The PromQL of each rule, of one line or of several that are indented below `expr: |`."""
    with open(RULES, encoding="utf-8") as file:
        text = file.read()
    found = re.findall(r"\n        expr: (?:\|\n((?:          .*\n)+)|(.*)\n)", text)
    return [block or line for block, line in found]


def names_in(expression):
    words = re.findall(r"[a-z][a-z0-9_]*_[a-z0-9_]+", re.sub(r'"[^"]*"', "", expression))
    return {word for word in words if word not in ("histogram_quantile", "group_left")}


class Rules(running.SignedInTest, delivering.DeliveryTest):
    def test_every_rule_has_an_expression(self):
        with open(RULES, encoding="utf-8") as file:
            text = file.read()
        self.assertEqual(text.count("- alert: "), len(expressions()))
        self.assertGreaterEqual(len(expressions()), 14)

    def test_every_metric_is_on_the_page_of_a_server(self):
        server = self.serve(self.AUTH + CONFIG.format(url=self.endpoint().url))
        token = running.jwt("acme")
        server.call("POST", "/workflows/shop/events", {"id": "e1", "payload": "1"}, token=token)
        server.call("PUT", "/streams/orders", token=token)
        wanted = set().union(*map(names_in, expressions()))

        def there():
            page = server.call("GET", "/metrics").body.decode()
            return set(re.findall(r"(?m)^([a-z_0-9]+)[{ ]", page))
        running.wait_for(lambda: wanted <= there(), lambda: f"{sorted(wanted - there())}")

    @unittest.skipUnless(shutil.which("promtool"), "promtool is not installed")
    def test_prometheus_understands_it(self):
        done = subprocess.run(["promtool", "check", "rules", RULES], capture_output=True,
                              text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
