"""What the tests of platforms share."""

from __future__ import annotations


class Checks:
    """Counts what held and prints what did not."""

    def __init__(self) -> None:
        self.passed = 0
        self.failed = 0

    def note(self, problem: str | None, what: str) -> None:
        """One check; none is no problem."""
        if problem:
            self.failed += 1
            print(f"FAILED: {what}: {problem}", flush=True)
        else:
            self.passed += 1

    def end(self) -> int:
        """Prints the counts; the exit code."""
        print(f"{self.passed} passed, {self.failed} failed")
        return 1 if self.failed else 0
