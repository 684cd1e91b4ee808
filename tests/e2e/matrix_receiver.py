"""An endpoint that fails in a chosen way, and keeps a journal of its own of what it was sent.

Each request and each effect is a line of the journal, synced before the answer leaves. The judge
reads that file and nothing of what Hapax says. A fault meets the first request of every third key,
the very first one included; half of the requests that get no whole answer had their effect.
"""

import contextlib
import json
import os
import socket
import ssl
import struct
import threading
from typing import NamedTuple, Optional

EVERY = 3  # So many keys, and the fault meets one of them.
HUGE = 64 << 20
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


class Request(NamedTuple):
    key: str
    order: str
    body: str
    number: int  # of the requests under this key, from 1
    hit: Optional[int]  # which one the fault meets, from 0


class Journal:
    def __init__(self, path):
        self.path, self.lock = path, threading.Lock()
        self.file = open(path, "a", encoding="utf-8")

    def add(self, **line):
        with self.lock:
            self.file.write(json.dumps(line) + "\n")
            self.file.flush()
            os.fsync(self.file.fileno())

    def lines(self):
        with open(self.path, encoding="utf-8") as file:
            return [json.loads(line) for line in file]


def reset(link, reader):
    """Closes it so that the other side reads an error, and not the end."""
    link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    reader.close()
    link.close()


