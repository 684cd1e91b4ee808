"""A PostgreSQL server of the test's own, reached by a unix socket in its folder; poolers."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile

from running import free_port, wait_for

PROGRAMS = "/usr/lib/postgresql/15/bin/"


class Cluster:
    def __init__(self, settings=""):
        """`settings` are lines of its configuration."""
        self.folder = tempfile.mkdtemp(prefix="hapax-pg-")
        self.user = []
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root.
            self.user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
            os.chown(self.folder, pwd.getpwnam("postgres").pw_uid, -1)
        self.log = open(os.path.join(self.folder, "log"), "a", encoding="utf-8")
        self.make()
        with open(self.folder + "/data/postgresql.auto.conf", "a", encoding="utf-8") as file:
            file.write(f"listen_addresses = ''\nunix_socket_directories = '{self.folder}'\n"
                       "shared_buffers = 64MB\n" + settings)
        self.start()

    def make(self):
        self.program("initdb", "-D", self.folder + "/data", "-U", "postgres", "-A", "trust",
                     "-E", "UTF8", "--no-locale", "--no-sync")

    def program(self, name, *words):
        subprocess.run([*self.user, PROGRAMS + name, *words], check=True, stdout=self.log,
                       stderr=self.log, cwd="/")

    def start(self):
        self.process = subprocess.Popen(
            [*self.user, PROGRAMS + "postgres", "-D", self.folder + "/data"],
            stdout=self.log, stderr=self.log, cwd="/")
        wait_for(lambda: self.psql("SELECT 1", database="postgres", check=False) == "1",
                 "PostgreSQL")

    def stop(self, how=signal.SIGQUIT):
        """As if the machine had stopped, unless it is told otherwise."""
        self.process.send_signal(how)
        self.process.wait(timeout=60)

    def end(self):
        self.stop()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def uri(self, database="shop"):
        return f"postgres:///{database}?host={self.folder}&user=postgres"

    def psql(self, sql, database="shop", check=True, timeout=60):
        done = subprocess.run(["psql", "-X", "-q", "-t", "-A", "-v", "ON_ERROR_STOP=1",
                               self.uri(database)], input=sql, capture_output=True, text=True,
                              timeout=timeout)
        if check and done.returncode != 0:
            raise AssertionError(done.stderr)
        return done.stdout.strip()


class Standby(Cluster):
    """Follows another one, and is behind it by what it was not sent."""

    def __init__(self, primary):
        self.primary = primary
        super().__init__()

    def make(self):
        self.program("pg_basebackup", "-d", self.primary.uri("postgres"), "-D",
                     self.folder + "/data", "--write-recovery-conf", "--checkpoint=fast",
                     "--no-sync")

    def wait_until_level(self):
        end = self.primary.psql("SELECT pg_current_wal_lsn()", "postgres")
        level = f"SELECT pg_last_wal_replay_lsn() >= '{end}'"
        wait_for(lambda: self.psql(level, "postgres") == "t", "the standby")

    def promote(self):
        self.psql("SELECT pg_promote()", "postgres")


class Pooler:
    """A pgbouncer in front of a cluster, at a port of its own."""

    PROGRAM = shutil.which("pgbouncer", path=os.environ.get("PATH", "") + ":/usr/sbin")

    def __init__(self, cluster, mode, more=""):
        self.cluster = cluster
        self.port = free_port()
        self.path = os.path.join(cluster.folder, f"pgbouncer-{self.port}.ini")
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(f"[databases]\n* = host={cluster.folder} user=postgres\n[pgbouncer]\n"
                       f"listen_addr = 127.0.0.1\nlisten_port = {self.port}\n"
                       f"unix_socket_dir =\nauth_type = any\npool_mode = {mode}\n{more}")
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [*self.cluster.user, self.PROGRAM, self.path], stdout=self.cluster.log,
            stderr=self.cluster.log, cwd="/")
        wait_for(lambda: self.psql("SELECT 1", "postgres", check=False) == "1", "pgbouncer")

    def stop(self):
        self.process.kill()
        self.process.wait()

    def uri(self, database="shop"):
        return f"postgres://postgres@127.0.0.1:{self.port}/{database}"

    psql = Cluster.psql
