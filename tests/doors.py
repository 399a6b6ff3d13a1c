#!/usr/bin/env python3
"""Tests access to the program by other users, other hosts and readers of its output.

    tests/doors.py --tessera target/release/tessera

Each check belongs to a threat of docs/design/threat-model.md. Ends with `N passed, N failed` and exit
code 1 if a check failed.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from checks import Checks, awaited, marked
from stores import own_store

PASSWORD = "pa55w0rd-of-the-user"
LOGIN = f"https://me:{PASSWORD}@127.0.0.1:1"
SIGNED = f"https://127.0.0.1:1/x.parquet?a=1&X-Amz-Signature={PASSWORD}"
SAS = f"https://127.0.0.1:1/x.csv?sv=2&sig={PASSWORD}&se=3"
ODD = f"https://me:{PASSWORD}/slash@127.0.0.1:1/x.parquet"

STATEMENTS = [
    "select * from '{url}'",
    "select * from read_parquet('{url}')",
    "select * from read_csv('{url}')",
    "select count(*) from '{url}' where no_column = 1",
    "create external table t stored as csv location '{url}'",
    "create external table t (a int) stored as json location '{url}'",
    "create external table t (a int) stored as csv location '{url}'; select a from t",
    "create external table t (a int) stored as csv location '{url}'; explain select a from t",
    "create external table t (a int) stored as csv location '{url}'; explain (format json) select a from t",
    "create external table t (a int) stored as csv location '{url}'; explain analyze select a from t",
    "create external table t (a int) stored as csv location '{url}'; select * from information_schema.tables",
    "create external table t (a int) stored as csv location '{url}'; show tables",
    "create view v as select * from '{url}'",
    "copy (select 1) to '{url}'",
    "copy t from '{url}'",
    "explain copy (select 1) to '{url}'",
    "set database = '{url}'",
    "set memory = '{url}'",
    "show all",
    "selec '{url}'",
]

HEADERS: list[dict[str, str]] = [
    {},
    {"Authorization": "Bearer "},
    {"Authorization": "Bearer " + "0" * 64},
    {"Authorization": "AWS4-HMAC-SHA256 Credential=/x"},
    {"Authorization": "AWS4-HMAC-SHA256 Credential=LOCAL/x, SignedHeaders=host, Signature=00"},
]

REQUESTS = [
    ("POST", "/2015-03-31/functions/tessera-worker/invocations"),
    ("GET", "/worker/1/2018-06-01/runtime/invocation/next"),
    ("POST", "/worker/1/2018-06-01/runtime/invocation/00000001/response"),
    ("GET", "/data?list-type=2"),
    ("GET", "/data?list-type=2&prefix=../"),
    ("GET", "/data/secret.csv"),
    ("PUT", "/data/made.csv"),
    ("DELETE", "/data/secret.csv"),
]


def listening(pids: list[int]) -> list[tuple[str, int]]:
    """Returns the addresses and ports on which these processes listen."""
    inodes = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            for link in Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    inodes.add(os.readlink(link))
    found = []
    for table, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        path = Path(f"/proc/net/{table}")
        for line in path.read_text().splitlines()[1:] if path.exists() else []:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in inodes:
                address, _, port = fields[1].partition(":")
                words = [bytes.fromhex(address[at : at + 8])[::-1] for at in range(0, len(address), 8)]
                found.append((socket.inet_ntop(family, b"".join(words)), int(port, 16)))
    return found


def ask(port: int, method: str, path: str, headers: dict[str, str]) -> int:
    """Returns the status of the response to a stranger's request."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request(method, path, body=b"order" if method in ("POST", "PUT") else None, headers=headers)
        return connection.getresponse().status
    except TimeoutError:
        # The connection was accepted and waits.
        return 0
    finally:
        connection.close()


def knock(ports: list[int]) -> str | None:
    """Sends every stranger's request; returns the first that is not refused."""
    for port in ports:
        for method, path in REQUESTS:
            for headers in HEADERS:
                status = ask(port, method, path, headers)
                if status != 403:
                    return f"port {port} answers {method} {path} {headers} with {status}"
    return None


def told_on_command_lines(pids: list[int]) -> str | None:
    """Returns the arguments of a process, which every user of the machine can read."""
    secrets = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            for entry in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                name, _, value = entry.partition(b"=")
                if name in (b"TESSERA_FUNCTIONS_TOKEN", b"AWS_SECRET_ACCESS_KEY") and len(value) > 16:
                    secrets.add(value)
    for pid in pids:
        with contextlib.suppress(OSError):
            line = Path(f"/proc/{pid}/cmdline").read_bytes()
            if any(secret in line for secret in secrets):
                return f"a secret is an argument: {line!r}"
    return None if secrets else "no worker has a token"


