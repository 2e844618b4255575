"""An error code in a broker's answer, as an exception with one line of text."""

from typing import Final

from kraft_wire.wire.error_names import error_name
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["AdminRefused", "one_line"]

_CHARACTERS_MAX: Final = 2_000


def one_line(message: str) -> str:
    """Return a broker's words as one line that a terminal can show: they are a peer's choice."""
    words = " ".join(message[: _CHARACTERS_MAX + 1].split())
    shown = "".join(each if each.isprintable() else "?" for each in words)
    return shown if len(message) <= _CHARACTERS_MAX else f"{shown[:_CHARACTERS_MAX]}..."


class AdminRefused(Exception):
    """The broker refused a request; the text is one line."""

    def __init__(self, what: str, error_code: int, message: str | None) -> None:
        known = error_code in set(ErrorCode)
        self.error = ErrorCode(error_code) if known else None
        name = error_name(error_code)
        more = f": {one_line(message)}" if message and message != name else ""
        super().__init__(f"{what}: {name}{more}")
