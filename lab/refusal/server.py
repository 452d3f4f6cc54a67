# A server of Python's standard library: "threads" has one thread for each connection (http.server), "asyncio" one loop.
import asyncio, ssl, sys, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

kind, folder, plain_port, tls_port = sys.argv[1:5]
PAGE = b"x" * 1024
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(folder + "/cert.pem", folder + "/key.pem")


def spin(rounds):
    x = 1
    for _ in range(rounds):
        x = (x * 69069 + 1) & 0xFFFFFFFF


def rounds_of_a_millisecond():
    best = 1.0
    for _ in range(200):
        begin = time.perf_counter()
        spin(1000)
        best = min(best, time.perf_counter() - begin)
    return int(1000 * 0.001 / best)


MILLISECOND = rounds_of_a_millisecond()


def answer(path):
    if path.startswith("/work/"):
        spin(int(path[len("/work/"):]) * MILLISECOND)
        return 200, "OK", b""
    if path == "/refuse/log":
        print(time.time(), "refused", path, file=sys.stderr, flush=True)
        return 503, "Service Unavailable", PAGE
    return 503, "Service Unavailable", b""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        status, _, body = answer(self.path)
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 1024

    def handle_error(self, *args):
        pass


class TLSServer(Server):
    def get_request(self):
        conn, address = super().get_request()
        return context.wrap_socket(conn, server_side=True, do_handshake_on_connect=False), address


async def converse(reader, writer):
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            status, reason, body = answer(head.split(" ", 2)[1])
            close = "connection: close" in head.lower()
            writer.write(f"HTTP/1.1 {status} {reason}\r\nContent-Length: {len(body)}\r\nConnection: {'close' if close else 'keep-alive'}\r\n\r\n".encode() + body)
            await writer.drain()
            if close:
                return
    except (asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
        pass
    finally:
        writer.close()


async def loop():
    plain = await asyncio.start_server(converse, "127.0.0.1", int(plain_port), backlog=1024)
    tls = await asyncio.start_server(converse, "127.0.0.1", int(tls_port), backlog=1024, ssl=context)
    await asyncio.gather(plain.serve_forever(), tls.serve_forever())


if kind == "asyncio":
    asyncio.run(loop())
else:
    threading.Thread(target=TLSServer(("127.0.0.1", int(tls_port)), Handler).serve_forever).start()
    Server(("127.0.0.1", int(plain_port)), Handler).serve_forever()
