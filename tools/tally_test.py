#!/usr/bin/env python3
"""Tests of tally.py on JUnit files as ctest 3.25 writes them."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TALLY = Path(__file__).with_name("tally.py")

PASSED = '<testcase name="Ok" status="run"/>'
FAILED = '<testcase name="Bad" status="fail"><failure message="Failed"/></testcase>'
DISABLED = '<testcase name="Off" status="disabled"><skipped message="Disabled"/></testcase>'
NOT_BUILT = """<testcase name="Gone" status="notrun">
<skipped message="Unable to find executable"/></testcase>"""
SKIPPED = """<testcase name="Later" status="notrun">
<skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>
<system-out>[ RUN      ] Later
src/x_test.cc:7: Skipped
needs O_DIRECT
on this disk
[  SKIPPED ] Later (0 ms)
</system-out></testcase>"""
SKIPPED_IN_PYTHON = """<testcase name="e2e" status="notrun">
<skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>
<system-out>test_a (x.T.test_a) ... ok
test_b (x.T.test_b) ... skipped 'golang-go is not installed'
test_c (x.T.test_c) ... skipped 'golang-go is not installed'
test_d (x.T.test_d) ... skipped "there's no disk"
</system-out></testcase>"""


class Tally(unittest.TestCase):
    def tally(self, *cases, broken=(), ci="false"):
        with tempfile.TemporaryDirectory() as folder:
            if cases:
                xml = f"<testsuite>{''.join(cases)}</testsuite>"
                (Path(folder) / "release.xml").write_text(xml)
            command = [sys.executable, "-B", str(TALLY), *(f"--broken={what}" for what in broken)]
            done = subprocess.run(
                [*command, folder], env={"CI": ci}, capture_output=True, text=True, check=False
            )
        return done.returncode, done.stdout, done.stdout.splitlines()[-1]

    def test_closing_line_without_skips(self):
        code, _, last = self.tally(PASSED, PASSED)
        self.assertEqual((code, last), (0, "2 passed, 0 failed"))

    def test_reasons_of_python_tests(self):
        _, out, _ = self.tally(SKIPPED_IN_PYTHON)
        self.assertIn("e2e: golang-go is not installed; there's no disk\n", out)

    def test_failures_set_the_exit_code(self):
        code, out, last = self.tally(PASSED, FAILED)
        self.assertEqual((code, last), (1, "1 passed, 1 failed"))
        self.assertIn("FAILED release: Bad: Failed", out)

    def test_skips_are_listed_with_their_reason(self):
        code, out, last = self.tally(PASSED, SKIPPED, DISABLED)
        self.assertEqual((code, last), (0, "1 passed, 0 failed, 2 skipped"))
        self.assertIn("SKIPPED release: Later: needs O_DIRECT on this disk\n", out)
        self.assertNotIn("!!!", out)

    def test_skips_are_loud_in_ci(self):
        _, out, _ = self.tally(PASSED, SKIPPED, ci="true")
        self.assertIn("!!! 1 TESTS DID NOT RUN", out)

    def test_a_test_whose_binary_is_missing_failed(self):
        code, _, last = self.tally(PASSED, NOT_BUILT)
        self.assertEqual((code, last), (1, "1 passed, 1 failed"))

    def test_a_broken_build_is_a_failure(self):
        code, _, last = self.tally(PASSED, broken=["the tsan build"])
        self.assertEqual((code, last), (1, "1 passed, 1 failed"))

    def test_a_run_without_tests_is_a_failure(self):
        code, out, last = self.tally("")
        self.assertEqual((code, last), (1, "0 passed, 1 failed"))
        self.assertIn("FAILED release: no test was found", out)

    def test_nothing_at_all_is_a_failure(self):
        code, _, last = self.tally()
        self.assertEqual((code, last), (1, "0 passed, 1 failed"))


if __name__ == "__main__":
    unittest.main()
