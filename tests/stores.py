"""Loopback object stores for tests: the program's own, MinIO, Azurite, fake-gcs-server, a web
server.

Each is a context manager that returns the environment variables for the program, and stops the
store.
"""

from __future__ import annotations

import base64
import contextlib
import datetime
import hashlib
import hmac
import http.client
import http.server
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

# The time limit for the start of a store.
START_SECONDS = 30


def free_port() -> int:
    """Returns an unused port of this machine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def running(command: list[str], ready: str, log: Path | None = None, **environment: str) -> Iterator[None]:
    """Runs a server from the moment it responds at an address to the end; its output goes to a
    log."""
    with open(log or os.devnull, "wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=os.environ | environment
        )
        try:
            end = time.monotonic() + START_SECONDS
            while True:
                try:
                    urllib.request.urlopen(ready, timeout=1).close()
                    break
                except urllib.error.HTTPError:
                    break
                except OSError as error:
                    if process.poll() is not None or time.monotonic() > end:
                        raise RuntimeError(f"{command[0]} does not start") from error
                    time.sleep(0.1)
            yield
        finally:
            process.terminate()
            process.wait(timeout=30)


@contextlib.contextmanager
def own_store(tessera: Path, bucket: Path, **environment: str) -> Iterator[dict[str, str]]:
    """Runs the program's store."""
    command = [str(tessera), "store", str(bucket)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ | environment
    )
    found = {}
    assert process.stdout and process.stdin
    for line in process.stdout:
        if not line.strip():
            break
        name, _, value = line.strip().partition("=")
        found[name] = value
    try:
        yield found
    finally:
        process.stdin.close()
        process.wait(timeout=30)


@contextlib.contextmanager
def minio_store(binary: Path, folder: Path) -> Iterator[dict[str, str]]:
    """Runs MinIO over a folder whose directories are its buckets."""
    address = f"127.0.0.1:{free_port()}"
    own = {"MINIO_ROOT_USER": "tessera", "MINIO_ROOT_PASSWORD": "tessera-tests", "MINIO_API_SELECT_PARQUET": "on"}
    command = [str(binary), "server", "--quiet", "--address", address, str(folder)]
    with running(command, f"http://{address}/minio/health/ready", **own):
        yield {
            "AWS_ENDPOINT_URL": f"http://{address}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": own["MINIO_ROOT_USER"],
            "AWS_SECRET_ACCESS_KEY": own["MINIO_ROOT_PASSWORD"],
            "AWS_REGION": "us-east-1",
        }


def put_s3(path: str, body: bytes, variables: dict[str, str]) -> None:
    """Sends a signed PUT of an object (AWS signature version 4)."""
    host = urllib.parse.urlsplit(variables["AWS_ENDPOINT_URL"]).netloc
    now = datetime.datetime.now(datetime.timezone.utc)
    day, stamp = now.strftime("%Y%m%d"), now.strftime("%Y%m%dT%H%M%SZ")
    digest = hashlib.sha256(body).hexdigest()
    names = "host;x-amz-content-sha256;x-amz-date"
    canonical = f"PUT\n{path}\n\nhost:{host}\nx-amz-content-sha256:{digest}\nx-amz-date:{stamp}\n\n{names}\n{digest}"
    scope = f"{day}/us-east-1/s3/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    key = b"AWS4" + variables["AWS_SECRET_ACCESS_KEY"].encode()
    for part in (day, "us-east-1", "s3", "aws4_request", text):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    credential = f"{variables['AWS_ACCESS_KEY_ID']}/{scope}"
    headers = {
        "x-amz-date": stamp,
        "x-amz-content-sha256": digest,
        "Authorization": f"AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders={names}, Signature={key.hex()}",
    }
    request = urllib.request.Request(f"http://{host}{path}", body, headers, method="PUT")
    # A server that has just started may not be ready yet.
    for attempt in range(100):
        try:
            return urllib.request.urlopen(request, timeout=60).close()
        except urllib.error.HTTPError as error:
            if error.code != 503 or attempt == 99:
                raise
            time.sleep(0.2)


