from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.request import urlopen

class Shop(BaseHTTPRequestHandler):
    def do_GET(self):
        with urlopen("http://127.0.0.1:9001/tea") as answer:  # the door of the proxy
            text = f"tea costs {answer.read().decode()}, attempts: {answer.headers['Lull-Attempts']}\n"
        self.send_response(200)
        self.end_headers()
        self.wfile.write(text.encode())

ThreadingHTTPServer(("127.0.0.1", 3000), Shop).serve_forever()
