"""Redis' plain commands, against a real redis-server: the same replies, byte for byte.

What the page docs/reference/resp.md calls a difference is not in the list. Times may differ by as
much as the two servers are asked apart.
"""

import shutil
import socket
import subprocess
import time
import unittest

import running

running.arguments()

NOW = int(time.time())
FAR = NOW + 100_000

# One command a line, split at spaces; '' is an empty argument. Behind #: how replies are compared:
# s, ms = numbers that may differ by two seconds; gone = repeated until the reply is nil.
LINES = rf"""
PING
PING hello
PING a b
ECHO hello
CLIENT GETNAME
CLIENT SETNAME me
CLIENT GETNAME
CLIENT SETNAME
CLIENT SETNAME aé
COMMAND INFO nosuch
GET a
SET a 1
GET a
SET a 2 NX
SET a 2 nx
GET a
SET a 2 XX
GET a
SET nobody 1 XX
GET nobody
SET a 3 GET
SET a 4 NX GET
SET fresh 1 NX GET
SET fresh 2 XX GET
SET absent 1 XX GET
GET absent
SET b v EX 100
TTL b # s
PTTL b # ms
SET b w KEEPTTL
TTL b # s
GET b
SET b x
TTL b
PTTL b
SET b y PX 100000
TTL b # s
PTTL b # ms
SET b z EXAT {FAR}
EXPIRETIME b
PEXPIRETIME b
TTL b # s
SET b z PXAT {FAR}123
EXPIRETIME b
PEXPIRETIME b
SET b past EXAT 1
GET b
EXISTS b
SET b past PXAT 1
TTL b
SET b v EX 0
SET b v EX -1
SET b v PX 0
SET b v EXAT 0
SET b v PXAT -5
SET b v EX x
SET b v EX 1.5
SET b v EX 9223372036854775807
SET b v EX 9223372036854775808
SET b v EX
SET b v PX
SET b v NX XX
SET b v XX NX
SET b v EX 10 PX 10
SET b v EX 10 KEEPTTL
SET b v KEEPTTL EX 10
SET b v EXAT 10 PXAT 10
SET b v FOO
SET b v NX FOO
SET b v EX 10 EX 20
TTL b # s
SET b
SET
GET
GET a b
SET b v ex 30 nx
SET bb v ex 30 nx
TTL bb # s
SETNX c 1
SETNX c 2
GET c
SETNX c
SETEX d 100 v
TTL d # s
SETEX d 0 v
SETEX d x v
SETEX d 10
PSETEX d 100000 v
PTTL d # ms
PSETEX d 0 v
GETSET d new
TTL d
GETSET e first
GET e
GETDEL e
GETDEL e
GETDEL
STRLEN d
STRLEN nothing
TYPE d
TYPE nothing
EXISTS a
EXISTS a a a
EXISTS a nothing c d
EXISTS
DEL nothing
DEL d
DEL d
SET d 1
DEL a c d nothing
DEL
UNLINK b bb nothing
SET k v
EXPIRE k 100
TTL k # s
EXPIRE k 200 NX
EXPIRE k 200 XX
TTL k # s
EXPIRE k 100 GT
EXPIRE k 300 GT
EXPIRE k 400 LT
EXPIRE k 50 LT
TTL k # s
EXPIRE k 60 XX GT
EXPIRE k 70 XX LT
EXPIRE k 55 XX LT
TTL k # s
PERSIST k
PERSIST k
TTL k
PERSIST nothing
EXPIRE k 100 GT
EXPIRE k 100 LT
EXPIRE k 100 NX XX
EXPIRE k 100 NX GT
EXPIRE k 100 GT LT
EXPIRE k 100 FOO
EXPIRE k x
EXPIRE k 9223372036854775807
EXPIRE k -9223372036854775808
EXPIRE k
PEXPIRE k 100000
PTTL k # ms
PEXPIRE k x
EXPIREAT k {FAR}
EXPIRETIME k
PEXPIREAT k {FAR}001
PEXPIRETIME k
EXPIRETIME nothing
PEXPIRETIME nothing
EXPIRE nothing 10
EXPIRE k 0
GET k
SET k v
EXPIRE k -5
EXISTS k
SET k v
PEXPIREAT k 1
EXISTS k
SET k v
EXPIREAT k -1
EXISTS k
TTL nothing
PTTL nothing
INCR n
INCR n
INCRBY n 40
DECR n
DECRBY n 50
GET n
INCRBY n -1
INCRBY n x
DECRBY n 1.5
DECRBY n -9223372036854775808
SET n 9223372036854775807
INCR n
INCRBY n 1
DECR n
SET n -9223372036854775808
DECR n
DECRBY n 1
SET n ten
INCR n
DECRBY n 1
SET n ''
INCR n
SET n 01
INCR n
SET n +1
INCR n
SET n 5 EX 100
INCR n
TTL n # s
INCR
INCRBY n
SET short 1 PX 30
GET short # gone
EXISTS short
TTL short
SET short 2 NX
GET short
SET short 3 PX 100000
PERSIST short
GET short
SET short 4 PX 30
GET short # gone
INCR short
TTL short
MULTI
SET m 1
INCR m
SET m 9 NX
GET m
DEL m nothing
EXISTS m
EXEC
MULTI
EXEC
MULTI
SET m 1
DISCARD
GET m
EXEC
DISCARD
MULTI
MULTI
SET m
EXEC
MULTI
PING
SET m2 v
ECHO hello
PING a b
CLIENT GETNAME
SELECT 0
PING hello
EXEC
MULTI
PING
EXEC
MULTI
PING
ECHO
EXEC
MULTI
CLIENT SETNAME other
DISCARD
CLIENT GETNAME
MULTI
SET m2 v
EXEC
DBSIZE
SCAN 0 MATCH none* COUNT 1000
SCAN 0 MATCH m2 COUNT 1000
SCAN 0 MATCH [m][0-9] COUNT 1000
SCAN 0 MATCH ?2 COUNT 1000 TYPE string
SCAN 0 COUNT 1000 TYPE list
SCAN x
SCAN 0 COUNT 0
SCAN 0 COUNT x
SCAN 0 FOO 1
SCAN 0 MATCH
SCAN
""".strip().splitlines()