class Azurite:
    """Azurite, with one account."""

    def __init__(self, program: Path, folder: Path):
        self.program = program
        self.folder = folder
        self.host = f"127.0.0.1:{free_port()}"
        self.account = "tessera"
        self.key = base64.b64encode(os.urandom(32)).decode()
        self.log = folder / "log"

    @contextlib.contextmanager
    def start(self) -> Iterator[dict[str, str]]:
        """Starts it."""
        self.folder.mkdir()
        port = self.host.rpartition(":")[2]
        command = [str(self.program), "--blobPort", port, "--location", str(self.folder)]
        command += ["--disableTelemetry", "--skipApiVersionCheck"]
        with running(command, f"http://{self.host}/", self.log, AZURITE_ACCOUNTS=f"{self.account}:{self.key}"):
            # It takes the account from the path, not from the host name.
            yield {
                "AZURE_STORAGE_ACCOUNT_NAME": self.account,
                "AZURE_STORAGE_ACCOUNT_KEY": self.key,
                "AZURE_STORAGE_ENDPOINT": f"http://{self.host}/{self.account}",
                "AZURE_ALLOW_HTTP": "true",
            }

    def make(self, container: str) -> None:
        """Creates a container."""
        with contextlib.closing(http.client.HTTPConnection(self.host, timeout=60)) as connection:
            self.put(connection, f"/{container}", {"restype": "container"})

    def fill(self, container: str, keys: list[str], body: bytes) -> None:
        """Puts many objects of the same content."""
        with contextlib.closing(http.client.HTTPConnection(self.host, timeout=60)) as connection:
            for key in keys:
                self.put(connection, f"/{container}/{key}", {}, body, {"x-ms-blob-type": "BlockBlob"})

    def put(
        self,
        connection: http.client.HTTPConnection,
        path: str,
        query: dict[str, str],
        body: bytes = b"",
        headers: dict[str, str] | None = None,
    ) -> None:
        """Sends a signed PUT (Shared Key)."""
        date = datetime.datetime.now(datetime.timezone.utc).strftime("%a, %d %b %Y %H:%M:%S GMT")
        ours = {"x-ms-date": date, "x-ms-version": "2023-11-03"} | (headers or {})
        named = "".join(f"{name}:{value}\n" for name, value in sorted(ours.items()))
        resource = f"/{self.account}/{self.account}{path}" + "".join(f"\n{name}:{value}" for name, value in sorted(query.items()))
        text = "PUT\n\n\n" + (str(len(body)) if body else "") + "\n" * 9 + named + resource
        signature = hmac.new(base64.b64decode(self.key), text.encode(), hashlib.sha256).digest()
        ours["Authorization"] = f"SharedKey {self.account}:{base64.b64encode(signature).decode()}"
        suffix = f"?{urllib.parse.urlencode(query)}" if query else ""
        connection.request("PUT", f"/{self.account}{path}{suffix}", body, ours)
        answer = connection.getresponse()
        said = answer.read()
        if answer.status != 201:
            raise RuntimeError(f"Azurite answers {answer.status}: {said[:300]!r}")

    def requests(self) -> int:
        """Returns how many requests it has answered."""
        return len(re.findall(rb'"(?:GET|PUT|POST|HEAD|DELETE) /', self.log.read_bytes()))


class FakeGoogle:
    """fake-gcs-server behind a proxy that adds the writing part of the XML API, which object_store
    uses."""

    def __init__(self, program: Path):
        self.program = program
        self.behind = f"127.0.0.1:{free_port()}"
        self.count = 0
        self.lock = threading.Lock()

    @contextlib.contextmanager
    def start(self) -> Iterator[dict[str, str]]:
        """Starts both."""
        itself, front = self, f"127.0.0.1:{free_port()}"

        class Front(XmlWrites):
            google = itself

        command = [str(self.program), "-scheme", "http", "-host", "127.0.0.1", "-port", self.behind.rpartition(":")[2]]
        command += ["-public-host", self.behind, "-backend", "memory", "-log-level", "warn"]
        with running(command, f"http://{self.behind}/_internal/healthcheck"), serving(Front, front):
            yield {"GOOGLE_BASE_URL": f"http://{front}", "GOOGLE_SKIP_SIGNATURE": "true"}

    def make(self, bucket: str) -> None:
        """Creates a bucket."""
        body = json.dumps({"name": bucket}).encode()
        request = urllib.request.Request(f"http://{self.behind}/storage/v1/b", body, {"Content-Type": "application/json"})
        urllib.request.urlopen(request, timeout=60).close()

    def requests(self) -> int:
        """Returns how many requests were answered."""
        return self.count


class QuietServer(http.server.ThreadingHTTPServer):
    """A server that does not log clients that disconnect early."""

    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Reports an error of a request."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


