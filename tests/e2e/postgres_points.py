"""Stands between a process and PostgreSQL, and acts at a chosen point of what they say."""

import contextlib
import os
import re
import socket
import struct
import threading


class Point:
    """A statement, before it is sent to the server or after the server has answered it."""

    def __init__(self, name, matches, when):
        self.name, self.matches, self.when = name, matches, when

    def __repr__(self):
        return f"{self.when} {self.name}"


def sql_like(pattern):
    return lambda statement: bool(re.search(pattern, statement.sql))


class Statement:
    """What a message asks for: its SQL, or the name and the values of a prepared one."""

    def __init__(self, kind, body):
        self.sql, self.prepared, self.values = "", "", []
        if kind == b"Q":
            self.sql = body.rstrip(b"\0").decode(errors="replace")
        elif kind == b"P":
            self.sql = body.split(b"\0")[1].decode(errors="replace")
        elif kind == b"B":
            _, name, rest = body.split(b"\0", 2)
            self.prepared = name.decode()
            self.values = values_of(rest)


def values_of(rest):
    formats = struct.unpack_from(">h", rest)[0]
    at = 2 + 2 * formats
    count, at, values = struct.unpack_from(">h", rest, at)[0], at + 2, []
    for _ in range(count):
        size, at = struct.unpack_from(">i", rest, at)[0], at + 4
        values.append(rest[at:at + max(size, 0)])
        at += max(size, 0)
    return values


class Between:
    """Listens in a folder of its own. `watch` says what to do, once, at which point."""

    def __init__(self, folder, server):
        self.folder, self.server = folder, server + "/.s.PGSQL.5432"
        self.point, self.act, self.lock = None, None, threading.Lock()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(os.path.join(folder, ".s.PGSQL.5432"))
        self.listener.listen()
        threading.Thread(target=self.accept, daemon=True).start()

    def uri(self, database):
        return f"postgres:///{database}?host={self.folder}&user=postgres"

    def watch(self, point, act):
        with self.lock:
            self.point, self.act = point, act

    def taken(self, statement):
        """The point, for the one statement that is at it."""
        with self.lock:
            if self.point is None or not self.point.matches(statement):
                return None, None
            taken, act, self.point, self.act = self.point, self.act, None, None
            return taken, act

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                Talk(self, self.listener.accept()[0])

    def end(self):
        self.listener.close()


class Talk:
    """One connection, both ways."""

    def __init__(self, between, client):
        self.between, self.client, self.kept_back, self.ways = between, client, None, 2
        self.server = socket.socket(socket.AF_UNIX)
        try:
            self.server.connect(between.server)
        except OSError:
            self.client.close()
            self.server.close()
            return
        for forward in (self.ask, self.answer):
            threading.Thread(target=self.guarded, args=(forward,), daemon=True).start()

    def guarded(self, forward):
        with contextlib.suppress(OSError):
            forward()
        for end in (self.client, self.server):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        with self.between.lock:
            self.ways -= 1
            if self.ways == 0:
                self.client.close()
                self.server.close()

    def ask(self):
        size = self.exactly(self.client, 4)
        self.server.sendall(size + self.exactly(self.client, int.from_bytes(size, "big") - 4))
        while True:
            kind, size, body = self.message(self.client)
            point, act = (self.between.taken(Statement(kind, body)) if kind in b"QPB"
                          else (None, None))
            if point and point.when == "before":
                act()
                return
            if point:
                self.kept_back = act
            self.server.sendall(kind + size + body)

    def answer(self):
        while True:
            kind, size, body = self.message(self.server)
            if self.kept_back and kind == b"Z":
                self.kept_back()
                return
            if not self.kept_back:
                self.client.sendall(kind + size + body)

    def message(self, source):
        kind, size = self.exactly(source, 1), self.exactly(source, 4)
        return kind, size, self.exactly(source, int.from_bytes(size, "big") - 4)

    @staticmethod
    def exactly(source, size):
        data = b""
        while len(data) < size:
            more = source.recv(size - len(data))
            if not more:
                raise OSError("the end")
            data += more
        return data
