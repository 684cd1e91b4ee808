"""The `hapax` command on real data folders: demo, inspect, verify, repair, and what a failing disk
does to a running store. Usage: data_folder_test.py HAPAX SOURCE_TREE"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import running

HAPAX = sys.argv.pop(1)
SOURCE = sys.argv.pop(1)
READER = os.path.join(SOURCE, "tests", "golden", "reader.py")


def run(*arguments, **options):
    return subprocess.run([HAPAX, *arguments], capture_output=True, text=True, timeout=120,
                          **options)


def segments_of(folder):
    return sorted(n for n in os.listdir(folder) if n.startswith("journal-"))


class Store:
    """The store's process of the demo, spoken to by hand."""

    def __init__(self, folder, *before):
        self.process = subprocess.Popen([*before, HAPAX, "demo-store", folder], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)

    def send(self, name, payload):
        self.process.stdin.write(f"{name} {payload}\n")
        self.process.stdin.flush()

    def ask(self, name, payload):
        self.send(name, payload)
        return self.process.stdout.readline().strip()

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.close()

    def stop(self):
        self.process.stdin.close()
        self.process.stdin = None
        self.close()

    def close(self):
        self.out, self.err = self.process.communicate(timeout=60)


class DataFolder(unittest.TestCase):
    def setUp(self):
        self.top = tempfile.mkdtemp(prefix="hapax-e2e-")
        self.folder = os.path.join(self.top, "data")
        self.addCleanup(shutil.rmtree, self.top, ignore_errors=True)

    def make(self, orders=300):
        done = run("demo", "--orders", str(orders), "--data", self.folder, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def inspect(self):
        done = run("inspect", self.folder, "--json")
        return done.returncode, json.loads(done.stdout)

    def test_the_demo_stores_every_order_once_and_a_second_reader_agrees(self):
        told = self.make(1000)
        self.assertEqual(told["stored_once"], 1000)
        self.assertEqual((told["lost"], told["stored_twice"], told["killed"]), (0, 0, 3))
        self.assertGreater(told["retried"], 0)
        read = subprocess.run([sys.executable, READER, self.folder], capture_output=True, text=True)
        self.assertEqual(read.returncode, 0, read.stderr)
        dump = json.loads(read.stdout)
        ids = [record[1] for record in dump["streams"]["orders"]]
        self.assertEqual(len(ids), 1000)
        self.assertEqual(len(set(ids)), 1000)
        code, found = self.inspect()
        self.assertEqual((code, found["last_lsn"]), (0, dump["last_lsn"]))
        self.assertEqual(found["streams"][0]["last"], 1000)
        self.assertEqual(found["ids"], 1000)

    def test_what_was_confirmed_survives_kill_9(self):
        store = Store(self.folder)
        self.assertEqual(store.ask("a", "1"), "fresh")
        store.kill()
        store = Store(self.folder)
        self.assertEqual(store.ask("a", "1"), "duplicate")
        self.assertEqual(store.ask("a", "2"), "conflict")
        store.stop()
        self.assertEqual(store.process.returncode, 0)

    def test_a_second_process_is_refused_and_told_who_has_the_folder(self):
        store = Store(self.folder)
        self.assertEqual(store.ask("a", "1"), "fresh")
        other = run("demo-store", self.folder, stdin=subprocess.DEVNULL)
        self.assertIn("HX1023", other.stderr)
        self.assertIn(str(store.process.pid), other.stderr)
        self.assertNotEqual(other.returncode, 0)
        store.stop()

    def test_damage_is_refused_verified_and_repaired_only_when_told_so(self):
        self.make()
        name = segments_of(self.folder)[0]
        path = os.path.join(self.folder, name)
        with open(path, "r+b") as file:
            file.seek(os.path.getsize(path) // 2)
            byte = file.read(1)
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte[0] ^ 0x10]))
        code, found = self.inspect()
        self.assertEqual(code, 65)
        self.assertIn(name, found["refusal"])
        self.assertIn("hapax repair --accept-loss", found["refusal"])
        self.assertEqual(run("verify", self.folder).returncode, 65)
        start = run("demo-store", self.folder, stdin=subprocess.DEVNULL)
        self.assertEqual(start.returncode, 65)
        self.assertIn("HX1021", start.stderr)
        self.assertEqual(run("repair", self.folder).returncode, 64)
        before = sorted(os.listdir(self.folder))
        dry = run("repair", self.folder, "--dry-run", "--json")
        self.assertTrue(json.loads(dry.stdout)["needed"])
        self.assertEqual(sorted(os.listdir(self.folder)), before)
        done = run("repair", self.folder, "--accept-loss", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue([n for n in os.listdir(self.folder) if n.startswith("quarantine-")])
        code, found = self.inspect()
        self.assertEqual((code, found["gaps"]), (0, 1))
        verified = run("verify", self.folder, "--json")
        self.assertEqual(verified.returncode, 0, verified.stdout)
        report = json.loads(verified.stdout)
        self.assertEqual((report["intact"], report["problems"]), (True, []))
        self.assertIsInstance(report["unneeded"], list)
        store = Store(self.folder)
        self.assertEqual(store.ask("new", "1"), "fresh")
        store.stop()

    def test_a_failed_sync_ends_the_process_with_74_and_nothing_is_confirmed(self):
        if shutil.which("strace") is None:
            self.skipTest("strace is not installed")
        self.make(50)
        inject = "inject=fdatasync:error=EIO:when=3+"
        store = Store(self.folder, "strace", "-f", "-qq", "-o", "/dev/null", "-e", inject)
        words = []
        try:
            for number in range(20):
                words.append(store.ask(f"late-{number}", "1"))
        except BrokenPipeError:
            pass  # It ended already.
        store.close()
        self.assertEqual(store.process.returncode, 74, store.err)
        confirmed = [word for word in words if word]
        self.assertLess(len(confirmed), 20)
        again = Store(self.folder)
        for number, word in enumerate(confirmed):
            self.assertEqual(word, "fresh")
            self.assertEqual(again.ask(f"late-{number}", "1"), "duplicate")
        again.stop()

    def test_a_full_disk_refuses_writes_and_answers_duplicates(self):
        disk = os.path.join(self.top, "disk")
        running.mount_small_disk(self, disk)
        store = Store(os.path.join(disk, "data"))
        self.assertEqual(store.ask("first", "1"), "fresh")
        words = [store.ask(f"big-{n}", "y" * 60000) for n in range(60)]
        self.assertIn("error", words)
        self.assertEqual(store.ask("first", "1"), "duplicate")
        subprocess.run(["mount", "-o", "remount,size=40m", disk], check=True)
        self.assertEqual(store.ask("later", "1"), "fresh")
        refused = words.index("error")
        self.assertEqual(store.ask(f"big-{refused}", "y" * 60000), "fresh")
        store.stop()

    def test_bad_arguments_get_64_and_bad_folders_a_precise_error(self):
        self.assertEqual(run("inspect").returncode, 64)
        self.assertEqual(run("frobnicate").returncode, 64)
        self.assertEqual(run("demo", "--orders", "0").returncode, 64)
        empty = os.path.join(self.top, "empty")
        os.mkdir(empty)
        for command in ("inspect", "verify"):
            done = run(command, empty)
            self.assertIn("no Hapax store", done.stderr)
            self.assertEqual(os.listdir(empty), [])
        self.assertIn("HX1003", run("inspect", os.path.join(self.top, "nothing")).stderr)
        self.assertIn("there is no command 'hapax frobnicate'", run("frobnicate").stderr)
        file = os.path.join(self.top, "file")
        open(file, "w", encoding="utf-8").close()
        done = run("inspect", file)
        self.assertEqual(done.returncode, 64)
        self.assertIn("Check the path", done.stderr)

    def test_output_that_cannot_be_written_is_a_failure(self):
        self.make(20)
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([HAPAX, "inspect", self.folder], stdout=full,
                                  stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 74)
        self.assertIn("could not be written", done.stderr)

    def test_a_small_demo_is_killed_as_often_as_was_asked(self):
        told = json.loads(run("demo", "--orders", "20", "--kills", "2", "--json").stdout)
        self.assertEqual((told["killed"], told["stored_once"], told["lost"]), (2, 20, 0))

    def test_the_demo_wants_a_folder_of_its_own(self):
        self.make(20)
        done = run("demo", "--orders", "10", "--data", self.folder)
        self.assertEqual(done.returncode, 64)
        self.assertIn("not an empty folder", done.stderr)
        done = run("demo", "--orders", "10", env={**os.environ, "TMPDIR": self.folder + "/no"})
        self.assertEqual(done.returncode, 64)
        self.assertIn("TMPDIR", done.stderr)

    def test_an_interrupted_demo_leaves_nothing_behind(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            demo = subprocess.Popen([HAPAX, "demo", "--orders", "1000000"],
                                    env={**os.environ, "TMPDIR": self.top})
            while not any(os.path.exists(os.path.join(self.top, name, "STORE"))
                          for name in os.listdir(self.top)):
                self.assertIsNone(demo.poll())
            demo.send_signal(number)
            self.assertEqual(demo.wait(timeout=60), 128 + number)
            self.assertEqual(os.listdir(self.top), [])

    def test_help_has_examples_and_version(self):
        self.assertIn("Example", run("--help").stdout)
        self.assertRegex(run("--version").stdout, r"\d+\.\d+\.\d+")
        self.assertEqual(run("version").stdout, run("--version").stdout)
        self.assertEqual(run("help").stdout, run("--help").stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