@contextlib.contextmanager
def serving(handler: type[http.server.BaseHTTPRequestHandler], address: str) -> Iterator[None]:
    """Serves requests in this process."""
    host, _, port = address.rpartition(":")
    server = QuietServer((host, int(port)), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class XmlWrites(http.server.BaseHTTPRequestHandler):
    """Forwards requests to fake-gcs-server; translates uploads, in one or more parts, to its JSON
    API."""

    protocol_version = "HTTP/1.1"
    google: FakeGoogle
    uploads: dict[str, dict[int, bytes]] = {}

    def handle_any(self) -> None:
        """Handles one request."""
        with self.google.lock:
            self.google.count += 1
        target = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(target.query, keep_blank_values=True))
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        bucket, _, key = target.path.lstrip("/").partition("/")
        upload = query.get("uploadId", "")
        if self.command == "POST" and "uploads" in query:
            upload = f"upload-{len(self.uploads)}"
            self.uploads[upload] = {}
            text = f"<InitiateMultipartUploadResult><UploadId>{upload}</UploadId></InitiateMultipartUploadResult>"
            self.answer(200, {}, text.encode())
        elif self.command == "PUT" and upload:
            self.uploads[upload][int(query["partNumber"])] = body
            self.answer(200, {"ETag": f'"{hashlib.md5(body).hexdigest()}"'}, b"")
        elif self.command == "DELETE" and upload:
            self.uploads[upload] = {}
            self.answer(204, {}, b"")
        elif self.command == "POST" and upload:
            parts = self.uploads[upload]
            tag = self.insert(bucket, key, b"".join(parts[number] for number in sorted(parts)))
            text = f"<CompleteMultipartUploadResult><ETag>{tag}</ETag></CompleteMultipartUploadResult>"
            self.answer(200, {}, text.encode() if tag else b"")
        elif self.command == "PUT":
            tag = self.insert(bucket, key, body)
            if tag:
                self.answer(200, {"ETag": tag}, b"")
        else:
            self.pass_on()

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_any

    def insert(self, bucket: str, key: str, body: bytes) -> str | None:
        """Puts an object; returns its tag, or None after an error response."""
        query = {"uploadType": "media", "name": urllib.parse.unquote(key)}
        if self.headers.get("x-goog-if-generation-match"):
            query["ifGenerationMatch"] = self.headers["x-goog-if-generation-match"]
        address = f"http://{self.google.behind}/upload/storage/v1/b/{bucket}/o?{urllib.parse.urlencode(query)}"
        try:
            with urllib.request.urlopen(urllib.request.Request(address, body, method="POST"), timeout=60) as answer:
                return f'"{json.load(answer)["etag"]}"'
        except urllib.error.HTTPError as error:
            self.answer(error.code, {}, error.read())
            return None

    def pass_on(self) -> None:
        """Forwards the response of the server."""
        connection = http.client.HTTPConnection(self.google.behind, timeout=60)
        with contextlib.closing(connection):
            wanted = {name: value for name, value in self.headers.items() if name.lower() == "range"}
            connection.request(self.command, self.path, headers=wanted)
            answer = connection.getresponse()
            body = answer.read()
            headers = {name: value for name, value in answer.getheaders() if name.lower() not in ("transfer-encoding", "date")}
            self.answer(answer.status, headers, body)

    def answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        """Sends a response."""
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if not any(name.lower() == "content-length" for name in headers):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Logs nothing."""


def web_server(folder: Path, ranges: bool) -> type[http.server.BaseHTTPRequestHandler]:
    """Serves the files of a folder, in ranges or only whole."""

    class Files(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments: object, **named: object):
            super().__init__(*arguments, directory=str(folder), **named)

        def do_GET(self) -> None:
            asked = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range") or "")
            file = Path(self.translate_path(self.path))
            if not ranges or not asked or not file.is_file():
                return super().do_GET()
            content = file.read_bytes()
            start = int(asked[1]) if asked[1] else max(len(content) - int(asked[2]), 0)
            end = min(int(asked[2]) + 1, len(content)) if asked[1] and asked[2] else len(content)
            self.send_response(206)
            self.send_header("Content-Length", str(end - start))
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(content)}")
            self.send_header("Last-Modified", self.date_time_string(int(file.stat().st_mtime)))
            self.end_headers()
            self.wfile.write(content[start:end])

        def log_message(self, format: str, *arguments: object) -> None:
            """Logs nothing."""

    return Files
