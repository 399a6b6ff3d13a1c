"""The program as one process that receives statement after statement, for tests of damage and
faults."""

from __future__ import annotations

import contextlib
import os
import resource
import select
import subprocess
from collections.abc import Callable
from pathlib import Path

SECONDS = 10
BUDGET = 128 << 20
# The memory that a process may use beyond its budget; see the memory test.
ALLOWANCE = 96 << 20
ADDRESS_SPACE = 4 << 30
MARK = "8361 as mutation"
END = f"{MARK.split()[-1]}\n{MARK.split()[0]}\n".encode()


class Program:
    """A process that serves many statements, and is restarted after a crash."""

    def __init__(self, binary: str, *options: str, budget: int = BUDGET, environment: dict[str, str] | None = None) -> None:
        own = ["--statistics-cache", "off", "--code-cache", "off", "--format", "csv", "--threads", "2"]
        self.command = [binary, *own, "--memory", f"{budget >> 20}MB", *options]
        self.budget = budget
        self.environment = os.environ | (environment or {})
        self.child: subprocess.Popen | None = None
        # Received bytes that belong to no answer yet.
        self.read = bytearray()

    def start(self) -> subprocess.Popen:
        """Starts the process."""
        bound = lambda: resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))  # noqa: E731
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        child = subprocess.Popen(self.command, preexec_fn=bound, bufsize=0, env=self.environment, **pipes)
        os.set_blocking(child.stdout.fileno(), False)
        self.child = child
        self.read = bytearray()
        return child

    def ask(
        self, sql: str, seconds: float = SECONDS, meanwhile: Callable[[], object] | None = None, after: int = 0
    ) -> tuple[str, str]:
        """Runs a statement; returns how it ended if that was bad, and its output (of a long one
        start and end).

        `meanwhile` is called after that many bytes of the answer; then the whole answer is kept.
        """
        self.tell([sql])
        answer = self.answer(seconds, meanwhile, after)
        return self.too_much() or answer

    def ask_all(self, statements: list[str]) -> list[tuple[str, str]]:
        """Runs many pipelined statements; returns the result of each."""
        answers: list[tuple[str, str]] = []
        while len(answers) < len(statements):
            rest = statements[len(answers) :]
            self.tell(rest)
            for _ in rest:
                answers.append(self.answer(SECONDS))
                if self.child is None:
                    # Later statements are sent again.
                    break
        if not self.too_much():
            return answers
        return [self.ask(sql) for sql in statements]

    def tell(self, statements: list[str]) -> None:
        """Sends statements."""
        child = self.child or self.start()
        with contextlib.suppress(BrokenPipeError):
            child.stdin.write("".join(f"{sql};\nselect {MARK};\n" for sql in statements).encode())

    def answer(
        self, seconds: float, meanwhile: Callable[[], object] | None = None, after: int = 0
    ) -> tuple[str, str]:
        """Returns the output of the next statement that was sent."""
        assert self.child
        said, whole, looked = self.read, meanwhile is not None, 0
        while (end := said.find(END, looked)) < 0:
            looked = max(0, len(said) - len(END))
            if meanwhile and len(said) >= after:
                meanwhile()
                meanwhile = None
            if not select.select([self.child.stdout], [], [], seconds)[0]:
                self.end()
                return "hang", said.decode(errors="replace")
            piece = self.child.stdout.read(after - len(said) if meanwhile else 1 << 20)
            if piece == b"":
                code = self.child.wait()
                self.child = None
                return f"abort ({code})", said.decode(errors="replace")
            said += piece or b""
            if len(said) > 2 << 20 and not whole and END not in said:
                del said[2000:-2000]
                looked = 0
        self.read = said[end + len(END) :]
        return "", said[:end].decode(errors="replace")

    def too_much(self) -> tuple[str, str] | None:
        """Kills the process if it exceeds its memory limit."""
        grown = self.anonymous() if self.child else 0
        if grown <= self.budget + ALLOWANCE:
            return None
        self.end()
        return f"memory ({grown >> 20} MiB)", ""

    def anonymous(self) -> int:
        """Returns the peak of its anonymous memory."""
        kilobytes = {}
        for line in Path(f"/proc/{self.child.pid}/status").read_text().splitlines():
            name, _, rest = line.partition(":")
            if name in ("VmHWM", "RssFile", "RssShmem"):
                kilobytes[name] = int(rest.split()[0])
        return (kilobytes["VmHWM"] - kilobytes["RssFile"] - kilobytes["RssShmem"]) << 10

    def open_files(self, folder: Path) -> list[str]:
        """Returns open files of a folder, named or unnamed."""
        found = []
        for link in Path(f"/proc/{self.child.pid}/fd").iterdir():
            try:
                target = os.readlink(link)
            except OSError:
                continue
            if target.startswith(f"{folder}/"):
                found.append(target)
        return found

    def end(self) -> None:
        """Kills the process."""
        if self.child:
            self.child.kill()
            self.child.wait()
            self.child = None


def judged(said: str, name: str) -> str:
    """Classifies an answer: `rows`, an `error` that contains this name, or a problem."""
    if "internal failure at" in said or "panicked" in said:
        return "panic"
    if "please report" in said or "internal" in said:
        return "internal error"
    errors = [line for line in said.splitlines() if line.startswith("error")]
    if not errors:
        return "rows"
    # A missing name in a query or an exceeded limit is not a fault of the file.
    known = ("column", "memory", "field", "result")
    return "error" if name in said or any(word in errors[-1] for word in known) else "no file in the error"
