"""Who waits is woken by what happened, not by looking now and then: looks are counted, not time."""

import re
import threading
import unittest

from running import ServerTest, arguments, wait_for

arguments()

STREAM = "/streams/orders"
MAIL = STREAM + "/consumers/mail"


class Waiting(ServerTest):
    def setUp(self):
        super().setUp()
        self.call("PUT", STREAM)

    def done(self, method, path, body=None):
        answer = self.call(method, path, body)
        self.assertLess(answer.status, 300, answer.body)
        return answer.json

    def append(self, payload, group=None):
        record = {"payload": payload}
        if group:
            record["group"] = group
        self.done("POST", STREAM + "/records", record)

    def receive(self, **body):
        return self.done("POST", MAIL + "/receive", body)["records"]

    def end(self, how, record, **body):
        self.done("POST", f"{MAIL}/{how}", {"receipt": record["receipt"], **body})

    def looks(self):
        text = self.call("GET", "/metrics").body.decode()
        counts = re.findall(r'(?m)^hapax_verdicts_total\{op="receive",verdict="\w+"\} (\d+)$', text)
        return sum(map(int, counts))

    def waits(self, act, wait_ms=30000):
        """What a receive got that found nothing, then waited while `act` was done; and how often it
        looked."""
        before, got = self.looks(), []
        thread = threading.Thread(
            target=lambda: got.extend(self.done("POST", f"{MAIL}/receive?wait_ms={wait_ms}",
                                                {"owner": "waits"})["records"]))
        thread.start()
        wait_for(lambda: self.looks() > before, "the first look")
        act()
        thread.join()
        return [record["payload"] for record in got], self.looks() - before

    def test_a_receive_looks_once_and_at_the_end(self):
        self.done("PUT", MAIL)
        self.assertEqual(self.waits(lambda: None, wait_ms=3500), ([], 2))

    def test_a_nack(self):
        self.append("x")
        held, = self.receive()
        self.assertEqual(self.waits(lambda: self.end("nack", held)), (["x"], 2))

    def test_the_ack_of_a_groups_oldest(self):
        self.append("x", "g")
        self.append("y", "g")
        held, = self.receive()
        self.assertEqual(self.waits(lambda: self.end("ack", held)), (["y"], 2))

    def test_a_free_place(self):
        self.done("PUT", MAIL, {"in_flight_max": 1})
        self.append("x")
        self.append("y")
        held, = self.receive()
        self.assertEqual(self.waits(lambda: self.end("ack", held)), (["y"], 2))

    def test_a_redrive(self):
        self.done("PUT", MAIL, {"attempts_max": 1})
        self.append("x")
        self.end("nack", self.receive()[0])
        redrive = lambda: self.done("POST", STREAM + ".dead/redrive", {"sequence": 1})
        self.assertEqual(self.waits(redrive), (["x"], 2))

    def test_a_seek(self):
        self.append("x")
        self.end("ack", self.receive()[0])
        self.assertEqual(self.waits(lambda: self.done("POST", MAIL + "/seek", {"to": 1})),
                         (["x"], 2))

    def test_the_end_of_a_transaction(self):
        self.done("PUT", MAIL)
        began = self.done("POST", "/transactions/t", {})
        staged = {"transaction": "t", "epoch": began["epoch"],
                  "ops": [{"op": "append", "stream": "orders", "payload": "x"}]}
        self.done("POST", "/commit", staged)
        ending = {"epoch": began["epoch"], "finish": "commit"}
        end = lambda: self.done("POST", "/transactions/t/end", ending)
        self.assertEqual(self.waits(end), (["x"], 2))

    def test_the_end_of_a_lease_and_of_a_delay(self):
        self.append("x")
        self.receive(lease_ms=600)
        # One more, if the store's clock is a little behind ours.
        payloads, looks = self.waits(lambda: None)
        self.assertEqual(payloads, ["x"])
        self.assertLessEqual(looks, 3)
        self.append("y")
        held, = self.receive()
        payloads, looks = self.waits(lambda: self.end("nack", held, delay_ms=600))
        self.assertEqual(payloads, ["y"])
        self.assertLessEqual(looks, 4)

    def test_two_workers_of_one_group_do_not_wait_for_each_other(self):
        for n in range(20):
            self.append(str(n), "g")
        before, done, enough = self.looks(), [], threading.Event()

        def work():
            while not enough.is_set():
                path = MAIL + "/receive?wait_ms=" + ("30000" if len(done) < 19 else "1000")
                for record in self.done("POST", path, {"owner": "w"})["records"]:
                    done.append(record["payload"])
                    self.end("ack", record)
                    if len(done) == 20:
                        enough.set()

        workers = [threading.Thread(target=work) for _ in range(2)]
        for worker in workers:
            worker.start()
        enough.wait(60)
        self.append("to end the waiting", "g")
        enough.set()
        for worker in workers:
            worker.join()
        self.assertEqual(done[:20], [str(n) for n in range(20)])
        # Each record wakes both, and one of them finds it: no more than three looks for each.
        self.assertLess(self.looks() - before, 20 * 3 + 10)


if __name__ == "__main__":
    unittest.main(verbosity=2)
