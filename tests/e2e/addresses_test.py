"""A database whose name stands for several addresses, of which the first one is silent."""

import os
import socket
import subprocess
import unittest

from postgres import Cluster, Pooler
from running import FolderTest, arguments

OWN_HOSTS = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"']


@unittest.skipUnless(Pooler.PROGRAM, "pgbouncer is not installed")
class AddressesTest(FolderTest):
    def setUp(self):
        super().setUp()
        self.hosts = os.path.join(self.folder, "hosts")
        with open(self.hosts, "w", encoding="utf-8") as file:
            file.write("127.0.0.2 twofold\n127.0.0.3 twofold\n")
        own = subprocess.run([*OWN_HOSTS, self.hosts, "true"], capture_output=True, check=False)
        if own.returncode != 0:
            self.skipTest("no mount namespace for an /etc/hosts of its own")
        self.cluster = Cluster()
        self.addCleanup(self.cluster.end)
        self.pooler = Pooler(self.cluster, "session", "listen_addr = 127.0.0.1,127.0.0.3\n")
        self.addCleanup(self.pooler.stop)
        self.silent = socket.socket()
        self.silent.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.silent.bind(("127.0.0.2", self.pooler.port))
        self.silent.listen()
        self.addCleanup(self.silent.close)

    def test_the_next_address_is_tried(self):
        uri = f"postgres://postgres@twofold:{self.pooler.port}/postgres"
        done = subprocess.run([*OWN_HOSTS, self.hosts, self.HAPAX, "migrate", uri], text=True,
                              capture_output=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.silent.settimeout(10)
        self.silent.accept()[0].close()  # It was asked first.


if __name__ == "__main__":
    arguments()
    unittest.main(verbosity=2)