def open_to_others(folder: Path) -> str | None:
    """Returns the first file in a folder that another user can enter or read."""
    for path in folder.iterdir():
        mode = stat.S_IMODE(path.lstat().st_mode)
        if not path.is_symlink() and mode & 0o077:
            return f"{path} has mode {mode:o}"
    return None


@contextlib.contextmanager
def running(command: list[str], environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """Runs a program with a permissive umask."""
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, umask=0
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=30)


def check_workers(tessera: Path, scratch: Path, checks: Checks) -> None:
    """Checks services for workers, with their own store and with another one."""
    data = scratch / "data"
    data.mkdir()
    (data / "secret.csv").write_text("a\n1\n")
    bucket = scratch / "bucket"
    (bucket / "t").mkdir(parents=True)
    (bucket / "t" / "x.csv").write_text("a\n" + "1\n" * 1000)
    temporary = scratch / "tmp"
    temporary.mkdir()
    # A query that takes long enough for the checks.
    sql = "select count(*) from t a, t b, t c, t d where a.a + b.a + c.a + d.a > 5"
    place = ["--platform", "serverless", "--workers", "1", "-c", sql]
    own = os.environ | {"TMPDIR": str(temporary), "XDG_CACHE_HOME": str(scratch / "cache")}
    with own_store(tessera, bucket) as variables:
        for what, command in {
            "a store of their own": [str(tessera), str(bucket), *place],
            "a database in a bucket, without --function": [str(tessera), "s3://data/", "--scratch", "s3://scratch/x", *place],
        }.items():
            with running(command, own | (variables if "bucket," in what else {})) as process:
                mark = f"TMPDIR={temporary}"
                workers = lambda: len(marked(mark)) > 1  # noqa: E731
                ended = lambda: process.poll() is not None  # noqa: E731
                if not awaited(workers, ended):
                    checks.note(f"no worker came: {process.communicate()[0]}", f"workers beside {what}")
                    continue
                time.sleep(0.3)
                pids = marked(mark)
                doors = listening(pids)
                checks.note(knock([port for _, port in doors]) if doors else "nothing listens", f"strangers at workers beside {what}")
                far = [address for address, _ in doors if address != "127.0.0.1"]
                checks.note(f"listens at {far}" if far else None, f"other hosts at workers beside {what}")
                checks.note(told_on_command_lines(pids), f"command lines of workers beside {what}")
                checks.note(open_to_others(temporary), f"temporary directories beside {what}")
        checks.note(open_to_others(scratch / "cache" / "tessera"), "the directory of uploads")


def check_store(tessera: Path, scratch: Path, checks: Checks) -> None:
    """Checks the store alone."""
    folder = scratch / "store"
    folder.mkdir()
    (folder / "secret.csv").write_text("a\n1\n")
    with own_store(tessera, folder) as variables:
        port = int(variables["AWS_ENDPOINT_URL"].rsplit(":", 1)[1])
        checks.note(knock([port]), "strangers at the store")
        service = variables.get("AWS_ENDPOINT_URL_LAMBDA")
        checks.note(f"a store alone starts workers at {service}" if service else None, "what a store alone opens")
        with running([str(tessera), "-c", "select a from 's3://data/secret.csv'"], os.environ | variables) as process:
            output = process.communicate(timeout=60)[0]
        checks.note(None if "1" in output else output, "the store's own user")
    checks.note(None if (folder / "secret.csv").exists() else "it is gone", "the object that strangers wanted to delete")


def check_messages(tessera: Path, checks: Checks) -> None:
    """Checks all messages about an address that contains a secret."""
    environment = os.environ | {"TESSERA_STORE_RETRIES": "0"}
    for url in (f"{LOGIN}/x.parquet", f"{LOGIN}/*.csv", f"s3://me:{PASSWORD}@bucket/x.csv", SIGNED, SAS, ODD):
        for statement in STATEMENTS:
            sql = statement.format(url=url)
            command = [str(tessera), "--timing", "-c", sql]
            ran = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
            shown = ran.stdout + ran.stderr
            problem = None
            # A mistyped setting is shown as typed to the user who typed it.
            if PASSWORD in shown.replace(f"selec '{url}'", ""):
                problem = f"it prints {json.dumps(shown[:400])}"
            checks.note(problem, f"the password in: {sql}")
    ran = subprocess.run([str(tessera), f"{LOGIN}/folder", "-c", "select 1 from x"], capture_output=True, text=True, timeout=120)
    checks.note(ran.stderr if PASSWORD in ran.stdout + ran.stderr else None, "the password of a database")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tessera", type=Path, required=True)
    options = parser.parse_args()
    tessera = options.tessera.resolve()
    checks = Checks()
    check_messages(tessera, checks)
    with tempfile.TemporaryDirectory() as scratch:
        check_store(tessera, Path(scratch), checks)
        check_workers(tessera, Path(scratch), checks)
    return checks.end()


if __name__ == "__main__":
    sys.exit(main())
