"""More clients than there are file descriptors: the store goes on writing, and the health page and
whoever comes are answered."""

import http.client
import os
import resource
import socket
import unittest

from running import Answer, FolderTest, Server, arguments, wait_for

arguments()

DESCRIPTORS = 512
CROWD = 700
# Idle connections keep their places for as long as the test runs.
CONFIG = "store: {segment_bytes: 64KiB}\nlimits: {http: {header_time: 1h}}\n"


class Crowd(FolderTest):
    def setUp(self):
        super().setUp()
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard != resource.RLIM_INFINITY and hard < 2 * CROWD:
            self.skipTest(f"only {hard} open files are allowed here (ulimit -n)")
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * CROWD), hard))
        command = os.path.join(self.folder, "limited")
        with open(command, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\nulimit -n {DESCRIPTORS}\nexec "{self.HAPAX}" "$@"\n')
        os.chmod(command, 0o755)
        self.server = Server(command, self.folder, config=CONFIG)
        self.addCleanup(self.server.end)
        # It was here before the crowd.
        self.link = http.client.HTTPConnection(self.server.host, self.server.port, timeout=60)
        self.addCleanup(self.link.close)
        self.assertEqual(self.ask("PUT", "/api/v1/streams/orders").status, 200)

    def ask(self, method, path, body=None):
        self.link.request(method, path, body)
        answer = self.link.getresponse()
        return Answer(answer.status, answer.headers, answer.read())

    def come(self):
        doors = [(self.server.host, port) for port in (self.server.port, self.server.resp_port)]
        crowd = [socket.create_connection(doors[n % 2], timeout=60) for n in range(CROWD)]
        for link in crowd:
            self.addCleanup(link.close)
        return crowd

    def status(self, path):
        """Of a client that comes now; 0 if it is closed at once."""
        try:
            return self.server.call("GET", path).status
        except (ConnectionError, http.client.HTTPException):
            return 0

    def figure(self, name):
        lines = self.ask("GET", "/metrics").body.decode().splitlines()
        return int(next(line for line in lines if line.startswith(name + " ")).split()[1])

    def test_idle_clients_stop_neither_writes_nor_the_health_page(self):
        crowd = self.come()
        wait_for(lambda: self.figure("hapax_connections_refused_total") > CROWD // 2, "the crowd")
        payload = b'{"payload": "%s"}' % (b"x" * 8000)
        for _ in range(200):
            answer = self.ask("POST", "/api/v1/streams/orders/records", payload)
            self.assertEqual(answer.status, 201, answer.body)
        wait_for(lambda: self.figure("hapax_journal_segments") > 10, "the segments")
        wait_for(lambda: self.status("/health/live") == 200, "the health page")
        wait_for(lambda: self.status("/health/ready") == 200, "the health page")
        wait_for(lambda: self.status("/api/v1/streams") == 503, "a word to who comes")
        self.assertEqual(self.figure("hapax_connections_paused_total"), 0)
        self.assertIn("too many connections", self.server.text())
        for link in crowd:
            link.close()
        wait_for(lambda: self.status("/api/v1/streams") == 200, "a place")
        self.assertEqual(self.server.stop(), 0)

    def test_clients_of_resp_are_told_what_redis_tells_them(self):
        self.come()

        def told():
            with socket.create_connection((self.server.host, self.server.resp_port),
                                          timeout=60) as link:
                try:
                    return link.makefile("rb").read()
                except ConnectionError:
                    return b""
        wait_for(lambda: told() == b"-ERR max number of clients reached\r\n", "the refusal")


if __name__ == "__main__":
    unittest.main(verbosity=2)