class Case(running.FolderTest):
    def setUp(self):
        super().setUp()
        self.hapax = self.serve()
        self.connect()

    def connect(self):
        self.link = running.Link(self.hapax.resp_port)
        self.addCleanup(self.link.close)

    def restart(self):
        self.link.close()
        self.hapax.restart()
        self.connect()


# One program of the package redis-tools is the server, too, when it is called so: the package of
# that name would also start a service.
REDIS = shutil.which("redis-check-rdb")


@unittest.skipUnless(REDIS, "redis-tools is not installed")
class AsRedis(Case):
    def setUp(self):
        super().setUp()
        port = self.redis_port = running.free_port()
        redis = subprocess.Popen(
            ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "",
             "--dir", self.folder], executable=REDIS, stdout=subprocess.PIPE, text=True)
        self.addCleanup(redis.wait)
        self.addCleanup(redis.kill)
        for line in redis.stdout:
            if "Ready to accept" in line:
                break
        redis.stdout.close()
        self.redis = running.Link(port)
        self.addCleanup(self.redis.close)

    def both(self, *arguments):
        return self.link.ask(*arguments), self.redis.ask(*arguments)

    def until_gone(self, link, arguments):
        end = time.monotonic() + 30
        while time.monotonic() < end:
            got = link.ask(*arguments)
            if got in (b"$-1\r\n", b"_\r\n"):
                return got
        self.fail("it never went")

    def compare(self, line):
        command, _, how = line.partition("#")
        arguments = [b"" if word == "''" else word for word in command.split()]
        how = how.strip()
        if how == "gone":
            ours = self.until_gone(self.link, arguments)
            theirs = self.until_gone(self.redis, arguments)
        else:
            ours, theirs = self.both(*arguments)
        if how in ("s", "ms"):
            self.assertTrue(ours.startswith(b":") and theirs.startswith(b":"), (line, ours, theirs))
            apart = abs(int(ours[1:]) - int(theirs[1:]))
            self.assertLessEqual(apart, 20 if how == "s" else 20000, (line, ours, theirs))
        else:
            self.assertEqual(ours, theirs, line)

    def test_every_line_has_the_same_reply(self):
        for line in LINES:
            self.compare(line)

    def test_every_line_has_the_same_reply_in_resp3(self):
        self.both("HELLO", "3")
        for line in LINES:
            self.compare(line)

    def test_any_bytes_are_keys_and_values(self):
        key, value = bytes(range(2, 256)), bytes(range(256)) * 4
        for arguments in (("SET", key, value), ("GET", key), ("GETSET", key, b"\r\n"),
                          ("GET", key), ("EXISTS", key, key), ("DEL", key)):
            ours, theirs = self.both(*arguments)
            self.assertEqual(ours, theirs)

    def test_lengths_are_read_alike(self):
        def until_the_end(port, data):
            with socket.create_connection(("127.0.0.1", port), 30) as link:
                link.sendall(data)
                link.shutdown(socket.SHUT_WR)
                with link.makefile("rb") as replies:
                    return replies.read()

        for data in (b"*1\r\n$04\r\nPING\r\n", b"*01\r\n$4\r\nPING\r\n",
                     b"*1\r\n$+4\r\nPING\r\n", b"*+1\r\n$4\r\nPING\r\n",
                     b"*1\r\n$4 \r\nPING\r\n", b"*1\r\n$-1\r\n", b"*abc\r\n",
                     b"*0\r\n*-1\r\n*1\r\n$4\r\nPING\r\n"):
            ours, theirs = (until_the_end(port, data)
                            for port in (self.hapax.resp_port, self.redis_port))
            self.assertEqual(ours, theirs, data)

    def test_a_pipeline_is_answered_in_order(self):
        lines = [line for line in LINES if "#" not in line and "short" not in line]
        for link in (self.link, self.redis):
            for line in lines:
                link.send(*[b"" if word == "''" else word for word in line.split()])
        for line in lines:
            self.assertEqual(self.link.reply(), self.redis.reply(), line)


