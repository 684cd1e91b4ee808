"""What packaging/Dockerfile installs, against what the build needs and what the command is linked
with: no engine for containers is needed to see that a package is missing. And what systemd and the
allocator are told."""

import configparser
import os
import re
import shutil
import subprocess
import unittest

import running

HAPAX, SOURCE = running.arguments()

NOT_IN_AN_IMAGE = {"ccache", "libgtest-dev", "libgmock-dev", "librapidcheck-dev"}
IN_EVERY_IMAGE = {"libc6", "libgcc-s1", "libstdc++6"}  # apt itself needs them
NOT_LINKED = {"ca-certificates"}  # who may sign for https


def text_of(*names):
    with open(os.path.join(SOURCE, *names), encoding="utf-8") as file:
        return file.read()


def run(*words):
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=True).stdout


def stages():
    """The packages that each stage of the Dockerfile installs."""
    file = text_of("packaging", "Dockerfile").replace("\\\n", " ")
    found = re.findall(r"apt-get install -y --no-install-recommends ([^&]*)&&", file)
    return [set(packages.split()) for packages in found]


def build_packages():
    section = text_of("tools", "packages.txt").split("[build]")[1].split("\n[")[0]
    return set(re.findall(r"(?m)^([a-z][^\s#]*)", section.split("\n", 1)[1]))


def package_of(path):
    for name in (path, os.path.realpath(path)):  # /lib may be /usr/lib
        done = subprocess.run(["dpkg-query", "--search", name], capture_output=True, text=True,
                              timeout=60, check=False)
        if done.returncode == 0:
            return done.stdout.split(":")[0]
    raise AssertionError("no package has " + path)


class Dockerfile(unittest.TestCase):
    def test_the_image_is_built_with_what_the_build_needs(self):
        self.assertEqual(stages()[0], build_packages() - NOT_IN_AN_IMAGE)

    @unittest.skipUnless(shutil.which("dpkg-query"), "this is not Debian")
    def test_the_image_has_what_the_programs_are_linked_with(self):
        linked = set()
        for program in (HAPAX, os.path.join(os.path.dirname(HAPAX), "hapax-jq")):
            needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "-d", program)))
            places = dict(re.findall(r"(\S+) => (\S+)", run("ldd", program)))
            linked |= {package_of(places[name]) for name in needed if name in places}
        self.assertEqual(stages()[1], (linked - IN_EVERY_IMAGE) | NOT_LINKED)

    def test_the_command_is_built_without_the_tests(self):
        self.assertIn("-DHAPAX_TESTS=OFF", text_of("packaging", "Dockerfile"))


class Allocator(unittest.TestCase):
    def test_memory_that_nobody_needs_goes_back_without_further_work(self):
        if "libjemalloc" not in run("readelf", "-d", HAPAX):
            self.skipTest("this build has an allocator of its own")
        environment = dict(os.environ, MALLOC_CONF="stats_print:true")
        done = subprocess.run([HAPAX, "--version"], capture_output=True, text=True, timeout=60,
                              env=environment, check=True)
        self.assertRegex(done.stderr, r"opt\.background_thread: true")


class Service(unittest.TestCase):
    """packaging/hapax.service, as systemd reads it."""

    def settings(self, section):
        unit = configparser.RawConfigParser(strict=False, delimiters=("=",), interpolation=None)
        unit.optionxform = str
        unit.read_string(text_of("packaging", "hapax.service"))
        return dict(unit[section])

    def test_it_is_started_again_however_long_the_database_is_away(self):
        self.assertEqual(self.settings("Unit")["StartLimitIntervalSec"], "0")
        self.assertNotIn("StartLimitBurst", self.settings("Unit"))
        self.assertEqual(self.settings("Service")["Restart"], "on-failure")
        self.assertGreaterEqual(int(self.settings("Service")["RestartSec"]), 1)

    def test_what_does_not_get_better_is_not_tried_again(self):
        prevented = self.settings("Service")["RestartPreventExitStatus"].split()
        self.assertEqual(prevented, ["64", "65"])  # usage, damage
        done = subprocess.run([HAPAX, "serve", "--config", os.path.join(SOURCE, "missing.yaml")],
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 64, done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
