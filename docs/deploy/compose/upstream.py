from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count

requests = count(1)


class Prices(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(503 if next(requests) % 10 == 0 else 200)
        self.end_headers()
        self.wfile.write(b"3 euros")


ThreadingHTTPServer(("", 8000), Prices).serve_forever()