class Receiver:
    """`fault` is a name of ANSWERS or of CONNECTIONS. `came` is called with a point of a request
    and the number of that request: "request", "effect" or "answer"."""

    def __init__(self, folder, fault="", tls=None, came=lambda point, number: None):
        self.journal = Journal(os.path.join(folder, "journal"))
        self.fault, self.came = fault, came
        self.lock, self.closing = threading.Lock(), threading.Event()
        self.requests, self.effects = {}, {}  # by key: how many; by order: how many
        self.held_back = None  # an event: effects wait for it, some seconds at most
        self.count = 0
        self.connections = 0
        self.threads, self.links, self.errors = [], [], []
        self.context = None
        if tls:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(*tls)
        self.listening = socket.socket()
        self.listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listening.bind(("127.0.0.1", 0))
        scheme = "https" if tls else "http"
        self.base = f"{scheme}://127.0.0.1:{self.listening.getsockname()[1]}"
        self.url = self.base + "/in"
        if fault != "away":
            self.listen()

    def listen(self):
        self.listening.listen(64)
        self.accepting = threading.Thread(target=self.accept, daemon=True)
        self.accepting.start()

    def accept(self):
        with contextlib.suppress(OSError):
            while not self.closing.is_set():
                link, _ = self.listening.accept()
                thread = threading.Thread(target=self.guarded, args=(link,), daemon=True)
                self.threads.append(thread)
                self.links.append(link)
                thread.start()

    def close(self):
        self.closing.set()
        with contextlib.suppress(OSError):
            self.listening.shutdown(socket.SHUT_RDWR)
        self.listening.close()
        for link in self.links:
            with contextlib.suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join(60)
        self.journal.file.close()

    def guarded(self, link):
        try:
            self.talk(link)
        except Exception as error:  # Otherwise nobody would hear of it.
            self.errors.append(f"the endpoint failed: {type(error).__name__}: {error}")

    def talk(self, link):
        link.settimeout(600)
        with link, contextlib.suppress(OSError, ssl.SSLError):
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.context:
                with self.lock:
                    self.connections += 1
                    slow = self.fault == "slow TLS" and self.connections <= 3
                if slow:
                    self.wait(link, 10)
                    return
                link = self.context.wrap_socket(link, server_side=True)
            with link, link.makefile("rb") as reader:
                while not self.closing.is_set() and self.serve(link, reader):
                    pass

    def wait(self, link, seconds):
        """Until the other side or the test ends it, or so long."""
        link.settimeout(0.1)
        for _ in range(seconds * 10):
            if self.closing.is_set():
                return
            with contextlib.suppress(TimeoutError):
                if not link.recv(65536):
                    return

    def serve(self, link, reader):
        """Whether another request can follow."""
        line = reader.readline()
        if not line:
            return False
        method, path, _ = line.decode().split()
        head = {}
        for line in iter(reader.readline, b"\r\n"):
            if not line:
                return False
            name, value = line.decode().split(":", 1)
            head[name.lower()] = value.strip()
        if method == "GET":
            self.tell_outcome(link, path.rsplit("/", 1)[1])
            return True
        hit, number = self.arrived(head["webhook-id"])
        if hit is not None and self.fault == "reset before":
            reset(link, reader)
            return False
        body = reader.read(int(head["content-length"])).decode()
        told = json.loads(body)
        request = Request(head["webhook-id"], told.get("data", told)["order"], body, number, hit)
        self.journal.add(path=path, body=body, key=request.key, order=request.order, effect=False)
        return self.answer(link, reader, request)

    def arrived(self, key):
        with self.lock:
            ordinal = list(self.requests).index(key) if key in self.requests else len(self.requests)
            self.requests[key] = number = self.requests.get(key, 0) + 1
            met = number == 1 and ordinal % EVERY == 0
            return (ordinal // EVERY if met else None), number

    def tell_outcome(self, link, key):
        status = "200 OK" if self.journal_has(key) else "404 Not Found"
        link.sendall(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n".encode())

    def journal_has(self, key):
        return any(line["key"] == key and line["effect"] for line in self.journal.lines())

    def take(self, request):
        self.journal.add(key=request.key, order=request.order, body=request.body, effect=True)
        with self.lock:
            self.effects[request.order] = self.effects.get(request.order, 0) + 1

    def answer(self, link, reader, request):
        with self.lock:
            self.count += 1
            count = self.count
        self.came("request", count)
        act = ANSWERS.get(self.fault) if request.hit is not None else None
        if act:
            return act(self, link, reader, request)
        if self.held_back:
            self.held_back.wait(15)
        self.closing.wait(0.01)
        self.take(request)
        self.came("effect", count)
        link.sendall(OK)
        self.came("answer", count)
        return True


# --- what an answer can be instead. Each says whether another request can follow.

def half(receiver, request):
    if request.hit % 2 == 0:
        receiver.take(request)


def hang(receiver, link, _, request):
    half(receiver, request)
    receiver.wait(link, 30)
    return False


def drip(receiver, link, _, request):
    half(receiver, request)
    link.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    while not receiver.closing.wait(0.1):
        link.sendall(b".")
    return False


def reset_in(receiver, link, reader, request):
    half(receiver, request)
    link.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfive."
                 if request.hit % 4 < 2 else b"HTTP/1.1 2")
    reset(link, reader)
    return False


def reset_after(receiver, link, reader, request):
    receiver.take(request)
    link.sendall(OK)
    reset(link, reader)
    return False


def garbage(receiver, link, _, request):
    half(receiver, request)
    link.sendall(b"\x00\xff\x16\x03 nobody speaks this \r\n\r\n" * 4)
    return False


def informational(receiver, link, _, request):
    """Some of them and then the answer, or never one."""
    half(receiver, request)
    link.sendall(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n")
    if request.hit % 2 == 0:
        link.sendall(OK)
        return True
    return False


def huge(receiver, link, _, request):
    receiver.take(request)
    link.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    piece = b"10000\r\n" + b"x" * 65536 + b"\r\n"
    for _ in range(HUGE // 65536):
        if receiver.closing.is_set():
            return False
        link.sendall(piece)
    link.sendall(b"0\r\n\r\n")
    return True


def status(line, *fields):
    text = "\r\n".join((f"HTTP/1.1 {line}", "Content-Length: 5", *fields)) + "\r\n\r\nsorry"

    def act(_, link, *__):
        link.sendall(text.encode())
        return True
    return act


def redirect(receiver, link, *_):
    link.sendall(f"HTTP/1.1 307 Temporary Redirect\r\nLocation: {receiver.base}/elsewhere\r\n"
                 "Content-Length: 0\r\n\r\n".encode())
    return True


ANSWERS = {
    "hang": hang, "drip": drip, "reset in": reset_in, "reset after": reset_after,
    "garbage": garbage, "1xx": informational, "huge": huge,
    "4xx": status("422 Unprocessable Entity"),
    "5xx": status("503 Service Unavailable", "Retry-After: 1"), "redirect": redirect,
}
CONNECTIONS = ("reset before", "slow TLS", "away")
