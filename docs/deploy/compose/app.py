from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.error import HTTPError
from urllib.request import urlopen


class Shop(BaseHTTPRequestHandler):
    def do_GET(self):
        try:
            answer = urlopen("http://127.0.0.1:9001/tea")  # the door of the proxy
        except HTTPError as failed:
            answer = failed
        text = f"tea: {answer.read().decode()}, attempts: {answer.headers['Lull-Attempts']}\n"
        self.send_response(answer.status)
        self.end_headers()
        self.wfile.write(text.encode())


ThreadingHTTPServer(("127.0.0.1", 3000), Shop).serve_forever()
