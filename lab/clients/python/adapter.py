"""The protocol of lull torture for clients in Python: see docs/torture.md.

    python3 adapter.py NAME

Each client is used as its manual shows, with its own defaults for what is not set.
"""

import concurrent.futures
import os
import sys
import threading

CA = os.environ["LULL_TORTURE_CA"]


class Failed(Exception):
    pass


def requests_session(retry=None):
    import requests
    from requests.adapters import HTTPAdapter

    session = requests.Session()
    if retry is not None:
        for scheme in ("http://", "https://"):
            session.mount(scheme, HTTPAdapter(max_retries=retry))
    return session


def send(session):
    def call(method, url, headers, body, timeout):
        return session.request(method, url, headers=headers, data=body, timeout=timeout, verify=CA).status_code

    return call


def requests_alone():
    return send(requests_session())


def requests_urllib3():
    from urllib3.util import Retry

    return send(requests_session(Retry(total=3, backoff_factor=0.5, status_forcelist=[429, 500, 502, 503, 504])))


def raising(call):
    def checked(*args):
        status = call(*args)
        if status >= 500:
            raise Failed(f"status {status}")
        return status

    return checked


def requests_tenacity():
    import tenacity

    call = raising(send(requests_session()))
    return tenacity.retry(stop=tenacity.stop_after_attempt(4), wait=tenacity.wait_random_exponential(multiplier=0.5, max=10))(call)


def requests_backoff():
    import backoff
    import requests

    call = raising(send(requests_session()))
    return backoff.on_exception(backoff.expo, (Failed, requests.RequestException), max_tries=4)(call)


def httpx_alone():
    import httpx

    client = httpx.Client(verify=CA)

    def call(method, url, headers, body, timeout):
        more = {} if timeout is None else {"timeout": timeout}
        return client.request(method, url, headers=headers, content=body, **more).status_code

    return call


def httpx_retries():
    import httpx

    client = httpx.Client(transport=httpx.HTTPTransport(retries=3, verify=CA))

    def call(method, url, headers, body, timeout):
        more = {} if timeout is None else {"timeout": timeout}
        return client.request(method, url, headers=headers, content=body, **more).status_code

    return call


def urllib3_alone():
    import urllib3

    pool = urllib3.PoolManager(ca_certs=CA)

    def call(method, url, headers, body, timeout):
        more = {} if timeout is None else {"timeout": timeout}
        return pool.request(method, url, headers=headers, body=body, **more).status

    return call


def botocore_mode(mode):
    def make():
        import botocore.config
        import botocore.exceptions
        import botocore.session

        clients = {}
        session = botocore.session.get_session()
        session.set_credentials("a", "b")
        names = {"GET": "get_object", "PUT": "put_object", "HEAD": "head_object", "DELETE": "delete_object"}

        def call(method, url, headers, body, timeout):
            scheme, _, rest = url.partition("://")
            host, _, path = rest.partition("/")
            bucket, _, key = path.partition("/")
            if method not in names:
                raise Failed(f"S3 has no {method} of an object")
            if (host, timeout) not in clients:
                more = {} if timeout is None else {"read_timeout": timeout, "connect_timeout": timeout}
                clients[host, timeout] = session.create_client(
                    "s3", region_name="us-east-1", endpoint_url=f"{scheme}://{host}", verify=CA,
                    config=botocore.config.Config(retries={"mode": mode}, s3={"addressing_style": "path"}, **more))
            more = {"Body": body} if method == "PUT" else {}
            try:
                out = getattr(clients[host, timeout], names[method])(Bucket=bucket, Key=key, **more)
            except botocore.exceptions.ClientError as e:
                return e.response["ResponseMetadata"]["HTTPStatusCode"]
            if "Body" in out:
                out["Body"].read()
            return out["ResponseMetadata"]["HTTPStatusCode"]

        return call

    return make


CLIENTS = {
    "requests": requests_alone,
    "requests-urllib3-retry": requests_urllib3,
    "requests-tenacity": requests_tenacity,
    "requests-backoff": requests_backoff,
    "httpx": httpx_alone,
    "httpx-retries": httpx_retries,
    "urllib3": urllib3_alone,
    "botocore-standard": botocore_mode("standard"),
    "botocore-legacy": botocore_mode("legacy"),
}


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in CLIENTS:
        sys.exit("name one of " + ", ".join(CLIENTS))
    make, lock = CLIENTS[sys.argv[1]], threading.Lock()
    made = {"0": make()}  # what a client needs to load is no part of its calls

    def run(line):
        number, client, method, url, file, timeout, key = line.rstrip("\n").split("\t")
        with lock:
            if client not in made:
                made[client] = make()
        headers = {} if key == "-" else {"Idempotency-Key": key}
        body = None
        if file != "-":
            with open(file, "rb") as f:
                body = f.read()
        try:
            status = made[client](method, url, headers, body, int(timeout) / 1000 or None)
            answer = f"{number}\t{'ok' if 200 <= status < 300 else 'failed'}\t{status}\t"
        except Exception as e:
            text = " ".join(str(e).split())[:200]
            answer = f"{number}\tfailed\t0\t{type(e).__name__}: {text}"
        with lock:
            print(answer, flush=True)

    print("ready", flush=True)
    pool = concurrent.futures.ThreadPoolExecutor(200)
    for line in sys.stdin:
        pool.submit(run, line)


main()
