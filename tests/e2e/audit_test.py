"""The audit of a tenant: a record for every administrative act, for administrators only."""

import json
import unittest

import running
from running import jwt, wait_for

running.arguments()

ADMIN = jwt("acme", sub="root")
WORKER = jwt("acme", roles=["produce", "consume"], sub="worker")


class Audit(running.SignedInTest):
    def setUp(self):
        super().setUp()
        self.served = self.serve()

    def acts(self, token=ADMIN):
        _, _, body = self.served.call("GET", "/streams/$audit/records", token=token)
        return [json.loads(record["payload"]) if isinstance(record["payload"], str)
                else record["payload"] for record in body["records"]]

    def test_what_holds_is_written_with_who_did_it(self):
        call = self.served.call
        self.assertEqual(call("PUT", "/streams/orders", token=ADMIN)[0], 200)
        call("PATCH", "/streams/orders", {"window_s": 60}, token=ADMIN)
        call("PUT", "/streams/orders/consumers/c", token=ADMIN)
        call("DELETE", "/streams/none", token=ADMIN)  # There is none: nothing happened.
        call("PUT", "/streams/mine", token=WORKER)  # Not allowed: nothing happened.
        call("POST", "/claims/pay/o-1", {"owner": "w"}, token=WORKER)
        forget = {"actor": "ann", "reason": "asked to"}
        self.assertEqual(call("DELETE", "/claims/pay/o-1", forget, token=ADMIN)[0], 200)
        client = self.client(self.served, ADMIN)
        client("HX.CREATE_STREAM", "other")
        client("MULTI")
        client("HX.DELETE_STREAM", "other")
        self.assertEqual(len(client("EXEC")), 1)
        self.served.call("PUT", "/streams/of-another", token=jwt("other"))
        acts = self.acts()
        self.assertEqual([(act["act"], act["subject"]) for act in acts],
                         [("create_stream", "orders"), ("configure_stream", "orders"),
                          ("create_consumer", "orders/c"), ("forget", "pay/o-1"),
                          ("create_stream", "other"), ("delete_stream", "other")])
        self.assertEqual({act["actor"] for act in acts}, {"root"})
        self.assertEqual((acts[3]["on_behalf_of"], acts[3]["reason"]), ("ann", "asked to"))
        self.assertEqual(len(self.acts(jwt("other"))), 1)

    def test_commits_of_several(self):
        ops = [{"op": "create_stream", "stream": "a"}, {"op": "delete_stream", "stream": "none"}]
        for mode, verdicts in (("each", ["done", "refused"]),
                               ("atomic", ["not_applied", "refused"])):
            body = self.served.call("POST", "/api/v1/commit", {"mode": mode, "ops": ops},
                                    token=ADMIN)[2]
            self.assertEqual(len(body["verdicts"]), 2, body)
        self.assertEqual([act["subject"] for act in self.acts()], ["a"])

    def test_what_is_repeated_is_written_once(self):
        ops = [{"op": "create_stream", "stream": "a"}, {"op": "delete_stream", "stream": "a"}]
        for repeated in (False, True, True):
            body = self.served.call("POST", "/commit", {"id": "1", "mode": "each", "ops": ops},
                                    token=ADMIN).json
            self.assertEqual((body["repeated"], len(body["verdicts"])), (repeated, 2))
        client = self.client(self.served, ADMIN)
        for _ in range(3):
            for words in (("MULTI",), ("HX.COMMIT", "ID", "2", "MODE", "each"),
                          ("HX.CREATE_STREAM", "b"), ("EXEC",)):
                client(*words)
        self.assertEqual([act["subject"] for act in self.acts()], ["a", "a", "b"])

    def test_a_retry_by_another_administrator_gets_the_first_answer(self):
        key = {"Idempotency-Key": "k"}
        first, again = (self.served.call("PUT", "/streams/orders", {"window_s": 60}, key, token)
                        for token in (ADMIN, jwt("acme", sub="another")))
        self.assertEqual((first.status, again.status), (200, 200), again.body)
        self.assertEqual(first.json, again.json)
        other = self.served.call("PUT", "/streams/orders", {"window_s": 61}, key, ADMIN)
        self.assertEqual((other.status, other.json["code"]), (422, "HX1005"))
        self.assertEqual([act["actor"] for act in self.acts()], ["root"])

    def test_only_administrators_read_it_and_only_the_server_writes_it(self):
        call = self.served.call
        call("PUT", "/streams/orders", token=ADMIN)
        audit = "/streams/$audit"
        self.assertEqual(call("GET", audit + "/records", token=WORKER)[0], 403)
        self.assertEqual(call("GET", audit, token=WORKER)[0], 403)
        self.assertEqual(call("POST", audit + "/consumers/c/receive", token=WORKER)[0], 403)
        for token in (WORKER, ADMIN):
            status = call("POST", audit + "/records", {"payload": "forged"}, token=token)[0]
            self.assertIn(status, (400, 403))
        self.assertEqual(call("DELETE", audit, token=ADMIN)[0], 400)
        said = self.client(self.served, ADMIN)("HX.APPEND", "$audit", "forged")
        self.assertIn("reserved", said)
        self.assertEqual(call("POST", audit + "/consumers/c/receive", token=ADMIN)[0], 200)
        self.assertEqual(len(self.acts()), 1)

    def test_new_keys_are_an_act(self):
        self.served.call("PUT", "/streams/orders", token=ADMIN)
        self.served.reload()
        wait_for(lambda: [act["act"] for act in self.acts()] == ["create_stream", "reload"],
                 "the reload in the audit")


class AuditOfATenantWithoutRoom(running.SignedInTest):
    def setUp(self):
        super().setUp()
        self.served = self.serve(self.AUTH + "tenants: {default: {storage_max: 10KiB}}\n")

    def commit(self, *ops):
        body = self.served.call("POST", "/commit", {"mode": "each", "ops": ops}, token=ADMIN).json
        return body["verdicts"]

    def test_no_act_holds_without_its_record(self):
        held = []
        refused = 0
        for turn in range(40):
            ops = [{"op": "create_stream", "stream": "s"},
                   *({"op": "create_consumer", "stream": "s", "consumer": f"c{turn}-{n}"}
                     for n in range(3))]
            for op, verdict in zip(ops, self.commit(*ops)):
                if verdict["verdict"] == "refused":
                    self.assertEqual(verdict["code"], "HX1006", verdict)
                    refused += 1
                else:
                    held.append((op["op"], "s/" + op["consumer"] if "consumer" in op else "s"))
        self.assertGreater(refused, 50)
        records = self.served.call("GET", "/streams/$audit/records?max=1000", token=ADMIN).json
        lines = [record["payload"] for record in records["records"]]
        lines = [json.loads(line) if isinstance(line, str) else line for line in lines]
        self.assertEqual([(line["act"], line["subject"]) for line in lines], held)
        made = self.served.call("GET", "/streams/s", token=ADMIN).json
        self.assertEqual(len(made["consumers"]), sum(act == "create_consumer" for act, _ in held))
        # What only frees has a reserve, also beside what does not.
        trim = {"op": "trim", "stream": "$audit", "before": len(held)}
        delete = {"op": "delete_consumer", "stream": "s", "consumer": "c0-0"}
        more = {"op": "create_consumer", "stream": "s", "consumer": "more"}
        words = [verdict["verdict"] for verdict in self.commit(more, delete, trim, more)]
        self.assertEqual(words, ["refused", "done", "done", "done"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
