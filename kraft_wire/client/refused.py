"""An error code in a broker's answer, as an exception with one line of text."""

from kraft_wire.wire.error_names import error_name
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["AdminRefused"]


class AdminRefused(Exception):
    """The broker refused a request; the text is one line."""

    def __init__(self, what: str, error_code: int, message: str | None) -> None:
        known = error_code in set(ErrorCode)
        self.error = ErrorCode(error_code) if known else None
        name = error_name(error_code)
        says_more = message and message != name
        super().__init__(f"{what}: {name}" + (f": {message}" if says_more else ""))
