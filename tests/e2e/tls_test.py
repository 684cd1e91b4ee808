"""How connections over TLS begin and end."""

import os
import socket
import ssl
import subprocess
import unittest

import running

running.arguments()

TLS = "server: {http: {tls: {certificate: cert.pem, key: key.pem}}}\n"


class Tls(running.FolderTest):
    def setUp(self):
        super().setUp()
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                        "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem",
                        "-out", "cert.pem"],
                       cwd=self.folder, check=True, capture_output=True, timeout=60)

    def connect(self, server, receive_bytes=None):
        link = socket.socket()
        self.addCleanup(link.close)
        link.settimeout(60)
        if receive_bytes is not None:
            link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        link.connect((server.host, server.port))
        return link

    def encrypt(self, server, link):
        context = ssl.create_default_context(cafile=os.path.join(self.folder, "cert.pem"))
        wrapped = context.wrap_socket(link, server_hostname=server.host)
        self.addCleanup(wrapped.close)
        return wrapped

    def test_beyond_the_limit_a_silent_client_keeps_its_place_for_a_short_time(self):
        server = self.serve(TLS + "limits: {connections_max: 1}\n")
        usual = self.connect(server)
        brief = self.connect(server)
        self.assertEqual(brief.recv(1), b"")
        usual.setblocking(False)
        with self.assertRaises(BlockingIOError):  # It came first, and has more time.
            usual.recv(1)

    def test_who_comes_when_there_are_too_many_is_told_its_health(self):
        server = self.serve(TLS + "limits: {connections_max: 1}\n")
        self.encrypt(server, self.connect(server))  # It takes the place.
        # One that goes away as soon as it was told does not keep its own.
        for _ in range(100):
            link = self.encrypt(server, self.connect(server))
            link.sendall(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
            answer = link.makefile("rb").read()
            self.assertIn(b" 200 OK\r\n", answer)
            link.close()

    def test_the_last_answer_is_read_to_its_end_by_who_still_sends(self):
        server = self.serve(TLS + "streams: [{stream: s}]\n")
        link = self.encrypt(server, self.connect(server))
        body = b'{"payload": "%s"}' % (b"x" * 900_000)
        link.sendall(b"POST /api/v1/streams/s/records HTTP/1.1\r\nHost: localhost\r\n"
                     b"Content-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(body), body))
        self.assertIn(b" 201 ", link.makefile("rb").readline())
        slow = self.encrypt(server, self.connect(server, receive_bytes=4096))
        slow.sendall(b"GET /api/v1/streams/s/records HTTP/1.1\r\nHost: localhost\r\n"
                     b"Connection: close\r\n\r\n" + b"too much" * 12_500)
        text = b""
        while piece := slow.recv(512):
            text += piece
        head, _, rest = text.partition(b"\r\n\r\n")
        self.assertIn(b" 200 OK\r\n", head)
        length = next(line for line in head.lower().split(b"\r\n")
                      if line.startswith(b"content-length:"))
        self.assertEqual(len(rest), int(length.split(b":")[1]))
        self.assertGreater(len(rest), 900_000)


if __name__ == "__main__":
    unittest.main(verbosity=2)
