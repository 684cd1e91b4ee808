"""Endpoints that workflows deliver to, and what tests of deliveries share."""

import http.server
import json
import threading

from running import FolderTest, wait_for


class Endpoint(http.server.BaseHTTPRequestHandler):
    """Answers what the hook says, a status or all three of an answer; notes what it answered with
    success."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        """What became of a key, which is the end of the path."""
        key = self.path.rsplit("/", 1)[1]
        with self.server.lock:
            self.server.asked.append(key)
            has = any(head["webhook-id"] == key for head, _ in self.server.got)
        self.send_response(200 if has else 404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        request = (self.headers, body)
        with self.server.lock:
            self.server.came.append(request)
        answer = self.server.hook(request) if self.server.hook else 200
        status, fields, text = answer if isinstance(answer, tuple) else (answer, {}, b"")
        if status == 200:
            with self.server.lock:
                self.server.got.append(request)
        self.send_response(status)
        for name, value in {"Content-Length": str(len(text)), **fields}.items():
            self.send_header(name, value)
        self.end_headers()
        if text:
            self.wfile.write(text)

    def log_message(self, *_):
        pass


class DeliveryTest(FolderTest):
    """A workflow `erp` from the stream `orders` to endpoints of the test."""

    def endpoint(self):
        endpoint = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
        endpoint.came, endpoint.got, endpoint.asked, endpoint.hook = [], [], [], None
        endpoint.lock = threading.Lock()
        endpoint.url = f"http://127.0.0.1:{endpoint.server_port}/in"
        endpoint.closing = threading.Event()
        thread = threading.Thread(target=endpoint.serve_forever)
        thread.start()
        self.addCleanup(endpoint.server_close)
        self.addCleanup(thread.join)
        self.addCleanup(endpoint.shutdown)
        self.addCleanup(endpoint.closing.set)
        return endpoint

    def workflow(self, url, endpoint="", more=""):
        return f"""
streams: [{{stream: orders}}]
workflows:
  - id: erp
    source: {{type: stream, stream: orders}}
    endpoint: {{url: "{url}"{endpoint}}}
{more}
"""

    def publish(self, server, *ids, group=None, event_type="OrderCreated"):
        for each in ids:
            body = {"id": each, "payload": json.dumps({"order": each}),
                    "headers": [["event_type", event_type], ["traceparent", "00-ab-cd-01"]]}
            if group:
                body["group"] = group
            status, _, text = server.call("POST", "/api/v1/streams/orders/records", body)
            self.assertIn(status, (200, 201), text)

    def orders(self, endpoint):
        with endpoint.lock:
            return [json.loads(body)["data"]["order"] for _, body in endpoint.got]

    def arrives(self, endpoint, *orders):
        wait_for(lambda: set(self.orders(endpoint)) >= set(orders),
                 lambda: f"{orders} at the endpoint, which has {self.orders(endpoint)}")

    def dead_letters(self, server):
        status, _, told = server.call("GET", "/api/v1/streams/erp.dead/records")
        return told["records"] if status == 200 else []

    def dead_letter(self, server):
        wait_for(lambda: self.dead_letters(server), "a dead letter")
        return self.dead_letters(server)[0]