class Alone(Case):
    def scan(self, *options):
        cursor, found = b"0", []
        while True:
            self.link.send("SCAN", cursor, *options)
            self.assertEqual(self.link.file.readline(), b"*2\r\n")
            cursor = self.link.reply().split(b"\r\n")[1]
            count = int(self.link.file.readline()[1:])
            found += [self.link.reply().split(b"\r\n")[1] for _ in range(count)]
            if cursor == b"0":
                return found

    def test_the_dedup_sequence_of_a_worker_runs_as_it_is(self):
        ask = self.link.ask
        self.assertEqual(ask("SETNX", "dedup:queue:job-123", "processing"), b":1\r\n")
        self.assertEqual(ask("SETNX", "dedup:queue:job-123", "processing"), b":0\r\n")
        self.restart()
        ask = self.link.ask
        self.assertEqual(ask("SETNX", "dedup:queue:job-123", "processing"), b":0\r\n")
        self.assertEqual(ask("SET", "dedup:queue:job-123", "completed", "EX", "3600"), b"+OK\r\n")
        self.restart()
        ask = self.link.ask
        self.assertEqual(ask("GET", "dedup:queue:job-123"), b"$9\r\ncompleted\r\n")
        # A start is up to 2 s ahead of the wall clock, and slows down until they agree.
        self.assertIn(int(ask("TTL", "dedup:queue:job-123")[1:]), range(3500, 3605))
        self.assertEqual(ask("SET", "dedup:queue:job-123", "x", "NX", "EX", "10"), b"$-1\r\n")

    def test_what_was_answered_survives_a_kill(self):
        ask = self.link.ask
        for i in range(200):
            self.assertEqual(ask("SET", f"k{i}", i, "EX", 1000 + i), b"+OK\r\n")
        ask("DEL", "k0", "k1")
        ask("PERSIST", "k2")
        ask("INCR", "k3")
        ask("EXPIRE", "k4", "-1")
        self.restart()
        ask = self.link.ask
        self.assertEqual(ask("EXISTS", "k0", "k1", "k4"), b":0\r\n")
        self.assertEqual(ask("TTL", "k2"), b":-1\r\n")
        self.assertEqual(ask("GET", "k3"), b"$1\r\n4\r\n")
        self.assertIn(int(ask("TTL", "k3")[1:]), range(990, 1004))
        self.assertEqual(ask("DBSIZE"), b":197\r\n")
        self.assertEqual(len(set(self.scan("COUNT", "7"))), 197)

    def test_a_key_expires_while_the_server_is_down(self):
        ask = self.link.ask
        ask("SET", "brief", "v", "PX", "50")
        ask("SET", "staying", "v")
        self.restart()
        ask = self.link.ask
        end = time.monotonic() + 30
        while ask("GET", "brief") != b"$-1\r\n" and time.monotonic() < end:
            pass
        self.assertEqual(ask("EXISTS", "brief", "staying"), b":1\r\n")

    def test_a_scan_tells_every_key_that_stays(self):
        for i in range(1000):
            self.link.send("SET", f"key:{i}", "v")
        for _ in range(1000):
            self.assertEqual(self.link.reply(), b"+OK\r\n")
        cursor, found, step = b"0", set(), 0
        while True:
            self.link.send("SCAN", cursor, "COUNT", "37", "MATCH", "key:*")
            self.assertEqual(self.link.file.readline(), b"*2\r\n")
            cursor = self.link.reply().split(b"\r\n")[1]
            count = int(self.link.file.readline()[1:])
            found |= {self.link.reply().split(b"\r\n")[1] for _ in range(count)}
            if cursor == b"0":
                break
            step += 1
            self.link.ask("DEL", f"key:{step}")
            self.link.ask("SET", f"other:{step}", "v")
            self.link.ask("SET", f"key:{999 - step}", "changed")
        staying = {b"key:%d" % i for i in range(step + 1, 1000)}
        self.assertLessEqual(staying, found)
        self.assertEqual(len(self.scan("MATCH", "other:*")), step)

    def test_exec_does_not_overtake_what_came_before_it(self):
        lines = ("SET", "a", "1"), ("MULTI",), ("INCR", "a"), ("EXEC",), ("DEL", "a", "b")
        for line in lines:
            self.link.send(*line)
        replies = [self.link.reply() for _ in lines]
        self.assertEqual(replies, [b"+OK\r\n", b"+OK\r\n", b"+QUEUED\r\n", b"*1\r\n:2\r\n",
                                   b":1\r\n"])

    def test_the_operations_behind_the_commands_see_the_same_keys(self):
        def map_of(*arguments):
            lines = self.link.ask(*arguments).split(b"\r\n")[1:]
            return [line for line in lines if line[:1] not in (b"$", b"")]

        got = map_of("HX.SET", "k", "v", "MODE", "absent", "EXPIRES_IN_MS", "100000")
        self.assertEqual(got[:3] + got[4:6],
                         [b"verdict", b"done", b"time_ms", b"applied", b":1"])
        self.assertEqual(self.link.ask("GET", "k"), b"$1\r\nv\r\n")
        self.assertIn(int(self.link.ask("TTL", "k")[1:]), range(90, 101))
        self.assertEqual(map_of("HX.UNSET", "k")[1], b"done")
        self.assertEqual(map_of("HX.UNSET", "k")[1], b"unchanged")
        self.assertEqual(map_of("HX.ADD", "n", "BY", "-3")[-1], b":-3")
        self.assertEqual(self.link.ask("GET", "n"), b"$2\r\n-3\r\n")

    def test_info_says_that_it_is_ready(self):
        text = self.link.ask("INFO").decode()
        self.assertIn("redis_version:", text)
        self.assertIn("loading:0\r\n", text)
        self.link.ask("SET", "a", "1")
        keyspace = self.link.ask("INFO", "keyspace").decode()
        self.assertIn("db0:keys=1,expires=0,avg_ttl=0\r\n", keyspace)
        self.assertNotIn("# Server", keyspace)

    def test_what_is_not_possible_is_said(self):
        ask = self.link.ask
        self.assertTrue(ask("LPUSH", "l", "1").startswith(b"-ERR unknown command 'LPUSH'"))
        self.assertTrue(ask("SET", "", "v").startswith(b"-ERR HX1001"))
        self.assertTrue(ask("SET", "k" * 513, "v").startswith(b"-ERR HX1002"))
        self.assertTrue(ask("SET", "k", "v" * 65537).startswith(b"-ERR HX1002"))
        ask("SET", "text", "v")
        ask("MULTI")
        ask("SET", "other", "v")
        ask("INCR", "text")
        self.assertTrue(ask("EXEC").startswith(b"-EXECABORT"))
        self.assertEqual(ask("EXISTS", "other"), b":0\r\n")

    def test_a_page_of_another_site_cannot_send_commands(self):
        for first in (b"POST / HTTP/1.1", b"GET / HTTP/1.1\r\nHost: 127.0.0.1:7172"):
            with socket.create_connection(("127.0.0.1", self.hapax.resp_port), 20) as page:
                page.sendall(first + b"\r\nOrigin: https://evil.example\r\n\r\nSET planted 1\r\n")
                page.shutdown(socket.SHUT_WR)
                with page.makefile("rb") as replies:
                    self.assertNotIn(b"+OK", replies.read())
        self.assertEqual(self.link.ask("EXISTS", "planted"), b":0\r\n")


if __name__ == "__main__":
    unittest.main()
