"""A service without anything for clients that retry: app.py PORT"""

import http.server
import itertools
import sys
import time

numbers = itertools.count(1)


class App(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, text):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def do_GET(self):
        time.sleep(1.5 if self.path == "/slow" else 0.05)
        self.answer(200, "{}")

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.answer(500 if self.path == "/fails" else 201, '{"id": %d}' % next(numbers))

    def log_message(self, *args):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), App).serve_forever()
