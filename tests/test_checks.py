"""Checks must not pass if nothing was checked."""

import contextlib
import io
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from checks import TRIES_MIN, Checks, Shot


def quietly(checks: Checks, *arguments: object, **named: object) -> int:
    """Returns the exit code after some kills."""
    with contextlib.redirect_stdout(io.StringIO()):
        checks.shots(*arguments, **named)
        return checks.end()


class Shots(unittest.TestCase):
    def test_shots_that_miss_are_neither_passed_nor_enough(self):
        checks = Checks()
        self.assertEqual(quietly(checks, "late", 3, lambda _: Shot(False), tries=4), 1)
        self.assertEqual((checks.passed, checks.failed, checks.missed), (0, 1, TRIES_MIN))

    def test_many_wanted_shots_have_their_tries(self):
        checks = Checks()
        self.assertEqual(quietly(checks, "late", TRIES_MIN, lambda _: Shot(False), tries=4), 1)
        self.assertEqual(checks.missed, 4 * TRIES_MIN)

    def test_shots_go_on_until_enough_have_hit(self):
        checks = Checks()
        self.assertEqual(quietly(checks, "some", 3, lambda number: Shot(number % 3 == 2), tries=4), 0)
        self.assertEqual((checks.passed, checks.failed, checks.missed), (3, 0, 6))

    def test_a_problem_of_a_shot_that_missed_is_a_failure(self):
        checks = Checks()
        self.assertEqual(quietly(checks, "early", 1, lambda number: Shot(number > 0, None if number else "left a file"), tries=4), 1)

    def test_a_failure_without_a_message_is_a_failure(self):
        checks = Checks()
        with contextlib.redirect_stdout(io.StringIO()):
            checks.note("", "a program that ends without a word")
        self.assertEqual((checks.passed, checks.failed), (0, 1))


if __name__ == "__main__":
    unittest.main()
