"""Keys that a workflow makes of fields that it names."""

import hashlib
import json
import unittest

import delivering
import running
from running import wait_for

running.arguments()

FORMAT = "{payload:/order}:{eventType}"


def key_of(form, *values):
    """As docs/reference/delivery-keys.md has it."""
    parts = [each.encode() for each in ("hapax-key-1", "format", form, *values)]
    return hashlib.sha256(b"".join(b"%d:%s," % (len(part), part) for part in parts)).hexdigest()


class Keys(delivering.DeliveryTest):
    def delivery(self, form=FORMAT, guarantee="idempotent-keys"):
        return (f"    delivery: {{guarantee: {guarantee}, "
                f'idempotencyKey: {{format: "{form}"}}}}')

    def keys(self, endpoint):
        with endpoint.lock:
            return [head["webhook-id"] for head, _ in endpoint.got]

    def arrive(self, endpoint, count):
        wait_for(lambda: len(self.keys(endpoint)) >= count, f"{count} records at the endpoint")
        return self.keys(endpoint)

    def append(self, server, name, payload, event_type="OrderCreated"):
        status, _, text = server.call("POST", "/api/v1/streams/orders/records", {
            "id": name, "payload": payload, "headers": [["event_type", event_type]]})
        self.assertIn(status, (200, 201), text)

    def test_two_records_of_one_effect_have_one_key(self):
        endpoint = self.endpoint()
        server = self.serve(self.workflow(endpoint.url, more=self.delivery()))
        for name, order in (("a", 17), ("b", 17), ("c", 18)):
            self.append(server, name, json.dumps({"order": order}))
        self.assertEqual(sorted(self.arrive(endpoint, 3)), sorted(
            [key_of(FORMAT, "17", "OrderCreated")] * 2 + [key_of(FORMAT, "18", "OrderCreated")]))
        told = json.loads(endpoint.got[0][1])
        self.assertIn(told["idempotencyKey"], self.keys(endpoint))

    def test_a_record_that_lacks_a_field_is_a_dead_letter_and_not_sent(self):
        endpoint = self.endpoint()
        server = self.serve(self.workflow(endpoint.url, more=self.delivery()))
        self.append(server, "a", '{"no": 17}')
        self.assertIn("{payload:/order} is not in its payload",
                      json.dumps(self.dead_letter(server)))
        self.append(server, "b", '{"order": "A-1"}')
        self.assertEqual(self.arrive(endpoint, 1), [key_of(FORMAT, "A-1", "OrderCreated")])
        self.assertEqual(len(endpoint.came), 1)

    def test_exactly_once_sends_one_of_two_with_one_key(self):
        endpoint = self.endpoint()
        server = self.serve(self.workflow(endpoint.url, ", nature: idempotent",
                                          self.delivery(guarantee="exactly-once")))
        self.append(server, "a", '{"order": 17}')
        self.arrive(endpoint, 1)
        self.append(server, "b", '{"order": 17}')
        self.append(server, "c", '{"order": 17, "more": true}')
        self.assertIn("with another payload", json.dumps(self.dead_letter(server)))
        self.append(server, "d", '{"order": 18}')
        self.assertEqual(self.arrive(endpoint, 2), [
            key_of(FORMAT, order, "OrderCreated") for order in ("17", "18")])

    def test_with_a_transform_the_payload_is_that_of_the_source(self):
        endpoint = self.endpoint()
        server = self.serve(self.workflow(
            endpoint.url, more='    transform: {jq: "{total}"}\n' + self.delivery()))
        self.append(server, "a", '{"order": 17, "total": 5}')
        self.assertEqual(self.arrive(endpoint, 1), [key_of(FORMAT, "17", "OrderCreated")])
        self.append(server, "b", '{"total": 6}')
        self.assertIn("{payload:/order} is not in", json.dumps(self.dead_letter(server)))

    def test_several_endpoints_and_events_over_http(self):
        one, two = self.endpoint(), self.endpoint()
        form = "{header:x-shop}/{primaryKey}"
        server = self.serve(f"""
workflows:
  - id: shop
    source: {{type: http}}
    endpoints: [{{name: one, url: "{one.url}"}}, {{name: two, url: "{two.url}"}}]
{self.delivery(form)}
""")
        answer = server.call("POST", "/workflows/shop/events", {
            "id": "e1", "payload": {}, "headers": {"X-Shop": "north"}})
        self.assertEqual(answer.status, 201)
        self.assertEqual(self.arrive(one, 1), [key_of(form, "north", "e1", "endpoint", "one")])
        self.assertEqual(self.arrive(two, 1), [key_of(form, "north", "e1", "endpoint", "two")])


if __name__ == "__main__":
    unittest.main()
