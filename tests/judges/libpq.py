"""A connection to PostgreSQL through the C library of psql: values as text, types and SQLSTATEs."""

from __future__ import annotations

import ctypes
import ctypes.util
from dataclasses import dataclass, field

# Types by their fixed object identifiers.
BOOLEANS = {16}
WHOLE_NUMBERS = {20, 21, 23, 26}
OTHER_NUMBERS = {700, 701, 1700}

CONNECTION_OK = 0
COMMAND_OK, TUPLES_OK = 1, 2


@dataclass
class Outcome:
    """The result of a statement: type letters of its columns and rows of texts, or a SQLSTATE and
    a message."""

    state: str = "00000"
    message: str = ""
    types: str = ""
    rows: list[list[str | None]] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        return self.state != "00000"


def library() -> ctypes.CDLL:
    """Returns the C library with declared function types."""
    found = ctypes.CDLL(ctypes.util.find_library("pq") or "libpq.so.5")
    text, number, pointer = ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p
    signatures = {
        "PQconnectdb": (pointer, [text]),
        "PQstatus": (number, [pointer]),
        "PQerrorMessage": (text, [pointer]),
        "PQfinish": (None, [pointer]),
        "PQexec": (pointer, [pointer, text]),
        "PQclear": (None, [pointer]),
        "PQresultStatus": (number, [pointer]),
        "PQresultErrorField": (text, [pointer, number]),
        "PQntuples": (number, [pointer]),
        "PQnfields": (number, [pointer]),
        "PQftype": (ctypes.c_uint, [pointer, number]),
        "PQgetisnull": (number, [pointer, number, number]),
        "PQgetvalue": (text, [pointer, number, number]),
        "PQsetNoticeProcessor": (pointer, [pointer, pointer, pointer]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(found, name)
        function.restype, function.argtypes = result, arguments
    return found


QUIET = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)(lambda _argument, _message: None)


class Connection:
    """A session, for a `with` statement."""

    def __init__(self, address: str) -> None:
        self.address = address

    def __enter__(self) -> "Connection":
        self.library = library()
        self.handle = self.library.PQconnectdb(self.address.encode())
        if self.library.PQstatus(self.handle) != CONNECTION_OK:
            message = self.library.PQerrorMessage(self.handle).decode(errors="replace")
            self.library.PQfinish(self.handle)
            raise RuntimeError(f"cannot connect to PostgreSQL: {message.strip()}")
        self.library.PQsetNoticeProcessor(self.handle, ctypes.cast(QUIET, ctypes.c_void_p), None)
        return self

    def __exit__(self, *_: object) -> None:
        self.library.PQfinish(self.handle)

    def run(self, sql: str) -> Outcome:
        """Runs a statement."""
        result = self.library.PQexec(self.handle, sql.encode())
        try:
            if self.library.PQresultStatus(result) not in (COMMAND_OK, TUPLES_OK):
                return self.failure(result)
            return self.rows(result)
        finally:
            self.library.PQclear(result)

    def failure(self, result: int) -> Outcome:
        state = self.library.PQresultErrorField(result, ord("C"))
        message = self.library.PQresultErrorField(result, ord("M"))
        if state is None:
            # The server is gone, or the text cannot be sent.
            message = self.library.PQerrorMessage(self.handle)
        return Outcome((state or b"XX000").decode(), (message or b"").decode(errors="replace").strip())

    def rows(self, result: int) -> Outcome:
        width = self.library.PQnfields(result)
        types = [self.library.PQftype(result, column) for column in range(width)]
        letters = "".join(
            "I" if kind in WHOLE_NUMBERS else "R" if kind in OTHER_NUMBERS else "T" for kind in types
        )
        rows = [
            [self.value(result, row, column, kind) for column, kind in enumerate(types)]
            for row in range(self.library.PQntuples(result))
        ]
        return Outcome(types=letters, rows=rows)

    def value(self, result: int, row: int, column: int, kind: int) -> str | None:
        if self.library.PQgetisnull(result, row, column):
            return None
        text = self.library.PQgetvalue(result, row, column).decode()
        return {"t": "true", "f": "false"}[text] if kind in BOOLEANS else text
