"""examples/retail: three workflows end to end, and kill -9 in between."""

import os
import subprocess
import sys
import unittest

from running import arguments

HAPAX, SOURCE = arguments()


class RetailTest(unittest.TestCase):
    def test_nothing_is_lost_and_nothing_is_taken_twice(self):
        program = os.path.join(SOURCE, "examples", "retail", "retail.py")
        done = subprocess.run([sys.executable, "-B", program, "--hapax", HAPAX, "--count", "120"],
                              capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("lost 0, taken twice 0", done.stdout)


if __name__ == "__main__":
    unittest.main()
