"""A service that makes one call to the next layer for each of its own: layer.py PORT NEXT RETRIES"""

import http.server
import sys
import threading

import requests
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

port, following, retries = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
local = threading.local()


def session():
    if not hasattr(local, "session"):
        local.session = requests.Session()
        local.session.trust_env = False
        local.session.mount("http://", HTTPAdapter(max_retries=Retry(total=retries, status_forcelist=[500, 502, 503, 504])))
    return local.session


class Layer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        trace = self.headers.get("traceparent")
        headers = {"traceparent": trace} if trace else {}  # as OpenTelemetry does
        try:
            good = session().get(following + self.path, headers=headers, timeout=30).status_code == 200
        except requests.RequestException:
            good = False
        self.send_response(200 if good else 503)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128


Server(("127.0.0.1", port), Layer).serve_forever()
