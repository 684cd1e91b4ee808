"""The life of a job in the document "Exactly Once Patterns": its scenarios "Complete Job Lifecycle"
and "Failure Recovery". Workers are processes of their own, and jobs are records of a stream. What a
worker did, its event and its acknowledgement are one commit; a workflow publishes the events."""

import json
import signal
import subprocess
import sys
import unittest

from delivering import DeliveryTest
from running import arguments, wait_for

LEASE_MS = 1500
CONFIG = """
streams: [{{stream: jobs}}, {{stream: outbox_events}}]
workflows:
  - id: events-out
    source: {{type: stream, stream: outbox_events}}
    endpoint: {{url: "{url}"}}
    delivery: {{retries: {{maxAttempts: 20, backoffMs: [20]}}}}
"""

# Takes one job after the other until there is none. Told to crash, it dies at that point of its
# first job. Its name, and each job that it works on, are a line of its output.
WORKER = r"""
import json, os, signal, sys, threading, urllib.request

url, name, crash = sys.argv[1:]

def ask(path, body):
    request = urllib.request.Request(url + "/api/v1" + path, json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)

def point(where):
    if where == crash:
        os.kill(os.getpid(), signal.SIGKILL)

while True:
    told = ask("/streams/jobs/consumers/workers/receive",
               {"max": 1, "owner": name, "lease_ms": LEASE_MS})
    if not told.get("records"):
        break
    job = told["records"][0]
    ack = {"op": "ack", "stream": "jobs", "consumer": "workers", "receipt": job["receipt"]}
    claim = {"verdict": "in_progress"}
    while claim["verdict"] == "in_progress":  # By one that may be dead: its lease ends soon.
        claim = ask("/claims/work/" + job["id"], {"owner": name, "lease_ms": LEASE_MS})
        threading.Event().wait(0.05)
    point("claimed")
    if claim["verdict"] == "duplicate":
        print(name, "knows", job["id"], flush=True)
        ask("/commit", {"ops": [ack]})
        continue
    print(name, "works on", job["id"], flush=True)
    point("working")
    ask("/commit", {"ops": [
        {"op": "settle", "scope": "work", "key": job["id"], "fence": claim["fence"], "body": name},
        {"op": "append", "stream": "outbox_events", "id": "done-" + job["id"],
         "payload": json.dumps({"order": job["id"]}), "headers": [["event_type", "JobDone"]]}]})
    point("committed")
    ask("/commit", {"ops": [ack]})
""".replace("LEASE_MS", str(LEASE_MS))


class Lifecycle(DeliveryTest):
    def setUp(self):
        super().setUp()
        self.receiver = self.endpoint()
        self.server = self.serve(CONFIG.format(url=self.receiver.url))
        self.call = self.server.call
        self.call("PUT", "/streams/jobs/consumers/workers", {})

    def submit(self, job):
        """The id of the record is the idempotency key of the job."""
        told = self.call("POST", "/streams/jobs/records", {"id": job, "payload": "send a mail"})
        self.assertIn(told.status, (200, 201), told.body)
        return told.json["verdict"]

    def worker(self, name, crash=""):
        """What it said, until there was nothing to do or it died."""
        done = subprocess.run([sys.executable, "-c", WORKER, self.server.url, name, crash],
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, -signal.SIGKILL if crash else 0, done.stderr)
        return done.stdout.splitlines()

    def waits(self):
        told = self.call("GET", "/streams/jobs").json
        return [one for one in told["consumers"] if one["floor"] != told["last"]]

    def metric(self, name):
        text = self.call("GET", "/metrics").body.decode()
        return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(name))

    def published(self):
        told = self.call("GET", "/outbox/stats?table=outbox_events&consumer=events-out").json
        return told["pending"], told["published"], told["failed"]

    def test_complete_job_lifecycle(self):
        self.assertEqual(self.submit("job-1"), "fresh")
        self.assertEqual(self.worker("ann"), ["ann works on job-1"])
        self.assertEqual(self.submit("job-1"), "duplicate")
        self.assertEqual(self.worker("bob"), [])
        self.arrives(self.receiver, "job-1")
        head, body = self.receiver.got[0]
        self.assertEqual(json.loads(body)["eventType"], "JobDone")
        self.assertEqual(head["webhook-id"], json.loads(body)["idempotencyKey"])
        wait_for(lambda: self.published() == (0, 1, 0),
                 lambda: f"the event to be published; there is {self.published()}")
        self.assertEqual(self.orders(self.receiver), ["job-1"])
        told = self.call("GET", "/dedup/stats?queue=jobs").json
        self.assertEqual((told["total_keys"], told["duplicate_jobs_blocked"]), (1, 1))
        self.assertEqual(self.call("GET", "/dedup/keys/dedup:work:job-1/status").json["status"],
                         "completed")
        delivered = 'hapax_delivery_delivered_total{workflow="events-out"'
        self.assertEqual(self.metric(delivered), 1)
        self.assertEqual(self.metric(delivered.replace("delivered_total", "dead_letters_total")), 0)

    def recovers(self, crash, after):
        self.submit("job-1")
        said = self.worker("ann", crash)
        self.server.restart()  # What is durable is all that counts.

        def done():
            said.extend(self.worker("bob"))
            return not self.waits()
        wait_for(done, "the job to be handed to another worker")
        self.assertEqual(said, after)
        self.assertEqual(self.submit("job-1"), "duplicate")
        self.arrives(self.receiver, "job-1")
        wait_for(lambda: self.published() == (0, 1, 0),
                 lambda: f"one event, published; there is {self.published()}")
        keys = {head["webhook-id"] for head, _ in self.receiver.came}
        self.assertEqual(len(keys), 1)
        claim = self.call("GET", "/claims/work/job-1").json
        self.assertEqual(claim["state"], "completed")
        return claim["body"]

    def test_failure_recovery_of_a_worker_that_dies_at_work(self):
        winner = self.recovers("working", ["ann works on job-1", "bob works on job-1"])
        self.assertEqual(winner, "bob")

    def test_failure_recovery_of_a_worker_that_dies_before_it_begins(self):
        self.assertEqual(self.recovers("claimed", ["bob works on job-1"]), "bob")

    def test_failure_recovery_of_a_worker_that_dies_after_its_commit(self):
        """Its job comes again, and the check of the key keeps the next one from doing it twice."""
        winner = self.recovers("committed", ["ann works on job-1", "bob knows job-1"])
        self.assertEqual(winner, "ann")


if __name__ == "__main__":
    Lifecycle.HAPAX, _ = arguments()
    unittest.main(verbosity=2)
